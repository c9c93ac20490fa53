"""Ingestion: changed documents are read, chunked off the event loop, and written in one transaction each.

If the beginning of a document is unchanged, only its tail is processed. A document that can't be read keeps its rows.
An append to a file and to the index is done in one call in a thread; the file is appended to first, and at most once. A
kill leaves a consistent index that is behind the files.
"""

import time
from collections.abc import Iterable, Mapping
from dataclasses import field
from functools import partial
from typing import TypeAlias

import anyio.to_thread

from ricordo.errors import FileMissing, RicordoError, StorageBusy, StorageError
from ricordo.guard import Redactor
from ricordo.lazy import dataclass
from ricordo.search.chunking import (
    SORTS_WITH_ENTRIES,
    KeptRow,
    TailContext,
    build_changed_rows,
    build_rows,
    build_tail_rows,
    following_terms,
    is_self_contained,
)
from ricordo.search.documents import Checksum, DocumentFingerprint, SearchDocument
from ricordo.search.tables import (
    advance_tail,
    append_document,
    load_entry_digests,
    load_fingerprints,
    put_document,
    read_tail,
    remove_document,
)
from ricordo.storage.contract import AppendedRange, FileInfo, FileStore, SupportsBlockingAppend
from ricordo.storage.sqlite import Connection, Database, ExclusiveAccess
from ricordo.workspace.markdown import count_line_ends

__all__ = [
    "AppendedBlock",
    "DocumentEnd",
    "IngestResult",
    "Ingester",
    "PendingAppend",
    "SyncProgress",
    "extend_fingerprint",
]


_BUSY_SECONDS = 0.05
"""How long to wait for other writers of the file while searches are blocked."""


@dataclass(frozen=True, kw_only=True)
class DocumentEnd:
    """The fingerprint of a document, and the context of a block that is appended to it."""

    fingerprint: DocumentFingerprint
    tail: TailContext


@dataclass(frozen=True, kw_only=True)
class AppendedBlock:
    """The bytes `data` appended after the part `base` of a document, and the `fingerprint` including them.

    `tail` is the context before the bytes, None if it has to be read; `redactor` removes secrets.
    """

    document: SearchDocument
    data: bytes
    base: DocumentFingerprint
    fingerprint: DocumentFingerprint
    redactor: Redactor
    tail: TailContext | None = None

    def write_rows(self, turn: ExclusiveAccess) -> DocumentEnd | None:
        """Write the rows of the block; return None without a change if the stored document is no longer `base`."""
        tail = self.tail or turn.read(lambda connection: read_tail(connection, self.base))
        # rows are built before the transaction, as other processes wait for its end
        rows = build_tail_rows(self.document, self.data, tail, self.redactor) if self.data else []
        following = following_terms(rows) if self.document.document_type == "transcript" else ""
        if not turn.write(lambda connection: append_document(connection, self.base, self.fingerprint, rows, following)):
            return None
        return DocumentEnd(fingerprint=self.fingerprint, tail=advance_tail(rows, tail, self.fingerprint))


class PendingAppend:
    """An append that is executed at most once; its result is kept for the caller."""

    def __init__(self, files: SupportsBlockingAppend, path: str, data: bytes, *, header: bytes = b"") -> None:
        """Prepare to append `data` to the file at `path`, which is created with `header` if necessary."""
        self.data = data
        self._files = files
        self._path = path
        self._header = header
        self._appended: AppendedRange | None = None
        self._error: RicordoError | None = None

    def execute(self) -> AppendedRange | None:
        """Append, and return the range of the bytes; None if they could not be appended. It blocks on the disk."""
        try:
            self._appended = self._files.append_blocking(
                self._path, self.data, header=self._header, busy_seconds=_BUSY_SECONDS
            )
        except RicordoError as error:
            self._error = error
        return self._appended

    def result(self) -> AppendedRange | None:
        """Return the range of the bytes, None if they still have to be appended. Raises the error of the append."""
        if self._error is not None and not isinstance(self._error, StorageBusy):
            raise self._error
        return self._appended


def extend_fingerprint(base: DocumentFingerprint, data: bytes, info: FileInfo | None) -> DocumentFingerprint:
    """Return the fingerprint of a document with `data` appended; `info` is its metadata after that."""
    size = base.size + len(data)
    # if more than this block was appended, the file's time does not belong to this part
    modified_ns = info.modified_ns if info and info.size == size else 0
    return DocumentFingerprint(
        path=base.path,
        document_type=base.document_type,
        size=size,
        modified_ns=modified_ns,
        checked_ns=time.time_ns(),
        checksum=base.checksum.extend(data),
        lines=base.lines + count_line_ends(data),
        changed_ns=info.changed_ns if info else 0,
    )


