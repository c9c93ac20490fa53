"""Bring over: move what an older layout kept in one workspace for all users of a project to the place of each user.

Each step writes to the place of the user before it removes from the shared workspace, and does nothing if that was done
before. So an interruption loses nothing, and the next opening of the root continues. Curated memory is moved first,
because the ledgers say what it was made of, and the ledgers are moved last.

Files that are changed, and files whose user is not known, are kept unchanged in `before-users/`. So is the history of
changes if several users are named, because each of its records may contain text of any of them. The history of a
single user moves to their place.
"""

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import unquote

from anyio.to_thread import run_sync

from ricordo.audit.listing import with_listing
from ricordo.consolidation.config import ConsolidationConfig
from ricordo.consolidation.cursor import CURSOR
from ricordo.consolidation.sheet import parse_sheet
from ricordo.consolidation.topics import described_anew
from ricordo.consolidation.waiting import PROPOSAL
from ricordo.errors import AlreadyExists, FileMissing
from ricordo.files import ABSENT, FileStore, Stored, version_of
from ricordo.maintenance.brought_over import BEFORE, REPORT, BroughtOver, encoded, read_report
from ricordo.maintenance.session_owners import SessionOwners, session_owners
from ricordo.maintenance.user_moves import (
    Stamps,
    UserMoves,
    grown,
    plan_moves,
    sheet_of_user,
    usage_of_users,
)  # fmt: skip
from ricordo.queue import Queue
from ricordo.scopes import owner_part, path_part
from ricordo.workspace.changes import Edit
from ricordo.workspace.layout import (
    AGENT_NOTES,
    DEFAULT_AGENT,
    IGNORE_FILE,
    LEDGERS,
    MEMORY,
    SESSIONS,
    TOMBSTONES,
    TOPICS,
    USAGE,
    USERS,
    WORKSPACE,
    is_memory,
    ledger_date,
    session_named,
)
from ricordo.workspace.ledger import is_curated
from ricordo.workspace.session_file import parse_session

__all__ = ["move_to_users"]

_AGENTS = f"{WORKSPACE}/agents"
_KINDS = ("sessions", "state", "compactions", "tasks")
_HISTORY = "history"
_NOTES = f"{WORKSPACE}/{AGENT_NOTES}"
_PLANS = f"{WORKSPACE}/plans"
_MOST_JOBS = 10_000


async def move_to_users(
    files: FileStore,
    place: Callable[[str], FileStore],
    *,
    inbox: Callable[[str], Queue],
    config: ConsolidationConfig | None = None,
) -> BroughtOver:
    """Move what is stamped with a user from the shared workspace of `files` to the place of that user.

    `place` returns the files of a user's folder, and `inbox` its inbox, or the shared one for an empty name. `config`
    has the bounds of MEMORY.md. Call it under a lock. Raises: StorageError; calling it again then continues.
    """
    move = _Move(files=files, place=place, inbox=inbox, config=config or ConsolidationConfig())
    stamps = await run_sync(Stamps.of, await move.documents(ledgers=True))
    sessions = await session_owners(files, stamps)
    report = await read_report(files) or await move.planned(stamps, sessions)
    if not (report.users or report.aside or await files.list(f"{WORKSPACE}/{USERS}")):
        return report
    with suppress(AlreadyExists):
        await files.create(REPORT, encoded(report))
    await move.curated(stamps, report.mixed)
    # whose they are is told by the sessions
    await move.plans(sessions, report.shared)
    await move.jobs(sessions)
    await move.conversations(sessions)
    await move.profiles()
    await move.notes(report, stamps)
    await move.ledgers(stamps)
    await move.history(report)
    return report


