"""Serving: what an open memory does beside everything else, and the embedder that it does a part of it with."""

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import anyio

from ricordo.errors import ExtraMissing
from ricordo.models import Embedder
from ricordo.models.embedding import load_embedder
from ricordo.stores.place import Place

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

__all__ = ["Serving", "chosen_embedder", "embed_for"]


@runtime_checkable
class Embeds(Protocol):
    """An index that gives vectors to what it holds."""

    async def embed(self, *, seconds: float) -> None:
        """Give vectors to what has none, for at most `seconds`."""
        ...

    async def serve(self) -> None:
        """Embed what is added for as long as this runs."""
        ...


def chosen_embedder(named: Embedder | str | None) -> Embedder | None:
    """Return the embedder of this name: `auto` is the static one where it is installed, `none` is none.

    It imports and reads, so call it in a thread. Raises what `load_embedder` does.
    """
    if named is None or named == "none" or not isinstance(named, str):
        return None if isinstance(named, str) else named
    if named != "auto":
        return load_embedder(named)
    try:
        return load_embedder("static")
    except (ExtraMissing, ImportError):
        return None


async def embed_for(place: Place, *, seconds: float) -> int:
    """Give vectors to what has none in a place, for at most `seconds`; return how many passages have none then."""
    if isinstance(place.index, Embeds):
        await place.index.embed(seconds=seconds)
    return place.index.freshness().not_embedded


class Serving:
    """Does beside everything else what open places need: embeds what an index lacks, and writes what was noted."""

    def __init__(self) -> None:
        self._waiting: list[Callable[[], Coroutine[Any, Any, None]]] = []
        self._has_begun = anyio.Event()

    def begin(self, place: Place) -> None:
        """Work for this place from now on."""
        if isinstance(place.index, Embeds):
            self._waiting.append(place.index.serve)
        if place.usage:
            self._waiting.append(place.usage.serve)
        self._has_begun.set()

    async def serve(self) -> None:
        """Do it until this is cancelled."""
        async with anyio.create_task_group() as group:
            while True:
                await self._has_begun.wait()
                self._has_begun = anyio.Event()
                while self._waiting:
                    group.start_soon(self._waiting.pop())
