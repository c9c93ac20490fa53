"""The spool: what hooks hand over to be learned from later, one small file for each item.

An item names a transcript of the host and how much of it was there; nothing of it is copied. Each item is a file of its
own, complete from the moment it has its name, so that neither a kill nor another process can lose or mix items.
"""

import json
import os
import time
from contextlib import suppress
from typing import NamedTuple

from ricordo.hooks.places import Place, make_private_folder

__all__ = ["SpoolItem", "add_item", "list_items", "remove_item", "spool_folder"]


_VERSION = 1
_ENDING = ".json"
_MAX_BYTES = 1_000_000


class SpoolItem(NamedTuple):
    """Work for later: the transcript of a session up to the byte `size`, or a summary that the host wrote.

    `at` is the time of the event in seconds since 1970. With `is_skipped` the part up to `size` is not to be read,
    since hooks were off; `summary` is empty unless the host summed up. `name` is the item's file name, empty for a new
    one.
    """

    root: str
    user: str
    host: str
    event: str
    session: str
    transcript: str
    folder: str
    size: int
    at: float
    is_skipped: bool = False
    summary: str = ""
    name: str = ""


def spool_folder(place: Place) -> str:
    """Return the folder of the items that wait for a place."""
    return os.path.join(place.hooks_folder, "spool", place.digest)


def add_item(place: Place, item: SpoolItem) -> str:
    """Store an item and return its file name; items are in the order of their names. Raises: OSError."""
    folder = spool_folder(place)
    name = f"{time.time_ns():020}-{os.getpid()}-{os.urandom(4).hex()}{_ENDING}"
    fields = {key: value for key, value in item._asdict().items() if key != "name"}
    data = json.dumps({"version": _VERSION, **fields}).encode("ascii")
    draft = os.path.join(folder, f".{name}")
    try:
        file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileNotFoundError:
        make_private_folder(folder)
        file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        try:
            _write_all(file, data)
            os.fsync(file)
        finally:
            os.close(file)
        os.rename(draft, os.path.join(folder, name))
    except OSError:
        with suppress(OSError):
            os.unlink(draft)
        raise
    return name


def list_items(place: Place) -> list[SpoolItem]:
    """Return the items that wait for a place, oldest first; one that can't be read is left out."""
    folder = spool_folder(place)
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(_ENDING) and not name.startswith("."))
    except OSError:
        return []
    return [item for name in names if (item := _read_item(os.path.join(folder, name), name))]


def remove_item(place: Place, name: str) -> None:
    """Remove an item that is done; one that is gone already is no error. Raises: OSError."""
    with suppress(FileNotFoundError):
        os.unlink(os.path.join(spool_folder(place), name))


def _write_all(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]


def _read_item(path: str, name: str) -> SpoolItem | None:
    try:
        with open(path, "rb") as file:
            values = json.loads(file.read(_MAX_BYTES))
        return SpoolItem(**{key: value for key, value in values.items() if key in SpoolItem._fields} | {"name": name})
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return None