_MAX_TRIES = 20


@dataclass(frozen=True, kw_only=True)
class IngestResult:
    """The result of indexing a document: whether it had changed, or why it could not be read."""

    changed: bool = False
    failed: str = ""


@dataclass(kw_only=True)
class SyncProgress:
    """The progress of indexing changes; `pending` documents were not reached or could not be read."""

    indexed: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    pending: list[tuple[SearchDocument, FileInfo]] = field(default_factory=list)
    removed: tuple[str, ...] = ()
    unchanged: int = 0
    has_changes: bool = False

    @property
    def unread_documents(self) -> list[tuple[SearchDocument, FileInfo]]:
        """The documents that were not reached; a document that can't be read is searched by its old rows."""
        return [pair for pair in self.pending if pair[0].path not in self.failed]


@dataclass(frozen=True, kw_only=True)
class _ReadDocument:
    """A document that was read, with its new and previous fingerprints.

    `base` is the previous fingerprint if the bytes still begin with those that it describes.
    """

    document: SearchDocument
    data: bytes
    fingerprint: DocumentFingerprint
    previous: DocumentFingerprint | None
    base: DocumentFingerprint | None
    is_unchanged: bool = False

    @property
    def tail(self) -> bytes:
        """The bytes after the known part."""
        return self.data[self.base.size :] if self.base else self.data


class Ingester:
    """Indexes the files of one workspace in its database.

    A document that can't be read is a result; only database errors are raised. `revision` counts the changes of the
    fingerprints.
    """

    def __init__(self, database: Database, files: FileStore, redactor: Redactor) -> None:
        """Index documents of `files` in `database`, without the secrets that `redactor` finds."""
        self._redactor = redactor
        self._database = database
        self._files = files
        self.revision = 0
        self._fingerprints: dict[str, DocumentFingerprint] = {}
        self._data_version: _DataVersion = None, -1
        self._last_end: DocumentEnd | None = None

    async def load_fingerprints(self) -> Mapping[str, DocumentFingerprint]:
        """Return the fingerprint of each document, including those that other processes indexed."""
        version, loaded = await self._database.read(
            lambda connection: _fingerprints_since(connection, self._data_version)
        )
        if loaded is not None:
            self._fingerprints, self._data_version = loaded, version
            self.revision += 1
        return self._fingerprints

    async def _reload_fingerprints(self) -> None:
        """Load all stored fingerprints again, including those that a cancelled call of this process wrote."""
        self._data_version = None, -1
        await self.load_fingerprints()

    def is_current(self, connection: Connection) -> bool:
        """Return whether no other process wrote since `load_fingerprints`; call it within a read."""
        return _read_data_version(connection) == self._data_version

    def _set_fingerprint(self, path: str, fingerprint: DocumentFingerprint | None) -> None:
        """Set the fingerprint of a document, None if it was removed."""
        self.revision += 1
        if fingerprint is None:
            self._fingerprints.pop(path, None)
        else:
            self._fingerprints[path] = fingerprint

    async def ingest(self, document: SearchDocument, info: FileInfo) -> IngestResult:
        """Index the current content of the document; a document that no longer exists is removed."""
        for _ in range(_MAX_TRIES):
            try:
                data = (await self._files.read(document.path)).data
            except FileMissing:
                await self.forget([document.path])
                return IngestResult(changed=True)
            except StorageError as error:
                return IngestResult(failed=str(error))
            read = await anyio.to_thread.run_sync(
                _compare_with_known, document, info, data, self._fingerprints.get(document.path)
            )
            try:
                written = await self._write(read)
            except (ValueError, OverflowError, RecursionError) as error:
                return IngestResult(failed=f"{document.path}: {error}")
            if written:
                self._set_fingerprint(document.path, read.fingerprint)
                return IngestResult(changed=not read.is_unchanged)
            await self._reload_fingerprints()
        return IngestResult(failed=f"{document.path} changes faster than it can be read.")

    async def _write(self, read: _ReadDocument) -> bool:
        """Write a document that was read; return False if another process wrote it in the meantime."""
        if (
            read.is_unchanged
            and read.previous is not None
            and _file_times(read.fingerprint) == _file_times(read.previous)
        ):
            # an unchanged document that was read again because it was new needs no write
            return True
        if read.base is not None and (read.is_unchanged or is_self_contained(read.document, read.tail)):
            block = AppendedBlock(
                document=read.document,
                data=read.tail,
                base=read.base,
                fingerprint=read.fingerprint,
                redactor=self._redactor,
            )
            return await self._database.run_exclusive(block.write_rows) is not None
        kept: list[KeptRow] = []
        if read.previous is not None and read.document.document_type in SORTS_WITH_ENTRIES:
            known = await self._database.read(partial(load_entry_digests, path=read.document.path))
            rows, kept = await anyio.to_thread.run_sync(
                build_changed_rows, read.document, read.data, self._redactor, known
            )
        else:
            rows = await anyio.to_thread.run_sync(build_rows, read.document, read.data, self._redactor)
        return await self._database.write(
            lambda connection: put_document(connection, read.previous, read.fingerprint, rows, kept)
        )

    async def ingest_block(self, document: SearchDocument, offset: int, data: bytes) -> bool:
        """Index a block appended to the indexed part; return False if the whole document has to be read.

        Changes of other processes are loaded only if the known end of the document does not match.
        """
        if not is_self_contained(document, data):
            return False
        if await self._ingest_block(document, offset, data):
            return True
        await self._reload_fingerprints()
        return await self._ingest_block(document, offset, data)

    async def _ingest_block(self, document: SearchDocument, offset: int, data: bytes) -> bool:
        base = self._fingerprints.get(document.path)
        if base is None or base.size != offset:
            return False
        known = extend_fingerprint(base, data, await self._files.info(document.path))
        block = AppendedBlock(document=document, data=data, base=base, fingerprint=known, redactor=self._redactor)
        return self._set_end(await self._database.run_exclusive(block.write_rows))

    async def append(self, document: SearchDocument, append: PendingAppend) -> bool:
        """Append to a document and index the block in one call in a thread; return False if it is not indexed.

        This requires a known end of the document; writes of others are detected by the offset of the bytes.
        """
        base, data = self._fingerprints.get(document.path), append.data
        if base is None or not is_self_contained(document, data):
            return False
        tail = self._last_end.tail if self._last_end is not None and self._last_end.fingerprint is base else None

        def act(turn: ExclusiveAccess) -> DocumentEnd | None:
            appended = append.execute()
            # an early exit: with bytes of others before them, the file has another size than the fingerprint would say,
            # so the next search would read the whole document and mend its rows
            if appended is None or appended.offset != base.size:
                return None
            known = extend_fingerprint(base, data, appended.info)
            return AppendedBlock(
                document=document, data=data, base=base, fingerprint=known, redactor=self._redactor, tail=tail
            ).write_rows(turn)

        return self._set_end(await self._database.run_exclusive(act))

    def _set_end(self, end: DocumentEnd | None) -> bool:
        """Store the new end of a document; return False if it was not written."""
        if end is not None:
            self._last_end = end
            self._set_fingerprint(end.fingerprint.path, end.fingerprint)
        return end is not None

    async def forget(self, paths: Iterable[str]) -> None:
        """Remove deleted documents, but not those that another process has just created again."""
        for path in paths:
            if await self._files.info(path) is None:
                before = self._fingerprints.get(path)
                self._set_fingerprint(path, None)
                await self._database.write(partial(remove_document, path=path, before=before))


