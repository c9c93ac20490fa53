"""Models: what Ricordo asks of a chat model and an embedder, and the adapter that reaches every provider.

What stands here is free of side effects, so that plans may speak of models. Models are made by `provider.load_model`
and `embedding.load_embedder`, and wrapped by `retry.Retrying` and `timed.Timed`.
"""

from ricordo.models.config import ModelSettings, RetryConfig
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
from ricordo.models.overflow import overflow_in

__all__ = [
    "ChatModel",
    "Delta",
    "Embedder",
    "Finished",
    "ModelSettings",
    "Reply",
    "ReplyEvent",
    "RetryConfig",
    "Stop",
    "TextDelta",
    "ThinkingDelta",
    "overflow_in",
]
