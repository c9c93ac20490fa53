"""Backends opened for a test, without what a program adds: no settings, no marker, no registry."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from hand_clock import HandClock
from ricordo.clock import MonotonicIds
from ricordo.events import Emitter
from ricordo.guard import Redactor
from ricordo.scope import Scope
from ricordo.search.contract import SearchIndex
from ricordo.storage import Disk, FileStore
from ricordo.storage.local import LocalFiles
from ricordo.stores import Backend, OpenRequest, StoreParts
from ricordo.stores.addresses import StoreFactory, parse_address
from ricordo.stores.fanout import open_fanout
from ricordo.stores.in_memory import open_mock, open_none, open_ring
from ricordo.stores.json_document import open_json
from ricordo.stores.jsonl import open_jsonl
from ricordo.stores.kv import open_kv

__all__ = ["SHOP", "Shelves", "store_parts"]

SHOP = Scope(user="me", project="shop")

_FACTORIES: dict[str, StoreFactory] = {
    "fanout": open_fanout,
    "json": open_json,
    "jsonl": open_jsonl,
    "kv": open_kv,
    "mock": open_mock,
    "none": open_none,
    "ring": open_ring,
}
_PLACELESS = {"fanout", "mock", "none", "ring"}


def store_parts(clock: HandClock | None = None) -> StoreParts:
    """Return what a backend needs besides its place, with a clock that stands still."""
    clock = clock or HandClock()
    return StoreParts(redactor=Redactor(bytes(32)), clock=clock, ids=MonotonicIds(clock), emitter=Emitter(clock, ()))


@dataclass(frozen=True, kw_only=True)
class Shelves:
    """Opens addresses for one scope; places are below `folder`."""

    folder: Path
    scope: Scope = SHOP
    disk: Disk = field(default_factory=Disk)
    clock: HandClock = field(default_factory=HandClock)
    parts: StoreParts | None = None

    def open(self, text: str) -> AbstractAsyncContextManager[Backend]:
        address = parse_address(text)
        opening = OpenRequest(
            address=address,
            scope=self.scope,
            parts=self.parts or store_parts(self.clock),
            open_files=self._files,
            open_another=self.open,
            open_index=_no_index,
            folder=None if address.scheme in _PLACELESS else self.folder / address.location,
        )
        return _FACTORIES[address.scheme](opening)

    @asynccontextmanager
    async def _files(self, folder: Path) -> AsyncIterator[FileStore]:
        yield LocalFiles(folder, disk=self.disk)


async def _no_index(path: Path, files: FileStore) -> SearchIndex:
    """Fail: the stores that are opened here have none."""
    raise AssertionError((path, files))
