"""Texts that can be encoded: half of a surrogate pair, which no JSON of a request can hold, becomes U+FFFD. Pure.

Invariant: what can be encoded is handed back as it is, the same object.
"""

import re
from dataclasses import fields, is_dataclass, replace
from typing import TypeVar

from ricordo.messages import JsonValue, Message, ToolSpec

__all__ = ["encodable", "encodable_json", "encodable_spec", "encodable_text"]

_SURROGATE = re.compile("[\ud800-\udfff]")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_REPLACEMENT = "\ufffd"
_T = TypeVar("_T")


def encodable_text(text: str) -> str:
    """Return `text` with each lone surrogate replaced; two that belong together become their character."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    joined = _PAIR.sub(lambda found: found[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)
    return _SURROGATE.sub(_REPLACEMENT, joined)


def encodable_json(value: JsonValue) -> JsonValue:
    """Return a JSON value with the texts and the keys of all its levels encodable."""
    if isinstance(value, str):
        return encodable_text(value)
    if isinstance(value, list):
        return [encodable_json(each) for each in value]
    if isinstance(value, dict):
        return {encodable_text(key): encodable_json(each) for key, each in value.items()}
    return value


def encodable(message: Message) -> Message:
    """Return `message` with every text of it encodable."""
    metadata = encodable_json(dict(message.metadata))
    return replace(
        message,
        parts=tuple(map(_part, message.parts)),
        metadata=metadata if isinstance(metadata, dict) else {},
    )


def encodable_spec(tool: ToolSpec) -> ToolSpec:
    """Return the description of a tool with every text of it encodable."""
    parameters = encodable_json(dict(tool.parameters))
    return ToolSpec(
        name=encodable_text(tool.name),
        description=encodable_text(tool.description),
        parameters=parameters if isinstance(parameters, dict) else {},
    )


def _part(part: _T) -> _T:
    """Return a part with its texts encodable, and with those of the parts inside it."""
    changed: dict[str, object] = {}
    for each in fields(part) if is_dataclass(part) else ():
        value = getattr(part, each.name)
        new: object = value
        if isinstance(value, str):
            new = encodable_text(value)
        elif isinstance(value, tuple):
            new = tuple(map(_part, value))
        if new != value:
            changed[each.name] = new
    return replace(part, **changed) if changed else part  # type: ignore[type-var]
