"""Storage: durable files below one root, and the one adapter to SQLite."""

from typing import TYPE_CHECKING

from ricordo.lazy import lazy_exports

if TYPE_CHECKING:
    from ricordo.storage.contract import (
        ABSENT,
        AppendedRange,
        FileInfo,
        FileStore,
        StoredFile,
        SupportsAppend,
        compute_version,
    )
    from ricordo.storage.disk import Disk
    from ricordo.storage.sqlite import Connection

__all__ = [
    "ABSENT",
    "AppendedRange",
    "Connection",
    "Disk",
    "FileInfo",
    "FileStore",
    "StoredFile",
    "SupportsAppend",
    "compute_version",
]

__getattr__ = lazy_exports(
    __name__,
    {
        ".contract": "ABSENT AppendedRange FileInfo FileStore StoredFile SupportsAppend compute_version",
        ".disk": "Disk",
        ".sqlite": "Connection",
    },
)
