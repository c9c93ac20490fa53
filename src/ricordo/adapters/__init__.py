"""Adapters: what is here behind the interfaces of other libraries, each its own module with its own extra."""

from typing import TYPE_CHECKING

from ricordo.lazy import lazy_exports

if TYPE_CHECKING:
    from ricordo.adapters.core import Conversation, GivenContext

__all__ = ["Conversation", "GivenContext"]

__getattr__ = lazy_exports(__name__, {".core": "Conversation GivenContext"})
