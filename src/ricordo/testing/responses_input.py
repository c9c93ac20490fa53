"""What a request of the Responses protocol says: its instructions and its input items, read as messages.

Items of the assistant that stand side by side are one message, as they were one reply. Types that are not known are
kept verbatim.
"""

import json
from collections.abc import Sequence

from ricordo.errors import InvalidMessage
from ricordo.messages import JsonValue, Media, Message, Part, Role, Text, Thinking, ToolCall, ToolResult, Unknown
from ricordo.messages.jsontext import records, text
from ricordo.testing.wire import Body

__all__ = ["read_input"]

_ROLES: dict[str, Role] = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
_TEXTS = {"input_text", "output_text", "summary_text", "text"}


def read_input(body: Body) -> list[Message]:
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
    for item in records(given, "input"):
        read = _read_item(item)
        if found and read.role == found[-1].role == "assistant":
            read = Message(role="assistant", parts=(*found.pop().parts, *read.parts))
        found.append(read)
    return found


def _read_item(item: Body) -> Message:
    kind = item.get("type") or "message"
    if kind == "message":
        role = text(item.get("role"), "input.role")
        if role not in _ROLES:
            raise InvalidMessage(f"input.role: one of {', '.join(_ROLES)} is needed, not {role!r}.")
        return Message(role=_ROLES[role], parts=tuple(_read_content(item.get("content"))))
    if kind == "function_call_output":
        call_id = text(item.get("call_id"), "input.call_id")
        return Message(role="tool", parts=(ToolResult(call_id=call_id, parts=tuple(_read_content(item["output"]))),))
    return Message(role="assistant", parts=(_read_reply_item(str(kind), item),))


def _read_reply_item(kind: str, item: Body) -> Part:
    if kind == "function_call":
        fields = (text(item.get(key), f"input.{key}") for key in ("call_id", "name", "arguments"))
        return ToolCall(**dict(zip(("id", "name", "arguments"), fields, strict=True)))
    if kind == "reasoning":
        summary = "".join(text(part.get("text"), "summary") for part in records(item.get("summary") or [], "summary"))
        return Thinking(text=summary)
    return Unknown(kind=f"openai:{kind}", raw=json.dumps(dict(item)))


def _read_content(content: JsonValue) -> Sequence[Text | Media | Unknown]:
    if isinstance(content, str):
        return [Text(text=content)]
    return [_read_part(part) for part in records(content, "input.content")]


def _read_part(part: Body) -> Text | Media | Unknown:
    kind = text(part.get("type"), "input.content.type")
    if kind in _TEXTS:
        return Text(text=text(part.get("text"), "input.content.text"))
    if kind == "input_image" and isinstance(part.get("image_url"), str):
        return Media(media_type="image/*", uri=str(part["image_url"]))
    return Unknown(kind=f"openai:{kind}", raw=json.dumps(dict(part)))
