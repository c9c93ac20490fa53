"""The catalog of session files in one folder: the files with their index, reconciled before each use.

Files that people edit, rename, delete or add are noticed at the next use. Every write of a file or of the index happens
under one lock of the folder, is atomic, and is based on what was read inside that lock.

Invariants: no result comes from a row that differs from its file. An index that is missing, broken or foreign costs
only the time to rebuild it.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import datetime
from secrets import token_bytes
from typing import TypeAlias
from zlib import crc32

import anyio
from anyio.to_thread import run_sync

from ricordo.errors import AlreadyExists, DocumentInvalid, FileMissing, StorageError, VersionConflict
from ricordo.guard import Redactor
from ricordo.storage import ABSENT, FileStore, StoredFile
from ricordo.storage.contract import FileInfo, quarantine_document
from ricordo.workspace.history.change_sets import Edit
from ricordo.workspace.session_files import SessionFile, parse_session, update_session
from ricordo.workspace.session_index import (
    SessionIndex,
    SessionRow,
    create_row,
    decode_index,
    encode_index,
    row_sort_key,
)

__all__ = ["SessionCatalog"]


EditRecorder: TypeAlias = Callable[[Sequence[Edit]], Awaitable[object]]
"""Applies these edits, or raises `VersionConflict`, and stores the previous content."""
_LOG = logging.getLogger("ricordo.stores")
_MAX_TRIES = 20
_LOCK_SECONDS = 2.0


class SessionCatalog:
    """The session files of one folder."""

    def __init__(
        self, files: FileStore, folder: str, recording: EditRecorder | None = None, *, redactor: Redactor | None = None
    ) -> None:
        """Read `<folder>sessions/` and `<folder>index.json`; files are created only when needed.

        With `recording`, session files are written through it. `redactor` is the root's own; without it, marks of
        secrets in the files can't be compared with marks elsewhere.
        """
        self._redactor = redactor or Redactor(token_bytes(32))
        self._files = files
        self._record_edits = recording
        self._folder = folder
        self._index: SessionIndex | None = None
        self._last_written = ("", SessionIndex())
        self._ignored_files: dict[str, FileInfo] = {}

    @asynccontextmanager
    async def lock(self) -> AsyncIterator[None]:
        """Hold the lock of the folder. Raises `StorageBusy`."""
        async with self._files.lock(f"sessions-{crc32(self._folder.encode()):08x}"):
            yield

    async def rows(self, *, locked: bool = False) -> list[SessionRow]:
        """Return the current row of each session file, newest first; an outdated index is rewritten.

        With `locked` the caller holds the lock and writes the index.
        """
        index, changed = await self._reconcile()
        if changed and not locked:
            # the rows are correct without it, so a read-only disk does not prevent reading
            with suppress(StorageError), anyio.move_on_after(_LOCK_SECONDS):
                async with self.lock():
                    await self.write_index()
        return sorted(index.rows.values(), key=row_sort_key, reverse=True)

    async def find_row(self, session: str) -> SessionRow | None:
        """Return the row of a session, or None if it has no file yet."""
        index, _ = await self._reconcile()
        return next((row for row in sorted(index.rows.values(), key=row_sort_key) if row.session == session), None)

    async def write(
        self, row: SessionRow | None, change: Callable[[SessionFile | None], SessionFile], start: datetime
    ) -> str:
        """Change the file of `row`, or create one named after `start`, and return its path; hold the lock.

        `change` receives the parsed file, None for a new one, and may be called again after a concurrent edit.
        """
        if row is None:
            return await self._create_file(change(None), start)
        for _ in range(_MAX_TRIES):
            stored = await self._files.read(f"{self._folder}{row.path}")
            present = await run_sync(parse_session, stored.data, row.path)
            data = await run_sync(update_session, stored.data, row.path, change(present))
            if data == stored.data:
                return row.path
            with suppress(VersionConflict):
                await self._write_file(row.path, data, stored.version)
                return row.path
        raise VersionConflict(f"{row.path} changed each time that it was to be written: try again.")

    async def write_index(self) -> None:
        """Update `index.json` to match the files; hold the lock.

        An index that is broken or foreign is first kept under another name.
        """
        index, _ = await self._reconcile()
        path = f"{self._folder}index.json"
        for _ in range(_MAX_TRIES):
            try:
                stored = await self._files.read(path)
                expected, current = stored.version, await self._decode_stored(stored)
                if current is None:
                    _LOG.warning("%s is kept as %s.", path, await quarantine_document(self._files, path, stored))
            except FileMissing:
                expected, current = ABSENT, SessionIndex()
            updated = _copy_extra_fields(current or SessionIndex(), index)
            if (current and updated == current) or (expected == ABSENT and not updated.rows):
                break
            with suppress(VersionConflict):
                version = await self._files.replace(path, await run_sync(encode_index, updated), expected=expected)
                self._last_written = (version, updated)
                break
        self._index = updated

    async def _create_file(self, file: SessionFile, start: datetime) -> str:
        name, number = f"{start.astimezone():%Y-%m-%d-%Hh%M}", 1
        while True:
            path = f"sessions/{name}{f'-{number}' if number > 1 else ''}.md"
            try:
                await self._write_file(path, await run_sync(update_session, b"", path, file), ABSENT)
            except (AlreadyExists, VersionConflict):
                number += 1
            else:
                return path

    async def _write_file(self, path: str, data: bytes, expected: str) -> None:
        full_path = f"{self._folder}{path}"
        if self._record_edits:
            await self._record_edits([Edit(path=full_path, expected=expected, data=data)])
        elif expected == ABSENT:
            await self._files.create(full_path, data)
        else:
            await self._files.replace(full_path, data, expected=expected)

    async def _reconcile(self) -> tuple[SessionIndex, bool]:
        """Return the index matching the files, and whether the one on disk is outdated."""
        changed = False
        if self._index is None:
            loaded = await self._load_index()
            changed = loaded is None
            self._index = loaded or SessionIndex()
        before, rows = self._index, {}
        for info in await self._list_files():
            path = info.path.removeprefix(self._folder)
            row = before.rows.get(path)
            if row is None or (row.size, row.modified_ns) != (info.size, info.modified_ns):
                row = await self._read_row(info, path, row)
            if row:
                rows[path] = row
        if rows != before.rows:
            changed = True
            self._index = replace(before, rows=rows)
        return self._index, changed and (bool(rows) or bool(before.rows) or await self._has_index())

    async def _load_index(self) -> SessionIndex | None:
        """Return the index on disk; None if it is missing or unreadable."""
        try:
            stored = await self._files.read(f"{self._folder}index.json")
        except (FileMissing, StorageError):
            return None
        return await self._decode_stored(stored)

    async def _decode_stored(self, stored: StoredFile) -> SessionIndex | None:
        """Return the stored index, None if broken; an index written by this object is not parsed again."""
        version, written = self._last_written
        return written if stored.version == version else await run_sync(_decode_redacted, stored.data, self._redactor)

    async def _has_index(self) -> bool:
        return await self._files.info(f"{self._folder}index.json") is not None

    async def _list_files(self) -> list[FileInfo]:
        """Return the potential session files: Markdown files directly in the folder, except hidden ones."""
        folder = f"{self._folder}sessions/"
        infos = await self._files.list(folder.removesuffix("/"))
        names = [(info, info.path.removeprefix(folder)) for info in infos]
        return [info for info, name in names if name.endswith(".md") and "/" not in name and name[0] != "."]

    async def _read_row(self, info: FileInfo, path: str, before: SessionRow | None) -> SessionRow | None:
        """Return the row of a file; None if it is not a session file, the previous row if it can't be read."""
        if self._ignored_files.get(path) == info:
            return None
        try:
            stored = await self._files.read(info.path)
        except FileMissing:
            return None
        except StorageError:
            return before
        file = await run_sync(lambda: parse_session(self._redactor.clean_bytes(stored.data), path))
        if file is None:
            self._ignored_files[path] = info
            return None
        return create_row(file, path, info, before.extra if before else {})


def _decode_redacted(data: bytes, redactor: Redactor) -> SessionIndex | None:
    """Return the index, None if broken; if it holds a secret, all of its rows count as outdated."""
    redacted = redactor.clean_bytes(data)
    try:
        index = decode_index(redacted)
    except DocumentInvalid:
        return None
    if redacted is data:
        return index
    return replace(index, rows={path: replace(row, size=-1) for path, row in index.rows.items()})


def _copy_extra_fields(current: SessionIndex, index: SessionIndex) -> SessionIndex:
    """Return `index` with the foreign fields of the index on disk."""
    rows: dict[str, SessionRow] = {}
    for path, row in index.rows.items():
        other = current.rows.get(path, row)
        rows[path] = row if other.extra == row.extra else replace(row, extra=other.extra)
    return SessionIndex(rows=rows, extra=current.extra)
