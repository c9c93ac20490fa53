"""Prune: files of sessions that ended long ago are announced, go to the trash, and are deleted after a grace period.

Each step is a change set, so it stands in the history and can be undone as long as that keeps it.

Invariant: nothing goes to the trash that was not announced for the whole time that the settings promise, and nothing
that holds a pinned memory.
"""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from anyio.to_thread import run_sync

from ricordo.clock import format_rfc3339
from ricordo.errors import FileMissing, VersionConflict
from ricordo.files import ABSENT, FileStore
from ricordo.maintenance.config import MaintenanceConfig
from ricordo.messages.jsontext import decode_json
from ricordo.sessions.catalogue import TranscriptCatalog
from ricordo.stores.session_shelf import SessionCatalog
from ricordo.workspace.changes import ChangeSets, Edit
from ricordo.workspace.layout import SESSIONS, TRASH, WORKSPACE
from ricordo.workspace.session_file import SessionFile, parse_session

__all__ = ["ANNOUNCEMENTS_PATH", "PlannedPruning", "PruningResult", "plan_pruning", "prune_session_files"]

ANNOUNCEMENTS_PATH = f"{TRASH}/announced.json"
"""Where it is kept which files were announced, and when."""
_PRUNE_AUTHOR = "maintenance"


@dataclass(frozen=True, kw_only=True)
class PlannedPruning:
    """What is to become of a file: `announce`, `trash` or `delete`, and by which rule."""

    path: str
    act: str
    rule: str


@dataclass(frozen=True, kw_only=True)
class PruningResult:
    """How many files were announced, put into the trash, and deleted."""

    announced: int = 0
    trashed: int = 0
    deleted: int = 0

    @property
    def counts(self) -> dict[str, int]:
        """The counts by name."""
        return {"announced": self.announced, "trashed": self.trashed, "deleted": self.deleted}


@dataclass(frozen=True, kw_only=True)
class _PruningState:
    """What a look found: the end of each session by the path of its file, what was announced when, what is trash."""

    ended: Mapping[str, datetime]
    announced: Mapping[str, datetime]
    trashed: Iterable[str]
    version: str = ABSENT


async def plan_pruning(files: FileStore, *, now: datetime, config: MaintenanceConfig) -> list[PlannedPruning]:
    """Return what pruning would do now, by path."""
    return _plan_pruning(await _read_pruning_state(files), now, config)


async def prune_session_files(
    files: FileStore, changes: ChangeSets, *, now: datetime, config: MaintenanceConfig
) -> PruningResult:
    """Do it. A file that somebody writes to meanwhile stays for the next time. Raises: StorageError."""
    known = await _read_pruning_state(files)
    planned = _plan_pruning(known, now, config)
    by_act = {act: [fate.path for fate in planned if fate.act == act] for act in ("announce", "trash", "delete")}
    trashed = 0
    for path in by_act["trash"]:
        trashed += await _trash_session_file(files, changes, path, now, config)
    if trashed:
        shelf = SessionCatalog(files, f"{WORKSPACE}/")
        async with shelf.lock():
            await shelf.write_index()
    deleted = 0
    for path in by_act["delete"]:
        deleted += await _delete_file(files, changes, path, config)
    await _write_announcements(changes, known, by_act["announce"], now, config)
    return PruningResult(announced=len(by_act["announce"]), trashed=trashed, deleted=deleted)


def _plan_pruning(known: _PruningState, now: datetime, config: MaintenanceConfig) -> list[PlannedPruning]:
    found = []
    notice, keep = timedelta(days=config.announce_days), config.session_retention_days
    for path, ended in sorted(known.ended.items()):
        if keep is None or now - ended <= timedelta(days=keep) - notice:
            continue
        rule = f"session_retention_days = {keep}"
        announced = known.announced.get(path)
        if announced is None and config.announce_days:
            found.append(PlannedPruning(path=path, act="announce", rule=rule))
        elif now - ended > timedelta(days=keep) and (announced is None or now - announced >= notice):
            found.append(PlannedPruning(path=path, act="trash", rule=rule))
    if config.trash_days is not None:
        rule = f"trash_days = {config.trash_days}"
        last = now.date() - timedelta(days=config.trash_days)
        found += [
            PlannedPruning(path=path, act="delete", rule=rule)
            for path in sorted(known.trashed)
            if (_trash_day(path) or now.date()) < last
        ]
    return found


