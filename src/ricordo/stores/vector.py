"""The vector store: entries in daily files, ranked by the cosine of their vectors to the vector of the query.

An entry is durable before it is embedded. An entry without a vector of its current text and model is found by its text,
and embedded at the next save or opening when the embedder answers. The preamble shows the newest entries by time.

Invariants: the vectors are a cache next to the files. A failing or slow embedder fails no save and no recall.
"""

import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Protocol, runtime_checkable

import anyio
import numpy as np
from anyio.to_thread import run_sync
from numpy.typing import NDArray

from ricordo.concurrency import run_even_if_cancelled
from ricordo.context.preamble import Preamble
from ricordo.errors import InvalidSetting, ModelError, ModelOverflow, ModelRefused, ReplyInvalid
from ricordo.messages.tokens import Tokens
from ricordo.models import Embedder
from ricordo.models.embedders.static import HashingEmbedder
from ricordo.scope import Scope
from ricordo.search.contract import Hit, Query
from ricordo.search.vector_index import Vector, VectorIndex, VectorMatch, text_digest
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
from ricordo.stores.contract import Backend, StoreParts
from ricordo.stores.ledgers import DEFAULT_NEWEST, DailyLedgers, add_locations, compose_newest, parse_newest_option
from ricordo.workspace.entry import Entry

__all__ = [
    "EntryEmbedder",
    "ListsUnembedded",
    "VectorStore",
    "create_filter",
    "entry_digest",
    "hits_by_vector",
    "merge_hits",
    "open_vector",
    "text_to_embed",
]


_MAX_EMBEDDED_CHARACTERS = 8_000
"""How many characters at the beginning of an entry are embedded; all common models accept this length."""


def text_to_embed(entry: Entry) -> str:
    """Return the text of an entry for the embedder: its beginning and its tags."""
    text = "\n".join((entry.content[:_MAX_EMBEDDED_CHARACTERS], *entry.tags))
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def entry_digest(entry: Entry) -> str:
    """Return a digest that shows whether a vector was made from the present text of the entry."""
    return text_digest(text_to_embed(entry))


def create_filter(entries: Mapping[str, Entry], query: Query) -> Callable[[str, str], bool]:
    """Return a filter of ids and digests: the entry matches the query and the vector its present text."""
    filters = replace(query, text="")

    def passes(identity: str, digest: str) -> bool:
        entry = entries.get(identity)
        return entry is not None and entry_digest(entry) == digest and bool(match_entries([entry], filters, 1))

    return passes


def hits_by_vector(entries: Mapping[str, Entry], matches: Sequence[VectorMatch]) -> list[Hit]:
    """Return the hits for the nearest vectors, best first, without those that have nothing in common with the query."""
    ids = {one.id for one in matches}
    candidates = [entry for entry in entries.values() if entry.id in ids or entry.supersedes]
    hits = {hit.entry.id: hit for hit in match_entries(candidates, Query(text=""), len(candidates))}
    return [_score_hit(hits[one.id], min(one.cosine, 1.0)) for one in matches if one.cosine > 0 and one.id in hits]


