"""Rerankers by name: what a program registered, or an installed package offers as an entry point.

Nothing is imported before it is named.

Invariant: a name that gives no reranker is an error with the names that would.
"""

from collections.abc import Callable
from difflib import get_close_matches
from importlib.metadata import entry_points
from inspect import iscoroutinefunction
from typing import TypeAlias

from ricordo.errors import ExtraMissing, InvalidSetting
from ricordo.lazy import lazy_compile
from ricordo.search.recall import Reranker

__all__ = [
    "RERANKER_GROUP",
    "RerankerFactory",
    "choose_reranker",
    "list_rerankers",
    "load_reranker",
    "register_reranker",
]


RERANKER_GROUP = "ricordo.rerankers"
"""The group of entry points under which packages offer their rerankers."""
RerankerFactory: TypeAlias = Callable[[], Reranker]
"""Makes a reranker, such as its class. It is called off the event loop, at each opening of a memory."""
_NAME_PATTERN = lazy_compile(r"[a-z0-9][a-z0-9_.+-]*")
_NO_RERANKER = "none"
_FACTORIES: dict[str, RerankerFactory] = {}


def register_reranker(name: str, factory: RerankerFactory) -> None:
    """Let the setting `reranker` name what `factory` makes, in this process; a later one takes the place of an earlier.

    Raises: InvalidSetting for a name that is none: lower-case letters, digits, `_`, `.`, `+` and `-`, and not `none`.
    """
    if not _NAME_PATTERN.fullmatch(name) or name == _NO_RERANKER:
        raise InvalidSetting(f"{name!r} is no name for a reranker: it has lower-case letters, digits, _, ., + or -.")
    _FACTORIES[name] = factory


def list_rerankers() -> tuple[str, ...]:
    """Return the names of the rerankers there are, in their order."""
    return tuple(sorted({*_FACTORIES, *(point.name for point in entry_points(group=RERANKER_GROUP))}))


def load_reranker(name: str) -> Reranker:
    """Return a new reranker of this name; it imports, so call it in a thread.

    Raises: InvalidSetting where nobody offers one of this name, or what is offered is none; ExtraMissing where the
    package that offers it, or what it needs, can't be loaded.
    """
    factory = _find_factory(name)
    try:
        made = factory()
    except (ImportError, OSError) as error:
        # what it runs with, or its weights, may be missing
        raise ExtraMissing(f"The reranker {name} can't be made: {error}.") from error
    scores = getattr(made, "scores", None)
    if not iscoroutinefunction(scores):
        raise InvalidSetting(f"The reranker {name} has no `async def scores(self, query, texts)`.")
    return made


def choose_reranker(named: Reranker | str | None) -> Reranker | None:
    """Return the reranker of this name, or the given one; `none` is none. Raises what `load_reranker` does."""
    if not isinstance(named, str):
        return named
    return None if named == _NO_RERANKER else load_reranker(named)


def _find_factory(name: str) -> RerankerFactory:
    if name in _FACTORIES:
        return _FACTORIES[name]
    found = [point for point in entry_points(group=RERANKER_GROUP) if point.name == name]
    if not found:
        known = list_rerankers()
        near = get_close_matches(name, known, n=1, cutoff=0.6)
        hint = f"did you mean {near[0]}? " if near else ""
        there = f"Known rerankers: {', '.join(known)}." if known else "No installed package offers one."
        raise InvalidSetting(f"There is no reranker {name!r}: {hint}{there}")
    try:
        factory: RerankerFactory = found[0].load()
    except (ImportError, AttributeError) as error:
        raise ExtraMissing(f"The reranker {name} of {found[0].value} can't be loaded: {error}.") from error
    return factory
