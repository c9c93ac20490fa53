"""Hits with what stands beside them: the heading and the nearest text, looked up for those that are returned.

Invariant: it changes no hit otherwise, and a message that was hidden because what it taught was forgotten is not shown
beside another one either. A source that can't tell what stands beside its hits takes nothing away from them.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from ricordo.errors import StorageError
from ricordo.index.beside import ChunkNeighbours, ChunkLocation, NeighbourIndex
from ricordo.index.contract import Chunk
from ricordo.recall.hits import Hit, Neighbour, SearchSource
from ricordo.tokens import safe_boundary
from ricordo.workspace.layout import ledger_date

__all__ = ["MAX_NEIGHBOUR_CHARS", "informative_heading", "attach_neighbours"]

_NON_WORD = re.compile(r"[\W_]+")

MAX_NEIGHBOUR_CHARS = 160
"""The most characters that are shown of a neighbour."""


async def attach_neighbours(sources: Sequence[SearchSource], hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits in their order, with the text right before and after each, where the same is told on.

    That is the message before and after a message, the piece of a long text, what stands under the same heading of a
    topic, and what a ledger holds of the same session.
    """
    shown = list(hits)
    for source in sources:
        places = [at for at, hit in enumerate(shown) if hit.source == source.label and hit.path]
        if not places or not isinstance(source.index, NeighbourIndex):
            continue
        try:
            told = await source.index.beside([_chunk_location(shown[at]) for at in places])
        except StorageError:
            # the hits are what was asked for
            continue
        for at, one in zip(places, told, strict=True):
            if one is not None:
                shown[at] = _with_neighbours(shown[at], one, source)
    return shown


def informative_heading(hit: Hit) -> str:
    """Return the heading of a hit where it tells more than the name of its file does; else nothing."""
    name = hit.path.rpartition("/")[2].rpartition(".")[0]
    if ledger_date(hit.path) or _normalize_name(hit.heading) == _normalize_name(name):
        return ""
    return hit.heading


def _normalize_name(name: str) -> str:
    return _NON_WORD.sub(" ", name.casefold()).strip()


def _chunk_location(hit: Hit) -> ChunkLocation:
    return ChunkLocation(path=hit.path, line_number=hit.line_number, content=hit.entry.content)


def _with_neighbours(hit: Hit, told: ChunkNeighbours, source: SearchSource) -> Hit:
    return replace(hit, before=_neighbour(told.before, source), after=_neighbour(told.after, source))


def _neighbour(chunk: Chunk | None, source: SearchSource) -> Neighbour | None:
    if chunk is None or source.hides(chunk):
        return None
    text = " ".join(chunk.content.split())
    if len(text) > MAX_NEIGHBOUR_CHARS:
        text = f"{text[: safe_boundary(text, MAX_NEIGHBOUR_CHARS)].rstrip()}…"
    return Neighbour(text=text, speaker=chunk.speaker, line_number=chunk.line_number)
