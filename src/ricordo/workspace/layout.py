"""The layout of a root: the paths of all documents below the root.

File names of sessions differ even if case is ignored. `rename_records` gives records with former names their current
ones; a file is written under its new name before the old one is removed, so an interruption loses nothing. All else is
pure.
"""

import re
from collections.abc import Iterable
from contextlib import suppress
from datetime import date
from urllib.parse import unquote

from ricordo.errors import AlreadyExists, FileMissing, InvalidMessage
from ricordo.guard.redact import has_secret
from ricordo.lazy import dataclass, lazy_compile
from ricordo.scope import Scope, encode_folder_name, name_digest
from ricordo.storage import FileStore

__all__ = [
    "AGENTS_FOLDER",
    "AGENT_NOTES",
    "CORRECTION",
    "DEFAULT_AGENT",
    "FACT_ID_PREFIX",
    "GUARD_KEY",
    "HISTORY_SUMMARIES",
    "IGNORE_FILE",
    "INDEX_FILE",
    "LARGE_RESULTS",
    "LEDGERS",
    "LOCAL",
    "MEMORY_PATH",
    "PROJECT_FILE",
    "PROJECT_PREFIX",
    "QUEUE_FILE",
    "ROOT_TASKS",
    "SESSIONS",
    "TOMBSTONES",
    "TOPICS",
    "TRASH",
    "USAGE",
    "USERS",
    "USER_SUMMARIES",
    "WORKSPACE",
    "SessionRecordPath",
    "agent_from_folder",
    "archive_path",
    "compactions_path",
    "current_record_path",
    "cursor_path",
    "cursor_path_for",
    "is_ledger",
    "is_memory",
    "is_profile",
    "ledger_date",
    "ledger_path",
    "long_entry_path",
    "parse_record_path",
    "parse_transcript_path",
    "plan_path",
    "profile_path",
    "profile_path_for",
    "rename_records",
    "session_from_stem",
    "state_path",
    "tasks_path",
    "transcript_path",
]


WORKSPACE = "workspace"
MEMORY_PATH = f"{WORKSPACE}/MEMORY.md"
LEDGERS = f"{WORKSPACE}/memory"
TOPICS = f"{LEDGERS}/topics"
SESSIONS = f"{WORKSPACE}/sessions"
TRASH = "trash"
USERS = "users"
"""The folder with the place of each user in a shared root; each place has the layout of a root."""
LOCAL = "local"
"""The folder with the place of each session that remembers something for itself alone, beside the workspace."""
PROJECT_PREFIX = "project"
"""The label of shared memory when a user's own place comes first."""
TOMBSTONES = f"{LEDGERS}/.tombstones.jsonl"
USAGE = f"{WORKSPACE}/usage.jsonl"
LARGE_RESULTS = f"{WORKSPACE}/large_tool_results"
AGENT_NOTES = "memories"
"""The folder of the notes that an agent writes, below the workspace."""
ROOT_TASKS = f"{WORKSPACE}/tasks.json"
PROJECT_FILE = "project.json"
GUARD_KEY = "guard.key"
IGNORE_FILE = ".gitignore"
INDEX_FILE = "memory_index.db"
QUEUE_FILE = "queue.db"
DEFAULT_AGENT = "main"
_LEDGER_PATTERN = lazy_compile(rf"{LEDGERS}/(?:archive/)?(\d{{4}})-(\d\d)-(\d\d)\.md")
_RECORD_PATTERN = lazy_compile(
    rf"{WORKSPACE}/agents/(?P<folder>[^/]+)/"
    r"(?:sessions/(?P<transcript>[^/]+)\.log\.jsonl|state/(?P<cursor>[^/]+)\.cursor\.json|state/(?P<state>[^/]+?)\.json"
    r"|compactions/(?P<compactions>[^/]+?)\.jsonl|tasks/(?P<tasks>[^/]+?)\.json)(?P<aside>\.broken-\d+)?"
)
_PROFILE_PATTERN = lazy_compile(rf"{WORKSPACE}/(?:users/[^/]+/)?(?:agents/[^/]+/)?profile\.json")
_SESSION_ID_PATTERN = lazy_compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}")


