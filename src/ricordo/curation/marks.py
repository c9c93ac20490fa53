"""Marks and updates: a person pins an entry, so that it stays visible, confirms that it still holds, or edits it.

The entry's line is rewritten in every document that holds it, in one change set. A bullet without an id gets the id
that it was found by.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, TypeAlias

from ricordo.concurrency import compute
from ricordo.curation.cascade import add_room_edits, build_profile_edits, build_session_edits
from ricordo.curation.config import ConsolidationConfig
from ricordo.curation.contradictions import remove_links
from ricordo.curation.rewording import REWORDED_FIELD
from ricordo.errors import EntryNotFound, FileMissing
from ricordo.guard import Redactor
from ricordo.storage import ABSENT, FileStore
from ricordo.workspace.entry import CONTRADICTS_FIELD, Entry, with_metadata
from ricordo.workspace.entry_codec import LocatedEntry, parse_entries, render_entry
from ricordo.workspace.history.change_sets import CURATION_LOCK, Change, ChangeSets, Edit
from ricordo.workspace.layout import MEMORY_PATH, TOPICS, WORKSPACE, long_entry_path
from ricordo.workspace.ledger import find_entries, find_entry, is_long
from ricordo.workspace.redaction import guarded_length, redact_entry

__all__ = ["EntryUpdate", "MarkAct", "MarkResult", "mark_entry", "update_entry"]


_AT_ONCE = 20_000
"""The number of bytes that can be read and rewritten in some milliseconds."""
MarkAct: TypeAlias = Literal["pin", "unpin", "confirm"]


@dataclass(frozen=True, kw_only=True)
class MarkResult:
    """The marked entry, the first document that holds it, and the change set; None when the entry did not change."""

    entry: Entry
    path: str
    change: Change | None


@dataclass(frozen=True, kw_only=True)
class EntryUpdate:
    """New values of an entry; what is None stays. New content counts as confirmed by a person."""

    content: str | None = None
    kind: str | None = None
    tags: tuple[str, ...] | None = None
    metadata: Mapping[str, str] | None = None

    def apply(self, entry: Entry, at: datetime) -> Entry:
        """Return the entry with the new values at the time `at`. Raises: InvalidEntry for invalid metadata."""
        changed = entry if self.metadata is None else with_metadata(entry, self.metadata)
        changed = changed if self.kind is None else replace(changed, kind=self.kind)
        changed = changed if self.tags is None else replace(changed, tags=self.tags)
        if self.content is None or self.content == entry.content:
            return changed
        rest = tuple((key, value) for key, value in changed.extra if key not in {CONTRADICTS_FIELD, REWORDED_FIELD})
        return replace(changed, content=self.content, confirmed=at, confidence=1.0, extra=rest)


async def mark_entry(
    files: FileStore, changes: ChangeSets, entry_id: str, act: MarkAct, *, at: datetime, who: str, why: str = "",
    config: ConsolidationConfig | None = None,
) -> MarkResult:  # fmt: skip
    """Pin, unpin or confirm the entry with this id at the time `at`.

    Lines that then exceed the bounds of `config` move from MEMORY.md to topics. Raises: EntryNotFound; IndexTooLarge if
    no line there can move.
    """
    found = await find_entry(files, entry_id)

    def apply_mark(entry: Entry) -> Entry:
        return replace(_set_mark(entry, act, at), id=found.entry.id)

    if act != "confirm" and apply_mark(found.entry) == found.entry:
        return MarkResult(entry=found.entry, path=found.path, change=None)

    async def plan() -> list[Edit]:
        standing = await _locate(files, found.entry.id)
        edits = [
            await _rewrite_bullets(files, path, found.entry.id, apply_mark)
            for path in dict.fromkeys(_document_paths(standing))
        ]
        return await add_room_edits(files, edits, config or ConsolidationConfig())

    change = await changes.rebase(plan, act=act, who=who, why=why)
    return MarkResult(entry=apply_mark(found.entry), path=found.path, change=change)


async def update_entry(
    files: FileStore, changes: ChangeSets, entry_id: str, update: EntryUpdate, *, redactor: Redactor, at: datetime,
    who: str, config: ConsolidationConfig | None = None,
) -> MarkResult:  # fmt: skip
    """Give the entry with this id new values at the time `at`, under the same id, in every document that holds it.

    With new content, no other entry contradicts it until the next consolidation, and the profile and session files no
    longer say the old content. Raises: EntryNotFound; InvalidEntry; IndexTooLarge as for `mark_entry`.
    """
    found = await find_entry(files, entry_id)
    name, bounds = found.entry.id, config or ConsolidationConfig()

    def apply_update(entry: Entry) -> Entry:
        return redact_entry(replace(update.apply(entry, at), id=name), redactor)

    updated = await compute(lambda: apply_update(found.entry), size=guarded_length([found.entry]), at_once=_AT_ONCE)
    updated.validate()
    if updated == replace(found.entry, id=name):
        return MarkResult(entry=found.entry, path=found.path, change=None)
    new_content = updated.content if updated.content != found.entry.content else None

    async def plan() -> list[Edit]:
        standing = await _locate(files, name)
        long, long_edits = await _plan_long_file(files, standing, name, new_content)
        edits = [
            await _rewrite_bullets(files, path, name, apply_update, long=long)
            for path in dict.fromkeys(_document_paths(standing))
        ]
        if new_content is not None:
            edits = [*await _drop_links(files, edits, name), *long_edits]
            old = [found.entry for found in standing]
            edits += await build_session_edits(files, [entry.content for entry in old], {name})
            edits += await build_profile_edits(files, old, by_hand=False)
        return await add_room_edits(files, edits, bounds)

    # a consolidation that runs meanwhile would write the old content again
    async with files.lock(CURATION_LOCK):
        change = await changes.rebase(plan, act="update", who=who)
    return MarkResult(entry=updated, path=found.path, change=change)


async def _locate(files: FileStore, name: str) -> list[LocatedEntry]:
    standing = [one for one in await find_entries(files, name) if one.entry.id == name]
    if not standing:
        raise EntryNotFound(f"The memory {name} was forgotten meanwhile.")
    return standing


async def _plan_long_file(
    files: FileStore, standing: Sequence[LocatedEntry], name: str, content: str | None
) -> tuple[str | None, list[Edit]]:
    """Return where the content of an entry stands if it is long, and the edits of files with long content."""
    old = next((f"{WORKSPACE}/{one.long_path}" for one in standing if one.long_path), None)
    if content is None:
        return old and old.removeprefix(f"{WORKSPACE}/"), []
    new = long_entry_path(name) if is_long(content) else None
    edits = []
    for path in dict.fromkeys(filter(None, (old, new))):
        try:
            version = (await files.read(path)).version
        except FileMissing:
            version = ABSENT
        data = content.encode() if path == new else None
        edits += [Edit(path=path, expected=version, data=data)] if data is not None or version != ABSENT else []
    return new and new.removeprefix(f"{WORKSPACE}/"), edits


async def _drop_links(files: FileStore, edits: Sequence[Edit], name: str) -> list[Edit]:
    """Return the edits, with further ones for curated documents in which an entry contradicts this one."""
    known = {edit.path: edit for edit in edits}
    topics = [info.path for info in await files.list(TOPICS) if info.path.endswith(".md")]
    for path in [MEMORY_PATH, *topics]:
        edit = known.get(path)
        if edit is None:
            try:
                stored = await files.read(path)
            except FileMissing:
                continue
            edit = Edit(path=path, expected=stored.version, data=stored.data)
        rest = remove_links(edit.data or b"", path, {name})
        if rest != edit.data:
            known[path] = replace(edit, data=rest)
    return [*known.values()]


def _document_paths(standing: Sequence[LocatedEntry]) -> list[str]:
    return [found.path for found in standing]


def _set_mark(entry: Entry, act: MarkAct, at: datetime) -> Entry:
    if act == "confirm":
        return replace(entry, confirmed=at, confidence=1.0)
    return replace(entry, pinned=act == "pin")


async def _rewrite_bullets(
    files: FileStore, path: str, name: str, rewrite: Callable[[Entry], Entry], *, long: str | None = ""
) -> Edit:
    """Return the edit that rewrites the bullets of one entry in a document; every other byte stays.

    `long` is the path of the file with the full content, None without one; an empty path leaves it as it is.
    """
    stored = await files.read(path)

    def rewritten() -> bytes:
        data = stored.data
        for found in reversed(parse_entries(data, path)):
            if found.entry.id == name:
                where = found.long_path if long == "" else long
                bullet = render_entry(rewrite(found.entry), long=where).encode("utf-8", "surrogatepass")
                data = data[: found.offset] + bullet + data[found.offset + found.length :]
        return data

    data = await compute(rewritten, size=len(stored.data), at_once=_AT_ONCE)
    return Edit(path=path, expected=stored.version, data=data)
