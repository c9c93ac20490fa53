"""Message: one entry of a conversation, and the parts it is made of.

Everything is frozen; a change makes a new value. Parts form a tagged union: match on the class. What a provider sends
that we do not know travels as `Unknown`, verbatim, so that reading and writing a conversation loses nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias, get_args

from ricordo.errors import InvalidMessage

__all__ = [
    "JsonValue",
    "Media",
    "Message",
    "Part",
    "Role",
    "Text",
    "Thinking",
    "ToolCall",
    "ToolResult",
    "ToolSpec",
    "Unknown",
    "Usage",
]

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"
Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, kw_only=True)
class Text:
    """What was said."""

    text: str


@dataclass(frozen=True, kw_only=True)
class Thinking:
    """What a model thought; `signature` is the provider's seal, sent back untouched."""

    text: str
    signature: str | None = None


@dataclass(frozen=True, kw_only=True)
class Media:
    """A picture, sound or file by reference: `uri` is a URL, a path, a provider's file id or a data URI."""

    media_type: str
    uri: str
    name: str | None = None
    description: str | None = None


@dataclass(frozen=True, kw_only=True)
class Unknown:
    """A part of a kind we do not know: its kind and its JSON text, verbatim."""

    kind: str
    raw: str


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """A request to run a tool; `arguments` is the JSON text as the model wrote it, valid or not."""

    id: str
    name: str
    arguments: str = "{}"


@dataclass(frozen=True, kw_only=True)
class ToolResult:
    """What a tool answered to the call `call_id`."""

    call_id: str
    parts: tuple[Text | Media | Unknown, ...] = ()
    name: str | None = None
    is_error: bool = False

    @property
    def text(self) -> str:
        """The text parts, joined by newlines; empty when there are none."""
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))


Part: TypeAlias = Text | Thinking | Media | ToolCall | ToolResult | Unknown


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Tokens that a provider reported for one request; `input` includes what came from its cache."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        """Return the tokens of both together."""
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
        )

    def __sub__(self, other: "Usage") -> "Usage":
        """Return the tokens that this has more than `other`."""
        return Usage(
            input=self.input - other.input,
            output=self.output - other.output,
            cache_read=self.cache_read - other.cache_read,
            cache_write=self.cache_write - other.cache_write,
        )


@dataclass(frozen=True, kw_only=True)
class ToolSpec:
    """A tool as a model sees it; `parameters` is a JSON schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, JsonValue]


@dataclass(frozen=True, kw_only=True)
class Message:
    """One entry of a conversation.

    `id` is unique in its session; empty until the transcript gives a stable one. `time` is aware. `name` tells
    speakers of one role apart. `parent` is the id of the message this one follows. `metadata` is JSON and kept as it
    is.
    """

    role: Role
    parts: tuple[Part, ...] = ()
    id: str = ""
    time: datetime | None = None
    name: str | None = None
    parent: str | None = None
    usage: Usage | None = None
    metadata: Mapping[str, JsonValue] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse an unknown role and a naive time."""
        if self.role not in get_args(Role):
            raise InvalidMessage(f"The role of a message is one of {', '.join(get_args(Role))}, not {self.role!r}.")
        if self.time is not None and self.time.tzinfo is None:
            raise InvalidMessage("The time of a message needs a time zone.")

    @property
    def text(self) -> str:
        """What was said: the text parts, joined by newlines; empty when there are none."""
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tool calls of this message, in order."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def tool_results(self) -> tuple[ToolResult, ...]:
        """The tool results of this message, in order."""
        return tuple(part for part in self.parts if isinstance(part, ToolResult))
