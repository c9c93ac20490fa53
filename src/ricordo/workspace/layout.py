"""Names: where every document of a root lies, as paths below the root. Pure; nothing here touches a disk."""

import re
from dataclasses import dataclass
from datetime import date
from urllib.parse import unquote

from ricordo.errors import InvalidMessage
from ricordo.guard.redact import has_secret
from ricordo.scopes import Scope, name_digest, path_part

__all__ = [
    "AGENT_NOTES",
    "DEFAULT_AGENT",
    "GUARD_KEY",
    "IGNORE_FILE",
    "INDEX",
    "LARGE_RESULTS",
    "LEDGERS",
    "MEMORY",
    "PROJECT",
    "QUEUE",
    "ROOT_TASKS",
    "SESSIONS",
    "SHARED",
    "TOMBSTONES",
    "TOPICS",
    "TRASH",
    "USAGE",
    "USERS",
    "WORKSPACE",
    "SessionRecord",
    "agent_of",
    "archive_path",
    "compactions_path",
    "cursor_beside",
    "cursor_path",
    "is_ledger",
    "is_memory",
    "is_profile",
    "ledger_date",
    "ledger_path",
    "long_path",
    "plan_path",
    "profile_of",
    "profile_path",
    "record_of",
    "renamed_record",
    "session_named",
    "session_of",
    "state_path",
    "tasks_path",
    "transcript_path",
]

WORKSPACE = "workspace"
MEMORY = f"{WORKSPACE}/MEMORY.md"
LEDGERS = f"{WORKSPACE}/memory"
TOPICS = f"{LEDGERS}/topics"
SESSIONS = f"{WORKSPACE}/sessions"
TRASH = "trash"
USERS = "users"
"""The folder of a root that holds a place for each user of its project or team, with the layout of a root."""

SHARED = "project"
"""How the workspace that a project shares is named where the workspace of one of its users comes first."""

TOMBSTONES = f"{LEDGERS}/.tombstones.jsonl"
USAGE = f"{WORKSPACE}/usage.jsonl"
LARGE_RESULTS = f"{WORKSPACE}/large_tool_results"
AGENT_NOTES = "memories"
"""The folder of the notes that an agent keeps itself, below the workspace."""

ROOT_TASKS = f"{WORKSPACE}/tasks.json"
PROJECT = "project.json"
GUARD_KEY = "guard.key"
IGNORE_FILE = ".gitignore"
INDEX = "memory_index.db"
QUEUE = "queue.db"
DEFAULT_AGENT = "main"

_LEDGER = re.compile(rf"{LEDGERS}/(?:archive/)?(\d{{4}})-(\d\d)-(\d\d)\.md")
_RECORD = re.compile(
    rf"{WORKSPACE}/agents/(?P<folder>[^/]+)/"
    r"(?:sessions/(?P<transcript>[^/]+)\.log\.jsonl|state/(?P<cursor>[^/]+)\.cursor\.json|state/(?P<state>[^/]+?)\.json"
    r"|compactions/(?P<compactions>[^/]+?)\.jsonl|tasks/(?P<tasks>[^/]+?)\.json)(?P<aside>\.broken-\d+)?"
)
_PROFILE = re.compile(rf"{WORKSPACE}/(?:users/[^/]+/)?(?:agents/[^/]+/)?profile\.json")
_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}")


@dataclass(frozen=True, kw_only=True)
class SessionRecord:
    """What the path of a record of a session tells: the agent's folder, the kind of record and the session's id.

    `kind` is transcript, cursor, state, compactions or tasks. `aside` tells that it was set aside as unreadable.
    """

    folder: str
    kind: str
    session: str
    aside: bool = False


def ledger_path(day: date) -> str:
    """Return where the ledger of `day` lies."""
    return f"{LEDGERS}/{day.isoformat()}.md"


def ledger_date(path: str) -> date | None:
    """Return the day of the ledger at `path`, archived ones included; None when it is no ledger."""
    match = _LEDGER.fullmatch(path)
    if match is None:
        return None
    try:
        return date(*(int(part) for part in match.groups()))
    except ValueError:
        return None


def archive_path(ledger: str) -> str:
    """Return where a ledger goes when it is past its time."""
    return f"{LEDGERS}/archive/{ledger.rpartition('/')[2]}"


def is_ledger(path: str) -> bool:
    """Tell whether `path` is a ledger that is still written to or consolidated."""
    return ledger_date(path) is not None and "/archive/" not in path


def is_memory(path: str) -> bool:
    """Tell whether `path` is a memory document: curated memory, a ledger, a topic, an archive or a long entry."""
    return path == MEMORY or (path.startswith(f"{LEDGERS}/") and path.endswith(".md"))


def profile_path(agent: str = DEFAULT_AGENT) -> str:
    """Return where the profile lies that this agent has of whose place it is."""
    agents = "" if agent in {"", DEFAULT_AGENT} else f"agents/{path_part(agent)}/"
    return f"{WORKSPACE}/{agents}profile.json"


