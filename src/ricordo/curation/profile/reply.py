"""A model's reply to a request for an update: its JSON schema and its parser.

The reply is the first object in the text that has the three required parts; marked thinking is skipped. An unreadable
item is dropped alone.

Invariants: a truncated reply gives no update, nor does one with a removal and an unreadable new fact, because that may
be the replacement. Only `ReplyInvalid` is raised.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from math import isfinite
from typing import TypeAlias, TypeVar

from ricordo.curation.profile.updates import (
    FactConfirmation,
    FactExtension,
    FactMerge,
    FactRemoval,
    NewFact,
    ProfileUpdate,
    SummaryEdit,
    UpdateLabels,
    parse_confidence,
)
from ricordo.errors import ReplyInvalid
from ricordo.language import strip_lead_in
from ricordo.lazy import lazy_compile
from ricordo.messages.json_text import iterate_objects
from ricordo.messages.types import JsonValue
from ricordo.workspace.profile import CATEGORIES, HISTORY_SUMMARIES, USER_SUMMARIES, FactSource

__all__ = ["REQUIRED_PARTS", "UPDATE_SCHEMA", "parse_update"]


def _object(properties: dict[str, JsonValue]) -> JsonValue:
    names: list[JsonValue] = list(properties)
    return {"type": "object", "properties": properties, "required": names, "additionalProperties": False}


def _array(row: JsonValue) -> JsonValue:
    return {"type": "array", "items": row}


_TEXT: JsonValue = {"type": "string"}
_SCOPE: dict[str, JsonValue] = {"scope": {"type": "string", "enum": ["user", "project", "thread"]}}
_AUTHORITY: dict[str, JsonValue] = {"authority": {"type": "string", "enum": ["descriptive", "instruction"]}}
_LABELS: dict[str, JsonValue] = {
    **_SCOPE,
    "durability": {"type": "string", "enum": ["durable", "temporary"]},
    **_AUTHORITY,
}
_SUMMARY = _object({"summary": _TEXT, "shouldUpdate": {"type": "boolean"}, **_SCOPE, **_AUTHORITY})
_CATEGORY: JsonValue = {"type": "string", "description": f"{', '.join(CATEGORIES)}, or a word of your own"}
_FACT = _object({
    "content": _TEXT,
    "category": _CATEGORY,
    "confidence": {"type": "number"},
    "expected_valid_days": {"type": ["integer", "null"]},
    "sourceError": {"type": ["string", "null"]},
    "quote": {"type": "string", "description": "the words of one message that it rests on, copied exactly"},
    **_LABELS,
})  # fmt: skip
_REFERENCE: dict[str, JsonValue] = {"id": _TEXT, "reason": _TEXT}
UPDATE_SCHEMA: Mapping[str, JsonValue] = {
    "type": "object",
    "properties": {
        "user": _object(dict.fromkeys(USER_SUMMARIES, _SUMMARY)),
        "history": _object(dict.fromkeys(HISTORY_SUMMARIES, _SUMMARY)),
        "newFacts": _array(_FACT),
        "factsToReinforce": _array(_object({**_REFERENCE, **_SCOPE})),
        "factsToRemove": _array(
            _object({**_REFERENCE, **_SCOPE, "replacementFactIndex": {"type": ["integer", "null"]}})
        ),
        "staleFactsToRemove": _array(_object(dict(_REFERENCE))),
        "staleFactsToExtend": _array(_object({**_REFERENCE, "extend_by_days": {"type": ["integer", "null"]}})),
        "factsToConsolidate": _array(
            _object({
                "sourceIds": _array(_TEXT),
                "consolidated": _object({"content": _TEXT, "confidence": {"type": "number"}, **_LABELS}),
            })
        ),
    },
    "required": [
        "user", "history", "newFacts", "factsToReinforce", "factsToRemove", "staleFactsToRemove",
        "staleFactsToExtend", "factsToConsolidate",
    ],
    "additionalProperties": False,
}  # fmt: skip
"""The JSON schema of an update; `parse_update` parses it, and also accepts partial answers."""


REQUIRED_PARTS = ("user", "history", "newFacts")
"""The required parts of an answer."""
_Row: TypeAlias = Mapping[str, JsonValue]
_Item = TypeVar("_Item")
_THINKING = lazy_compile(r"<(think(?:ing)?|reasoning|reflection)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_MAX_ANSWER_CHARACTERS = 1_000_000
_INVALID_REPLACEMENT = -1


def parse_update(answer: JsonValue) -> ProfileUpdate:
    """Return the update in an answer: its text, a list of text blocks, or the object itself.

    Raises: ReplyInvalid when no object has every required part, or a removal comes with an unreadable new fact.
    """
    document = answer if isinstance(answer, dict) and REQUIRED_PARTS[2] in answer else None
    if document is None:
        document = _find_object(_answer_text(answer))
    elif not all(part in document for part in REQUIRED_PARTS):
        raise ReplyInvalid("The answer lacks a part that an update of the profile has.")
    facts = _read_facts(document.get("newFacts"))
    removals = _read_items(document, "factsToRemove", _read_removal, texts=True)
    if facts is None or None in facts:
        if removals:
            raise ReplyInvalid("A new fact can't be read, and it may be what takes a removed fact's place.")
        facts = [fact for fact in facts or () if fact is not None]
    return ProfileUpdate(
        summaries=tuple(_read_summaries(document)),
        facts=tuple(fact for fact in facts if fact is not None),
        removals=(*removals, *_read_items(document, "staleFactsToRemove", _read_stale_removal)),
        confirmations=_read_items(document, "factsToReinforce", _read_confirmation),
        extensions=_read_items(document, "staleFactsToExtend", _read_extension),
        mergings=_read_items(document, "factsToConsolidate", _read_merge),
    )


def _answer_text(answer: JsonValue) -> str:
    """Return the text of an answer: adjacent strings are concatenated, blocks are joined by a line end."""
    if isinstance(answer, str):
        return answer
    if not isinstance(answer, list):
        return ""
    pieces: list[str] = []
    after_string = False
    for block in answer:
        text = block.get("text") if isinstance(block, dict) else block
        if not isinstance(text, str):
            continue
        if isinstance(block, str) and after_string:
            pieces[-1] += text
        else:
            pieces.append(text)
        after_string = isinstance(block, str)
    return "\n".join(pieces)


def _find_object(text: str) -> dict[str, JsonValue]:
    limited_text = text[:_MAX_ANSWER_CHARACTERS]
    for candidate in (_THINKING.sub("\n", limited_text), limited_text):
        for value in iterate_objects(candidate, nested=True):
            if all(part in value for part in REQUIRED_PARTS):
                return value
    raise ReplyInvalid("The model's answer holds no whole update of the profile.", said=text)


def _read_rows(value: JsonValue, *, texts: bool = False) -> list[_Row]:
    """Return the objects of a list; with `texts` a plain text becomes an object with only an id."""
    rows: list[_Row] = []
    for each in value if isinstance(value, list) else []:
        if isinstance(each, dict):
            rows.append(each)
        elif texts and isinstance(each, str):
            rows.append({"id": each})
    return rows


def _read_items(
    document: _Row, name: str, parse_row: Callable[[_Row], _Item | None], *, texts: bool = False
) -> tuple[_Item, ...]:
    items = (parse_row(row) for row in _read_rows(document.get(name), texts=texts))
    return tuple(item for item in items if item is not None)


def _read_summaries(document: _Row) -> Iterator[SummaryEdit]:
    for level, names in (("user", USER_SUMMARIES), ("history", HISTORY_SUMMARIES)):
        summaries = document.get(level)
        for name in names:
            row = summaries.get(name) if isinstance(summaries, dict) else None
            if isinstance(row, dict) and row.get("shouldUpdate", True) is True and _read_text(row, "summary"):
                yield SummaryEdit(name=name, summary=_read_text(row, "summary"), labels=_read_labels(row))


def _read_facts(value: JsonValue) -> list[NewFact | None] | None:
    """Return the new facts, None for an unreadable one; None if the value is no list."""
    if value is None:
        return []
    if not isinstance(value, list):
        return None
    return [_read_fact(row) if isinstance(row, dict) else None for row in value]


def _read_fact(row: _Row) -> NewFact | None:
    confidence = _read_confidence(row.get("confidence", 0.5))
    content = row.get("content")
    if confidence is None or not isinstance(content, str) or not content.strip():
        return None
    messages = row.get("messages")
    return NewFact(
        content=strip_lead_in(content.strip()),
        category=_read_text(row, "category") or "context",
        confidence=confidence,
        valid_days=_read_days(row.get("expected_valid_days")),
        source_error=_read_text(row, "sourceError") or None,
        source=FactSource(
            messages=tuple(each for each in messages if isinstance(each, str)) if isinstance(messages, list) else (),
            quote=_read_text(row, "quote"),
        ),
        labels=_read_labels(row),
    )


def _read_removal(row: _Row) -> FactRemoval | None:
    if not _read_text(row, "id"):
        return None
    replacement = row.get("replacementFactIndex")
    if isinstance(replacement, str) and replacement.strip().isdecimal():
        replacement = int(replacement.strip()[:9])
    # an invalid number refers to no replacement, so the old fact stays
    index = (
        replacement
        if isinstance(replacement, int) and not isinstance(replacement, bool) and replacement >= 0
        else _INVALID_REPLACEMENT
    )
    return FactRemoval(
        id=_read_text(row, "id"),
        reason=_read_text(row, "reason"),
        labels=_read_labels(row),
        replacement=None if replacement is None else index,
    )


def _read_stale_removal(row: _Row) -> FactRemoval | None:
    fact_id = _read_text(row, "id")
    return FactRemoval(id=fact_id, reason=_read_text(row, "reason"), stale=True) if fact_id else None


def _read_confirmation(row: _Row) -> FactConfirmation | None:
    fact_id = _read_text(row, "id")
    return FactConfirmation(id=fact_id, reason=_read_text(row, "reason"), labels=_read_labels(row)) if fact_id else None


def _read_extension(row: _Row) -> FactExtension | None:
    fact_id, extension = _read_text(row, "id"), row.get("extend_by_days")
    if not fact_id:
        return None
    days = None if extension is None else _read_days(extension) or 0
    return FactExtension(id=fact_id, days=days, reason=_read_text(row, "reason"))


def _read_merge(row: _Row) -> FactMerge | None:
    sources, consolidated = row.get("sourceIds"), row.get("consolidated")
    fact = _read_fact(consolidated) if isinstance(consolidated, dict) else None
    if fact is None or not isinstance(sources, list):
        return None
    return FactMerge(sources=tuple(each for each in sources if isinstance(each, str)), fact=fact)


def _read_labels(row: _Row) -> UpdateLabels:
    return UpdateLabels(
        scope=_read_text(row, "scope").casefold(),
        durability=_read_text(row, "durability").casefold(),
        authority=_read_text(row, "authority").casefold(),
    )


def _read_confidence(value: JsonValue) -> float | None:
    """Return a confidence, which may be given as text; None unless it is a finite number."""
    if isinstance(value, str):
        try:
            value = float(value.strip())
        except ValueError:
            return None
    return parse_confidence(value)


def _read_days(value: JsonValue) -> int | None:
    """Return a number of days from 1 on, rounded down; None for anything else."""
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or (isinstance(value, float) and not isfinite(value))
    ):
        return None
    return int(value) if value >= 1 else None


def _read_text(row: _Row, name: str) -> str:
    value = row.get(name)
    return value.strip() if isinstance(value, str) else ""
