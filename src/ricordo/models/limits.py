"""Limits of requests and replies: what a chat model can tell or be told besides answering, known by its type.

Invariant: a model that can't be told stays as it is, and whoever asked sees in the usage what it took; one that does
not tell has no limit that is known.
"""

from typing import Protocol, runtime_checkable

from ricordo.models.contract import ChatModel

__all__ = ["LimitsReplies", "LimitsRequests", "declared_window", "limited", "most_messages"]


@runtime_checkable
class LimitsReplies(Protocol):
    """A `ChatModel` that can be told how long its replies may get."""

    def limited(self, tokens: int) -> ChatModel:
        """Return this model with replies of at most so many tokens, thinking included; this one stays as it is."""
        ...


def limited(model: ChatModel, tokens: int) -> ChatModel:
    """Return `model` with replies of at most so many tokens; itself where it can't be told."""
    return model.limited(tokens) if isinstance(model, LimitsReplies) else model


@runtime_checkable
class LimitsRequests(Protocol):
    """A `ChatModel` that tells the limits of its requests."""

    @property
    def most_messages(self) -> int | None:
        """How many messages one request may have; None where no limit is known."""
        ...

    @property
    def declared_window(self) -> int | None:
        """The window in tokens as it is documented, whatever a provider said of one request; None if not known."""
        ...


def most_messages(model: ChatModel) -> int | None:
    """Return how many messages one request to `model` may have; None where no limit is known."""
    return model.most_messages if isinstance(model, LimitsRequests) else None


def declared_window(model: ChatModel) -> int | None:
    """Return the window with which a session with `model` begins, in tokens; None where it is not known."""
    return model.declared_window if isinstance(model, LimitsRequests) else model.window
