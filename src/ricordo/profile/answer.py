"""A model's answer, read into an update, whatever it is wrapped in and however its types are off.

The object is looked for in the text: what a model thought is passed over where its end is marked, then the first object
that has the three parts of an answer counts. An item that can't be read is dropped and no other.

Invariants: an answer that is cut off gives no update; one that wants a fact removed beside a new fact that can't be
read gives none either, since that one may be the replacement. Nothing here raises anything but `ReplyInvalid`.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from math import isfinite
from typing import TypeAlias, TypeVar

from ricordo.errors import ReplyInvalid
from ricordo.messages.types import JsonValue
from ricordo.profile.gate import sure
from ricordo.profile.types import (
    Confirmation,
    Extension,
    Labels,
    Merging,
    NewFact,
    ProfileUpdate,
    Removal,
    SummaryEdit,
)
from ricordo.workspace.profile import HISTORY_LEVEL, USER_LEVEL, FactSource

__all__ = ["PARTS", "parse_update"]

PARTS = ("user", "history", "newFacts")
"""What an answer must have to be one."""

_Row: TypeAlias = Mapping[str, JsonValue]
_Item = TypeVar("_Item")
_THOUGHT = re.compile(r"<(think(?:ing)?|reasoning|reflection)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_LONGEST = 1_000_000
_MOST_TRIES = 2_000
_NO_REPLACEMENT = -1


def parse_update(answer: JsonValue) -> ProfileUpdate:
    """Return the update that an answer asks for: its text, a list of blocks of text, or the object itself.

    Raises: ReplyInvalid when no object with every part stands in it, or a removal stands beside a broken new fact.
    """
    found = answer if isinstance(answer, dict) and PARTS[2] in answer else None
    if found is None:
        found = _object_in(_text_of(answer))
    elif not all(part in found for part in PARTS):
        raise ReplyInvalid("The answer lacks a part that an update of the profile has.")
    facts = _facts(found.get("newFacts"))
    removals = _read(found, "factsToRemove", _removal, texts=True)
    if facts is None or None in facts:
        if removals:
            raise ReplyInvalid("A new fact can't be read, and it may be what takes a removed fact's place.")
        facts = [fact for fact in facts or () if fact is not None]
    return ProfileUpdate(
        summaries=tuple(_summaries(found)),
        facts=tuple(fact for fact in facts if fact is not None),
        removals=(*removals, *_read(found, "staleFactsToRemove", _stale)),
        confirmations=_read(found, "factsToReinforce", _confirmation),
        extensions=_read(found, "staleFactsToExtend", _extension),
        mergings=_read(found, "factsToConsolidate", _merging),
    )


def _text_of(answer: JsonValue) -> str:
    """Return the text of an answer: neighbouring strings are joined as they are, blocks by a line end."""
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


def _object_in(text: str) -> dict[str, JsonValue]:
    shown = text[:_LONGEST]
    for candidate in (_THOUGHT.sub("\n", shown), shown):
        for found in islice(_objects(candidate), _MOST_TRIES):
            if all(part in found for part in PARTS):
                return found
    raise ReplyInvalid("The model's answer holds no whole update of the profile.", said=text)


def _objects(text: str) -> Iterator[dict[str, JsonValue]]:
    """Yield every object that begins somewhere in the text, also inside of others; empty ones for what is none."""
    decoder = json.JSONDecoder(parse_constant=lambda _: None)
    at = text.find("{")
    while at >= 0:
        try:
            found, _ = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            found = {}
        yield found if isinstance(found, dict) else {}
        at = text.find("{", at + 1)


def _rows(value: JsonValue, *, texts: bool = False) -> list[_Row]:
    """Return the objects of a list; with `texts` a bare text is one that has nothing but an id."""
    rows: list[_Row] = []
    for each in value if isinstance(value, list) else []:
        if isinstance(each, dict):
            rows.append(each)
        elif texts and isinstance(each, str):
            rows.append({"id": each})
    return rows


def _read(found: _Row, name: str, read: Callable[[_Row], _Item | None], *, texts: bool = False) -> tuple[_Item, ...]:
    items = (read(row) for row in _rows(found.get(name), texts=texts))
    return tuple(item for item in items if item is not None)


def _summaries(found: _Row) -> Iterator[SummaryEdit]:
    for level, names in (("user", USER_LEVEL), ("history", HISTORY_LEVEL)):
        part = found.get(level)
        for name in names:
            row = part.get(name) if isinstance(part, dict) else None
            if isinstance(row, dict) and row.get("shouldUpdate", True) is True and _text(row, "summary"):
                yield SummaryEdit(name=name, summary=_text(row, "summary"), labels=_labels(row))


def _facts(value: JsonValue) -> list[NewFact | None] | None:
    """Return the new facts, None for one that can't be read; None for what is no list."""
    if value is None:
        return []
    if not isinstance(value, list):
        return None
    return [_fact(row) if isinstance(row, dict) else None for row in value]


