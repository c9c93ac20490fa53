"""Models: what Ricordo asks of a chat model and an embedder, and the adapter that reaches every provider."""

from ricordo.models.config import RetryConfig
from ricordo.models.contract import (
    ChatModel,
    Delta,
    Embedder,
    Finished,
    Reply,
    ReplyEvent,
    Stop,
    TextDelta,
    ThinkingDelta,
)
from ricordo.models.embedding import load_embedder
from ricordo.models.overflow import Overflow, overflow_in
from ricordo.models.provider import DEFAULT_TIMEOUT, load_model
from ricordo.models.retry import Retrying
from ricordo.models.timed import Timed

__all__ = [
    "DEFAULT_TIMEOUT",
    "ChatModel",
    "Delta",
    "Embedder",
    "Finished",
    "Overflow",
    "Reply",
    "ReplyEvent",
    "RetryConfig",
    "Retrying",
    "Stop",
    "TextDelta",
    "ThinkingDelta",
    "Timed",
    "load_embedder",
    "load_model",
    "overflow_in",
]
