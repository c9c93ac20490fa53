"""The JSON of commands that look at a window; the promise is that of `ricordo.cli.documents`. Sizes are tokens."""

from typing import TYPE_CHECKING

from ricordo.clock import format_rfc3339
from ricordo.messages.types import JsonValue

if TYPE_CHECKING:
    from ricordo.harness.journal import Compaction
    from ricordo.runtime.session import CompactionResult, RequestPreview
    from ricordo.runtime.usage import ContextReport
    from ricordo.tools.expand import ExpandedMessages

__all__ = [
    "compaction_result_document",
    "compaction_document",
    "expanded_messages_document",
    "request_document",
    "context_usage_document",
]


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
    from ricordo.messages.jsontext import loads

    return {
        "model": request.model,
        "url": request.body.url if request.body else None,
        "body": dict(request.body.body) if request.body else None,
        "messages": [loads(encode_message(message)) for message in request.messages],
        "tools": [tool.name for tool in request.tools],
    }


def compaction_result_document(done: "CompactionResult", *, dry_run: bool, note: str = "") -> dict[str, JsonValue]:
    """Describe what making a window smaller came to; `note` says what of the request was not heeded."""
    return {
        "dry_run": dry_run,
        "note": note or None,
        "before": context_usage_document(done.before),
        "after": context_usage_document(done.after),
        "reports": [
            {
                "act": report.act,
                "status": report.status,
                "reason": report.reason,
                "note": report.note,
                "handle": report.handle or None,
                "messages_before": report.messages_before,
                "messages_after": report.messages_after,
                "tokens_before": report.tokens_before,
                "tokens_after": report.tokens_after,
            }
            for report in done
        ],
    }


def compaction_document(made: "Compaction") -> dict[str, JsonValue]:
    """Describe a compaction on record."""
    return {
        "handle": made.handle,
        "act": made.act,
        "at": format_rfc3339(made.at),
        "reason": made.reason,
        "first": made.first,
        "last": made.last,
        "messages": made.messages,
        "tokens_before": made.tokens_before,
        "tokens_after": made.tokens_after,
        "undone": made.undone,
        "missing": made.missing,
    }


def expanded_messages_document(handle: str, messages: "ExpandedMessages") -> dict[str, JsonValue]:
    """Describe what a handle opens: each message as its line in the transcript has it."""
    from ricordo.messages import encode_message
    from ricordo.messages.jsontext import loads

    return {
        "handle": handle,
        "messages": [loads(encode_message(message)) for message in messages],
        "missing": messages.missing,
    }
