"""Limits of requests and replies: what a chat model can tell or be told besides answering, known by its type.

Invariant: a model that can't be told stays as it is, and whoever asked sees in the usage what it took; one that does
not tell has no limit that is known.
"""

from typing import Protocol, runtime_checkable

from ricordo.models.contract import ChatModel

__all__ = ["SupportsReplyLimit", "HasRequestLimits", "declared_window", "limit_replies", "max_messages"]


@runtime_checkable
class SupportsReplyLimit(Protocol):
    """A `ChatModel` that can be told how long its replies may get."""

    def with_reply_limit(self, tokens: int) -> ChatModel:
        """Return this model with replies of at most so many tokens, thinking included; this one stays as it is."""
        ...


def limit_replies(model: ChatModel, tokens: int) -> ChatModel:
    """Return `model` with replies of at most so many tokens; itself where it can't be told."""
    return model.with_reply_limit(tokens) if isinstance(model, SupportsReplyLimit) else model


@runtime_checkable
class HasRequestLimits(Protocol):
    """A `ChatModel` that tells the limits of its requests."""

    @property
    def max_messages(self) -> int | None:
        """How many messages one request may have; None where no limit is known."""
        ...

    @property
    def declared_window(self) -> int | None:
        """The window in tokens as it is documented, whatever a provider said of one request; None if not known."""
        ...


def max_messages(model: ChatModel) -> int | None:
    """Return how many messages one request to `model` may have; None where no limit is known."""
    return model.max_messages if isinstance(model, HasRequestLimits) else None


def declared_window(model: ChatModel) -> int | None:
    """Return the window with which a session with `model` begins, in tokens; None where it is not known."""
    return model.declared_window if isinstance(model, HasRequestLimits) else model.window
