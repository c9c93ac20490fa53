"""Renaming: records of sessions get the names that stay apart where upper and lower case are the same.

A file is written under its new name before the old one is removed, so a kill in between loses nothing, and the next
opening removes what was left. Where a session wrote on under both names, both files stay.
"""

from collections.abc import Iterable
from contextlib import suppress

from ricordo.errors import AlreadyExists, FileMissing
from ricordo.files import FileStore
from ricordo.workspace.layout import WORKSPACE, current_record_path

__all__ = ["AGENTS_FOLDER", "rename_records"]

AGENTS_FOLDER = f"{WORKSPACE}/agents"
"""The folder with the records of sessions."""

_RENAME_LOCK = "renaming"


async def rename_records(files: FileStore, paths: Iterable[str]) -> None:
    """Rename the records below `AGENTS_FOLDER` that have a name from before; `paths` are those of the files there.

    Raises: StorageError.
    """
    if not any(map(current_record_path, paths)):
        return
    async with files.lock(_RENAME_LOCK):
        for info in await files.list(AGENTS_FOLDER):
            if name := current_record_path(info.path):
                await _rename_record(files, info.path, name)


async def _rename_record(files: FileStore, path: str, name: str) -> None:
    with suppress(FileMissing):
        stored = await files.read(path)
        try:
            await files.create(name, stored.data)
        except AlreadyExists:
            if not (await files.read(name)).data.startswith(stored.data):
                return
        await files.delete(path, expected=stored.version)
