"""Which folders may become a store, judged by their contents.

A store hides its folder from git, so it takes none that holds other things. A memory folder of other tools stays as it
is, so it has to be one.
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
"""What lies in a folder of memory, also while another process writes what says whose it is.

Anything else in a folder that is nobody's yet says that it is none.
"""


def expand_home(place: str) -> Path:
    """Return the path of a place, with the home folder for `~`. Raises: InvalidSetting for that of nobody."""
    try:
        return Path(place).expanduser()
    except RuntimeError as error:
        raise InvalidSetting(
            f"{place!r} is in the home folder of nobody here: a folder of this name is ./~…."
        ) from error


def check_not_file(folder: Path) -> None:
    """Raise `InvalidInput` for a file, and for what would lie below one."""
    try:
        there = next(path for path in (folder, *folder.parents) if path.exists())
        is_file = not there.is_dir()
    except OSError as error:
        raise translate_os_error(error, str(folder)) from error
    if is_file:
        raise InvalidInput(f"{there} is a file: name a folder for the store.")


def check_no_foreign_files(folder: Path) -> None:
    """Raise `InvalidInput` for a file, and for a folder that holds anything that a store does not."""
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
    """Raise `InvalidInput` for a folder that holds something and no MEMORY.md, and for one of Ricordo's own.

    `mark` is the file that says whose the folder is: one that was empty when it was claimed gets its MEMORY.md last.
    """
    try:
        is_file = folder.exists() and not folder.is_dir()
        own = (folder / PROJECT_FILE).exists() or (folder.name == WORKSPACE and (folder.parent / PROJECT_FILE).exists())
        there = [path.name for path in folder.iterdir()] if folder.is_dir() else []
        # looked for last: whoever writes into the folder has claimed it before
        claimed = mark.exists()
    except OSError as error:
        raise translate_os_error(error, str(folder)) from error
    if is_file:
        raise InvalidInput(f"{folder} is a file: name the folder that holds MEMORY.md.")
    if own:
        raise InvalidInput(f"{folder} is kept by Ricordo itself: open the root with layered:PATH.")
    if there and "MEMORY.md" not in there and not claimed:
        raise InvalidInput(f"{folder} is no memory folder: it holds {min(there)}, and no MEMORY.md.")


def _find_foreign(folder: Path) -> str | None:
    """Return the name of one thing in the folder that is none of a store's; None when there is no such thing."""
    found = folder.iterdir() if folder.is_dir() else ()
    return next((path.name for path in found if not _belongs_to_store(path)), None)


def _belongs_to_store(path: Path) -> bool:
    if path.name == ".gitignore":
        return b"*" in path.read_bytes().splitlines()
    return _STORE_FILES.fullmatch(path.name) is not None