def merge_hits(by_text: Sequence[Hit], nearest: Sequence[Hit], limit: int) -> list[Hit]:
    """Return both: first the hits by text, in at most half of the places unless the others leave more free."""
    share = max(limit - len(nearest), (limit + 1) // 2)
    return [*by_text[:share], *nearest][:limit]


def _score_hit(hit: Hit, cosine: float) -> Hit:
    reasons = [f"cosine {cosine:.2f}", *([f"superseded by {hit.superseded_by}"] if hit.superseded_by else [])]
    return replace(hit, score=cosine, explanation="; ".join(reasons), signals={"cosine": cosine})


_LOG = logging.getLogger("ricordo.stores")
_BATCH_SIZE = 64
_PAUSE_SECONDS = 60.0
"""The pause in seconds after the embedder did not answer in time."""
_TEXT_ERRORS = (ModelOverflow, ModelRefused, ReplyInvalid)


@runtime_checkable
class ListsUnembedded(Protocol):
    """A backend that finds entries by their vectors."""

    async def missing_vectors(self) -> tuple[str, ...]:
        """Return the ids of the entries without a vector, newest first; they are found by text."""
        ...


class EntryEmbedder:
    """Embeds entries into one index."""

    def __init__(self, embedder: Embedder, index: VectorIndex) -> None:
        """Embed with `embedder` into `index`."""
        self.index = index
        self._embedder = embedder
        self._refused_digests: set[tuple[str, str]] = set()
        self._paused_until = -1.0
        self._has_warned = False
        self._is_filling = False
        self._digests: dict[str, tuple[Entry, str]] = {}

    async def embed_text(self, text: str, *, seconds: float) -> NDArray[np.float32] | None:
        """Return the vector of a text; None if the embedder fails, or takes longer than `seconds`."""
        try:
            rows = await self._request_vectors([text], seconds)
        except ModelError as error:
            self._warn(error)
            return None
        return None if rows is None else rows[0]

    async def embed(self, entries: Sequence[Entry], *, seconds: float) -> bool:
        """Embed entries; return whether all of them have a vector now."""
        try:
            rows = await self._request_vectors([text_to_embed(entry) for entry in entries], seconds)
        except _TEXT_ERRORS as error:
            if len(entries) > 1:
                return all([await self.embed([entry], seconds=seconds) for entry in entries])
            self._warn(error)
            self._refused_digests.update((entry.id, entry_digest(entry)) for entry in entries)
            return False
        except ModelError as error:
            self._warn(error)
            return False
        if rows is None:
            return False
        vectors = [
            Vector(id=entry.id, digest=entry_digest(entry), numbers=row)
            for entry, row in zip(entries, rows, strict=True)
        ]
        return await self.index.add(vectors)

    async def embed_missing(self, entries: Sequence[Entry], *, seconds: float) -> bool:
        """Embed entries without a vector, in order, for at most `seconds`; return whether nothing is left to try.

        Vectors of other entries, or of another model, are removed once all of `entries` have a vector.
        """
        if self._is_filling:
            return False
        self._is_filling = True
        try:
            return await self._embed_batches(entries, time.monotonic() + seconds)
        finally:
            self._is_filling = False

    def find_missing(self, entries: Sequence[Entry], digests: Mapping[str, str]) -> list[Entry]:
        """Return the entries without a vector of their present text."""
        made = [_digest_entry(entry, self._digests.get(entry.id)) for entry in entries]
        self._digests = {one[0].id: one for one in made}
        return [entry for entry, digest in made if digests.get(entry.id) != digest]

    async def _embed_batches(self, entries: Sequence[Entry], deadline: float) -> bool:
        missing = self.find_missing(entries, await self.index.digests())
        todo = [entry for entry in missing if (entry.id, entry_digest(entry)) not in self._refused_digests]
        while todo and (remaining := deadline - time.monotonic()) > 0:
            batch, todo = todo[:_BATCH_SIZE], todo[_BATCH_SIZE:]
            tried = await self.embed(batch, seconds=remaining)
            if not tried and any((entry.id, entry_digest(entry)) not in self._refused_digests for entry in batch):
                return False
        if todo:
            return False
        # the length of the vectors may have turned out to be different
        if not self.find_missing(entries, await self.index.digests()):
            await self.index.retain({entry.id for entry in entries})
        return True

    async def _request_vectors(self, texts: list[str], seconds: float) -> NDArray[np.float32] | None:
        if time.monotonic() < self._paused_until:
            return None
        try:
            with anyio.fail_after(seconds):
                rows = await self._embedder.embed(texts)
        except TimeoutError:
            self._paused_until = time.monotonic() + _PAUSE_SECONDS
            self._warn(f"no answer within {seconds:.0f} s")
            return None
        lengths = np.linalg.norm(rows, axis=1, keepdims=True) if rows.ndim == 2 else np.zeros((0, 1))
        if len(lengths) != len(texts) or not np.all(np.isfinite(lengths)) or not np.all(lengths > 0):
            raise ReplyInvalid(f"{self._embedder.model_id} gave no vector for a text.")
        self._has_warned = False
        unit: NDArray[np.float32] = (rows / lengths).astype(np.float32)
        return unit

    def _warn(self, trouble: object) -> None:
        """Log once that embedding fails, until it works again."""
        if not self._has_warned:
            _LOG.warning(
                "%s: %s. What is saved is kept, and found by its text until it can be embedded.",
                self._embedder.model_id,
                str(trouble).rstrip("."),
            )
        self._has_warned = True


def _digest_entry(entry: Entry, previous: tuple[Entry, str] | None) -> tuple[Entry, str]:
    """Return the entry with its digest; the known digest is reused while the entry is the same object."""
    return previous if previous is not None and previous[0] is entry else (entry, entry_digest(entry))


_VECTORS_NAME = "memory_vectors.db"
_ANSWER_SECONDS = 5.0
"""How many seconds a save or a recall waits for the embedder."""
_BACKLOG_SECONDS = 2.0
"""How many seconds a save spends on embedding earlier entries without a vector."""
_OPENING_SECONDS = 30.0
_HASHING = "hashing"


class VectorStore(Backend):
    """Entries in daily files below `memory/`, and their vectors."""

    def __init__(
        self, parts: StoreParts, home: StoreFolder, folder: Path, embedder: Embedder, *, newest: int = DEFAULT_NEWEST
    ) -> None:
        """Store each owner's entries in their folder of `home`, and their vectors below `folder`.

        `newest` is the largest number of entries in the preamble.
        """
        super().__init__(parts)
        self._home = home
        self._folder = folder
        self._embedder = embedder
        self._newest = newest
        self._drivers: dict[str, _VectorDriver] = {}

    async def catch_up(self, scope: Scope) -> None:
        """Embed entries without a vector for at most half a minute; later saves embed the rest."""
        await self._driver(scope).catch_up(_OPENING_SECONDS)

    async def close(self) -> None:
        """Close the vector files; a second call does nothing."""
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
            # even when the save is cancelled, since the entry is already stored
            self._is_behind = self._is_behind or not is_embedded
        if is_embedded and self._is_behind:
            await self.catch_up(_BACKLOG_SECONDS)
        return entry

    async def entries(self) -> list[Entry]:
        return await self._ledgers.entries()

    async def find(self, query: Query, limit: int) -> list[Hit]:
        """Return at most `limit` hits: entries without a vector by their text, at most half, then the nearest."""
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

    async def preamble(self, budget: Tokens | None) -> Preamble:
        entries = await self.entries()
        by_time = sorted(entries, key=lambda entry: entry.time.timestamp() if entry.time else 0.0, reverse=True)
        return await run_sync(compose_newest, by_time, self._newest, budget)

    async def remove(self, entry: Entry) -> None:
        await self._ledgers.forget(entry.id)
        await self.embedding.index.remove([entry.id])

    async def missing_vectors(self) -> tuple[str, ...]:
        missing = self.embedding.find_missing(await self.entries(), await self.embedding.index.digests())
        return tuple(entry.id for entry in missing)

    async def catch_up(self, seconds: float) -> None:
        self._is_behind = not await self.embedding.embed_missing(await self.entries(), seconds=seconds)


@asynccontextmanager
async def open_vector(request: OpenRequest) -> AsyncIterator[Backend]:
    """Open the store of a folder: `vector:./notes?embedder=openai:text-embedding-3-small&newest=20`.

    `?embedder=hashing` needs no key and no network, and matches only by shared words. Raises: InvalidSetting without an
    embedder, or for a number below 1; the errors of `load_embedder`.
    """
    embedder_name = read_options(request.address, "embedder", "newest").get("embedder")
    newest = parse_newest_option(request.address)
    embedder = await run_sync(_select_embedder, embedder_name, request)
    async with open_folder(request) as store_folder:
        if request.folder is None:
            raise InvalidSetting("A vector store needs a folder.")
        store = VectorStore(request.parts, store_folder, request.folder, embedder, newest=newest)
        try:
            await store.catch_up(request.scope)
            yield store
        finally:
            await run_even_if_cancelled(store.close)


def _select_embedder(name: str | None, request: OpenRequest) -> Embedder:
    if name == _HASHING:
        return HashingEmbedder()
    if name:
        return request.embedder_by_name(name)
    if request.embedder is None:
        raise InvalidSetting(
            "A vector store needs an embedder: vector:./notes?embedder=openai:text-embedding-3-small names one, "
            "?embedder=hashing needs no key and finds by shared words alone."
        )
    return request.embedder


def _explain_text_hit(hit: Hit) -> Hit:
    return replace(hit, explanation=f"{hit.explanation}; by its text, without a vector")
