"""The way from texts to vectors: what an index asks of an embedder, for how long, and what it makes of the answer.

No search and no save waits for an embedding of what is stored: that is done beside them, in batches. Only the query
itself is embedded in a search, for a short time; without an answer in that time the search goes by words.

Invariant: whatever an embedder does, fail, hang, change its length or give what is no number, nothing is raised, no
vector that is none is kept, and vectors of two models or two lengths never meet.
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

from ricordo.database.sqlite import Commit
from ricordo.errors import ModelOverflow, ModelRefused, ReplyInvalid, RicordoError
from ricordo.index.dense import Lacking, Sense, Standing
from ricordo.index.vector_cache import VectorCache
from ricordo.models import Embedder

__all__ = ["Looks", "Meanings", "WeighsWords"]

_TROUBLE = (RicordoError, OSError, ValueError, RuntimeError)
_ABOUT_A_TEXT = (ModelOverflow, ModelRefused, ReplyInvalid)
_BATCHES: Mapping[str, int] = {"static": 1_024, "hashing": 1_024, "minilm": 16}
_USUAL_BATCH = 64
"""How many texts are embedded at once: as many as take a second or two."""
_SILENT_SECONDS = 60.0
"""How long an embedder that failed or did not answer in time is not asked again."""
_QUERIES_KEPT = 128
_SCALES: Mapping[str, tuple[float, float]] = {"static": (0.1, 0.7), "hashing": (0.05, 0.6), "minilm": (0.2, 0.9)}
"""Between which cosines the vectors of a kind of embedder say something."""
_USUAL_SCALE = (0.2, 0.8)
_SEARCHES = 4
"""After how many searches it is worth to make the next ones quicker: a process of one search ends sooner without."""

Looks: TypeAlias = Callable[[Sense, int], Awaitable[Lacking | None]]
"""What an index lacks vectors for; None when it can't be looked at now."""


@runtime_checkable
class WeighsWords(Protocol):
    """An embedder that makes the vector of a query at once, each of its words counting as much as it tells."""

    def query_vector(self, text: str, weights: Mapping[str, float]) -> NDArray[np.float32]:
        """Return the vector of a query, of the length 1; words without a weight count little. It does not wait."""
        ...


