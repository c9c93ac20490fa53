"""Entries as JSON objects, for stores that use JSON: `entry_from_json(entry_to_json(entry)) == entry` for any entry.

    {"id":"01hx…","time":"2026-11-21T08:03:11.482Z","kind":"fact","content":"We use pnpm.","tags":["tools"],"by":"user"}

Fields at their default are left out, except the kind and the author. Unknown fields are stored in `Entry.extra`, a
value that is not text as `json:` and its JSON, and written back unchanged; those whose names no entry field can have
are stored together in one field `json`. A text that begins with `json:` stays a text.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from functools import lru_cache
from typing import TypeVar, get_args

from ricordo.clock import format_rfc3339, truncate_to_milliseconds
from ricordo.errors import DocumentInvalid, InvalidEntry, InvalidMessage, InvalidScope
from ricordo.messages import JsonValue
from ricordo.messages.json_text import dumps, loads
from ricordo.scope import Scope
from ricordo.workspace.entry import Author, Entry, EntryState, Source, parse_memory_rule

__all__ = ["entry_from_json", "entry_to_json"]

_T = TypeVar("_T")

_OWN_KEYS = frozenset(part.name for part in fields(Entry)) - {"source"} | {part.name for part in fields(Source)}
_JSON_PREFIX = "json:"
_FOREIGN_KEY = "json"
_EXTRA_KEY = "extra"


def entry_to_json(entry: Entry) -> dict[str, JsonValue]:
    """Return the JSON object of an entry without fields at their default."""
    source = entry.source
    record: dict[str, JsonValue] = {
        "id": entry.id or None,
        "time": _format_time(entry.time),
        "kind": entry.kind,
        "content": entry.content,
        "tags": [*entry.tags] or None,
        "by": entry.by,
        "since": _format_time(entry.since),
        "scope": {**entry.scope.parts()} if entry.scope else None,
        "session": source.session,
        "messages": [*source.messages] or None,
        "quote": source.quote,
        "origin": source.origin,
        "confidence": None if entry.confidence == 1.0 else entry.confidence,
        "state": None if entry.state == "active" else entry.state,
        "supersedes": entry.supersedes,
        "pinned": entry.pinned or None,
        "confirmed": _format_time(entry.confirmed),
        "reason": entry.reason,
        "rule": entry.rule,
    }
    return {name: value for name, value in record.items() if value is not None} | _foreign_fields(entry.extra)


def entry_from_json(record: Mapping[str, JsonValue]) -> Entry:
    """Return the entry of an object. Raises: DocumentInvalid if it is invalid."""
    read = _FieldReader(record)
    kind = read.text("kind")
    content = read.text("content") or ""
    if not content.strip() or (kind is not None and not kind.strip()):
        raise DocumentInvalid("An entry has content and a kind, which are texts.")
    authors: tuple[Author, ...] = get_args(Author)
    states: tuple[EntryState, ...] = get_args(EntryState)
    return Entry(
        content=content,
        kind=kind or "fact",
        tags=read.texts("tags"),
        id=read.text("id") or "",
        time=read.time("time"),
        since=read.time("since"),
        scope=read.scope(),
        by=read.one_of("by", authors, "hand"),
        source=Source(
            session=read.text("session"),
            messages=read.texts("messages"),
            quote=read.text("quote"),
            origin=read.text("origin"),
        ),
        confidence=read.fraction("confidence"),
        state=read.one_of("state", states, "active"),
        supersedes=read.text("supersedes"),
        pinned=read.boolean("pinned"),
        confirmed=read.time("confirmed"),
        reason=read.text("reason"),
        rule=read.rule(),
        extra=_extra_fields(record),
    )


class _FieldReader:
    """The known fields of one object; null counts as a missing field."""

    def __init__(self, record: Mapping[str, JsonValue]) -> None:
        self._record = record

    def text(self, name: str) -> str | None:
        value = self._record.get(name)
        return None if value is None else _require(isinstance(value, str), name, "a text", str(value))

    def texts(self, name: str) -> tuple[str, ...]:
        value = self._record.get(name)
        items = [] if value is None else value
        if not isinstance(items, list):
            raise DocumentInvalid(f"{name}: a list of texts is needed.")
        return tuple(_require(isinstance(item, str), name, "a list of texts", str(item)) for item in items)

    def time(self, name: str) -> datetime | None:
        text = self.text(name)
        if text is None:
            return None
        try:
            time = datetime.fromisoformat(text)
            return _require(time.tzinfo is not None, name, "a time with its zone", truncate_to_milliseconds(time))
        except (ValueError, OverflowError) as error:
            raise DocumentInvalid(f"{name}: a time is needed, not {text[:40]!r}.") from error

    def scope(self) -> Scope | None:
        value = self._record.get("scope")
        if value is None:
            return None
        if not isinstance(value, dict) or not all(isinstance(part, str) for part in value.values()):
            raise DocumentInvalid("scope: an object of texts is needed.")
        try:
            return Scope(**{name: str(part) for name, part in value.items()})
        except (TypeError, InvalidScope) as error:
            raise DocumentInvalid("scope: these parts name no scope.") from error

    def one_of(self, name: str, allowed: Sequence[_T], default: _T) -> _T:
        value = self.text(name)
        choice = default if value is None else next((one for one in allowed if one == value), None)
        if choice is None:
            raise DocumentInvalid(f"{name}: one of {', '.join(map(str, allowed))} is needed.")
        return choice

    def fraction(self, name: str) -> float:
        value = self._record.get(name)
        if value is None:
            return 1.0
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
            raise DocumentInvalid(f"{name}: a number between 0 and 1 is needed.")
        return float(value)

    def boolean(self, name: str) -> bool:
        value = self._record.get(name)
        return _require(value is None or isinstance(value, bool), name, "true or false", bool(value))

    def rule(self) -> str | None:
        text = self.text("rule")
        if text is not None:
            try:
                parse_memory_rule(text)
            except InvalidEntry as error:
                raise DocumentInvalid(f"rule: {error}") from error
        return text


def _require(condition: bool, name: str, expected: str, value: _T) -> _T:  # noqa: FBT001 - told apart by its place
    if not condition:
        raise DocumentInvalid(f"{name}: {expected} is needed.")
    return value


def _format_time(time: datetime | None) -> str | None:
    return format_rfc3339(time) if time else None


def _foreign_fields(extra: Sequence[tuple[str, str]]) -> dict[str, JsonValue]:
    """Return the foreign fields as they were; as a list of pairs if they would not be read back the same."""
    spread: dict[str, JsonValue] = {}
    for name, value in extra:
        decoded = _decode_extra(value)
        spread |= decoded if name == _FOREIGN_KEY and isinstance(decoded, dict) else {name: decoded}
    if not spread.keys() & (_OWN_KEYS - {_EXTRA_KEY}) and _extra_fields(spread) == tuple(extra):
        return spread
    return {_EXTRA_KEY: [[name, value] for name, value in extra]}


def _extra_fields(record: Mapping[str, JsonValue]) -> tuple[tuple[str, str], ...]:
    """Return the foreign fields of an object."""
    pairs = _parse_pairs(record.get(_EXTRA_KEY))
    extra = list(pairs or ())
    together: dict[str, JsonValue] = {}
    for name, value in record.items():
        if (name == _EXTRA_KEY and pairs is None) or (name not in _OWN_KEYS and not _is_free_name(name)):
            together[name] = value
        elif name not in _OWN_KEYS:
            extra.append((name, _encode_extra(value)))
    return (*extra, (_FOREIGN_KEY, _encode_extra(together))) if together else tuple(extra)


def _parse_pairs(value: JsonValue) -> list[tuple[str, str]] | None:
    """Return the pairs of a list that `_foreign_fields` wrote; None for anything else."""
    pairs = []
    for item in value if isinstance(value, list) else [None]:
        if not isinstance(item, list) or len(item) != 2 or not _is_free_name(str(item[0]), together=True):
            return None
        name, text = item
        if not isinstance(name, str) or not isinstance(text, str):
            return None
        pairs.append((name, text))
    return pairs


@lru_cache(maxsize=1_024)
def _is_free_name(name: str, *, together: bool = False) -> bool:
    """Return whether an extra field of an entry may have this name."""
    if name == _FOREIGN_KEY:
        return together
    try:
        Entry(content="-", extra=((name, ""),)).validate()
    except InvalidEntry:
        return False
    return True


def _encode_extra(value: JsonValue) -> str:
    """Return a value as the text of an extra field, which `_decode_extra` decodes."""
    return value if isinstance(value, str) and _decode_extra(value) == value else f"{_JSON_PREFIX}{_dump_json(value)}"


def _decode_extra(text: str) -> JsonValue:
    """Decode a text from `_encode_extra`; return any other text unchanged."""
    if not text.startswith(_JSON_PREFIX):
        return text
    try:
        value = loads(text.removeprefix(_JSON_PREFIX))
        return value if _encode_extra(value) == text else text
    except (InvalidMessage, DocumentInvalid):
        return text


def _dump_json(value: JsonValue) -> str:
    try:
        return dumps(value)
    except InvalidMessage as error:
        raise DocumentInvalid(str(error)) from error
