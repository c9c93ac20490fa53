"""Migration of a root from an older layout: each user's part of a shared workspace moves to that user's folder.

Each step writes to the folder of the user before it removes from the shared workspace, and is skipped if already done,
so the next opening continues after an interruption. Curated memory is moved first, because the ledgers say what it was
made of. Changed files, and files of an unknown user, are copied unchanged to `before-users/`, and so is the history of
changes if there are several users. The report stays there for `doctor`.
"""

import json
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import field
from urllib.parse import unquote

from anyio.to_thread import run_sync

from ricordo.curation.cascade import add_topic_list_edits
from ricordo.curation.config import ConsolidationConfig
from ricordo.curation.memory_document import parse_memory_document
from ricordo.curation.run_state import CURSOR_PATH, PROPOSAL_PATH
from ricordo.curation.topics import update_description
from ricordo.errors import AlreadyExists, DocumentInvalid, FileMissing
from ricordo.jobs import JobQueue
from ricordo.lazy import dataclass
from ricordo.messages.json_text import decode_json
from ricordo.runtime.user_migration_plan import (
    SessionOwners,
    UserEntries,
    UserStamps,
    append_missing,
    extract_user_document,
    find_session_owners,
    plan_moves,
    split_usage,
)
from ricordo.scope import encode_folder_name, owner_part
from ricordo.storage import ABSENT, FileStore, StoredFile, compute_version
from ricordo.workspace.history.change_sets import Edit
from ricordo.workspace.history.checks import Check
from ricordo.workspace.layout import (
    AGENT_NOTES,
    DEFAULT_AGENT,
    IGNORE_FILE,
    LEDGERS,
    MEMORY_PATH,
    SESSIONS,
    TOMBSTONES,
    TOPICS,
    USAGE,
    USERS,
    WORKSPACE,
    is_memory,
    ledger_date,
    session_from_stem,
)
from ricordo.workspace.ledger import is_curated, read_curated_entries
from ricordo.workspace.session_files import parse_session

__all__ = [
    "BACKUP_FOLDER",
    "REPORT_PATH",
    "UserMigrationReport",
    "check_user_migration",
    "encode_report",
    "migrate_to_users",
    "read_report",
]


BACKUP_FOLDER = "before-users"
"""The folder of a root for files from before the migration."""
REPORT_PATH = f"{BACKUP_FOLDER}/report.json"
_MAX_SHOWN = 10


@dataclass(frozen=True, kw_only=True)
class UserMigrationReport:
    """The result of a migration: the number of entries and sessions moved, by the folder of their user.

    `mixed` are the ids of curated entries that mix users and stayed shared. `shared` are the plans that stayed shared
    because they name no user, or several. `without_user` are the files in `before-users/` whose user is unknown: files
    of sessions, and notes.
    """

    memories: Mapping[str, int] = field(default_factory=dict)
    sessions: Mapping[str, int] = field(default_factory=dict)
    mixed: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    without_user: tuple[str, ...] = ()

    @property
    def users(self) -> frozenset[str]:
        """The folders of all users who received something."""
        return frozenset({*self.memories, *self.sessions})


async def read_report(files: FileStore) -> UserMigrationReport | None:
    """Return the report of this root; None if it was not migrated. Raises: DocumentInvalid."""
    try:
        value = decode_json((await files.read(REPORT_PATH)).data)
        return UserMigrationReport(
            memories={str(user): int(count) for user, count in value["memories"].items()},
            sessions={str(user): int(count) for user, count in value["sessions"].items()},
            mixed=tuple(map(str, value["mixed"])),
            shared=tuple(map(str, value.get("shared", ()))),
            without_user=tuple(map(str, value["aside"])),
        )
    except FileMissing:
        return None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise DocumentInvalid(f"{REPORT_PATH} can't be read: delete it, it only says what was brought over.") from error


def encode_report(report: UserMigrationReport) -> bytes:
    """Return the report as JSON."""
    value = {
        "memories": dict(report.memories), "sessions": dict(report.sessions), "mixed": list(report.mixed),
        "shared": list(report.shared), "aside": list(report.without_user),
    }  # fmt: skip
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()


