"""Checks of which folders may become a store, based on their contents.

A store hides its folder from git, so it refuses a folder with other things in it. A memory folder of another tool is
not changed, so it has to be one already.
"""

import re
from pathlib import Path

from ricordo.errors import InvalidInput, InvalidSetting
from ricordo.lazy import lazy_compile
from ricordo.storage.disk import translate_os_error
from ricordo.workspace.layout import PROJECT_FILE, WORKSPACE

__all__ = ["check_memory_folder", "check_no_foreign_files", "check_not_file", "expand_home"]


_STORE_FILES = lazy_compile(
    r"\.gitignore|\.~.+|guard\.key|locks|sessions|memory|topics|tenants|users|teams|projects|agents|\.DS_Store|Thumbs\.db"
    r"|.*\.(md|json|jsonl)|(memory|index)[^/]*\.(db|mdb|idx|npy|npz|f32|vec).*",
    re.IGNORECASE,
)
"""Names that may occur in a store folder, including files of another process that is claiming it.

Anything else in an unclaimed folder means that it is not a store.
"""


def expand_home(place: str) -> Path:
    """Return the path of an address, expanding `~`. Raises: InvalidSetting for the home of an unknown user."""
    try:
        return Path(place).expanduser()
    except RuntimeError as error:
        raise InvalidSetting(
            f"{place!r} is in the home folder of nobody here: a folder of this name is ./~…."
        ) from error


def check_not_file(folder: Path) -> None:
    """Raise `InvalidInput` if the path is a file or lies below one."""
    try:
        existing = next(path for path in (folder, *folder.parents) if path.exists())
        is_file = not existing.is_dir()
    except OSError as error:
        raise translate_os_error(error, str(folder)) from error
    if is_file:
        raise InvalidInput(f"{existing} is a file: name a folder for the store.")


def check_no_foreign_files(folder: Path) -> None:
    """Raise `InvalidInput` for a file, or for a folder with anything that is not part of a store."""
    check_not_file(folder)
    try:
        foreign = _find_foreign(folder)
    except OSError as error:
        raise translate_os_error(error, str(folder)) from error
    if foreign is not None:
        raise InvalidInput(
            f"{folder} holds other things, such as {foreign}, and a store hides its folder from git: name a folder "
            f"that is new or empty, such as {folder / '.harness'}."
        )


def check_memory_folder(folder: Path, mark: Path) -> None:
    """Raise `InvalidInput` for a non-empty folder without MEMORY.md, or one managed by Ricordo.

    `mark` is the owner record of the folder: a folder that was empty when claimed gets its MEMORY.md last.
    """
    try:
        is_file = folder.exists() and not folder.is_dir()
        own = (folder / PROJECT_FILE).exists() or (folder.name == WORKSPACE and (folder.parent / PROJECT_FILE).exists())
        names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
        # checked last: a process that writes into the folder has claimed it before
        claimed = mark.exists()
    except OSError as error:
        raise translate_os_error(error, str(folder)) from error
    if is_file:
        raise InvalidInput(f"{folder} is a file: name the folder that holds MEMORY.md.")
    if own:
        raise InvalidInput(f"{folder} is kept by Ricordo itself: open the root with layered:PATH.")
    if names and "MEMORY.md" not in names and not claimed:
        raise InvalidInput(f"{folder} is no memory folder: it holds {min(names)}, and no MEMORY.md.")


def _find_foreign(folder: Path) -> str | None:
    """Return the name of one item that is not part of a store, or None."""
    paths = folder.iterdir() if folder.is_dir() else ()
    return next((path.name for path in paths if not _belongs_to_store(path)), None)


def _belongs_to_store(path: Path) -> bool:
    if path.name == ".gitignore":
        return b"*" in path.read_bytes().splitlines()
    return _STORE_FILES.fullmatch(path.name) is not None
