"""Finding entries by their id, or by a part of it, without parsing what can't hold it.

A whole id stands in the bytes of its document, unless it is derived for a bullet that has none; such ids begin with
`h`. The beginning of an id is the time of saving, which entries saved together share; its end tells them apart. So
both are taken.
"""

import re
from collections.abc import Collection, Sequence
from contextlib import suppress

from ricordo.errors import EntryNotFound, FileMissing, StorageError
from ricordo.files import FileStore
from ricordo.workspace.entry_codec import LocatedEntry
from ricordo.workspace.layout import LEDGERS, MEMORY_PATH, is_memory
from ricordo.workspace.ledger import read_entries
from ricordo.workspace.profile import FACT_ID_PREFIX

__all__ = [
    "MIN_ID_PART",
    "resolve_id",
    "find_entry",
    "find_extracted_or_similar",
    "find_entries",
    "may_contain_id",
    "matches_id",
]

MIN_ID_PART = 6
"""How many characters of an id are needed at least."""

_DERIVED_PREFIX = "h"
_ID_LENGTH = 26
_PLAIN_WORD = re.compile("[a-z0-9]+")
_EXTRACTED_FIELD = b"[by:: flush]"


def may_contain_id(document: bytes, entry_id: str) -> bool:
    """Tell whether an id that is this, or begins or ends so, can be in the document."""
    derived = entry_id.startswith(_DERIVED_PREFIX) or len(entry_id) < _ID_LENGTH
    return derived or f"^{entry_id}".encode("utf-8", "replace") in document


def matches_id(wanted: str, entry_id: str) -> bool:
    """Tell whether `wanted` is this id, or the six or more characters it begins or ends with."""
    part = len(wanted) >= MIN_ID_PART and (entry_id.startswith(wanted) or entry_id.endswith(wanted))
    return part or entry_id == wanted


async def find_entries(files: FileStore, entry_id: str) -> list[LocatedEntry]:
    """Return the entries with this id, and those whose id begins or ends with these six or more characters.

    Curated memory comes first, then by path. A document that vanishes or can't be read is left out.
    """
    if not entry_id:
        return []
    listed = [info.path for info in await files.list(LEDGERS) if is_memory(info.path)]
    found: list[LocatedEntry] = []
    for path in [MEMORY_PATH, *(path for path in listed if not path.startswith(f"{LEDGERS}/long/"))]:
        try:
            if may_contain_id((await files.read(path)).data, entry_id):
                found += [one for one in await read_entries(files, path) if matches_id(entry_id, one.entry.id)]
        except (FileMissing, StorageError):
            continue
    return found


async def find_extracted_or_similar(files: FileStore, contents: Collection[str]) -> list[LocatedEntry]:
    """Return what was learned from messages, and what shares the longest word of one of `contents`, by path.

    A document that vanishes or can't be read is left out.
    """
    found: list[LocatedEntry] = []
    longest = [max(_PLAIN_WORD.findall(content.casefold()), key=len, default="").encode() for content in contents]

    def is_candidate(bullet: bytes) -> bool:
        return _EXTRACTED_FIELD in bullet or any(word in bullet.lower() for word in longest)

    for info in await files.list(LEDGERS):
        if is_memory(info.path) and not info.path.startswith(f"{LEDGERS}/long/"):
            with suppress(FileMissing, StorageError):
                found += await read_entries(files, info.path, only=is_candidate)
    return found


def resolve_id(ids: Sequence[str], wanted: str) -> str:
    """Return `wanted` where it is one of these ids, else the only id that begins or ends so.

    Raises: EntryNotFound if there is none, or more than one, and for a blank text.
    """
    if not wanted.strip():
        raise EntryNotFound("No id was given: `ricordo memory list` shows the ids.")
    matching = {wanted} if wanted in ids else {one for one in ids if matches_id(wanted, one)}
    if len(matching) > 1:
        raise EntryNotFound(f"{len(matching)} memories have ids that begin or end with {wanted}: write more of the id.")
    if not matching and wanted.startswith(FACT_ID_PREFIX):
        raise EntryNotFound(f"{wanted} is a fact of the profile and no memory: `ricordo profile` edits and removes it.")
    if not matching:
        raise EntryNotFound(f"No memory has the id {wanted}: `ricordo memory list` shows the ids.")
    return matching.pop()


async def find_entry(files: FileStore, entry_id: str) -> LocatedEntry:
    """Return the entry with this id, or the only one whose id begins or ends with these six or more characters.

    Raises: EntryNotFound if there is none, or more than one.
    """
    located = await find_entries(files, entry_id)
    chosen = resolve_id([found.entry.id for found in located], entry_id)
    return next(found for found in located if found.entry.id == chosen)