async def check_user_migration(files: FileStore, folder: str) -> Check | None:
    """Return the check for the user of this folder: what became private to them; None if nothing was migrated.

    It does not show what other users have. It says if the report can't be read.
    """
    try:
        report = await read_report(files)
    except DocumentInvalid as error:
        return Check(name="users", ok=True, count=1, detail=str(error))
    if report is None:
        return None
    notes = []
    memories, sessions = report.memories.get(folder, 0), report.sessions.get(folder, 0)
    if memories or sessions:
        own_counts = (
            f"{_format_count(memories, 'memory', 'memories')} and "
            f"{_format_count(sessions, 'session', 'sessions')} of yours"
        )
        notes.append(f"{own_counts} became private: no other user of this root finds them")
    curated = {located.entry.id for located in await read_curated_entries(files)}
    mixed = [name for name in report.mixed if name in curated]
    if mixed:
        notes.append(f"what mixes several users stayed shared, and `ricordo forget` takes it out: {', '.join(mixed)}")
    shared = [path for path in report.shared if await files.info(path)]
    if shared:
        notes.append(f"these name no user, or several, and stayed shared: {_join_some(shared)}")
    set_aside = [path for path in report.without_user if await files.info(f"{BACKUP_FOLDER}/{path}")]
    if set_aside:
        notes.append(
            f"these name no user, and were moved to {BACKUP_FOLDER}, where no user and no agent finds them: "
            f"{_join_some(set_aside)}; "
            f"copy what is needed from there to users/<user>/{WORKSPACE} of its user, or to {WORKSPACE} to share it"
        )
    notes.append(f"what the root held before is in {BACKUP_FOLDER}, which may go")
    return Check(name="users", ok=True, count=memories + sessions + len(mixed), detail="; ".join(notes))


def _join_some(paths: list[str]) -> str:
    names = [path.removeprefix(f"{WORKSPACE}/") for path in paths[:_MAX_SHOWN]]
    return ", ".join([*names, *([f"and {len(paths) - _MAX_SHOWN:,} more"] if len(paths) > _MAX_SHOWN else [])])


