"""Files below one root, durable and confined to it."""

from ricordo.files.contract import ABSENT, Appended, FileInfo, FileStore, Stored, version_of

__all__ = ["ABSENT", "Appended", "FileInfo", "FileStore", "Stored", "version_of"]
