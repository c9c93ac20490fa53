"""Conversion of conversations to and from Anthropic's messages API.

A single plain text is a string outside of tool results and a block inside; null means absent. Blocks of unknown types
are kept verbatim as `Unknown` of the kind `anthropic:<type>`, other unknown fields in the metadata under `anthropic`.

`to_anthropic` leaves out what the format can't express or the provider refuses: names of speakers, empty texts and
messages, thinking without a signature, unknown parts from other formats, sound, and media that a provider can't fetch.
System messages go to the system prompt, wherever they are. Arguments that are not a JSON object are wrapped in one.
Consecutive messages with only results become one user message with the results first, as the provider requires.

Invariant: `to_anthropic(from_anthropic(messages, system))` keeps the whole content.
"""

from collections.abc import Iterable, Mapping, Sequence

from ricordo.errors import InvalidMessage
from ricordo.lazy import dataclass
from ricordo.messages.formats.media import (
    UNKNOWN_TYPE,
    guess_media_type,
    is_file_id,
    is_url,
    make_data_uri,
    parse_data_uri,
)
from ricordo.messages.formats.passthrough import ExtraFields, find_extra, make_unknown, read_extra, read_unknown
from ricordo.messages.json_text import dumps, loads, require_object, require_objects, require_text
from ricordo.messages.types import JsonValue, Media, Message, Part, Role, Text, Thinking, ToolCall, ToolResult, Unknown

__all__ = ["DIALECT", "AnthropicPrompt", "from_anthropic", "list_blocks", "read_block", "to_anthropic", "write_block"]


DIALECT = "anthropic"
_MEDIA_FAMILIES = {"image": "image", "document": "application"}


def list_blocks(content: JsonValue, path: str) -> list[dict[str, JsonValue]]:
    """Return `content` as blocks: a string is one text block, null is an empty list.

    Raises: InvalidMessage if it is neither a string nor a list of objects; the text names the position.
    """
    if content is None:
        return []
    return [{"type": "text", "text": content}] if isinstance(content, str) else require_objects(content, path)


def read_block(block: Mapping[str, JsonValue], path: str) -> Part:
    """Read one block; unknown types, and media in an unknown form, are kept verbatim.

    Raises: InvalidMessage if the block lacks a field of its type; the text names the position.
    """
    kind = require_text(block.get("type"), f"{path}.type")
    if kind == "thinking":
        signature = block.get("signature")
        text = require_text(block.get("thinking"), f"{path}.thinking")
        return Thinking(
            text=text, signature=None if signature is None else require_text(signature, f"{path}.signature")
        )
    if kind == "tool_use":
        arguments = dumps(require_object(block.get("input", {}), f"{path}.input"))
        return ToolCall(
            id=require_text(block.get("id"), f"{path}.id"),
            name=require_text(block.get("name"), f"{path}.name"),
            arguments=arguments,
        )
    if kind == "tool_result":
        blocks = list_blocks(block.get("content"), f"{path}.content")
        return ToolResult(
            call_id=require_text(block.get("tool_use_id"), f"{path}.tool_use_id"),
            parts=tuple(_read_content(inner, f"{path}.content[{i}]") for i, inner in enumerate(blocks)),
            is_error=block.get("is_error") is True,
        )
    return _read_content(block, path)


def write_block(part: Part) -> dict[str, JsonValue] | None:
    """Return `part` as a block; None for an empty text, thinking without a signature, or a part of another format."""
    match part:
        case Text():
            return {"type": "text", "text": part.text} if part.text else None
        case Thinking():
            sealed = part.signature is not None
            return {"type": "thinking", "thinking": part.text, "signature": part.signature} if sealed else None
        case Media():
            return _write_media(part)
        case ToolCall():
            return {"type": "tool_use", "id": part.id, "name": part.name, "input": _input_object(part.arguments)}
        case ToolResult():
            return _write_result(part)
        case Unknown():
            return read_unknown(part, DIALECT)


def _write_result(result: ToolResult) -> dict[str, JsonValue]:
    content: list[JsonValue] = [block for inner in result.parts if (block := write_block(inner))]
    value: dict[str, JsonValue] = {"type": "tool_result", "tool_use_id": result.call_id, "content": content}
    return value | ({"is_error": True} if result.is_error else {})


def _read_content(block: Mapping[str, JsonValue], path: str) -> Text | Media | Unknown:
    kind = require_text(block.get("type"), f"{path}.type")
    if kind == "text":
        return Text(text=require_text(block.get("text"), f"{path}.text"))
    media = _read_media(kind, block, path) if kind in _MEDIA_FAMILIES else None
    return make_unknown(DIALECT, kind, block) if media is None else media


def _read_media(kind: str, block: Mapping[str, JsonValue], path: str) -> Media | None:
    source = require_object(block.get("source"), f"{path}.source")
    name = block.get("title")
    name = name if isinstance(name, str) else None
    match source:
        case {"type": "base64", "media_type": str(media_type), "data": str(data)}:
            return Media(media_type=media_type, uri=make_data_uri(media_type, data), name=name)
        case {"type": "url", "url": str(url)}:
            media_type = guess_media_type(url, "image") if kind == "image" else "application/pdf"
            return Media(media_type=media_type, uri=url, name=name)
        case {"type": "file", "file_id": str(file_id)}:
            return Media(media_type="image/*" if kind == "image" else UNKNOWN_TYPE, uri=file_id, name=name)
        case _:
            return None


