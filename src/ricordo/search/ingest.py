"""Ingestion: changed documents are read, chunked off the event loop, and written in one transaction each.

A document whose beginning is unchanged gets only its tail read. One that can't be read keeps its rows. An append to a
file and the rows of what was appended take one trip to a thread; the append is made first and at most once. A kill
leaves an index that is sound and behind.
"""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

import anyio.to_thread

from ricordo.errors import FileMissing, RicordoError, StorageBusy, StorageError
from ricordo.guard import Redactor
from ricordo.search.chunking import TailContext, build_rows, build_tail_rows, following_terms, is_self_contained
from ricordo.search.documents import Checksum, DocumentFingerprint, SearchDocument
from ricordo.search.tables import (
    advance_tail,
    append_document,
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
"""How long other writers of the file are waited for while nobody else can search."""


@dataclass(frozen=True, kw_only=True)
class DocumentEnd:
    """What is known of a document, and what a block that is appended to it would follow."""

    fingerprint: DocumentFingerprint
    tail: TailContext


@dataclass(frozen=True, kw_only=True)
class AppendedBlock:
    """The bytes `data` that follow the part `base` of a document, and what is `fingerprint` of it with them.

    `tail` is what they follow, None where that is still to be asked for; `redactor` takes secrets out.
    """

    document: SearchDocument
    data: bytes
    base: DocumentFingerprint
    fingerprint: DocumentFingerprint
    redactor: Redactor
    tail: TailContext | None = None

    def write_rows(self, turn: ExclusiveAccess) -> DocumentEnd | None:
        """Write the rows of the block; None, and nothing done, when what is stored is not `base` any more."""
        tail = self.tail or turn.read(lambda connection: read_tail(connection, self.base))
        # they are cut before the transaction begins: other processes wait for its end
        rows = build_tail_rows(self.document, self.data, tail, self.redactor) if self.data else []
        following = following_terms(rows) if self.document.sort == "transcript" else ""
        if not turn.write(lambda connection: append_document(connection, self.base, self.fingerprint, rows, following)):
            return None
        return DocumentEnd(fingerprint=self.fingerprint, tail=advance_tail(rows, tail, self.fingerprint))


class PendingAppend:
    """An append that is made at most once; what comes of it is kept for whoever asked for it."""

    def __init__(self, files: SupportsBlockingAppend, path: str, data: bytes, *, header: bytes = b"") -> None:
        """Prepare to append `data` to the file at `path`, which is created with `header` if need be."""
        self.data = data
        self._files = files
        self._path = path
        self._header = header
        self._appended: AppendedRange | None = None
        self._error: RicordoError | None = None

    def execute(self) -> AppendedRange | None:
        """Append, and return where the bytes lie; None when they could not be appended. It blocks on the disk."""
        try:
            self._appended = self._files.append_blocking(
                self._path, self.data, header=self._header, busy_seconds=_BUSY_SECONDS
            )
        except RicordoError as error:
            self._error = error
        return self._appended

    def result(self) -> AppendedRange | None:
        """Return where the bytes lie, None when they are still to be appended. Raises what forbade it."""
        if self._error is not None and not isinstance(self._error, StorageBusy):
            raise self._error
        return self._appended


def extend_fingerprint(base: DocumentFingerprint, data: bytes, info: FileInfo | None) -> DocumentFingerprint:
    """Return what is known of a document with `data` at its end, which is `info` by now."""
    size = base.size + len(data)
    # when more than this block was appended, the time of a part is not that of the whole
    modified_ns = info.modified_ns if info and info.size == size else 0
    return DocumentFingerprint(
        path=base.path,
        sort=base.sort,
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
    """What came of taking a document in: whether it had changed, or why it could not be read."""

    changed: bool = False
    failed: str = ""


@dataclass(kw_only=True)
class SyncProgress:
    """What taking in did so far; `pending` is what it did not get to or could not read."""

    indexed: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    pending: list[tuple[SearchDocument, FileInfo]] = field(default_factory=list)
    removed: tuple[str, ...] = ()
    unchanged: int = 0
    has_changes: bool = False

    @property
    def unread_documents(self) -> list[tuple[SearchDocument, FileInfo]]:
        """What was not got to; a document that can't be read is answered by the rows it had."""
        return [pair for pair in self.pending if pair[0].path not in self.failed]


@dataclass(frozen=True, kw_only=True)
class _ReadDocument:
    """A document that was read: what will be known of it, what was, and the same if its bytes still begin with that."""

    document: SearchDocument
    data: bytes
    fingerprint: DocumentFingerprint
    previous: DocumentFingerprint | None
    base: DocumentFingerprint | None
    is_unchanged: bool = False

    @property
    def tail(self) -> bytes:
        """What follows the part that is known."""
        return self.data[self.base.size :] if self.base else self.data


class Ingester:
    """The way from the files of one workspace into its database.

    A document that can't be read is an outcome; what is raised is trouble with the database. `revision` counts how
    often what is known has changed.
    """

    def __init__(self, database: Database, files: FileStore, redactor: Redactor) -> None:
        """Take documents from `files` into `database`, without the secrets that `redactor` finds."""
        self._redactor = redactor
        self._database = database
        self._files = files
        self.revision = 0
        self._fingerprints: dict[str, DocumentFingerprint] = {}
        self._data_version = -1
        self._last_end: DocumentEnd | None = None

    async def load_fingerprints(self) -> Mapping[str, DocumentFingerprint]:
        """Return what is known of each document, also when another process took it in."""
        version, loaded = await self._database.read(
            lambda connection: _fingerprints_since(connection, self._data_version)
        )
        if loaded is not None:
            self._fingerprints, self._data_version = loaded, version
            self.revision += 1
        return self._fingerprints

    async def _reload_fingerprints(self) -> None:
        """Ask for all that is stored, also for what this process wrote and, being cancelled, never noted."""
        self._data_version = -1
        await self.load_fingerprints()

    def is_current(self, connection: Connection) -> bool:
        """Tell whether no other process wrote since `load_fingerprints` was asked for; to be called within a read."""
        return _read_data_version(connection) == self._data_version

    def _set_fingerprint(self, path: str, known: DocumentFingerprint | None) -> None:
        """Note what is stored of a document now, None when it is gone."""
        self.revision += 1
        if known is None:
            self._fingerprints.pop(path, None)
        else:
            self._fingerprints[path] = known

    async def ingest(self, document: SearchDocument, info: FileInfo) -> IngestResult:
        """Take in the document as it is now; one that is gone by now is forgotten."""
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
        """Write what was read; False when another process wrote the document since."""
        if (
            read.is_unchanged
            and read.previous is not None
            and _file_times(read.fingerprint) == _file_times(read.previous)
        ):
            # looked at again as it had been written a moment ago: that it had not changed need not be stored
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
        rows = await anyio.to_thread.run_sync(build_rows, read.document, read.data, self._redactor)
        return await self._database.write(
            lambda connection: put_document(connection, read.previous, read.fingerprint, rows)
        )

    async def ingest_block(self, document: SearchDocument, offset: int, data: bytes) -> bool:
        """Take in a block that was appended to the part that is known; False when the whole must be looked at.

        What other processes took in is only asked for when this one knows another end of the document.
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
        """Make an append to a document and take it in, in one trip to a thread; False when it is not taken in.

        It is made where the end of the document is known; who else wrote there is seen from where the bytes lie.
        """
        base, data = self._fingerprints.get(document.path), append.data
        if base is None or not is_self_contained(document, data):
            return False
        tail = self._last_end.tail if self._last_end is not None and self._last_end.fingerprint is base else None

        def act(turn: ExclusiveAccess) -> DocumentEnd | None:
            appended = append.execute()
            if appended is None or appended.offset != base.size:
                return None
            known = extend_fingerprint(base, data, appended.info)
            return AppendedBlock(
                document=document, data=data, base=base, fingerprint=known, redactor=self._redactor, tail=tail
            ).write_rows(turn)

        return self._set_end(await self._database.run_exclusive(act))

    def _set_end(self, end: DocumentEnd | None) -> bool:
        """Note how a document ends by now, if that was written."""
        if end is not None:
            self._last_end = end
            self._set_fingerprint(end.fingerprint.path, end.fingerprint)
        return end is not None

    async def forget(self, paths: Iterable[str]) -> None:
        """Remove documents that are gone; one that another process has just created is not."""
        for path in paths:
            if await self._files.info(path) is None:
                before = self._fingerprints.get(path)
                self._set_fingerprint(path, None)
                await self._database.write(partial(remove_document, path=path, before=before))


def _compare_with_known(
    document: SearchDocument, info: FileInfo, data: bytes, before: DocumentFingerprint | None
) -> _ReadDocument:
    """Find out which part of a document is known already."""
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
        sort=document.sort,
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


def _file_times(known: DocumentFingerprint) -> tuple[int, int]:
    return known.modified_ns, known.changed_ns


def _fingerprints_since(connection: Connection, version: int) -> tuple[int, dict[str, DocumentFingerprint] | None]:
    """Return the version of the data as other processes wrote it, and what is known when it is not `version`."""
    current = _read_data_version(connection)
    return current, None if current == version else load_fingerprints(connection)


def _read_data_version(connection: Connection) -> int:
    version: int = connection.execute("PRAGMA data_version").fetchone()[0]
    return version
