"""Message and its parts, the marks of messages that nobody said, and which result belongs to which call.

All types are frozen. Parts form a tagged union: match on the class. A provider's part of an unknown kind is kept
verbatim as `Unknown`. A mark in the metadata survives every codec and names the kind of message: a `summary`, recalled
`memory`, a `notice` of the harness, a reply that was `cut` off, or a `reminder` made for one request. Compaction keeps
pinned messages word for word.

A result belongs to the nearest earlier call with its id that has no result yet, or else to the nearest earlier call
with its id. A call without a result is pending while it is in the last run of assistant messages, and no cut is made
after it. In an earlier run the call is abandoned and does not limit cuts.

Invariants: except for `cut`, marked messages are never extracted, and never searched as if somebody had said them. No
call before a cut point has a result, present or still expected, at or after the cut point.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from itertools import pairwise
from typing import Literal, TypeAlias, get_args

from ricordo.errors import InvalidMessage
from ricordo.lazy import dataclass

__all__ = [
    "JsonValue",
    "Mark",
    "Media",
    "Message",
    "MessageGroup",
    "Pairing",
    "Part",
    "PartPosition",
    "Role",
    "Text",
    "Thinking",
    "ToolCall",
    "ToolResult",
    "ToolSpec",
    "Unknown",
    "Usage",
    "append_new",
    "count_provider_items",
    "delivered_results",
    "find_cut_points",
    "find_orphan_results",
    "find_safe_cut",
    "get_import",
    "get_mark",
    "get_origin",
    "is_pinned",
    "pair_calls",
    "split_groups",
    "volatile_end",
    "with_delivered_results",
    "with_mark",
    "with_origin",
    "with_pin",
    "with_volatile_end",
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
_VOLATILE_KEY = "ricordo.volatile"
_ORIGIN_KEY = "origin"
_IMPORT_KEY = "import"


def with_mark(message: Message, mark: Mark) -> Message:
    """Return `message` with the mark added to its metadata."""
    return replace(message, metadata={**message.metadata, _MARK_KEY: mark})


def get_mark(message: Message) -> Mark | None:
    """Return the mark of a message; None for a message that somebody said."""
    stored_mark = message.metadata.get(_MARK_KEY)
    if stored_mark is None:
        return None
    return next((mark for mark in _MARKS if mark == stored_mark), None)


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
    stored_ids = message.metadata.get(_DELIVERED_KEY)
    return tuple(each for each in stored_ids if isinstance(each, str)) if isinstance(stored_ids, list) else ()


def with_volatile_end(message: Message, end: str) -> Message:
    """Return a system prompt that records its `end`, which differs between sessions; unchanged if that is empty."""
    return replace(message, metadata={**message.metadata, _VOLATILE_KEY: end}) if end else message


def volatile_end(message: Message) -> str:
    """Return the end of a system prompt that differs between sessions; empty for other messages."""
    end = message.metadata.get(_VOLATILE_KEY)
    return end if isinstance(end, str) and message.role == "system" else ""


def with_origin(message: Message, origin: str, act: str) -> Message:
    """Return `message` with the name of the source that it was imported from, and the id of that import."""
    return replace(message, metadata={**message.metadata, _ORIGIN_KEY: origin, _IMPORT_KEY: act})


def get_origin(message: Message) -> str | None:
    """Return the name of the source that a message was imported from; None for one that was not."""
    origin = message.metadata.get(_ORIGIN_KEY)
    return origin if isinstance(origin, str) and _IMPORT_KEY in message.metadata else None


def get_import(message: Message) -> str | None:
    """Return the id of the import that brought a message; None for one that no import brought."""
    act = message.metadata.get(_IMPORT_KEY)
    return act if isinstance(act, str) and _ORIGIN_KEY in message.metadata else None


def append_new(window: Sequence[Message], messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return `window` with those `messages` after it whose id it does not have yet."""
    known_ids = {message.id for message in window if message.id}
    return (*window, *(message for message in messages if message.id not in known_ids))


@dataclass(frozen=True, kw_only=True, order=True)
class PartPosition:
    """The position of a part: the index of its message, and the index of the part in that message."""

    message: int
    part: int


