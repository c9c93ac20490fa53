"""What a model answered when memory was consolidated, read as proposals. Pure.

Invariant: an answer that can't be read, that would fill more than memory may hold, or that takes more than half of it
away without anything in its place is told from one that proposes nothing; it is of no use as a whole.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from ricordo.consolidation.config import ConsolidationConfig
from ricordo.consolidation.types import REASONS, Advice, Merge, Reason, Retired, Superseded
from ricordo.consolidation.wording import plain_line
from ricordo.errors import InvalidMessage
from ricordo.guard import contains_fence
from ricordo.messages import JsonValue
from ricordo.messages.jsontext import loads
from ricordo.tokens import estimate_text

__all__ = ["ANSWER_FORM", "DROPS_HALF", "MOST_PARENTS", "OVER_BUDGET", "UNREADABLE", "read_answer"]

MOST_PARENTS = 8
"""How many lines may become one."""

UNREADABLE = "it is no whole JSON object with the parts merged, superseded, retired and topics"
OVER_BUDGET = "its lines take more room than all of MEMORY.md may"
DROPS_HALF = "it takes more than half of the lines away and puts nothing in their place"

_MOST = 400
_LONGEST = 400_000
_LONGEST_NAME = 40
_PARTS = ("merged", "superseded", "retired", "topics")


def _row(**properties: JsonValue) -> JsonValue:
    return {
        "type": "array",
        "items": {
            "type": "object",
            "properties": properties,
            "required": [*properties],
            "additionalProperties": False,
        },
    }


_ID: JsonValue = {"type": "string"}
_IDS: JsonValue = {"type": "array", "items": {"type": "string"}}

ANSWER_FORM: Mapping[str, JsonValue] = {
    "type": "object",
    "properties": {
        "merged": _row(parents=_IDS, content={"type": "string"}),
        "superseded": _row(old=_ID, new=_ID),
        "retired": _row(id=_ID, reason={"type": "string", "enum": [*REASONS]}),
        "topics": _row(name={"type": "string"}, ids=_IDS),
    },
    "required": [*_PARTS],
    "additionalProperties": False,
}
"""The JSON schema of an answer."""


def read_answer(
    said: str, parsed: JsonValue, *, standing: Collection[str], shown: Collection[str], config: ConsolidationConfig
) -> Advice:
    """Return what an answer proposes, or its flaw. `standing` are the curated lines, `shown` all that it was about."""
    found = parsed if isinstance(parsed, dict) else _object_in(said)
    if found is None or not any(isinstance(found.get(part), list) for part in _PARTS):
        return Advice(flaw=UNREADABLE)
    advice = Advice(
        merges=tuple(
            Merge(parents=_ids(row, "parents"), content=plain_line(_text(row, "content")))
            for row in _rows(found, "merged")
        ),
        superseded=tuple(Superseded(old=_id(row, "old"), new=_id(row, "new")) for row in _rows(found, "superseded")),
        retired=tuple(
            Retired(id=_id(row, "id"), reason=reason)
            for row in _rows(found, "retired")
            if (reason := _reason(row)) is not None
        ),
        topics={entry: name for row in reversed(_rows(found, "topics")) for entry, name in _topics(row)},
    )
    if sum(estimate_text(merge.content) for merge in advice.merges) > config.max_memory_tokens:
        return Advice(flaw=OVER_BUDGET)
    dropped = {one.id for one in advice.retired} | {
        name for merge in advice.merges if not merge.content for name in merge.parents
    }
    for lines in (standing, shown):
        if 2 * len(dropped & set(lines)) > len(set(lines)):
            return Advice(flaw=DROPS_HALF)
    return replace(advice, merges=tuple(merge for merge in advice.merges if merge.content))


def _object_in(text: str) -> Mapping[str, JsonValue] | None:
    start, end = text.find("{"), text[:_LONGEST].rfind("}")
    try:
        value = loads(text[start : end + 1]) if 0 <= start < end else None
    except InvalidMessage:
        return None
    return value if isinstance(value, dict) else None


def _rows(found: Mapping[str, JsonValue], part: str) -> Sequence[Mapping[str, JsonValue]]:
    rows = found.get(part)
    return [row for row in rows[:_MOST] if isinstance(row, dict)] if isinstance(rows, list) else []


def _text(row: Mapping[str, JsonValue], name: str) -> str:
    value = row.get(name)
    return value if isinstance(value, str) else ""


def _id(row: Mapping[str, JsonValue], name: str) -> str:
    return _text(row, name).strip().lstrip("^")


def _ids(row: Mapping[str, JsonValue], name: str) -> tuple[str, ...]:
    value = row.get(name)
    given = [each.strip().lstrip("^") for each in value if isinstance(each, str)] if isinstance(value, list) else []
    return tuple(dict.fromkeys(filter(None, given)))


def _reason(row: Mapping[str, JsonValue]) -> Reason | None:
    given = _text(row, "reason").strip().casefold()
    return next((reason for reason in REASONS if reason == given), None)


def _topics(row: Mapping[str, JsonValue]) -> list[tuple[str, str]]:
    name = plain_line(_text(row, "name")).lstrip("# ")
    if not name or len(name) > _LONGEST_NAME or contains_fence(name):
        return []
    return [(each, name) for each in _ids(row, "ids")]
