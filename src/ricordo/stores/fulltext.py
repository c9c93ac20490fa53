"""The full-text store: entries in daily files, ranked only by BM25. The preamble shows the newest entries.

Invariant: the index is a cache next to the files. If it is deleted or set aside as broken, it is rebuilt from them with
the same results. If it can't be used, the files are searched.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

import anyio
from anyio.to_thread import run_sync

from ricordo.concurrency import run_even_if_cancelled
from ricordo.context.preamble import Preamble
from ricordo.errors import InvalidSetting
from ricordo.messages.tokens import Tokens
from ricordo.scope import Scope
from ricordo.search.contract import MEMORY_DOCUMENT_TYPES, Hit, Match, Query, SearchIndex
from ricordo.storage import FileStore
from ricordo.stores.addresses import OpenRequest
from ricordo.stores.base import (
    FileTombstones,
    ForgettingDriver,
    StoreFolder,
    StoreTombstones,
    match_entries,
    open_folder,
    read_options,
)
from ricordo.stores.contract import Backend, Driver, StoreParts
from ricordo.stores.ledgers import (
    DEFAULT_NEWEST,
    DailyLedgers,
    add_locations,
    compose_newest,
    display_path,
    parse_newest_option,
)
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import LocatedEntry
from ricordo.workspace.layout import WORKSPACE

__all__ = ["FulltextStore", "open_fulltext"]


_INDEX_NAME = "memory_fulltext.db"
_EXTRA_MATCHES = 50
"""How many matches are requested beyond the limit, since some are pieces of one entry or were superseded."""
_OpenIndex: TypeAlias = Callable[[Path, FileStore], Awaitable[SearchIndex]]


class FulltextStore(Backend):
    """Entries in daily files below `memory/`, and their index."""

    def __init__(
        self, parts: StoreParts, home: StoreFolder, folder: Path, index: _OpenIndex, *, newest: int = DEFAULT_NEWEST
    ) -> None:
        """Store each owner's entries in their folder of `home`, and the indexes that `index` opens below `folder`.

        `newest` is the largest number of entries in the preamble.
        """
        super().__init__(parts)
        self._home = home
        self._folder = folder
        self._open_index = index
        self._newest = newest
        self._drivers: dict[str, _FulltextDriver] = {}

    async def close(self) -> None:
        """Close the indexes; a second call does nothing."""
        for driver in self._drivers.values():
            await driver.close_index()

    def _driver(self, scope: Scope) -> Driver:
        folder = self._home.folder_for(scope)
        if folder not in self._drivers:
            ledgers = DailyLedgers(self._home.files, folder)
            index = partial(self._open_index, self._folder / f"{folder}{_INDEX_NAME}", ledgers.view)
            tombstones = FileTombstones(self._home, folder, self._parts)
            self._drivers[folder] = _FulltextDriver(ledgers, index, self._newest, tombstones)
        return self._drivers[folder]


class _FulltextDriver(ForgettingDriver):
    path = "memory/"

    def __init__(
        self,
        ledgers: DailyLedgers,
        index: Callable[[], Awaitable[SearchIndex]],
        newest: int,
        tombstones: StoreTombstones,
    ) -> None:
        super().__init__(tombstones)
        self._ledgers = ledgers
        self._open_index = index
        self._newest = newest
        self._open_lock = anyio.Lock()
        self._search_index: SearchIndex | None = None

    async def write(self, entry: Entry) -> Entry:
        block = await self._ledgers.append(entry)
        await (await self._ensure_index()).index_appended(block.path, block.offset, block.data)
        return entry

    async def entries(self) -> list[Entry]:
        return await self._ledgers.entries()

    async def find(self, query: Query, limit: int) -> list[Hit]:
        """Return at most `limit` hits, highest score first."""
        located = {one.entry.id: one for one in await self._ledgers.located_entries(query.path)}
        if not query.text.strip():
            entries = [one.entry for one in located.values()]
            return add_locations(await run_sync(match_entries, entries, replace(query, path=""), limit), located)
        if not set(query.document_types) & set(MEMORY_DOCUMENT_TYPES):
            return []
        memory_query = replace(query, document_types=MEMORY_DOCUMENT_TYPES, path=f"{WORKSPACE}/{query.path}")
        matches = await (await self._ensure_index()).search(memory_query, 2 * limit + _EXTRA_MATCHES)
        return (await run_sync(_create_hits, matches, located))[:limit]

    async def preamble(self, budget: Tokens | None) -> Preamble:
        return await run_sync(compose_newest, await self.entries(), self._newest, budget)

    async def remove(self, entry: Entry) -> None:
        await self._ledgers.forget(entry.id)
        await (await self._ensure_index()).refresh()

    async def close_index(self) -> None:
        index, self._search_index = self._search_index, None
        if index:
            await index.close()

    async def _ensure_index(self) -> SearchIndex:
        async with self._open_lock:
            if self._search_index is None:
                self._search_index = await self._open_index()
            return self._search_index


@asynccontextmanager
async def open_fulltext(request: OpenRequest) -> AsyncIterator[Backend]:
    """Open the store of a folder: `fulltext:./notes?newest=20`. Raises: InvalidSetting for a number below 1."""
    read_options(request.address, "newest")
    newest = parse_newest_option(request.address)
    async with open_folder(request) as store_folder:
        if request.folder is None or request.open_index is None:
            raise InvalidSetting("A full-text store needs an index, which `open_store` gives it.")
        store = FulltextStore(request.parts, store_folder, request.folder, request.open_index, newest=newest)
        try:
            yield store
        finally:
            await run_even_if_cancelled(store.close)


def _create_hits(matches: list[Match], located: Mapping[str, LocatedEntry]) -> list[Hit]:
    """Return the matching entries once each, best first; for equal scores the one saved last comes first.

    Matches that are not in `located`, which is newest first, are left out, and so are entries that say they are
    superseded.
    """
    ages = {identity: age for age, identity in enumerate(located)}
    successors = {one.entry.supersedes: one.entry.id for one in reversed([*located.values()]) if one.entry.supersedes}
    hits: dict[str, Hit] = {}
    for match in matches:
        one = located.get(match.chunk.entry_id)
        if one is None or one.entry.state in {"superseded", "quarantined"} or one.entry.id in hits:
            continue
        successor = successors.get(one.entry.id, "")
        hits[one.entry.id] = Hit(
            entry=one.entry,
            score=match.score,
            explanation="; ".join([_explain_match(match), *([f"superseded by {successor}"] if successor else [])]),
            path=display_path(one),
            line_number=one.line,
            end_line=one.end_line,
            matched_words=match.matched_words,
            superseded_by=successor,
            signals=match.signals,
        )
    return sorted(hits.values(), key=lambda hit: (-hit.score, ages[hit.entry.id]))


def _explain_match(match: Match) -> str:
    return f"BM25 {match.score:.2f}: has {', '.join(match.matched_words)}"
