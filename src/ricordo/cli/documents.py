"""The JSON that commands print. The keys are a promise: they may be added to, and never change their meaning.

Times are RFC 3339 in UTC or null; `file` can be opened from where the command ran, `path` counts from the root.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from ricordo.cli.context import Target
from ricordo.clock import format_rfc3339
from ricordo.messages.types import JsonValue

if TYPE_CHECKING:
    from ricordo.audit import HistoryItem, MemoryUsage
    from ricordo.recall.hits import Answer, Explanation, Hit, Neighbour
    from ricordo.sessions import SessionInfo
    from ricordo.workspace.entry import Entry

__all__ = [
    "answer_document",
    "change_document",
    "entry_document",
    "explanation_document",
    "hit_document",
    "session_document",
    "memory_usage_document",
]


def entry_document(entry: "Entry", contradicts: Iterable[str] = ()) -> dict[str, JsonValue]:
    """Describe a memory; `contradicts` are the ids of those that can't hold beside it, where that is looked for."""
    return {
        "id": entry.id,
        "kind": entry.kind,
        "content": entry.content,
        "tags": _json_list(entry.tags),
        "time": _format_time(entry.time),
        "since": _format_time(entry.since),
        "by": entry.by,
        "scope": str(entry.scope) if entry.scope else None,
        "confidence": entry.confidence,
        "state": entry.state,
        "supersedes": entry.supersedes,
        "contradicts": _json_list(contradicts),
        "pinned": entry.pinned,
        "confirmed": entry.confirmed.isoformat() if entry.confirmed else None,
        "reason": entry.reason,
        "rule": entry.rule,
        "source": {
            "session": entry.source.session,
            "messages": _json_list(entry.source.messages),
            "quote": entry.source.quote,
            "origin": entry.source.origin,
        },
    }


def memory_usage_document(usage: "MemoryUsage") -> dict[str, JsonValue]:
    """Describe how often a memory was shown, used and confirmed, and the first and the last time."""
    counts = {"shown": usage.shown, "used": usage.used, "confirmed": usage.confirmed}
    return {
        act: {"count": counted.count, "first": _format_time(counted.first), "last": _format_time(counted.last)}
        for act, counted in counts.items()
    }


def hit_document(hit: "Hit", target: Target) -> dict[str, JsonValue]:
    """Describe a hit: its memory or passage, its place, its score in 0..1, the reason, and what stands beside it."""
    return {
        "score": round(hit.score, 4),
        "why": hit.why,
        "path": hit.path,
        "file": target.display_path(hit.path, hit.source),
        "line": hit.line_number,
        "end_line": hit.end_line,
        "source": hit.source,
        "speaker": hit.speaker or None,
        "trust": hit.trust.value,
        "heading": hit.heading or None,
        "date": _format_time(hit.date),
        "before": _neighbour_document(hit.before),
        "after": _neighbour_document(hit.after),
        "superseded_by": hit.superseded_by or None,
        "entry": entry_document(hit.entry, hit.contradicts),
    }


def explanation_document(found: "Explanation", target: Target) -> dict[str, JsonValue]:
    """Describe hits with what each signal gave to their scores, and the best candidates that are none with the reason.

    `signals` are in 0..1; `shares` sum to the score; `replacement` is the place of what stands for a rejected one.
    """

    def describe_hit(hit: "Hit") -> dict[str, JsonValue]:
        return {
            **hit_document(hit, target),
            "signals": {name: round(value, 4) for name, value in hit.signals.items()},
            "shares": {name: round(value, 4) for name, value in hit.shares.items()},
        }

    return {
        "hits": [describe_hit(hit) for hit in found.hits],
        "rejected": [
            {**describe_hit(each.hit), "reason": each.reason, "instead": each.replacement or None}
            for each in found.rejected
        ],
        "candidates": found.candidates,
        "trouble": found.reranker_error or None,
    }


def answer_document(question: str, answer: "Answer", target: Target) -> dict[str, JsonValue]:
    """Describe an answer; `hit` is null when it is not in memory, `superseded` is what it replaced, newest first.

    `unconfirmed` is what came from outside, such as from a tool, where nothing else fits: a place to look, no answer.
    """
    return {
        "question": question,
        "found": answer.found,
        "text": answer.text,
        "score": round(answer.score, 4),
        "hit": hit_document(answer.hit, target) if answer.hit else None,
        "contradicting": [hit_document(hit, target) for hit in answer.contradicting],
        "superseded": [hit_document(hit, target) for hit in answer.superseded],
        "others": [hit_document(hit, target) for hit in answer.others],
        "unconfirmed": [hit_document(hit, target) for hit in answer.unconfirmed],
    }


def change_document(item: "HistoryItem") -> dict[str, JsonValue]:
    """Describe one write."""
    return {
        "id": item.id,
        "at": format_rfc3339(item.at),
        "who": item.who,
        "user": item.user or None,
        "act": item.act,
        "why": item.why or None,
        "paths": _json_list(item.paths),
        "entries": _json_list(item.entries),
        "undoes": item.undoes,
        "undone": item.undone,
    }


def session_document(info: "SessionInfo", target: Target) -> dict[str, JsonValue]:
    """Describe a session; `bytes` is the size of its transcript."""
    return {
        "id": info.session,
        "agent": info.agent,
        "messages": info.messages,
        "first": _format_time(info.first),
        "last": _format_time(info.last),
        "bytes": info.size,
        "path": info.path,
        "file": target.display_path(info.path),
    }


def _format_time(time: datetime | None) -> str | None:
    return format_rfc3339(time) if time else None


def _neighbour_document(neighbour: "Neighbour | None") -> JsonValue:
    if neighbour is None:
        return None
    return {"text": neighbour.text, "speaker": neighbour.speaker or None, "line": neighbour.line_number}


def _json_list(values: Iterable[str]) -> list[JsonValue]:
    return list(values)
