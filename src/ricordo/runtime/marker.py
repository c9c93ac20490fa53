"""The marker of a root: `project.json` says whose it is, once and for all.

A root serves one project (or one user, where no project is named). Opening it for another is refused, so nothing of
one can ever be read as the other's.
"""

import json
from collections.abc import Awaitable, Callable
from contextlib import suppress

from ricordo.clock import Clock, Ids, rfc3339
from ricordo.errors import AlreadyExists, DocumentInvalid, FileMissing, ScopeMismatch
from ricordo.files import FileStore
from ricordo.messages.jsontext import decoded
from ricordo.scopes import Scope
from ricordo.workspace.layout import IGNORE_FILE, PROJECT

__all__ = ["claim_root", "owner_of", "read_marker", "scope_in"]

_OWNING = ("project", "team", "user", "agent", "session")


def owner_of(scope: Scope) -> Scope:
    """Return the part of `scope` that owns a root: its tenant, and the first of project, team, user and so on."""
    parts = scope.parts()
    name = next((name for name in _OWNING if name in parts), None)
    owning = {key: value for key, value in parts.items() if key in {"tenant", name}}
    return Scope(**owning)


async def read_marker(files: FileStore) -> Scope | None:
    """Return whose root this is; None for a folder that is none yet. Raises `DocumentInvalid`."""
    try:
        stored = await files.read(PROJECT)
    except FileMissing:
        return None
    return scope_in(stored.data)


def scope_in(marker: bytes) -> Scope:
    """Return whose root it is by its marker. Raises `DocumentInvalid`."""
    try:
        return Scope(**decoded(marker)["scope"])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        message = f"{PROJECT} can't be read: restore it from a backup, or write the scope of this root into it again."
        raise DocumentInvalid(message) from error


async def claim_root(
    files: FileStore,
    scope: Scope,
    *,
    clock: Clock,
    ids: Ids,
    begin: Callable[[], Awaitable[object]] | None = None,
) -> Scope:
    """Return whose root this is, and make it that of `scope` if it is nobody's yet, after `begin`.

    Raises: ScopeMismatch if it belongs to another tenant, project or user.
    """
    wanted = owner_of(scope)
    owner = await read_marker(files)
    if owner is None:
        kind = next(reversed(wanted.parts()))
        marker = {"version": 1, "id": ids.new(), "kind": kind, "scope": wanted.parts(), "created": rfc3339(clock.now())}
        if begin:
            await begin()
        with suppress(AlreadyExists):
            await files.create(IGNORE_FILE, b"*\n")
        with suppress(AlreadyExists):
            await files.create(PROJECT, (json.dumps(marker, indent=1, ensure_ascii=False) + "\n").encode())
        owner = await read_marker(files)
    if owner != wanted:
        raise ScopeMismatch(f"This root belongs to {owner}; it can't be opened for {wanted}.")
    return wanted
