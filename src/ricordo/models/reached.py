"""Where a chat model is reached: what one that was loaded from a name can tell, by its type."""

from typing import Protocol, runtime_checkable

from ricordo.models.contract import ChatModel

__all__ = ["HasBaseUrl", "get_base_url"]


@runtime_checkable
class HasBaseUrl(Protocol):
    """A `ChatModel` that knows the address it was given; None where it is reached at its provider."""

    @property
    def base_url(self) -> str | None:
        """The address."""
        ...


def get_base_url(model: ChatModel | None) -> str | None:
    """Return the address that was given for `model`; None where none was, or where it can't be told."""
    return model.base_url if isinstance(model, HasBaseUrl) else None
