"""Session owners: which user each session of a shared workspace belongs to, with its files, results and plan."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from anyio.to_thread import run_sync

from ricordo.files import FileStore
from ricordo.maintenance.user_moves import UserStamps, read_plan_path
from ricordo.scopes import owner_part, encode_folder_name
from ricordo.sessions.owners import read_owner
from ricordo.workspace.layout import LARGE_RESULTS, WORKSPACE

__all__ = ["SessionOwners", "find_session_owners"]

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
        """Return the one user whose sessions name a plan; empty for none, or several."""
        users = self.plans.get(path, frozenset())
        return next(iter(users)) if len(users) == 1 else ""

    @property
    def unknown(self) -> tuple[str, ...]:
        """The files whose user is not known."""
        return tuple(path for path, user in self.files.items() if not user)

    def user_of(self, session: str) -> str:
        """Return the one user with a session of this id; empty for none, or several."""
        users = {user for (_, name), user in self.owners.items() if name == session}
        return next(iter(users)) if len(users) == 1 else ""


async def find_session_owners(files: FileStore, stamps: UserStamps) -> SessionOwners:
    """Return the owners of sessions: as their states say, or else as all entries say that were learned from them."""
    listed = {info.path: info for info in await files.list(_AGENTS)}
    names = {named for path in listed if (named := _parse_session_path(path))}
    owners: dict[tuple[str, str], str] = {}
    plans: dict[str, set[str]] = {}
    unknown: set[tuple[str, str]] = set()
    for agent, session in sorted(names):
        state = listed.get(f"{_AGENTS}/{agent}/state/{session}.json")
        state = state or listed.get(f"{_AGENTS}/{agent}/state/{session}.json.broken-1")
        user = await read_owner(files, state) if state else ""
        folder = owner_part(user) if user else stamps.user_of_session(session)
        if folder:
            owners[agent, session] = folder
        elif user is None:
            unknown.add((agent, session))
        if state and (plan := await run_sync(read_plan_path, await files.read_from(state.path, 0))):
            plans.setdefault(f"{WORKSPACE}/{plan}", set()).add(folder)
    found: dict[str, str] = {}
    for path in listed:
        named = _match_session(path, names)
        if named in owners or named in unknown:
            found[path] = owners.get(named, "")
    known = SessionOwners(owners=owners)
    for session in {session for _, session in owners}:
        for info in await files.list(f"{LARGE_RESULTS}/{encode_folder_name(session)}"):
            found[info.path] = known.user_of(session)
    users_of_plans = {path: frozenset(users) for path, users in plans.items()}
    return SessionOwners(owners=owners, files=found, plans=users_of_plans)


def _parse_session_path(path: str) -> tuple[str, str] | None:
    """Return the agent's folder and the session of a transcript or a state; None for another file."""
    parts = path.removeprefix(f"{_AGENTS}/").split("/")
    if len(parts) != 3 or parts[1] not in {"sessions", "state"}:
        return None
    ending = ".log.jsonl" if parts[1] == "sessions" else ".json"
    name = parts[2].removesuffix(ending)
    return (parts[0], name) if name != parts[2] and not name.endswith(".cursor") else None


def _match_session(path: str, names: set[tuple[str, str]]) -> tuple[str, str]:
    """Return the agent and the session of a file: of all session ids that its name begins with, the longest."""
    parts = path.removeprefix(f"{_AGENTS}/").split("/")
    if len(parts) != 3 or parts[1] not in _SESSION_KINDS:
        return "", ""
    own = [name for agent, name in names if agent == parts[0] and parts[2].startswith(f"{name}.")]
    return (parts[0], max(own, key=len)) if own else ("", "")
