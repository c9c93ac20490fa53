"""The list of topics in MEMORY.md after a change by hand: it follows the topics that the change leaves.

Consolidation writes the list; whoever else changes a topic puts the list right in the same change set. Invariant: only
the lines that list topics change, and where there is no MEMORY.md none is made.
"""

from collections.abc import Sequence

from anyio.to_thread import run_sync

from ricordo.consolidation.config import ConsolidationConfig
from ricordo.consolidation.folding import FURTHER_TOPICS
from ricordo.consolidation.placing import update_topic_list
from ricordo.errors import FileMissing, StorageError
from ricordo.files import ABSENT, FileStore
from ricordo.workspace.changes import Edit
from ricordo.workspace.layout import MEMORY_PATH, TOPICS

__all__ = ["add_topic_list_edits"]


async def add_topic_list_edits(
    files: FileStore, edits: Sequence[Edit], config: ConsolidationConfig | None = None
) -> list[Edit]:
    """Return the edits, and one of MEMORY.md where after them it would not list just the topics that are there.

    `config` says how many it lists; a topic lists the others. A topic that can't be read keeps everything as it is.
    """
    edited = {edit.path: edit for edit in edits}
    try:
        before = edited.get(MEMORY_PATH) or await _unchanged_edit(files, MEMORY_PATH)
        versions, topics = await _read_topics_after(files, edited)
    except (FileMissing, StorageError):
        return [*edits]
    if before.data is None:
        return [*edits]
    shown = await run_sync(update_topic_list, before.data, topics, config or ConsolidationConfig())
    further = Edit(path=FURTHER_TOPICS, expected=versions.get(FURTHER_TOPICS, ABSENT), data=shown.get(FURTHER_TOPICS))
    changed = [further] if further.data != topics.get(FURTHER_TOPICS) else []
    if shown[MEMORY_PATH] != before.data:
        changed.append(Edit(path=MEMORY_PATH, expected=before.expected, data=shown[MEMORY_PATH]))
    paths = {edit.path for edit in changed}
    return [*(edit for edit in edits if edit.path not in paths), *changed]


async def _read_topics_after(files: FileStore, edited: dict[str, Edit]) -> tuple[dict[str, str], dict[str, bytes]]:
    """Return the topics as they are after the edits, and the versions that they are based on, by path."""
    listed = {info.path for info in await files.list(TOPICS)} | edited.keys()
    topics, versions = {}, {}
    for path in sorted(listed):
        if path.startswith(f"{TOPICS}/") and path.endswith(".md"):
            edit = edited.get(path) or await _unchanged_edit(files, path)
            versions[path] = edit.expected
            if edit.data is not None:
                topics[path] = edit.data
    return versions, topics


async def _unchanged_edit(files: FileStore, path: str) -> Edit:
    stored = await files.read(path)
    return Edit(path=path, expected=stored.version, data=stored.data)
