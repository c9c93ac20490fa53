"""Vectors: entries in plain files, found by the cosine of their vectors to that of the query.

An entry is durable before it is embedded. One that could not be embedded, or was changed since, or has a vector of
another model, is found by its text meanwhile, and embedded at the next save or opening at which the embedder answers.
The preamble is the newest entries by time. Invariant: the vectors are a cache beside the files.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from anyio.to_thread import run_sync

from ricordo.errors import InvalidSetting
from ricordo.index.contract import Query
from ricordo.index.vector import VectorIndex
from ricordo.models import Embedder
from ricordo.models.hashing import HashingEmbedder
from ricordo.recall.hits import Hit
from ricordo.scopes import Scope
from ricordo.stores.contract import Backend, StoreParts
from ricordo.stores.embedding import EntryEmbedder
from ricordo.stores.ledgers import DEFAULT_NEWEST, DailyLedgers, parse_newest_option, render_newest, add_locations
from ricordo.stores.nearest import hits_by_vector, merge_hits, create_filter
from ricordo.stores.opening import OpenRequest
from ricordo.stores.plain import StoreFolder, match_entries, open_folder, read_options
from ricordo.stores.tombstones import FileTombstones, ForgettingDriver, StoreTombstones
from ricordo.tokens import Tokens
from ricordo.uncut import run_even_if_cancelled
from ricordo.workspace.entry import Entry

__all__ = ["VectorStore", "open_vector"]

_VECTORS_NAME = "memory_vectors.db"
_ANSWER_SECONDS = 5.0
"""How long a save or a recall waits for the embedder."""
_BACKLOG_SECONDS = 2.0
"""How long a save goes on to embed what could not be embedded before."""
_OPENING_SECONDS = 30.0
_HASHING = "hashing"


class VectorStore(Backend):
    """Entries in daily files below `memory/`, and their vectors."""

    def __init__(
        self, parts: StoreParts, home: StoreFolder, folder: Path, embedder: Embedder, *, newest: int = DEFAULT_NEWEST
    ) -> None:
        """Keep everybody's entries in their folder of `home`, and their vectors below `folder`.

        `newest` is how many entries the preamble shows at most.
        """
        super().__init__(parts)
        self._home = home
        self._folder = folder
        self._embedder = embedder
        self._newest = newest
        self._drivers: dict[str, _VectorDriver] = {}

    async def catch_up(self, scope: Scope) -> None:
        """Embed what has no vector, for at most half a minute; the rest is left to the saves that follow."""
        await self._driver(scope).catch_up(_OPENING_SECONDS)

    async def close(self) -> None:
        """Let the files of vectors go; a second time does nothing."""
        for driver in self._drivers.values():
            await driver.embedding.index.close()

    def _driver(self, scope: Scope) -> "_VectorDriver":
        folder = self._home.folder_for(scope)
        if folder not in self._drivers:
            index = VectorIndex(self._folder / f"{folder}{_VECTORS_NAME}", self._embedder.model_id)
            ledgers = DailyLedgers(self._home.files, folder)
            tombstones = FileTombstones(self._home, folder, self._parts)
            embedding = EntryEmbedder(self._embedder, index)
            self._drivers[folder] = _VectorDriver(ledgers, embedding, self._newest, tombstones)
        return self._drivers[folder]


class _VectorDriver(ForgettingDriver):
    path = "memory/"

    def __init__(
        self, ledgers: DailyLedgers, embedding: EntryEmbedder, newest: int, tombstones: StoreTombstones
    ) -> None:
        super().__init__(tombstones)
        self.embedding = embedding
        self._ledgers = ledgers
        self._newest = newest
        self._is_behind = True

    async def write(self, entry: Entry) -> Entry:
        await self._ledgers.append(entry)
        is_embedded = False
        try:
            is_embedded = await self.embedding.embed([entry], seconds=_ANSWER_SECONDS)
        finally:
            # also when the save is cancelled, as the entry is there already
            self._is_behind = self._is_behind or not is_embedded
        if is_embedded and self._is_behind:
            await self.catch_up(_BACKLOG_SECONDS)
        return entry

    async def entries(self) -> list[Entry]:
        return await self._ledgers.entries()

    async def find(self, query: Query, limit: int) -> list[Hit]:
        """Return at most `limit` hits: what has no vector by its text, at most half of them, then the nearest."""
        located = {one.entry.id: one for one in await self._ledgers.located_entries(query.path)}
        query = replace(query, path="")
        entries = {identity: one.entry for identity, one in located.items()}
        text = query.text.strip()
        vector = await self.embedding.embed_text(text, seconds=_ANSWER_SECONDS) if text else None
        if vector is None:
            hits = await run_sync(match_entries, entries.values(), query, limit)
            return add_locations([_explain_text_hit(hit) for hit in hits] if text else hits, located)
        passing = create_filter(entries, query)
        nearest = await self.embedding.index.search(vector, limit, passes=passing)
        missing = await run_sync(self.embedding.find_missing, [*entries.values()], nearest.digests)
        self._is_behind = self._is_behind or bool(missing)
        by_text = await run_sync(match_entries, missing, query, limit)
        hits = merge_hits([_explain_text_hit(hit) for hit in by_text], hits_by_vector(entries, nearest.matches), limit)
        return add_locations(hits, located)

    async def preamble(self, budget: Tokens | None) -> str:
        entries = await self.entries()
        by_time = sorted(entries, key=lambda entry: entry.time.timestamp() if entry.time else 0.0, reverse=True)
        return await run_sync(render_newest, by_time, self._newest, budget)

    async def remove(self, entry: Entry) -> None:
        await self._ledgers.forget(entry.id)
        await self.embedding.index.remove([entry.id])

    async def missing_vectors(self) -> tuple[str, ...]:
        missing = self.embedding.find_missing(await self.entries(), await self.embedding.index.digests())
        return tuple(entry.id for entry in missing)

    async def catch_up(self, seconds: float) -> None:
        self._is_behind = not await self.embedding.embed_missing(await self.entries(), seconds=seconds)


@asynccontextmanager
async def open_vector(opening: OpenRequest) -> AsyncIterator[Backend]:
    """Open the store of a folder: `vector:./notes?embedder=openai:text-embedding-3-small&newest=20`.

    `?embedder=hashing` needs no key and no network, and finds by shared words alone. Raises: InvalidSetting without an
    embedder, and for a number below 1; what `load_embedder` does.
    """
    given = read_options(opening.address, "embedder", "newest").get("embedder")
    newest = parse_newest_option(opening.address)
    embedder = await run_sync(_select_embedder, given, opening)
    async with open_folder(opening) as home:
        if opening.folder is None:
            raise InvalidSetting("A vector store needs a folder.")
        store = VectorStore(opening.parts, home, opening.folder, embedder, newest=newest)
        try:
            await store.catch_up(opening.scope)
            yield store
        finally:
            await run_even_if_cancelled(store.close)


def _select_embedder(name: str | None, opening: OpenRequest) -> Embedder:
    if name == _HASHING:
        return HashingEmbedder()
    if name:
        return opening.embedder_by_name(name)
    if opening.embedder is None:
        raise InvalidSetting(
            "A vector store needs an embedder: vector:./notes?embedder=openai:text-embedding-3-small names one, "
            "?embedder=hashing needs no key and finds by shared words alone."
        )
    return opening.embedder


def _explain_text_hit(hit: Hit) -> Hit:
    return replace(hit, why=f"{hit.why}; by its text, without a vector")
