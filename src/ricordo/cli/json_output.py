"""The JSON that commands print. The keys are a promise: they may be added to, and never change their meaning.

Times are RFC 3339 in UTC or null; `file` can be opened from where the command ran, `path` counts from the root. Sizes
of a window are tokens.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ricordo.cli.target import Target
from ricordo.clock import format_rfc3339
from ricordo.messages.types import JsonValue

if TYPE_CHECKING:
    from ricordo.agent.compaction_journal import Compaction
    from ricordo.agent.session import CompactionResult, RequestPreview
    from ricordo.agent.tools.expand import ExpandedMessages
    from ricordo.context.usage import ContextReport
    from ricordo.search.config import DecayConfig
    from ricordo.search.contract import Answer, Explanation, Hit, Neighbour
    from ricordo.workspace.entry import Entry
    from ricordo.workspace.history.log import HistoryItem
    from ricordo.workspace.history.usage import MemoryUsage
    from ricordo.workspace.session_search import SessionInfo

__all__ = [
    "answer_document",
    "change_document",
    "compaction_document",
    "compaction_result_document",
    "context_usage_document",
    "entry_document",
    "expanded_messages_document",
    "explanation_document",
    "hit_document",
    "memory_usage_document",
    "request_document",
    "session_document",
]


def entry_document(entry: "Entry", decay: "DecayConfig", contradicts: Iterable[str] = ()) -> dict[str, JsonValue]:
    """Describe a memory; `contradicts` are the ids of those that can't hold beside it, where that is looked for.

    A memory that is active and has `superseded_by` is superseded by that one on the day `valid_until`.
    """
    return {
        "id": entry.id,
        "kind": entry.kind,
        "content": entry.content,
        "tags": _json_list(entry.tags),
        "metadata": dict(entry.metadata),
        "time": _format_time(entry.time),
        "since": _format_time(entry.since),
        "observed": _format_time(entry.said_at),
        "valid_from": entry.valid_from.isoformat() if entry.valid_from else None,
        "valid_until": entry.valid_until.isoformat() if entry.valid_until else None,
        "by": entry.by,
        "scope": str(entry.scope) if entry.scope else None,
        "confidence": entry.confidence,
        "state": entry.state,
        "supersedes": entry.supersedes,
        "superseded_by": entry.superseded_by or None,
        "maybe_outdated_by": entry.maybe_outdated_by or None,
        "shared_by": entry.shared_by or None,
        "contradicts": _json_list(contradicts),
        "pinned": entry.pinned,
        "confirmed": _format_time(entry.confirmed),
        "decay": _decay_document(entry, decay),
        "reason": entry.reason,
        "rule": entry.rule,
        "source": {
            "session": entry.source.session,
            "messages": _json_list(entry.source.messages),
            "quote": entry.source.quote,
            "origin": entry.source.origin,
        },
    }


def _decay_document(entry: "Entry", config: "DecayConfig") -> dict[str, JsonValue]:
    """Describe how far a memory has faded by now: its state, its weight in 0..1, and days of its half-life."""
    from ricordo.search.config import measure_decay

    decay = measure_decay(entry, datetime.now(UTC), config)
    return {"state": decay.state, "weight": round(decay.weight, 3), "half_life": decay.half_life}


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
        "explanation": hit.explanation,
        "path": hit.path,
        "file": target.display_path(hit.path, hit.source),
        "line": hit.line_number,
        "end_line": hit.end_line,
        "source": hit.source,
        "said": hit.is_said,
        "speaker": hit.speaker or None,
        "trust": hit.trust.value,
        "heading": hit.heading or None,
        "date": _format_time(hit.date),
        "before": _neighbour_document(hit.before),
        "after": _neighbour_document(hit.after),
        "superseded_by": hit.superseded_by or None,
        "entry": entry_document(hit.entry, target.settings.decay, hit.contradicts),
    }


def explanation_document(explanation: "Explanation", target: Target) -> dict[str, JsonValue]:
    """Return hits with the share of each signal in their scores, and the best rejected candidates with the reason.

    `signals` are in 0..1; `score_parts` sum to the score; `replacement` is the place of what stands for a rejected one.
    """

    def describe_hit(hit: "Hit") -> dict[str, JsonValue]:
        return {
            **hit_document(hit, target),
            "signals": {name: round(value, 4) for name, value in hit.signals.items()},
            "score_parts": {name: round(value, 4) for name, value in hit.score_parts.items()},
        }

    return {
        "hits": [describe_hit(hit) for hit in explanation.hits],
        "rejected": [
            {**describe_hit(each.hit), "reason": each.reason, "instead": each.replacement or None}
            for each in explanation.rejected
        ],
        "candidates": explanation.candidates,
        "trouble": explanation.reranker_error or None,
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
        "further": [hit_document(hit, target) for hit in answer.further],
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
        "actor": item.actor,
        "user": item.user or None,
        "action": item.action,
        "reason": item.reason or None,
        "paths": _json_list(item.paths),
        "entries": _json_list(item.entries),
        "undoes": item.undoes,
        "undone": item.is_undone,
    }


def session_document(info: "SessionInfo", target: Target) -> dict[str, JsonValue]:
    """Describe a session; `bytes` is the size of its transcript."""
    return {
        "id": info.session,
        "agent": info.agent,
        "messages": info.messages,
        "first": _format_time(info.started_at),
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


def context_usage_document(report: "ContextReport", *, is_new: bool = False) -> dict[str, JsonValue]:
    """Describe what fills a window; the session of one that `is_new` has no id yet."""
    return {
        "session": None if is_new else report.session,
        "model": report.model,
        "messages": report.messages,
        "sections": dict(report.sections),
        "conversation": report.conversation,
        "tokens": report.tokens,
        "limit": report.limit,
        "over": report.excess_tokens,
        "ratio": report.ratio,
    }


def request_document(request: "RequestPreview") -> dict[str, JsonValue]:
    """Describe a request as it would be sent: `url` and `body`, which are null where the model has no such form."""
    from ricordo.messages import encode_message
    from ricordo.messages.json_text import loads

    return {
        "model": request.model,
        "url": request.body.url if request.body else None,
        "body": dict(request.body.body) if request.body else None,
        "messages": [loads(encode_message(message)) for message in request.messages],
        "tools": [tool.name for tool in request.tools],
    }


def compaction_result_document(result: "CompactionResult", *, dry_run: bool, note: str = "") -> dict[str, JsonValue]:
    """Describe what making a window smaller came to; `note` says what of the request was not heeded."""
    return {
        "dry_run": dry_run,
        "note": note or None,
        "before": context_usage_document(result.before),
        "after": context_usage_document(result.after),
        "reports": [
            {
                "action": report.action,
                "status": report.status,
                "reason": report.reason,
                "note": report.note,
                "handle": report.handle or None,
                "messages_before": report.messages_before,
                "messages_after": report.messages_after,
                "tokens_before": report.tokens_before,
                "tokens_after": report.tokens_after,
            }
            for report in result
        ],
    }


def compaction_document(compaction: "Compaction") -> dict[str, JsonValue]:
    """Describe a compaction on record."""
    return {
        "handle": compaction.handle,
        "action": compaction.action,
        "at": format_rfc3339(compaction.at),
        "reason": compaction.reason,
        "first": compaction.first_id,
        "last": compaction.last,
        "messages": compaction.messages,
        "tokens_before": compaction.tokens_before,
        "tokens_after": compaction.tokens_after,
        "undone": compaction.is_undone,
        "missing": compaction.missing,
    }


def expanded_messages_document(handle: str, messages: "ExpandedMessages") -> dict[str, JsonValue]:
    """Describe what a handle opens: each message as its line in the transcript has it."""
    from ricordo.messages import encode_message
    from ricordo.messages.json_text import loads

    return {
        "handle": handle,
        "messages": [loads(encode_message(message)) for message in messages],
        "missing": messages.missing,
    }
