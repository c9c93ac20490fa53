"""Earlier versions: entries as of a moment, diffs of changes, and messages whose extraction was undone.

A document as of a moment is the version before the first later change set, or the current file. Only its entries said
by then count; a bullet without a time counts from the day of its ledger. What was said by then and imported later
counts too, and an entry is superseded from the time on at which its successor was said.
"""

import difflib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from anyio.to_thread import run_sync

from ricordo.errors import ChangeNotFound, DocumentInvalid, FileMissing
from ricordo.guard import Redactor
from ricordo.lazy import dataclass
from ricordo.storage import FileStore
from ricordo.workspace.entry import Entry, reopen
from ricordo.workspace.entry_codec import LocatedEntry, inline_fields, parse_entries
from ricordo.workspace.history.change_sets import ChangeSets
from ricordo.workspace.history.log import HistoryItem, find_undone_ids, iter_appends
from ricordo.workspace.layout import LEDGERS, MEMORY_PATH, WORKSPACE, is_memory, is_profile, ledger_date
from ricordo.workspace.ledger import find_fact_copies, is_curated, read_all_entries
from ricordo.workspace.profile import locate_facts, parse_profile

__all__ = [
    "ChangeDiff",
    "FileDiff",
    "diff_change",
    "find_entry_changes",
    "find_undone_messages",
    "read_entries_as_of",
]


async def read_entries_as_of(
    files: FileStore, changes: ChangeSets, moment: datetime, *, profile: str = ""
) -> list[Entry]:
    """Return the entries as of `moment`, newest first, each once; the version in curated memory is preferred.

    `profile` is the path of the profile whose facts are among them; empty for none. `moment` has an offset. Raises:
    ChangeNotFound if history no longer holds the content replaced since then.
    """
    later = [change for change in await changes.list_changes() if change.at > moment]
    first: dict[str, str] = {}
    for change in sorted(later, key=lambda change: change.id, reverse=True):
        first |= {file.path: file.before for file in change.files}
    paths = {MEMORY_PATH, *(info.path for info in await files.list(LEDGERS)), *first}
    past_files = _PastFiles(files, changes, first, moment)
    entries: dict[str, Entry] = {}
    curated_ids: set[str] = set()
    # the last one wins: curated memory
    for path in sorted(filter(_holds_entries, paths), key=lambda path: (is_curated(path), path)):
        data = await past_files.content(path)
        for located in await run_sync(_parse_until, data, path, moment):
            quote = located.entry.source.quote or (
                previous.source.quote if (previous := entries.get(located.entry.id)) else None
            )
            entry = await past_files.load_entry(located)
            entries[entry.id] = replace(entry, source=replace(entry.source, quote=quote))
            curated_ids |= {entry.id} if is_curated(path) else set()
    now = {located.entry.id: located.entry for located in reversed(await read_all_entries(files))}
    entries |= {name: entry for name, entry in now.items() if name not in entries and _is_imported_later(entry, moment)}
    facts = await _read_facts_as_of(past_files, profile, moment) if profile else []
    learned = {**entries, **{fact.id: fact for fact in facts}}
    for name in find_fact_copies(facts, [entry for name, entry in entries.items() if name not in curated_ids]):
        del learned[name]
    return sorted(
        (_with_state_of(entry, now, moment) for entry in learned.values()),
        key=lambda entry: (entry.time.timestamp() if entry.time else 0.0, entry.id),
        reverse=True,
    )


async def _read_facts_as_of(past_files: "_PastFiles", profile: str, moment: datetime) -> list[Entry]:
    facts = [located.entry for located in await run_sync(locate_facts, await past_files.content(profile), profile)]
    return [fact for fact in facts if fact.time is None or fact.time <= moment]


def _is_imported_later(entry: Entry, moment: datetime) -> bool:
    """Tell whether an entry was said by then and saved later, as when a conversation is imported."""
    return entry.said_at is not None and entry.time is not None and entry.said_at <= moment < entry.time


