"""Models: what Ricordo asks of a chat model and an embedder, and the adapter that reaches every provider.

What stands here is free of side effects, so that plans may speak of models. Models are made by `provider.load_model`
and `embedding.load_embedder`, and wrapped by `retry.Retrying` and `timed.Timed`.
"""

from ricordo.models.config import ModelSettings, RetryConfig
from ricordo.models.contract import (
    ChatModel,
    Delta,
    Embedder,
    ReplyFinished,
    Reply,
    ReplyEvent,
    StopReason,
    TextDelta,
    ThinkingDelta,
)
from ricordo.models.overflow import find_overflow

__all__ = [
    "ChatModel",
    "Delta",
    "Embedder",
    "ReplyFinished",
    "ModelSettings",
    "Reply",
    "ReplyEvent",
    "RetryConfig",
    "StopReason",
    "TextDelta",
    "ThinkingDelta",
    "find_overflow",
]
