"""Retention by rule: the memories and transcripts that a person's rules name go when their time is over.

A memory goes as `forget` takes it out: at once, everywhere, one change set each that can be undone. A transcript and
what belongs to it goes to the trash, and the change set that tells of it names the files.

Invariant: what is done is what a dry run lists.
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from anyio.to_thread import run_sync

from ricordo.audit.forget import forget
from ricordo.audit.usage import MemoryUsage, read_usage
from ricordo.compaction.collect import evicted_folder, find_references, reference_suffix
from ricordo.consolidation.config import ConsolidationConfig
from ricordo.errors import AlreadyExists, EntryNotFound, FileMissing
from ricordo.files import ABSENT, FileStore
from ricordo.maintenance.rules import ExpiredMemory, RetentionRule, find_expired_memories
from ricordo.scopes import Scope, encode_folder_name
from ricordo.sessions.catalogue import TranscriptCatalog, SessionOverview
from ricordo.workspace.changes import ChangeSets, Edit
from ricordo.workspace.layout import TRASH, USAGE, WORKSPACE, parse_record_path
from ricordo.workspace.ledger import read_all_entries

__all__ = ["ExpiredSession", "RetentionPlan", "plan_retention", "apply_retention"]

_MAX_MEMORIES = 500
_MENTIONING_KINDS = frozenset({"state", "compactions"})
_RETENTION_AUTHOR = "retention"


@dataclass(frozen=True, kw_only=True)
class ExpiredSession:
    """A session whose transcript goes by `rule`, and the files that go with it."""

    session: str
    rule: RetentionRule
    files: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class RetentionPlan:
    """What the rules take out now."""

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
    """Return what is past its time by these rules: each memory once, the oldest first, and sessions by their end.

    `eviction_path` is that of the `ToolResultEvictionConfig`, its default when None. `scope` is that of the place: a
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
    """Take it out, at most 500 memories at a time, and return what went; MEMORY.md stays within the bounds of `config`.

    `eviction_path` and `scope` are as in `plan_retention`. Raises: StorageError.
    """
    found = await plan_retention(files, rules, now=now, eviction_path=eviction_path, scope=scope)
    gone = []
    for each in found.memories[:_MAX_MEMORIES]:
        with suppress(EntryNotFound):
            await forget(
                files, changes, each.entry.id, key=key, who=_RETENTION_AUTHOR, why=each.rule.text, config=config
            )
            gone.append(each)
    for session in found.sessions:
        await _trash_session(files, changes, session, now)
    return RetentionPlan(memories=gone, sessions=found.sessions)


async def _find_memories(
    files: FileStore, rules: Sequence[RetentionRule], now: datetime, scope: Scope | None
) -> list[ExpiredMemory]:
    usage = await _read_usage(files)
    located = {found.entry.id: found.entry for found in reversed(await read_all_entries(files)) if found.entry.id}
    known = []
    for entry in located.values():
        used = usage.get(entry.id, MemoryUsage())
        confirmed = max((each for each in (entry.confirmed, used.confirmed.last) if each), default=None)
        accessed = max((each for each in (used.used.last, confirmed) if each), default=None)
        known.append((entry, accessed, confirmed))
    return sorted(find_expired_memories(known, rules, now=now, own=scope), key=lambda each: (each.since, each.entry.id))


async def _read_usage(files: FileStore) -> dict[str, MemoryUsage]:
    try:
        data = (await files.read(USAGE)).data
    except FileMissing:
        return {}
    return await run_sync(read_usage, data)


async def _find_sessions(
    files: FileStore, rules: Sequence[RetentionRule], now: datetime, folder: str
) -> list[ExpiredSession]:
    if not rules:
        return []
    glances = await TranscriptCatalog(files).list_overviews()
    found = []
    for glance in reversed(glances):
        rule = next((each for each in rules if now - glance.last > each.after), None)
        if rule:
            others = [each for each in glances if each.file.path != glance.file.path]
            paths = await _find_session_files(files, glance, others, folder)
            found.append(ExpiredSession(session=glance.session, rule=rule, files=paths))
    return found


async def _find_session_files(
    files: FileStore, glance: SessionOverview, others: Sequence[SessionOverview], folder: str
) -> tuple[str, ...]:
    """Return every file of a session, without those evicted results in `folder` that another session refers to."""
    listed = [info.path for info in await files.list(f"{WORKSPACE}/agents")]
    records = {path: record for path in listed if (record := parse_record_path(path))}
    own = [
        path
        for path, record in records.items()
        if path.startswith(f"{WORKSPACE}/agents/{glance.agent}/")
        and record.session == glance.session
        and not record.is_set_aside
    ]
    shared = any(each.session == glance.session for each in others)
    evicted = [] if shared else await files.list(f"{folder}/{encode_folder_name(glance.session)}")
    elsewhere = [path for path, record in records.items() if record.kind in _MENTIONING_KINDS and path not in own]
    mentioned = await find_references(files, elsewhere if evicted else [])
    return (*own, *(info.path for info in evicted if reference_suffix(info.path) not in mentioned))


async def _trash_session(files: FileStore, changes: ChangeSets, session: ExpiredSession, now: datetime) -> None:
    """Move the files of a session, on record first, so that a kill in between leaves them in one of the two places."""
    folder = f"{TRASH}/{now.date().isoformat()}"
    listing = f"{folder}/sessions/{encode_folder_name(session.session)}.json"
    data = json.dumps({"session": session.session, "files": session.files}, indent=1).encode() + b"\n"
    if await files.info(listing) is None:
        edit = Edit(path=listing, expected=ABSENT, data=data)
        await changes.apply([edit], act="prune", who=_RETENTION_AUTHOR, why=session.rule.text)
    for path in session.files:
        with suppress(FileMissing):
            stored = await files.read(path)
            with suppress(AlreadyExists):
                await files.create(f"{folder}/{path.removeprefix(f'{WORKSPACE}/')}", stored.data)
            await files.delete(path, expected=stored.version)