def _with_state_of(entry: Entry, now: Mapping[str, Entry], moment: datetime) -> Entry:
    """Return an entry in its state at the moment: superseded if what took its place was said by then and had begun.

    What counts is when the two were said and hold, not when a run replaced the one by the other.
    """
    latest = now.get(entry.id, entry)
    successor = now.get(latest.superseded_by)
    if successor is None or successor.said_at is None:
        return entry
    if successor.said_at > moment:
        return reopen(entry) if entry.superseded_by else entry
    has_begun = successor.valid_from is None or successor.valid_from <= moment.astimezone().date()
    return replace(entry, state="superseded" if has_begun else "active", extra=latest.extra)


class _PastFiles:
    """Reads files as of a moment."""

    def __init__(self, files: FileStore, changes: ChangeSets, first: dict[str, str], moment: datetime) -> None:
        self._files = files
        self._changes = changes
        self._first = first
        self._moment = moment

    async def content(self, path: str) -> bytes:
        """Return a file as of the moment, and what was appended to it since; empty if there was no file."""
        if path not in self._first:
            with suppress(FileMissing):
                return (await self._files.read(path)).data
            return b""
        try:
            return await self._changes.read_content(self._first[path]) or b""
        except (FileMissing, DocumentInvalid) as error:
            moment = f"{self._moment:%Y-%m-%d %H:%M}"
            raise ChangeNotFound(
                f"What {path} was on {moment} is not kept any more: history is kept for a while."
            ) from error

    async def load_entry(self, located: LocatedEntry) -> Entry:
        """Return an entry with its full content."""
        data = await self.content(f"{WORKSPACE}/{located.long_path}") if located.long_path else b""
        return replace(located.entry, content=data.decode("utf-8", "replace")) if data else located.entry


def _holds_entries(path: str) -> bool:
    return is_memory(path) and not path.startswith(f"{LEDGERS}/long/")


def _parse_until(data: bytes, path: str, moment: datetime) -> list[LocatedEntry]:
    """Return the entries of a document said by `moment`; a bullet without a time counts from its ledger's day."""
    day = ledger_date(path)
    is_later = day is not None and day > moment.astimezone().date()
    return [
        one
        for one in parse_entries(data, path)
        if (not is_later if one.entry.said_at is None else one.entry.said_at <= moment)
    ]


async def find_entry_changes(changes: ChangeSets, entry_id: str) -> set[str]:
    """Return the ids of the changes that rewrote or removed the line of an entry or a profile fact.

    A change counts as far as history holds both versions.
    """
    mark, change_ids = f"^{entry_id}".encode(), set[str]()
    for change in await changes.list_changes():
        for changed in change.files:
            if is_profile(changed.path):
                with suppress(FileMissing, DocumentInvalid):
                    old, new = [
                        await changes.read_content(version) or b"{}" for version in (changed.before, changed.after)
                    ]
                    if _find_fact(old, entry_id) != _find_fact(new, entry_id):
                        change_ids |= {change.id, change.part_of}
            elif is_memory(changed.path):
                with suppress(FileMissing, DocumentInvalid):
                    before, after = [
                        await changes.read_content(version) or b"" for version in (changed.before, changed.after)
                    ]
                    if _entry_bullets(before, mark, changed.path) != _entry_bullets(after, mark, changed.path):
                        change_ids |= {change.id, change.part_of}
    return change_ids - {""}


def _find_fact(document: bytes, fact_id: str) -> object:
    return parse_profile(document).profile.find_fact(fact_id) if fact_id.encode() in document else None


def _entry_bullets(data: bytes, mark: bytes, path: str) -> list[bytes]:
    """Return the bullets of a document that contain `mark`."""
    if mark not in data:
        return []
    data = inline_fields(data)
    located = parse_entries(data, path, only=lambda bullet: mark in bullet)
    return [data[one.offset : one.offset + one.length] for one in located]


_CONTEXT_LINES = 3


@dataclass(frozen=True, kw_only=True)
class FileDiff:
    """The change of one file as a unified diff; `text` is empty if the file did not change.

    `created` and `deleted` say that the file was missing before or after the change.
    """

    path: str
    text: str
    created: bool = False
    deleted: bool = False

    @property
    def added_lines(self) -> int:
        """The number of added lines."""
        return sum(line.startswith("+") and not line.startswith("+++") for line in self.text.split("\n"))

    @property
    def removed_lines(self) -> int:
        """The number of removed lines."""
        return sum(line.startswith("-") and not line.startswith("---") for line in self.text.split("\n"))


