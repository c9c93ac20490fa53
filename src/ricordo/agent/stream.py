"""TurnStream: a turn as it happens, its events in order, and what it came to."""

import math
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

import anyio

from ricordo.errors import RicordoError
from ricordo.middleware import TurnEvent, TurnResult

__all__ = ["TurnStream"]


class TurnStream:
    """Iterate it once for the events; afterwards `result` is the whole turn."""

    def __init__(self) -> None:
        """Wait for a turn."""
        self._send, self._receive = anyio.create_memory_object_stream[TurnEvent](math.inf)
        self._result: TurnResult | None = None
        self._error: RicordoError | None = None

    def __enter__(self) -> Self:
        """Be listened to."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Forget what nobody listened to."""
        self._send.close()
        self._receive.close()

    @property
    def result(self) -> TurnResult:
        """What the turn came to. Raises what the turn raised, and `RicordoError` before its end."""
        if self._error is not None:
            raise self._error
        if self._result is None:
            raise RicordoError("The turn has not ended: iterate over its events first.")
        return self._result

    async def emit(self, event: TurnEvent) -> None:
        """Pass an event on."""
        self._send.send_nowait(event)

    async def run(self, turn: Callable[[], Awaitable[TurnResult]]) -> None:
        """Carry the turn out; its error is raised where its events are read."""
        try:
            self._result = await turn()
        except RicordoError as error:
            self._error = error
        finally:
            self._send.close()

    def __aiter__(self) -> Self:
        """Give the events as they come."""
        return self

    async def __anext__(self) -> TurnEvent:
        """Return the next event. Raises what the turn raised."""
        with suppress(anyio.EndOfStream, anyio.ClosedResourceError):
            return await self._receive.receive()
        if self._error is not None:
            raise self._error
        raise StopAsyncIteration
