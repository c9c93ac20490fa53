"""Texts that can be encoded: half of a surrogate pair, which no JSON of a request can hold, becomes U+FFFD. Pure.

Invariant: what can be encoded is handed back as it is, the same object.
"""

import re
from dataclasses import fields, is_dataclass, replace
from typing import TypeVar

from ricordo.messages import JsonValue, Message, ToolSpec

__all__ = ["make_message_encodable", "make_json_encodable", "make_tool_encodable", "make_text_encodable"]

_SURROGATE = re.compile("[\ud800-\udfff]")
_SURROGATE_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_REPLACEMENT = "\ufffd"
_T = TypeVar("_T")


def make_text_encodable(text: str) -> str:
    """Return `text` with each lone surrogate replaced; two that belong together become their character."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    joined = _SURROGATE_PAIR.sub(lambda found: found[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)
    return _SURROGATE.sub(_REPLACEMENT, joined)


def make_json_encodable(value: JsonValue) -> JsonValue:
    """Return a JSON value with the texts and the keys of all its levels encodable."""
    if isinstance(value, str):
        return make_text_encodable(value)
    if isinstance(value, list):
        return [make_json_encodable(each) for each in value]
    if isinstance(value, dict):
        return {make_text_encodable(key): make_json_encodable(each) for key, each in value.items()}
    return value


def make_message_encodable(message: Message) -> Message:
    """Return `message` with every text of it encodable."""
    metadata = make_json_encodable(dict(message.metadata))
    return replace(
        message,
        parts=tuple(map(_make_part_encodable, message.parts)),
        metadata=metadata if isinstance(metadata, dict) else {},
    )


def make_tool_encodable(tool: ToolSpec) -> ToolSpec:
    """Return the description of a tool with every text of it encodable."""
    parameters = make_json_encodable(dict(tool.parameters))
    return ToolSpec(
        name=make_text_encodable(tool.name),
        description=make_text_encodable(tool.description),
        parameters=parameters if isinstance(parameters, dict) else {},
    )


def _make_part_encodable(part: _T) -> _T:
    """Return a part with its texts encodable, and with those of the parts inside it."""
    changed: dict[str, object] = {}
    for each in fields(part) if is_dataclass(part) else ():
        value = getattr(part, each.name)
        new: object = value
        if isinstance(value, str):
            new = make_text_encodable(value)
        elif isinstance(value, tuple):
            new = tuple(map(_make_part_encodable, value))
        if new != value:
            changed[each.name] = new
    return replace(part, **changed) if changed else part  # type: ignore[type-var]