@dataclass(frozen=True, kw_only=True)
class ChangeDiff:
    """A change and the diff of each of its files."""

    item: HistoryItem
    files: tuple[FileDiff, ...]


async def diff_change(files: FileStore, changes: ChangeSets, item: HistoryItem, *, redactor: Redactor) -> ChangeDiff:
    """Return the diff of the change `item`, without the secrets that `redactor` finds in it.

    Raises: ChangeNotFound if history no longer holds the replaced content.
    """
    diffs = await _diff_files(files, changes, item)
    return await run_sync(
        lambda: ChangeDiff(
            item=replace(item, reason=redactor.clean(item.reason)),
            files=tuple(replace(each, text=redactor.clean_keeping_lines(each.text)) for each in diffs),
        )
    )


async def _diff_files(files: FileStore, changes: ChangeSets, item: HistoryItem) -> list[FileDiff]:
    if item.entries:
        return [await _diff_append(files, path, item) for path in item.paths]
    diffs: list[FileDiff] = []
    for changed in (await changes.get_change(item.id)).files:
        try:
            before, after = await changes.read_content(changed.before), await changes.read_content(changed.after)
        except (FileMissing, DocumentInvalid) as error:
            raise ChangeNotFound(f"What the change {item.id} replaced is not kept any more.") from error
        text = await run_sync(_unified_diff, changed.path, before, after)
        diffs.append(FileDiff(path=changed.path, text=text, created=before is None, deleted=after is None))
    return diffs


async def _diff_append(files: FileStore, path: str, item: HistoryItem) -> FileDiff:
    """Return the lines that an append added to a ledger, as the file has them now."""
    data = b""
    with suppress(FileMissing):
        data = (await files.read(path)).data
    block = [one async for appended in iter_appends(files, path) for one in appended if one.entry.id in item.entries]
    lines = [line for one in block for line in _decode_lines(data[one.offset : one.offset + one.length])]
    head = [f"--- {path}", f"+++ {path}"] if lines else []
    return FileDiff(path=path, text="\n".join([*head, *(f"+{line}" for line in lines)]))


def _unified_diff(path: str, before: bytes | None, after: bytes | None) -> str:
    names = ("/dev/null" if before is None else path, "/dev/null" if after is None else path)
    return "\n".join(
        difflib.unified_diff(_decode_lines(before), _decode_lines(after), *names, lineterm="", n=_CONTEXT_LINES)
    )


def _decode_lines(data: bytes | None) -> Sequence[str]:
    return (data or b"").decode("utf-8", "replace").splitlines()


async def find_undone_messages(files: FileStore, changes: ChangeSets, session: str) -> set[str]:
    """Return the ids of messages of a session whose extraction was undone, as far as history shows.

    Messages from which a current entry was extracted are excluded.
    """
    undone = {
        name
        async for entry in _iter_undone_entries(changes)
        if _is_extracted_from(entry, session)
        for name in entry.source.messages
    }
    if not undone:
        return set()
    remaining = [
        located.entry for located in await read_all_entries(files) if _is_extracted_from(located.entry, session)
    ]
    return undone.difference(name for entry in remaining for name in entry.source.messages)


async def _iter_undone_entries(changes: ChangeSets) -> AsyncIterator[Entry]:
    """Yield the ledger entries that were removed by undoing a change."""
    records = await changes.list_changes()
    undone = find_undone_ids(records)
    for change in records:
        if change.undoes is None or change.id in undone:
            continue
        for changed in change.files:
            if ledger_date(changed.path) is None:
                continue
            with suppress(FileMissing, DocumentInvalid):
                before, after = await changes.read_content(changed.before), await changes.read_content(changed.after)
                remaining_ids = {
                    located.entry.id for located in await run_sync(parse_entries, after or b"", changed.path)
                }
                for located in await run_sync(parse_entries, before or b"", changed.path):
                    if located.entry.id not in remaining_ids:
                        yield located.entry


def _is_extracted_from(entry: Entry, session: str) -> bool:
    return entry.by == "flush" and entry.source.session == session