def _fact(row: _Row) -> NewFact | None:
    confidence = _confidence(row.get("confidence", 0.5))
    content = row.get("content")
    if confidence is None or not isinstance(content, str) or not content.strip():
        return None
    messages = row.get("messages")
    return NewFact(
        content=content.strip(),
        category=_text(row, "category") or "context",
        confidence=confidence,
        valid_days=_days(row.get("expected_valid_days")),
        source_error=_text(row, "sourceError") or None,
        source=FactSource(
            messages=tuple(each for each in messages if isinstance(each, str)) if isinstance(messages, list) else (),
            quote=_text(row, "quote"),
        ),
        labels=_labels(row),
    )


def _removal(row: _Row) -> Removal | None:
    if not _text(row, "id"):
        return None
    at = row.get("replacementFactIndex")
    if isinstance(at, str) and at.strip().isdecimal():
        at = int(at.strip()[:9])
    # what is no number is no replacement that stands, and then the old fact stays
    number = at if isinstance(at, int) and not isinstance(at, bool) and at >= 0 else _NO_REPLACEMENT
    return Removal(
        id=_text(row, "id"),
        reason=_text(row, "reason"),
        labels=_labels(row),
        replacement=None if at is None else number,
    )


def _stale(row: _Row) -> Removal | None:
    found = _text(row, "id")
    return Removal(id=found, reason=_text(row, "reason"), stale=True) if found else None


def _confirmation(row: _Row) -> Confirmation | None:
    found = _text(row, "id")
    return Confirmation(id=found, reason=_text(row, "reason"), labels=_labels(row)) if found else None


def _extension(row: _Row) -> Extension | None:
    found, given = _text(row, "id"), row.get("extend_by_days")
    if not found:
        return None
    days = None if given is None else _days(given) or 0
    return Extension(id=found, days=days, reason=_text(row, "reason"))


def _merging(row: _Row) -> Merging | None:
    sources, one = row.get("sourceIds"), row.get("consolidated")
    fact = _fact(one) if isinstance(one, dict) else None
    if fact is None or not isinstance(sources, list):
        return None
    return Merging(sources=tuple(each for each in sources if isinstance(each, str)), fact=fact)


def _labels(row: _Row) -> Labels:
    return Labels(
        scope=_text(row, "scope").casefold(),
        durability=_text(row, "durability").casefold(),
        authority=_text(row, "authority").casefold(),
    )


def _confidence(value: JsonValue) -> float | None:
    """Return a confidence, which may be written as a text; None for what is no finite number."""
    if isinstance(value, str):
        try:
            value = float(value.strip())
        except ValueError:
            return None
    return sure(value)


def _days(value: JsonValue) -> int | None:
    """Return a number of days from 1 on, fractions cut; None for anything else."""
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or (isinstance(value, float) and not isfinite(value))
    ):
        return None
    return int(value) if value >= 1 else None


def _text(row: _Row, name: str) -> str:
    value = row.get(name)
    return value.strip() if isinstance(value, str) else ""
