"""What lies in a folder of a disk, as a search sees it: plain files in the order of their paths, bounded in number.

A project may hold hundreds of thousands of files that nobody wrote by hand. Folders of installed packages and of
compiled code are left out, unless the search begins in one, and hidden names and links always. What is looked at first
lies nearest, so that a bound cuts off what is deepest.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from ricordo.errors import PathRefused
from ricordo.files import FileInfo
from ricordo.files.paths import safe_path

__all__ = ["MAX_NAMES", "list_folder", "walk_files"]

MAX_NAMES = 50_000
"""How many names of files and folders one search looks at."""

_SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "site-packages"})
_IsClosed = Callable[[Path], bool]


def walk_files(top: Path, inside: str, *, is_closed: _IsClosed, most: int = MAX_NAMES) -> tuple[list[FileInfo], bool]:
    """Return the files in the folder `inside` of `top` and below it, and whether there are more than `most` names.

    Their paths begin at `top` and are sorted. A folder that `is_closed`, or can't be read, is left out.
    """
    found: list[FileInfo] = []
    waiting = deque([inside])
    seen = 0
    while waiting and seen <= most:
        folder = waiting.popleft()
        for entry in islice(_scan_entries(top / folder), most + 1 - seen):
            seen += 1
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in _SKIPPED_FOLDERS and not is_closed(top / path):
                    waiting.append(path)
            elif seen <= most and (info := _entry_info(entry, path)) is not None:
                found.append(info)
    return sorted(found, key=lambda info: info.path), seen > most


def list_folder(top: Path, inside: str, *, is_closed: _IsClosed) -> dict[str, int | None] | None:
    """Return the names in the folder `inside` of `top` with the bytes of a file, None for a folder; None for no folder.

    A name that is hidden, a link, or closed is left out.
    """
    if not (top / inside).is_dir():
        return None
    found: dict[str, int | None] = {}
    for entry in _scan_entries(top / inside):
        if entry.is_dir(follow_symlinks=False):
            if not is_closed(top / inside / entry.name):
                found[entry.name] = None
        elif (info := _entry_info(entry, entry.name)) is not None:
            found[entry.name] = info.size
    return found


def _scan_entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Yield what tools may name in a folder, by name; nothing of one that can't be read."""
    try:
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in found:
        if not entry.name.startswith(".") and _is_safe(entry.name):
            yield entry


def _is_safe(name: str) -> bool:
    try:
        return safe_path(name) == name
    except PathRefused:
        return False


def _entry_info(entry: os.DirEntry[str], path: str) -> FileInfo | None:
    """Return what is known of a plain file; None for anything else, and for one that is gone."""
    try:
        if not entry.is_file(follow_symlinks=False):
            return None
        found = entry.stat(follow_symlinks=False)
    except OSError:
        return None
    return FileInfo(path=path, size=found.st_size, modified_ns=found.st_mtime_ns)