class Meanings:
    """The vectors of one index by one embedder. `lacking` is how many rows had none when it was last looked."""

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
        self.lacking = 0
        self._embedder = embedder
        self._cache = VectorCache(path, embedder.model_id, commit=commit, ann_vectors=ann_vectors, check=check)
        self._query_seconds, self._batch_seconds = query_seconds, batch_seconds
        self._standing = Standing()
        self._at_work = anyio.Lock()
        self._loaded = self._has_changed = False
        self._trouble = ""
        self._silent_until = -1.0
        self._searches = 0
        self._refused: set[int] = set()
        self._queries: OrderedDict[str, NDArray[np.float32]] = OrderedDict()
        kind = embedder.model_id.partition(":")[0]
        self._batch = _BATCHES.get(kind, _USUAL_BATCH)
        self._least, self._most = _SCALES.get(kind, _USUAL_SCALE)

    @property
    def trouble(self) -> str:
        """Why something could not be embedded, or its vector not be stored; empty when all is well."""
        return self._trouble or self._cache.trouble

    async def sense(self, text: str) -> Sense | None:
        """Return what a search for `text` needs to find by meaning; None where nothing can be found so."""
        if not self._loaded:
            await self._load()
        if not len(self._cache.now.meanings):
            return None
        self._searches += 1
        if self._searches > _SEARCHES:
            self._cache.sharpen(alone=self._standing.places.is_alone)
        if isinstance(self._embedder, WeighsWords):
            return self._sense(weighing=partial(self._weighed, self._embedder, text))
        vector = await self._query(text)
        return None if vector is None else self._sense(vector=vector)

    async def embed(self, looks: Looks, *, seconds: float) -> None:
        """Embed for at most `seconds` what has no vector, the newest first; then forget what nothing needs."""
        async with self._at_work:
            deadline = time.monotonic() + seconds
            if self._has_changed:
                self._has_changed = False
                await self._cache.forget_length()
            while True:
                await self._load()
                lacking = await looks(self._sense(), self._batch + len(self._refused))
                if lacking is None:
                    return
                self.lacking = lacking.count
                todo = {meaning: text for meaning, text in lacking.texts.items() if meaning not in self._refused}
                if not todo:
                    if len(lacking.unused):
                        await self._cache.prune(lacking.unused)
                    return
                if time.monotonic() >= deadline or not await self._take(dict([*todo.items()][: self._batch])):
                    return

    async def close(self) -> None:
        """Let the file of vectors go."""
        await self._cache.close()

    def _sense(
        self,
        *,
        vector: NDArray[np.float32] | None = None,
        weighing: Callable[[Mapping[str, float]], NDArray[np.float32] | None] | None = None,
    ) -> Sense:
        return Sense(
            standing=self._standing, vectors=self._cache.now, vector=vector, weighing=weighing,
            least=self._least, most=self._most,
        )  # fmt: skip

    async def _load(self) -> None:
        """Take in what other processes embedded, and at first what was embedded before."""
        await self._cache.load()
        self._loaded = True

    async def _take(self, texts: Mapping[int, str]) -> bool:
        """Embed some texts and keep their vectors; False when the embedder is not to be asked any more for now."""
        try:
            rows = await self._rows([*texts.values()], self._batch_seconds)
        except _ABOUT_A_TEXT as error:
            return await self._in_halves(texts, error)
        if rows is None:
            return False
        sound = np.isfinite(rows).all(axis=1)
        meanings = np.array([*texts], dtype=np.int64)
        self._refused.update(meanings[~sound].tolist())
        if sound.all():
            self._trouble = ""
        else:
            self._trouble = f"{self._embedder.model_id} gave no vector for a text."
        await self._cache.add(meanings[sound], rows[sound])
        return True

    async def _in_halves(self, texts: Mapping[int, str], error: RicordoError) -> bool:
        """Find out which of the texts it is that can't be embedded."""
        if len(texts) == 1:
            self._trouble = str(error)
            self._refused.update(texts)
            return True
        each = [*texts.items()]
        half = len(each) // 2
        return await self._take(dict(each[:half])) and await self._take(dict(each[half:]))

    async def _query(self, text: str) -> NDArray[np.float32] | None:
        """Return the vector of a query in the length of the others; None when there is none in time."""
        known = self._queries.get(text)
        if known is not None and len(known) == self._cache.now.dimension:
            return known
        try:
            rows = await self._rows([text], self._query_seconds)
        except _ABOUT_A_TEXT as error:
            self._trouble = str(error)
            return None
        if rows is None or not np.isfinite(rows).all():
            return None
        if rows.shape[1] != self._cache.now.dimension:
            # the model has changed under its name: all that it made is to be made anew
            self._has_changed = True
            return None
        self._queries[text] = rows[0]
        while len(self._queries) > _QUERIES_KEPT:
            self._queries.popitem(last=False)
        row: NDArray[np.float32] = rows[0]
        return row

    def _weighed(self, embedder: WeighsWords, text: str, weights: Mapping[str, float]) -> NDArray[np.float32] | None:
        try:
            row = embedder.query_vector(text, weights)
        except _TROUBLE as error:
            self._trouble = str(error)
            return None
        return row if np.isfinite(row).all() else None

    async def _rows(self, texts: Sequence[str], seconds: float) -> NDArray[np.float32] | None:
        """Return a row of the length 1 for each text, or of no number; None when the embedder gives none for now."""
        if time.monotonic() < self._silent_until:
            return None
        try:
            with anyio.fail_after(seconds):
                rows = np.asarray(await self._embedder.embed(texts), dtype=np.float32)
        except _ABOUT_A_TEXT:
            raise
        except TimeoutError:
            self._fall_silent(f"{self._embedder.model_id} did not answer within {seconds:g} s.")
            return None
        except _TROUBLE as error:
            self._fall_silent(str(error))
            return None
        if rows.ndim != 2 or len(rows) != len(texts) or not rows.shape[1]:
            self._fall_silent(f"{self._embedder.model_id} gave vectors of another number than was asked for.")
            return None
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            unit: NDArray[np.float32] = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
        return unit

    def _fall_silent(self, trouble: str) -> None:
        self._trouble = trouble
        self._silent_until = time.monotonic() + _SILENT_SECONDS
