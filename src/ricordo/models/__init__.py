"""Models: what Ricordo asks of a chat model and an embedder, and the adapter that reaches every provider."""

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

__all__ = ["ChatModel", "Delta", "Embedder", "Finished", "Reply", "ReplyEvent", "Stop", "TextDelta", "ThinkingDelta"]
