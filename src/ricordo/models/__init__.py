"""Models: the interfaces of chat models and embedders, the adapters to providers, and limits on spending."""

from typing import TYPE_CHECKING

from ricordo.lazy import lazy_exports

if TYPE_CHECKING:
    from ricordo.models.config import ModelSettings, RetryConfig
    from ricordo.models.contract import (
        ChatModel,
        Delta,
        Embedder,
        Reply,
        ReplyEvent,
        ReplyFinished,
        StopReason,
        TextDelta,
        ThinkingDelta,
    )
    from ricordo.models.embedders import load_embedder
    from ricordo.models.errors import find_overflow
    from ricordo.models.provider import load_model

__all__ = [
    "ChatModel",
    "Delta",
    "Embedder",
    "ModelSettings",
    "Reply",
    "ReplyEvent",
    "ReplyFinished",
    "RetryConfig",
    "StopReason",
    "TextDelta",
    "ThinkingDelta",
    "find_overflow",
    "load_embedder",
    "load_model",
]

__getattr__ = lazy_exports(
    __name__,
    {
        ".config": "ModelSettings RetryConfig",
        ".contract": "ChatModel Delta Embedder Reply ReplyEvent ReplyFinished StopReason TextDelta ThinkingDelta",
        ".embedders": "load_embedder",
        ".errors": "find_overflow",
        ".provider": "load_model",
    },
)
