"""Embedding for a store: asked for at most so long, and a failure is an answer, as what was saved is saved already.

Invariant: no text is embedded twice that has its vector, and what could not be embedded is tried again later.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

import anyio
import numpy as np
from numpy.typing import NDArray

from ricordo.errors import ModelError, ModelOverflow, ModelRefused, ReplyInvalid
from ricordo.index.vector import Vector, VectorIndex
from ricordo.models import Embedder
from ricordo.stores.nearest import text_to_embed, entry_digest
from ricordo.workspace.entry import Entry

__all__ = ["EntryEmbedder", "ListsUnembedded", "entry_digest"]

_LOG = logging.getLogger("ricordo.stores")
_BATCH_SIZE = 64
_PAUSE_SECONDS = 60.0
"""How long an embedder that did not answer in time is not asked again."""
_TEXT_ERRORS = (ModelOverflow, ModelRefused, ReplyInvalid)


@runtime_checkable
class ListsUnembedded(Protocol):
    """A backend that finds entries by their vectors."""

    async def missing_vectors(self) -> tuple[str, ...]:
        """Return the ids of the entries without a vector of the embedder, newest first: they are found by text."""
        ...


class EntryEmbedder:
    """The way from entries to the vectors of one index."""

    def __init__(self, embedder: Embedder, index: VectorIndex) -> None:
        """Embed by `embedder` into `index`."""
        self.index = index
        self._embedder = embedder
        self._refused_digests: set[tuple[str, str]] = set()
        self._paused_until = -1.0
        self._has_warned = False
        self._is_filling = False
        self._digests: dict[str, tuple[Entry, str]] = {}

    async def embed_text(self, text: str, *, seconds: float) -> NDArray[np.float32] | None:
        """Return the vector of a text; None when the embedder fails, or takes longer than `seconds`."""
        try:
            rows = await self._request_vectors([text], seconds)
        except ModelError as error:
            self._warn(error)
            return None
        return None if rows is None else rows[0]

    async def embed(self, entries: Sequence[Entry], *, seconds: float) -> bool:
        """Give entries their vectors; tell whether all of them have one now."""
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
        """Embed for at most `seconds` what has no vector, in its order; tell whether nothing is left to be tried.

        What belongs to none of `entries`, or to another model, is removed once all of them have a vector.
        """
        if self._is_filling:
            return False
        self._is_filling = True
        try:
            return await self._embed_batches(entries, time.monotonic() + seconds)
        finally:
            self._is_filling = False

    def find_missing(self, entries: Sequence[Entry], digests: Mapping[str, str]) -> list[Entry]:
        """Return the entries without a vector of the text that they have now."""
        made = [_digest_entry(entry, self._digests.get(entry.id)) for entry in entries]
        self._digests = {one[0].id: one for one in made}
        return [entry for entry, digest in made if digests.get(entry.id) != digest]

    async def _embed_batches(self, entries: Sequence[Entry], deadline: float) -> bool:
        missing = self.find_missing(entries, await self.index.digests())
        todo = [entry for entry in missing if (entry.id, entry_digest(entry)) not in self._refused_digests]
        while todo and (left := deadline - time.monotonic()) > 0:
            batch, todo = todo[:_BATCH_SIZE], todo[_BATCH_SIZE:]
            tried = await self.embed(batch, seconds=left)
            if not tried and any((entry.id, entry_digest(entry)) not in self._refused_digests for entry in batch):
                return False
        if todo:
            return False
        # the length of the vectors may have turned out to be another one
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
        """Say once that embedding fails, until it works again."""
        if not self._has_warned:
            _LOG.warning(
                "%s: %s. What is saved is kept, and found by its text until it can be embedded.",
                self._embedder.model_id,
                str(trouble).rstrip("."),
            )
        self._has_warned = True


def _digest_entry(entry: Entry, known: tuple[Entry, str] | None) -> tuple[Entry, str]:
    """Return the entry with its digest, which is made once for one that is still the same object."""
    return known if known is not None and known[0] is entry else (entry, entry_digest(entry))
