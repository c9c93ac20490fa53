"""Taking documents in: what changed is read, cut into chunks off the event loop, and written in one transaction each.

A document whose beginning is as it was gets only its tail read in. A document that can't be read keeps the rows it had.
A kill between two documents leaves an index that is sound and behind, and the next search brings it up to date.
"""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

import anyio.to_thread

from ricordo.database.sqlite import Connection, Database, Turn
from ricordo.errors import FileMissing, StorageError
from ricordo.files.contract import FileInfo, FileStore
from ricordo.guard import Redactor
from ricordo.index.blocks import Append, Block, End, with_block
from ricordo.index.chunking import reads_alone, rows_of
from ricordo.index.documents import Document
from ricordo.index.plan import Checksum, Known
from ricordo.index.tables import known_documents, put_document, remove_document
from ricordo.workspace.document_text import count_line_ends

__all__ = ["Intake", "Outcome", "Progress"]

_TRIES = 20


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of taking a document in: whether it had changed, or why it could not be read."""

    changed: bool = False
    failed: str = ""


@dataclass(kw_only=True)
class Progress:
    """What taking in did so far; `pending` is what it did not get to or could not read."""

    indexed: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    pending: list[tuple[Document, FileInfo]] = field(default_factory=list)
    gone: tuple[str, ...] = ()
    unchanged: int = 0
    unsettled: bool = False

    @property
    def unread(self) -> list[tuple[Document, FileInfo]]:
        """What was not got to; a document that can't be read is answered by the rows it had."""
        return [pair for pair in self.pending if pair[0].path not in self.failed]


@dataclass(frozen=True, kw_only=True)
class _Read:
    """A document that was read: what will be known of it, what was, and the same if its bytes still begin with that."""

    document: Document
    data: bytes
    known: Known
    before: Known | None
    base: Known | None
    same: bool = False

    @property
    def tail(self) -> bytes:
        """What follows the part that is known."""
        return self.data[self.base.size :] if self.base else self.data


