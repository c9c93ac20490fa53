"""ChatModel and Embedder: all that Ricordo asks of a model, in our own types, without any vendor's package.

A reply is whole or it is an error of the `ModelError` branch; an empty or half reply is never handed on as a good one.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from ricordo.messages import JsonValue, Message, ToolSpec, Usage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "ChatModel",
    "Delta",
    "Embedder",
    "ReplyFinished",
    "Reply",
    "ReplyEvent",
    "StopReason",
    "TextDelta",
    "ThinkingDelta",
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