@dataclass(frozen=True, kw_only=True)
class Pairing:
    """The calls and results of a conversation.

    `answered` holds pairs of call and result, in the order of the results. `orphans` are results without an earlier
    call. `abandoned` and `pending` are calls without a result, as defined in the module docstring.
    """

    answered: tuple[tuple[PartPosition, PartPosition], ...] = ()
    orphans: tuple[PartPosition, ...] = ()
    abandoned: tuple[PartPosition, ...] = ()
    pending: tuple[PartPosition, ...] = ()


@dataclass(frozen=True, kw_only=True)
class MessageGroup:
    """Messages that must stay together: the indexes from `start` up to, but not including, `stop`."""

    start: int
    stop: int


def pair_calls(messages: Sequence[Message]) -> Pairing:
    """Match every result to its call."""
    unanswered: dict[str, list[PartPosition]] = {}
    latest: dict[str, PartPosition] = {}
    answered: list[tuple[PartPosition, PartPosition]] = []
    without_call: list[PartPosition] = []
    for place, part in _calls_and_results(messages):
        if isinstance(part, ToolCall):
            unanswered.setdefault(part.id, []).append(place)
            latest[part.id] = place
        elif part.call_id not in latest:
            without_call.append(place)
        else:
            waiting = unanswered.get(part.call_id)
            answered.append((waiting.pop() if waiting else latest[part.call_id], place))
    unanswered_places = sorted(place for places in unanswered.values() for place in places)
    live_start = _find_last_assistant_run(messages)
    return Pairing(
        answered=tuple(answered),
        orphans=tuple(without_call),
        abandoned=tuple(place for place in unanswered_places if place.message < live_start),
        pending=tuple(place for place in unanswered_places if place.message >= live_start),
    )


def count_provider_items(message: Message) -> int:
    """Return how many messages a provider may count for `message`, at least 1.

    Each call and each result may count as one message, and so may the other parts.
    """
    other_parts = [part for part in message.parts if not isinstance(part, ToolCall | ToolResult)]
    others = len(other_parts) if message.role == "assistant" else min(1, len(other_parts))
    return max(1, len(message.parts) - len(other_parts) + others)


def find_cut_points(messages: Sequence[Message]) -> tuple[int, ...]:
    """Return every index where a cut separates no call from its result, ascending.

    A cut at `i` separates `messages[:i]` from `messages[i:]`. 0 is always included. The number of messages is included
    unless a call is pending.
    """
    reach = list(range(len(messages)))
    pairing = pair_calls(messages)
    for call, result in pairing.answered:
        reach[call.message] = max(reach[call.message], result.message)
    for place in pairing.pending:
        reach[place.message] = len(messages)
    points = [0]
    max_reach = -1
    for index, end in enumerate(reach):
        max_reach = max(max_reach, end)
        if max_reach == index:
            points.append(index + 1)
    return tuple(points)


def find_safe_cut(messages: Sequence[Message], limit: int) -> int:
    """Return the greatest cut point that is at most `limit`.

    0 means that nothing can be cut off: everything up to `limit` is one group, or `limit` is not positive. A value
    above the number of messages counts as that number.
    """
    return max((point for point in find_cut_points(messages) if point <= limit), default=0)


def split_groups(messages: Sequence[Message]) -> tuple[MessageGroup, ...]:
    """Split the conversation at every cut point into the smallest groups that must stay together, in order.

    A group with a pending call extends to the end.
    """
    points = find_cut_points(messages)
    boundaries = points if points[-1] == len(messages) else (*points, len(messages))
    return tuple(MessageGroup(start=start, stop=stop) for start, stop in pairwise(boundaries))


def find_orphan_results(messages: Sequence[Message]) -> tuple[PartPosition, ...]:
    """Return the positions of results without an earlier call; model providers refuse such results."""
    return pair_calls(messages).orphans


def _calls_and_results(messages: Sequence[Message]) -> Iterator[tuple[PartPosition, ToolCall | ToolResult]]:
    for index, message in enumerate(messages):
        for position, part in enumerate(message.parts):
            if isinstance(part, ToolCall | ToolResult):
                yield PartPosition(message=index, part=position), part


def _find_last_assistant_run(messages: Sequence[Message]) -> int:
    """Return the index where the last unbroken run of assistant messages starts; 0 when there is none."""
    index = len(messages)
    while index > 0 and messages[index - 1].role != "assistant":
        index -= 1
    while index > 0 and messages[index - 1].role == "assistant":
        index -= 1
    return index
