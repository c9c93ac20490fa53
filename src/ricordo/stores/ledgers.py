"""Daily ledgers of a simple store: bullets in `memory/2026-11-21.md`, in the same format as a Ricordo root.

An entry is added to the ledger of its day, but never to one before the newest, so the files keep the order of saving
when a clock runs backwards. Invariant: only the folder `memory/` of one owner is ever listed.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import replace
from datetime import UTC, date, datetime
from operator import is_

from ricordo.context.preamble import Preamble
from ricordo.errors import FileMissing, InvalidSetting, StorageError
from ricordo.lazy import dataclass
from ricordo.messages.tokens import Tokens
from ricordo.search.contract import Hit
from ricordo.storage import AppendedRange, FileInfo, FileStore, StoredFile
from ricordo.stores.addresses import Address
from ricordo.stores.base import compose_entries
from ricordo.stores.parsed_files import BulletFile, ParsedFile
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import LocatedEntry
from ricordo.workspace.layout import LEDGERS, WORKSPACE, is_ledger, ledger_date, ledger_path
from ricordo.workspace.ledger import LedgerBlock, resolve_id

__all__ = [
    "DEFAULT_NEWEST",
    "DailyLedgers",
    "WorkspaceView",
    "add_locations",
    "compose_newest",
    "display_path",
    "parse_newest_option",
]


DEFAULT_NEWEST = 20
"""The default for the largest number of entries in a preamble."""
_LONG_FOLDER = f"{LEDGERS}/long/"


@dataclass(frozen=True, kw_only=True)
class WorkspaceView:
    """One folder of `files` presented as the workspace; its path is empty or ends with a slash.

    Only `memory/` is listed.
    """

    files: FileStore
    folder: str

    async def read(self, path: str) -> StoredFile:
        """Return the whole file."""
        return await self.files.read(self.to_real_path(path))

    async def read_from(self, path: str, offset: int, length: int | None = None) -> bytes:
        """Return a part of the file."""
        return await self.files.read_from(self.to_real_path(path), offset, length)

    async def info(self, path: str) -> FileInfo | None:
        """Return the metadata of the file."""
        info = await self.files.info(self.to_real_path(path))
        return replace(info, path=path) if info else None

    async def append(self, path: str, data: bytes, *, header: bytes = b"") -> AppendedRange:
        """Add to the file."""
        return await self.files.append(self.to_real_path(path), data, header=header)

    async def create(self, path: str, data: bytes) -> str:
        """Write a new file."""
        return await self.files.create(self.to_real_path(path), data)

    async def replace(self, path: str, data: bytes, *, expected: str) -> str:
        """Replace the file."""
        return await self.files.replace(self.to_real_path(path), data, expected=expected)

    async def delete(self, path: str, *, expected: str | None = None) -> None:
        """Delete the file."""
        await self.files.delete(self.to_real_path(path), expected=expected)

    async def list_unreadable(self, prefix: str = "") -> tuple[str, ...]:
        """Return the folders that can't be read, among those that are listed."""
        del prefix
        return tuple(
            self.to_workspace_path(path) for path in await self.files.list_unreadable(self.to_real_path(LEDGERS))
        )

    async def list(self, prefix: str = "") -> list[FileInfo]:
        """Return the files of `memory/` below `prefix`."""
        inside = prefix if prefix.startswith(LEDGERS) else LEDGERS
        return [
            replace(info, path=self.to_workspace_path(info.path))
            for info in await self.files.list(self.to_real_path(inside))
        ]

    def lock(self, name: str) -> AbstractAsyncContextManager[None]:
        """Hold a lock of the whole store."""
        return self.files.lock(name)

    def to_real_path(self, path: str) -> str:
        """Return the path in `files` of a path in the workspace."""
        return self.folder + path.removeprefix(f"{WORKSPACE}/")

    def to_workspace_path(self, path: str) -> str:
        """Return the path in the workspace of a path in `files`."""
        return f"{WORKSPACE}/{path.removeprefix(self.folder)}"


@dataclass(frozen=True, kw_only=True)
class _LedgerSnapshot:
    """The parsed `documents` of all files, their entries together, and the indexes of `long` entries among them."""

    documents: tuple[tuple[LocatedEntry, ...], ...]
    located: tuple[LocatedEntry, ...]
    long: tuple[int, ...]

    def is_made_of(self, read: Sequence[tuple[LocatedEntry, ...]]) -> bool:
        """Return whether the snapshot was made from these objects; an unchanged file keeps its cached object."""
        return len(read) == len(self.documents) and all(map(is_, read, self.documents))


