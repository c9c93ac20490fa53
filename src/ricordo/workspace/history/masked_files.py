"""A file store that masks forgotten statements in transcripts, states and journals, for reading by a model.

Invariant: each line keeps its length, so offsets match the file on disk, which is not changed.
"""

from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import partial

from anyio.to_thread import run_sync

from ricordo.errors import InvalidMessage
from ricordo.messages import codec
from ricordo.messages.json_text import dumps, loads
from ricordo.storage import AppendedRange, FileInfo, FileStore, StoredFile
from ricordo.workspace.history.tombstones import ForgottenStatements, read_tombstones
from ricordo.workspace.layout import TOMBSTONES, parse_record_path, parse_transcript_path

__all__ = ["MaskedFiles"]


_CACHE_SIZE = 4


class MaskedFiles:
    """Forwards calls to `files`, and masks forgotten statements when records are read; `key` is the root's."""

    def __init__(self, files: FileStore, key: bytes) -> None:
        """Wrap `files`."""
        self._files = files
        self._key = key
        self._cache: dict[tuple[str, str, str], bytes] = {}

    async def read(self, path: str) -> StoredFile:
        """Return the whole file, with the version of the file on disk. Raises `FileMissing`."""
        stored = await self._files.read(path)
        session = _find_session(path)
        if session is None:
            return stored
        tombstones = await read_tombstones(self._files)
        forgotten = ForgottenStatements.from_tombstones(tombstones, self._key)
        if not any(place == session for place, _ in forgotten.messages):
            return stored
        key = path, stored.version, tombstones.version
        if key not in self._cache:
            while len(self._cache) >= _CACHE_SIZE:
                del self._cache[next(iter(self._cache))]
            self._cache[key] = await run_sync(
                partial(_mask_record, stored.data, forgotten, session, messages=parse_transcript_path(path) is not None)
            )
        return replace(stored, data=self._cache[key])

    async def read_from(self, path: str, offset: int, length: int | None = None) -> bytes:
        """Return up to `length` bytes from `offset` on. Raises `FileMissing`."""
        if _find_session(path) is None or await self._files.info(TOMBSTONES) is None:
            return await self._files.read_from(path, offset, length)
        data = (await self.read(path)).data
        return data[offset:] if length is None else data[offset : offset + length]

    async def info(self, path: str) -> FileInfo | None:
        """Return the metadata of the file."""
        return await self._files.info(path)

    async def append(self, path: str, data: bytes, *, header: bytes = b"") -> AppendedRange:
        """Append to the file."""
        return await self._files.append(path, data, header=header)

    async def create(self, path: str, data: bytes) -> str:
        """Create the file. Raises `AlreadyExists`."""
        return await self._files.create(path, data)

    async def replace(self, path: str, data: bytes, *, expected: str) -> str:
        """Replace the file. Raises `VersionConflict`."""
        return await self._files.replace(path, data, expected=expected)

    async def delete(self, path: str, *, expected: str | None = None) -> None:
        """Delete the file. Raises `FileMissing`, `VersionConflict`."""
        await self._files.delete(path, expected=expected)

    async def list_unreadable(self, prefix: str = "") -> tuple[str, ...]:
        """Return the unreadable folders."""
        return await self._files.list_unreadable(prefix)

    async def list(self, prefix: str = "") -> list[FileInfo]:
        """Return the files below `prefix`."""
        return await self._files.list(prefix)

    def lock(self, name: str) -> AbstractAsyncContextManager[None]:
        """Hold the lock `name`."""
        return self._files.lock(name)


def _find_session(path: str) -> str | None:
    """Return the session of a record; None for any other file."""
    record = parse_record_path(path.lstrip("/"))
    return record.session if record and record.kind != "tasks" and not record.is_set_aside else None


def _mask_record(data: bytes, forgotten: ForgottenStatements, session: str, *, messages: bool) -> bytes:
    return b"\n".join(_mask_line(line, forgotten, session, messages=messages) for line in data.split(b"\n"))


def _mask_line(line: bytes, forgotten: ForgottenStatements, session: str, *, messages: bool) -> bytes:
    try:
        if messages:
            message = codec.decode_message(line)
            masked = forgotten.mask_message(message, session)
            rest = line if masked == message else codec.encode_message(masked)
        else:
            value = loads(line)
            masked_value = forgotten.mask_json(value)
            rest = line if masked_value == value else dumps(masked_value).encode()
    except InvalidMessage:
        return line
    rest = rest.rstrip(b"\n")
    return rest.ljust(len(line)) if len(rest) <= len(line) else b" " * len(line)
