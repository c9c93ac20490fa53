"""The deletion of a session: its records, and the entries that it alone supports.

An entry is supported by its source, by the sources of entries that were merged with it or have the same words, and by
every other session in which a person said the same. An entry that was saved outside of a session supports too.

Invariant: an entry with another support stays, with its source there instead; nothing else of the session stays.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from anyio.to_thread import run_sync

from ricordo.curation.cascade import add_room_edits
from ricordo.curation.config import ConsolidationConfig
from ricordo.curation.forget import plan_forgetting
from ricordo.curation.importance import MERGED_FIELD, field_ids
from ricordo.curation.profile.updates import render_edited_profile
from ricordo.curation.rewording import REWORDED_FIELD, restore_own_words
from ricordo.errors import FileMissing, InvalidMessage, StorageError
from ricordo.language import split_words
from ricordo.lazy import dataclass
from ricordo.messages import Message, decode_message, get_mark
from ricordo.messages.json_text import decode_json
from ricordo.scope import encode_folder_name
from ricordo.storage import FileStore, StoredFile
from ricordo.workspace.entry import Entry, Source
from ricordo.workspace.entry_codec import LocatedEntry, collect_again, parse_entries, remove_entries, render_entry
from ricordo.workspace.history.change_sets import CURATION_LOCK, Change, ChangeSets, Edit
from ricordo.workspace.history.repetition import ContentIndex
from ricordo.workspace.history.tombstones import create_tombstone, find_repetitions
from ricordo.workspace.layout import (
    AGENTS_FOLDER,
    LARGE_RESULTS,
    SESSIONS,
    WORKSPACE,
    is_profile,
    parse_record_path,
    parse_transcript_path,
)
from ricordo.workspace.ledger import is_curated, read_all_entries
from ricordo.workspace.profile import locate_facts, parse_profile
from ricordo.workspace.session_files import parse_session

__all__ = ["RemovedSession", "remove_session"]


@dataclass(frozen=True, kw_only=True)
class RemovedSession:
    """The entries that were forgotten with a session, and the change, which can be undone."""

    entries: tuple[Entry, ...]
    change: Change


@dataclass(frozen=True, kw_only=True)
class _Support:
    """What else supports an entry: a source, and the entry that has it, if it is one."""

    source: Source
    located: LocatedEntry | None = None

    def rewrite(self, entry: Entry) -> Entry:
        """Return the entry as it is without its session: with this source, and with the words that are known there."""
        if self.located is None:
            return replace(entry, source=self.source)
        other = self.located.entry
        is_same = split_words(entry.content) == split_words(other.content)
        extra = tuple(pair for pair in entry.extra if is_same or pair[0] != REWORDED_FIELD)
        return replace(
            entry, content=entry.content if is_same else other.content, source=self.source, by=other.by,
            since=other.since, extra=extra, confidence=entry.confidence if entry.confirmed else other.confidence,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class _Removal:
    """What becomes of the entries of a session.

    Nothing else supports the `forgotten`; the `kept` have another support each, by id. The `dropped` are ids of copies
    that leave the ledgers, because the entry with the same words stays.
    """

    forgotten: tuple[LocatedEntry, ...]
    kept: Mapping[str, _Support]
    dropped: frozenset[str]


async def remove_session(
    files: FileStore, changes: ChangeSets, session: str, *, cascade: bool, key: bytes, who: str, why: str = "",
    config: ConsolidationConfig | None = None,
) -> RemovedSession:  # fmt: skip
    """Remove the records of a session, and with `cascade` the entries that it alone supports, in one change set.

    The records are its transcripts, states, tasks, evicted results and session files. Raises: StorageBusy if a
    consolidation does not end in time.
    """
    bounds, forgotten = config or ConsolidationConfig(), list[Entry]()

    async def plan() -> list[Edit]:
        edits = list[Edit]()
        if cascade:
            removal = await _choose_entries(files, session)
            # the first place of an entry is curated memory
            forgotten[:] = {one.entry.id: one.entry for one in reversed(removal.forgotten)}.values()
            edits = await _plan_entry_edits(files, changes, removal, key=key, who=who, bounds=bounds)
        records = [
            Edit(path=path, expected_hash=one.version, data=None) for path, one in await _list_records(files, session)
        ]
        paths = {edit.path for edit in records}
        return [*(edit for edit in edits if edit.path not in paths), *records]

    # a consolidation that runs meanwhile would write the entries again
    async with files.lock(CURATION_LOCK):
        change = await changes.rebase(plan, act="forget", who=who, why=why)
    return RemovedSession(entries=tuple(forgotten), change=change)


async def _plan_entry_edits(
    files: FileStore, changes: ChangeSets, removal: _Removal, *, key: bytes, who: str, bounds: ConsolidationConfig
) -> list[Edit]:
    facts = [one.entry for one in removal.forgotten if is_profile(one.path)]
    located = [one for one in removal.forgotten if not is_profile(one.path)]
    edits = list[Edit]()
    if removal.forgotten:
        edits = await plan_forgetting(
            files, located, facts, key=key, bounds=bounds, exact=True,
            make_tombstone=partial(create_tombstone, key=key, at=changes.clock.now(), by=who),
        )  # fmt: skip
    edits = await _add_kept_edits(files, edits, removal, {fact.id for fact in facts})
    return await add_room_edits(files, edits, bounds, best_effort=True) if edits else edits


async def _choose_entries(files: FileStore, session: str) -> _Removal:
    """Return what becomes of the entries of `session`."""
    located = [*await read_all_entries(files), *await _read_all_facts(files)]
    groups = [each for each in await run_sync(_group, located) if any(_is_of(one, session) for one in each)]
    alone = [one for group in groups if all(_is_of(one, session) for one in group) for one in group]
    spoken = await _find_spoken(files, {one.entry.content for one in alone}, session)
    return _decide(groups, session, spoken)


def _decide(groups: Iterable[Sequence[LocatedEntry]], session: str, spoken: Mapping[str, Source]) -> _Removal:
    """Return what becomes of groups of entries that say the same; `spoken` are other sources, by content."""
    forgotten, kept, dropped = list[LocatedEntry](), dict[str, _Support](), set[str]()
    for group in groups:
        own = [one for one in group if _is_of(one, session)]
        others = [one for one in group if not _is_of(one, session)]
        if others:
            other = min(others, key=lambda one: (one.entry.state != "active", one.entry.source.session is None))
            support = _Support(source=other.entry.source, located=other)
            placed = {one.entry.id for one in own if is_curated(one.path) or is_profile(one.path)}
            kept |= dict.fromkeys(placed, support)
            dropped |= {one.entry.id for one in own} - placed
        elif source := next((spoken[one.entry.content] for one in own if one.entry.content in spoken), None):
            kept |= dict.fromkeys((one.entry.id for one in own), _Support(source=source))
        else:
            forgotten += own
    return _Removal(forgotten=tuple(forgotten), kept=kept, dropped=frozenset(dropped))


def _is_of(located: LocatedEntry, session: str) -> bool:
    return located.entry.source.session == session


def _group(located: Sequence[LocatedEntry]) -> list[list[LocatedEntry]]:
    """Return the entries in groups: those with the same id or the same words, and those that were merged."""
    parents: dict[object, object] = {}

    def find(key: object) -> object:
        while (parent := parents.setdefault(key, key)) != key:
            parents[key] = key = parents[parent]
        return key

    for one in located:
        words = split_words(one.entry.content) or one.entry.content
        for key in (words, *field_ids(one.entry, MERGED_FIELD)):
            parents[find(key)] = find(one.entry.id)
    groups = defaultdict[object, list[LocatedEntry]](list)
    for one in located:
        groups[find(one.entry.id)].append(one)
    return [*groups.values()]


async def _read_all_facts(files: FileStore) -> list[LocatedEntry]:
    facts = list[LocatedEntry]()
    for info in await files.list(WORKSPACE):
        if is_profile(info.path) and (stored := await _read(files, info.path)):
            facts += await run_sync(locate_facts, stored.data, info.path)
    return facts


async def _find_spoken(files: FileStore, contents: Collection[str], session: str) -> dict[str, Source]:
    """Return a source in another session for each of `contents` that a person said there too."""
    spoken: dict[str, Source] = {}
    for info in await files.list(AGENTS_FOLDER) if contents else ():
        parsed = parse_transcript_path(info.path)
        if parsed and parsed[1] != session and (stored := await _read(files, info.path)):
            missing = ContentIndex(each for each in contents if each not in spoken)
            spoken |= await run_sync(_find_in_transcript, stored.data, parsed[1], missing)
    return spoken


def _find_in_transcript(data: bytes, session: str, contents: ContentIndex) -> dict[str, Source]:
    found: dict[str, Source] = {}
    for line in data.split(b"\n"):
        if candidates := contents.candidates(line.decode("utf-8", "replace")):
            for content in candidates:
                message = _decode_request(line)
                said = find_repetitions([message.text], [content]) if message else []
                if message and said:
                    found.setdefault(content, Source(session=session, messages=(message.id,), quote=said[0].strip()))
    return found


def _decode_request(line: bytes) -> Message | None:
    """Return what a person said in a line of a transcript; None for any other line."""
    try:
        message = decode_message(line)
    except InvalidMessage:
        return None
    return message if message.role == "user" and get_mark(message) is None else None


async def _add_kept_edits(
    files: FileStore, edits: Sequence[Edit], removal: _Removal, facts: Collection[str]
) -> list[Edit]:
    """Return the edits, with those that give the kept entries their other source, and remove copies and `facts`."""
    edited = {edit.path: edit for edit in edits}
    located = await read_all_entries(files)
    originals = {one.entry.id: one.entry.content for one in located if not is_curated(one.path)}
    paths = dict.fromkeys([one.path for one in located if _is_touched(one.entry, removal)])
    profiles = [info.path for info in await files.list(WORKSPACE) if is_profile(info.path)]
    for path in (*paths, *profiles):
        edit = edited.get(path)
        if edit is None:
            document = await files.read(path)
            edit = Edit(path=path, expected_hash=document.version, data=document.data)
        if edit.data is not None:
            rewrite = (
                partial(_rewrite_profile, facts=facts)
                if is_profile(path)
                else partial(_rewrite_document, originals=originals)
            )
            edited[path] = replace(edit, data=await run_sync(rewrite, edit.data, path, removal))
    long_paths = {
        f"{WORKSPACE}/{one.long_path}"
        for one in located
        if one.long_path and (one.entry.id in removal.dropped or _leaves_long(one, removal))
    }
    for path in sorted(long_paths.difference(edited)):
        if stored := await _read(files, path):
            edited[path] = Edit(path=path, expected_hash=stored.version, data=None)
    return [*edited.values()]


def _is_touched(entry: Entry, removal: _Removal) -> bool:
    names = {entry.id, *field_ids(entry, MERGED_FIELD)}
    return not (names.isdisjoint(removal.kept) and names.isdisjoint(removal.dropped))


def _leaves_long(located: LocatedEntry, removal: _Removal) -> bool:
    support = removal.kept.get(located.entry.id)
    return support is not None and support.rewrite(located.entry).content != located.entry.content


def _rewrite_document(data: bytes, path: str, removal: _Removal, originals: Mapping[str, str]) -> bytes:
    """Return a document of memory with the kept entries rewritten and the copies removed; every other byte stays."""
    if is_curated(path):
        data = restore_own_words(data, path, removal.dropped, originals)
    for located in reversed(parse_entries(data, path)):
        entry, long = located.entry, located.long_path
        if support := removal.kept.get(entry.id):
            entry = support.rewrite(entry)
            if entry.content != located.entry.content:
                long = support.located.long_path if support.located else None
        entry = replace(entry, extra=tuple(_without_dropped(entry.extra, removal.dropped)))
        if entry != located.entry:
            bullet = render_entry(entry, long=long).encode("utf-8", "surrogatepass")
            data = data[: located.offset] + bullet + data[located.offset + located.length :]
    return remove_entries(collect_again(data), path, removal.dropped)


def _without_dropped(extra: Iterable[tuple[str, str]], dropped: Collection[str]) -> Iterable[tuple[str, str]]:
    for key, value in extra:
        names = value if key != MERGED_FIELD else ",".join(each for each in value.split(",") if each not in dropped)
        if names or key != MERGED_FIELD:
            yield key, names


def _rewrite_profile(data: bytes, path: str, removal: _Removal, facts: Collection[str]) -> bytes:
    """Return a profile with the kept facts from their other source, and without the removed `facts`."""
    profile = parse_profile(data, path).profile
    if not any(fact.id in removal.kept or fact.id in facts for fact in profile.facts):
        return data
    document = decode_json(data)
    rows = document.get("facts")
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict) and (support := removal.kept.get(str(row.get("id")))):
            source = support.source
            row.update(source=source.session or "manual", sourceMessages=[*source.messages])
            row["sourceQuote"] = source.quote or ""
    return render_edited_profile(document, facts, profile)


async def _list_records(files: FileStore, session: str) -> list[tuple[str, StoredFile]]:
    """Return the files about a session alone."""
    folder, draft = (
        f"{LARGE_RESULTS}/{encode_folder_name(session)}/",
        f"{SESSIONS}/.draft-{encode_folder_name(session)}.",
    )
    records = list[tuple[str, StoredFile]]()
    for info in await files.list(WORKSPACE):
        record = parse_record_path(info.path)
        is_own = bool(record and record.session == session) or info.path.startswith((folder, draft))
        may_be = is_own or (info.path.startswith(f"{SESSIONS}/") and info.path.endswith(".md"))
        stored = await _read(files, info.path) if may_be else None
        file = parse_session(stored.data, info.path) if stored and not is_own else None
        if stored and (is_own or (file and file.session == session)):
            records.append((info.path, stored))
    return records


async def _read(files: FileStore, path: str) -> StoredFile | None:
    try:
        return await files.read(path)
    except (FileMissing, StorageError):
        return None
