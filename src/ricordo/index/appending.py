"""How what is appended comes into an index: with the append in one trip to a thread where it can, else after it."""

from abc import ABC, abstractmethod

import anyio

from ricordo.database.sqlite import Database
from ricordo.files.contract import AppendedRange, SupportsBlockingAppend, FileStore
from ricordo.index.blocks import PendingAppend
from ricordo.index.documents import SearchDocument, classify_document
from ricordo.index.index_file import CacheDatabase
from ricordo.index.sync import Ingester

__all__ = ["AppendMixin"]


class AppendMixin(ABC):
    """The part of an index that takes in what is appended."""

    _files: FileStore
    _file: CacheDatabase
    _folder: str
    _ingest_lock: anyio.Lock
    _change_event: anyio.Event

    async def append(self, path: str, data: bytes, *, header: bytes = b"") -> AppendedRange:
        """Append to a file as `FileStore.append` does, durably, and so that the next search finds it.

        Raises what that raises; trouble of the index shows in `freshness`.
        """
        document = classify_document(path, self._folder)
        appended, is_in = None, None
        if document is not None and data and isinstance(self._files, SupportsBlockingAppend):
            append = PendingAppend(self._files, path, data, header=header)
            async with self._ingest_lock:
                is_in = await self._file.run(lambda database: self._ingester_for(database).append(document, append))
            appended = append.result()
        if appended is None:
            appended, is_in = await self._files.append(path, data, header=header), False
        if is_in is False:
            await self.index_appended(path, appended.offset, data)
        self._change_event.set()
        return appended

    async def index_appended(self, path: str, offset: int, data: bytes) -> None:
        """Take in the block `data` that was just appended to `path` at `offset`, so that the next search finds it."""
        document = classify_document(path, self._folder)
        if document is None or not data:
            return
        async with self._ingest_lock:
            await self._file.run(lambda database: self._ingest_block(database, document, offset, data))
        self._change_event.set()

    async def _ingest_block(self, database: Database, document: SearchDocument, offset: int, data: bytes) -> None:
        intake = self._ingester_for(database)
        if not await intake.ingest_block(document, offset, data):
            info = await self._files.info(document.path)
            if info is not None:
                await intake.ingest(document, info)

    @abstractmethod
    def _ingester_for(self, database: Database) -> Ingester: ...