@dataclass(frozen=True, kw_only=True)
class SessionRecordPath:
    """The parts of a session record's path: the agent's folder, the kind of record and the session's id.

    `kind` is transcript, cursor, state, compactions or tasks. `is_set_aside` means that it was set aside as unreadable.
    """

    folder: str
    kind: str
    session: str
    is_set_aside: bool = False


def ledger_path(day: date) -> str:
    """Return the path of the ledger of `day`."""
    return f"{LEDGERS}/{day.isoformat()}.md"


def ledger_date(path: str) -> date | None:
    """Return the day of the ledger at `path`, including archived ones; None if it is not a ledger."""
    match = _LEDGER_PATTERN.fullmatch(path)
    if match is None:
        return None
    try:
        return date(*(int(part) for part in match.groups()))
    except ValueError:
        return None


def archive_path(ledger: str) -> str:
    """Return the archive path of an expired ledger."""
    return f"{LEDGERS}/archive/{ledger.rpartition('/')[2]}"


def is_ledger(path: str) -> bool:
    """Return whether `path` is a ledger that is not archived."""
    return ledger_date(path) is not None and "/archive/" not in path


def is_memory(path: str) -> bool:
    """Return whether `path` is a memory document: curated memory, a ledger, a topic, an archive or a long entry."""
    return path == MEMORY_PATH or (path.startswith(f"{LEDGERS}/") and path.endswith(".md"))


def profile_path(agent: str = DEFAULT_AGENT) -> str:
    """Return the path of the profile that this agent has of the place's owner."""
    agents = "" if agent in {"", DEFAULT_AGENT} else f"agents/{encode_folder_name(agent)}/"
    return f"{WORKSPACE}/{agents}profile.json"


def profile_path_for(owner: Scope, scope: Scope) -> str:
    """Return the path of the profile for the user and agent of `scope` in the place of `owner`.

    Empty if that place has no profile for `scope`, because it belongs to another owner or is shared by several users.
    """
    if not owner.parts().items() <= scope.parts().items() or scope.user != owner.user:
        return ""
    agent = scope.agent if scope.agent != owner.agent else None
    return profile_path(agent or DEFAULT_AGENT)


def is_profile(path: str) -> bool:
    """Return whether `path` is a profile."""
    return _PROFILE_PATTERN.fullmatch(path) is not None


def long_entry_path(entry_id: str) -> str:
    """Return the path of a long entry's content."""
    return f"{LEDGERS}/long/{encode_folder_name(entry_id)}.md"


def transcript_path(agent: str, session: str) -> str:
    """Return the path of a session's transcript. Raises `InvalidMessage` for an invalid id."""
    return f"{WORKSPACE}/agents/{encode_folder_name(agent)}/sessions/{_session_stem(session)}.log.jsonl"


def cursor_path(agent: str, session: str) -> str:
    """Return the path of a session's extraction cursor. Raises as `transcript_path`."""
    return f"{WORKSPACE}/agents/{encode_folder_name(agent)}/state/{_session_stem(session)}.cursor.json"


def cursor_path_for(transcript: str) -> str:
    """Return the path of the cursor for a transcript path, which must be valid for `parse_transcript_path`."""
    folder, _, name = transcript.rpartition("/")
    return f"{folder.removesuffix('/sessions')}/state/{name.removesuffix('.log.jsonl')}.cursor.json"


def agent_from_folder(folder: str) -> str | None:
    """Return the agent of this folder; None if the folder does not encode the whole name."""
    name = unquote(folder)
    return name if encode_folder_name(name) == folder else None


def state_path(agent: str, session: str) -> str:
    """Return the path of a session's state, which is never that of a cursor. Raises as `transcript_path`."""
    return f"{WORKSPACE}/agents/{encode_folder_name(agent)}/state/{_state_stem(_session_stem(session))}.json"


def compactions_path(agent: str, session: str) -> str:
    """Return the path of a session's journal of compactions. Raises as `transcript_path`."""
    return f"{WORKSPACE}/agents/{encode_folder_name(agent)}/compactions/{_session_stem(session)}.jsonl"


def tasks_path(agent: str, session: str) -> str:
    """Return the path of a session's background tasks. Raises as `transcript_path`."""
    return f"{WORKSPACE}/agents/{encode_folder_name(agent)}/tasks/{_session_stem(session)}.json"


