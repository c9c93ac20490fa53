"""Marks: a person pins an entry, so that it always stays visible, or confirms that it still holds.

The entry's line is rewritten in every document that holds it, in one change set. A bullet without an id gets the id
that it was found by.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, TypeAlias

from ricordo.concurrency import compute
from ricordo.curation.cascade import add_room_edits
from ricordo.curation.config import ConsolidationConfig
from ricordo.errors import EntryNotFound
from ricordo.storage import FileStore
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import LocatedEntry, parse_entries, render_entry
from ricordo.workspace.history.change_sets import Change, ChangeSets, Edit
from ricordo.workspace.ledger import find_entries, find_entry

__all__ = ["MarkAct", "MarkResult", "mark_entry"]


_AT_ONCE = 20_000
"""The number of bytes that can be read and rewritten in some milliseconds."""
MarkAct: TypeAlias = Literal["pin", "unpin", "confirm"]


@dataclass(frozen=True, kw_only=True)
class MarkResult:
    """The marked entry, the first document that holds it, and the change set; None when the entry did not change."""

    entry: Entry
    path: str
    change: Change | None


async def mark_entry(
    files: FileStore, changes: ChangeSets, entry_id: str, act: MarkAct, *, at: datetime, who: str, why: str = "",
    config: ConsolidationConfig | None = None,
) -> MarkResult:  # fmt: skip
    """Pin, unpin or confirm the entry with this id at the time `at`.

    Lines that then exceed the bounds of `config` move from MEMORY.md to topics. Raises: EntryNotFound; IndexTooLarge if
    no line there can move.
    """
    found = await find_entry(files, entry_id)
    name = found.entry.id

    def apply_mark(entry: Entry) -> Entry:
        return replace(_set_mark(entry, act, at), id=name)

    if act != "confirm" and apply_mark(found.entry) == found.entry:
        return MarkResult(entry=found.entry, path=found.path, change=None)

    async def plan() -> list[Edit]:
        standing = [one for one in await find_entries(files, name) if one.entry.id == name]
        if not standing:
            raise EntryNotFound(f"The memory {name} was forgotten meanwhile.")
        edits = [
            await _rewrite_bullets(files, path, name, apply_mark) for path in dict.fromkeys(_document_paths(standing))
        ]
        return await add_room_edits(files, edits, config or ConsolidationConfig())

    change = await changes.rebase(plan, act=act, who=who, why=why)
    return MarkResult(entry=apply_mark(found.entry), path=found.path, change=change)


def _document_paths(standing: Sequence[LocatedEntry]) -> list[str]:
    return [found.path for found in standing]


def _set_mark(entry: Entry, act: MarkAct, at: datetime) -> Entry:
    if act == "confirm":
        return replace(entry, confirmed=at, confidence=1.0)
    return replace(entry, pinned=act == "pin")


async def _rewrite_bullets(files: FileStore, path: str, name: str, as_marked: Callable[[Entry], Entry]) -> Edit:
    """Return the edit that rewrites the bullets of one entry in a document; every other byte stays."""
    stored = await files.read(path)

    def rewritten() -> bytes:
        data = stored.data
        for found in reversed(parse_entries(data, path)):
            if found.entry.id == name:
                bullet = render_entry(as_marked(found.entry), long=found.long_path).encode("utf-8", "surrogatepass")
                data = data[: found.offset] + bullet + data[found.offset + found.length :]
        return data

    data = await compute(rewritten, size=len(stored.data), at_once=_AT_ONCE)
    return Edit(path=path, expected=stored.version, data=data)
