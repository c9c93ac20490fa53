"""The report of bringing a root of an older layout over, and the check of `doctor` that shows it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from ricordo.audit.check import Check
from ricordo.errors import DocumentInvalid, FileMissing
from ricordo.files import FileStore
from ricordo.messages.jsontext import decode_json
from ricordo.workspace.layout import WORKSPACE
from ricordo.workspace.ledger import read_curated_entries

__all__ = [
    "BACKUP_FOLDER",
    "REPORT_PATH",
    "UserMigrationReport",
    "check_user_migration",
    "encode_report",
    "read_report",
]

BACKUP_FOLDER = "before-users"
"""The folder of a root that keeps what a root of an older layout held before it was brought over."""

REPORT_PATH = f"{BACKUP_FOLDER}/report.json"

_MAX_SHOWN = 10


@dataclass(frozen=True, kw_only=True)
class UserMigrationReport:
    """What was brought over: how many memories and sessions, by the folder of their user.

    `mixed` are the ids of curated memories that mix users and stayed shared. `shared` are the plans that stayed shared
    because no user, or several, are named on them. `aside` are the files in `before-users/` whose user is not known:
    files of sessions, and notes.
    """

    memories: Mapping[str, int] = field(default_factory=dict)
    sessions: Mapping[str, int] = field(default_factory=dict)
    mixed: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    aside: tuple[str, ...] = ()

    @property
    def users(self) -> frozenset[str]:
        """The folders of all users to whom something was moved."""
        return frozenset({*self.memories, *self.sessions})


async def read_report(files: FileStore) -> UserMigrationReport | None:
    """Return the report of this root; None if nothing was brought over. Raises: DocumentInvalid."""
    try:
        value = decode_json((await files.read(REPORT_PATH)).data)
        return UserMigrationReport(
            memories={str(user): int(count) for user, count in value["memories"].items()},
            sessions={str(user): int(count) for user, count in value["sessions"].items()},
            mixed=tuple(map(str, value["mixed"])),
            shared=tuple(map(str, value.get("shared", ()))),
            aside=tuple(map(str, value["aside"])),
        )
    except FileMissing:
        return None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise DocumentInvalid(f"{REPORT_PATH} can't be read: delete it, it only says what was brought over.") from error


def encode_report(report: UserMigrationReport) -> bytes:
    """Return the report as JSON."""
    value = {
        "memories": dict(report.memories), "sessions": dict(report.sessions), "mixed": list(report.mixed),
        "shared": list(report.shared), "aside": list(report.aside),
    }  # fmt: skip
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()


async def check_user_migration(files: FileStore, folder: str) -> Check | None:
    """Return the check of what became private to the user of this folder; None if nothing was brought over.

    It does not tell what other users have. It says if the report can't be read.
    """
    try:
        report = await read_report(files)
    except DocumentInvalid as error:
        return Check(name="users", ok=True, count=1, detail=str(error))
    if report is None:
        return None
    told = []
    memories, sessions = report.memories.get(folder, 0), report.sessions.get(folder, 0)
    if memories or sessions:
        own = f"{_format_count(memories, 'memory', 'memories')} and {_format_count(sessions, 'session', 'sessions')} of yours"
        told.append(f"{own} became private: no other user of this root finds them")
    curated = {found.entry.id for found in await read_curated_entries(files)}
    mixed = [name for name in report.mixed if name in curated]
    if mixed:
        told.append(f"what mixes several users stayed shared, and `ricordo forget` takes it out: {', '.join(mixed)}")
    shared = [path for path in report.shared if await files.info(path)]
    if shared:
        told.append(f"these name no user, or several, and stayed shared: {_join_some(shared)}")
    aside = [path for path in report.aside if await files.info(f"{BACKUP_FOLDER}/{path}")]
    if aside:
        told.append(
            f"these name no user, and were moved to {BACKUP_FOLDER}, where no user and no agent finds them: {_join_some(aside)}; "
            f"copy what is needed from there to users/<user>/{WORKSPACE} of its user, or to {WORKSPACE} to share it"
        )
    told.append(f"what the root held before is in {BACKUP_FOLDER}, which may go")
    return Check(name="users", ok=True, count=memories + sessions + len(mixed), detail="; ".join(told))


def _join_some(paths: list[str]) -> str:
    shown = [path.removeprefix(f"{WORKSPACE}/") for path in paths[:_MAX_SHOWN]]
    return ", ".join([*shown, *([f"and {len(paths) - _MAX_SHOWN:,} more"] if len(paths) > _MAX_SHOWN else [])])


def _format_count(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"
