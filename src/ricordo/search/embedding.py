"""Embedding for an index: queries within a short deadline, stored texts in batches in the background.

Invariant: if an embedder fails, hangs, changes its dimension or returns values that are not finite, nothing is raised
and no such vector is stored. Vectors of two models or dimensions are never mixed. What was left without a vector is
counted, and tried again.
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
_BATCH_SIZES: Mapping[str, int] = {"static": 1_024, "hashing": 1_024, "minilm": 16, "multilingual": 256}
_DEFAULT_BATCH_SIZE = 64
"""How many texts are embedded in one call: so many that it takes a second or two."""
_SMALLEST_BATCH = 4
"""A batch that takes too long is tried again in quarters, down to so many texts; then the embedder is left alone."""
_PAUSE_SECONDS = 60.0
"""How long an embedder is not called after it failed or timed out."""
_QUERY_CACHE_SIZE = 128
_COSINE_RANGES: Mapping[str, tuple[float, float]] = {
    "static": (0.1, 0.7), "hashing": (0.05, 0.6), "minilm": (0.2, 0.9), "multilingual": (0.05, 0.4),
}  # fmt: skip
"""The range of meaningful cosines for each kind of embedder."""
_DEFAULT_COSINE_RANGE = (0.2, 0.8)
_SEARCHES_BEFORE_BUILD = 4
"""The number of searches after which the approximate index is built; a process with a single search does not need it.
"""
FindMissing: TypeAlias = Callable[[SemanticQuery, int], Awaitable[MissingVectors | None]]
"""Returns the texts that lack vectors; None if the index can't be read now."""


@runtime_checkable
class WeightedQueryEmbedder(Protocol):
    """An embedder that computes the vector of a query synchronously, with a weight for each word."""

    def query_vector(self, text: str, weights: Mapping[str, float]) -> NDArray[np.float32]:
        """Return the query vector, normalized to length 1; words without a weight count little. It does not block."""
        ...


class IndexEmbedder:
    """The vectors of one index by one embedder. `missing_count` is how many rows had none at the last check.

    `retry_seconds` tells when to embed again, as texts were left that can have a vector; None if there are none.
    """

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
        """Store vectors at `path`. A query may take `query_seconds`, a batch of texts `batch_seconds`.

        From `ann_vectors` vectors on, an approximate index is used, see `VectorCache`. `check` raises if the folder of
        the workspace has been replaced by another one.
        """
        self.missing_count = 0
        self.retry_seconds: float | None = None
        self._embedder = embedder
        self._weighing = embedder if isinstance(embedder, WeightedQueryEmbedder) else None
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
        """Why a text could not be embedded or its vector not be stored; empty if there is no error."""
        return self._error or self._cache.error

    async def prepare_query(self, text: str) -> SemanticQuery | None:
        """Return what a semantic search for `text` needs; None if it is not possible."""
        if not self._loaded:
            await self._load()
        if not len(self._cache.current.text_ids):
            return None
        self._searches += 1
        if self._searches > _SEARCHES_BEFORE_BUILD:
            self._cache.start_build(alone=self._placement.places.is_alone)
        if self._weighing is not None:
            return self._semantic_query(weighing=partial(self._weighted_vector, self._weighing, text))
        vector = await self._embed_query(text)
        return None if vector is None else self._semantic_query(vector=vector)

    async def embed(self, looks: FindMissing, *, seconds: float, now: bool = False) -> None:
        """Embed texts without vectors for at most `seconds`, newest first; then delete unused vectors.

        With `now` an embedder is asked that failed within the last minute, too.
        """
        async with self._embed_lock:
            deadline = time.monotonic() + seconds
            if now:
                self._paused_until = -1.0
            if self._has_changed:
                self._has_changed = False
                await self._cache.clear()
            while True:
                self.retry_seconds = None
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
                if time.monotonic() >= deadline:
                    self.retry_seconds = 0.0
                    return
                if not await self._embed_batch(dict([*todo.items()][: self._batch])):
                    self.retry_seconds = max(0.0, self._paused_until - time.monotonic())
                    return

    async def close(self) -> None:
        """Close the vector file."""
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
        """Load the stored vectors, including those that other processes computed since."""
        await self._cache.load()
        self._loaded = True

    async def _embed_batch(self, texts: Mapping[int, str]) -> bool:
        """Embed some texts and store their vectors; return False if the embedder should not be called again for now."""
        try:
            rows = await self._embed_texts([*texts.values()], self._batch_seconds)
        except _TEXT_ERRORS as error:
            return await self._embed_halves(texts, error)
        except TimeoutError:
            # a busy machine is slow, and one that hangs is found out in a few tries
            if len(texts) <= _SMALLEST_BATCH:
                self._pause_for_timeout(self._batch_seconds)
                return False
            self._batch = max(_SMALLEST_BATCH, len(texts) // 4)
            return True
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
        """Embed the halves separately to find the text that can't be embedded."""
        if len(texts) == 1:
            self._error = str(error)
            self._rejected_texts.update(texts)
            return True
        each = [*texts.items()]
        half = len(each) // 2
        return await self._embed_batch(dict(each[:half])) and await self._embed_batch(dict(each[half:]))

    async def _embed_query(self, text: str) -> NDArray[np.float32] | None:
        """Return the vector of a query in the stored dimension; None if there is none in time."""
        known = self._queries.get(text)
        if known is not None and len(known) == self._cache.current.dimension:
            return known
        try:
            rows = await self._embed_texts([text], self._query_seconds)
        except _TEXT_ERRORS as error:
            self._error = str(error)
            return None
        except TimeoutError:
            self._pause_for_timeout(self._query_seconds)
            return None
        if rows is None or not np.isfinite(rows).all():
            return None
        if rows.shape[1] != self._cache.current.dimension:
            # the model changed but kept its name: all vectors have to be computed again
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
        """Return a row of length 1 for each text (not finite if invalid); None if the embedder is unavailable.

        Raises: `_TEXT_ERRORS`; TimeoutError if it takes longer than `seconds`.
        """
        if time.monotonic() < self._paused_until:
            return None
        try:
            with anyio.fail_after(seconds):
                rows = np.asarray(await self._embedder.embed(texts), dtype=np.float32)
        except (*_TEXT_ERRORS, TimeoutError):
            raise
        except _EMBEDDER_ERRORS as error:
            self._pause(str(error))
            return None
        if rows.ndim != 2 or len(rows) != len(texts) or not rows.shape[1]:
            self._pause(f"{self._embedder.model_id} gave vectors of another number than was asked for.")
            return None
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            unit: NDArray[np.float32] = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
        return unit

    def _pause_for_timeout(self, seconds: float) -> None:
        self._pause(f"{self._embedder.model_id} did not answer within {seconds:g} s.")

    def _pause(self, trouble: str) -> None:
        self._error = trouble
        self._paused_until = time.monotonic() + _PAUSE_SECONDS