class Intake:
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
        self._known: dict[str, Known] = {}
        self._version = -1
        self._end: End | None = None

    async def known(self) -> Mapping[str, Known]:
        """Return what is known of each document, also when another process took it in."""
        version, loaded = await self._database.read(lambda connection: _known_since(connection, self._version))
        if loaded is not None:
            self._known, self._version = loaded, version
            self.revision += 1
        return self._known

    async def _known_anew(self) -> None:
        """Ask for all that is stored, also for what this process wrote and, being cancelled, never noted."""
        self._version = -1
        await self.known()

    def is_current(self, connection: Connection) -> bool:
        """Tell whether no other process wrote since `known` was asked for; to be called within a read."""
        return _version(connection) == self._version

    def _keep(self, path: str, known: Known | None) -> None:
        """Note what is stored of a document now, None when it is gone."""
        self.revision += 1
        if known is None:
            self._known.pop(path, None)
        else:
            self._known[path] = known

    async def take(self, document: Document, info: FileInfo) -> Outcome:
        """Take in the document as it is now; one that is gone by now is forgotten."""
        for _ in range(_TRIES):
            try:
                data = (await self._files.read(document.path)).data
            except FileMissing:
                await self.forget([document.path])
                return Outcome(changed=True)
            except StorageError as error:
                return Outcome(failed=str(error))
            read = await anyio.to_thread.run_sync(_compare, document, info, data, self._known.get(document.path))
            try:
                written = await self._write(read)
            except (ValueError, OverflowError, RecursionError) as error:
                return Outcome(failed=f"{document.path}: {error}")
            if written:
                self._keep(document.path, read.known)
                return Outcome(changed=not read.same)
            await self._known_anew()
        return Outcome(failed=f"{document.path} changes faster than it can be read.")

    async def _write(self, read: _Read) -> bool:
        """Write what was read; False when another process wrote the document since."""
        if read.same and read.before is not None and _times(read.known) == _times(read.before):
            # looked at again as it had been written a moment ago: that it had not changed need not be stored
            return True
        if read.base is not None and (read.same or reads_alone(read.document, read.tail)):
            block = Block(
                document=read.document, data=read.tail, base=read.base, known=read.known, redactor=self._redactor
            )
            return await self._database.in_turn(block.take_in) is not None
        rows = await anyio.to_thread.run_sync(rows_of, read.document, read.data, self._redactor)
        return await self._database.write(lambda connection: put_document(connection, read.before, read.known, rows))

    async def take_block(self, document: Document, offset: int, data: bytes) -> bool:
        """Take in a block that was appended to the part that is known; False when the whole must be looked at.

        What other processes took in is only asked for when this one knows another end of the document.
        """
        if not reads_alone(document, data):
            return False
        if await self._take_block(document, offset, data):
            return True
        await self._known_anew()
        return await self._take_block(document, offset, data)

    async def _take_block(self, document: Document, offset: int, data: bytes) -> bool:
        base = self._known.get(document.path)
        if base is None or base.size != offset:
            return False
        known = with_block(base, data, await self._files.info(document.path))
        block = Block(document=document, data=data, base=base, known=known, redactor=self._redactor)
        return self._ends(await self._database.in_turn(block.take_in))

    async def append(self, document: Document, append: Append) -> bool:
        """Make an append to a document and take it in, in one trip to a thread; False when it is not taken in.

        It is made where the end of the document is known; who else wrote there is seen from where the bytes lie.
        """
        base, data = self._known.get(document.path), append.data
        if base is None or not reads_alone(document, data):
            return False
        tail = self._end.tail if self._end is not None and self._end.known is base else None

        def act(turn: Turn) -> End | None:
            appended = append.make()
            if appended is None or appended.offset != base.size:
                return None
            known = with_block(base, data, appended.info)
            return Block(
                document=document, data=data, base=base, known=known, redactor=self._redactor, tail=tail
            ).take_in(turn)

        return self._ends(await self._database.in_turn(act))

    def _ends(self, end: End | None) -> bool:
        """Note how a document ends by now, if that was written."""
        if end is not None:
            self._end = end
            self._keep(end.known.path, end.known)
        return end is not None

    async def forget(self, paths: Iterable[str]) -> None:
        """Remove documents that are gone; one that another process has just created is not."""
        for path in paths:
            if await self._files.info(path) is None:
                before = self._known.get(path)
                self._keep(path, None)
                await self._database.write(partial(remove_document, path=path, before=before))


def _compare(document: Document, info: FileInfo, data: bytes, before: Known | None) -> _Read:
    """Find out which part of a document is known already."""
    start = Checksum()
    base = None
    if before is not None and before.size <= len(data):
        head = Checksum().after(data[: before.size])
        ends_a_line = not before.size or data[before.size - 1 : before.size] == b"\n"
        if head == before.checksum and (ends_a_line or before.size == len(data)):
            base, start = before, head
    rest = data[base.size :] if base else data
    known = Known(
        path=document.path,
        sort=document.sort,
        size=len(data),
        # the file grew between its listing and its reading
        modified_ns=info.modified_ns if info.size == len(data) else 0,
        checked_ns=time.time_ns(),
        checksum=start.after(rest),
        lines=(base.lines if base else 0) + count_line_ends(rest),
        changed_ns=info.changed_ns,
    )
    return _Read(
        document=document, data=data, known=known, before=before, base=base, same=base is not None and not rest
    )


def _times(known: Known) -> tuple[int, int]:
    return known.modified_ns, known.changed_ns


def _known_since(connection: Connection, version: int) -> tuple[int, dict[str, Known] | None]:
    """Return the version of the data as other processes wrote it, and what is known when it is not `version`."""
    current = _version(connection)
    return current, None if current == version else known_documents(connection)


def _version(connection: Connection) -> int:
    version: int = connection.execute("PRAGMA data_version").fetchone()[0]
    return version
