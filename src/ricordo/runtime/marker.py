"""The marker of a place: `project.json` says whose it is, once and for all.

A root serves one project, one team, or one project of a team (or one user, where neither is named); the folder of a
user in it serves that user alone. Opening one for another is refused, so nothing of one can ever be read as the
other's.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

from ricordo.clock import Clock, IdSource, format_rfc3339
from ricordo.errors import AlreadyExists, DocumentInvalid, FileMissing, ScopeMismatch
from ricordo.files import FileStore
from ricordo.messages.jsontext import decode_json
from ricordo.scopes import Scope
from ricordo.workspace.layout import IGNORE_FILE, PROJECT_FILE

__all__ = [
    "LAYOUT_VERSION",
    "claim_folder",
    "claim_root",
    "owning_scope",
    "upgrade_version",
    "read_marker",
    "read_version",
    "parse_marker",
]

LAYOUT_VERSION = 2
"""The version of the layout: from 2 on, what belongs to a user of a shared root lies in a folder of that user."""

_UNREADABLE_MARKER = (
    f"{PROJECT_FILE} can't be read: restore it from a backup, or write the scope of this root into it again."
)
_SHARED_PARTS = frozenset({"tenant", "team", "project"})
_PRIVATE_PARTS = ("user", "agent", "session")


def owning_scope(scope: Scope) -> Scope:
    """Return the part of `scope` that owns a root: its tenant, with its team and project if it names any.

    Without those it is the tenant with the first of user, agent and session.
    """
    parts = scope.parts()
    shared = {name: value for name, value in parts.items() if name in _SHARED_PARTS}
    if shared.keys() - {"tenant"}:
        return Scope(**shared)
    alone = next((name for name in _PRIVATE_PARTS if name in parts), None)
    return Scope(**shared | ({alone: parts[alone]} if alone else {}))


async def read_marker(files: FileStore) -> Scope | None:
    """Return whose root this is; None for a folder that is none yet. Raises `DocumentInvalid`."""
    try:
        stored = await files.read(PROJECT_FILE)
    except FileMissing:
        return None
    return parse_marker(stored.data)


def parse_marker(marker: bytes) -> Scope:
    """Return whose root it is by its marker. Raises `DocumentInvalid`."""
    try:
        return Scope(**decode_json(marker)["scope"])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise DocumentInvalid(_UNREADABLE_MARKER) from error


async def read_version(files: FileStore) -> int:
    """Return the version of the layout that a marker names; the newest for a folder without one."""
    try:
        version = decode_json((await files.read(PROJECT_FILE)).data).get("version", 1)
    except FileMissing:
        return LAYOUT_VERSION
    except (ValueError, AttributeError, RecursionError) as error:
        raise DocumentInvalid(_UNREADABLE_MARKER) from error
    return version if isinstance(version, int) else 1


async def upgrade_version(files: FileStore) -> None:
    """Let the marker name the newest version of the layout. Raises: FileMissing, StorageReadOnly."""
    stored = await files.read(PROJECT_FILE)
    marker = decode_json(stored.data) | {"version": LAYOUT_VERSION}
    await files.replace(PROJECT_FILE, _encode_marker(marker), expected=stored.version)


async def claim_root(
    files: FileStore,
    scope: Scope,
    *,
    clock: Clock,
    ids: IdSource,
    begin: Callable[[], Awaitable[object]] | None = None,
) -> Scope:
    """Return whose root this is, and make it that of `scope` if it is nobody's yet, after `begin`.

    Raises: ScopeMismatch if it belongs to another tenant, team, project or user.
    """
    return await claim_folder(files, owning_scope(scope), clock=clock, ids=ids, begin=begin)


async def claim_folder(
    files: FileStore,
    wanted: Scope,
    *,
    clock: Clock,
    ids: IdSource,
    begin: Callable[[], Awaitable[object]] | None = None,
) -> Scope:
    """Return whose place this is, and give it to `wanted` if it is nobody's yet. As `claim_root` else."""
    owner = await read_marker(files)
    if owner is None:
        kind = "user" if wanted.user else next(reversed(wanted.parts()))
        marker = {
            "version": LAYOUT_VERSION, "id": ids.new(), "kind": kind, "scope": wanted.parts(), "created": format_rfc3339(clock.now())
        }  # fmt: skip
        if begin:
            await begin()
        with suppress(AlreadyExists):
            await files.create(IGNORE_FILE, b"*\n")
        with suppress(AlreadyExists):
            await files.create(PROJECT_FILE, _encode_marker(marker))
        owner = await read_marker(files)
    if owner != wanted:
        raise ScopeMismatch(f"This root belongs to {owner}; it can't be opened for {wanted}.")
    return wanted


def _encode_marker(marker: Mapping[str, object]) -> bytes:
    return (json.dumps(marker, indent=1, ensure_ascii=False) + "\n").encode()
