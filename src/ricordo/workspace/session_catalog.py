"""The catalog of session files in one folder: the files with their index, reconciled before each use.

Files that people edit, rename, delete or add are noticed at the next use. Every write of a file or of the index happens
under one lock of the folder, is atomic, and is based on what was read inside that lock.

Invariants: no result comes from a row that differs from its file. An index that is missing, broken or foreign costs
only the time to rebuild it.
"""

import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import field, replace
from datetime import datetime
from functools import cached_property
from secrets import token_bytes
from typing import TypeAlias
from zlib import crc32

import anyio
from anyio.to_thread import run_sync

from ricordo.clock import format_rfc3339, truncate_to_milliseconds
from ricordo.errors import AlreadyExists, DocumentInvalid, FileMissing, InvalidMessage, StorageError, VersionConflict
from ricordo.guard import Redactor
from ricordo.lazy import dataclass
from ricordo.messages import JsonValue
from ricordo.messages.json_text import loads
from ricordo.storage import ABSENT, FileInfo, FileStore, StoredFile
from ricordo.storage.contract import quarantine_document
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_json import entry_from_json, entry_to_json
from ricordo.workspace.history.change_sets import Edit
from ricordo.workspace.session_files import SessionFile, create_digest, parse_session, update_session

__all__ = ["SessionCatalog", "SessionIndex", "SessionRow", "create_row", "decode_index", "encode_index", "row_sort_key"]


_OWN_KEYS = frozenset(
    ("path", "date", "summary", "tags", "session", "pending", "threads", "files", "entries", "size", "modified_ns")
)


@dataclass(frozen=True, kw_only=True)
class SessionRow:
    """The indexed data of a session; `summary` is never a body, and `is_pending` means that it is missing or outdated.

    `path` is relative to the folder of the index. `size` is in bytes; below 0 it means that another program wrote the
    row, so its file is read again.
    """

    path: str
    date: datetime
    summary: str = ""
    tags: tuple[str, ...] = ()
    session: str = ""
    is_pending: bool = False
    threads: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    entries: tuple[Entry, ...] = ()
    size: int = -1
    modified_ns: int = 0
    extra: Mapping[str, JsonValue] = field(default_factory=dict)

    @cached_property
    def json_text(self) -> str:
        """The row as JSON, cached because most rows do not change between writes."""
        return json.dumps(_row_to_json(self), ensure_ascii=False, indent=1)


@dataclass(frozen=True, kw_only=True)
class SessionIndex:
    """The rows by path, and fields of other programs."""

    rows: Mapping[str, SessionRow] = field(default_factory=dict)
    extra: Mapping[str, JsonValue] = field(default_factory=dict)


def create_row(file: SessionFile, path: str, info: FileInfo, extra: Mapping[str, JsonValue]) -> SessionRow:
    """Return the row of a session file; `info` was obtained before the file was read."""
    return SessionRow(
        path=path,
        date=file.started,
        summary=file.summary or create_digest(file.entries),
        tags=file.tags,
        session=file.session,
        is_pending=file.is_pending or file.is_outdated,
        threads=file.open_threads,
        files=file.files_read,
        entries=file.entries,
        size=info.size,
        modified_ns=info.modified_ns,
        extra=extra,
    )


def row_sort_key(row: SessionRow) -> tuple[datetime, int, str]:
    """Order rows by the start of their sessions, oldest first; equal ones by the numbers in their names."""
    number = row.path.removesuffix(".md").rpartition("-")[2]
    return row.date, int(number) if number.isdecimal() else 1, row.path


def encode_index(index: SessionIndex) -> bytes:
    """Return the document of an index, oldest session first."""
    rows = ",\n".join(row.json_text for row in sorted(index.rows.values(), key=row_sort_key))
    others = [f"{json.dumps(name)}: {json.dumps(value, indent=1)}" for name, value in index.extra.items()]
    text = ",\n".join([f'"sessions": [\n{rows}\n]', *others])
    # a lone surrogate is written as a JSON escape
    return f"{{\n{text}\n}}\n".encode("utf-8", "backslashreplace")


def decode_index(data: bytes) -> SessionIndex:
    """Decode an index document. Raises: DocumentInvalid if it is broken or not an index."""
    try:
        value = loads(data)
    except InvalidMessage as error:
        raise DocumentInvalid(f"index.json: {error}") from error
    records = value.get("sessions") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(records, list):
        raise DocumentInvalid("index.json: this is no list of sessions.")
    rows = [_parse_row(item) for item in records]
    extra = {name: each for name, each in value.items() if name != "sessions"}
    return SessionIndex(rows={row.path: row for row in rows}, extra=extra)


def _row_to_json(row: SessionRow) -> dict[str, JsonValue]:
    fields: dict[str, JsonValue] = {
        "path": row.path,
        "date": format_rfc3339(row.date),
        "summary": row.summary,
        "tags": [*row.tags],
        "session": row.session or None,
        "pending": row.is_pending or None,
        "threads": [*row.threads] or None,
        "files": [*row.files] or None,
        "entries": [entry_to_json(entry) for entry in row.entries] or None,
        "size": row.size,
        "modified_ns": row.modified_ns,
    }
    return {name: value for name, value in fields.items() if value is not None} | dict(row.extra)


def _parse_row(item: JsonValue) -> SessionRow:
    if not isinstance(item, dict):
        raise DocumentInvalid("index.json: a session is an object.")
    path, size, modified = item.get("path"), item.get("size"), item.get("modified_ns")
    if not isinstance(path, str) or not path:
        raise DocumentInvalid("index.json: a session has a path.")
    ours = isinstance(size, int) and isinstance(modified, int)
    entries = item.get("entries")
    return SessionRow(
        path=path,
        date=_parse_time(item.get("date")),
        summary=_require_text(item.get("summary")),
        tags=_require_texts(item.get("tags")),
        session=_require_text(item.get("session")),
        is_pending=item.get("pending") is True,
        threads=_require_texts(item.get("threads")),
        files=_require_texts(item.get("files")),
        entries=tuple(_parse_entry(each) for each in entries) if isinstance(entries, list) else (),
        size=size if ours and isinstance(size, int) else -1,
        modified_ns=modified if ours and isinstance(modified, int) else 0,
        extra={name: value for name, value in item.items() if name not in _OWN_KEYS},
    )


def _parse_entry(item: JsonValue) -> Entry:
    if not isinstance(item, dict):
        raise DocumentInvalid("index.json: an entry is an object.")
    return entry_from_json(item)


def _parse_time(value: JsonValue) -> datetime:
    try:
        return truncate_to_milliseconds(datetime.fromisoformat(_require_text(value)))
    except (ValueError, OverflowError) as error:
        raise DocumentInvalid("index.json: a session has a date.") from error


def _require_text(value: JsonValue) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    raise DocumentInvalid("index.json: a text is needed.")


def _require_texts(value: JsonValue) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise DocumentInvalid("index.json: a list of texts is needed.")
    return tuple(_require_text(each) for each in value)


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
            await self._record_edits([Edit(path=full_path, expected_hash=expected, data=data)])
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
