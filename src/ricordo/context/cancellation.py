"""Finds cancellations that other exceptions wrap, so that cancelled work does not continue.

Invariant: a timeout is not a cancellation, although packages cancel to end it.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import anyio

__all__ = ["find_cancellation", "unwrap_cancellation"]


_TRIO_TIMEOUT = "TooSlowError"


def find_cancellation(error: BaseException) -> BaseException | None:
    """Return the cancellation that `error` is or that caused it; None if there is none.

    It searches exception groups, contexts and cyclic chains of causes."""
    kind = anyio.get_cancelled_exc_class()
    seen: set[int] = set()
    waiting: list[BaseException] = [error]
    while waiting:
        current = waiting.pop(0)
        if isinstance(current, kind):
            return current
        if id(current) in seen:
            continue
        seen.add(id(current))
        if isinstance(current, TimeoutError) or type(current).__name__ == _TRIO_TIMEOUT:
            continue
        inside = current.exceptions if isinstance(current, BaseExceptionGroup) else ()
        before = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
        waiting += [*inside, *([before] if before is not None else [])]
    return None


@contextmanager
def unwrap_cancellation() -> Iterator[None]:
    """Raise the wrapped cancellation itself if an exception from this block wraps one."""
    try:
        yield
    except BaseException as error:
        cancelled = find_cancellation(error)
        if cancelled is None or cancelled is error:
            raise
        raise cancelled from None
