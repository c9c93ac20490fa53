"""A client of the HTTP service, with the methods of `Memory`: `RemoteMemory`, and `SyncRemoteMemory` without async."""

from typing import TYPE_CHECKING

from ricordo.lazy import lazy_exports

if TYPE_CHECKING:
    from ricordo.client.remote_memory import RemoteMemory
    from ricordo.client.sync import SyncRemoteMemory

__all__ = ["RemoteMemory", "SyncRemoteMemory"]

__getattr__ = lazy_exports(__name__, {".remote_memory": "RemoteMemory", ".sync": "SyncRemoteMemory"})