def _write_media(media: Media) -> dict[str, JsonValue] | None:
    family = media.media_type.partition("/")[0]
    kind = "image" if family == "image" else "document"
    data_uri = parse_data_uri(media.uri)
    source: dict[str, JsonValue]
    if family not in ("image", "application", "text"):
        return None
    if data_uri:
        source = {"type": "base64", "media_type": data_uri[0], "data": data_uri[1]}
    elif is_url(media.uri):
        source = {"type": "url", "url": media.uri}
    elif is_file_id(media.uri):
        source = {"type": "file", "file_id": media.uri}
    else:
        return None
    block: dict[str, JsonValue] = {"type": kind, "source": source}
    return block | {"title": media.name} if kind == "document" and media.name is not None else block


def _input_object(arguments: str) -> dict[str, JsonValue]:
    """Return the arguments as an object; other texts are put under the key `arguments`, since the API requires an
    object.
    """
    try:
        value = loads(arguments)
    except InvalidMessage:
        return {"arguments": arguments}
    return value if isinstance(value, dict) else {"arguments": arguments}


_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}


@dataclass(frozen=True, kw_only=True)
class AnthropicPrompt:
    """Two fields of a request: `messages`, and `system`, a string, a list of text blocks, or None if there is none."""

    messages: list[dict[str, JsonValue]]
    system: JsonValue = None


def from_anthropic(messages: JsonValue, system: JsonValue = None) -> list[Message]:
    """Read the `messages` and the `system` prompt of a request; read a reply as a list of one.

    A user message with only results becomes a tool message. Raises: InvalidMessage if it can't be parsed; the text
    names the position.
    """
    decoded = [] if system is None else [_read_message("system", list_blocks(system, "system"), {}, "system")]
    for index, value in enumerate(require_objects(messages, "messages")):
        path = f"messages[{index}]"
        role = require_text(value.get("role"), f"{path}.role")
        if role not in _ROLES:
            raise InvalidMessage(f"{path}.role: one of {', '.join(_ROLES)} is needed, not {role!r}.")
        fields: dict[str, JsonValue] = {
            key: item for key, item in value.items() if key not in ("role", "content") and item is not None
        }
        blocks = list_blocks(value.get("content"), f"{path}.content")
        decoded.append(_read_message(_ROLES[role], blocks, fields, f"{path}.content"))
    return decoded


def to_anthropic(messages: Iterable[Message]) -> AnthropicPrompt:
    """Return `messages` as the `messages` and the `system` prompt of a request."""
    system: list[JsonValue] = []
    encoded_messages: list[tuple[Message, list[JsonValue]]] = []
    for message in messages:
        blocks = _write_blocks(message)
        if message.role == "system":
            system += [block for block in blocks if isinstance(block, dict) and block.get("type") == "text"]
        elif encoded_messages and _only_results(blocks) and _only_results(encoded_messages[-1][1]):
            encoded_messages[-1][1].extend(blocks)
        elif blocks:
            encoded_messages.append((message, blocks))
    return AnthropicPrompt(
        messages=[_make_message(message, blocks) for message, blocks in encoded_messages],
        system=_simplify_content(system) if system else None,
    )


def _make_message(message: Message, blocks: list[JsonValue]) -> dict[str, JsonValue]:
    is_reply = message.role == "assistant"
    content = _simplify_content(blocks if is_reply else sorted(blocks, key=_is_no_result))
    return {"role": "assistant" if is_reply else "user", "content": content, **read_extra(message, DIALECT).message}


def _read_message(
    role: Role, blocks: Sequence[Mapping[str, JsonValue]], fields: dict[str, JsonValue], path: str
) -> Message:
    parts: list[Part] = []
    part_extras: dict[int, dict[str, JsonValue]] = {}
    for index, block in enumerate(blocks):
        part = read_block(block, f"{path}[{index}]")
        encoded = write_block(part)
        if encoded and (extra_fields := find_extra(block, encoded)):
            part_extras[index] = {"of": encoded["type"], "fields": extra_fields}
        parts.append(part)
    only_results = bool(parts) and all(isinstance(part, ToolResult) for part in parts)
    return Message(
        role="tool" if role == "user" and only_results else role,
        parts=tuple(parts),
        metadata=ExtraFields(message=fields, parts=part_extras).to_metadata(DIALECT),
    )


def _write_blocks(message: Message) -> list[JsonValue]:
    extra = read_extra(message, DIALECT)
    encoded_parts = [(index, write_block(part)) for index, part in enumerate(message.parts)]
    return [extra.restore_part(index, encoded, "type") for index, encoded in encoded_parts if encoded]


def _only_results(blocks: list[JsonValue]) -> bool:
    return bool(blocks) and not any(map(_is_no_result, blocks))


def _is_no_result(block: JsonValue) -> bool:
    return not (isinstance(block, dict) and block.get("type") == "tool_result")


def _simplify_content(blocks: list[JsonValue]) -> JsonValue:
    """Return the blocks, or a string if they are one plain text."""
    only = blocks[0]
    if len(blocks) == 1 and isinstance(only, dict) and only.keys() == {"type", "text"}:
        return only["text"]
    return blocks
