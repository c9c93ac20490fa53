"""ChatModel and Embedder: the model interfaces of Ricordo, in its own types and without any vendor's package.

Optional abilities are separate protocols: limiting replies, reporting request limits and the base URL, and showing a
request without sending it.

Invariants: a call returns a complete reply or raises a `ModelError`. A model that lacks one of these protocols is used
unchanged and has no known limits.
"""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from decimal import Decimal
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, runtime_checkable

from ricordo.lazy import dataclass
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
"""Why a reply ended: finished, tool calls, output limit reached, refusal, or full window."""


@dataclass(frozen=True, kw_only=True)
class Reply:
    """A model's answer: one assistant message.

    `parsed` is the value that matches the requested schema. `model` is the provider's name of the model that answered.
    `cost` is in US dollars, None if the price is unknown.
    """

    message: Message
    parsed: JsonValue = None
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    stop: StopReason = "end"
    cost: Decimal | None = None


@dataclass(frozen=True, kw_only=True)
class TextDelta:
    """The next part of the reply text."""

    text: str


@dataclass(frozen=True, kw_only=True)
class ThinkingDelta:
    """The next part of the model's thinking."""

    text: str


@dataclass(frozen=True, kw_only=True)
class ReplyFinished:
    """The end of a stream, with the complete reply."""

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
        """The display name of this model, such as `anthropic:claude-sonnet-5`."""
        ...

    @property
    def window(self) -> int | None:
        """The model's window in tokens, input and output together; None if unknown."""
        ...

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> Reply:
        """Return the reply to `messages`; with `schema`, `Reply.parsed` matches it."""
        ...

    def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> AsyncIterator[ReplyEvent]:
        """Yield the reply as it arrives. The last event is `ReplyFinished`; a stream without it has raised an error."""
        ...


class Embedder(Protocol):
    """Turns texts into vectors. Vectors of different models are never compared."""

    @property
    def model_id(self) -> str:
        """The identifier stored with the vectors to tell models apart."""
        ...

    @property
    def dimension(self) -> int:
        """The length of each vector; 0 until the first call if the model does not declare it."""
        ...

    async def embed(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """Return one row for each text, in order.

        The shape is (texts, dimension), and (0, dimension) for no texts. Each row has length 1. Raises: ModelError as
        `ChatModel` does.
        """
        ...


@runtime_checkable
class SupportsReplyLimit(Protocol):
    """A `ChatModel` that can limit the length of its replies."""

    def with_reply_limit(self, tokens: int) -> ChatModel:
        """Return a copy of this model with replies of at most `tokens` tokens, thinking included."""
        ...


def limit_replies(model: ChatModel, tokens: int) -> ChatModel:
    """Return `model` with replies of at most `tokens` tokens, or `model` itself if it has no such limit."""
    return model.with_reply_limit(tokens) if isinstance(model, SupportsReplyLimit) else model


@runtime_checkable
class HasRequestLimits(Protocol):
    """A `ChatModel` that reports the limits of its requests."""

    @property
    def max_messages(self) -> int | None:
        """The maximum number of messages in one request; None if no limit is known."""
        ...

    @property
    def declared_window(self) -> int | None:
        """The documented window in tokens, regardless of what a provider reported for one request; None if unknown."""
        ...


def max_messages(model: ChatModel) -> int | None:
    """Return the maximum number of messages in one request to `model`; None if no limit is known."""
    return model.max_messages if isinstance(model, HasRequestLimits) else None


def declared_window(model: ChatModel) -> int | None:
    """Return the window in tokens with which a session with `model` begins; None if unknown."""
    return model.declared_window if isinstance(model, HasRequestLimits) else model.window


@runtime_checkable
class HasBaseUrl(Protocol):
    """A `ChatModel` that knows its configured base URL."""

    @property
    def base_url(self) -> str | None:
        """The base URL; None for the provider's default."""
        ...


def get_base_url(model: ChatModel | None) -> str | None:
    """Return the configured base URL of `model`; None if it has none or does not report it."""
    return model.base_url if isinstance(model, HasBaseUrl) else None


_CAPTURED: ContextVar["list[RequestBody] | None"] = ContextVar("ricordo.held_requests", default=None)


@dataclass(frozen=True, kw_only=True)
class RequestBody:
    """The JSON of one request, and its URL without the query."""

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
        """Return the request for the reply to `messages`; None if it cannot be shown.

        Raises: InvalidMessage, ModelOverflow if the request could not be sent.
        """
        ...


async def request_body(
    model: ChatModel,
    messages: Sequence[Message],
    *,
    tools: Sequence[ToolSpec] = (),
    schema: Mapping[str, JsonValue] | None = None,
) -> RequestBody | None:
    """Return the request that `model` would send; None if it cannot show it. Raises as `ShowsRequests` does."""
    if not isinstance(model, ShowsRequests):
        return None
    return await model.request_body(messages, tools=tools, schema=schema)


@contextmanager
def capture_requests() -> Iterator[list[RequestBody]]:
    """Collect the requests of this task inside this block in the yielded list instead of sending them."""
    captured: list[RequestBody] = []
    token = _CAPTURED.set(captured)
    try:
        yield captured
    finally:
        _CAPTURED.reset(token)


def captured_requests() -> list[RequestBody] | None:
    """Return the list that collects requests; None if requests are sent."""
    return _CAPTURED.get()
