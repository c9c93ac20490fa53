"""Stores: save, recall and preamble, bound to a scope, and the backends that keep memories."""

from typing import TYPE_CHECKING

from ricordo.lazy import lazy_exports

if TYPE_CHECKING:
    from ricordo.stores.addresses import SCHEMES, OpenRequest
    from ricordo.stores.base import PlainDriver, StoreFolder, compose_entries, match_entries, open_folder
    from ricordo.stores.contract import (
        Backend,
        Closes,
        Driver,
        Forgets,
        KeepsSessions,
        LayeredMemory,
        Lists,
        SessionNotes,
        Store,
        StoreParts,
        Undoes,
    )
    from ricordo.stores.erase import (
        Audits,
        erase_everywhere,
        find_versions,
        note_read,
        note_read_entries,
        read_audit,
        remaining_in_layers,
        require_free,
    )
    from ricordo.stores.in_memory import NoMemory

__all__ = [
    "SCHEMES",
    "Audits",
    "Backend",
    "Closes",
    "Driver",
    "Forgets",
    "KeepsSessions",
    "LayeredMemory",
    "Lists",
    "NoMemory",
    "OpenRequest",
    "PlainDriver",
    "SessionNotes",
    "Store",
    "StoreFolder",
    "StoreParts",
    "Undoes",
    "compose_entries",
    "erase_everywhere",
    "find_versions",
    "match_entries",
    "note_read",
    "note_read_entries",
    "open_folder",
    "read_audit",
    "remaining_in_layers",
    "require_free",
]

__getattr__ = lazy_exports(
    __name__,
    {
        ".addresses": "OpenRequest SCHEMES",
        ".base": "PlainDriver StoreFolder compose_entries match_entries open_folder",
        ".contract": (
            "Backend Closes Driver Forgets KeepsSessions LayeredMemory Lists SessionNotes Store StoreParts Undoes"
        ),
        ".erase": (
            "Audits note_read note_read_entries read_audit erase_everywhere find_versions remaining_in_layers "
            "require_free"
        ),
        ".in_memory": "NoMemory",
    },
)
