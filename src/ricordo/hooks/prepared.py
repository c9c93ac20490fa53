"""The prepared preamble: what a session start gives where no process answers, without opening the memory.

Who opened the memory wrote it, with the state of each file that it was made from. If one of these has changed since, or
the root is no longer trusted, it is not used. It is below the user's data folder, so that none can come with a
repository. An erasure removes all prepared preambles.
"""

import json
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ricordo.hooks.places import make_private_folder

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ricordo.hooks.places import Place

__all__ = ["PreparedPreamble", "StampedPath", "read_prepared", "stamp_paths", "write_prepared"]


_MAX_AGE_SECONDS = 12 * 3600
"""After that the ages of memories in it are wrong."""
_VERSION = 1
StampedPath = tuple[str, int, int]
"""A path with the modification time in nanoseconds and the size of what is there; both -1 for nothing."""


class PreparedPreamble(NamedTuple):
    """The text of a preamble, the ids of the memories in it, and the paths that it depends on."""

    text: str
    entries: tuple[str, ...]
    stamps: tuple[StampedPath, ...]


def read_prepared(place: "Place") -> PreparedPreamble | None:
    """Return the prepared preamble of a place; None if there is none, or it is not up to date."""
    try:
        with open(_path(place), encoding="ascii") as file:
            values = json.load(file)
        stamps = tuple((str(path), int(changed), int(size)) for path, changed, size in values["stamps"])
        age = time.time() - float(values["at"])
        prepared = PreparedPreamble(text=str(values["text"]), entries=tuple(map(str, values["entries"])), stamps=stamps)
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
    is_current = values.get("version") == _VERSION and 0 <= age < _MAX_AGE_SECONDS
    return prepared if is_current and stamp_paths(path for path, _, _ in stamps) == stamps else None


def write_prepared(place: "Place", prepared: PreparedPreamble) -> None:
    """Store the prepared preamble of a place. Raises: OSError."""
    path = _path(place)
    make_private_folder(os.path.dirname(path))
    draft = f"{path}.{os.getpid()}.{os.urandom(4).hex()}"
    values = {"version": _VERSION, "at": time.time(), **prepared._asdict()}
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            json.dump(values, file)
        os.replace(draft, path)
    except OSError:
        with suppress(OSError):
            os.unlink(draft)
        raise


def stamp_paths(paths: "Iterable[str]") -> tuple[StampedPath, ...]:
    """Return each path with the state of what is there."""
    return tuple(_stamp(path) for path in paths)


def _stamp(path: str) -> StampedPath:
    try:
        status = os.stat(path)
    except OSError:
        return path, -1, -1
    return path, status.st_mtime_ns, status.st_size


def _path(place: "Place") -> str:
    return os.path.join(place.hooks_folder, "prepared", f"{place.digest}.json")
