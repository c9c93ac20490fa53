"""The agent's model, the embedder named in settings, and rerankers by name; the background services of open roots.

Rerankers are registered by a program, or offered by an installed package as an entry point. Nothing is imported until
it is named.

Invariant: an unknown name is an error that lists the known names.
"""

from collections.abc import Callable
from dataclasses import asdict
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast, runtime_checkable

import anyio

from ricordo import models
from ricordo.errors import ExtraMissing, InvalidSetting
from ricordo.lazy import lazy_compile
from ricordo.models.config import provider_name
from ricordo.runtime.settings import Settings
from ricordo.search.contract import Reranker
from ricordo.search.memory_root import MemoryRoot

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Sequence
    from importlib.metadata import EntryPoint

    from ricordo.models import ChatModel, Embedder, ModelSettings

__all__ = [
    "RERANKER_GROUP",
    "BackgroundServices",
    "RerankerFactory",
    "choose_embedder",
    "choose_reranker",
    "embed_new_passages",
    "embed_root",
    "list_rerankers",
    "load_agent_model",
    "load_named_embedder",
    "load_reranker",
    "register_reranker",
]


@runtime_checkable
class EmbeddingIndex(Protocol):
    """An index that embeds its content."""

    async def embed(self, *, seconds: float, now: bool = False) -> None:
        """Embed what has no vector, for at most `seconds`; with `now` by an embedder that just failed, too."""
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
    """Embed passages of a root for at most `seconds`; return how many still have no vector.

    An embedder that failed within the last minute is asked again.
    """
    if isinstance(place.index, EmbeddingIndex):
        await place.index.embed(seconds=seconds, now=True)
    return place.index.freshness().not_embedded


async def embed_new_passages(places: "Iterable[MemoryRoot]", *, seconds: float) -> None:
    """Embed passages that were written to these roots since the last time, for at most `seconds` in each."""
    for place in places:
        if _embeds(type(place.index)):
            await cast("EmbeddingIndex", place.index).embed_new(seconds=seconds)


@lru_cache(maxsize=16)
def _embeds(kind: type) -> bool:
    """Return whether indexes of this type embed; the check of a protocol takes longer than what it is for."""
    return issubclass(kind, EmbeddingIndex)


class BackgroundServices:
    """Background tasks of open roots: they embed passages without vectors, and write usage and audit records."""

    def __init__(self) -> None:
        self._pending: list[Callable[[], Coroutine[Any, Any, None]]] = []
        self._has_pending = anyio.Event()

    def add_root(self, place: MemoryRoot) -> None:
        """Serve this root from now on."""
        if isinstance(place.index, EmbeddingIndex):
            self.add_task(place.index.serve)
        if place.usage:
            self.add_task(place.usage.serve)
        if place.audit:
            self.add_task(place.audit.serve)

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


RERANKER_GROUP = "ricordo.rerankers"
"""The entry point group under which packages offer rerankers."""
RerankerFactory: TypeAlias = Callable[[], Reranker]
"""Creates a reranker, such as its class. It is called off the event loop, each time a memory is opened."""
_NAME_PATTERN = lazy_compile(r"[a-z0-9][a-z0-9_.+-]*")
_NO_RERANKER = "none"
_FACTORIES: dict[str, RerankerFactory] = {}


def register_reranker(name: str, factory: RerankerFactory) -> None:
    """Register `factory` under a name for the setting `reranker`, in this process; it replaces an earlier one.

    Raises: InvalidSetting unless the name has only lower-case letters, digits, `_`, `.`, `+` and `-`, and is not
    `none`.
    """
    if not _NAME_PATTERN.fullmatch(name) or name == _NO_RERANKER:
        raise InvalidSetting(f"{name!r} is no name for a reranker: it has lower-case letters, digits, _, ., + or -.")
    _FACTORIES[name] = factory


def list_rerankers() -> tuple[str, ...]:
    """Return the names of all available rerankers, sorted."""
    return tuple(sorted({*_FACTORIES, *(point.name for point in _list_entry_points())}))


def load_reranker(name: str) -> Reranker:
    """Return a new reranker of this name; it imports, so call it in a thread.

    Raises: InvalidSetting if no reranker has this name or the object is not a reranker; ExtraMissing if its package, or
    a dependency, can't be loaded.
    """
    from inspect import iscoroutinefunction

    factory = _find_factory(name)
    try:
        reranker = factory()
    except (ImportError, OSError) as error:
        # a library it needs, or its weights, may be missing
        raise ExtraMissing(f"The reranker {name} can't be made: {error}.") from error
    scores = getattr(reranker, "scores", None)
    if not iscoroutinefunction(scores):
        raise InvalidSetting(f"The reranker {name} has no `async def scores(self, query, texts)`.")
    return reranker


def choose_reranker(reranker: Reranker | str | None) -> Reranker | None:
    """Return the reranker of this name, or the given object; None for `none`. Raises what `load_reranker` raises."""
    if not isinstance(reranker, str):
        return reranker
    return None if reranker == _NO_RERANKER else load_reranker(reranker)


def _find_factory(name: str) -> RerankerFactory:
    if name in _FACTORIES:
        return _FACTORIES[name]
    entry_points = [point for point in _list_entry_points() if point.name == name]
    if not entry_points:
        from difflib import get_close_matches

        names = list_rerankers()
        matches = get_close_matches(name, names, n=1, cutoff=0.6)
        hint = f"did you mean {matches[0]}? " if matches else ""
        available = f"Known rerankers: {', '.join(names)}." if names else "No installed package offers one."
        raise InvalidSetting(f"There is no reranker {name!r}: {hint}{available}")
    try:
        factory: RerankerFactory = entry_points[0].load()
    except (ImportError, AttributeError) as error:
        raise ExtraMissing(f"The reranker {name} of {entry_points[0].value} can't be loaded: {error}.") from error
    return factory


def _list_entry_points() -> "Sequence[EntryPoint]":
    from importlib.metadata import entry_points

    return [*entry_points(group=RERANKER_GROUP)]