def _compare_with_known(
    document: SearchDocument, info: FileInfo, data: bytes, before: DocumentFingerprint | None
) -> _ReadDocument:
    """Determine which part of a document is indexed already."""
    start = Checksum()
    base = None
    if before is not None and before.size <= len(data):
        head = Checksum().extend(data[: before.size])
        ends_a_line = not before.size or data[before.size - 1 : before.size] == b"\n"
        if head == before.checksum and (ends_a_line or before.size == len(data)):
            base, start = before, head
    rest = data[base.size :] if base else data
    known = DocumentFingerprint(
        path=document.path,
        document_type=document.document_type,
        size=len(data),
        # the file grew between its listing and its reading
        modified_ns=info.modified_ns if info.size == len(data) else 0,
        checked_ns=time.time_ns(),
        checksum=start.extend(rest),
        lines=(base.lines if base else 0) + count_line_ends(rest),
        changed_ns=info.changed_ns,
    )
    return _ReadDocument(
        document=document,
        data=data,
        fingerprint=known,
        previous=before,
        base=base,
        is_unchanged=base is not None and not rest,
    )


def _file_times(fingerprint: DocumentFingerprint) -> tuple[int, int]:
    return fingerprint.modified_ns, fingerprint.changed_ns


_DataVersion: TypeAlias = tuple[Connection | None, int]
"""A connection and what it saw of the writes of others. Numbers of two connections to one file say nothing together."""


def _fingerprints_since(
    connection: Connection, version: _DataVersion
) -> tuple[_DataVersion, dict[str, DocumentFingerprint] | None]:
    """Return the data version of other processes, and the fingerprints if it differs from `version`."""
    current = _read_data_version(connection)
    return current, None if current == version else load_fingerprints(connection)


def _read_data_version(connection: Connection) -> _DataVersion:
    return connection, connection.execute("PRAGMA data_version").fetchone()[0]
