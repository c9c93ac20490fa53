"""Roots: which folder holds the memory of where one stands."""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from ricordo.errors import DocumentInvalid, StorageFailed
from ricordo.runtime.marker import parse_marker
from ricordo.scopes import Scope, owner_part, encode_folder_name
from ricordo.workspace.layout import PROJECT_FILE, USERS, WORKSPACE

__all__ = [
    "ROOT_FOLDER",
    "cache_folder",
    "find_root",
    "default_root",
    "new_root_path",
    "scope_folder",
    "user_root_path",
    "find_workspace",
]

ROOT_FOLDER = ".ricordo"
"""The name of a project's root, at the top of its git work tree."""


def find_root(start: Path) -> Path | None:
    """Return the nearest root at or above `start`, recognised by its marker; None when there is none.

    Raises `StorageFailed` for a folder of that name that can't be read.
    """
    for folder in [start.absolute(), *start.absolute().parents]:
        try:
            if (folder / ROOT_FOLDER / PROJECT_FILE).is_file():
                return folder / ROOT_FOLDER
        except PermissionError as error:
            raise StorageFailed(f"{folder / ROOT_FOLDER} can't be read: {error.strerror}.") from error
    return None


def new_root_path(start: Path) -> Path:
    """Return where a root for `start` is created: at the top of its git work tree, else in `start` itself."""
    for folder in [start.absolute(), *start.absolute().parents]:
        if (folder / ".git").exists():
            return folder / ROOT_FOLDER
    return start.absolute() / ROOT_FOLDER


def default_root() -> Path:
    """Return the root of the working directory: the nearest one at or above it, else where a new one is created."""
    here = Path.cwd()
    return find_root(here) or new_root_path(here)


def scope_folder(root: Path, scope: Scope) -> Path:
    """Return where in `root` lies what `scope` saves: with a user and a project or a team, the folder of that user."""
    is_shared = scope.project is not None or scope.team is not None
    return _existing([root / USERS], scope.user) if is_shared and scope.user is not None else root


def find_workspace(folder: Path, scope: Scope) -> Path | None:
    """Return the workspace of what `scope` saves where a folder is a Ricordo root; None where it is none."""
    is_root = (folder / WORKSPACE).is_dir() or (folder / USERS).is_dir()
    return scope_folder(folder, scope) / WORKSPACE if is_root else None


def user_root_path(data: Path, user: str, tenant: str | None = None) -> Path:
    """Return the root of what a user, of this tenant, wants remembered in every project."""
    tenants = [data / "tenants" / name(tenant) for name in (owner_part, encode_folder_name)] if tenant else [data]
    return _existing([above / "users" for above in tenants], user, tenant)


def _existing(folders: Sequence[Path], user: str, tenant: str | None = None) -> Path:
    """Return where a user's place lies below one of `folders`, which is made in the first one.

    Before, some names of users were folders as they were. A place of such a name stays where it is: its marker tells it
    from that of another user, whose folder has the same name where case is ignored.
    """
    chosen = folders[0] / owner_part(user)
    named = {folder / name: None for folder in folders for name in (owner_part(user), encode_folder_name(user))}
    if len(named) == 1 or os.path.lexists(chosen / PROJECT_FILE):
        return chosen
    return next((folder for folder in named if _is_of(folder, user, tenant)), chosen)


def _is_of(folder: Path, user: str, tenant: str | None) -> bool:
    """Tell whether the marker of a folder names this user, and this tenant where one is given."""
    try:
        scope = parse_marker((folder / PROJECT_FILE).read_bytes())
    except (OSError, DocumentInvalid):
        return False
    return scope.user == user and tenant in {None, scope.tenant}


def cache_folder(cache: Path, root: Path) -> Path:
    """Return the folder below `cache` for the index of a root that does not hold it itself."""
    digest = hashlib.sha256(str(root.resolve()).encode("utf-8", "surrogateescape")).hexdigest()
    return cache / "roots" / digest[:24]
