"""What a model answered, in its two parts, whatever form it chose for them.

Pure. Invariant: one part that is malformed never costs the other; a text that is no JSON is taken for the summary.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ricordo.errors import InvalidMessage
from ricordo.flush.lessons import LESSONS_SCHEMA
from ricordo.messages import JsonValue
from ricordo.messages.jsontext import loads

__all__ = ["REPLY_SCHEMA", "SummaryReply", "parse_reply"]

REPLY_SCHEMA: Mapping[str, JsonValue] = {
    "type": "object",
    "properties": {"summary": {"type": "string"}, "lessons": dict(LESSONS_SCHEMA)},
    "required": ["summary", "lessons"],
    "additionalProperties": False,
}
"""The JSON schema of an answer in two parts."""


@dataclass(frozen=True, kw_only=True)
class SummaryReply:
    """A summary, and what stands in the place of lessons, None where nothing does. `stop` says what ended it early."""

    summary: str
    lessons: JsonValue = None
    stop: str = ""


def parse_reply(text: str, *, stop: str = "") -> SummaryReply:
    """Return the parts of what a model said: those of the JSON object in it, else all of it as the summary."""
    found = _find_object(text)
    if found is None:
        return SummaryReply(summary=text, stop=stop)
    summary = found.get("summary")
    return SummaryReply(summary=summary if isinstance(summary, str) else "", lessons=found.get("lessons"), stop=stop)


def _find_object(text: str) -> Mapping[str, JsonValue] | None:
    """Return the object in `text`, whatever stands around it; None when it has none of the parts."""
    start, end = text.find("{"), text.rfind("}")
    if start < 0 or end < start:
        return None
    try:
        found = loads(text[start : end + 1])
    except InvalidMessage:
        return None
    return found if isinstance(found, dict) and found.keys() & {"summary", "lessons"} else None
