"""Retention: old ledgers are archived, old session files are trashed and deleted, and retention rules are applied.

What has faded leaves MEMORY.md for an archive, until it is confirmed, pinned, used or said again.

Each step is a change set that can be undone. Archived ledgers are still searched and no longer consolidated. A rule
forgets a memory everywhere, or moves a transcript to the trash with all files of its session.

Invariants: a ledger with unread entries stays. No session file is trashed before it was announced for the whole period,
or while it holds a pinned memory. A dry run lists exactly what is done.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime, timedelta

from anyio.to_thread import run_sync

from ricordo.clock import format_rfc3339
from ricordo.curation.cascade import archived_ids, plan_archive_edits, read_or_empty
from ricordo.curation.config import (
    ConsolidationConfig,
    ExpiredMemory,
    LegalHolds,
    MaintenanceConfig,
    RetentionRule,
    find_expired_memories,
)
from ricordo.curation.forget import forget
from ricordo.curation.run_state import find_unread_entries, load_cursor
from ricordo.curation.topics import FADED_TOPIC
from ricordo.errors import AlreadyExists, EntryNotFound, FileMissing, LegalHold, VersionConflict
from ricordo.language.dates import find_validity
from ricordo.lazy import dataclass, lazy_compile
from ricordo.messages.json_text import decode_json
from ricordo.scope import Scope, encode_folder_name
from ricordo.search.config import DecayConfig, measure_decay
from ricordo.storage import ABSENT, FileStore, StoredFile
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import parse_entries
from ricordo.workspace.evicted_files import evicted_folder, find_references, reference_suffix
from ricordo.workspace.history.change_sets import CURATION_LOCK, Change, ChangeSets, Edit
from ricordo.workspace.history.usage import MemoryUsage, read_usage
from ricordo.workspace.layout import (
    LEDGERS,
    MEMORY_PATH,
    SESSIONS,
    TRASH,
    USAGE,
    WORKSPACE,
    archive_path,
    is_ledger,
    ledger_date,
    parse_record_path,
)
from ricordo.workspace.ledger import read_all_entries
from ricordo.workspace.session_catalog import SessionCatalog
from ricordo.workspace.session_files import SessionFile, parse_session
from ricordo.workspace.sessions import SessionOverview, TranscriptCatalog

__all__ = [
    "ANNOUNCEMENTS_PATH",
    "ARCHIVE_ACT",
    "EXPIRE_ACT",
    "ExpiredSession",
    "PlannedPruning",
    "PruningResult",
    "RetentionPlan",
    "apply_retention",
    "archive_expired_ledgers",
    "archive_faded",
    "find_expired_ledgers",
    "find_faded",
    "list_faded",
    "plan_pruning",
    "plan_retention",
    "prune_session_files",
]


EXPIRE_ACT = "expire"
"""The act of these change sets."""


async def find_expired_ledgers(files: FileStore, *, today: date, days: int | None) -> Sequence[str]:
    """Return the paths of ledgers that are more than `days` old on `today` and completely consolidated."""
    if days is None:
        return ()
    cutoff = today - timedelta(days=days)
    old = [info.path for info in await files.list(LEDGERS) if is_ledger(info.path) and _ledger_day(info.path) < cutoff]
    if not old:
        return ()
    cursor = await load_cursor(files)
    seen = cursor.bullet_digests
    expired = []
    for path in old:
        with suppress(FileMissing):
            data = (await files.read(path)).data
            if not await run_sync(find_unread_entries, path, data, cursor, seen):
                expired.append(path)
    return expired


async def archive_expired_ledgers(
    files: FileStore, changes: ChangeSets, *, today: date, days: int | None
) -> list[Change]:
    """Move expired ledgers to the archive, each in its own change set; one that is written meanwhile stays.

    If the archive already has a file of that day, the ledger is appended to it. Raises: StorageError.
    """
    applied = []
    for path in await find_expired_ledgers(files, today=today, days=days):
        with suppress(FileMissing, VersionConflict):
            edits = await _archive_edits(files, path)
            applied.append(await changes.apply(edits, act=EXPIRE_ACT, who="maintenance", why=f"older than {days} days"))
    return applied


async def _archive_edits(files: FileStore, path: str) -> list[Edit]:
    ledger, target = await files.read(path), archive_path(path)
    archived = await _read_if_present(files, target)
    data = ledger.data
    if archived is not None and archived.data.strip() and archived.data != data:
        data = archived.data.rstrip(b"\n") + b"\n\n" + data
    return [
        Edit(path=target, expected_hash=archived.version if archived else ABSENT, data=data),
        Edit(path=path, expected_hash=ledger.version, data=None),
    ]


async def _read_if_present(files: FileStore, path: str) -> StoredFile | None:
    try:
        return await files.read(path)
    except FileMissing:
        return None


def _ledger_day(path: str) -> date:
    return ledger_date(path) or date.max


ANNOUNCEMENTS_PATH = f"{TRASH}/announced.json"
"""The file that records which files were announced, and when."""
_PRUNE_AUTHOR = "maintenance"


@dataclass(frozen=True, kw_only=True)
class PlannedPruning:
    """The planned act for a file or a memory, such as `announce`, `trash` or `return`, and the rule for it."""

    path: str
    action: str
    rule: str


@dataclass(frozen=True, kw_only=True)
class PruningResult:
    """The number of files that were announced, moved to the trash, and deleted."""

    announced: int = 0
    trashed: int = 0
    deleted: int = 0

    @property
    def counts(self) -> dict[str, int]:
        """The counts by name."""
        return {"announced": self.announced, "trashed": self.trashed, "deleted": self.deleted}


@dataclass(frozen=True, kw_only=True)
class _PruningState:
    """The current state: the end of each session by file path, the announcements with times, the trashed files."""

    ended: Mapping[str, datetime]
    announced: Mapping[str, datetime]
    trashed: Iterable[str]
    version: str = ABSENT


async def plan_pruning(
    files: FileStore, *, now: datetime, config: MaintenanceConfig, holds: LegalHolds | None = None
) -> list[PlannedPruning]:
    """Return what pruning would do now, by path; nothing while there are `holds`."""
    return [] if holds else _plan_pruning(await _read_pruning_state(files), now, config)


async def prune_session_files(
    files: FileStore, changes: ChangeSets, *, now: datetime, config: MaintenanceConfig, holds: LegalHolds | None = None
) -> PruningResult:
    """Carry out the planned pruning. A file that is written meanwhile stays for the next run. Raises: StorageError."""
    if holds:
        return PruningResult()
    state = await _read_pruning_state(files)
    planned = _plan_pruning(state, now, config)
    by_act = {act: [item.path for item in planned if item.action == act] for act in ("announce", "trash", "delete")}
    trashed = 0
    for path in by_act["trash"]:
        trashed += await _trash_session_file(files, changes, path, now, config)
    if trashed:
        catalog = SessionCatalog(files, f"{WORKSPACE}/")
        async with catalog.lock():
            await catalog.write_index()
    deleted = 0
    for path in by_act["delete"]:
        deleted += await _delete_file(files, changes, path, config)
    await _write_announcements(changes, state, by_act["announce"], now, config)
    return PruningResult(announced=len(by_act["announce"]), trashed=trashed, deleted=deleted)


def _plan_pruning(state: _PruningState, now: datetime, config: MaintenanceConfig) -> list[PlannedPruning]:
    planned = []
    notice, retention_days = timedelta(days=config.announce_days), config.session_retention_days
    for path, ended_at in sorted(state.ended.items()):
        if retention_days is None or now - ended_at <= timedelta(days=retention_days) - notice:
            continue
        rule = f"session_retention_days = {retention_days}"
        announced = state.announced.get(path)
        if announced is None and config.announce_days:
            planned.append(PlannedPruning(path=path, action="announce", rule=rule))
        elif now - ended_at > timedelta(days=retention_days) and (announced is None or now - announced >= notice):
            planned.append(PlannedPruning(path=path, action="trash", rule=rule))
    if config.trash_days is not None:
        rule = f"trash_days = {config.trash_days}"
        cutoff = now.date() - timedelta(days=config.trash_days)
        planned += [
            PlannedPruning(path=path, action="delete", rule=rule)
            for path in sorted(state.trashed)
            if (_trash_day(path) or now.date()) < cutoff
        ]
    return planned


async def _read_pruning_state(files: FileStore) -> _PruningState:
    last_messages = {overview.session: overview.last for overview in await TranscriptCatalog(files).list_overviews()}
    session_ends = {}
    for info in await files.list(SESSIONS):
        if not info.path.endswith(".md"):
            continue
        with suppress(FileMissing):
            data = (await files.read(info.path)).data
            session = await run_sync(parse_session, data, info.path.removeprefix(f"{WORKSPACE}/"))
            if session and not any(entry.pinned for entry in session.entries):
                session_ends[info.path] = _session_end(session, last_messages.get(session.session))
    announced, version = await _read_announcements(files)
    trashed = [info.path for info in await files.list(TRASH) if _trash_day(info.path)]
    return _PruningState(ended=session_ends, announced=announced, trashed=trashed, version=version)


def _session_end(session: SessionFile, last_message: datetime | None) -> datetime:
    """Return when a session ended: at its last message, or at the end in its file if that is later."""
    recorded_end = session.started + timedelta(minutes=session.totals.minutes or 0)
    return max(recorded_end, last_message) if last_message else recorded_end


async def _read_announcements(files: FileStore) -> tuple[Mapping[str, datetime], str]:
    try:
        stored = await files.read(ANNOUNCEMENTS_PATH)
    except FileMissing:
        return {}, ABSENT
    try:
        announcements = decode_json(stored.data)
        return {str(path): datetime.fromisoformat(at) for path, at in announcements.items()}, stored.version
    except (ValueError, TypeError, AttributeError):
        # announcing the files again only keeps them longer
        return {}, stored.version


async def _write_announcements(
    changes: ChangeSets, state: _PruningState, new: list[str], now: datetime, config: MaintenanceConfig
) -> None:
    """Save the announcements, without files that are gone or sessions that were resumed."""
    retention_days, notice = config.session_retention_days, timedelta(days=config.announce_days)
    due_paths = {
        path
        for path, ended_at in state.ended.items()
        if retention_days is not None and now - ended_at > timedelta(days=retention_days) - notice
    }
    announcements = {path: at for path, at in state.announced.items() if path in due_paths} | dict.fromkeys(new, now)
    if announcements == state.announced:
        return
    data = (
        json.dumps({path: format_rfc3339(at) for path, at in sorted(announcements.items())}, indent=1).encode() + b"\n"
    )
    reason = f"{len(new)} session files go to the trash in {config.announce_days} days" if new else "nothing is due"
    with suppress(VersionConflict):
        await changes.apply(
            [Edit(path=ANNOUNCEMENTS_PATH, expected_hash=state.version, data=data)],
            act="announce",
            who=_PRUNE_AUTHOR,
            why=reason,
        )


async def _trash_session_file(
    files: FileStore, changes: ChangeSets, path: str, now: datetime, config: MaintenanceConfig
) -> bool:
    try:
        stored = await files.read(path)
        target = f"{TRASH}/{now.date().isoformat()}/{path.removeprefix(f'{WORKSPACE}/')}"
        edits = [
            Edit(path=target, expected_hash=ABSENT, data=stored.data),
            Edit(path=path, expected_hash=stored.version, data=None),
        ]
        reason = f"the session ended more than {config.session_retention_days} days ago"
        await changes.apply(edits, act="prune", who=_PRUNE_AUTHOR, why=reason)
    except (FileMissing, VersionConflict):
        return False
    return True


async def _delete_file(files: FileStore, changes: ChangeSets, path: str, config: MaintenanceConfig) -> bool:
    try:
        edit = Edit(path=path, expected_hash=(await files.read(path)).version, data=None)
        reason = f"it lay in the trash for more than {config.trash_days} days"
        await changes.apply([edit], act="delete", who=_PRUNE_AUTHOR, why=reason)
    except (FileMissing, VersionConflict):
        return False
    return True


def _trash_day(path: str) -> date | None:
    """Return when a file was moved to the trash; None for a file that is not there."""
    day, slash, _ = path.removeprefix(f"{TRASH}/").partition("/")
    if not slash:
        return None
    try:
        return date.fromisoformat(day)
    except ValueError:
        return None


_MAX_MEMORIES = 500
_MENTIONING_KINDS = frozenset({"state", "compactions"})
_RETENTION_AUTHOR = "retention"


@dataclass(frozen=True, kw_only=True)
class ExpiredSession:
    """A session whose transcript `rule` removes, and the files that are removed with it."""

    session: str
    rule: RetentionRule
    files: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class RetentionPlan:
    """The memories and sessions that the rules remove now."""

    memories: Sequence[ExpiredMemory] = ()
    sessions: Sequence[ExpiredSession] = ()


async def plan_retention(
    files: FileStore,
    rules: Sequence[RetentionRule],
    *,
    now: datetime,
    eviction_path: str | None = None,
    scope: Scope | None = None,
) -> RetentionPlan:
    """Return what has expired by these rules: each memory once, the oldest first, and sessions by their end.

    `eviction_path` is that of the `ToolResultEvictionConfig`, its default when None. `scope` is that of the root: a
    rule may name a part of it.
    """
    if not rules:
        return RetentionPlan()
    memories = await _find_memories(files, rules, now, scope) if any(not rule.transcripts for rule in rules) else []
    sessions = await _find_sessions(
        files, [rule for rule in rules if rule.transcripts], now, evicted_folder(eviction_path)
    )
    return RetentionPlan(memories=memories, sessions=sessions)


async def apply_retention(
    files: FileStore, changes: ChangeSets, rules: Sequence[RetentionRule], *, now: datetime, key: bytes,
    config: ConsolidationConfig | None = None, eviction_path: str | None = None, scope: Scope | None = None,
) -> RetentionPlan:  # fmt: skip
    """Remove at most 500 expired memories and all expired sessions, and return them; `config` bounds MEMORY.md.

    `eviction_path` and `scope` are as in `plan_retention`. Raises: StorageError.
    """
    plan = await plan_retention(files, rules, now=now, eviction_path=eviction_path, scope=scope)
    removed = []
    for each in plan.memories[:_MAX_MEMORIES]:
        # a copy of it may be held
        with suppress(EntryNotFound, LegalHold):
            await forget(
                files, changes, each.entry.id, key=key, who=_RETENTION_AUTHOR, why=each.rule.text, config=config
            )
            removed.append(each)
    for session in plan.sessions:
        await _trash_session(files, changes, session, now)
    return RetentionPlan(memories=removed, sessions=plan.sessions)


async def _find_memories(
    files: FileStore, rules: Sequence[RetentionRule], now: datetime, scope: Scope | None
) -> list[ExpiredMemory]:
    usage = await _read_usage(files)
    located = {item.entry.id: item.entry for item in reversed(await read_all_entries(files)) if item.entry.id}
    memories = []
    for entry in located.values():
        used = usage.get(entry.id, MemoryUsage())
        confirmed = max((each for each in (entry.confirmed, used.confirmed.last) if each), default=None)
        accessed = max((each for each in (used.used.last, confirmed) if each), default=None)
        memories.append((entry, accessed, confirmed))
    return sorted(
        find_expired_memories(memories, rules, now=now, root_scope=scope), key=lambda each: (each.since, each.entry.id)
    )


async def _read_usage(files: FileStore) -> dict[str, MemoryUsage]:
    try:
        data = (await files.read(USAGE)).data
    except FileMissing:
        return {}
    return await run_sync(read_usage, data)


async def _find_sessions(
    files: FileStore, rules: Sequence[RetentionRule], now: datetime, folder: str
) -> list[ExpiredSession]:
    if not rules or any(rule.holder for rule in rules):
        return []
    overviews = await TranscriptCatalog(files).list_overviews()
    expired = []
    for overview in reversed(overviews):
        rule = next((each for each in rules if each.after and now - overview.last > each.after), None)
        if rule:
            others = [each for each in overviews if each.file.path != overview.file.path]
            paths = await _find_session_files(files, overview, others, folder)
            expired.append(ExpiredSession(session=overview.session, rule=rule, files=paths))
    return expired


async def _find_session_files(
    files: FileStore, overview: SessionOverview, others: Sequence[SessionOverview], folder: str
) -> tuple[str, ...]:
    """Return every file of a session, without evicted results in `folder` that another session refers to."""
    paths = [info.path for info in await files.list(f"{WORKSPACE}/agents")]
    records = {path: record for path in paths if (record := parse_record_path(path))}
    own = [
        path
        for path, record in records.items()
        if path.startswith(f"{WORKSPACE}/agents/{overview.agent}/")
        and record.session == overview.session
        and not record.is_set_aside
    ]
    shared = any(each.session == overview.session for each in others)
    evicted = [] if shared else await files.list(f"{folder}/{encode_folder_name(overview.session)}")
    elsewhere = [path for path, record in records.items() if record.kind in _MENTIONING_KINDS and path not in own]
    mentioned = await find_references(files, elsewhere if evicted else [])
    return (*own, *(info.path for info in evicted if reference_suffix(info.path) not in mentioned))


async def _trash_session(files: FileStore, changes: ChangeSets, session: ExpiredSession, now: datetime) -> None:
    """Move the files of a session, listing them first: after a crash each file is in one of the two places."""
    folder = f"{TRASH}/{now.date().isoformat()}"
    listing = f"{folder}/sessions/{encode_folder_name(session.session)}.json"
    data = json.dumps({"session": session.session, "files": session.files}, indent=1).encode() + b"\n"
    if await files.info(listing) is None:
        edit = Edit(path=listing, expected_hash=ABSENT, data=data)
        await changes.apply([edit], act="prune", who=_RETENTION_AUTHOR, why=session.rule.text)
    for path in session.files:
        with suppress(FileMissing):
            stored = await files.read(path)
            with suppress(AlreadyExists):
                await files.create(f"{folder}/{path.removeprefix(f'{WORKSPACE}/')}", stored.data)
            await files.delete(path, expected=stored.version)


_NOTED_DAYS = lazy_compile(r"\((\d{4}-\d\d-\d\d)(?: to (\d{4}-\d\d-\d\d))?\)")
_AFTER_APPOINTMENT = timedelta(days=14)
ARCHIVE_ACT = "archive"
"""The act of a change set that moves memories between MEMORY.md and the archive of what has faded."""


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
    if _is_over(entry, max(filter(None, (entry.time, entry.confirmed, used)), default=now), now):
        return True
    if known.since is not None and used is not None and used > known.since:
        known = measure_decay(replace(entry, confirmed=used), now, decay)
    return known.state == "ended" or (known.since is not None and known.weight < decay.archive_below)


def _is_over(entry: Entry, last_meant: datetime, now: datetime) -> bool:
    """Return whether a fact is an appointment that was over two weeks ago, and was not meant since then.

    Extraction notes the days of an appointment behind its words. What begins on such a day holds on.
    """
    last_day = max((last or first for first, last in _NOTED_DAYS.findall(entry.content)), default="")
    is_over = f"{last_meant:%Y-%m-%d}" <= last_day < f"{now - _AFTER_APPOINTMENT:%Y-%m-%d}"
    if entry.kind != "fact" or not is_over:
        return False
    return find_validity(entry.content, entry.time or now).start is None


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
        edits, left, returned = await _plan_archive(files, usage, decay, now, config)
        moved = len(left) + len(returned)
        return edits

    async with files.lock(CURATION_LOCK):
        if await plan():
            await changes.rebase(plan, act=ARCHIVE_ACT, who=_PRUNE_AUTHOR, why="faded, or fresh again")
    return moved


async def list_faded(
    files: FileStore,
    *,
    usage: Mapping[str, MemoryUsage],
    decay: DecayConfig,
    now: datetime,
    config: ConsolidationConfig | None,
) -> list[PlannedPruning]:
    """Return what `archive_faded` would move, sorted by id; empty without consolidation. Raises: StorageError."""
    if config is None:
        return []
    _, left, returned = await _plan_archive(files, usage, decay, now, config)
    rule = f"decay.archive_below = {decay.archive_below:g}"
    return [
        *(PlannedPruning(path=f"memory {name}", action="archive", rule=rule) for name in sorted(left)),
        *(PlannedPruning(path=f"memory {name}", action="return", rule=rule) for name in sorted(returned)),
    ]


async def _plan_archive(
    files: FileStore, usage: Mapping[str, MemoryUsage], decay: DecayConfig, now: datetime, config: ConsolidationConfig
) -> tuple[list[Edit], frozenset[str], frozenset[str]]:
    """Return the edits that archive what has faded, the ids that leave MEMORY.md, and those that return to it."""
    memory, archive = await read_or_empty(files, MEMORY_PATH), await read_or_empty(files, FADED_TOPIC)
    entries = [
        located.entry
        for path, (data, _) in ((MEMORY_PATH, memory), (FADED_TOPIC, archive))
        for located in await run_sync(parse_entries, data, path)
    ]
    faded = find_faded(entries, usage, decay, now) if decay.archive_below else frozenset[str]()
    before = frozenset(archived_ids(archive[0]))
    edits = await plan_archive_edits(files, memory, archive, faded, config)
    after = next((frozenset(archived_ids(edit.data or b"")) for edit in edits if edit.path == FADED_TOPIC), before)
    return edits, after - before, before - after