async def _read_pruning_state(files: FileStore) -> _PruningState:
    last = {glance.session: glance.last for glance in await TranscriptCatalog(files).list_overviews()}
    ended = {}
    for info in await files.list(SESSIONS):
        if not info.path.endswith(".md"):
            continue
        with suppress(FileMissing):
            data = (await files.read(info.path)).data
            session = await run_sync(parse_session, data, info.path.removeprefix(f"{WORKSPACE}/"))
            if session and not any(entry.pinned for entry in session.entries):
                ended[info.path] = _session_end(session, last.get(session.session))
    announced, version = await _read_announcements(files)
    trashed = [info.path for info in await files.list(TRASH) if _trash_day(info.path)]
    return _PruningState(ended=ended, announced=announced, trashed=trashed, version=version)


def _session_end(session: SessionFile, last: datetime | None) -> datetime:
    """Return when a session ended: at its last message, as far as one is later than what its file tells."""
    told = session.started + timedelta(minutes=session.worked.minutes or 0)
    return max(told, last) if last else told


async def _read_announcements(files: FileStore) -> tuple[Mapping[str, datetime], str]:
    try:
        stored = await files.read(ANNOUNCEMENTS_PATH)
    except FileMissing:
        return {}, ABSENT
    try:
        found = decode_json(stored.data)
        return {str(path): datetime.fromisoformat(at) for path, at in found.items()}, stored.version
    except (ValueError, TypeError, AttributeError):
        # what was announced is announced anew, which only lets it stay longer
        return {}, stored.version


async def _write_announcements(
    changes: ChangeSets, known: _PruningState, new: list[str], now: datetime, config: MaintenanceConfig
) -> None:
    """Write down what was announced, and forget what is gone or was taken up again."""
    keep, notice = config.session_retention_days, timedelta(days=config.announce_days)
    near = {
        path for path, ended in known.ended.items() if keep is not None and now - ended > timedelta(days=keep) - notice
    }
    wanted = {path: at for path, at in known.announced.items() if path in near} | dict.fromkeys(new, now)
    if wanted == known.announced:
        return
    data = json.dumps({path: format_rfc3339(at) for path, at in sorted(wanted.items())}, indent=1).encode() + b"\n"
    why = f"{len(new)} session files go to the trash in {config.announce_days} days" if new else "nothing is due"
    with suppress(VersionConflict):
        await changes.apply(
            [Edit(path=ANNOUNCEMENTS_PATH, expected=known.version, data=data)],
            act="announce",
            who=_PRUNE_AUTHOR,
            why=why,
        )


async def _trash_session_file(
    files: FileStore, changes: ChangeSets, path: str, now: datetime, config: MaintenanceConfig
) -> bool:
    try:
        stored = await files.read(path)
        target = f"{TRASH}/{now.date().isoformat()}/{path.removeprefix(f'{WORKSPACE}/')}"
        edits = [
            Edit(path=target, expected=ABSENT, data=stored.data), Edit(path=path, expected=stored.version, data=None),
        ]  # fmt: skip
        why = f"the session ended more than {config.session_retention_days} days ago"
        await changes.apply(edits, act="prune", who=_PRUNE_AUTHOR, why=why)
    except (FileMissing, VersionConflict):
        return False
    return True


async def _delete_file(files: FileStore, changes: ChangeSets, path: str, config: MaintenanceConfig) -> bool:
    try:
        edit = Edit(path=path, expected=(await files.read(path)).version, data=None)
        why = f"it lay in the trash for more than {config.trash_days} days"
        await changes.apply([edit], act="delete", who=_PRUNE_AUTHOR, why=why)
    except (FileMissing, VersionConflict):
        return False
    return True


def _trash_day(path: str) -> date | None:
    """Return when a file was put into the trash; None for what does not lie there."""
    day, slash, _ = path.removeprefix(f"{TRASH}/").partition("/")
    if not slash:
        return None
    try:
        return date.fromisoformat(day)
    except ValueError:
        return None
