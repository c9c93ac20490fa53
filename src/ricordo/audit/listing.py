"""The list of topics in MEMORY.md after a change by hand: it follows the topics that the change leaves.

Consolidation writes the list; whoever else changes a topic puts the list right in the same change set. Invariant: only
the lines that list topics change, and where there is no MEMORY.md none is made.
"""

from collections.abc import Sequence

from anyio.to_thread import run_sync

from ricordo.consolidation.placing import relisted
from ricordo.errors import FileMissing, StorageError
from ricordo.files import FileStore
from ricordo.workspace.changes import Edit
from ricordo.workspace.layout import MEMORY, TOPICS

__all__ = ["with_listing"]


async def with_listing(files: FileStore, edits: Sequence[Edit]) -> list[Edit]:
    """Return the edits, and one of MEMORY.md where after them it would not list just the topics that are there.

    A topic that can't be read keeps everything as it is.
    """
    edited = {edit.path: edit for edit in edits}
    try:
        before = edited.get(MEMORY) or await _as_it_is(files, MEMORY)
        topics = await _topics(files, edited)
    except (FileMissing, StorageError):
        return [*edits]
    if before.data is None:
        return [*edits]
    shown = await run_sync(relisted, before.data, topics)
    if shown == before.data:
        return [*edits]
    rest = [edit for edit in edits if edit.path != MEMORY]
    return [*rest, Edit(path=MEMORY, expected=before.expected, data=shown)]


async def _topics(files: FileStore, edited: dict[str, Edit]) -> dict[str, bytes]:
    listed = {info.path for info in await files.list(TOPICS)} | edited.keys()
    topics = {}
    for path in sorted(listed):
        if path.startswith(f"{TOPICS}/") and path.endswith(".md"):
            data = edited[path].data if path in edited else (await files.read(path)).data
            if data is not None:
                topics[path] = data
    return topics


async def _as_it_is(files: FileStore, path: str) -> Edit:
    stored = await files.read(path)
    return Edit(path=path, expected=stored.version, data=stored.data)
