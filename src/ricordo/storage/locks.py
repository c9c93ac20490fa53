"""The lock around one write: a file next to the data, locked by one thread or process of a root at a time.

It locks the same files as `filelock`, so the two exclude each other, but it costs less than the write that it protects.
Where `flock` is not available, filelock is used.
"""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EACCES, EAGAIN, ENOSYS, EWOULDBLOCK

from filelock import FileLock, Timeout

__all__ = ["hold_lock"]


if sys.platform != "win32":
    import fcntl


_PAUSE_SECONDS = 0.002
_OPEN_FLAGS = os.O_RDWR | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_LOCKED_ERRORS = {EACCES, EAGAIN, EWOULDBLOCK}


@contextmanager
def hold_lock(path: str, busy_seconds: float) -> Iterator[None]:
    """Hold the lock file at `path`, which is created if necessary; its folder must exist.

    Raises: Timeout if it was not free within `busy_seconds`; OSError.
    """
    descriptor = None if sys.platform == "win32" else _acquire_flock(path, time.monotonic() + busy_seconds)
    if descriptor is None:
        lock = FileLock(path, mode=0o600, thread_local=False)
        with lock.acquire(busy_seconds, poll_interval=_PAUSE_SECONDS):
            yield
        return
    try:
        yield
    finally:
        _release_flock(descriptor)


def _acquire_flock(path: str, deadline: float) -> int | None:
    """Return a descriptor that holds the lock, None if the file system does not support such locks."""
    while True:
        descriptor = _open_lock_file(path)
        try:
            held = _try_flock(descriptor)
        except BaseException as error:
            os.close(descriptor)
            if isinstance(error, OSError) and error.errno == ENOSYS:
                return None
            raise
        if held:
            return descriptor
        os.close(descriptor)
        if time.monotonic() > deadline:
            raise Timeout(path)
        time.sleep(_PAUSE_SECONDS)


def _open_lock_file(path: str) -> int:
    try:
        return os.open(path, _OPEN_FLAGS)
    except FileNotFoundError:
        pass
    try:
        descriptor = os.open(path, _OPEN_FLAGS | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return _open_lock_file(path)
    os.fchmod(descriptor, 0o600)
    return descriptor


def _try_flock(descriptor: int) -> bool:
    """Take the lock if it is free; return False also if the file was removed, as such a lock excludes nobody."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _LOCKED_ERRORS:
            return False
        raise
    return os.fstat(descriptor).st_nlink > 0


def _release_flock(descriptor: int) -> None:
    # a forked child has the descriptor too: closing ours would not release the lock
    try:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)
