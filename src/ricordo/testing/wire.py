"""What every protocol of the server offers: reading a request, and writing replies and errors, whole or as a stream.

Everything here is pure; the server sends what it is given.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from ricordo.messages import JsonValue, Message, ToolSpec
from ricordo.messages.jsontext import record, records, text
from ricordo.testing.answer import Answer
from ricordo.testing.script import Fail

__all__ = ["Asked", "Body", "Frame", "Wire", "encoded", "event", "optional_record", "tool_spec", "tools_of"]

Body: TypeAlias = Mapping[str, JsonValue]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a request says, in our own types; `continues` tells that the provider holds what was said before."""

    messages: tuple[Message, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    schema: Mapping[str, JsonValue] | None = None
    continues: bool = False


@dataclass(frozen=True, kw_only=True)
class Frame:
    """One event of a stream as it is sent; `is_content` tells the pieces of the reply from what frames them."""

    text: str
    is_content: bool = False


@dataclass(frozen=True, kw_only=True)
class Wire:
    """One protocol. `read` raises `InvalidMessage` for a request that is not understood."""

    read: Callable[[Body], Asked]
    whole: Callable[[Answer, Body], JsonValue]
    frames: Callable[[Answer, Body], list[Frame]]
    error: Callable[[Fail], JsonValue]
    error_frame: Callable[[Fail], Frame]


def encoded(value: JsonValue) -> bytes:
    """Return `value` as JSON in ASCII, so that every string can be said, also half of a surrogate pair."""
    return json.dumps(value).encode("ascii")


def event(data: JsonValue, *, name: str = "", is_content: bool = False) -> Frame:
    """Return `data` as a server-sent event, with its name if it has one."""
    head = f"event: {name}\n" if name else ""
    return Frame(text=f"{head}data: {json.dumps(data)}\n\n", is_content=is_content)


def tool_spec(value: Body, *, parameters: str, where: str) -> ToolSpec:
    """Read the definition of a tool, whose schema stands under the key `parameters`; without one it takes nothing."""
    return ToolSpec(
        name=text(value.get("name"), f"{where}.name"),
        description=text(value.get("description") or "", f"{where}.description"),
        parameters=optional_record(value, parameters, where) or {},
    )


def optional_record(value: Body, key: str, where: str) -> dict[str, JsonValue] | None:
    """Return the object under `key`; None when there is none."""
    found = value.get(key)
    return None if found is None else record(found, f"{where}.{key}")


def tools_of(body: Body) -> list[dict[str, JsonValue]]:
    """Return the tools of a request, none when it has none."""
    return records(body.get("tools") or [], "tools")
