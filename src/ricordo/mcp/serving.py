"""One process of the server, from its start to its end: the transport, the signals, and the work between the calls.

The first answer needs nothing but the protocol. The memory and what it imports are loaded after that, so that the first
call finds it open. At the end the memory is closed, with what it had begun.
"""

import signal
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any

import anyio
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

from ricordo.errors import RicordoError
from ricordo.mcp.contract import MemoryOpener, ServedMemory
from ricordo.mcp.root import ServedRoot
from ricordo.mcp.server import MemoryServer

__all__ = ["run_server"]


_OPENING_SECONDS = 30.0
_EMBEDDING_SECONDS = 10.0


async def run_server(
    open_memory: MemoryOpener,
    serve: Callable[[MemoryServer, anyio.Event], Awaitable[None]],
    *,
    version: str,
    work: Callable[[ServedMemory], Coroutine[Any, Any, None]],
) -> int:
    """Serve a memory by the transport `serve` until it ends, and return the signal that ended it, 0 for none.

    Between the calls it does `work` with the open memory, which is cancelled at the end.
    """
    root = ServedRoot(open_memory)
    server, stopping, contacted = MemoryServer(root, version=version), anyio.Event(), anyio.Event()
    ending_signal = 0

    async def note_contact(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        result = await call_next(ctx)
        contacted.set()
        return result

    async def end_at_signal() -> None:
        nonlocal ending_signal
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for each in signals:
                if stopping.is_set():
                    group.cancel_scope.cancel()
                ending_signal = each.value
                stopping.set()

    server.middleware.append(note_contact)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(end_at_signal)
            group.start_soon(_work_between_calls, server, contacted, work)
            await serve(server, stopping)
            group.cancel_scope.cancel()
    finally:
        await root.close()
    return ending_signal


async def _work_between_calls(
    server: MemoryServer, contacted: anyio.Event, work: Callable[[ServedMemory], Coroutine[Any, Any, None]]
) -> None:
    """Open the memory once the client has its first answer, load the embedder, watch the resources, and do the work."""
    await contacted.wait()
    while (served := server.root.served) is None:
        try:
            await server.root.get()
        except RicordoError:
            # a call tells the model what is wrong; meanwhile a person may mend it
            await anyio.sleep(_OPENING_SECONDS)
    async with anyio.create_task_group() as group:
        group.start_soon(_embed, served)
        group.start_soon(server.watch.run)
        group.start_soon(work, served)


async def _embed(served: ServedMemory) -> None:
    """Compute what is missing of the vectors, so that no call waits for the embedder to be loaded."""
    with suppress(RicordoError):
        await served.memory.embed(seconds=_EMBEDDING_SECONDS)
