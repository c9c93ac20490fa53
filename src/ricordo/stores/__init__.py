"""Stores: save, recall and preamble, bound to a scope, and the backends that keep memories."""

from typing import TYPE_CHECKING

from ricordo.lazy import lazy_exports

if TYPE_CHECKING:
    from ricordo.stores.addresses import OpenRequest
    from ricordo.stores.base import PlainDriver, StoreFolder, open_folder
    from ricordo.stores.contract import Backend, Driver, Forgets, LayeredMemory, Lists, Store, StoreParts, Undoes
    from ricordo.stores.in_memory import NoMemory

__all__ = [
    "Backend",
    "Driver",
    "Forgets",
    "LayeredMemory",
    "Lists",
    "NoMemory",
    "OpenRequest",
    "PlainDriver",
    "Store",
    "StoreFolder",
    "StoreParts",
    "Undoes",
    "open_folder",
]

__getattr__ = lazy_exports(
    __name__,
    {
        ".addresses": "OpenRequest",
        ".base": "PlainDriver StoreFolder open_folder",
        ".contract": "Backend Driver Forgets LayeredMemory Lists Store StoreParts Undoes",
        ".in_memory": "NoMemory",
    },
)
