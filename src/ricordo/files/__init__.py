"""Files below one root, durable and confined to it."""

from ricordo.files.contract import ABSENT, Appended, Appends, FileInfo, FileStore, Stored, version_of

__all__ = ["ABSENT", "Appended", "Appends", "FileInfo", "FileStore", "Stored", "version_of"]
