"""The parts of a message as JSON objects, each tagged with its `kind`.

Invariant: `decode_parts([encode_part(part)]) == (part,)` for every part. An object of a kind that this version does
not know becomes an `Unknown` whose `raw` is that object, and such an `Unknown` is written as the object again.
"""

from collections.abc import Mapping, Sequence

from ricordo.errors import InvalidMessage
from ricordo.messages.jsontext import dumps, loads, require_objects, require_text
from ricordo.messages.types import JsonValue, Media, Part, Text, Thinking, ToolCall, ToolResult, Unknown

__all__ = ["decode_parts", "encode_part"]

_PART_KINDS = frozenset({"text", "thinking", "media", "tool_call", "tool_result", "unknown"})


def encode_part(part: Part) -> JsonValue:
    """Write `part` as a JSON object; what is None or has its default value is left out."""
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


def decode_parts(values: Sequence[Mapping[str, JsonValue]], where: str) -> tuple[Part, ...]:
    """Read objects that `encode_part` wrote, here or in a newer version.

    Raises:
        InvalidMessage: an object lacks what its kind needs; the text names the position below `where`.
    """
    return tuple(_decode_part(value, f"{where}[{position}]") for position, value in enumerate(values))


def _decode_part(value: Mapping[str, JsonValue], where: str) -> Part:
    kind = require_text(value.get("kind"), f"{where}.kind")
    if kind == "tool_call":
        return ToolCall(
            id=require_text(value.get("id"), f"{where}.id"),
            name=require_text(value.get("name"), f"{where}.name"),
            arguments=require_text(value.get("arguments", "{}"), f"{where}.arguments"),
        )
    if kind == "tool_result":
        return ToolResult(
            call_id=require_text(value.get("call_id"), f"{where}.call_id"),
            parts=_result_parts(value, f"{where}.parts"),
            name=_optional_field(value, "name", where),
            is_error=value.get("is_error") is True,
        )
    if kind == "thinking":
        return Thinking(
            text=require_text(value.get("text"), f"{where}.text"), signature=_optional_field(value, "signature", where)
        )
    return _decode_content(kind, value, where)


def _decode_content(kind: str, value: Mapping[str, JsonValue], where: str) -> Text | Media | Unknown:
    if kind == "text":
        return Text(text=require_text(value.get("text"), f"{where}.text"))
    if kind == "media":
        return Media(
            media_type=require_text(value.get("media_type"), f"{where}.media_type"),
            uri=require_text(value.get("uri"), f"{where}.uri"),
            name=_optional_field(value, "name", where),
            description=_optional_field(value, "description", where),
        )
    if kind == "unknown":
        return Unknown(
            kind=require_text(value.get("of"), f"{where}.of"), raw=require_text(value.get("raw"), f"{where}.raw")
        )
    return Unknown(kind=kind, raw=dumps(dict(value)))


def _result_parts(value: Mapping[str, JsonValue], where: str) -> tuple[Text | Media | Unknown, ...]:
    """Read the content of a tool result; a kind that can't stand there is kept as it is."""
    inner = require_objects(value.get("parts", []), where)
    return tuple(
        _decode_content(require_text(item.get("kind"), f"{where}[{position}].kind"), item, f"{where}[{position}]")
        for position, item in enumerate(inner)
    )


def _newer_object(part: Unknown) -> dict[str, JsonValue] | None:
    """Return the object that `part` was read from; None when it came from elsewhere."""
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


def _optional_field(value: Mapping[str, JsonValue], name: str, where: str) -> str | None:
    found = value.get(name)
    return None if found is None else require_text(found, f"{where}.{name}")
