"""Files below one root, durable and confined to it."""

from ricordo.files.contract import (
    ABSENT,
    AppendedRange,
    SupportsAppend,
    FileInfo,
    FileStore,
    StoredFile,
    compute_version,
)

__all__ = ["ABSENT", "AppendedRange", "SupportsAppend", "FileInfo", "FileStore", "StoredFile", "compute_version"]