def _format_count(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


_AGENTS = f"{WORKSPACE}/agents"
_SESSION_KINDS = ("sessions", "state", "compactions", "tasks")
_HISTORY = "history"
_NOTES = f"{WORKSPACE}/{AGENT_NOTES}"
_PLANS = f"{WORKSPACE}/plans"
_MAX_JOBS = 10_000


async def migrate_to_users(
    files: FileStore,
    place: Callable[[str], FileStore],
    *,
    inbox: Callable[[str], JobQueue],
    config: ConsolidationConfig | None = None,
) -> UserMigrationReport:
    """Move the data stamped with a user from the shared workspace of `files` to that user's place.

    `place` returns the files of a user's folder, and `inbox` its inbox, or the shared one for an empty name. `config`
    has the bounds of MEMORY.md. Call it under a lock. Raises: StorageError; calling it again then continues.
    """
    migration = _Migration(files=files, place=place, inbox=inbox, config=config or ConsolidationConfig())
    stamps = await run_sync(UserStamps.from_ledgers, await migration.read_documents(ledgers=True))
    sessions = await find_session_owners(files, stamps)
    report = await read_report(files) or await migration.plan_report(stamps, sessions)
    if not (report.users or report.without_user or await files.list(f"{WORKSPACE}/{USERS}")):
        return report
    with suppress(AlreadyExists):
        await files.create(REPORT_PATH, encode_report(report))
    await migration.move_curated(stamps, report.mixed)
    # the sessions say who owns them
    await migration.move_plans(sessions, report.shared)
    await migration.move_jobs(sessions)
    await migration.move_sessions(sessions)
    await migration.move_profiles()
    await migration.move_notes(report, stamps)
    await migration.move_ledgers(stamps)
    await migration.move_history(report)
    return report


@dataclass(frozen=True, kw_only=True)
class _Migration:
    """The steps of the migration, in the order in which they run."""

    files: FileStore
    place: Callable[[str], FileStore]
    inbox: Callable[[str], JobQueue]
    config: ConsolidationConfig

    async def read_documents(self, *, ledgers: bool) -> dict[str, bytes]:
        """Return the ledgers, including archived ones, or the documents of curated memory, by path."""
        ledger_paths = [info.path for info in await self.files.list(LEDGERS) if is_memory(info.path)]
        paths = [
            path
            for path in [MEMORY_PATH, *ledger_paths]
            if (ledger_date(path) is not None if ledgers else is_curated(path))
        ]
        documents: dict[str, bytes] = {}
        for path in paths:
            with suppress(FileMissing):
                documents[path] = (await self.files.read(path)).data
        return documents

    async def plan_report(self, stamps: UserStamps, sessions: SessionOwners) -> UserMigrationReport:
        """Return the report of what will be moved."""
        memories: dict[str, int] = {}
        for users in stamps.entries.values():
            for user in users - {""}:
                memories[user] = memories.get(user, 0) + 1
        curated = await self.read_documents(ledgers=False)
        moves = [await run_sync(plan_moves, path, data, stamps) for path, data in curated.items()]
        counts = {user: sum(each == user for each in sessions.owners.values()) for user in sorted(sessions.users)}
        mixed = tuple(dict.fromkeys(name for each in moves for name in each.mixed))
        for user in {user for each in moves for user in each.entries} - memories.keys():
            memories[user] = sum(len(each.entries.get(user, ())) for each in moves)
        has_one_user = len({*memories, *counts}) == 1
        plans = () if has_one_user else await self._paths(_PLANS)
        # what an agent noted about one user is not shown to the others
        notes = () if has_one_user else await self._paths(_NOTES)
        return UserMigrationReport(
            memories=memories,
            sessions=counts,
            mixed=mixed,
            shared=tuple(path for path in plans if not sessions.user_of_plan(path)),
            without_user=(*sessions.unknown, *notes),
        )

    async def _paths(self, folder: str) -> tuple[str, ...]:
        return tuple([info.path for info in await self.files.list(folder)])

    async def move_curated(self, stamps: UserStamps, mixed: Collection[str]) -> None:
        """Move the entries of curated memory except the `mixed` ones, and update the lists of topics.

        The report has the ids of mixed entries, because the moved ledgers no longer show them.
        """
        edits: list[Edit] = []
        users: set[str] = set()
        for path, data in (await self.read_documents(ledgers=False)).items():
            moves = await run_sync(plan_moves, path, data, stamps, mixed)
            users |= moves.entries.keys()
            await self._append_entries(path, data, moves)
            rest = await run_sync(_remove_moved, path, data, moves)
            if rest != data:
                edits.append(Edit(path=path, expected_hash=compute_version(data), data=rest))
        for user in sorted(users):
            for edit in await add_topic_list_edits(self.place(user), [], self.config):
                await _write_edit(self.place(user), edit)
        for edit in await add_topic_list_edits(self.files, edits, self.config):
            await self._apply_edit(edit)

    async def move_ledgers(self, stamps: UserStamps) -> None:
        """Move the entries of the ledgers, and the files of long ones."""
        for path, data in (await self.read_documents(ledgers=True)).items():
            moves = await run_sync(plan_moves, path, data, stamps)
            if not moves.entries:
                continue
            await self._append_entries(path, data, moves)
            # before the ledger, which names them for the next opening after an interruption
            for long in frozenset[str]().union(*moves.longs.values()):
                with suppress(FileMissing):
                    await self.files.delete(f"{WORKSPACE}/{long}")
            rest = await run_sync(_remove_moved, path, data, moves)
            remaining = None if _is_heading_only(rest) else rest
            await self._apply_edit(Edit(path=path, expected_hash=compute_version(data), data=remaining))

    async def move_plans(self, sessions: SessionOwners, shared: Collection[str]) -> None:
        """Move the plans of sessions of a single user, except the `shared` ones."""
        for info in await self.files.list(_PLANS):
            user = sessions.user_of_plan(info.path)
            if user and info.path not in shared:
                await self._move_file(info.path, self.place(user))

    async def move_jobs(self, sessions: SessionOwners) -> None:
        """Move jobs for a user, or for a session of theirs, to their own inbox."""
        shared = self.inbox("")
        for job in [record.job for record in await shared.jobs(states={"waiting", "running"}, limit=_MAX_JOBS)]:
            agent = encode_folder_name(job.agent or DEFAULT_AGENT)
            user = owner_part(job.user) if job.user else sessions.owners.get((agent, job.session), "")
            if user:
                with suppress(AlreadyExists):
                    await self.place(user).create(IGNORE_FILE, b"*\n")
                await self.inbox(user).put(job)
                # a running job stays, and ends without finding its session
                await shared.withdraw(job.id)

    async def move_sessions(self, sessions: SessionOwners) -> None:
        """Move all files of the sessions of a user, last the states, which name the user."""
        for info in await self.files.list(SESSIONS):
            user = sessions.user_of(await self._read_session(info.path))
            if user:
                await self._move_file(info.path, self.place(user))
        for path, user in sorted(sessions.files.items(), key=lambda row: (_is_session_state(row[0]), row[0])):
            await self._move_file(path, self.place(user) if user else None)
        with suppress(FileMissing):
            await self.files.delete(f"{WORKSPACE}/index.json")

    async def move_profiles(self) -> None:
        """Move the profiles of each user."""
        top = f"{WORKSPACE}/{USERS}/"
        for info in await self.files.list(top.rstrip("/")):
            user, _, rest = info.path.removeprefix(top).partition("/")
            if rest:
                await self._move_file(info.path, self.place(user), f"{WORKSPACE}/{rest}")

    async def move_notes(self, report: UserMigrationReport, stamps: UserStamps) -> None:
        """Copy tombstones and the cursor to every user, and move usage, or all notes and plans to the only user.

        Notes do not name their user; with several users they go to `before-users/`.
        """
        for user in sorted(report.users):
            for path in (TOMBSTONES, CURSOR_PATH):
                with suppress(FileMissing, AlreadyExists):
                    await self.place(user).create(path, (await self.files.read(path)).data)
        # a proposal contains text of all users, and is created again
        await self._move_to_backup(PROPOSAL_PATH)
        if len(report.users) == 1:
            only_place = self.place(next(iter(report.users)))
            await self._move_file(USAGE, only_place)
            for folder in (_NOTES, _PLANS):
                for info in await self.files.list(folder):
                    await self._move_file(info.path, only_place)
        else:
            for path in [path for path in report.without_user if path.startswith(f"{_NOTES}/")]:
                await self._move_to_backup(path)
            await self._move_usage(stamps)

    async def _move_usage(self, stamps: UserStamps) -> None:
        """Move the usage records of each user's entries to that user."""
        with suppress(FileMissing):
            stored = await self.files.read(USAGE)
            parts = await run_sync(split_usage, stored.data, stamps)
            rest = parts.pop("", b"")
            for user, lines in parts.items():
                existing = StoredFile(data=b"", version=ABSENT)
                with suppress(FileMissing):
                    existing = await self.place(user).read(USAGE)
                new = [line for line in lines.splitlines(keepends=True) if line not in existing.data]
                await self.place(user).replace(USAGE, existing.data + b"".join(new), expected=existing.version)
            if parts:
                await self.files.replace(USAGE, rest, expected=stored.version)

    async def move_history(self, report: UserMigrationReport) -> None:
        """Move the history of changes to the only user, or else to `before-users/`."""
        only = self.place(next(iter(report.users))) if len(report.users) == 1 else None
        for info in await self.files.list(_HISTORY):
            await self._move_file(info.path, only)

    async def _append_entries(self, path: str, data: bytes, moves: UserEntries) -> None:
        for user, ids in moves.entries.items():
            place = self.place(user)
            for long in moves.longs.get(user, ()):
                await self._copy_file(f"{WORKSPACE}/{long}", place)
            coming = await run_sync(extract_user_document, path, data, ids)
            try:
                existing = await place.read(path)
            except FileMissing:
                await place.create(path, coming)
                continue
            after = await run_sync(append_missing, path, existing.data, coming)
            if after != existing.data:
                await place.replace(path, after, expected=existing.version)

    async def _read_session(self, path: str) -> str:
        name = path.removeprefix(f"{SESSIONS}/")
        if name.startswith(".draft-"):
            return session_from_stem(unquote(name.removeprefix(".draft-").removesuffix(".jsonl")))
        data = (await self.files.read(path)).data
        session_file = await run_sync(parse_session, data, path.removeprefix(f"{WORKSPACE}/"))
        return session_file.session if session_file else ""

    async def _copy_file(self, path: str, place: FileStore, target: str = "") -> bool:
        """Copy a file to a place; False if another file is there."""
        with suppress(FileMissing):
            data = (await self.files.read(path)).data
            try:
                await place.create(target or path, data)
            except AlreadyExists:
                return (await place.read(target or path)).data == data
        return True

    async def _move_file(self, path: str, place: FileStore | None, target: str = "") -> None:
        """Move a file to a place, or to `before-users/` if there is no place or another file is there."""
        if place is not None and await self._copy_file(path, place, target):
            with suppress(FileMissing):
                await self.files.delete(path)
        else:
            await self._move_to_backup(path)

    async def _move_to_backup(self, path: str) -> None:
        await self._back_up(path)
        with suppress(FileMissing):
            await self.files.delete(path)

    async def _back_up(self, path: str) -> None:
        """Copy a file to `before-users/`, unless that was done before."""
        with suppress(FileMissing, AlreadyExists):
            await self.files.create(f"{BACKUP_FOLDER}/{path}", (await self.files.read(path)).data)

    async def _apply_edit(self, edit: Edit) -> None:
        await self._back_up(edit.path)
        await _write_edit(self.files, edit)


async def _write_edit(files: FileStore, edit: Edit) -> None:
    if edit.data is None:
        await files.delete(edit.path, expected=edit.expected_hash)
    else:
        await files.replace(edit.path, edit.data, expected=edit.expected_hash)


def _is_session_state(path: str) -> bool:
    return path.startswith(f"{_AGENTS}/") and "/state/" in path and ".cursor." not in path


def _remove_moved(path: str, data: bytes, moves: UserEntries) -> bytes:
    """Return a document without the entries that move."""
    moved_ids = frozenset[str]().union(*moves.entries.values())
    if not moved_ids:
        return data
    document = parse_memory_document(data, path)
    emptied = {part.section for part in document.parts if part.section and part.entry and part.entry.id in moved_ids}
    document = document.without(moved_ids)
    for title in emptied if path == MEMORY_PATH else ():
        document = document.without_section(title)
    return update_description(path, data, document.data) if path.startswith(f"{TOPICS}/") else document.data


def _is_heading_only(document: bytes) -> bool:
    """Return whether a ledger has only its heading."""
    remaining = document.strip()
    return remaining.startswith(b"# ") and b"\n" not in remaining
