"""The lock of a run that may take long: a file with its holder and a sign of life, so that nobody waits for the dead.

Invariant: it keeps two runs from doing the same work, and nothing rests on it: what is written is compared with
what was read, whoever holds it.
"""

import json
import os
import secrets
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from functools import partial

import anyio

from ricordo.beside import background_task
from ricordo.clock import Clock, format_rfc3339
from ricordo.errors import FileMissing, StorageError, VersionConflict
from ricordo.files import ABSENT, FileStore
from ricordo.messages.jsontext import decode_json
from ricordo.uncut import run_even_if_cancelled
from ricordo.workspace.layout import LEDGERS

__all__ = ["LEASE_PATH", "LEASE_EXPIRY", "hold_lease"]

LEASE_PATH = f"{LEDGERS}/.dream_lock"

LEASE_EXPIRY = timedelta(hours=1)
"""After so long without a sign of life the lock is taken over."""

_HEARTBEAT_SECONDS = 60.0
_HELD_TOKENS: set[str] = set()
"""What runs of this process hold."""


@asynccontextmanager
async def hold_lease(files: FileStore, clock: Clock, *, heartbeat: float = _HEARTBEAT_SECONDS) -> AsyncIterator[bool]:
    """Hold the lock while the block runs and say so; False when another run holds it. Raises: StorageError."""
    token = secrets.token_hex(8)
    version = await _acquire_lease(files, clock, token)
    if version is None:
        yield False
        return
    held = [version]

    async def renew() -> None:
        while True:
            await anyio.sleep(heartbeat)
            try:
                held[0] = await files.replace(LEASE_PATH, _render_lease(clock, token), expected=held[0])
            except VersionConflict:
                return
            except StorageError:
                continue

    _HELD_TOKENS.add(token)
    try:
        async with background_task(renew):
            yield True
    finally:
        _HELD_TOKENS.discard(token)
        with suppress(StorageError, FileMissing):
            await run_even_if_cancelled(partial(files.delete, LEASE_PATH, expected=held[0]))


async def _acquire_lease(files: FileStore, clock: Clock, token: str) -> str | None:
    """Take the lock and return its version; None when its holder is alive."""
    expected = ABSENT
    with suppress(FileMissing):
        stored = await files.read(LEASE_PATH)
        if _is_alive(stored.data, clock.now()):
            return None
        expected = stored.version
    try:
        return await files.replace(LEASE_PATH, _render_lease(clock, token), expected=expected)
    except VersionConflict:
        return None


def _render_lease(clock: Clock, token: str) -> bytes:
    row = {"pid": os.getpid(), "host": socket.gethostname(), "run": token, "at": format_rfc3339(clock.now())}
    return json.dumps(row).encode() + b"\n"


def _is_alive(data: bytes, now: datetime) -> bool:
    """Tell whether the holder lives: it gave a sign within the hour, and its process is there as far as one can see."""
    try:
        row = decode_json(data)
        at, pid, host, run = datetime.fromisoformat(row["at"]), int(row["pid"]), row["host"], row["run"]
        if abs(now - at) >= LEASE_EXPIRY:
            return False
    except (ValueError, TypeError, KeyError, OverflowError):
        return False
    if host != socket.gethostname():
        return True
    return run in _HELD_TOKENS if pid == os.getpid() else _is_running(pid)


def _is_running(pid: int) -> bool:
    if sys.platform == "win32":
        # there is no harmless signal there: the sign of life decides
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return pid > 0
