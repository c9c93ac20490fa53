"""Bringing a root over: what an older layout kept in one workspace for all users of a project goes to each of them.

Each step writes what a user gets before it takes that out of the shared workspace, and does nothing where it was done
already. So whoever is killed in between loses nothing, and the next one to open the root goes on. Curated memory comes
first, as what it rests on is told by the ledgers; the ledgers come last.

What is changed in place, and what can't be told whose it is, is kept in `before-users/` as it was. So is the history of
changes where several users are named, as each of its records may hold what any of them said; where it is one, the
history is theirs and goes along.
"""

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import unquote

from anyio.to_thread import run_sync

from ricordo.audit.listing import with_listing
from ricordo.consolidation.config import ConsolidationConfig
from ricordo.consolidation.cursor import CURSOR
from ricordo.consolidation.sheet import parse_sheet
from ricordo.consolidation.topics import described_anew
from ricordo.consolidation.waiting import PROPOSAL
from ricordo.errors import AlreadyExists, FileMissing
from ricordo.files import FileStore, version_of
from ricordo.maintenance.brought_over import BEFORE, REPORT, BroughtOver, encoded, read_report
from ricordo.maintenance.user_moves import Stamps, UserMoves, grown, plan_moves, sheet_of_user
from ricordo.scopes import path_part
from ricordo.sessions.owners import owner_of
from ricordo.workspace.changes import Edit
from ricordo.workspace.layout import (
    LARGE_RESULTS,
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


async def move_to_users(
    files: FileStore, place: Callable[[str], FileStore], *, config: ConsolidationConfig | None = None
) -> BroughtOver:
    """Move what is stamped with a user from the shared workspace of `files` to the place of that user's folder.

    `config` has the bounds of MEMORY.md. Call it under a lock. Raises: StorageError, and then what was moved is moved
    and the rest is where it was.
    """
    move = _Move(files=files, place=place, config=config or ConsolidationConfig())
    stamps = await run_sync(Stamps.of, await move.documents(ledgers=True))
    sessions = await _sessions(files, stamps)
    report = await read_report(files) or await move.planned(stamps, sessions)
    if not (report.users or report.aside or await files.list(f"{WORKSPACE}/{USERS}")):
        return report
    with suppress(AlreadyExists):
        await files.create(REPORT, encoded(report))
    await move.curated(stamps, report.mixed)
    await move.conversations(sessions)
    await move.profiles()
    await move.notes(report)
    await move.ledgers(stamps)
    await move.history(report)
    return report


@dataclass(frozen=True, kw_only=True)
class _Move:
    """The steps, in the order in which they are written."""

    files: FileStore
    place: Callable[[str], FileStore]
    config: ConsolidationConfig

    async def documents(self, *, ledgers: bool) -> dict[str, bytes]:
        """Return the ledgers, archived ones too, or else the documents of curated memory."""
        listed = [info.path for info in await self.files.list(LEDGERS) if is_memory(info.path)]
        wanted = [
            path for path in [MEMORY, *listed] if (ledger_date(path) is not None if ledgers else is_curated(path))
        ]
        found: dict[str, bytes] = {}
        for path in wanted:
            with suppress(FileMissing):
                found[path] = (await self.files.read(path)).data
        return found

    async def planned(self, stamps: Stamps, sessions: "_Sessions") -> BroughtOver:
        """Return what will be brought over."""
        memories: dict[str, int] = {}
        for users in stamps.entries.values():
            for user in users - {""}:
                memories[user] = memories.get(user, 0) + 1
        curated = await self.documents(ledgers=False)
        moves = [await run_sync(plan_moves, path, data, stamps) for path, data in curated.items()]
        counts = {user: sum(each == user for each in sessions.owners.values()) for user in sessions.users}
        mixed = tuple(dict.fromkeys(name for each in moves for name in each.mixed))
        for user in {user for each in moves for user in each.entries} - memories.keys():
            memories[user] = sum(len(each.entries.get(user, ())) for each in moves)
        return BroughtOver(memories=memories, sessions=counts, mixed=mixed, aside=sessions.unknown)

    async def curated(self, stamps: Stamps, mixed: Collection[str]) -> None:
        """Move the entries of curated memory but the `mixed` ones; the lists of topics follow.

        Which are mixed is told by the report: once the ledgers have moved, nothing here tells it any more.
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
            rest = await run_sync(_without, path, data, moves)
            left = None if _is_hollow(rest) else rest
            await self._change(Edit(path=path, expected=version_of(data), data=left))
            for longs in moves.longs.values():
                for long in longs:
                    with suppress(FileMissing):
                        await self.files.delete(f"{WORKSPACE}/{long}")

    async def conversations(self, sessions: "_Sessions") -> None:
        """Move all that belongs to the sessions of a user, last what tells whose they are."""
        for info in await self.files.list(SESSIONS):
            user = sessions.user_of(await self._session_of(info.path))
            if user:
                await self._whole(info.path, self.place(user))
        for path, user in sorted(sessions.files.items(), key=lambda row: (_tells_owner(row[0]), row[0])):
            await self._whole(path, self.place(user) if user else None)
        with suppress(FileMissing):
            await self.files.delete(f"{WORKSPACE}/index.json")

    async def profiles(self) -> None:
        """Move what is known of each user."""
        top = f"{WORKSPACE}/{USERS}/"
        for info in await self.files.list(top.rstrip("/")):
            user, _, rest = info.path.removeprefix(top).partition("/")
            if rest:
                await self._whole(info.path, self.place(user), f"{WORKSPACE}/{rest}")

    async def notes(self, report: BroughtOver) -> None:
        """Give every user what is kept beside memories, without their words; one user alone has all of it."""
        for user in sorted(report.users):
            for path in (TOMBSTONES, CURSOR):
                with suppress(FileMissing, AlreadyExists):
                    await self.place(user).create(path, (await self.files.read(path)).data)
        # a proposal has the words of all, and is made anew
        await self._aside(PROPOSAL)
        if len(report.users) == 1:
            only = self.place(next(iter(report.users)))
            await self._whole(USAGE, only)
            for folder in ("memories", "plans"):
                for info in await self.files.list(f"{WORKSPACE}/{folder}"):
                    await self._whole(info.path, only)

    async def history(self, report: BroughtOver) -> None:
        """Let the record of changes go to the one user whose it is, or else be kept where no command reads it."""
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
        """Write a file into a place; False where another one stands there."""
        with suppress(FileMissing):
            data = (await self.files.read(path)).data
            try:
                await place.create(target or path, data)
            except AlreadyExists:
                return (await place.read(target or path)).data == data
        return True

    async def _whole(self, path: str, place: FileStore | None, target: str = "") -> None:
        """Move a file to a place; it is kept aside where there is none, or another file stands there."""
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
        """Keep a file as it is now; one that was kept before stays."""
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


@dataclass(frozen=True, kw_only=True)
class _Sessions:
    """Whose the sessions are: `owners` by agent and id, and by file the user's folder, empty where nobody can tell."""

    owners: Mapping[tuple[str, str], str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def users(self) -> frozenset[str]:
        return frozenset(self.owners.values()) - {""}

    @property
    def unknown(self) -> tuple[str, ...]:
        """The files of which nobody can tell whose they are."""
        return tuple(path for path, user in self.files.items() if not user)

    def user_of(self, session: str) -> str:
        """Return the one user with a session of this id; empty for none, or several."""
        users = {user for (_, name), user in self.owners.items() if name == session}
        return next(iter(users)) if len(users) == 1 else ""


async def _sessions(files: FileStore, stamps: Stamps) -> _Sessions:
    """Return whose the sessions are: as their states say, else as all says that was learned from them."""
    listed = {info.path: info for info in await files.list(_AGENTS)}
    names = {named for path in listed if (named := _named(path))}
    owners: dict[tuple[str, str], str] = {}
    unknown: set[tuple[str, str]] = set()
    for agent, session in sorted(names):
        state = listed.get(f"{_AGENTS}/{agent}/state/{session}.json")
        state = state or listed.get(f"{_AGENTS}/{agent}/state/{session}.json.broken-1")
        user = await owner_of(files, state) if state else ""
        folder = path_part(user) if user else stamps.user_of_session(session)
        if folder:
            owners[agent, session] = folder
        elif user is None:
            unknown.add((agent, session))
    found: dict[str, str] = {}
    for path in listed:
        named = _whose(path, names)
        if named in owners or named in unknown:
            found[path] = owners.get(named, "")
    known = _Sessions(owners=owners)
    for session in {session for _, session in owners}:
        for info in await files.list(f"{LARGE_RESULTS}/{path_part(session)}"):
            found[info.path] = known.user_of(session)
    return _Sessions(owners=owners, files=found)


def _named(path: str) -> tuple[str, str] | None:
    """Return the agent's folder and the session of a transcript or a state; None for another file."""
    parts = path.removeprefix(f"{_AGENTS}/").split("/")
    if len(parts) != 3 or parts[1] not in {"sessions", "state"}:
        return None
    ending = ".log.jsonl" if parts[1] == "sessions" else ".json"
    name = parts[2].removesuffix(ending)
    return (parts[0], name) if name != parts[2] and not name.endswith(".cursor") else None


def _tells_owner(path: str) -> bool:
    return path.startswith(f"{_AGENTS}/") and "/state/" in path and ".cursor." not in path


def _whose(path: str, names: set[tuple[str, str]]) -> tuple[str, str]:
    """Return the agent and the session that a file belongs to: the longest id that its name begins with."""
    parts = path.removeprefix(f"{_AGENTS}/").split("/")
    if len(parts) != 3 or parts[1] not in _KINDS:
        return "", ""
    own = [name for agent, name in names if agent == parts[0] and parts[2].startswith(f"{name}.")]
    return (parts[0], max(own, key=len)) if own else ("", "")


def _without(path: str, data: bytes, moves: UserMoves) -> bytes:
    """Return what stays of a document."""
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
    """Tell whether nothing is left of a ledger but its heading."""
    left = document.strip()
    return left.startswith(b"# ") and b"\n" not in left
