"""Who holds a lease: a process, named so that others can tell when it is gone.

A process that was killed gives nothing back, and its lease would keep the work for as long as it lasts. Another process
of the same machine sees at once that there is none of that number any more. It never takes a living one for dead: a
process of another machine or of another container, and a number that was given anew, count as living.
"""

import os
import platform
import sys
from pathlib import Path

__all__ = ["process_name", "is_process_gone"]


def process_name() -> str:
    """Return the name of this process: its machine, the space its number counts in, and the number."""
    return f"{_process_namespace()} {os.getpid()}"


def is_process_gone(name: str) -> bool:
    """Tell whether the process of this name is known to have ended; it touches no other than by asking for it."""
    space, _, number = name.rpartition(" ")
    # asking is killing on Windows
    if sys.platform == "win32" or space != _process_namespace() or not number.isdecimal():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False


def _process_namespace() -> str:
    try:
        numbers = str(Path("/proc/self/ns/pid").stat().st_ino)
    except OSError:
        numbers = "-"
    return f"{platform.node()} {numbers}"
