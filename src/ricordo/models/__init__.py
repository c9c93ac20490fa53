"""Models: the interfaces of chat models and embedders, the adapters to providers, and limits on spending."""

from typing import TYPE_CHECKING

from ricordo.lazy import lazy_exports

if TYPE_CHECKING:
    from ricordo.models.config import OFFLINE, ModelSettings, RetryConfig, SpendingConfig
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
        get_base_url,
        limit_replies,
    )
    from ricordo.models.embedders import load_embedder
    from ricordo.models.errors import find_overflow
    from ricordo.models.provider import load_model
    from ricordo.models.spending import SpendingJournal, SpendingMeter

__all__ = [
    "OFFLINE",
    "ChatModel",
    "Delta",
    "Embedder",
    "ModelSettings",
    "Reply",
    "ReplyEvent",
    "ReplyFinished",
    "RetryConfig",
    "SpendingConfig",
    "SpendingJournal",
    "SpendingMeter",
    "StopReason",
    "TextDelta",
    "ThinkingDelta",
    "find_overflow",
    "get_base_url",
    "limit_replies",
    "load_embedder",
    "load_model",
]

__getattr__ = lazy_exports(
    __name__,
    {
        ".config": "ModelSettings OFFLINE RetryConfig SpendingConfig",
        ".contract": (
            "ChatModel Delta Embedder Reply ReplyEvent ReplyFinished StopReason TextDelta ThinkingDelta "
            "get_base_url limit_replies"
        ),
        ".embedders": "load_embedder",
        ".errors": "find_overflow",
        ".provider": "load_model",
        ".spending": "SpendingJournal SpendingMeter",
    },
)
