"""What the service answers, as the values that `Memory` returns."""

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

from ricordo.curation.quality_checks import Doubt
from ricordo.runtime.extraction import IngestReport
from ricordo.search import Answer, Hit
from ricordo.stores.contract import DeleteResult
from ricordo.workspace import SessionInfo
from ricordo.workspace.entry import Entry, Source, with_metadata
from ricordo.workspace.history.log import HistoryItem

__all__ = [
    "read_answer",
    "read_change",
    "read_deleted",
    "read_doubt",
    "read_entries",
    "read_entry",
    "read_hit",
    "read_report",
    "read_session",
]


Document = Mapping[str, Any]


def read_entry(document: Document) -> Entry:
    """Return the entry of a memory; the scope stays with the service."""
    entry = Entry(
        content=document["content"],
        kind=document["kind"],
        tags=tuple(document["tags"]),
        id=document["id"],
        time=_read_time(document["time"]),
        since=_read_time(document["since"]),
        by=document["by"],
        source=Source(session=document["session"], origin=document["origin"]),
        confidence=document["confidence"],
        state=document["state"],
        pinned=document["pinned"],
        confirmed=_read_time(document["confirmed"]),
    )
    return with_metadata(entry, document["metadata"])


def read_entries(document: Document) -> list[Entry]:
    """Return the entries of a page."""
    return [read_entry(each) for each in document["memories"]]


def read_hit(document: Document) -> Hit:
    """Return a hit."""
    memory = document["memory"]
    return Hit(
        entry=read_entry(memory),
        score=document["score"],
        explanation=document["why"],
        path=document["path"],
        line_number=document["line"],
        end_line=document["line"],
        speaker=document["speaker"],
        superseded_by=memory["superseded_by"] or "",
        score_parts=document["parts"],
    )


def read_answer(document: Document) -> Answer:
    """Return an answer."""
    hit = read_hit(document["hit"]) if document["hit"] else None
    return Answer(
        found=document["found"],
        text=document["text"],
        hit=hit,
        path=hit.path if hit else "",
        line_number=hit.line_number if hit else 0,
        score=hit.score if hit else 0.0,
        superseded=tuple(read_hit(each) for each in document["superseded"]),
        contradicting=tuple(read_hit(each) for each in document["contradicting"]),
    )


def read_change(document: Document) -> HistoryItem:
    """Return a change."""
    return HistoryItem(
        id=document["id"],
        at=datetime.fromisoformat(document["at"]),
        actor=document["actor"],
        action=document["action"],
        reason=document["reason"],
        entries=tuple(document["entries"]),
        is_undone=document["undone"],
    )


def read_deleted(document: Document) -> DeleteResult:
    """Return the memories that were forgotten together."""
    return DeleteResult(entries=tuple(read_entries(document)), change_id=document["change"] or "")


def read_report(document: Document) -> IngestReport:
    """Return what an ingest did; the messages stay with the service."""
    return IngestReport(
        session=document["session"],
        added_count=document["added"],
        entries=tuple(read_entry(each) for each in document["learned"]),
        change_id=document["change"] or "",
        is_queued=document["queued"],
    )


def read_session(document: Document) -> SessionInfo:
    """Return a session; its file stays with the service."""
    return SessionInfo(
        session=document["session"],
        agent="",
        path="",
        messages=document["messages"],
        started_at=datetime.fromisoformat(document["started"]),
        last=datetime.fromisoformat(document["last"]),
        size=document["bytes"],
    )


def read_doubt(document: Document) -> Doubt:
    """Return a doubtful memory."""
    other = read_entry(document["other"]) if document["other"] else None
    return Doubt(kind=document["kind"], reason=document["reason"], entry=read_entry(document["memory"]), other=other)


def _read_time(value: str | None) -> datetime | None:
    return None if value is None else datetime.fromisoformat(value)


def write_moment(moment: datetime | date | str | None) -> str | None:
    """Return a time for a request."""
    return moment.isoformat() if isinstance(moment, date) else moment
