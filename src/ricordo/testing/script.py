"""The values of a script: what a scripted model, or the server that stands in for a provider, does at each request.

A script is a list that is played in order, one item for each request, or a function from the request to an item. The
items are values without behaviour: the same script plays in process and over the wire.

Invariant: a script never starts again. A request after its last item is an error that names the request.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TypeAlias

from ricordo.messages import JsonValue, Message, ToolSpec, Usage
from ricordo.models import StopReason

__all__ = [
    "Call",
    "Calls",
    "Empty",
    "Fail",
    "Garbage",
    "HalfStream",
    "Hang",
    "Hold",
    "Playback",
    "PlayedItem",
    "RecordedRequest",
    "Respond",
    "Say",
    "ScriptItem",
    "ScriptLike",
    "ScriptUsedUp",
    "ReplyItem",
]


@dataclass(frozen=True, kw_only=True)
class RecordedRequest:
    """What a model was asked.

    `number` counts from 1. `messages` start with the system messages. `path`, `headers` and `body` are what the server
    received, empty in process; header names are in lower case, and keys and cookies read `***`. `reply_limit` is how
    many tokens the reply may take, None where nobody said.
    """

    number: int
    messages: tuple[Message, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    schema: Mapping[str, JsonValue] | None = None
    streamed: bool = False
    path: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, JsonValue] = field(default_factory=dict)
    reply_limit: int | None = None


@dataclass(frozen=True)
class Say:
    """The model says `text`; where a schema is asked for, `text` is the JSON that should fit it.

    `usage` is what the provider reports, in tokens; None stands for an estimate.
    """

    text: str
    thinking: str = ""
    _: KW_ONLY
    usage: Usage | None = None
    stop: StopReason = "end"


@dataclass(frozen=True)
class Call:
    """The model calls a tool. `arguments` given as a string travel as they are, valid JSON or not.

    An empty `id` becomes `call_<request>_<position>`, which is unique in the script.
    """

    name: str
    arguments: Mapping[str, JsonValue] | str = field(default_factory=dict)
    id: str = ""
    _: KW_ONLY
    usage: Usage | None = None


@dataclass(frozen=True, init=False)
class Calls:
    """The model calls several tools at once, saying `text` before; the usage of the single calls does not count."""

    calls: tuple[Call, ...]
    text: str = ""
    thinking: str = ""
    usage: Usage | None = None

    def __init__(self, *calls: Call, text: str = "", thinking: str = "", usage: Usage | None = None) -> None:
        """Take the calls in their order."""
        object.__setattr__(self, "calls", calls)
        object.__setattr__(self, "text", text)
        object.__setattr__(self, "thinking", thinking)
        object.__setattr__(self, "usage", usage)


@dataclass(frozen=True, kw_only=True)
class Empty:
    """A well-formed reply without any content."""

    usage: Usage | None = None


ReplyItem: TypeAlias = Say | Call | Calls | Empty


@dataclass(frozen=True)
class Fail:
    """The provider answers with an error.

    `status` is the HTTP status. `type`, `code` and `param` are the fields of the provider's error; an empty `type` is
    chosen by the status. `body` replaces the whole body. With `in_stream`, a request that streams gets status 200 and
    the error as an event of the stream. `overflow` says that the request was too large; `window` and `size`, in tokens,
    are what the message says of it.
    """

    status: int
    message: str = "The provider failed."
    _: KW_ONLY
    type: str = ""
    code: str | int | None = None
    param: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: JsonValue = None
    in_stream: bool = False
    overflow: bool = False
    window: int | None = None
    size: int | None = None


@dataclass(frozen=True)
class Garbage:
    """An answer of status 200 with bytes that are not JSON."""

    content: bytes = b"<html>not what you asked for"


@dataclass(frozen=True)
class Hang:
    """No answer until the test releases it, or the server stops; then the connection ends."""


@dataclass(frozen=True)
class HalfStream:
    """The connection ends after `after` pieces of the reply's content; without streaming, in the middle of its body.

    With `clean` the stream ends as if it was whole, but lacks its closing event.
    """

    after: int
    reply: ReplyItem = field(default_factory=lambda: Say("This reply never comes to its end."))
    _: KW_ONLY
    clean: bool = False


@dataclass(frozen=True)
class Hold:
    """The reply is held back after its first piece until the test releases it; without streaming, the whole reply."""

    reply: ReplyItem


@dataclass(frozen=True)
class Respond:
    """The item is computed from the request."""

    answer: "Callable[[RecordedRequest], ScriptItem]"


PlayedItem: TypeAlias = ReplyItem | Fail | Garbage | Hang | HalfStream | Hold
ScriptItem: TypeAlias = PlayedItem | Respond
ScriptLike: TypeAlias = Sequence[ScriptItem] | Callable[[RecordedRequest], ScriptItem]


class ScriptUsedUp(AssertionError):
    """A request came after the last item of the script."""


class Playback:
    """Where a script stands; it can be asked from several threads."""

    def __init__(self, script: ScriptLike) -> None:
        """Start at the first item."""
        self._script = script if callable(script) else tuple(script)
        self._position = 0
        self._lock = threading.Lock()

    def next_item(self, request: RecordedRequest) -> PlayedItem:
        """Return the item for `request`; a `Respond` has been asked.

        Raises:
            ScriptUsedUp: the script has no more items.
        """
        item = self._script(request) if callable(self._script) else self._take_item(self._script, request)
        while isinstance(item, Respond):
            item = item.answer(request)
        return item

    def _take_item(self, items: tuple[ScriptItem, ...], request: RecordedRequest) -> ScriptItem:
        with self._lock:
            if self._position == len(items):
                raise ScriptUsedUp(f"The script has {len(items)} items, and this is request {request.number}.")
            self._position += 1
            return items[self._position - 1]
