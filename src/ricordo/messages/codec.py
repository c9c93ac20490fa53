"""The lines of a transcript, one line of JSON for each message, and stable ids and links of messages.

Parts are tagged by their `kind`.
A line holds, in this order, `v`, `id`, `parent`, `role`, `name`, `time`, `parts`, `usage`, `metadata`, then unknown
fields from a newer version; default values are omitted. Times are RFC 3339 in UTC with microseconds.

Invariants: decoding an encoded message gives an equal message. A line of a newer version survives decoding and
encoding: its unknown top-level fields are kept in the metadata, its unknown kinds of parts as `Unknown`. The id of a
message without one depends only on the session, on its content (role, name, parts, time) and on how many equal messages
came before it, so a conversation read twice gets the same ids. The digest uses the encoding of version 1.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from hashlib import blake2b
from typing import get_args

from ricordo.clock import encode_id
from ricordo.errors import InvalidMessage
from ricordo.messages.json_text import dumps, loads, require_integer, require_object, require_objects, require_text
from ricordo.messages.types import (
    JsonValue,
    Media,
    Message,
    Part,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Unknown,
    Usage,
)

__all__ = [
    "LINE_VERSION",
    "NEWER_FIELDS_KEY",
    "count_fingerprints",
    "decode_message",
    "decode_message_fields",
    "decode_parts",
    "encode_message",
    "encode_part",
    "find_overlap",
    "fingerprint",
    "with_ids",
    "with_parents",
]


_PART_KINDS = frozenset({"text", "thinking", "media", "tool_call", "tool_result", "unknown"})


def encode_part(part: Part) -> JsonValue:
    """Return `part` as a JSON object; None and default values are left out."""
    match part:
        case Text():
            return {"kind": "text", "text": part.text}
        case Thinking():
            return {"kind": "thinking", "text": part.text} | _without_none(signature=part.signature)
        case Media():
            optional = _without_none(name=part.name, description=part.description)
            return {"kind": "media", "media_type": part.media_type, "uri": part.uri} | optional
        case ToolCall():
            return {"kind": "tool_call", "id": part.id, "name": part.name, "arguments": part.arguments}
        case ToolResult():
            inner: list[JsonValue] = [encode_part(item) for item in part.parts]
            return {
                "kind": "tool_result",
                "call_id": part.call_id,
                "parts": inner,
                **_without_none(name=part.name, is_error=part.is_error or None),
            }
        case Unknown():
            newer = _newer_object(part)
            return {"kind": "unknown", "of": part.kind, "raw": part.raw} if newer is None else newer


def decode_parts(values: Sequence[Mapping[str, JsonValue]], path: str) -> tuple[Part, ...]:
    """Read objects that `encode_part` wrote, in this or a newer version.

    Raises: InvalidMessage if an object lacks a field of its kind; the text names the position below `path`.
    """
    return tuple(_decode_part(value, f"{path}[{position}]") for position, value in enumerate(values))


def _decode_part(value: Mapping[str, JsonValue], path: str) -> Part:
    kind = require_text(value.get("kind"), f"{path}.kind")
    if kind == "tool_call":
        return ToolCall(
            id=require_text(value.get("id"), f"{path}.id"),
            name=require_text(value.get("name"), f"{path}.name"),
            arguments=require_text(value.get("arguments", "{}"), f"{path}.arguments"),
        )
    if kind == "tool_result":
        return ToolResult(
            call_id=require_text(value.get("call_id"), f"{path}.call_id"),
            parts=_result_parts(value, f"{path}.parts"),
            name=_optional_field(value, "name", path),
            is_error=value.get("is_error") is True,
        )
    if kind == "thinking":
        return Thinking(
            text=require_text(value.get("text"), f"{path}.text"), signature=_optional_field(value, "signature", path)
        )
    return _decode_content(kind, value, path)


def _decode_content(kind: str, value: Mapping[str, JsonValue], path: str) -> Text | Media | Unknown:
    if kind == "text":
        return Text(text=require_text(value.get("text"), f"{path}.text"))
    if kind == "media":
        return Media(
            media_type=require_text(value.get("media_type"), f"{path}.media_type"),
            uri=require_text(value.get("uri"), f"{path}.uri"),
            name=_optional_field(value, "name", path),
            description=_optional_field(value, "description", path),
        )
    if kind == "unknown":
        return Unknown(
            kind=require_text(value.get("of"), f"{path}.of"), raw=require_text(value.get("raw"), f"{path}.raw")
        )
    return Unknown(kind=kind, raw=dumps(dict(value)))


def _result_parts(value: Mapping[str, JsonValue], path: str) -> tuple[Text | Media | Unknown, ...]:
    """Read the content of a tool result; kinds that are invalid there are kept unchanged."""
    inner = require_objects(value.get("parts", []), path)
    return tuple(
        _decode_content(require_text(item.get("kind"), f"{path}[{position}].kind"), item, f"{path}[{position}]")
        for position, item in enumerate(inner)
    )


def _newer_object(part: Unknown) -> dict[str, JsonValue] | None:
    """Return the object that `part` was read from; None if it has another origin."""
    if part.kind in _PART_KINDS:
        return None
    try:
        value = loads(part.raw)
        is_ours = isinstance(value, dict) and value.get("kind") == part.kind and dumps(value) == part.raw
    except InvalidMessage:
        return None
    return value if isinstance(value, dict) and is_ours else None


def _without_none(**fields: str | bool | None) -> dict[str, JsonValue]:
    return {key: value for key, value in fields.items() if value is not None}


def _optional_field(value: Mapping[str, JsonValue], name: str, path: str) -> str | None:
    field_value = value.get(name)
    return None if field_value is None else require_text(field_value, f"{path}.{name}")


LINE_VERSION = 1
"""The version of the lines that `encode_message` writes."""
NEWER_FIELDS_KEY = "ricordo.fields"
"""The metadata key for fields of a newer version between `decode_message` and `encode_message`."""
_LINE_FIELDS = frozenset({"id", "parent", "role", "name", "time", "parts", "usage", "metadata"})
_ROLES: dict[str, Role] = {role: role for role in get_args(Role)}


def encode_message(message: Message) -> bytes:
    """Return `message` as one line of JSON: UTF-8, ended by a newline, with no other line break inside.

    Raises: InvalidMessage if the metadata contains a value that JSON can't represent, such as NaN.
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
    encoded: dict[str, JsonValue] = {key: value for key, value in fields.items() if value is not None}
    return (dumps(encoded | newer) + "\n").encode()


