"""ChatModel and Embedder: all that Ricordo asks of a model, in our own types, without any vendor's package.

What a model can do besides is a protocol of its own: limiting replies, naming the limits of requests and its address,
and showing a request that is not sent.

Invariants: a reply is whole or it is an error of the `ModelError` branch. A model without one of these protocols stays
as it is, and has no limit that is known.
"""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, runtime_checkable

from ricordo.messages import JsonValue, Message, ToolSpec, Usage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "ChatModel",
    "Delta",
    "Embedder",
    "HasBaseUrl",
    "HasRequestLimits",
    "Reply",
    "ReplyEvent",
    "ReplyFinished",
    "RequestBody",
    "ShowsRequests",
    "StopReason",
    "SupportsReplyLimit",
    "TextDelta",
    "ThinkingDelta",
    "capture_requests",
    "captured_requests",
    "declared_window",
    "get_base_url",
    "limit_replies",
    "max_messages",
    "request_body",
]


StopReason = Literal["end", "tools", "length", "refused", "window"]
"""Why a reply ended: it was done, it calls tools, its output limit, a refusal, or the window was full."""


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What a model answered: one assistant message.

    `parsed` is the value that fits the schema that was asked for. `model` names the model that answered, as its
    provider does. `cost` is in US dollars, None where the price is not known.
    """

    message: Message
    parsed: JsonValue = None
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    stop: StopReason = "end"
    cost: Decimal | None = None


@dataclass(frozen=True, kw_only=True)
class TextDelta:
    """More of what the model says."""

    text: str


@dataclass(frozen=True, kw_only=True)
class ThinkingDelta:
    """More of what the model thinks."""

    text: str


@dataclass(frozen=True, kw_only=True)
class ReplyFinished:
    """The end of a stream: the reply in whole."""

    reply: Reply


Delta: TypeAlias = TextDelta | ThinkingDelta
ReplyEvent: TypeAlias = Delta | ReplyFinished


class ChatModel(Protocol):
    """Answers conversations. System messages come first; `schema` is a JSON schema of an object.

    Every call may raise `ModelOverflow`, `ModelRateLimited`, `ModelUnavailable`, `ModelTimeout`, `ModelRefused`,
    `ModelKeyMissing` and `ReplyInvalid`.
    """

    @property
    def name(self) -> str:
        """The name by which people know this model, such as `anthropic:claude-sonnet-5`."""
        ...

    @property
    def window(self) -> int | None:
        """The model's window in tokens, input and output together; None when it is not known."""
        ...

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> Reply:
        """Return the reply to `messages`; with `schema`, `Reply.parsed` fits it."""
        ...

    def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> AsyncIterator[ReplyEvent]:
        """Give the reply as it comes; the last event is `ReplyFinished`, and a stream without it raised."""
        ...


class Embedder(Protocol):
    """Turns texts into vectors; vectors of different models are never compared."""

    @property
    def model_id(self) -> str:
        """What is stored beside the vectors to tell the model."""
        ...

    @property
    def dimension(self) -> int:
        """The length of each vector; 0 until the first call of a model that does not say it before."""
        ...

    async def embed(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """Return one row for each text, in order: shape (texts, dimension), rows of length 1; (0, dimension) for none.

        Raises: ModelError as `ChatModel` does.
        """
        ...


@runtime_checkable
class SupportsReplyLimit(Protocol):
    """A `ChatModel` that can be told how long its replies may get."""

    def with_reply_limit(self, tokens: int) -> ChatModel:
        """Return this model with replies of at most so many tokens, thinking included; this one stays as it is."""
        ...


def limit_replies(model: ChatModel, tokens: int) -> ChatModel:
    """Return `model` with replies of at most so many tokens; itself where it can't be told."""
    return model.with_reply_limit(tokens) if isinstance(model, SupportsReplyLimit) else model


@runtime_checkable
class HasRequestLimits(Protocol):
    """A `ChatModel` that tells the limits of its requests."""

    @property
    def max_messages(self) -> int | None:
        """How many messages one request may have; None where no limit is known."""
        ...

    @property
    def declared_window(self) -> int | None:
        """The window in tokens as it is documented, whatever a provider said of one request; None if not known."""
        ...


def max_messages(model: ChatModel) -> int | None:
    """Return how many messages one request to `model` may have; None where no limit is known."""
    return model.max_messages if isinstance(model, HasRequestLimits) else None


def declared_window(model: ChatModel) -> int | None:
    """Return the window with which a session with `model` begins, in tokens; None where it is not known."""
    return model.declared_window if isinstance(model, HasRequestLimits) else model.window


@runtime_checkable
class HasBaseUrl(Protocol):
    """A `ChatModel` that knows the address it was given; None where it is reached at its provider."""

    @property
    def base_url(self) -> str | None:
        """The address."""
        ...


def get_base_url(model: ChatModel | None) -> str | None:
    """Return the address that was given for `model`; None where none was, or where it can't be told."""
    return model.base_url if isinstance(model, HasBaseUrl) else None


_CAPTURED: ContextVar["list[RequestBody] | None"] = ContextVar("ricordo.held_requests", default=None)


@dataclass(frozen=True, kw_only=True)
class RequestBody:
    """The JSON of one request, and the address that it goes to, without its query."""

    url: str
    body: Mapping[str, JsonValue]


@runtime_checkable
class ShowsRequests(Protocol):
    """A `ChatModel` that can show a request without sending it."""

    async def request_body(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> RequestBody | None:
        """Return the request for the reply to `messages` as it would be written; None where that can't be shown.

        Raises: InvalidMessage, ModelOverflow for what would not be sent.
        """
        ...


async def request_body(
    model: ChatModel,
    messages: Sequence[Message],
    *,
    tools: Sequence[ToolSpec] = (),
    schema: Mapping[str, JsonValue] | None = None,
) -> RequestBody | None:
    """Return the request that `model` would write; None for one that can't show it. Raises as `ShowsRequests` does."""
    if not isinstance(model, ShowsRequests):
        return None
    return await model.request_body(messages, tools=tools, schema=schema)


@contextmanager
def capture_requests() -> Iterator[list[RequestBody]]:
    """Hold back the requests that are written inside of this block, in this task; they are in the list."""
    found: list[RequestBody] = []
    token = _CAPTURED.set(found)
    try:
        yield found
    finally:
        _CAPTURED.reset(token)


def captured_requests() -> list[RequestBody] | None:
    """Return where a request that is about to be sent is to be put instead; None where it is to be sent."""
    return _CAPTURED.get()
