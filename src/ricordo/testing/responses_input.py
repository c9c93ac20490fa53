"""What a request of the Responses protocol says: its instructions and its input items, read as messages.

Items of the assistant that stand side by side are one message, as they were one reply. Types that are not known are
kept verbatim.
"""

import json
from collections.abc import Sequence

from ricordo.errors import InvalidMessage
from ricordo.messages import JsonValue, Media, Message, Part, Role, Text, Thinking, ToolCall, ToolResult, Unknown
from ricordo.messages.jsontext import require_objects, require_text
from ricordo.testing.wire import RequestBody

__all__ = ["read_input"]

_ROLES: dict[str, Role] = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
_TEXT_TYPES = {"input_text", "output_text", "summary_text", "text"}


def read_input(body: RequestBody) -> list[Message]:
    """Return the messages of a request, the instructions first.

    Raises:
        InvalidMessage: the shape is not understood.
    """
    instructions, given = body.get("instructions"), body.get("input")
    found: list[Message] = []
    if isinstance(instructions, str) and instructions:
        found.append(Message(role="system", parts=(Text(text=instructions),)))
    if isinstance(given, str):
        return [*found, Message(role="user", parts=(Text(text=given),))]
    for item in require_objects(given, "input"):
        read = _read_item(item)
        if found and read.role == found[-1].role == "assistant":
            read = Message(role="assistant", parts=(*found.pop().parts, *read.parts))
        found.append(read)
    return found


def _read_item(item: RequestBody) -> Message:
    kind = item.get("type") or "message"
    if kind == "message":
        role = require_text(item.get("role"), "input.role")
        if role not in _ROLES:
            raise InvalidMessage(f"input.role: one of {', '.join(_ROLES)} is needed, not {role!r}.")
        return Message(role=_ROLES[role], parts=tuple(_read_content(item.get("content"))))
    if kind == "function_call_output":
        call_id = require_text(item.get("call_id"), "input.call_id")
        return Message(role="tool", parts=(ToolResult(call_id=call_id, parts=tuple(_read_content(item["output"]))),))
    return Message(role="assistant", parts=(_read_reply_item(str(kind), item),))


def _read_reply_item(kind: str, item: RequestBody) -> Part:
    if kind == "function_call":
        fields = (require_text(item.get(key), f"input.{key}") for key in ("call_id", "name", "arguments"))
        return ToolCall(**dict(zip(("id", "name", "arguments"), fields, strict=True)))
    if kind == "reasoning":
        summary = "".join(
            require_text(part.get("text"), "summary") for part in require_objects(item.get("summary") or [], "summary")
        )
        return Thinking(text=summary)
    return Unknown(kind=f"openai:{kind}", raw=json.dumps(dict(item)))


def _read_content(content: JsonValue) -> Sequence[Text | Media | Unknown]:
    if isinstance(content, str):
        return [Text(text=content)]
    return [_read_part(part) for part in require_objects(content, "input.content")]


def _read_part(part: RequestBody) -> Text | Media | Unknown:
    kind = require_text(part.get("type"), "input.content.type")
    if kind in _TEXT_TYPES:
        return Text(text=require_text(part.get("text"), "input.content.text"))
    if kind == "input_image" and isinstance(part.get("image_url"), str):
        return Media(media_type="image/*", uri=str(part["image_url"]))
    return Unknown(kind=f"openai:{kind}", raw=json.dumps(dict(part)))