class DailyLedgers:
    """The entries of one owner, cached until a file changes."""

    def __init__(self, files: FileStore, folder: str) -> None:
        """Store entries below `folder` of `files`."""
        self.view = WorkspaceView(files=files, folder=folder)
        self._files: dict[str, BulletFile] = {}
        self._long_files: dict[str, ParsedFile[str]] = {}
        self._snapshots: dict[str, _LedgerSnapshot] = {}

    async def append(self, entry: Entry) -> LedgerBlock:
        """Add an entry that has a time, durably, and return the written block. Raises `StorageError`."""
        time = entry.time or datetime.now(UTC)
        newest = max((day for day in map(ledger_date, await self._paths()) if day), default=date.min)
        day = max(time.astimezone().date(), newest)
        appended, data = await self._file(ledger_path(day)).append(entry)
        return LedgerBlock(path=ledger_path(day), data=data, entries=(entry,), offset=appended.offset)

    async def located_entries(self, beginning: str = "") -> list[LocatedEntry]:
        """Return all entries, newest first, each once, long ones complete; files that can't be read are left out.

        `beginning` limits the result to files whose path begins with it, such as `memory/2026`.
        """
        read: list[tuple[LocatedEntry, ...]] = []
        for path in await self._paths():
            if _strip_workspace(path).startswith(beginning):
                with suppress(FileMissing, StorageError):
                    read.append((await self._file(path).read_document()).located)
        snapshot = self._snapshots.get(beginning)
        if snapshot is None or not snapshot.is_made_of(read):
            snapshot = self._snapshots[beginning] = _take_snapshot(read)
        located = [*snapshot.located]
        for place in snapshot.long:
            located[place] = await self._load_long(located[place])
        return located

    async def entries(self) -> list[Entry]:
        """Return all entries, newest first."""
        return [one.entry for one in await self.located_entries()]

    async def forget(self, entry_id: str) -> Entry:
        """Remove an entry from every file that holds it, with the file of a long entry. Raises `EntryNotFound`."""
        located = await self.located_entries()
        full_id = resolve_id([one.entry.id for one in located], entry_id)
        removed = next(one for one in located if one.entry.id == full_id)
        for path in await self._paths():
            if any(one.entry.id == full_id for one in (await self._file(path).read_document()).located):
                await self._file(path).forget(full_id)
        if removed.long_path:
            with suppress(FileMissing):
                await self.view.delete(f"{WORKSPACE}/{removed.long_path}")
        return removed.entry

    async def _paths(self) -> list[str]:
        """Return the files with entries: ledgers first, newest day first, then files without a day."""
        paths = (info.path for info in await self.view.list(LEDGERS))
        return _sort_newest_first(path for path in paths if path.endswith(".md") and not path.startswith(_LONG_FOLDER))

    async def _load_long(self, located: LocatedEntry) -> LocatedEntry:
        path = f"{WORKSPACE}/{located.long_path}"
        long_file = self._long_files.setdefault(path, ParsedFile(self.view, path, _decode))
        try:
            content = await long_file.value()
        except StorageError:
            return located
        return replace(located, entry=replace(located.entry, content=content)) if content else located

    def _file(self, path: str) -> BulletFile:
        if path not in self._files:
            day = path.rpartition("/")[2].removesuffix(".md")
            header = f"# {day}\n\n".encode() if is_ledger(path) else b""
            self._files[path] = BulletFile(self.view, path, header=header, name=self.view.to_real_path(path))
        return self._files[path]


def _take_snapshot(read: Sequence[tuple[LocatedEntry, ...]]) -> _LedgerSnapshot:
    """Return each entry once, newest first; `read` has the entries of each file, the newest file first."""
    by_id: dict[str, LocatedEntry] = {}
    for located in read:
        for one in reversed(located):
            by_id.setdefault(one.entry.id, one)
    entries = tuple(by_id.values())
    long = tuple(place for place, one in enumerate(entries) if one.long_path)
    return _LedgerSnapshot(documents=tuple(read), located=entries, long=long)


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _sort_newest_first(paths: Iterable[str]) -> list[str]:
    return sorted(paths, key=lambda path: (ledger_date(path) or date.min, path), reverse=True)


def parse_newest_option(address: Address) -> int:
    """Return the number of entries in a preamble, as in `?newest=20`. Raises: InvalidSetting if it is below 1."""
    newest = address.options.get("newest", str(DEFAULT_NEWEST))
    if not (newest.isascii() and newest.isdigit()) or int(newest[:20]) < 1:
        raise InvalidSetting(f"A store {address.scheme} shows a whole number of entries from 1 up, not {newest!r}.")
    return int(newest[:20])


def add_locations(hits: Iterable[Hit], located: Mapping[str, LocatedEntry]) -> list[Hit]:
    """Return the hits with the locations of their entries."""
    return [
        replace(hit, path=display_path(one), line_number=one.line, end_line=one.end_line)
        for hit in hits
        if (one := located.get(hit.entry.id))
    ]


def display_path(one: LocatedEntry) -> str:
    """Return the path of an entry for display, relative to the folder of its owner."""
    return _strip_workspace(one.path)


def compose_newest(entries: Sequence[Entry], newest: int, budget: Tokens | None) -> Preamble:
    """Return the preamble of the first `newest` of these entries that hold, as far as they fit."""
    replaced = {entry.supersedes for entry in entries if entry.supersedes}
    active = [entry for entry in entries if entry.state == "active" and entry.id not in replaced]
    return compose_entries(active[:newest], budget, source="memory/", unread=len(active[newest:]))


def _strip_workspace(path: str) -> str:
    return path.removeprefix(f"{WORKSPACE}/")
