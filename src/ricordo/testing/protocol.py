"""The interface of a wire protocol: reading requests, and writing replies and errors, whole or as a stream. Pure."""

import json
from collections.abc import Callable, Mapping
from typing import TypeAlias

from ricordo.lazy import dataclass
from ricordo.messages import JsonValue, Message, ToolSpec
from ricordo.messages.json_text import require_object, require_objects, require_text
from ricordo.testing.script import Fail, ScriptedReply

__all__ = [
    "EventFrame",
    "ParsedRequest",
    "RequestBody",
    "WireProtocol",
    "encode_json",
    "make_event_frame",
    "read_optional_record",
    "read_tool",
    "read_tools",
]


RequestBody: TypeAlias = Mapping[str, JsonValue]


@dataclass(frozen=True, kw_only=True)
class ParsedRequest:
    """A request in Ricordo's own types; `continues` means that the provider stores the earlier conversation."""

    messages: tuple[Message, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    schema: Mapping[str, JsonValue] | None = None
    continues: bool = False


@dataclass(frozen=True, kw_only=True)
class EventFrame:
    """One event of a stream in its encoded form; `is_content` is True for content and False for framing events."""

    text: str
    is_content: bool = False


@dataclass(frozen=True, kw_only=True)
class WireProtocol:
    """One protocol. `read` raises `InvalidMessage` for a request that it can't parse."""

    read: Callable[[RequestBody], ParsedRequest]
    whole: Callable[[ScriptedReply, RequestBody], JsonValue]
    frames: Callable[[ScriptedReply, RequestBody], list[EventFrame]]
    error: Callable[[Fail], JsonValue]
    error_frame: Callable[[Fail], EventFrame]


def encode_json(value: JsonValue) -> bytes:
    """Return `value` as JSON in ASCII, which can encode every string, including lone surrogates."""
    return json.dumps(value).encode("ascii")


def make_event_frame(data: JsonValue, *, name: str = "", is_content: bool = False) -> EventFrame:
    """Return `data` as a server-sent event, with its name if it has one."""
    head = f"event: {name}\n" if name else ""
    return EventFrame(text=f"{head}data: {json.dumps(data)}\n\n", is_content=is_content)


def read_tool(value: RequestBody, *, parameters: str, path: str) -> ToolSpec:
    """Read the definition of a tool with its schema under the key `parameters`; no schema means no parameters."""
    return ToolSpec(
        name=require_text(value.get("name"), f"{path}.name"),
        description=require_text(value.get("description") or "", f"{path}.description"),
        parameters=read_optional_record(value, parameters, path) or {},
    )


def read_optional_record(value: RequestBody, key: str, path: str) -> dict[str, JsonValue] | None:
    """Return the object under `key`; None if it is missing."""
    nested = value.get(key)
    return None if nested is None else require_object(nested, f"{path}.{key}")


def read_tools(body: RequestBody) -> list[dict[str, JsonValue]]:
    """Return the tools of a request; empty if it has none."""
    return require_objects(body.get("tools") or [], "tools")
