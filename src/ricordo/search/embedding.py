"""Embedding for an index: queries within a short deadline, stored texts in batches in the background.

Invariant: whatever an embedder does, fail, hang, change its dimension or return what is no number, nothing is raised,
no such vector is kept, and vectors of two models or dimensions never meet.
"""

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol, TypeAlias, runtime_checkable

import anyio
import numpy as np
from numpy.typing import NDArray

from ricordo.errors import ModelOverflow, ModelRefused, ReplyInvalid, RicordoError
from ricordo.models import Embedder
from ricordo.search.vector_cache import VectorCache
from ricordo.search.vector_search import MissingVectors, SemanticQuery, VectorPlacement
from ricordo.storage.sqlite import Commit

__all__ = ["FindMissing", "IndexEmbedder", "WeightedQueryEmbedder"]


_EMBEDDER_ERRORS = (RicordoError, OSError, ValueError, RuntimeError)
_TEXT_ERRORS = (ModelOverflow, ModelRefused, ReplyInvalid)
_BATCH_SIZES: Mapping[str, int] = {"static": 1_024, "hashing": 1_024, "minilm": 16}
_DEFAULT_BATCH_SIZE = 64
"""How many texts are embedded at once: as many as take a second or two."""
_PAUSE_SECONDS = 60.0
"""How long an embedder that failed or did not answer in time is not asked again."""
_QUERY_CACHE_SIZE = 128
_COSINE_RANGES: Mapping[str, tuple[float, float]] = {"static": (0.1, 0.7), "hashing": (0.05, 0.6), "minilm": (0.2, 0.9)}
"""Between which cosines the vectors of a kind of embedder say something."""
_DEFAULT_COSINE_RANGE = (0.2, 0.8)
_SEARCHES_BEFORE_BUILD = 4
"""After how many searches it is worth to make the next ones quicker: a process of one search ends sooner without."""
FindMissing: TypeAlias = Callable[[SemanticQuery, int], Awaitable[MissingVectors | None]]
"""What an index lacks vectors for; None when it can't be looked at now."""


@runtime_checkable
class WeightedQueryEmbedder(Protocol):
    """An embedder that makes the vector of a query at once, each of its words counting as much as it tells."""

    def query_vector(self, text: str, weights: Mapping[str, float]) -> NDArray[np.float32]:
        """Return the vector of a query, of the length 1; words without a weight count little. It does not wait."""
        ...


