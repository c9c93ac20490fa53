"""Hits with what stands beside them: the heading and the nearest text, looked up for those that are returned.

Invariant: it changes no hit otherwise, and a message that was hidden because what it taught was forgotten is not shown
beside another one either. A source that can't tell what stands beside its hits takes nothing away from them.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from ricordo.errors import StorageError
from ricordo.index.beside import Beside, Spot, TellsBeside
from ricordo.index.contract import Chunk
from ricordo.recall.hits import Hit, Neighbour, Source
from ricordo.tokens import safe_boundary
from ricordo.workspace.layout import ledger_date

__all__ = ["MOST_BESIDE", "telling_heading", "with_neighbours"]

_BETWEEN = re.compile(r"[\W_]+")

MOST_BESIDE = 160
"""The most characters that are shown of a neighbour."""


async def with_neighbours(sources: Sequence[Source], hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits in their order, with the text right before and after each, where the same is told on.

    That is the message before and after a message, the piece of a long text, what stands under the same heading of a
    topic, and what a ledger holds of the same session.
    """
    shown = list(hits)
    for source in sources:
        places = [at for at, hit in enumerate(shown) if hit.source == source.label and hit.path]
        if not places or not isinstance(source.index, TellsBeside):
            continue
        try:
            told = await source.index.beside([_spot(shown[at]) for at in places])
        except StorageError:
            # the hits are what was asked for
            continue
        for at, one in zip(places, told, strict=True):
            if one is not None:
                shown[at] = _beside(shown[at], one, source)
    return shown


def telling_heading(hit: Hit) -> str:
    """Return the heading of a hit where it tells more than the name of its file does; else nothing."""
    name = hit.path.rpartition("/")[2].rpartition(".")[0]
    if ledger_date(hit.path) or _plain(hit.heading) == _plain(name):
        return ""
    return hit.heading


def _plain(name: str) -> str:
    return _BETWEEN.sub(" ", name.casefold()).strip()


def _spot(hit: Hit) -> Spot:
    return Spot(path=hit.path, line_number=hit.line_number, content=hit.entry.content)


def _beside(hit: Hit, told: Beside, source: Source) -> Hit:
    return replace(hit, before=_neighbour(told.before, source), after=_neighbour(told.after, source))


def _neighbour(chunk: Chunk | None, source: Source) -> Neighbour | None:
    if chunk is None or source.hides(chunk):
        return None
    text = " ".join(chunk.content.split())
    if len(text) > MOST_BESIDE:
        text = f"{text[: safe_boundary(text, MOST_BESIDE)].rstrip()}…"
    return Neighbour(text=text, speaker=chunk.speaker, line_number=chunk.line_number)