@dataclass(frozen=True, kw_only=True)
class _Move:
    """The steps, in the order in which they run."""

    files: FileStore
    place: Callable[[str], FileStore]
    inbox: Callable[[str], Queue]
    config: ConsolidationConfig

    async def documents(self, *, ledgers: bool) -> dict[str, bytes]:
        """Return the ledgers, including archived ones, or the documents of curated memory, by path."""
        listed = [info.path for info in await self.files.list(LEDGERS) if is_memory(info.path)]
        wanted = [
            path for path in [MEMORY, *listed] if (ledger_date(path) is not None if ledgers else is_curated(path))
        ]
        found: dict[str, bytes] = {}
        for path in wanted:
            with suppress(FileMissing):
                found[path] = (await self.files.read(path)).data
        return found

    async def planned(self, stamps: Stamps, sessions: SessionOwners) -> BroughtOver:
        """Return the report of what will be moved."""
        memories: dict[str, int] = {}
        for users in stamps.entries.values():
            for user in users - {""}:
                memories[user] = memories.get(user, 0) + 1
        curated = await self.documents(ledgers=False)
        moves = [await run_sync(plan_moves, path, data, stamps) for path, data in curated.items()]
        counts = {user: sum(each == user for each in sessions.owners.values()) for user in sorted(sessions.users)}
        mixed = tuple(dict.fromkeys(name for each in moves for name in each.mixed))
        for user in {user for each in moves for user in each.entries} - memories.keys():
            memories[user] = sum(len(each.entries.get(user, ())) for each in moves)
        is_of_one = len({*memories, *counts}) == 1
        plans = () if is_of_one else await self._paths(_PLANS)
        # what an agent noted about one user is not shown to the others
        notes = () if is_of_one else await self._paths(_NOTES)
        return BroughtOver(
            memories=memories,
            sessions=counts,
            mixed=mixed,
            shared=tuple(path for path in plans if not sessions.user_of_plan(path)),
            aside=(*sessions.unknown, *notes),
        )

    async def _paths(self, folder: str) -> tuple[str, ...]:
        return tuple([info.path for info in await self.files.list(folder)])

    async def curated(self, stamps: Stamps, mixed: Collection[str]) -> None:
        """Move the entries of curated memory but the `mixed` ones, and update the lists of topics.

        The report has the ids of mixed entries, because ledgers that were moved no longer say so.
        """
        edits: list[Edit] = []
        users: set[str] = set()
        for path, data in (await self.documents(ledgers=False)).items():
            moves = await run_sync(plan_moves, path, data, stamps, mixed)
            users |= moves.entries.keys()
            await self._give(path, data, moves)
            rest = await run_sync(_without, path, data, moves)
            if rest != data:
                edits.append(Edit(path=path, expected=version_of(data), data=rest))
        for user in sorted(users):
            for edit in await with_listing(self.place(user), [], self.config):
                await _write(self.place(user), edit)
        for edit in await with_listing(self.files, edits, self.config):
            await self._change(edit)

    async def ledgers(self, stamps: Stamps) -> None:
        """Move the entries of the ledgers, and the files of long ones."""
        for path, data in (await self.documents(ledgers=True)).items():
            moves = await run_sync(plan_moves, path, data, stamps)
            if not moves.entries:
                continue
            await self._give(path, data, moves)
            # before the ledger, which names them for the next opening after an interruption
            for long in frozenset[str]().union(*moves.longs.values()):
                with suppress(FileMissing):
                    await self.files.delete(f"{WORKSPACE}/{long}")
            rest = await run_sync(_without, path, data, moves)
            left = None if _is_hollow(rest) else rest
            await self._change(Edit(path=path, expected=version_of(data), data=left))

    async def plans(self, sessions: SessionOwners, shared: Collection[str]) -> None:
        """Move the plans of the sessions of one user but the `shared` ones."""
        for info in await self.files.list(_PLANS):
            user = sessions.user_of_plan(info.path)
            if user and info.path not in shared:
                await self._whole(info.path, self.place(user))

    async def jobs(self, sessions: SessionOwners) -> None:
        """Move jobs for a user, or for a session of theirs, to their own inbox."""
        shared = self.inbox("")
        for job in [found.job for found in await shared.jobs(states={"waiting", "running"}, limit=_MOST_JOBS)]:
            agent = path_part(job.agent or DEFAULT_AGENT)
            user = owner_part(job.user) if job.user else sessions.owners.get((agent, job.session), "")
            if user:
                with suppress(AlreadyExists):
                    await self.place(user).create(IGNORE_FILE, b"*\n")
                await self.inbox(user).put(job)
                # one that is running stays, and ends without finding its session
                await shared.withdraw(job.id)

    async def conversations(self, sessions: SessionOwners) -> None:
        """Move all files of the sessions of a user, last the states, which name the user."""
        for info in await self.files.list(SESSIONS):
            user = sessions.user_of(await self._session_of(info.path))
            if user:
                await self._whole(info.path, self.place(user))
        for path, user in sorted(sessions.files.items(), key=lambda row: (_tells_owner(row[0]), row[0])):
            await self._whole(path, self.place(user) if user else None)
        with suppress(FileMissing):
            await self.files.delete(f"{WORKSPACE}/index.json")

    async def profiles(self) -> None:
        """Move the profiles of each user."""
        top = f"{WORKSPACE}/{USERS}/"
        for info in await self.files.list(top.rstrip("/")):
            user, _, rest = info.path.removeprefix(top).partition("/")
            if rest:
                await self._whole(info.path, self.place(user), f"{WORKSPACE}/{rest}")

    async def notes(self, report: BroughtOver, stamps: Stamps) -> None:
        """Copy tombstones and the cursor to every user, and move usage, or all notes and plans to the only user.

        The notes of several users name nobody, and go to `before-users/`.
        """
        for user in sorted(report.users):
            for path in (TOMBSTONES, CURSOR):
                with suppress(FileMissing, AlreadyExists):
                    await self.place(user).create(path, (await self.files.read(path)).data)
        # a proposal contains text of all users, and is made again
        await self._aside(PROPOSAL)
        if len(report.users) == 1:
            only = self.place(next(iter(report.users)))
            await self._whole(USAGE, only)
            for folder in (_NOTES, _PLANS):
                for info in await self.files.list(folder):
                    await self._whole(info.path, only)
        else:
            for path in [path for path in report.aside if path.startswith(f"{_NOTES}/")]:
                await self._aside(path)
            await self._usage(stamps)

    async def _usage(self, stamps: Stamps) -> None:
        """Move what is noted of the use of a user's memories to that user."""
        with suppress(FileMissing):
            stored = await self.files.read(USAGE)
            parts = await run_sync(usage_of_users, stored.data, stamps)
            rest = parts.pop("", b"")
            for user, lines in parts.items():
                there = Stored(data=b"", version=ABSENT)
                with suppress(FileMissing):
                    there = await self.place(user).read(USAGE)
                new = [line for line in lines.splitlines(keepends=True) if line not in there.data]
                await self.place(user).replace(USAGE, there.data + b"".join(new), expected=there.version)
            if parts:
                await self.files.replace(USAGE, rest, expected=stored.version)

    async def history(self, report: BroughtOver) -> None:
        """Move the history of changes to the only user, or else to `before-users/`."""
        only = self.place(next(iter(report.users))) if len(report.users) == 1 else None
        for info in await self.files.list(_HISTORY):
            await self._whole(info.path, only)

    async def _give(self, path: str, data: bytes, moves: UserMoves) -> None:
        for user, ids in moves.entries.items():
            place = self.place(user)
            for long in moves.longs.get(user, ()):
                await self._copy(f"{WORKSPACE}/{long}", place)
            coming = await run_sync(sheet_of_user, path, data, ids)
            try:
                there = await place.read(path)
            except FileMissing:
                await place.create(path, coming)
                continue
            after = await run_sync(grown, path, there.data, coming)
            if after != there.data:
                await place.replace(path, after, expected=there.version)

    async def _session_of(self, path: str) -> str:
        name = path.removeprefix(f"{SESSIONS}/")
        if name.startswith(".draft-"):
            return session_named(unquote(name.removeprefix(".draft-").removesuffix(".jsonl")))
        data = (await self.files.read(path)).data
        found = await run_sync(parse_session, data, path.removeprefix(f"{WORKSPACE}/"))
        return found.session if found else ""

    async def _copy(self, path: str, place: FileStore, target: str = "") -> bool:
        """Copy a file to a place; False if another file is there."""
        with suppress(FileMissing):
            data = (await self.files.read(path)).data
            try:
                await place.create(target or path, data)
            except AlreadyExists:
                return (await place.read(target or path)).data == data
        return True

    async def _whole(self, path: str, place: FileStore | None, target: str = "") -> None:
        """Move a file to a place, or to `before-users/` if there is no place or another file is there."""
        if place is not None and await self._copy(path, place, target):
            with suppress(FileMissing):
                await self.files.delete(path)
        else:
            await self._aside(path)

    async def _aside(self, path: str) -> None:
        await self._keep(path)
        with suppress(FileMissing):
            await self.files.delete(path)

    async def _keep(self, path: str) -> None:
        """Copy a file to `before-users/`, unless that was done before."""
        with suppress(FileMissing, AlreadyExists):
            await self.files.create(f"{BEFORE}/{path}", (await self.files.read(path)).data)

    async def _change(self, edit: Edit) -> None:
        await self._keep(edit.path)
        await _write(self.files, edit)


async def _write(files: FileStore, edit: Edit) -> None:
    if edit.data is None:
        await files.delete(edit.path, expected=edit.expected)
    else:
        await files.replace(edit.path, edit.data, expected=edit.expected)


def _tells_owner(path: str) -> bool:
    return path.startswith(f"{_AGENTS}/") and "/state/" in path and ".cursor." not in path


def _without(path: str, data: bytes, moves: UserMoves) -> bytes:
    """Return a document without the entries that move."""
    gone = frozenset[str]().union(*moves.entries.values())
    if not gone:
        return data
    sheet = parse_sheet(data, path)
    emptied = {part.section for part in sheet.parts if part.section and part.entry and part.entry.id in gone}
    sheet = sheet.without(gone)
    for title in emptied if path == MEMORY else ():
        sheet = sheet.without_section(title)
    return described_anew(path, data, sheet.data) if path.startswith(f"{TOPICS}/") else sheet.data


def _is_hollow(document: bytes) -> bool:
    """Tell whether a ledger has nothing but its heading."""
    left = document.strip()
    return left.startswith(b"# ") and b"\n" not in left
