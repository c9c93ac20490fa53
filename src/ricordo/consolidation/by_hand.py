"""What a person took out of curated memory by hand, told from the change sets. Nothing here writes.

Every change set keeps each document before and after it. What one left there and the next one no longer found, somebody
deleted in between; so did who deleted it after the last one. It is looked for only where the cursor can't tell.
"""

from collections.abc import Iterable, Mapping

from anyio.to_thread import run_sync

from ricordo.consolidation.worth import MERGED_FIELD, field_ids
from ricordo.errors import DocumentInvalid, FileMissing
from ricordo.workspace.changes import Change, ChangeSets
from ricordo.workspace.entry_codec import parse_entries
from ricordo.workspace.layout import MEMORY_PATH, TOPICS

__all__ = ["find_deleted_by_hand"]


async def find_deleted_by_hand(changes: ChangeSets, documents: Mapping[str, bytes], *, undone: bool) -> frozenset[str]:
    """Return the ids of entries whose bullet a person deleted, and of those that it stood for.

    `documents` are MEMORY.md and the topics as they are now. With `undone` also what an undo took out. A MEMORY.md that
    is missing as a whole tells nothing, nor does a version whose bytes are gone. What came back since is left out.
    """
    last: dict[str, frozenset[str]] = {}
    gone: set[str] = set()
    for change in reversed(await changes.list_changes()):
        versions = await _read_versions(changes, change)
        for path, (before, _) in versions.items():
            if path in last and before is not None and (before or path != MEMORY_PATH):
                gone |= last[path] - before
        was = _union(before for before, _ in versions.values())
        now = _union(after for _, after in versions.values())
        gone -= now
        if undone and change.undoes is not None:
            gone |= was - now
        last |= {path: after for path, (_, after) in versions.items() if after is not None}
    standing = {path: await run_sync(_parse_ids, path, data) for path, data in documents.items()}
    for path, ids in last.items():
        if path in standing or path != MEMORY_PATH:
            gone |= ids - standing.get(path, frozenset())
    return frozenset(gone - _union(standing.values()))


async def _read_versions(
    changes: ChangeSets, change: Change
) -> dict[str, tuple[frozenset[str] | None, frozenset[str] | None]]:
    """Return the ids before and after the change of each curated document in it; None where that is not known."""
    found = {}
    for changed in change.files:
        if changed.path == MEMORY_PATH or changed.path.startswith(f"{TOPICS}/"):
            before = await _read_version(changes, changed.path, changed.before)
            found[changed.path] = (before, await _read_version(changes, changed.path, changed.after))
    return found


async def _read_version(changes: ChangeSets, path: str, version: str) -> frozenset[str] | None:
    try:
        data = await changes.read_content(version)
    except (FileMissing, DocumentInvalid):
        return None
    return await run_sync(_parse_ids, path, data or b"")


def _parse_ids(path: str, data: bytes) -> frozenset[str]:
    entries = [found.entry for found in parse_entries(data, path)]
    return frozenset(name for entry in entries for name in (entry.id, *field_ids(entry, MERGED_FIELD)))


def _union(found: Iterable[frozenset[str] | None]) -> frozenset[str]:
    return frozenset[str]().union(*(ids for ids in found if ids is not None))
