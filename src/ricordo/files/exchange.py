"""Exchange: putting a file into its place, and removing one, only where it is still the version that was looked at.

Editors know nothing of our locks, and what one writes between the look and the write must not be lost. So the files
change places in one step, and what stood there is compared after it. Where the system or the file system has no such
step, an edit in that moment is lost.
"""

import os
import secrets
from contextlib import suppress

from ricordo.errors import VersionConflict
from ricordo.files.contract import ABSENT, compute_version
from ricordo.files.disk import Disk

__all__ = ["temporary_path", "remove_version", "replace_version"]


def temporary_path(real: str) -> str:
    """Return the name of a temporary file in the folder of `real`, which is swept when it is left behind."""
    folder, name = os.path.split(real)
    return os.path.join(folder, f".~{name[:100]}.{secrets.token_hex(6)}")


def replace_version(disk: Disk, temporary: str, real: str, expected: str) -> None:
    """Put the temporary file into the place of the version `expected`.

    Raises: VersionConflict if something else stands there, which stays; OSError.
    """
    try:
        if expected == ABSENT:
            if not disk.rename_new(temporary, real):
                disk.rename(temporary, real)
            return
        if not disk.exchange(temporary, real):
            disk.rename(temporary, real)
            return
    except (FileExistsError, FileNotFoundError) as error:
        raise _edit_conflict(real) from error
    if _version_on_disk(disk, temporary) != expected:
        disk.exchange(temporary, real)
        raise _edit_conflict(real)
    # the file is written by then, and what is left of the old one is swept some time
    with suppress(OSError):
        os.unlink(temporary)


def remove_version(disk: Disk, real: str, expected: str | None) -> None:
    """Remove the file, with `expected` only that version of it. Raises as `replace_version`, and FileNotFoundError."""
    if not expected:
        disk.unlink(real)
        return
    temporary = temporary_path(real)
    disk.rename(real, temporary)
    if _version_on_disk(disk, temporary) != expected:
        if not disk.rename_new(temporary, real):
            disk.rename(temporary, real)
        raise _edit_conflict(real)
    try:
        disk.unlink(temporary)
    except OSError:
        with suppress(OSError):
            os.rename(temporary, real)
        raise


def _edit_conflict(real: str) -> VersionConflict:
    return VersionConflict(f"{os.path.basename(real)} was edited while it was written: read it again and repeat that.")


def _version_on_disk(disk: Disk, real: str) -> str | None:
    """Return the version of what stands there; None for what can't be read."""
    try:
        with open(disk.open(real, os.O_RDONLY), "rb") as file:
            return compute_version(file.read())
    except OSError:
        return None