def profile_of(owner: Scope, scope: Scope) -> str:
    """Return where the profile of the user and agent of `scope` lies in the place of `owner`, not named there.

    Empty where that place holds no profile for `scope`, as it is one of another, or shared by several users.
    """
    if not owner.parts().items() <= scope.parts().items() or scope.user != owner.user:
        return ""
    agent = scope.agent if scope.agent != owner.agent else None
    return profile_path(agent or DEFAULT_AGENT)


def is_profile(path: str) -> bool:
    """Tell whether `path` is the profile of somebody."""
    return _PROFILE.fullmatch(path) is not None


def long_path(entry_id: str) -> str:
    """Return where the content of a long entry lies."""
    return f"{LEDGERS}/long/{path_part(entry_id)}.md"


def transcript_path(agent: str, session: str) -> str:
    """Return where the transcript of a session lies. Raises `InvalidMessage` for an id that could be none."""
    return f"{WORKSPACE}/agents/{path_part(agent)}/sessions/{_stem(session)}.log.jsonl"


def cursor_path(agent: str, session: str) -> str:
    """Return where it is kept how far a session has been extracted. Raises as `transcript_path`."""
    return f"{WORKSPACE}/agents/{path_part(agent)}/state/{_stem(session)}.cursor.json"


def cursor_beside(transcript: str) -> str:
    """Return where the cursor of the session with this transcript lies. The path is one that `session_of` knows."""
    folder, _, name = transcript.rpartition("/")
    return f"{folder.removesuffix('/sessions')}/state/{name.removesuffix('.log.jsonl')}.cursor.json"


def agent_of(folder: str) -> str | None:
    """Return the agent whose folder this is; None where the folder does not tell the whole name."""
    name = unquote(folder)
    return name if path_part(name) == folder else None


def state_path(agent: str, session: str) -> str:
    """Return where the state of an agent in a session lies, never a cursor's place. Raises as `transcript_path`."""
    return f"{WORKSPACE}/agents/{path_part(agent)}/state/{_state_name(_stem(session))}.json"


def compactions_path(agent: str, session: str) -> str:
    """Return where the journal of a session's compactions lies. Raises as `transcript_path`."""
    return f"{WORKSPACE}/agents/{path_part(agent)}/compactions/{_stem(session)}.jsonl"


def tasks_path(agent: str, session: str) -> str:
    """Return where the background tasks of a session are recorded. Raises as `transcript_path`."""
    return f"{WORKSPACE}/agents/{path_part(agent)}/tasks/{_stem(session)}.json"


def plan_path(name: str) -> str:
    """Return where the plan with this name lies, as a path in the workspace, such as `plans/release.md`."""
    return f"plans/{path_part(name)}.md"


def session_of(path: str) -> tuple[str, str] | None:
    """Return the folder of the agent and the session of a transcript's path; None when it is no transcript."""
    record = record_of(path)
    return (record.folder, record.session) if record and record.kind == "transcript" and not record.aside else None


def session_named(stem: str) -> str:
    """Return the session whose records and evicted results have this name, without its ending."""
    session, _, digest = stem.rpartition("-")
    return session if session != session.lower() and digest == name_digest(session) else stem


def record_of(path: str) -> SessionRecord | None:
    """Return what the path of a session's record tells, also where it has its name from before; None for another."""
    match = _RECORD.fullmatch(path)
    if match is None:
        return None
    kind, stem = _kind_and_stem(match)
    return SessionRecord(
        folder=match["folder"], kind=kind, session=session_named(stem), aside=match["aside"] is not None
    )


def renamed_record(path: str) -> str | None:
    """Return the path that a session's record has today; None where it has it, and for any other file.

    Before, the names of sessions whose ids differ only by case did so too, and were one where case is ignored.
    """
    match = None if path == path.lower() else _RECORD.fullmatch(path)
    if match is None:
        return None
    kind, stem = _kind_and_stem(match)
    session = session_named(stem)
    if session != stem or session == session.lower():
        return None
    name = _state_name(_stem_of(session)) if kind == "state" else _stem_of(session)
    return f"{path[: match.start(kind)]}{name}{path[match.end(kind) :]}"


def _kind_and_stem(match: re.Match[str]) -> tuple[str, str]:
    kind = next(each for each in ("transcript", "cursor", "state", "compactions", "tasks") if match[each] is not None)
    return kind, unquote(match[kind]) if kind == "state" else match[kind]


def _stem(session: str) -> str:
    """Return the name of the files of a session, without their endings. Raises `InvalidMessage`."""
    if not _SESSION.fullmatch(session):
        raise InvalidMessage("The id of a session has 1 to 120 letters, digits, dots, dashes, underscores.")
    if has_secret(session):
        raise InvalidMessage("The id of a session holds a secret: it would be written as the name of a file.")
    return _stem_of(session)


def _stem_of(session: str) -> str:
    """Return the id, with a digest where another one could differ from it only by case, as `path_part` does."""
    return session if session == session.lower() else f"{session}-{name_digest(session)}"


def _state_name(stem: str) -> str:
    name, dot, end = stem.rpartition(".")
    return f"{name}%2E{end}" if dot and end == "cursor" else stem
