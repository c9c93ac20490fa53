"""One event loop in a thread of its own, and methods that wait for what runs there.

Nothing is written twice: a blocking method is its asynchronous one, with the same arguments and the same docstring.
"""

import functools
import threading
from collections.abc import Awaitable, Callable
from typing import Concatenate, Generic, ParamSpec, Self, TypeVar

from anyio.from_thread import BlockingPortal

from ricordo.errors import InvalidSetting

__all__ = ["SyncProxy", "make_blocking", "run_and_wait"]

_T = TypeVar("_T")
_Inner_co = TypeVar("_Inner_co", covariant=True)
_P = ParamSpec("_P")
_R = TypeVar("_R")


class SyncProxy(Generic[_Inner_co]):
    """The blocking face of an object that lives on the loop of `portal`."""

    def __new__(cls, *given: object, **options: object) -> Self:
        """Refuse to be constructed as the asynchronous class is. Raises: InvalidSetting, which says how to open it."""
        if hasattr(cls, "open") and (options or not given or not isinstance(given[0], BlockingPortal)):
            raise InvalidSetting(
                f"{cls.__name__} of ricordo.sync is opened rather than constructed, with the same arguments: "
                f"`with {cls.__name__}.open(...) as ...`."
            )
        return super().__new__(cls)

    def __init__(self, portal: BlockingPortal, inner: _Inner_co) -> None:
        """Stand for `inner`."""
        self._portal = portal
        self._inner = inner


def make_blocking(
    method: Callable[Concatenate[_T, _P], Awaitable[_R]],
) -> Callable[Concatenate[SyncProxy[_T], _P], _R]:
    """Return the method of a face that calls `method` on the loop and waits for what it returns."""

    @functools.wraps(method)
    def call_and_wait(self: SyncProxy[_T], /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        return run_and_wait(self._portal, lambda: method(self._inner, *args, **kwargs))

    return call_and_wait


def run_and_wait(portal: BlockingPortal, act: Callable[[], Awaitable[_R]]) -> _R:
    """Return what `act` returns on the loop of `portal`; Ctrl-C cancels it, and is raised when it has ended."""
    ended = threading.Event()

    async def run() -> _R:
        try:
            return await act()
        finally:
            ended.set()

    future = portal.start_task_soon(run)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        ended.wait()
        raise