class IndexEmbedder:
    """The vectors of one index by one embedder. `missing_count` is how many rows had none when it was last looked."""

    def __init__(
        self,
        embedder: Embedder,
        path: Path,
        *,
        commit: Commit | None = None,
        query_seconds: float = 0.15,
        batch_seconds: float = 10.0,
        ann_vectors: int | None = None,
        check: Callable[[], None] | None = None,
    ) -> None:
        """Keep vectors at `path`. A query is waited for `query_seconds`, a batch of texts `batch_seconds`.

        From `ann_vectors` vectors on they are searched by an approximate index, as `VectorCache` says. `check` raises
        where the folder of the workspace is not the one that it was.
        """
        self.missing_count = 0
        self._embedder = embedder
        self._cache = VectorCache(path, embedder.model_id, commit=commit, ann_vectors=ann_vectors, check=check)
        self._query_seconds, self._batch_seconds = query_seconds, batch_seconds
        self._placement = VectorPlacement()
        self._embed_lock = anyio.Lock()
        self._loaded = self._has_changed = False
        self._error = ""
        self._paused_until = -1.0
        self._searches = 0
        self._rejected_texts: set[int] = set()
        self._queries: OrderedDict[str, NDArray[np.float32]] = OrderedDict()
        kind = embedder.model_id.partition(":")[0]
        self._batch = _BATCH_SIZES.get(kind, _DEFAULT_BATCH_SIZE)
        self._min_cosine, self._max_cosine = _COSINE_RANGES.get(kind, _DEFAULT_COSINE_RANGE)

    @property
    def error(self) -> str:
        """Why something could not be embedded, or its vector not be stored; empty when all is well."""
        return self._error or self._cache.error

    async def prepare_query(self, text: str) -> SemanticQuery | None:
        """Return what a search for `text` needs to find by meaning; None where nothing can be found so."""
        if not self._loaded:
            await self._load()
        if not len(self._cache.current.text_ids):
            return None
        self._searches += 1
        if self._searches > _SEARCHES_BEFORE_BUILD:
            self._cache.start_build(alone=self._placement.places.is_alone)
        if isinstance(self._embedder, WeightedQueryEmbedder):
            return self._semantic_query(weighing=partial(self._weighted_vector, self._embedder, text))
        vector = await self._embed_query(text)
        return None if vector is None else self._semantic_query(vector=vector)

    async def embed(self, looks: FindMissing, *, seconds: float) -> None:
        """Embed for at most `seconds` what has no vector, the newest first; then forget what nothing needs."""
        async with self._embed_lock:
            deadline = time.monotonic() + seconds
            if self._has_changed:
                self._has_changed = False
                await self._cache.clear()
            while True:
                await self._load()
                lacking = await looks(self._semantic_query(), self._batch + len(self._rejected_texts))
                if lacking is None:
                    return
                self.missing_count = lacking.count
                todo = {meaning: text for meaning, text in lacking.texts.items() if meaning not in self._rejected_texts}
                if not todo:
                    if len(lacking.unused):
                        await self._cache.prune(lacking.unused)
                    return
                if time.monotonic() >= deadline or not await self._embed_batch(dict([*todo.items()][: self._batch])):
                    return

    async def close(self) -> None:
        """Let the file of vectors go."""
        await self._cache.close()

    def _semantic_query(
        self,
        *,
        vector: NDArray[np.float32] | None = None,
        weighing: Callable[[Mapping[str, float]], NDArray[np.float32] | None] | None = None,
    ) -> SemanticQuery:
        return SemanticQuery(
            placement=self._placement, vectors=self._cache.current, vector=vector, make_vector=weighing,
            min_cosine=self._min_cosine, max_cosine=self._max_cosine,
        )  # fmt: skip

    async def _load(self) -> None:
        """Take in what other processes embedded, and at first what was embedded before."""
        await self._cache.load()
        self._loaded = True

    async def _embed_batch(self, texts: Mapping[int, str]) -> bool:
        """Embed some texts and keep their vectors; False when the embedder is not to be asked any more for now."""
        try:
            rows = await self._embed_texts([*texts.values()], self._batch_seconds)
        except _TEXT_ERRORS as error:
            return await self._embed_halves(texts, error)
        if rows is None:
            return False
        sound = np.isfinite(rows).all(axis=1)
        meanings = np.array([*texts], dtype=np.int64)
        self._rejected_texts.update(meanings[~sound].tolist())
        if sound.all():
            self._error = ""
        else:
            self._error = f"{self._embedder.model_id} gave no vector for a text."
        await self._cache.add(meanings[sound], rows[sound])
        return True

    async def _embed_halves(self, texts: Mapping[int, str], error: RicordoError) -> bool:
        """Find out which of the texts it is that can't be embedded."""
        if len(texts) == 1:
            self._error = str(error)
            self._rejected_texts.update(texts)
            return True
        each = [*texts.items()]
        half = len(each) // 2
        return await self._embed_batch(dict(each[:half])) and await self._embed_batch(dict(each[half:]))

    async def _embed_query(self, text: str) -> NDArray[np.float32] | None:
        """Return the vector of a query in the length of the others; None when there is none in time."""
        known = self._queries.get(text)
        if known is not None and len(known) == self._cache.current.dimension:
            return known
        try:
            rows = await self._embed_texts([text], self._query_seconds)
        except _TEXT_ERRORS as error:
            self._error = str(error)
            return None
        if rows is None or not np.isfinite(rows).all():
            return None
        if rows.shape[1] != self._cache.current.dimension:
            # the model has changed under its name: all that it made is to be made anew
            self._has_changed = True
            return None
        self._queries[text] = rows[0]
        while len(self._queries) > _QUERY_CACHE_SIZE:
            self._queries.popitem(last=False)
        row: NDArray[np.float32] = rows[0]
        return row

    def _weighted_vector(
        self, embedder: WeightedQueryEmbedder, text: str, weights: Mapping[str, float]
    ) -> NDArray[np.float32] | None:
        try:
            row = embedder.query_vector(text, weights)
        except _EMBEDDER_ERRORS as error:
            self._error = str(error)
            return None
        return row if np.isfinite(row).all() else None

    async def _embed_texts(self, texts: Sequence[str], seconds: float) -> NDArray[np.float32] | None:
        """Return a row of the length 1 for each text, or of no number; None when the embedder gives none for now."""
        if time.monotonic() < self._paused_until:
            return None
        try:
            with anyio.fail_after(seconds):
                rows = np.asarray(await self._embedder.embed(texts), dtype=np.float32)
        except _TEXT_ERRORS:
            raise
        except TimeoutError:
            self._pause(f"{self._embedder.model_id} did not answer within {seconds:g} s.")
            return None
        except _EMBEDDER_ERRORS as error:
            self._pause(str(error))
            return None
        if rows.ndim != 2 or len(rows) != len(texts) or not rows.shape[1]:
            self._pause(f"{self._embedder.model_id} gave vectors of another number than was asked for.")
            return None
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            unit: NDArray[np.float32] = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
        return unit

    def _pause(self, trouble: str) -> None:
        self._error = trouble
        self._paused_until = time.monotonic() + _PAUSE_SECONDS
