"""What a model answered when memory was consolidated, read as proposals. Pure.

Invariant: an answer that can't be read, that would fill more than memory may hold, or that takes more than half of it
away without anything in its place is told from one that proposes nothing; it is of no use as a whole.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from ricordo.consolidation.config import ConsolidationConfig
from ricordo.consolidation.types import (
    RETIREMENT_REASONS,
    Advice,
    LineMerge,
    RetirementReason,
    Retirement,
    Supersession,
)
from ricordo.consolidation.wording import to_plain_line
from ricordo.errors import InvalidMessage
from ricordo.guard import contains_fence
from ricordo.messages import JsonValue
from ricordo.messages.jsontext import loads
from ricordo.tokens import estimate_text

__all__ = ["ADVICE_SCHEMA", "DROPS_HALF", "MAX_PARENTS", "OVER_BUDGET", "UNREADABLE", "parse_advice"]

MAX_PARENTS = 8
"""How many lines may become one."""

UNREADABLE = "it is no whole JSON object with the parts merged, superseded, retired and topics"
OVER_BUDGET = "its lines take more room than all of MEMORY.md may"
DROPS_HALF = "it takes more than half of the lines away and puts nothing in their place"

_MAX_ROWS = 400
_MAX_ANSWER_CHARACTERS = 400_000
_MAX_TOPIC_NAME = 40
_ANSWER_PARTS = ("merged", "superseded", "retired", "topics")


def _row_schema(**properties: JsonValue) -> JsonValue:
    return {
        "type": "array",
        "items": {
            "type": "object",
            "properties": properties,
            "required": [*properties],
            "additionalProperties": False,
        },
    }


_ID_SCHEMA: JsonValue = {"type": "string"}
_IDS_SCHEMA: JsonValue = {"type": "array", "items": {"type": "string"}}

ADVICE_SCHEMA: Mapping[str, JsonValue] = {
    "type": "object",
    "properties": {
        "merged": _row_schema(parents=_IDS_SCHEMA, content={"type": "string"}),
        "superseded": _row_schema(old=_ID_SCHEMA, new=_ID_SCHEMA),
        "retired": _row_schema(id=_ID_SCHEMA, reason={"type": "string", "enum": [*RETIREMENT_REASONS]}),
        "topics": _row_schema(name={"type": "string"}, ids=_IDS_SCHEMA),
    },
    "required": [*_ANSWER_PARTS],
    "additionalProperties": False,
}
"""The JSON schema of an answer."""


def parse_advice(
    said: str, parsed: JsonValue, *, standing: Collection[str], shown: Collection[str], config: ConsolidationConfig
) -> Advice:
    """Return what an answer proposes, or its flaw. `standing` are the curated lines, `shown` all that it was about."""
    found = parsed if isinstance(parsed, dict) else _parse_object(said)
    if found is None or not any(isinstance(found.get(part), list) for part in _ANSWER_PARTS):
        return Advice(flaw=UNREADABLE)
    advice = Advice(
        merges=tuple(
            LineMerge(parents=_read_ids(row, "parents"), content=to_plain_line(_read_text(row, "content")))
            for row in _read_rows(found, "merged")
        ),
        superseded=tuple(
            Supersession(old=_read_id(row, "old"), new=_read_id(row, "new")) for row in _read_rows(found, "superseded")
        ),
        retired=tuple(
            Retirement(id=_read_id(row, "id"), reason=reason)
            for row in _read_rows(found, "retired")
            if (reason := _read_reason(row)) is not None
        ),
        topics={entry: name for row in reversed(_read_rows(found, "topics")) for entry, name in _read_topics(row)},
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


def _parse_object(text: str) -> Mapping[str, JsonValue] | None:
    start, end = text.find("{"), text[:_MAX_ANSWER_CHARACTERS].rfind("}")
    try:
        value = loads(text[start : end + 1]) if 0 <= start < end else None
    except InvalidMessage:
        return None
    return value if isinstance(value, dict) else None


def _read_rows(found: Mapping[str, JsonValue], part: str) -> Sequence[Mapping[str, JsonValue]]:
    rows = found.get(part)
    return [row for row in rows[:_MAX_ROWS] if isinstance(row, dict)] if isinstance(rows, list) else []


def _read_text(row: Mapping[str, JsonValue], name: str) -> str:
    value = row.get(name)
    return value if isinstance(value, str) else ""


def _read_id(row: Mapping[str, JsonValue], name: str) -> str:
    return _read_text(row, name).strip().lstrip("^")


def _read_ids(row: Mapping[str, JsonValue], name: str) -> tuple[str, ...]:
    value = row.get(name)
    given = [each.strip().lstrip("^") for each in value if isinstance(each, str)] if isinstance(value, list) else []
    return tuple(dict.fromkeys(filter(None, given)))


def _read_reason(row: Mapping[str, JsonValue]) -> RetirementReason | None:
    given = _read_text(row, "reason").strip().casefold()
    return next((reason for reason in RETIREMENT_REASONS if reason == given), None)


def _read_topics(row: Mapping[str, JsonValue]) -> list[tuple[str, str]]:
    name = to_plain_line(_read_text(row, "name")).lstrip("# ")
    if not name or len(name) > _MAX_TOPIC_NAME or contains_fence(name):
        return []
    return [(each, name) for each in _read_ids(row, "ids")]
