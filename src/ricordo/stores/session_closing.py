"""What a session file says when its session is closed, and when something in it is forgotten.

Pure. What a person has written stays: entries are added to those that are there, and a summary that was made is never
replaced by a digest.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Protocol

from ricordo.clock import Clock, IdSource
from ricordo.guard import Redactor
from ricordo.messages import Usage
from ricordo.stores.capabilities import SessionNotes
from ricordo.stores.session_drafts import SessionDraft
from ricordo.workspace.entry import Entry, Source
from ricordo.workspace.forgotten import ForgottenStatements
from ricordo.workspace.session_file import SessionFile, create_digest
from ricordo.workspace.session_head import SessionTotals, to_tag
from ricordo.workspace.striking import mask_session

__all__ = ["close_session_file", "remove_entry"]

_ORIGIN = "closing"
"""The origin of decisions that were read out of a conversation when it was closed."""


class ClosingParts(Protocol):
    """What closing needs: what takes secrets out, and where times and ids come from."""

    @property
    def redactor(self) -> Redactor:
        """What takes secrets out."""
        ...

    @property
    def clock(self) -> Clock:
        """Where times come from."""
        ...

    @property
    def ids(self) -> IdSource:
        """Where ids come from."""
        ...


def close_session_file(
    present: SessionFile | None,
    *,
    notes: SessionNotes,
    draft: SessionDraft | None,
    start: datetime,
    parts: ClosingParts,
) -> SessionFile:
    """Return what the file says after closing: what it says now, what the draft has saved, and what `notes` tell.

    No secret of the notes gets into it.
    """
    before = present or SessionFile(started=start, session=notes.session)
    there = {(entry.id, entry.time) for entry in before.entries}
    saved = tuple(entry for entry in (draft.entries if draft else ()) if (entry.id, entry.time) not in there)
    kept, concluded = _merge_decisions(before.entries, saved, notes, parts)
    file = replace(
        before,
        started=min(before.started, start),
        worked=_measure_work(before, notes, start, saved),
        closing=_add_amounts(before.closing, notes.closing_usage, notes.closing_cost),
        tags=_clean_lines(map(to_tag, notes.tags), parts) or before.tags,
        files_read=tuple(dict.fromkeys([*before.files_read, *_clean_lines(notes.files_read, parts)])),
        entries=(*kept, *saved, *concluded),
    )
    threads = _clean_lines(notes.open_threads, parts)
    if threads or not notes.pending:
        file = replace(file, open_threads=threads)
    goes_on = bool(saved) or notes.turns > (before.worked.turns or 0)
    return _set_summary(file, notes, parts.redactor.clean(notes.summary).strip(), goes_on=goes_on)


def remove_entry(file: SessionFile | None, *, entry: Entry, start: datetime) -> SessionFile:
    """Return what a file says without an entry; a digest is made anew, a summary gets a mark where it repeats it."""
    return mask_session(file or SessionFile(started=start), [entry.content], {entry.id})


def remove_forgotten(notes: SessionNotes, gone: ForgottenStatements) -> SessionNotes:
    """Return the notes without what was forgotten since they were made."""
    if not gone:
        return notes
    return replace(
        notes,
        summary=gone.mask(notes.summary),
        decisions=tuple(each for each in notes.decisions if not gone.contains(each)),
        open_threads=tuple(each for each in notes.open_threads if not gone.contains(each)),
    )


def _set_summary(file: SessionFile, notes: SessionNotes, text: str, *, goes_on: bool) -> SessionFile:
    """Return the file with its summary: the one of the notes, one that was saved, the one it has, or a digest."""
    if text and not notes.pending:
        return replace(file, summary=text, pending=False, outdated=False)
    if file.summary and not file.pending:
        return replace(file, outdated=file.outdated or (notes.pending and goes_on))
    written = [entry.content for entry in file.entries if entry.kind == "session-summary"]
    if written:
        return replace(file, summary=written[-1].strip(), pending=False)
    if notes.pending:
        kept = "" if goes_on else file.summary
        return replace(file, summary=text or kept or create_digest(file.entries), pending=True)
    return file


def _measure_work(before: SessionFile, notes: SessionNotes, start: datetime, saved: Sequence[Entry]) -> SessionTotals:
    """Return what the session took; where nobody tells, the time until its last entry is known and nothing else."""
    began = min(before.started, start)
    if notes.ended:
        spent = _add_amounts(before.worked, notes.usage, notes.cost)
        return replace(spent, minutes=_minutes_between(began, notes.ended), turns=notes.turns)
    times = [entry.time for entry in saved if entry.time]
    if not times:
        return before.worked
    return replace(before.worked, minutes=max(_minutes_between(began, max(times)), before.worked.minutes or 0))


def _minutes_between(began: datetime, ended: datetime) -> int:
    return max(round((ended - began).total_seconds() / 60), 0)


def _add_amounts(before: SessionTotals, usage: Usage, cost: Decimal | None) -> SessionTotals:
    """Return `before` with this usage and cost added; a cost that is not known makes the sum unknown."""
    if usage == Usage() and cost is None:
        return before
    if before.usage == Usage() and before.cost is None:
        return replace(before, usage=usage, cost=cost)
    total = None if before.cost is None or cost is None else before.cost + cost
    return replace(before, usage=before.usage + usage, cost=total)


def _merge_decisions(
    present: Sequence[Entry], saved: Sequence[Entry], notes: SessionNotes, parts: ClosingParts
) -> tuple[list[Entry], list[Entry]]:
    """Return the present entries that stay, and the decisions of the notes that nobody has saved."""
    wanted = _clean_lines(notes.decisions, parts)
    stays = [entry for entry in present if not wanted or entry.source.origin != _ORIGIN or entry.content in wanted]
    said = {entry.content.casefold().strip() for entry in (*stays, *saved)}
    time = notes.ended or parts.clock.now()
    source = Source(session=notes.session or None, origin=_ORIGIN)
    return stays, [
        Entry(content=text, kind="decision", id=parts.ids.new(), time=time, by="flush", source=source)
        for text in wanted
        if text.casefold() not in said
    ]


def _clean_lines(texts: Iterable[str], parts: ClosingParts) -> tuple[str, ...]:
    """Return each text on one line, without secrets and once."""
    lines = (" ".join(parts.redactor.clean(text).split()) for text in texts)
    return tuple(dict.fromkeys(line for line in lines if line))
