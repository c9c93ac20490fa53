"""Rerankers by name: registered by a program, or offered by an installed package as an entry point.

Nothing is imported until it is named.

Invariant: an unknown name is an error that lists the known names.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from ricordo.errors import ExtraMissing, InvalidSetting
from ricordo.lazy import lazy_compile
from ricordo.search.recall import Reranker

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = [
    "RERANKER_GROUP",
    "RerankerFactory",
    "choose_reranker",
    "list_rerankers",
    "load_reranker",
    "register_reranker",
]


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
