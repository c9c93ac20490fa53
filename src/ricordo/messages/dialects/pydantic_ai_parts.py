"""The parts of pydantic-ai's requests and responses.

Invariant: writing a part that was read here gives the part again, apart from fields that our parts don't have.
Arguments and results that were JSON values become JSON text; `is_value` says that a text is to be written as the value
again.
"""

from collections.abc import Mapping

from ricordo.errors import InvalidMessage
from ricordo.messages.dialects.kept import read_unknown, make_unknown
from ricordo.messages.dialects.media import parse_data_uri, make_data_uri, is_url
from ricordo.messages.jsontext import dumps, loads, require_text
from ricordo.messages.types import JsonValue, Media, Part, Role, Text, Thinking, ToolCall, ToolResult, Unknown

__all__ = [
    "DIALECT",
    "read_prompt",
    "read_request_part",
    "read_response_part",
    "write_prompt",
    "write_request_part",
    "write_response_part",
]

DIALECT = "pydantic-ai"
_URL_KINDS = {"image-url": "image/*", "audio-url": "audio/*", "video-url": "video/*", "document-url": "application/pdf"}
_TO_URL_SAFE = str.maketrans("+/", "-_")
_FROM_URL_SAFE = str.maketrans("-_", "+/")


def read_prompt(content: JsonValue, where: str) -> list[tuple[Text | Media | Unknown, JsonValue]]:
    """Return the content of a user prompt as parts, each with the item that it came from.

    Raises:
        InvalidMessage: an item is neither a string nor an object with a kind; the text names the position.
    """
    if isinstance(content, str):
        return [(Text(text=content), content)]
    if not isinstance(content, list):
        raise InvalidMessage(f"{where}: a string or a list is needed.")
    return [(_read_item(item, f"{where}[{index}]"), item) for index, item in enumerate(content)]


def write_prompt(part: Part) -> JsonValue:
    """Write `part` as an item of a user prompt; None when that can't be said."""
    if isinstance(part, Text):
        return part.text
    if isinstance(part, Media):
        return _write_media(part)
    block = read_unknown(part, DIALECT)
    return block if block is not None and "part_kind" not in block else None


def read_request_part(value: Mapping[str, JsonValue], where: str) -> tuple[Role, Part]:
    """Read a part of a request that is no user prompt, with the role of the message that it becomes.

    Raises:
        InvalidMessage: the part lacks what its kind needs; the text names the position.
    """
    kind = require_text(value.get("part_kind"), f"{where}.part_kind")
    if kind == "system-prompt":
        return "system", Text(text=require_text(value.get("content"), f"{where}.content"))
    is_retry = kind == "retry-prompt" and value.get("tool_name") is not None
    if kind == "tool-return" or is_retry:
        content = value.get("content")
        result = ToolResult(
            call_id=require_text(value.get("tool_call_id"), f"{where}.tool_call_id"),
            parts=(Text(text=content if isinstance(content, str) else dumps(content)),),
            name=require_text(value.get("tool_name"), f"{where}.tool_name"),
            is_error=is_retry or value.get("outcome", "success") != "success",
        )
        return "tool", result
    return "user", make_unknown(DIALECT, kind, value)


def write_request_part(part: Part, role: Role, *, is_value: bool = False) -> dict[str, JsonValue]:
    """Write `part`, of a message of `role`, as a part of a request; empty when that can't be said."""
    if isinstance(part, Text) and role == "system":
        return {"part_kind": "system-prompt", "content": part.text}
    if isinstance(part, ToolResult):
        return {
            "part_kind": "tool-return",
            "tool_name": part.name or "unknown",
            "tool_call_id": part.call_id,
            "content": _parse_value(part.text) if is_value else _result_content(part),
            "outcome": "failed" if part.is_error else "success",
        }
    return read_unknown(part, DIALECT) or {}


def _result_content(result: ToolResult) -> JsonValue:
    """Return what a result says: its text, in a list with the media where it holds some that can be said."""
    media = [written for part in result.parts if isinstance(part, Media) and (written := _write_media(part))]
    return [*([result.text] if result.text else []), *media] if media else result.text


def read_response_part(value: Mapping[str, JsonValue], where: str) -> Part:
    """Read a part of a response.

    Raises:
        InvalidMessage: the part lacks what its kind needs; the text names the position.
    """
    kind = require_text(value.get("part_kind"), f"{where}.part_kind")
    if kind == "text":
        return Text(text=require_text(value.get("content"), f"{where}.content"))
    if kind == "thinking":
        signature = value.get("signature")
        said = require_text(value.get("content"), f"{where}.content")
        return Thinking(
            text=said, signature=None if signature is None else require_text(signature, f"{where}.signature")
        )
    if kind == "tool-call":
        given = value.get("args")
        return ToolCall(
            id=require_text(value.get("tool_call_id"), f"{where}.tool_call_id"),
            name=require_text(value.get("tool_name"), f"{where}.tool_name"),
            arguments=given if isinstance(given, str) else dumps({} if given is None else given),
        )
    return make_unknown(DIALECT, kind, value)


def write_response_part(part: Part, *, is_value: bool = False) -> dict[str, JsonValue]:
    """Write `part` as a part of a response; empty when that can't be said."""
    match part:
        case Text():
            return {"part_kind": "text", "content": part.text}
        case Thinking():
            sealed: dict[str, JsonValue] = {} if part.signature is None else {"signature": part.signature}
            return {"part_kind": "thinking", "content": part.text, **sealed}
        case ToolCall():
            arguments = _parse_value(part.arguments) if is_value else part.arguments
            return {"part_kind": "tool-call", "tool_name": part.name, "tool_call_id": part.id, "args": arguments}
        case _:
            return read_unknown(part, DIALECT) or {}


def _read_item(item: JsonValue, where: str) -> Text | Media | Unknown:
    if isinstance(item, str):
        return Text(text=item)
    if not isinstance(item, dict):
        raise InvalidMessage(f"{where}: a string or an object is needed.")
    kind = require_text(item.get("kind"), f"{where}.kind")
    match item:
        case {"kind": "binary", "data": str(data), "media_type": str(media_type)}:
            return Media(media_type=media_type, uri=make_data_uri(media_type, data.translate(_FROM_URL_SAFE)))
        case {"url": str(url)} if kind in _URL_KINDS:
            known = item.get("media_type")
            return Media(media_type=known if isinstance(known, str) else _URL_KINDS[kind], uri=url)
        case _:
            return make_unknown(DIALECT, kind, item)


def _write_media(media: Media) -> dict[str, JsonValue] | None:
    inside = parse_data_uri(media.uri)
    if inside:
        return {"kind": "binary", "data": inside[1].translate(_TO_URL_SAFE), "media_type": inside[0]}
    if not is_url(media.uri):
        return None
    family = media.media_type.partition("/")[0]
    kind = f"{family}-url" if f"{family}-url" in _URL_KINDS else "document-url"
    value: dict[str, JsonValue] = {"kind": kind, "url": media.uri}
    return value if media.media_type.endswith("/*") else value | {"media_type": media.media_type}


def _parse_value(written: str) -> JsonValue:
    """Return the value that `written` is the JSON text of; after an edit that broke it, the text itself."""
    try:
        return loads(written)
    except InvalidMessage:
        return written