def plan_path(name: str) -> str:
    """Return the path of the plan with this name in the workspace, such as `plans/release.md`."""
    return f"plans/{encode_folder_name(name)}.md"


def parse_transcript_path(path: str) -> tuple[str, str] | None:
    """Return the agent's folder and the session of a transcript path; None if it is not a transcript."""
    record = parse_record_path(path)
    return (
        (record.folder, record.session) if record and record.kind == "transcript" and not record.is_set_aside else None
    )


def session_from_stem(stem: str) -> str:
    """Return the session whose records and evicted results have this file stem."""
    session, _, digest = stem.rpartition("-")
    return session if session != session.lower() and digest == name_digest(session) else stem


def parse_record_path(path: str) -> SessionRecordPath | None:
    """Parse the path of a session's record, including former names; None for any other path."""
    match = _RECORD_PATTERN.fullmatch(path)
    if match is None:
        return None
    kind, stem = _split_record_match(match)
    return SessionRecordPath(
        folder=match["folder"], kind=kind, session=session_from_stem(stem), is_set_aside=match["aside"] is not None
    )


def current_record_path(path: str) -> str | None:
    """Return the current path of a session's record with a former name; None for any other file.

    Formerly, sessions whose ids differ only by case had names that were the same if case is ignored.
    """
    match = None if path == path.lower() else _RECORD_PATTERN.fullmatch(path)
    if match is None:
        return None
    kind, stem = _split_record_match(match)
    session = session_from_stem(stem)
    if session != stem or session == session.lower():
        return None
    name = _state_stem(_add_case_digest(session)) if kind == "state" else _add_case_digest(session)
    return f"{path[: match.start(kind)]}{name}{path[match.end(kind) :]}"


def _split_record_match(match: re.Match[str]) -> tuple[str, str]:
    kind = next(each for each in ("transcript", "cursor", "state", "compactions", "tasks") if match[each] is not None)
    return kind, unquote(match[kind]) if kind == "state" else match[kind]


def _session_stem(session: str) -> str:
    """Return the file name of a session, without extension. Raises `InvalidMessage`."""
    if not _SESSION_ID_PATTERN.fullmatch(session):
        raise InvalidMessage("The id of a session has 1 to 120 letters, digits, dots, dashes, underscores.")
    if has_secret(session):
        raise InvalidMessage("The id of a session holds a secret: it would be written as the name of a file.")
    return _add_case_digest(session)


def _add_case_digest(session: str) -> str:
    """Return the id, with a digest if another id could differ only by case, as `encode_folder_name` does."""
    return session if session == session.lower() else f"{session}-{name_digest(session)}"


def _state_stem(stem: str) -> str:
    name, dot, end = stem.rpartition(".")
    return f"{name}%2E{end}" if dot and end == "cursor" else stem


AGENTS_FOLDER = f"{WORKSPACE}/agents"
"""The folder with the records of sessions."""
_RENAME_LOCK = "renaming"


async def rename_records(files: FileStore, paths: Iterable[str]) -> None:
    """Rename the records below `AGENTS_FOLDER` that have a former name; `paths` are those of the files there.

    Raises: StorageError.
    """
    if not any(map(current_record_path, paths)):
        return
    async with files.lock(_RENAME_LOCK):
        for info in await files.list(AGENTS_FOLDER):
            if name := current_record_path(info.path):
                await _rename_record(files, info.path, name)


async def _rename_record(files: FileStore, path: str, name: str) -> None:
    with suppress(FileMissing):
        stored = await files.read(path)
        try:
            await files.create(name, stored.data)
        except AlreadyExists:
            if not (await files.read(name)).data.startswith(stored.data):
                return
        await files.delete(path, expected=stored.version)


FACT_ID_PREFIX = "fact_"
"""The prefix of fact ids."""
USER_SUMMARIES = ("workContext", "personalContext", "topOfMind")
"""The user-level summaries, by their names in the document."""
HISTORY_SUMMARIES = ("recentMonths", "earlierContext", "longTermBackground")
"""The history-level summaries, by their names in the document."""
CORRECTION = "correction"
"""The category of a user's correction."""
