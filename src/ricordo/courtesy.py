"""Courtesy: long work gives way to what is more urgent, at points that it passes often.

The work calls `give_way` between two of the things it looks at, whatever it is and whoever runs it; what that does is
up to who lets it run `giving_way`, and it is nothing where nobody does. Invariant: giving way takes time or ends the
work by an exception, and changes nothing of what the work comes to, so what is pure stays pure.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

__all__ = ["AtOnce", "Courtesy", "give_way", "giving_way"]


class Courtesy(Protocol):
    """How one piece of work behaves towards what is more urgent."""

    async def rest(self) -> None:
        """Return when the next step may begin; called between two steps."""
        ...

    def give_way(self) -> None:
        """Return when the step may go on; called within one, in a worker thread, once in a few milliseconds or more."""
        ...


class AtOnce:
    """The courtesy of work that nothing is more urgent than."""

    async def rest(self) -> None:
        """Wait for nothing."""

    def give_way(self) -> None:
        """Wait for nothing."""


_GIVE_WAY: ContextVar[Callable[[], None] | None] = ContextVar("give_way", default=None)


def give_way() -> None:
    """Let what is more urgent go first. Raises what the courtesy of the work raises, when the work is cancelled."""
    to = _GIVE_WAY.get()
    if to is not None:
        to()


@contextmanager
def giving_way(courtesy: Courtesy) -> Iterator[None]:
    """Let the block, and the threads it begins, give way as `courtesy` says; hold no lock that a turn may wait for."""
    before = _GIVE_WAY.set(courtesy.give_way)
    try:
        yield
    finally:
        _GIVE_WAY.reset(before)
