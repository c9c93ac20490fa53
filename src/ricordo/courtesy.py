"""Courtesy: long work gives way to what is more urgent, at points that it passes often.

The work calls `yield_point` between two of the things it looks at, whatever it is and whoever runs it; what that does is
up to who lets it run `yielding_to`, and it is nothing where nobody does. Invariant: giving way takes time or ends the
work by an exception, and changes nothing of what the work comes to, so what is pure stays pure.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

__all__ = ["NoYield", "YieldPolicy", "yield_point", "yielding_to"]


class YieldPolicy(Protocol):
    """How one piece of work behaves towards what is more urgent."""

    async def pause(self) -> None:
        """Return when the next step may begin; called between two steps."""
        ...

    def yield_now(self) -> None:
        """Return when the step may go on; called within one, in a worker thread, once in a few milliseconds or more."""
        ...


class NoYield:
    """The courtesy of work that nothing is more urgent than."""

    async def pause(self) -> None:
        """Wait for nothing."""

    def yield_now(self) -> None:
        """Wait for nothing."""


_YIELD_HANDLER: ContextVar[Callable[[], None] | None] = ContextVar("give_way", default=None)


def yield_point() -> None:
    """Let what is more urgent go first. Raises what the courtesy of the work raises, when the work is cancelled."""
    to = _YIELD_HANDLER.get()
    if to is not None:
        to()


@contextmanager
def yielding_to(courtesy: YieldPolicy) -> Iterator[None]:
    """Let the block, and the threads it begins, give way as `yield_policy` says; hold no lock that a turn may wait for."""
    before = _YIELD_HANDLER.set(courtesy.yield_now)
    try:
        yield
    finally:
        _YIELD_HANDLER.reset(before)
