"""The lines of a transcript: one message, one line of JSON.

Invariant: `decode(encode(message)) == message` for every message, and a line written by a newer version survives
`encode_message(decode(line))`: its unknown top-level fields travel in the metadata under `NEWER_FIELDS_KEY`, its unknown kinds of
parts as `Unknown`. (Unknown fields inside a part of a known kind have no place in our types and are left out.)

A line holds, in this order, `v`, `id`, `parent`, `role`, `name`, `time`, `parts`, `usage`, `metadata`, then the
fields of a newer writer; what has its default value is not written. Times are RFC 3339 in UTC with the microseconds
that they have.
"""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import get_args

from ricordo.errors import InvalidMessage
from ricordo.messages.jsontext import dumps, require_integer, loads, require_object, require_objects, require_text
from ricordo.messages.part_codec import decode_parts, encode_part
from ricordo.messages.types import JsonValue, Message, Role, Usage

__all__ = ["NEWER_FIELDS_KEY", "LINE_VERSION", "decode_message", "encode_message"]

LINE_VERSION = 1
"""The version of the lines that `encode_message` writes."""

NEWER_FIELDS_KEY = "ricordo.fields"
"""The metadata key under which the fields of a newer writer are kept between `decode_message` and `encode_message`."""

_LINE_FIELDS = frozenset({"id", "parent", "role", "name", "time", "parts", "usage", "metadata"})
_ROLES: dict[str, Role] = {role: role for role in get_args(Role)}


def encode_message(message: Message) -> bytes:
    """Write `message` as one line of JSON: UTF-8, ended by a newline, with no other line break inside.

    Raises:
        InvalidMessage: the metadata holds something that JSON can't say, such as NaN.
    """
    metadata = dict(message.metadata)
    newer = _newer_fields(metadata)
    if newer:
        del metadata[NEWER_FIELDS_KEY]
    fields: dict[str, JsonValue] = {
        "v": newer.get("v", LINE_VERSION),
        "id": message.id or None,
        "parent": message.parent,
        "role": message.role,
        "name": message.name,
        "time": None if message.time is None else _write_time(message.time),
        "parts": [encode_part(part) for part in message.parts] or None,
        "usage": None if message.usage is None else asdict(message.usage),
        "metadata": metadata or None,
    }
    written: dict[str, JsonValue] = {key: value for key, value in fields.items() if value is not None}
    return (dumps(written | newer) + "\n").encode()


def decode_message(line: bytes | str) -> Message:
    """Read one line that `encode_message` wrote, here or in another version.

    Raises:
        InvalidMessage: the line is not a message; the text says what is wrong and where.
    """
    fields = require_object(loads(line), "The line")
    version = require_integer(fields.get("v"), "v")
    if version < 1:
        raise InvalidMessage(f"v: a line has a version from 1 up, not {version}.")
    role = require_text(fields.get("role"), "role")
    if role not in _ROLES:
        raise InvalidMessage(f"role: one of {', '.join(_ROLES)} is needed, not {role!r}.")
    return Message(
        role=_ROLES[role],
        parts=decode_parts(require_objects(fields.get("parts", []), "parts"), "parts"),
        id=require_text(fields.get("id", ""), "id"),
        time=_read_time(fields.get("time")),
        name=_optional_text(fields, "name"),
        parent=_optional_text(fields, "parent"),
        usage=_read_usage(fields.get("usage")),
        metadata=_read_metadata(fields, version),
    )


def _newer_fields(metadata: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return what `decode_message` kept for a newer writer; empty when the value under `NEWER_FIELDS_KEY` can't be that."""
    kept = metadata.get(NEWER_FIELDS_KEY)
    if not isinstance(kept, dict) or not kept or not _LINE_FIELDS.isdisjoint(kept):
        return {}
    version = kept.get("v", LINE_VERSION + 1)
    is_newer = isinstance(version, int) and not isinstance(version, bool) and version > LINE_VERSION
    return kept if is_newer else {}


def _read_metadata(fields: Mapping[str, JsonValue], version: int) -> dict[str, JsonValue]:
    metadata = require_object(fields.get("metadata", {}), "metadata")
    newer = {
        key: value
        for key, value in fields.items()
        if key not in _LINE_FIELDS and (key != "v" or version > LINE_VERSION)
    }
    if newer and NEWER_FIELDS_KEY in metadata:
        raise InvalidMessage(f"metadata: the key {NEWER_FIELDS_KEY!r} is reserved.")
    return metadata | {NEWER_FIELDS_KEY: newer} if newer else metadata


def _write_time(time: datetime) -> str:
    try:
        return time.astimezone(UTC).isoformat().replace("+00:00", "Z")
    except OverflowError:
        # within a day of the first and the last year, UTC has no name for the moment
        return time.isoformat()


def _read_time(value: JsonValue) -> datetime | None:
    if value is None:
        return None
    try:
        return datetime.fromisoformat(require_text(value, "time"))
    except ValueError as error:
        raise InvalidMessage(f"time: {error}.") from error


def _read_usage(value: JsonValue) -> Usage | None:
    if value is None:
        return None
    counts = require_object(value, "usage")
    names = ("input", "output", "cache_read", "cache_write")
    return Usage(**{name: require_integer(counts.get(name, 0), f"usage.{name}") for name in names})


def _optional_text(fields: Mapping[str, JsonValue], name: str) -> str | None:
    value = fields.get(name)
    return None if value is None else require_text(value, name)
