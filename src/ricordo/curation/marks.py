"""Marks and updates: a person pins an entry, so that it stays visible, confirms that it still holds, or edits it.

The entry's line is rewritten in every document that holds it, in one change set. A bullet without an id gets the id
that it was found by.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias

from anyio.to_thread import run_sync

from ricordo.concurrency import compute
from ricordo.curation.cascade import add_return_edits, add_room_edits, build_profile_edits, build_session_edits
from ricordo.curation.config import ConsolidationConfig
from ricordo.curation.contradictions import remove_links
from ricordo.curation.profile.updates import remove_statement, render_edited_profile, without_facts
from ricordo.curation.rewording import REWORDED_FIELD
from ricordo.errors import EntryNotFound, FileMissing, InvalidEntry
from ricordo.guard import Redactor, Trust
from ricordo.lazy import dataclass
from ricordo.messages.json_text import decode_json
from ricordo.storage import ABSENT, FileStore
from ricordo.workspace.entry import (
    CONTRADICTS_FIELD,
    OUTDATED_BY_FIELD,
    OUTDATED_FIELD,
    Author,
    Entry,
    release,
    supersede,
    with_metadata,
)
from ricordo.workspace.entry_codec import LocatedEntry, collect_again, parse_entries, render_entry
from ricordo.workspace.history.change_sets import CURATION_LOCK, Change, ChangeSets, Edit
from ricordo.workspace.layout import MEMORY_PATH, TOPICS, WORKSPACE, is_profile, long_entry_path
from ricordo.workspace.ledger import find_entries, find_entry, is_long, read_all_entries
from ricordo.workspace.markdown import has_any_id
from ricordo.workspace.profile import category_for_kind, format_profile_time, kind_for_category, parse_profile
from ricordo.workspace.redaction import guarded_length, redact_entry, screen_entry
from ricordo.workspace.team import note_edit

if TYPE_CHECKING:
    from ricordo.messages.types import JsonValue

__all__ = [
    "EntryUpdate",
    "MarkAct",
    "MarkResult",
    "confirm_entries",
    "mark_entry",
    "mark_fact",
    "merge_into",
    "supersede_entries",
    "update_entry",
    "update_fact",
]


_AT_ONCE = 20_000
"""The number of bytes that can be read and rewritten in some milliseconds."""
MarkAct: TypeAlias = Literal["pin", "unpin", "confirm"]
_OUTDATED_FIELDS = frozenset({OUTDATED_BY_FIELD, OUTDATED_FIELD})


@dataclass(frozen=True, kw_only=True)
class MarkResult:
    """The marked entry, the first document that holds it, and the change set; None when the entry did not change."""

    entry: Entry
    path: str
    change: Change | None


@dataclass(frozen=True, kw_only=True)
class EntryUpdate:
    """New values of an entry; what is None stays. New content by a user counts as confirmed by a person."""

    content: str | None = None
    kind: str | None = None
    tags: tuple[str, ...] | None = None
    metadata: Mapping[str, str] | None = None
    by: Author = "user"

    def apply(self, entry: Entry, now: datetime) -> Entry:
        """Return the entry with the new values at the time `now`.

        Raises: InvalidEntry for invalid metadata, and for new content by an agent if a person stands behind the entry.
        """
        changed = entry if self.metadata is None else with_metadata(entry, self.metadata)
        changed = changed if self.kind is None else replace(changed, kind=self.kind)
        changed = changed if self.tags is None else replace(changed, tags=self.tags)
        if self.content is None or self.content == entry.content:
            return changed
        dropped = {CONTRADICTS_FIELD, REWORDED_FIELD, *_OUTDATED_FIELDS}
        rest = tuple(pair for pair in changed.extra if pair[0] not in dropped)
        if self.by != "agent":
            return release(replace(changed, content=self.content, confirmed=now, confidence=1.0, extra=rest))
        if entry.trust is Trust.USER:
            raise InvalidEntry(
                "The user said or confirmed this memory, so an agent can't change its text: save what holds now as a "
                "new memory."
            )
        source = replace(entry.source, quote=None)
        return screen_entry(replace(changed, content=self.content, by="agent", source=source, extra=rest))


async def mark_entry(
    files: FileStore, changes: ChangeSets, entry_id: str, act: MarkAct, *, now: datetime, who: str, why: str = "",
    config: ConsolidationConfig | None = None,
) -> MarkResult:  # fmt: skip
    """Pin, unpin or confirm the entry with this id at the time `now`.

    Lines that then exceed the bounds of `config` move from MEMORY.md to topics. Raises: EntryNotFound; IndexTooLarge if
    no line there can move.
    """
    located, bounds = await find_entry(files, entry_id), config or ConsolidationConfig()

    def apply_mark(entry: Entry) -> Entry:
        return replace(_set_mark(entry, act, now), id=located.entry.id)

    if act != "confirm" and apply_mark(located.entry) == located.entry:
        return MarkResult(entry=located.entry, path=located.path, change=None)

    async def plan() -> list[Edit]:
        located_entries = await _locate(files, located.entry.id)
        edits = [
            await _rewrite_bullets(files, path, {located.entry.id}, apply_mark)
            for path in dict.fromkeys(_document_paths(located_entries))
        ]
        if act != "unpin":
            edits = await add_return_edits(files, edits, located.entry.id, bounds)
        return await add_room_edits(files, edits, bounds)

    change = await changes.rebase(plan, act=act, who=who, why=why)
    return MarkResult(entry=apply_mark(located.entry), path=located.path, change=change)


async def update_entry(
    files: FileStore, changes: ChangeSets, entry_id: str, update: EntryUpdate, *, redactor: Redactor, now: datetime,
    who: str, config: ConsolidationConfig | None = None, noted: bytes = b"",
) -> MarkResult:  # fmt: skip
    """Give the entry with this id new values at the time `now`, under the same id, in every document that holds it.

    With new content, no other entry contradicts it until the next consolidation, and the profile and session files no
    longer say the old content. With a key for digests, `noted`, its line lists the old content. Raises: EntryNotFound;
    InvalidEntry; IndexTooLarge as for `mark_entry`.
    """
    located = await find_entry(files, entry_id)
    name, bounds = located.entry.id, config or ConsolidationConfig()

    def apply_update(entry: Entry) -> Entry:
        edited = update.apply(entry, now)
        return redact_entry(replace(note_edit(entry, edited, noted) if noted else edited, id=name), redactor)

    updated = await compute(lambda: apply_update(located.entry), size=guarded_length([located.entry]), at_once=_AT_ONCE)
    updated.validate()
    if updated == replace(located.entry, id=name):
        return MarkResult(entry=located.entry, path=located.path, change=None)
    new_content = updated.content if updated.content != located.entry.content else None

    async def plan() -> list[Edit]:
        located_entries = await _locate(files, name)
        long, long_edits = await _plan_long_file(files, located_entries, name, new_content)
        edits = [
            await _rewrite_bullets(files, path, {name}, apply_update, long=long)
            for path in dict.fromkeys(_document_paths(located_entries))
        ]
        if new_content is not None:
            edits = [*await _drop_links(files, edits, name), *long_edits]
            old = [located.entry for located in located_entries]
            edits += await build_session_edits(files, [entry.content for entry in old], {name})
            edits += await build_profile_edits(files, old, by_hand=False)
        return await add_room_edits(files, edits, bounds)

    # a consolidation that runs meanwhile would write the old content again
    async with files.lock(CURATION_LOCK):
        change = await changes.rebase(plan, act="update", who=who)
    return MarkResult(entry=updated, path=located.path, change=change)


async def mark_fact(
    files: FileStore, changes: ChangeSets, fact: LocatedEntry, act: MarkAct, *, now: datetime, who: str
) -> Entry:
    """Pin, unpin or confirm a fact of a profile at the time `now`, and return it."""
    marked = _set_mark(fact.entry, act, now)
    if marked == fact.entry:
        return marked

    async def plan() -> list[Edit]:
        return [await _rewrite_fact(files, fact.path, marked, now, confirms=act == "confirm")]

    await changes.rebase(plan, act=act, who=who)
    return marked


async def merge_into(
    files: FileStore, changes: ChangeSets, old: LocatedEntry, new_id: str, *, now: datetime, who: str
) -> None:
    """Let the entry `new_id` take the place of `old`, which stays as superseded; a fact leaves its profile."""

    async def plan() -> list[Edit]:
        stored = await files.read(old.path)
        data = without_facts(stored.data, old.path, {old.entry.id}, learned_only=False)
        return [Edit(path=old.path, expected_hash=stored.version, data=data)]

    if not is_profile(old.path):
        await _locate(files, old.entry.id)
        await supersede_entries(files, changes, {old.entry.id: new_id}, now=now, who=who)
        return
    async with files.lock(CURATION_LOCK):
        await changes.rebase(plan, act="merge", who=who)


async def supersede_entries(
    files: FileStore, changes: ChangeSets, successors: Mapping[str, str], *, now: datetime, who: str, part_of: str = ""
) -> None:
    """Let other entries take the place of these, each by the id of its successor; they stay as superseded.

    It is one change, which belongs to the change `part_of`. One that was forgotten meanwhile is left out.
    """

    def rewrite(entry: Entry) -> Entry:
        return supersede(_without_outdated_mark(entry), successors[entry.id], end=now.date())

    async with files.lock(CURATION_LOCK):
        await changes.rebase(partial(_plan_rewrite, files, successors, rewrite), act="merge", who=who, part_of=part_of)


async def confirm_entries(
    files: FileStore, changes: ChangeSets, ids: Collection[str], *, now: datetime, who: str, why: str = ""
) -> Change:
    """Confirm entries as `mark_entry` does, in one change."""

    def rewrite(entry: Entry) -> Entry:
        return _set_mark(entry, "confirm", now)

    async with files.lock(CURATION_LOCK):
        plan = partial(_plan_rewrite, files, frozenset(ids), rewrite)
        return await changes.rebase(plan, act="confirm", who=who, why=why)


async def _plan_rewrite(files: FileStore, ids: Collection[str], rewrite: Callable[[Entry], Entry]) -> list[Edit]:
    """Return the edits that rewrite entries in each document that holds them."""
    located = await read_all_entries(files, only=has_any_id(ids))
    paths = dict.fromkeys(one.path for one in located if one.entry.id in ids)
    return [await _rewrite_bullets(files, path, ids, rewrite) for path in paths]


async def update_fact(
    files: FileStore, changes: ChangeSets, fact: LocatedEntry, update: EntryUpdate, copies: Collection[str], *,
    redactor: Redactor, now: datetime, who: str,
) -> Entry:  # fmt: skip
    """Give a fact of a profile new values, and the learned entries `copies` that say the same, and return the fact.

    The summaries of the profile and the session files no longer say the old content. Raises: InvalidEntry, also for
    tags and metadata, which a fact does not have.
    """
    if update.tags is not None or update.metadata is not None:
        raise InvalidEntry("A fact of the profile has no tags and no metadata: its text and its kind can be changed.")
    old = fact.entry
    updated = redact_entry(replace(update.apply(old, now), id=""), redactor).validate()
    updated = replace(updated, id=old.id)
    if updated == old:
        return old

    async def plan() -> list[Edit]:
        edits = [await _rewrite_fact(files, fact.path, updated, now, confirms=updated.confirmed != old.confirmed)]
        for name in copies:
            for path in dict.fromkeys(_document_paths(await _locate(files, name))):
                rewrite = partial(_apply_to_copy, update=update, now=now, redactor=redactor)
                edits.append(await _rewrite_bullets(files, path, {name}, rewrite))
        return edits + await build_session_edits(files, [old.content], {old.id, *copies})

    async with files.lock(CURATION_LOCK):
        await changes.rebase(plan, act="update", who=who)
    return updated


def _apply_to_copy(entry: Entry, *, update: EntryUpdate, now: datetime, redactor: Redactor) -> Entry:
    return replace(redact_entry(update.apply(entry, now), redactor), id=entry.id)


async def _rewrite_fact(files: FileStore, path: str, fact: Entry, now: datetime, *, confirms: bool) -> Edit:
    """Return the edit that gives a fact the content, the kind and the pin of `fact`; the rest of the document stays."""
    stored = await files.read(path)

    def rewritten() -> bytes:
        document, profile = decode_json(stored.data), parse_profile(stored.data, path).profile
        old = profile.find_fact(fact.id)
        facts = document.get("facts")
        if old is None or not isinstance(facts, list):
            raise EntryNotFound(f"The memory {fact.id} was forgotten meanwhile.")
        time = format_profile_time(now)
        values: dict[str, JsonValue] = {"content": fact.content, "pinned": fact.pinned}
        values |= {"updatedAt": time, "revision": old.revision + 1}
        if kind_for_category(old.category) != fact.kind:
            values["category"] = category_for_kind(fact.kind)
        if confirms:
            values |= {"confidence": 1.0, "lastConfirmedAt": time, "confirmationCount": old.confirmations + 1}
        for each in facts:
            if isinstance(each, dict) and each.get("id") == fact.id:
                each.update(values)
        rest = profile if fact.content == old.content else remove_statement(profile, old.content)
        return render_edited_profile(document, (), rest)

    return Edit(path=path, expected_hash=stored.version, data=await run_sync(rewritten))


async def _locate(files: FileStore, name: str) -> list[LocatedEntry]:
    located_entries = [one for one in await find_entries(files, name) if one.entry.id == name]
    if not located_entries:
        raise EntryNotFound(f"The memory {name} was forgotten meanwhile.")
    return located_entries


async def _plan_long_file(
    files: FileStore, located_entries: Sequence[LocatedEntry], name: str, content: str | None
) -> tuple[str | None, list[Edit]]:
    """Return where the content of an entry stands if it is long, and the edits of files with long content."""
    old = next((f"{WORKSPACE}/{one.long_path}" for one in located_entries if one.long_path), None)
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
        edits += [Edit(path=path, expected_hash=version, data=data)] if data is not None or version != ABSENT else []
    return new and new.removeprefix(f"{WORKSPACE}/"), edits


async def _drop_links(files: FileStore, edits: Sequence[Edit], name: str) -> list[Edit]:
    """Return the edits, with further ones for curated documents in which an entry contradicts this one."""
    edits_by_path = {edit.path: edit for edit in edits}
    topics = [info.path for info in await files.list(TOPICS) if info.path.endswith(".md")]
    for path in [MEMORY_PATH, *topics]:
        edit = edits_by_path.get(path)
        if edit is None:
            try:
                stored = await files.read(path)
            except FileMissing:
                continue
            edit = Edit(path=path, expected_hash=stored.version, data=stored.data)
        rest = remove_links(edit.data or b"", path, {name})
        if rest != edit.data:
            edits_by_path[path] = replace(edit, data=rest)
    return [*edits_by_path.values()]


def _document_paths(located_entries: Sequence[LocatedEntry]) -> list[str]:
    return [located.path for located in located_entries]


def _set_mark(entry: Entry, act: MarkAct, now: datetime) -> Entry:
    if act == "confirm":
        return release(replace(_without_outdated_mark(entry), confirmed=now, confidence=1.0))
    return (
        release(replace(_without_outdated_mark(entry), pinned=True)) if act == "pin" else replace(entry, pinned=False)
    )


def _without_outdated_mark(entry: Entry) -> Entry:
    return replace(entry, extra=tuple(pair for pair in entry.extra if pair[0] not in _OUTDATED_FIELDS))


async def _rewrite_bullets(
    files: FileStore, path: str, names: Collection[str], rewrite: Callable[[Entry], Entry], *, long: str | None = ""
) -> Edit:
    """Return the edit that rewrites the bullets of some entries in a document; every other byte stays.

    `long` is the path of the file with the full content, None without one; an empty path leaves it as it is.
    """
    stored = await files.read(path)

    def rewritten() -> bytes:
        data = stored.data
        for located in reversed(parse_entries(data, path, only=has_any_id(names))):
            if located.entry.id in names:
                long_path = located.long_path if long == "" else long
                bullet = render_entry(rewrite(located.entry), long=long_path).encode("utf-8", "surrogatepass")
                data = data[: located.offset] + bullet + data[located.offset + located.length :]
        return collect_again(data)

    data = await compute(rewritten, size=len(stored.data), at_once=_AT_ONCE)
    return Edit(path=path, expected_hash=stored.version, data=data)
