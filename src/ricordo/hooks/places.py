"""The folders that hooks use, and the place whose memory a session belongs to.

What hooks keep lies in the user's data folder and not in a root: a root may not be there yet, may be read-only, and may
not be trusted. Nothing here reads a file of a root.
"""

import os
import sys
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["HOOKS_FOLDER", "Place", "find_data_folder", "find_place", "make_place", "make_private_folder"]


HOOKS_FOLDER = "hooks"
"""The folder of what hooks keep, below the user's data folder."""
_ROOT_FOLDER = ".ricordo"
_MARKER = "project.json"
_LOGIN_VARIABLES = ("LOGNAME", "USER", "LNAME", "USERNAME")
_DIGEST_LENGTH = 24


class Place(NamedTuple):
    """The memory of one user in one root: its folder, the user, the user's data folder, and the folder for sockets.

    The root may not be there yet, and whether it is trusted is not known.
    """

    root: str
    user: str
    data: str
    runtime: str

    @property
    def digest(self) -> str:
        """The name of this place in file names: a digest of the root's path and the user."""
        name = f"{os.path.realpath(self.root)}\0{self.user}"
        return sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:_DIGEST_LENGTH]

    @property
    def hooks_folder(self) -> str:
        """The folder of what hooks keep, for all places."""
        return os.path.join(self.data, HOOKS_FOLDER)

    @property
    def socket_path(self) -> str:
        """The path of the socket at which a process of this place answers."""
        return os.path.join(self.runtime, f"{self.digest}.sock")


def find_place(folder: str, environment: "Mapping[str, str]") -> Place | None:
    """Return the place of a session that works in `folder`, or None if there is none and none should be begun.

    It is the root that RICORDO_ROOT names, else the nearest one at or above `folder`, else a new one at the top of the
    git work tree, else in `folder`. A linked work tree shares the root of the main one, unless RICORDO_WORKTREES is
    `separate`. The home folder, and what is above it, gets no root without being asked.
    """
    configured, worktrees = environment.get("RICORDO_ROOT"), environment.get("RICORDO_WORKTREES") or "share"
    root = (
        _inner_root(os.path.abspath(configured))
        if configured
        else _nearest_root(folder, worktrees) or _new_root(folder, worktrees)
    )
    return make_place(root, _find_user(environment), environment) if root else None


def make_place(root: str, user: str, environment: "Mapping[str, str]") -> Place:
    """Return the place of a root that is known."""
    return Place(root=root, user=user, data=find_data_folder(environment), runtime=_find_runtime_folder(environment))


def find_data_folder(environment: "Mapping[str, str]") -> str:
    """Return the user's data folder, as settings find it, without a package that would have to be loaded for it."""
    if folder := environment.get("RICORDO_DATA"):
        return folder
    if sys.platform == "win32":
        return os.path.join(environment.get("LOCALAPPDATA") or os.path.expanduser(r"~\AppData\Local"), *["ricordo"] * 2)
    if sys.platform == "darwin":
        return os.path.expanduser("~/Library/Application Support/ricordo")
    return os.path.join(environment.get("XDG_DATA_HOME", "").strip() or os.path.expanduser("~/.local/share"), "ricordo")


def make_private_folder(path: str) -> None:
    """Create a folder, and those above it that are missing, which only this user can use. Raises: OSError."""
    missing = []
    while path and not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    for folder in reversed(missing):
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)


def _find_runtime_folder(environment: "Mapping[str, str]") -> str:
    """Return the folder for sockets: the platform's for this user, else one among temporary files."""
    if folder := environment.get("XDG_RUNTIME_DIR"):
        return os.path.join(folder, "ricordo")
    temporary = environment.get("TMPDIR") or environment.get("TEMP") or "/tmp"  # noqa: S108  # who owns the folder is checked
    owner = os.geteuid() if hasattr(os, "geteuid") else 0
    return os.path.join(temporary, f"ricordo-{owner}")


def _find_user(environment: "Mapping[str, str]") -> str:
    """Return the user as settings do: RICORDO_USER, else the login name."""
    for name in ("RICORDO_USER", *_LOGIN_VARIABLES):
        if environment.get(name):
            return environment[name]
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_name
    except (ImportError, KeyError):
        return "user"


def _inner_root(folder: str) -> str:
    inner = os.path.join(folder, _ROOT_FOLDER)
    is_around = not os.path.isfile(os.path.join(folder, _MARKER)) and os.path.isdir(inner)
    return inner if is_around and os.path.basename(folder) != _ROOT_FOLDER else folder


def _nearest_root(folder: str, worktrees: str) -> str:
    for above in _list_searched(folder, worktrees):
        root = os.path.join(above, _ROOT_FOLDER)
        if os.path.isfile(os.path.join(root, _MARKER)):
            return root
    return ""


def _new_root(folder: str, worktrees: str) -> str:
    above = _list_above(folder)
    top = next((each for each in above if os.path.exists(os.path.join(each, ".git"))), above[0])
    top = (_find_main_tree(top) if worktrees == "share" else "") or top
    home = os.path.expanduser("~")
    return "" if top in _list_above(home) else os.path.join(top, _ROOT_FOLDER)


def _list_searched(folder: str, worktrees: str) -> list[str]:
    """Return the folders in which a root is looked for, as `ricordo.runtime.roots.list_folders_above` does."""
    above = _list_above(folder)
    for number, each in enumerate(above):
        if main := _find_main_tree(each):
            return above[: number + 1] + (_list_above(main) if worktrees == "share" else [])
    return above


def _find_main_tree(folder: str) -> str:
    """Return the main work tree of a linked one of git; empty for any other folder."""
    try:
        with open(os.path.join(folder, ".git"), encoding="utf-8", errors="surrogateescape") as file:
            kind, _, link = file.read().partition(": ")
        data = os.path.join(folder, link.rstrip("\n"))
        with open(os.path.join(data, "commondir"), encoding="utf-8", errors="surrogateescape") as file:
            common = os.path.realpath(os.path.join(data, file.read().rstrip("\n")))
    except (OSError, ValueError):
        return ""
    is_main = kind == "gitdir" and os.path.basename(common) == ".git" and os.path.isdir(common)
    return os.path.dirname(common) if is_main else ""


def _list_above(folder: str) -> list[str]:
    """Return `folder` and the folders above it."""
    folders = [os.path.abspath(folder)]
    while (above := os.path.dirname(folders[-1])) != folders[-1]:
        folders.append(above)
    return folders
