"""How what is appended comes into an index: with the append in one trip to a thread where it can, else after it."""

from abc import ABC, abstractmethod

import anyio

from ricordo.database.sqlite import Database
from ricordo.files.contract import Appended, AppendsHere, FileStore
from ricordo.index.blocks import Append
from ricordo.index.documents import Document, document_of
from ricordo.index.index_file import IndexFile
from ricordo.index.sync import Intake

__all__ = ["Appending"]


class Appending(ABC):
    """The part of an index that takes in what is appended."""

    _files: FileStore
    _file: IndexFile
    _folder: str
    _taking: anyio.Lock
    _changed: anyio.Event

    async def append(self, path: str, data: bytes, *, header: bytes = b"") -> Appended:
        """Append to a file as `FileStore.append` does, durably, and so that the next search finds it.

        Raises what that raises; trouble of the index shows in `freshness`.
        """
        document = document_of(path, self._folder)
        appended, is_in = None, None
        if document is not None and data and isinstance(self._files, AppendsHere):
            append = Append(self._files, path, data, header=header)
            async with self._taking:
                is_in = await self._file.use(lambda database: self._intake_of(database).append(document, append))
            appended = append.outcome()
        if appended is None:
            appended, is_in = await self._files.append(path, data, header=header), False
        if is_in is False:
            await self.index_appended(path, appended.offset, data)
        self._changed.set()
        return appended

    async def index_appended(self, path: str, offset: int, data: bytes) -> None:
        """Take in the block `data` that was just appended to `path` at `offset`, so that the next search finds it."""
        document = document_of(path, self._folder)
        if document is None or not data:
            return
        async with self._taking:
            await self._file.use(lambda database: self._take_in(database, document, offset, data))
        self._changed.set()

    async def _take_in(self, database: Database, document: Document, offset: int, data: bytes) -> None:
        intake = self._intake_of(database)
        if not await intake.take_block(document, offset, data):
            info = await self._files.info(document.path)
            if info is not None:
                await intake.take(document, info)

    @abstractmethod
    def _intake_of(self, database: Database) -> Intake: ...
