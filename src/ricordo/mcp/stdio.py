"""The protocol on standard input and output: one JSON message a line, and nothing else on standard output.

While it runs, prints of anything else in the process go to standard error. It ends when the input ends or `stopping` is
set: no further message is read, and the requests that were read before are answered, within a limit of time, which is
shorter after a signal.
"""

import os
import select
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import anyio
from anyio import to_thread
from anyio.from_thread import BlockingPortal
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp.types import (
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
    jsonrpc_message_adapter,
)

from ricordo.mcp.server import MemoryServer

__all__ = ["MAX_LINE_BYTES", "serve_stdio"]


MAX_LINE_BYTES = 8 * 1024 * 1024
"""The largest message that is read; a longer line is left out."""
_ANSWER_SECONDS = 10.0
_SECONDS_AFTER_SIGNAL = 2.0
_CHUNK = 65_536
_PIPE_CHUNK = 4_096
"""A pipe that is ready takes at least so many bytes at once."""
_WRITE_WAIT = 0.2
_ENDLESS = "subscriptions/listen"


class _OpenRequests:
    """The requests that were read and not answered yet."""

    def __init__(self) -> None:
        self._ids: set[RequestId] = set()
        self._changed = anyio.Event()

    def note_read(self, message: object) -> None:
        if isinstance(message, JSONRPCRequest) and message.method != _ENDLESS:
            self._ids.add(message.id)
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            # a request that the client cancelled is never answered
            self._remove((message.params or {}).get("requestId"))

    def note_written(self, message: object) -> None:
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            self._remove(message.id)

    def _remove(self, name: object) -> None:
        self._ids = {each for each in self._ids if each != name}
        self._changed.set()
        self._changed = anyio.Event()

    async def wait_until_answered(self) -> None:
        while self._ids:
            await self._changed.wait()


async def serve_stdio(server: MemoryServer, stopping: anyio.Event) -> None:
    """Serve one client until the input ends or `stopping` is set."""
    to_server, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, from_server = anyio.create_memory_object_stream[SessionMessage](0)
    requests = _OpenRequests()
    with _take_over(0, os.O_RDONLY) as source, _take_over(1, os.O_WRONLY) as target:
        async with anyio.create_task_group() as group:
            group.start_soon(_write_messages, from_server, target, requests)
            group.start_soon(_read_messages, source, to_server, requests, stopping)
            await server.run(incoming, outgoing, server.create_initialization_options())
            stopping.set()
            group.cancel_scope.cancel()


@contextmanager
def _take_over(descriptor: int, mode: int) -> Iterator[int]:
    """Yield a private copy of a standard stream, in whose place stand the null device and standard error."""
    private = os.dup(descriptor)
    other = os.open(os.devnull, mode) if mode == os.O_RDONLY else os.dup(2)
    os.dup2(other, descriptor)
    os.close(other)
    try:
        yield private
    finally:
        os.dup2(private, descriptor)


async def _read_messages(
    source: int,
    to_server: MemoryObjectSendStream[SessionMessage | Exception],
    requests: _OpenRequests,
    stopping: anyio.Event,
) -> None:
    to_reader, lines = anyio.create_memory_object_stream[bytes](0)
    async with BlockingPortal() as portal, anyio.create_task_group() as group:
        # a thread that waits for input can't be stopped, and must not keep the process from ending
        threading.Thread(target=_read_lines, args=(source, portal, to_reader), daemon=True).start()

        answering = anyio.CancelScope()

        async def stop_reading() -> None:
            await stopping.wait()
            await to_reader.aclose()
            await anyio.sleep(_SECONDS_AFTER_SIGNAL)
            answering.cancel()

        group.start_soon(stop_reading)
        async with to_server:
            async for line in lines:
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError as error:
                    await to_server.send(error)
                    continue
                requests.note_read(message)
                await to_server.send(SessionMessage(message))
            answering.deadline = anyio.current_time() + _ANSWER_SECONDS
            with answering:
                await requests.wait_until_answered()
        group.cancel_scope.cancel()


def _read_lines(source: int, portal: BlockingPortal, to_reader: MemoryObjectSendStream[bytes]) -> None:
    """Hand over the lines of a descriptor to the event loop, and close the stream at its end."""
    # the loop may have ended meanwhile
    with suppress(RuntimeError, anyio.ClosedResourceError, anyio.BrokenResourceError):
        for line in _split_lines(source):
            portal.call(to_reader.send, line)
        portal.call(to_reader.aclose)


def _split_lines(source: int) -> Iterator[bytes]:
    rest, is_too_long = b"", False
    while chunk := os.read(source, _CHUNK):
        *lines, tail = (rest + chunk).split(b"\n")
        for line in lines:
            if not is_too_long and line.strip():
                yield line
            is_too_long = False
        is_too_long = is_too_long or len(tail) > MAX_LINE_BYTES
        rest = b"" if is_too_long else tail
    if rest.strip() and not is_too_long:
        yield rest


async def _write_messages(
    from_server: MemoryObjectReceiveStream[SessionMessage], target: int, requests: _OpenRequests
) -> None:
    stopped = threading.Event()
    try:
        async for each in from_server:
            data = each.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
            await to_thread.run_sync(_write_all, target, data, stopped, abandon_on_cancel=True)
            requests.note_written(each.message)
    finally:
        stopped.set()


def _write_all(target: int, data: bytes, stopped: threading.Event) -> None:
    """Write all of `data`, unless the reader has gone or `stopped` is set while it does not read."""
    rest = memoryview(data)
    # nobody reads the answers any more
    with suppress(BrokenPipeError):
        while rest:
            if select.select([], [target], [], _WRITE_WAIT)[1]:
                rest = rest[os.write(target, rest[:_PIPE_CHUNK]) :]
            elif stopped.is_set():
                return
