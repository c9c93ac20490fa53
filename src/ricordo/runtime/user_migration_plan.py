"""Which user each part of a shared workspace belongs to, by the user names in an older layout.

Older roots stored the data of all users of a project in one workspace, with the name of the user on each entry. An
entry without a name stays shared. A curated entry moves if all entries that it was made of belong to one user. The
owner of a session is the user in its state, or else the one that all entries learned from it name.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import field

from anyio.to_thread import run_sync

from ricordo.curation.importance import MERGED_FIELD, field_ids
from ricordo.curation.memory_document import DocumentPart, parse_memory_document
from ricordo.curation.topics import update_description
from ricordo.errors import InvalidMessage
from ricordo.lazy import dataclass
from ricordo.messages.json_text import dumps, loads, require_object
from ricordo.scope import encode_folder_name, owner_part
from ricordo.storage import FileStore
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import LocatedEntry, parse_entries
from ricordo.workspace.layout import LARGE_RESULTS, MEMORY_PATH, WORKSPACE
from ricordo.workspace.ledger import is_curated
from ricordo.workspace.sessions import read_owner

__all__ = [
    "SessionOwners",
    "UserEntries",
    "UserStamps",
    "append_missing",
    "extract_user_document",
    "find_session_owners",
    "plan_moves",
    "read_plan_path",
    "split_usage",
]


@dataclass(frozen=True, kw_only=True)
class UserStamps:
    """The users of each entry of the ledgers, and of each session that entries were learned from.

    Users are given by the names of their folders; an entry without a user has the empty name.
    """

    entries: Mapping[str, frozenset[str]] = field(default_factory=dict)
    sessions: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def from_ledgers(cls, ledgers: Mapping[str, bytes]) -> "UserStamps":
        """Return the stamps in these ledgers, which are given by path."""
        entries: dict[str, set[str]] = {}
        sessions: dict[str, set[str]] = {}
        for path, data in ledgers.items():
            for located in parse_entries(data, path):
                entries.setdefault(located.entry.id, set()).add(_user_folder(located.entry))
                if located.entry.source.session:
                    sessions.setdefault(located.entry.source.session, set()).add(_user_folder(located.entry))
        return cls(
            entries={name: frozenset(users) for name, users in entries.items()},
            sessions={name: frozenset(users) for name, users in sessions.items()},
        )

    def user_of_session(self, session: str) -> str:
        """Return the user that all entries of a session name; empty if there is none, or several."""
        users = self.sessions.get(session, frozenset())
        return next(iter(users)) if len(users) == 1 else ""


@dataclass(frozen=True, kw_only=True)
class UserEntries:
    """The entries of one document that move, by the folder of their user, and the files of long ones.

    `mixed` are the ids of curated entries that stay because they were made from entries of several users.
    """

    entries: Mapping[str, frozenset[str]] = field(default_factory=dict)
    longs: Mapping[str, frozenset[str]] = field(default_factory=dict)
    mixed: tuple[str, ...] = ()


def plan_moves(path: str, data: bytes, stamps: UserStamps, kept_ids: Collection[str] = ()) -> UserEntries:
    """Return which entries of the document at `path` move; curated entries with an id in `kept_ids` do not."""
    entries: dict[str, set[str]] = {}
    longs: dict[str, set[str]] = {}
    mixed: list[str] = []
    for located in parse_entries(data, path):
        users = _find_users(located, stamps) if is_curated(path) else {_user_folder(located.entry)}
        if users == {""} or not users or (is_curated(path) and located.entry.id in kept_ids):
            continue
        if len(users) > 1:
            mixed.append(located.entry.id)
            continue
        user = next(iter(users))
        entries.setdefault(user, set()).add(located.entry.id)
        if located.long_path:
            longs.setdefault(user, set()).add(located.long_path)
    return UserEntries(
        entries={user: frozenset(ids) for user, ids in entries.items()},
        longs={user: frozenset(paths) for user, paths in longs.items()},
        mixed=tuple(mixed),
    )


def extract_user_document(path: str, data: bytes, ids: frozenset[str]) -> bytes:
    """Return the part of a document for one user: these entries, under their headings."""
    parts = parse_memory_document(data, path).parts
    sections = {part.section for part in parts if part.entry and part.entry.id in ids}
    kept_parts = [part for number, part in enumerate(parts) if _is_kept_part(part, parts[:number], ids, sections)]
    user_document = b"".join(part.data for part in kept_parts)
    return (
        user_document if path == MEMORY_PATH or not is_curated(path) else update_description(path, data, user_document)
    )


def append_missing(path: str, existing: bytes, added: bytes) -> bytes:
    """Return the document `existing` with the entries of `added` appended that it lacks."""
    known_ids = {located.entry.id for located in parse_entries(existing, path)}
    new = [
        added[located.offset : located.offset + located.length]
        for located in parse_entries(added, path)
        if located.entry.id not in known_ids
    ]
    separator = b"" if not new or not existing or existing.endswith(b"\n") else b"\n"
    return existing + separator + b"".join(new)


def split_usage(data: bytes, stamps: UserStamps) -> dict[str, bytes]:
    """Split a usage file by user: return its lines by the folder of the user whose entries they are about.

    Lines about entries without a user, or with several, and lines that can't be read are under the empty name. A line
    about entries of several users is split.
    """
    lines_by_user: dict[str, list[bytes]] = {}
    for line in filter(bytes.strip, data.split(b"\n")):
        for user, part in _split_usage_line(line, stamps).items():
            lines_by_user.setdefault(user, []).append(part + b"\n")
    return {user: b"".join(lines) for user, lines in lines_by_user.items()}


def read_plan_path(data: bytes) -> str:
    """Return the path of the plan that the state of a session names, such as `plans/x.md`; empty for none."""
    try:
        path = require_object(require_object(loads(data), "state").get("plan", {}), "plan").get("path", "")
    except InvalidMessage:
        return ""
    return path if isinstance(path, str) and path.startswith("plans/") and ".." not in path else ""


def _split_usage_line(line: bytes, stamps: UserStamps) -> dict[str, bytes]:
    try:
        row = require_object(loads(line), "A line of usage")
    except InvalidMessage:
        return {"": line}
    ids = row.get("ids")
    entry_ids = [name for name in (ids if isinstance(ids, list) else [row.get("id")]) if isinstance(name, str)]
    by_user: dict[str, list[str]] = {}
    for name in entry_ids:
        users = stamps.entries.get(name, frozenset())
        by_user.setdefault(next(iter(users)) if len(users) == 1 else "", []).append(name)
    if len(by_user) <= 1:
        return {next(iter(by_user), ""): line}
    return {user: dumps({**row, "ids": [*names]}).encode() for user, names in by_user.items()}


def _is_kept_part(
    part: DocumentPart, preceding: Iterable[DocumentPart], ids: frozenset[str], sections: set[str]
) -> bool:
    if part.entry is not None:
        return part.entry.id in ids
    if part.heading or part.is_blank:
        return part.section in sections
    # the front matter of a topic, and the title
    return not part.section and (
        part.data.startswith(b"# ") or (part.fenced and all(each.fenced for each in preceding))
    )


def _find_users(located: LocatedEntry, stamps: UserStamps) -> set[str]:
    """Return the users of all entries that a curated entry was made of, and the user on the entry itself."""
    entry = located.entry
    users = set[str]().union(*(stamps.entries.get(name, ()) for name in (entry.id, *field_ids(entry, MERGED_FIELD))))
    return users | ({_user_folder(entry)} if _user_folder(entry) else set())


def _user_folder(entry: Entry) -> str:
    return owner_part(entry.scope.user) if entry.scope and entry.scope.user else ""


_AGENTS = f"{WORKSPACE}/agents"
_SESSION_KINDS = ("sessions", "state", "compactions", "tasks")


@dataclass(frozen=True, kw_only=True)
class SessionOwners:
    """The folders of users: `owners` by agent and session, `files` by path, empty where the user is not known.

    `plans` has the folders of all users whose sessions name a plan, by its path; empty for a session without a user.
    """

    owners: Mapping[tuple[str, str], str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    plans: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def users(self) -> frozenset[str]:
        """The folders of all users with a session."""
        return frozenset(self.owners.values()) - {""}

    def user_of_plan(self, path: str) -> str:
        """Return the only user whose sessions name a plan; empty for none, or several."""
        users = self.plans.get(path, frozenset())
        return next(iter(users)) if len(users) == 1 else ""

    @property
    def unknown(self) -> tuple[str, ...]:
        """The files whose user is unknown."""
        return tuple(path for path, user in self.files.items() if not user)

    def user_of(self, session: str) -> str:
        """Return the only user with a session of this id; empty for none, or several."""
        users = {user for (_, name), user in self.owners.items() if name == session}
        return next(iter(users)) if len(users) == 1 else ""


async def find_session_owners(files: FileStore, stamps: UserStamps) -> SessionOwners:
    """Return the owners of sessions: from their states, or else from the entries learned from them."""
    infos = {info.path: info for info in await files.list(_AGENTS)}
    sessions = {session_key for path in infos if (session_key := _parse_session_path(path))}
    owners: dict[tuple[str, str], str] = {}
    plans: dict[str, set[str]] = {}
    unknown: set[tuple[str, str]] = set()
    for agent, session in sorted(sessions):
        state = infos.get(f"{_AGENTS}/{agent}/state/{session}.json")
        state = state or infos.get(f"{_AGENTS}/{agent}/state/{session}.json.broken-1")
        user = await read_owner(files, state) if state else ""
        folder = owner_part(user) if user else stamps.user_of_session(session)
        if folder:
            owners[agent, session] = folder
        elif user is None:
            unknown.add((agent, session))
        if state and (plan := await run_sync(read_plan_path, await files.read_from(state.path, 0))):
            plans.setdefault(f"{WORKSPACE}/{plan}", set()).add(folder)
    file_owners: dict[str, str] = {}
    for path in infos:
        session_key = _match_session(path, sessions)
        if session_key in owners or session_key in unknown:
            file_owners[path] = owners.get(session_key, "")
    session_owners = SessionOwners(owners=owners)
    for session in {session for _, session in owners}:
        for info in await files.list(f"{LARGE_RESULTS}/{encode_folder_name(session)}"):
            file_owners[info.path] = session_owners.user_of(session)
    users_of_plans = {path: frozenset(users) for path, users in plans.items()}
    return SessionOwners(owners=owners, files=file_owners, plans=users_of_plans)


def _parse_session_path(path: str) -> tuple[str, str] | None:
    """Return the agent's folder and the session of a transcript or a state; None for another file."""
    parts = path.removeprefix(f"{_AGENTS}/").split("/")
    if len(parts) != 3 or parts[1] not in {"sessions", "state"}:
        return None
    ending = ".log.jsonl" if parts[1] == "sessions" else ".json"
    name = parts[2].removesuffix(ending)
    return (parts[0], name) if name != parts[2] and not name.endswith(".cursor") else None


def _match_session(path: str, names: set[tuple[str, str]]) -> tuple[str, str]:
    """Return the agent and the session of a file: the longest session id that its name begins with."""
    parts = path.removeprefix(f"{_AGENTS}/").split("/")
    if len(parts) != 3 or parts[1] not in _SESSION_KINDS:
        return "", ""
    matches = [name for agent, name in names if agent == parts[0] and parts[2].startswith(f"{name}.")]
    return (parts[0], max(matches, key=len)) if matches else ("", "")
