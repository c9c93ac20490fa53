"""What was counted once for a value that does not change, known for as long as the value lives.

A window is measured by every step that may make it smaller, and most of its messages are those of the last request.
Invariant: nothing is kept alive, and a value is told by its identity, so that asking costs the same at any size.
"""

from collections.abc import Callable
from typing import Generic, TypeVar
from weakref import ref

__all__ = ["CountCache"]

_T = TypeVar("_T")


class CountCache(Generic[_T]):
    """Counts of values of one kind; safe to ask from many threads."""

    def __init__(self, count: Callable[[_T], int]) -> None:
        """Let `count` count each value the first time."""
        self._count = count
        self._counts: dict[int, tuple[ref[_T], int]] = {}

    def __call__(self, value: _T) -> int:
        """Return the count of a value that is never changed after this."""
        key = id(value)
        found = self._counts.get(key)
        if found is None or found[0]() is not value:
            # the number is free for another value only after this was told
            found = ref(value, lambda _: self._counts.pop(key, None)), self._count(value)
            self._counts[key] = found
        return found[1]
