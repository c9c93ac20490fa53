"""Answers hooks from a process that has the memory open, at the private socket of its place."""

import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial

import anyio
from anyio.abc import SocketAttribute, SocketStream
from filelock import FileLock, Timeout

from ricordo.concurrency import background_group, run_in_thread
from ricordo.context.config import HooksConfig
from ricordo.errors import RicordoError
from ricordo.hooks.answers import answer_event
from ricordo.hooks.contract import HookAnswer, HookEvent
from ricordo.hooks.link import (
    ANSWER_SECONDS,
    MAX_LINE_BYTES,
    encode_answer,
    is_own_folder,
    is_own_peer,
    is_usable_path,
    parse_event,
)
from ricordo.hooks.places import Place, make_private_folder
from ricordo.runtime.memory import Memory

__all__ = ["serve_hooks"]


_LOG = logging.getLogger("ricordo.hooks")
_READ_SECONDS = 1.0
_DEFAULTS = HooksConfig()


@asynccontextmanager
async def serve_hooks(memory: Memory, place: Place, *, config: HooksConfig | None = _DEFAULTS) -> AsyncIterator[bool]:
    """Answer hooks of a place while the block runs; yield whether this process does.

    It does not with `config` None, where another process already does, where sockets are not private or not known to
    the system, and where the path of the socket would be too long. A socket that a killed process left is replaced.
    """
    async with AsyncExitStack() as stack:
        lock = await run_in_thread(_take_lock, place.socket_path) if config else None
        if config is None or lock is None:
            yield False
            return
        stack.push_async_callback(run_in_thread, partial(lock.release))
        try:
            listener = await anyio.create_unix_listener(place.socket_path, mode=0o600)
        except OSError as error:
            _LOG.warning("Hooks are not answered from here: %s.", type(error).__name__)
            yield False
            return
        stack.push_async_callback(run_in_thread, _remove, place.socket_path)
        await stack.enter_async_context(listener)
        group = await stack.enter_async_context(background_group())
        group.start_soon(listener.serve, partial(_answer_client, partial(answer_event, memory, place, config=config)))
        yield True


async def _answer_client(answer: Callable[[HookEvent], Awaitable[HookAnswer]], client: SocketStream) -> None:
    """Read one event and write one answer; whoever is not this user, is too slow or writes too much gets none."""
    async with client:
        if not is_own_peer(client.extra(SocketAttribute.raw_socket)):  # noqa: S610  # not Django's
            return
        with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            event = parse_event(await _receive_line(client))
            if event is None:
                return
            with anyio.move_on_after(ANSWER_SECONDS):
                try:
                    reply = await answer(event)
                except RicordoError as error:
                    _LOG.warning("A hook was not answered: %s.", type(error).__name__)
                    return
                await client.send(encode_answer(reply))


async def _receive_line(client: SocketStream) -> bytes:
    line = b""
    with anyio.move_on_after(_READ_SECONDS):
        while not line.endswith(b"\n") and len(line) <= MAX_LINE_BYTES:
            try:
                line += await client.receive()
            except anyio.EndOfStream:
                break
    return line


def _take_lock(path: str) -> FileLock | None:
    """Return the lock of the process that serves a socket; None if another one has it, or it can't be private."""
    if not (hasattr(os, "geteuid") and is_usable_path(path)):
        return None
    lock = FileLock(f"{path}.lock", timeout=0, thread_local=False, mode=0o600)
    try:
        make_private_folder(os.path.dirname(path))
        if not is_own_folder(path):
            return None
        lock.acquire()
        # whoever has the lock knows that nobody answers there
        _remove(path)
    except (OSError, Timeout):
        return None
    return lock


def _remove(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)
