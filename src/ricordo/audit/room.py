"""Room in MEMORY.md for a change by hand: what makes it too large moves what is of least use there to topics.

Consolidation keeps MEMORY.md within its bounds; what else grows it, such as an undo, keeps to them in the same change
set. Invariant: nothing is cut; what a person wrote or pinned stays where it is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from anyio.to_thread import run_sync

from ricordo.consolidation.config import ConsolidationConfig
from ricordo.consolidation.placing import is_movable, place_entries
from ricordo.consolidation.sheet import parse_memory_document
from ricordo.errors import FileMissing
from ricordo.files import ABSENT, FileStore, StoredFile
from ricordo.workspace.changes import Edit
from ricordo.workspace.layout import MEMORY_PATH, TOPICS

__all__ = ["add_room_edits"]

_SHORTEN_ADVICE = (
    "Shorten what you wrote in it, or put some of it into a topic such as memory/topics/NAME.md, and try again."
)


async def add_room_edits(
    files: FileStore, edits: Sequence[Edit], config: ConsolidationConfig, *, must: bool = False
) -> list[Edit]:
    """Return the edits, and those that move memories to topics where MEMORY.md would be larger than it may be.

    Where that makes too little room, they are refused, but with `must` as much is moved as can be.

    Raises: IndexTooLarge.
    """
    edited = {edit.path: edit for edit in edits}
    edit = edited.get(MEMORY_PATH)
    if edit is None or edit.data is None:
        return [*edits]
    found = await _read_if_exists(files, MEMORY_PATH)
    before = found.data if found else b""
    if config.bounds.find_growth(before, edit.data) is None:
        return [*edits]
    stored = {info.path: await files.read(info.path) for info in await files.list(TOPICS) if _is_topic(info.path)}
    topics = {path: one.data for path, one in stored.items()}
    for path, one in edited.items():
        if _is_topic(path):
            topics[path] = one.data or b""
            if one.data is None:
                del topics[path]
    moved = await run_sync(_move_to_topics, edit.data, topics, config)
    if not must:
        config.bounds.check(before, moved[MEMORY_PATH], advice=_SHORTEN_ADVICE)
    for path, data in moved.items():
        if data != (edited[path].data if path in edited else topics.get(path)):
            expected = edited[path].expected if path in edited else _version_or_absent(stored.get(path))
            edited[path] = Edit(path=path, expected=expected, data=data)
    return [*edited.values()]


def _move_to_topics(memory: bytes, topics: Mapping[str, bytes], config: ConsolidationConfig) -> dict[str, bytes]:
    """Return MEMORY.md and the topics with as much of the former in the latter as has no room there."""
    sheet = parse_memory_document(memory, MEMORY_PATH)
    ours = [part.entry for part in sheet.parts if part.entry and is_movable(part)]
    # a line that stood there before stands there by right
    longest = max((len(entry.content) for entry in ours), default=0)
    wide = replace(config, index_characters=max(config.index_characters, longest))
    sheets = {path: parse_memory_document(data, path) for path, data in topics.items()}
    placed = place_entries(sheet, sheets, (), (), wide, written=topics)
    return {path: one.data for path, one in placed.documents.items()}


def _is_topic(path: str) -> bool:
    return path.startswith(f"{TOPICS}/") and path.endswith(".md")


def _version_or_absent(stored: StoredFile | None) -> str:
    return stored.version if stored else ABSENT


async def _read_if_exists(files: FileStore, path: str) -> StoredFile | None:
    try:
        return await files.read(path)
    except FileMissing:
        return None