def decode_message(line: bytes | str) -> Message:
    """Read a line that `encode_message` wrote, in this or another version.

    Raises: InvalidMessage if the line is not a message; the text says what is wrong and where.
    """
    return decode_message_fields(require_object(loads(line), "The line"))


def decode_message_fields(fields: Mapping[str, JsonValue]) -> Message:
    """Return the message of a line that was already parsed. Raises: InvalidMessage as `decode_message`."""
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
    """Return the fields of a newer version from the metadata; empty if `NEWER_FIELDS_KEY` has an invalid value."""
    newer_fields = metadata.get(NEWER_FIELDS_KEY)
    if not isinstance(newer_fields, dict) or not newer_fields or not _LINE_FIELDS.isdisjoint(newer_fields):
        return {}
    version = newer_fields.get("v", LINE_VERSION + 1)
    is_newer = isinstance(version, int) and not isinstance(version, bool) and version > LINE_VERSION
    return newer_fields if is_newer else {}


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
        # within a day of the first and the last year, UTC can't represent the time
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


_ID_BYTES = 16


def fingerprint(message: Message) -> str:
    """Return a digest (32 hexadecimal digits) of the role, name, parts and time of `message`."""
    return blake2b(encode_message(_without_identity(message)), digest_size=_ID_BYTES).hexdigest()


def count_fingerprints(messages: Iterable[Message]) -> dict[str, int]:
    """Count the messages by fingerprint; the result is the `known` of a later batch."""
    return dict(Counter(map(fingerprint, messages)))


def with_ids(messages: Iterable[Message], *, session: str, counts: Mapping[str, int] | None = None) -> list[Message]:
    """Return the messages, with a stable id of 26 characters for each one without an id.

    `counts` counts the earlier messages of this session by fingerprint (see `count_fingerprints`); None if `messages`
    starts at the beginning of the session. A conversation read in batches gets the same ids as one read at once.
    """
    given = list(messages)
    if all(message.id for message in given):
        return given
    seen = Counter(counts or {})
    result = []
    for message in given:
        message_fingerprint = fingerprint(message)
        result.append(
            message
            if message.id
            else replace(message, id=_stable_id(session, message_fingerprint, seen[message_fingerprint]))
        )
        seen[message_fingerprint] += 1
    return result


def find_overlap(saved: Sequence[str], batch: Sequence[str | None]) -> range:
    """Return where in `saved`, fingerprints in their order, the beginning of `batch` stands already; empty for nowhere.

    That is where `saved` ends, or where it holds all of `batch`: a conversation may be given again from its beginning,
    or from somewhere in it. One message alone may as well have been said again, so it counts only if it is all of
    `saved`. None in `batch` is a message that stands nowhere.
    """
    borders, match_length = [0] * len(batch), 0
    for index in range(1, len(batch)):
        while match_length and batch[index] != batch[match_length]:
            match_length = borders[match_length - 1]
        match_length += batch[index] == batch[match_length]
        borders[index] = match_length
    match_length, overlap = 0, range(0)
    for index, item in enumerate(saved if batch else ()):
        while match_length and (match_length == len(batch) or item != batch[match_length]):
            match_length = borders[match_length - 1]
        match_length += item == batch[match_length]
        if match_length == len(batch) > 1:
            overlap = range(index + 1 - match_length, index + 1)
    if match_length > 1 or match_length == len(saved):
        return range(len(saved) - match_length, len(saved))
    return overlap


def with_parents(messages: Iterable[Message], *, after: str | None = None) -> list[Message]:
    """Let each message without a parent follow the one before it, the first one `after`; parents that are there stay.

    A message whose predecessor has no id keeps None.
    """
    previous = after
    result = []
    for message in messages:
        result.append(replace(message, parent=previous or None) if message.parent is None else message)
        previous = message.id
    return result


def _without_identity(message: Message) -> Message:
    return Message(role=message.role, parts=message.parts, time=message.time, name=message.name)


def _stable_id(session: str, message_fingerprint: str, earlier: int) -> str:
    seed = f"{message_fingerprint} {earlier} {session}".encode("utf-8", "surrogatepass")
    return encode_id(int.from_bytes(blake2b(seed, digest_size=_ID_BYTES).digest()))
