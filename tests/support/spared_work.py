"""Spare the suite work that shows nothing: waiting for a disk, and looking for garbage in what no test lets go of.

What a test writes is gone with it, so the folders of tests lie in memory where the system has room for them there; a
kill of a process, which the tests are about, looks alike in both. Whoever names a place keeps it.
"""

import gc
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["keep_folders_in_memory", "set_collected_apart"]

_IN_MEMORY = Path("/dev/shm")
_NEEDED_BYTES = 2 * 1024**3
_TEMP_ROOT = "PYTEST_DEBUG_TEMPROOT"
_COLLECT_AFTER = (10_000, 10, 10)
"""How often garbage is looked for, as `gc.set_threshold` takes it: what watches each look costs more than it finds."""


def keep_folders_in_memory() -> None:
    """Let pytest put the folders of tests into memory, unless somebody chose a place or two gigabytes are not free."""
    chosen = _TEMP_ROOT in os.environ or "TMPDIR" in os.environ
    if chosen or not os.access(_IN_MEMORY, os.W_OK | os.X_OK):
        return
    if shutil.disk_usage(_IN_MEMORY).free >= _NEEDED_BYTES:
        os.environ[_TEMP_ROOT] = str(_IN_MEMORY)


@contextmanager
def set_collected_apart() -> Iterator[None]:
    """Look for no garbage while tests are collected, and never in what is there then.

    Modules and thousands of tests stay to the end, and to go through all of them again and again as they become more
    took half of the time that collecting them took.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.set_threshold(*_COLLECT_AFTER)
        gc.enable()
