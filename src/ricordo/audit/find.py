"""Finding entries by their id without reading everything: a given id stands in the bytes of its document.

Only what a bullet without an id is called has to be derived by parsing, and such ids begin with `h`.
"""

from collections.abc import Sequence

from ricordo.errors import EntryNotFound, FileMissing, StorageError
from ricordo.files import FileStore
from ricordo.workspace.entry_codec import Located
from ricordo.workspace.layout import LEDGERS, MEMORY, is_memory
from ricordo.workspace.ledger import read_entries

__all__ = ["SHORTEST_PREFIX", "chosen_id", "find_entry", "located_by_id", "may_hold"]

SHORTEST_PREFIX = 6
"""How many characters of an id are needed at least."""

_DERIVED = "h"


def may_hold(document: bytes, entry_id: str) -> bool:
    """Tell whether an id that begins so can be in the document."""
    return entry_id.startswith(_DERIVED) or f"^{entry_id}".encode("utf-8", "replace") in document


async def located_by_id(files: FileStore, entry_id: str) -> list[Located]:
    """Return the entries with this id, and those whose id starts with these six or more characters.

    Curated memory comes first, then by path. A document that vanishes or can't be read is left out.
    """
    if not entry_id:
        return []
    listed = [info.path for info in await files.list(LEDGERS) if is_memory(info.path)]
    found: list[Located] = []
    for path in [MEMORY, *(path for path in listed if not path.startswith(f"{LEDGERS}/long/"))]:
        try:
            if may_hold((await files.read(path)).data, entry_id):
                found += [one for one in await read_entries(files, path) if _is_meant(one.entry.id, entry_id)]
        except (FileMissing, StorageError):
            continue
    return found


def chosen_id(ids: Sequence[str], wanted: str) -> str:
    """Return `wanted` where it is one of these ids, else the only id that starts so.

    Raises: EntryNotFound if there is none, or more than one.
    """
    matching = {wanted} if wanted in ids else {one for one in ids if _is_meant(one, wanted)}
    if len(matching) > 1:
        raise EntryNotFound(f"{len(matching)} memories have ids that start with {wanted}: write more of the id.")
    if not matching:
        raise EntryNotFound(f"No memory has the id {wanted}: `ricordo memory list` shows the ids.")
    return matching.pop()


async def find_entry(files: FileStore, entry_id: str) -> Located:
    """Return the entry with this id, or the only one whose id starts with these six or more characters.

    Raises: EntryNotFound if there is none, or more than one.
    """
    located = await located_by_id(files, entry_id)
    chosen = chosen_id([found.entry.id for found in located], entry_id)
    return next(found for found in located if found.entry.id == chosen)


def _is_meant(entry_id: str, wanted: str) -> bool:
    return entry_id == wanted or (len(wanted) >= SHORTEST_PREFIX and entry_id.startswith(wanted))
