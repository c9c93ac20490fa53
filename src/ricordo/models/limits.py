"""How long a reply may get: what a chat model can do besides answering, told by its type.

Invariant: a model that can't be told stays as it is, and whoever asked sees in the usage what it took.
"""

from typing import Protocol, runtime_checkable

from ricordo.models.contract import ChatModel

__all__ = ["LimitsReplies", "limited"]


@runtime_checkable
class LimitsReplies(Protocol):
    """A `ChatModel` that can be told how long its replies may get."""

    def limited(self, tokens: int) -> ChatModel:
        """Return this model with replies of at most so many tokens, thinking included; this one stays as it is."""
        ...


def limited(model: ChatModel, tokens: int) -> ChatModel:
    """Return `model` with replies of at most so many tokens; itself where it can't be told."""
    return model.limited(tokens) if isinstance(model, LimitsReplies) else model
