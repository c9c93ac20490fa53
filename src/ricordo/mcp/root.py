"""The root that is served: its memory is opened when it is first needed, and closed with the server."""

from anyio import CancelScope, Lock, to_thread

from ricordo.mcp.contract import MemoryOpener, ServedMemory

__all__ = ["ServedRoot"]


class ServedRoot:
    """The memory of one server, open from its first use to the end."""

    def __init__(self, open_memory: MemoryOpener) -> None:
        """Open nothing yet."""
        self._open_memory = open_memory
        self._lock = Lock()
        self._served: ServedMemory | None = None

    async def get(self, *, create: bool = False) -> ServedMemory:
        """Return the open memory. Raises what opening raises, and tries again at the next call."""
        if self._served is not None:
            return self._served
        async with self._lock:
            if self._served is None:
                await to_thread.run_sync(_load_handlers)
                self._served = await self._open_memory(create=create)
            return self._served

    @property
    def served(self) -> ServedMemory | None:
        """The memory if it is open by now."""
        return self._served

    async def close(self) -> None:
        """Close the memory, also in a task that was cancelled; the next use opens it again."""
        with CancelScope(shield=True):
            async with self._lock:
                served, self._served = self._served, None
                if served is not None:
                    await served.memory.close()


def _load_handlers() -> None:
    """Load what the calls need, which takes longer than the first answer may."""
    import ricordo.mcp.resources  # noqa: F401
