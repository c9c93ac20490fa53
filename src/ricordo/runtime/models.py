"""The agent's model and the embedder named in settings, and the background services of open roots."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import anyio

from ricordo import models
from ricordo.errors import ExtraMissing
from ricordo.models.config import provider_name
from ricordo.runtime.settings import Settings
from ricordo.search.memory_root import MemoryRoot

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable

    from ricordo.models import ChatModel, Embedder, ModelSettings

__all__ = [
    "BackgroundServices",
    "choose_embedder",
    "embed_new_passages",
    "embed_root",
    "load_agent_model",
    "load_named_embedder",
]


@runtime_checkable
class EmbeddingIndex(Protocol):
    """An index that embeds its content."""

    async def embed(self, *, seconds: float) -> None:
        """Embed what has no vector, for at most `seconds`."""
        ...

    async def embed_new(self, *, seconds: float) -> None:
        """Embed what has no vector, for at most `seconds`, if anything changed since the last time."""
        ...

    async def serve(self) -> None:
        """Embed new content while this runs."""
        ...


def choose_embedder(
    embedder: "Embedder | str | None", settings: Settings, agent: "ChatModel | None" = None
) -> "Embedder | None":
    """Return the embedder of this name: `auto` is the static embedder if installed, `none` is None.

    Its address comes from `settings`; `agent` is the agent's model, if any. It imports and reads files, so call it in a
    thread. Raises what `load_embedder` and `Settings.resolve_address` raise.
    """
    if embedder is None or embedder == "none" or not isinstance(embedder, str):
        return None if isinstance(embedder, str) else embedder
    if embedder != "auto":
        return load_named_embedder(embedder, settings, agent)
    try:
        return models.load_embedder("static")
    except (ExtraMissing, ImportError):
        return None


def load_named_embedder(name: str, settings: Settings, agent: "ChatModel | None" = None) -> "Embedder":
    """Load the embedder of this name with its address from `settings`. Raises as `choose_embedder` does."""
    if not provider_name(name):
        return models.load_embedder(name)
    own = settings.embedder_base_url
    return models.load_embedder(
        name, base_url=settings.resolve_address(name, setting="embedder_base_url", own=own, agent=agent)
    )


async def embed_root(place: MemoryRoot, *, seconds: float) -> int:
    """Embed passages of a root for at most `seconds`; return how many still have no vector."""
    if isinstance(place.index, EmbeddingIndex):
        await place.index.embed(seconds=seconds)
    return place.index.freshness().not_embedded


async def embed_new_passages(places: "Iterable[MemoryRoot]", *, seconds: float) -> None:
    """Embed passages that were written to these roots since the last time, for at most `seconds` in each."""
    for place in places:
        if isinstance(place.index, EmbeddingIndex):
            await place.index.embed_new(seconds=seconds)


class BackgroundServices:
    """Background tasks of open roots: they embed passages without vectors and write usage records."""

    def __init__(self) -> None:
        self._pending: list[Callable[[], Coroutine[Any, Any, None]]] = []
        self._has_pending = anyio.Event()

    def add_root(self, place: MemoryRoot) -> None:
        """Serve this root from now on."""
        if isinstance(place.index, EmbeddingIndex):
            self.add_task(place.index.serve)
        if place.usage:
            self.add_task(place.usage.serve)

    def add_task(self, work: "Callable[[], Coroutine[Any, Any, None]]") -> None:
        """Run this too until `serve` is cancelled."""
        self._pending.append(work)
        self._has_pending.set()

    async def serve(self) -> None:
        """Run the tasks until this is cancelled."""
        async with anyio.create_task_group() as group:
            while True:
                await self._has_pending.wait()
                self._has_pending = anyio.Event()
                while self._pending:
                    group.start_soon(self._pending.pop())


def load_agent_model(name: str, settings: Settings, model_settings: "ModelSettings | None" = None) -> "ChatModel":
    """Load the agent's model `name` with the settings `model_settings`, by default those in `settings`.

    See `load_model` for the errors.
    """
    return models.load_model(name, base_url=settings.base_url, **asdict(model_settings or settings.model_settings))
