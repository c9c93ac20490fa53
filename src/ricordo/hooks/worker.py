"""Starting a worker from a hook, for a user who agreed to it: `ricordo maintain`, apart from the host, for a while."""

import os
import sys
from typing import TYPE_CHECKING

from ricordo.hooks.spool import spool_folder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ricordo.hooks.places import Place

__all__ = ["WORKER_SECONDS", "lock_path", "start_worker"]


WORKER_SECONDS = 25
"""How long a worker works, so that with its start and end it lives for at most 30 seconds."""


def start_worker(place: "Place", environment: "Mapping[str, str]") -> bool:
    """Start a worker for a place if something waits and nobody works on it; return whether one was started.

    It belongs to no terminal and no host, and ends by itself. Raises: OSError.
    """
    if not (_has_items(place) and hasattr(os, "posix_spawn") and hasattr(os, "setsid")) or _is_worked_on(place):
        return False
    command = [sys.executable, "-m", "ricordo", "maintain", "--seconds", str(WORKER_SECONDS), "--root", place.root]
    nowhere = [(os.POSIX_SPAWN_OPEN, each, os.devnull, os.O_RDWR, 0) for each in range(3)]
    try:
        os.posix_spawn(sys.executable, command, dict(environment), file_actions=nowhere, setsid=True)
    except NotImplementedError:
        os.posix_spawn(sys.executable, command, dict(environment), file_actions=nowhere, setpgroup=0)
    return True


def lock_path(place: "Place") -> str:
    """Return the path of the lock that whoever works on the spool of a place holds."""
    return os.path.join(place.hooks_folder, "work", f"{place.digest}.lock")


def _has_items(place: "Place") -> bool:
    try:
        return any(not name.startswith(".") for name in os.listdir(spool_folder(place)))
    except OSError:
        return False


def _is_worked_on(place: "Place") -> bool:
    """Return whether a process holds the lock of the spool."""
    import fcntl

    try:
        file = os.open(lock_path(place), os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(file)
    return False
