"""The spool: what hooks hand over to be learned from later, one small file for each item.

An item names a transcript of the host and how much of it was there; nothing of it is copied. Each item is a file of its
own, complete from the moment it has its name, so that neither a kill nor another process can lose or mix items. Where
nobody learns for months, the spool holds a few items for each session, since a later part covers the ones before it.
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
_ITEMS_PER_MERGE = 64


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
    """Store an item and return its file name; items are in the order of their names. Raises: OSError.

    With every 64th item those that a later one covers are removed.
    """
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
    if len(_list_names(folder)) % _ITEMS_PER_MERGE == 0:
        _merge_items(place)
    return name


def _merge_items(place: Place) -> None:
    """Remove the items that a later one covers: the same transcript, further on, read or skipped in the same way."""
    later: dict[tuple[str, str], SpoolItem] = {}
    for item in reversed(list_items(place)):
        covering = later.get((item.host, item.transcript))
        if covering and not item.summary and item.size <= covering.size and item.is_skipped == covering.is_skipped:
            with suppress(OSError):
                remove_item(place, item.name)
        elif item.transcript:
            later[item.host, item.transcript] = item


def list_items(place: Place) -> list[SpoolItem]:
    """Return the items that wait for a place, oldest first; one that can't be read is left out."""
    folder = spool_folder(place)
    names = sorted(_list_names(folder))
    return [item for name in names if (item := _read_item(os.path.join(folder, name), name))]


def remove_item(place: Place, name: str) -> None:
    """Remove an item that is done; one that is gone already is no error. Raises: OSError."""
    with suppress(FileNotFoundError):
        os.unlink(os.path.join(spool_folder(place), name))


def _list_names(folder: str) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if name.endswith(_ENDING) and not name.startswith(".")]
    except OSError:
        return []


def _write_all(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]


def _read_item(path: str, name: str) -> SpoolItem | None:
    try:
        with open(path, "rb") as file:
            values = json.loads(file.read(_MAX_BYTES))
        item = SpoolItem(**{key: value for key, value in values.items() if key in SpoolItem._fields} | {"name": name})
        texts = (item.root, item.user, item.host, item.event, item.session, item.transcript, item.folder, item.summary)
        return item._replace(size=int(item.size), at=float(item.at)) if all(isinstance(x, str) for x in texts) else None
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return None
