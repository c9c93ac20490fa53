"""`MemoryPool`: the memories of the users of one root, with a bound on how many are open at a time.

Invariant: a memory that somebody uses is not closed by the pool, and no user has two open memories in it.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import anyio

from ricordo.errors import InvalidScope, MemoryClosed, PoolExhausted, RicordoError
from ricordo.events import EventSink
from ricordo.lazy import dataclass
from ricordo.models import Embedder
from ricordo.runtime import Settings
from ricordo.runtime.memory import Memory
from ricordo.runtime.validation import check_limit, check_scope, check_seconds
from ricordo.scope import Scope

if TYPE_CHECKING:
    from ricordo.search import Reranker

__all__ = ["MemoryPool"]

_log = logging.getLogger("ricordo.pool")


@dataclass(eq=False)
class _Slot:
    """The place of one memory in a pool; it counts as open while it exists."""

    memory: Memory | None = None
    users: int = 0
    is_closing: bool = False
    lock: anyio.Lock = field(default_factory=anyio.Lock)


class MemoryPool:
    """The memories of many users of one root. Use `async with MemoryPool(...) as pool`.

    At most `max_open` memories are open at a time. Each needs about eight file descriptors.
    A memory stays open after its use, until another user needs its place: the one that was not used for the longest
    time is closed then.
    """

    def __init__(
        self,
        root: str | Path | None = None,
        *,
        scope: Scope,
        max_open: int = 32,
        wait_seconds: float = 30.0,
        settings: Settings | None = None,
        trusted: bool = False,
        on_event: EventSink | None = None,
        embedder: Embedder | str | None = None,
        reranker: "Reranker | str | None" = None,
    ) -> None:
        """Create a pool for the project or team of `scope`, which names no user; nothing is opened yet.

        If all `max_open` memories are in use, a further user waits for at most `wait_seconds`. The other arguments are
        those of `Memory.open`. Raises: InvalidScope; InvalidQuery if `max_open` is below 1; InvalidSetting.
        """
        if check_scope(scope).user is not None:
            raise InvalidScope("The scope of a pool names no user: `pool.user` does.")
        self._scope = scope
        self._max_open = check_limit(max_open)
        self._wait_seconds = check_seconds(wait_seconds)
        self._open = partial(
            Memory.open, root, settings=settings, trusted=trusted, on_event=on_event, embedder=embedder,
            reranker=reranker,
        )  # fmt: skip
        # the slot that was used last is the last one
        self._slots: dict[str | None, _Slot] = {}
        self._changed: anyio.Event | None = None
        self._is_closed = False

    @property
    def open_count(self) -> int:
        """The number of memories that are open now, at most `max_open`."""
        return len(self._slots)

    @asynccontextmanager
    async def user(self, user: str | None) -> AsyncIterator[Memory]:
        """Lend the memory of one user for the block; None stands for what all users of the project share.

        It is the same `Memory` for all blocks of a user at the same time, and is opened once. Do not close it. Raises:
        PoolExhausted if no place gets free in time; MemoryClosed if the pool is closed; what `Memory.open` raises.
        """
        scope = self._scope if user is None else replace(self._scope, user=user)
        slot: _Slot | None = None
        with anyio.move_on_after(self._wait_seconds):
            slot = await self._reserve(user)
        if slot is None:
            raise PoolExhausted(
                f"All {self._max_open} memories of the pool were in use for {self._wait_seconds:g} s: end their blocks "
                "earlier, or let the pool open more with `max_open`."
            )
        try:
            async with slot.lock:
                if slot.memory is None or slot.memory.is_closed:
                    slot.memory = await self._open(scope=scope)
            yield slot.memory
        finally:
            self._give_back(user, slot)

    async def close(self) -> None:
        """Close all memories, also those in use; a second call does nothing. Then `user` raises MemoryClosed."""
        self._is_closed = True
        slots, self._slots = self._slots, {}
        self._report_change()
        async with anyio.create_task_group() as group:
            for slot in slots.values():
                group.start_soon(_close_slot, slot)

    async def __aenter__(self) -> "MemoryPool":
        """Return this pool."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close all memories."""
        await self.close()

    async def _reserve(self, user: str | None) -> _Slot:
        """Return the slot of a user with one more use; wait until there is a place for it."""
        while not self._is_closed:
            slot = self._slots.get(user)
            if slot is None and len(self._slots) < self._max_open:
                slot = self._slots[user] = _Slot()
            if slot is not None and not slot.is_closing:
                slot.users += 1
                return slot
            idle = next((name for name, each in self._slots.items() if not each.users and not each.is_closing), ...)
            if slot is not None or idle is ...:
                self._changed = self._changed or anyio.Event()
                await self._changed.wait()
            else:
                await self._evict(idle)
        raise MemoryClosed("This pool of memories is closed.")

    async def _evict(self, user: str | None) -> None:
        slot = self._slots[user]
        slot.is_closing = True
        try:
            await _close_slot(slot)
        finally:
            self._slots.pop(user, None)
            self._report_change()

    def _give_back(self, user: str | None, slot: _Slot) -> None:
        slot.users -= 1
        if self._slots.get(user) is slot:
            del self._slots[user]
            if slot.users or slot.memory is not None:
                self._slots[user] = slot
        self._report_change()

    def _report_change(self) -> None:
        """Wake everybody who waits for a place."""
        if self._changed is not None:
            self._changed.set()
            self._changed = None


async def _close_slot(slot: _Slot) -> None:
    """Close the memory of a slot; an error is logged, because it concerns nobody who waits."""
    try:
        async with slot.lock:
            if slot.memory is not None:
                await slot.memory.close()
    except RicordoError as error:
        _log.warning("A memory of the pool could not be closed properly: %s", error)
