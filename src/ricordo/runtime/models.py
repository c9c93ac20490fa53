"""The agent's model and the embedder that settings name, and the background services of open roots."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import anyio

from ricordo.errors import ExtraMissing
from ricordo.models import ChatModel, Embedder, ModelSettings
from ricordo.models.embedders import load_embedder
from ricordo.models.provider import load_model, provider_name
from ricordo.runtime.settings import Settings
from ricordo.search.memory_root import MemoryRoot

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

__all__ = ["BackgroundServices", "choose_embedder", "embed_root", "load_agent_model", "load_named_embedder"]


@runtime_checkable
class EmbeddingIndex(Protocol):
    """An index that gives vectors to what it holds."""

    async def embed(self, *, seconds: float) -> None:
        """Give vectors to what has none, for at most `seconds`."""
        ...

    async def serve(self) -> None:
        """Embed what is added for as long as this runs."""
        ...


def choose_embedder(
    named: Embedder | str | None, settings: Settings, agent: ChatModel | None = None
) -> Embedder | None:
    """Return the embedder of this name: `auto` is the static one where it is installed, `none` is none.

    It is reached where `settings` say; `agent` is the model of the agent, where there is one. It imports and reads, so
    call it in a thread. Raises what `load_embedder` and `Settings.resolve_address` do.
    """
    if named is None or named == "none" or not isinstance(named, str):
        return None if isinstance(named, str) else named
    if named != "auto":
        return load_named_embedder(named, settings, agent)
    try:
        return load_embedder("static")
    except (ExtraMissing, ImportError):
        return None


def load_named_embedder(name: str, settings: Settings, agent: ChatModel | None = None) -> Embedder:
    """Return the embedder of this name, reached where `settings` say. Raises as `choose_embedder` does."""
    if not provider_name(name):
        return load_embedder(name)
    own = settings.embedder_base_url
    return load_embedder(
        name, base_url=settings.resolve_address(name, setting="embedder_base_url", own=own, agent=agent)
    )


async def embed_root(place: MemoryRoot, *, seconds: float) -> int:
    """Give vectors to what has none in a place, for at most `seconds`; return how many passages have none then."""
    if isinstance(place.index, EmbeddingIndex):
        await place.index.embed(seconds=seconds)
    return place.index.freshness().not_embedded


class BackgroundServices:
    """Does beside everything else what open places need: embeds what an index lacks, and writes what was noted."""

    def __init__(self) -> None:
        self._pending: list[Callable[[], Coroutine[Any, Any, None]]] = []
        self._has_pending = anyio.Event()

    def add_root(self, place: MemoryRoot) -> None:
        """Work for this place from now on."""
        if isinstance(place.index, EmbeddingIndex):
            self.add_task(place.index.serve)
        if place.usage:
            self.add_task(place.usage.serve)

    def add_task(self, work: "Callable[[], Coroutine[Any, Any, None]]") -> None:
        """Do this too until `serve` is cancelled."""
        self._pending.append(work)
        self._has_pending.set()

    async def serve(self) -> None:
        """Do it until this is cancelled."""
        async with anyio.create_task_group() as group:
            while True:
                await self._has_pending.wait()
                self._has_pending = anyio.Event()
                while self._pending:
                    group.start_soon(self._pending.pop())


def load_agent_model(name: str, settings: Settings, given: ModelSettings | None = None) -> ChatModel:
    """Return the agent's model `name`, told what is `given`, by default what the settings say.

    See `load_model` for the errors.
    """
    return load_model(name, base_url=settings.base_url, **asdict(given or settings.model_settings))
