"""A file store that counts what is read and lets a test act between two calls."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

from ricordo.storage import AppendedRange, FileInfo, FileStore, StoredFile

__all__ = ["WatchedFiles"]


class WatchedFiles:
    """Passes every call on to `inner`; `before` is awaited first with the verb and the path."""

    def __init__(self, inner: FileStore, before: Callable[[str, str], Awaitable[None]] | None = None) -> None:
        """Watch `inner`."""
        self.bytes_read = 0
        self.bytes_written = 0
        self._inner = inner
        self._before = before

    async def _enter(self, verb: str, path: str) -> None:
        if self._before is not None:
            await self._before(verb, path)

    async def read(self, path: str) -> StoredFile:
        await self._enter("read", path)
        stored = await self._inner.read(path)
        self.bytes_read += len(stored.data)
        return stored

    async def read_from(self, path: str, offset: int, length: int | None = None) -> bytes:
        await self._enter("read_from", path)
        data = await self._inner.read_from(path, offset, length)
        self.bytes_read += len(data)
        return data

    async def info(self, path: str) -> FileInfo | None:
        await self._enter("info", path)
        return await self._inner.info(path)

    async def append(self, path: str, data: bytes, *, header: bytes = b"") -> AppendedRange:
        await self._enter("append", path)
        self.bytes_written += len(data)
        return await self._inner.append(path, data, header=header)

    async def create(self, path: str, data: bytes) -> str:
        await self._enter("create", path)
        self.bytes_written += len(data)
        return await self._inner.create(path, data)

    async def replace(self, path: str, data: bytes, *, expected: str) -> str:
        await self._enter("replace", path)
        self.bytes_written += len(data)
        return await self._inner.replace(path, data, expected=expected)

    async def delete(self, path: str, *, expected: str | None = None) -> None:
        await self._enter("delete", path)
        await self._inner.delete(path, expected=expected)

    async def list_unreadable(self, prefix: str = "") -> tuple[str, ...]:
        return await self._inner.list_unreadable(prefix)

    async def list(self, prefix: str = "") -> list[FileInfo]:
        return await self._inner.list(prefix)

    def lock(self, name: str) -> AbstractAsyncContextManager[None]:
        return self._inner.lock(name)
