"""Message and its parts, and the marks of messages that nobody said.

All types are frozen. Parts form a tagged union: match on the class. A provider's part of an unknown kind is kept
verbatim as `Unknown`. A mark in the metadata survives every codec and names the kind of message: a `summary`, recalled
`memory`, a `notice` of the harness, a reply that was `cut` off, or a `reminder` made for one request. Compaction keeps
pinned messages word for word.

Invariant: except for `cut`, marked messages are never extracted, and never searched as if somebody had said them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal, TypeAlias, get_args

from ricordo.errors import InvalidMessage

__all__ = [
    "JsonValue",
    "Mark",
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
    "delivered_results",
    "get_mark",
    "is_pinned",
    "with_delivered_results",
    "with_mark",
    "with_pin",
]


JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"
Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, kw_only=True)
class Text:
    """Text that somebody said."""

    text: str


@dataclass(frozen=True, kw_only=True)
class Thinking:
    """Reasoning of a model; `signature` is the provider's signature, which is sent back unchanged."""

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
    """A part of an unknown kind: the name of the kind and the part's JSON text, verbatim."""

    kind: str
    raw: str


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """A request to run a tool; `arguments` is the JSON text exactly as the model wrote it, valid or not."""

    id: str
    name: str
    arguments: str = "{}"


@dataclass(frozen=True, kw_only=True)
class ToolResult:
    """The result of the tool call `call_id`."""

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
    """Tokens that a provider reported for one request; `input` includes tokens read from its cache."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        """Return the sum of both."""
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
        )

    def __sub__(self, other: "Usage") -> "Usage":
        """Return the difference, `self` minus `other`."""
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
    """One message of a conversation.

    `id` is unique in its session, and empty until the transcript assigns a stable id. `time` has a time zone. `name`
    tells speakers with the same role apart. `parent` is the id of the message before this one. `metadata` is JSON and
    is kept unchanged.
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
        """Raises: InvalidMessage for an unknown role or a time without a time zone."""
        if self.role not in get_args(Role):
            raise InvalidMessage(f"The role of a message is one of {', '.join(get_args(Role))}, not {self.role!r}.")
        if self.time is not None and self.time.tzinfo is None:
            raise InvalidMessage("The time of a message needs a time zone.")

    @property
    def text(self) -> str:
        """The text parts, joined by newlines; empty when there are none."""
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tool calls of this message, in order."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def tool_results(self) -> tuple[ToolResult, ...]:
        """The tool results of this message, in order."""
        return tuple(part for part in self.parts if isinstance(part, ToolResult))


Mark = Literal["summary", "memory", "notice", "cut", "reminder"]
_MARKS: tuple[Mark, ...] = get_args(Mark)
_MARK_KEY = "ricordo"
_PINNED_KEY = "ricordo.pinned"
_DELIVERED_KEY = "ricordo.told"


def with_mark(message: Message, mark: Mark) -> Message:
    """Return `message` with the mark added to its metadata."""
    return replace(message, metadata={**message.metadata, _MARK_KEY: mark})


def get_mark(message: Message) -> Mark | None:
    """Return the mark of a message; None for a message that somebody said."""
    found = message.metadata.get(_MARK_KEY)
    return next((mark for mark in _MARKS if mark == found), None)


def with_pin(message: Message, *, on: bool = True) -> Message:
    """Return `message` with the pin of a person, or without it."""
    others = {key: value for key, value in message.metadata.items() if key != _PINNED_KEY}
    return replace(message, metadata={**others, _PINNED_KEY: True} if on else others)


def is_pinned(message: Message) -> bool:
    """Tell whether a person pinned this message."""
    return message.metadata.get(_PINNED_KEY) is True


def with_delivered_results(message: Message, ids: Sequence[str]) -> Message:
    """Return a reply that records which results of background tasks its request delivered; unchanged if `ids` is empty.

    The delivery is durable with the reply. If no reply is saved, the results are delivered again.
    """
    return replace(message, metadata={**message.metadata, _DELIVERED_KEY: list(ids)}) if ids else message


def delivered_results(message: Message) -> tuple[str, ...]:
    """Return the ids of the background results that the request of this reply delivered; empty for most messages."""
    found = message.metadata.get(_DELIVERED_KEY)
    return tuple(each for each in found if isinstance(each, str)) if isinstance(found, list) else ()
