"""Conversion of conversations to and from the input items of OpenAI's Responses API.

Items of the assistant that follow each other become one message, so that no compaction parts a thought from the call
that it led to; a message has at most one item of the type `message`. Items and blocks of unknown types are kept
verbatim as `Unknown`, other unknown fields in the metadata under `openai_responses`.

`to_openai_responses` leaves out what the format can't express: unknown parts of other formats, and whether a result is
an error.

Invariant: `to_openai_responses(from_openai_responses(items))` keeps the whole content of `items`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ricordo.errors import InvalidMessage
from ricordo.messages.formats.media import guess_media_type
from ricordo.messages.formats.passthrough import ExtraFields, find_extra, make_unknown, read_extra, read_unknown
from ricordo.messages.json_text import require_objects, require_text
from ricordo.messages.types import JsonValue, Media, Message, Part, Role, Text, Thinking, ToolCall, ToolResult, Unknown

__all__ = ["from_openai_responses", "to_openai_responses"]


_DIALECT = "openai_responses"
_BLOCK = "openai_responses_block"
"""The dialect of an unknown block of content, which is a part of an item."""
_ROLES: dict[str, Role] = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
_TEXT_BLOCKS = {"input_text", "output_text", "text"}


def from_openai_responses(items: JsonValue) -> list[Message]:
    """Read the `input` of a request, or the `output` of a reply; a text is a message of the user.

    Raises: InvalidMessage if an item lacks a field of its type; the text names the position.
    """
    if isinstance(items, str):
        return [Message(role="user", parts=(Text(text=items),))]
    messages: list[Message] = []
    extras: list[dict[int, dict[str, JsonValue]]] = []
    for index, item in enumerate(require_objects(items, "input")):
        role, parts = _read_item(item, f"input[{index}]")
        if messages and role == "assistant" == messages[-1].role and not (_has_content(parts, messages[-1].parts)):
            messages[-1] = replace(messages[-1], parts=(*messages[-1].parts, *parts))
        else:
            messages.append(Message(role=role, parts=parts))
            extras.append({})
        written = _write_item(role, parts)
        extra = find_extra(item, written) if written else {}
        if extra:
            kind = written.get("type") if written else None
            extras[-1][len(messages[-1].parts) - len(parts)] = {"of": kind, "fields": extra}
    return [
        replace(message, metadata={**message.metadata, **ExtraFields(parts=extra).to_metadata(_DIALECT)})
        for message, extra in zip(messages, extras, strict=True)
    ]


def to_openai_responses(messages: Iterable[Message]) -> list[dict[str, JsonValue]]:
    """Return `messages` as the `input` of a request."""
    items: list[dict[str, JsonValue]] = []
    for message in messages:
        extra = read_extra(message, _DIALECT)
        for start, parts in _split_items(message.parts):
            item = _write_item(message.role, parts)
            if item is not None:
                items.append(_simplify_content(extra.restore_part(start, item, "type")))
    return items


def _is_content(part: Part) -> bool:
    return isinstance(part, Text | Media) or read_unknown(part, _BLOCK) is not None


def _has_content(new: Sequence[Part], old: Sequence[Part]) -> bool:
    return any(map(_is_content, new)) and any(map(_is_content, old))


def _split_items(parts: Sequence[Part]) -> list[tuple[int, tuple[Part, ...]]]:
    """Return the parts of each item with the position of the first: content that stands together, or one other part."""
    items: list[tuple[int, tuple[Part, ...]]] = []
    for index, part in enumerate(parts):
        if items and _is_content(part) and _is_content(parts[index - 1]):
            start, before = items.pop()
            items.append((start, (*before, part)))
        else:
            items.append((index, (part,)))
    return items


def _read_item(item: dict[str, JsonValue], path: str) -> tuple[Role, tuple[Part, ...]]:
    kind = item.get("type") or "message"
    if kind == "message":
        role = _ROLES.get(require_text(item.get("role"), f"{path}.role"))
        if role is None:
            raise InvalidMessage(f"{path}.role: one of {', '.join(_ROLES)} is needed, not {item['role']!r}.")
        return role, _read_content(item.get("content"), f"{path}.content")
    if kind == "function_call":
        call_id, name, arguments = (
            require_text(item.get(key), f"{path}.{key}") for key in ("call_id", "name", "arguments")
        )
        return "assistant", (ToolCall(id=call_id, name=name, arguments=arguments),)
    if kind == "function_call_output":
        call_id = require_text(item.get("call_id"), f"{path}.call_id")
        return "tool", (ToolResult(call_id=call_id, parts=_read_content(item.get("output"), f"{path}.output")),)
    summary = item.get("summary")
    if kind == "reasoning" and isinstance(summary, list) and len(summary) <= 1:
        texts = [require_text(each.get("text"), f"{path}.summary") for each in require_objects(summary, path)]
        return "assistant", (Thinking(text="".join(texts)),)
    return "assistant", (make_unknown(_DIALECT, str(kind), item),)


def _read_content(content: JsonValue, path: str) -> tuple[Text | Media | Unknown, ...]:
    if isinstance(content, str):
        return (Text(text=content),)
    return tuple(map(_read_block, require_objects(content, path)))


def _read_block(block: dict[str, JsonValue]) -> Text | Media | Unknown:
    kind, text, url = block.get("type"), block.get("text"), block.get("image_url")
    if kind in _TEXT_BLOCKS and isinstance(text, str):
        return Text(text=text)
    if kind == "input_image" and isinstance(url, str):
        return Media(media_type=guess_media_type(url, "image"), uri=url)
    return make_unknown(_BLOCK, str(kind), block)


def _write_item(role: Role, parts: Sequence[Part]) -> dict[str, JsonValue] | None:
    """Return the parts of one item as that item, its content as a list; None if the format can't express it."""
    part = parts[0] if parts else Text(text="")
    if isinstance(part, ToolCall):
        return {"type": "function_call", "call_id": part.id, "name": part.name, "arguments": part.arguments}
    if isinstance(part, ToolResult):
        return {"type": "function_call_output", "call_id": part.call_id, "output": _write_content("tool", part.parts)}
    if isinstance(part, Thinking):
        return {"type": "reasoning", "summary": [{"type": "summary_text", "text": part.text}] if part.text else []}
    if isinstance(part, Unknown) and not _is_content(part):
        return read_unknown(part, _DIALECT)
    return {"type": "message", "role": role, "content": _write_content(role, parts)}


def _write_content(role: Role, parts: Sequence[Part]) -> list[JsonValue]:
    blocks: list[JsonValue] = []
    for part in parts:
        if isinstance(part, Text):
            blocks.append({"type": "output_text" if role == "assistant" else "input_text", "text": part.text})
        elif isinstance(part, Media):
            blocks.append({"type": "input_image", "image_url": part.uri})
        elif (block := read_unknown(part, _BLOCK)) is not None:
            blocks.append(block)
    return blocks


def _simplify_content(item: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the item with a string where its content is one plain text, which every model accepts of everybody."""
    key = "output" if item.get("type") == "function_call_output" else "content"
    blocks = item.get(key)
    if item.get("type") not in {"message", "function_call_output"} or not isinstance(blocks, list) or "id" in item:
        return item
    if not blocks:
        return {**item, key: ""}
    block = blocks[0]
    is_plain = len(blocks) == 1 and isinstance(block, dict) and block.keys() == {"type", "text"}
    return {**item, key: block["text"]} if is_plain and isinstance(block, dict) else item
