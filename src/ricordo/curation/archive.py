"""The archive of what has faded: memories that nobody confirmed or used for long leave MEMORY.md for a topic.

The topic, `memory/topics/faded.md`, is listed in MEMORY.md and searched like any other. A memory in it that is
confirmed, pinned, used or said again returns to MEMORY.md. Each move is a change set that can be undone.

Invariants: no text changes, and only entries with an id in sections that consolidation makes leave MEMORY.md. What a
person pinned or wrote by hand, and rules for tool calls, stay.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from anyio.to_thread import run_sync

from ricordo.curation.cascade import add_room_edits, add_topic_list_edits
from ricordo.curation.config import ConsolidationConfig
from ricordo.curation.memory_document import DocumentPart, MemoryDocument, parse_memory_document
from ricordo.curation.placement import SECTIONS, is_empty_topic, is_movable
from ricordo.errors import FileMissing
from ricordo.search.config import DecayConfig, measure_decay
from ricordo.storage import ABSENT, FileStore
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import parse_entries
from ricordo.workspace.history.change_sets import CURATION_LOCK, ChangeSets, Edit
from ricordo.workspace.history.usage import MemoryUsage
from ricordo.workspace.layout import MEMORY_PATH, TOPICS

__all__ = ["FADED_TOPIC", "add_return_edits", "archive_faded", "find_faded", "move_faded"]


FADED_TOPIC = f"{TOPICS}/faded.md"
"""The topic that holds what has faded."""
_ACT, _WHO = "archive", "maintenance"
_HEAD = b"""---
name: "Faded"
description: "memories that nobody confirmed or used for long; a confirmation returns one to this file"
type: "project"
---
# Faded

"""
_OTHER_SECTION = "Notes"
_SECTION_ORDER = ("Topics", *SECTIONS.values(), _OTHER_SECTION)


def find_faded(
    entries: Iterable[Entry], usage: Mapping[str, MemoryUsage], decay: DecayConfig, now: datetime
) -> frozenset[str]:
    """Return the ids of the entries whose weight is below `archive_below`, counted also from their last use."""
    return frozenset(entry.id for entry in entries if _has_faded(entry, usage.get(entry.id), decay, now))


def _has_faded(entry: Entry, usage: MemoryUsage | None, decay: DecayConfig, now: datetime) -> bool:
    if entry.pinned or entry.rule is not None or entry.by == "hand":
        return False
    known = measure_decay(entry, now, decay)
    used = usage.used.last if usage else None
    if known.since is not None and used is not None and used > known.since:
        known = measure_decay(replace(entry, confirmed=used), now, decay)
    return known.state == "ended" or (known.since is not None and known.weight < decay.archive_below)


def move_faded(memory: bytes, archive: bytes, faded: Collection[str]) -> tuple[bytes, bytes | None]:
    """Return MEMORY.md and the archive with the entries `faded` in the archive; None for an archive without entries.

    Entries of the archive that are not among them return to the sections of their kinds. An empty `archive` stands for
    none.
    """
    document = parse_memory_document(memory, MEMORY_PATH)
    topic = parse_memory_document(archive or _HEAD, FADED_TOPIC)
    leaving = [part for part in document.parts if part.entry and part.entry.id in faded and _may_leave(part)]
    returning = [part for part in topic.parts if part.entry and part.entry.id not in faded and _may_return(part)]
    document = document.without({part.entry.id for part in leaving if part.entry})
    for title in {part.section for part in leaving}:
        document = document.without_section(title)
    topic = _append(topic.without({part.entry.id for part in returning if part.entry}), leaving)
    for part in returning:
        title = SECTIONS.get(part.entry.kind, _OTHER_SECTION) if part.entry else _OTHER_SECTION
        document = _append(document.with_section(title, _SECTION_ORDER), [part], title)
    return document.data, None if is_empty_topic(topic) else topic.data


def _may_leave(part: DocumentPart) -> bool:
    return is_movable(part) and part.entry is not None and part.entry.state == "active"


def _may_return(part: DocumentPart) -> bool:
    """Tell whether the archive made this bullet, and it still holds; what a person wrote under a heading stays."""
    return part.is_named and part.entry is not None and part.entry.state == "active" and not part.section


def _append(document: MemoryDocument, parts: Sequence[DocumentPart], section: str = "") -> MemoryDocument:
    ends = [replace(part, section=section, data=part.data.rstrip(b"\n") + b"\n") for part in parts]
    return document.insert_all(ends, lambda *_: False)


async def archive_faded(
    files: FileStore,
    changes: ChangeSets,
    *,
    usage: Mapping[str, MemoryUsage],
    decay: DecayConfig,
    now: datetime,
    config: ConsolidationConfig,
) -> int:
    """Move what has faded to the archive, and what is fresh again back; return how many memories moved.

    It is one change set, by maintenance. With `archive_below` 0 nothing leaves MEMORY.md, and all returns. Raises:
    StorageError.
    """
    moved = 0

    async def plan() -> list[Edit]:
        nonlocal moved
        memory, archive = await _read(files, MEMORY_PATH), await _read(files, FADED_TOPIC)
        entries = [
            located.entry
            for path, (data, _) in ((MEMORY_PATH, memory), (FADED_TOPIC, archive))
            for located in await run_sync(parse_entries, data, path)
        ]
        faded = find_faded(entries, usage, decay, now) if decay.archive_below else frozenset[str]()
        before = _ids(archive[0])
        edits = await _plan_edits(files, memory, archive, faded, config)
        after = next((_ids(edit.data or b"") for edit in edits if edit.path == FADED_TOPIC), before)
        moved = len(before ^ after)
        return edits

    async with files.lock(CURATION_LOCK):
        if await plan():
            await changes.rebase(plan, act=_ACT, who=_WHO, why="faded, or fresh again")
    return moved


async def add_return_edits(
    files: FileStore, edits: Sequence[Edit], entry_id: str, config: ConsolidationConfig
) -> list[Edit]:
    """Return the edits of a mark, with those that return the marked entry from the archive to MEMORY.md."""
    edited = {edit.path: edit for edit in edits}
    archive, memory = edited.get(FADED_TOPIC), edited.get(MEMORY_PATH)
    if archive is None or archive.data is None:
        return [*edits]
    current = (memory.data or b"", memory.expected_hash) if memory else await _read(files, MEMORY_PATH)
    kept = _ids(archive.data) - {entry_id}
    moves = await _plan_edits(files, current, (archive.data, archive.expected_hash), kept, config)
    paths = {move.path for move in moves}
    return [*(edit for edit in edits if edit.path not in paths), *moves]


async def _plan_edits(
    files: FileStore,
    memory: tuple[bytes, str],
    archive: tuple[bytes, str],
    faded: Collection[str],
    config: ConsolidationConfig,
) -> list[Edit]:
    data, topic = await run_sync(move_faded, memory[0], archive[0], faded)
    if data == memory[0]:
        return []
    edits = [
        Edit(path=MEMORY_PATH, expected_hash=memory[1], data=data),
        Edit(path=FADED_TOPIC, expected_hash=archive[1], data=topic),
    ]
    listed = await add_topic_list_edits(files, edits, config)
    return await add_room_edits(files, listed, config, best_effort=True)


async def _read(files: FileStore, path: str) -> tuple[bytes, str]:
    with suppress(FileMissing):
        stored = await files.read(path)
        return stored.data, stored.version
    return b"", ABSENT


def _ids(document: bytes) -> frozenset[str]:
    return frozenset(located.entry.id for located in parse_entries(document, FADED_TOPIC))
