"""Trust: a root may be used if this user created or trusted it on this machine.

A root can come with somebody else's folder, such as a cloned repository; its files choose models and enter the prompt.
So the user's data folder lists trusted roots by a digest of their key, not by their path.

Invariants: no file of an untrusted root takes effect, and nothing is written into it. No link leads from one root to
another.
"""

import logging
import os
import shlex
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path

from ricordo.errors import DocumentInvalid, RootNotTrusted
from ricordo.runtime.roots import KEY_LENGTHS, identity_from_key
from ricordo.storage.disk import translate_os_error
from ricordo.workspace.layout import GUARD_KEY, IGNORE_FILE, WORKSPACE

__all__ = [
    "IGNORE_ALL",
    "IGNORE_ALL_BUT_CURATED",
    "IGNORE_ALL_BUT_TEAM",
    "TRUST_ALL",
    "TRUST_LIST",
    "check_links",
    "check_trust",
    "find_foreign_owner",
    "find_links",
    "is_in_data_folder",
    "is_listed",
    "is_own_ignore_file",
    "is_vacant",
    "is_vouched_for",
    "read_key_file",
    "restrict_modes",
    "trust_record_path",
]


TRUST_LIST = "trusted"
"""The folder of the list of trusted roots, below the user's data folder."""
TRUST_ALL = "1"
"""The value of RICORDO_TRUST that trusts every root."""
IGNORE_ALL = b"*\n"
"""The .gitignore of a root, which hides all of it from git."""
IGNORE_ALL_BUT_CURATED = (
    b"# MEMORY.md and the topics may be committed; `ricordo memory untrack` hides them again.\n"
    b"*\n"
    b"!/workspace/\n"
    b"!/workspace/MEMORY.md\n"
    b"!/workspace/memory/\n"
    b"!/workspace/memory/topics/\n"
    b"!/workspace/memory/topics/**\n"
)
"""The .gitignore of a root after `ricordo memory track`."""
IGNORE_ALL_BUT_TEAM = (
    b"# What a team shares is committed; what each clone has of its own, such as its key and its index, is not.\n"
    b"*\n"
    b"!/.gitignore\n"
    b"!/.gitattributes\n"
    b"!/project.json\n"
    b"!/members.txt\n"
    b"!/workspace/\n"
    b"!/workspace/MEMORY.md\n"
    b"!/workspace/memory/\n"
    b"!/workspace/memory/**\n"
)
"""The .gitignore of the folder of a team, which names its members."""
_LOG = logging.getLogger("ricordo.trust")
_OTHERS_MODE = stat.S_IRWXG | stat.S_IRWXO
_HARMLESS_NAMES = frozenset({"locks", ".DS_Store"})


def trust_record_path(identity: str) -> str:
    """Return the path of the record of a root, below the folder of the list."""
    return f"roots/{identity}.json"


def check_trust(root: Path, *, data: Path, is_vouched: bool = False) -> None:
    """Check that `root` may be used or does not exist yet; `data` is the user's data folder. It blocks on the disk.

    A root in the data folder belongs to the user. One that the caller has vouched for is not checked. Raises:
    RootNotTrusted; DocumentInvalid for a damaged key; StorageError.
    """
    if is_vouched or is_in_data_folder(root, data):
        return
    check_links(root)
    if is_vacant(root):
        return
    if trouble := find_foreign_owner(root):
        raise RootNotTrusted(trouble, root=str(root))
    key = read_key_file(root)
    if key is None or not is_listed(identity_from_key(key), data):
        raise RootNotTrusted(_untrusted_message(root), root=str(root))


def check_links(folder: Path) -> None:
    """Raise `RootNotTrusted` if a root, or the folder of a user in it, is or contains a link. It blocks on the disk."""
    if links := find_links(folder):
        raise RootNotTrusted(_link_message(links[0], is_root=links[0] == folder), root=str(folder))


def is_vouched_for(trusted: Sequence[str], root: Path) -> bool:
    """Return whether `root` is one of the folders `trusted`, or below one; `TRUST_ALL` means every folder."""
    real_path = Path(os.path.realpath(root))
    return TRUST_ALL in trusted or any(real_path.is_relative_to(os.path.realpath(each)) for each in trusted)


def is_in_data_folder(root: Path, data: Path) -> bool:
    """Return whether a root is in the user's data folder, and not a link into it. It blocks on the disk."""
    return not root.is_symlink() and Path(os.path.realpath(root)).is_relative_to(os.path.realpath(data))


def is_listed(identity: str, data: Path) -> bool:
    """Return whether a root with this identity was created or trusted here. It blocks on the disk."""
    return (data / TRUST_LIST / trust_record_path(identity)).is_file()


def is_vacant(root: Path) -> bool:
    """Return whether `root` contains no file that could take effect, so that a root can be created there."""
    try:
        names = [path.name for path in root.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError as error:
        raise translate_os_error(error, str(root)) from error
    return all(_is_harmless(root, name) for name in names)


def find_links(root: Path) -> list[Path]:
    """Return the symbolic links among the root and its direct entries. It blocks on the disk.

    The index is not checked: it is a cache, and a link in its place is set aside.
    """
    return [path for path in _iter_entries(root) if path.is_symlink() and not path.name.startswith("memory_index")]


def find_foreign_owner(root: Path) -> str:
    """Return which file of the root belongs to another user of this machine, as a sentence; empty for none."""
    if not hasattr(os, "geteuid"):
        return ""
    for path in _iter_entries(root):
        with suppress(FileNotFoundError):
            owner = path.lstat().st_uid
            if owner != os.geteuid():
                return (
                    f"{path} belongs to another user of this machine (uid {owner}), who could change what the root "
                    f"says: it is not used. Where that is meant, set RICORDO_TRUST={shlex.quote(str(root))}."
                )
    return ""


def read_key_file(root: Path) -> bytes | None:
    """Return the content of the key file of a root; None if there is none. Raises: DocumentInvalid if it is damaged."""
    try:
        # opening a pipe would wait for a writer
        if not stat.S_ISREG((root / GUARD_KEY).lstat().st_mode):
            return None
        with (root / GUARD_KEY).open("rb") as file:
            key = file.read(max(KEY_LENGTHS) + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise translate_os_error(error, str(root / GUARD_KEY)) from error
    if len(key) not in KEY_LENGTHS:
        raise DocumentInvalid(
            f"{root / GUARD_KEY} is damaged: restore it from a backup, or delete it and run `ricordo trust`, which "
            "lets what was forgotten come back."
        )
    return key


def restrict_modes(root: Path, *, below: bool = False) -> None:
    """Remove the permissions of other users from a root and its key, and log it. It blocks on the disk.

    If others could use one of these, or with `below`, the same is done for all that the root contains.
    """
    if os.name != "posix":
        return
    for path in (root, root / GUARD_KEY):
        if mode := _narrow(path):
            _LOG.warning("Others could use %s (mode %o): only you can now.", path, mode)
            below = True
    paths = (Path(folder, name) for folder, *names in os.walk(root) for name in chain(*names))
    if below and (count := sum(bool(_narrow(path)) for path in paths)):
        _LOG.warning(
            "Others could use %d files and folders in %s, had they reached them: only you can now.", count, root
        )


def _narrow(path: Path) -> int:
    """Remove the permissions of others and return the mode before; 0 if there were none, and for a link."""
    with suppress(OSError):
        full_mode = path.lstat().st_mode
        mode = stat.S_IMODE(full_mode)
        if mode & _OTHERS_MODE and not stat.S_ISLNK(full_mode):
            path.chmod(mode & ~_OTHERS_MODE)
            return mode
    return 0


def is_own_ignore_file(root: Path, rule: bytes) -> bool:
    """Return whether `rule`, the .gitignore of a root, is one of Ricordo's own, and no .gitignore below overrides it.

    It blocks on the disk.
    """
    if rule == IGNORE_ALL:
        return True
    if rule == IGNORE_ALL_BUT_TEAM:
        return (root / "members.txt").is_file()
    folders = (root / WORKSPACE, root / WORKSPACE / "memory", root / WORKSPACE / "memory" / "topics")
    return rule == IGNORE_ALL_BUT_CURATED and not any(os.path.lexists(folder / IGNORE_FILE) for folder in folders)


def _is_harmless(root: Path, name: str) -> bool:
    if name == IGNORE_FILE:
        with suppress(OSError):
            return (root / name).read_bytes() == IGNORE_ALL
        return False
    return name in _HARMLESS_NAMES or name.startswith(".~")


def _iter_entries(root: Path) -> Iterator[Path]:
    """Yield the root and its direct entries."""
    yield root
    try:
        yield from sorted(root.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise translate_os_error(error, str(root)) from error


def _untrusted_message(root: Path) -> str:
    path = shlex.quote(str(root))
    return (
        f"{root} is not trusted: it was not made here, or before there was a list of trusted roots. Nothing of it is "
        f"used. `ricordo trust --show {path}` shows what would come into effect, `ricordo trust {path}` trusts it."
    )


def _link_message(path: Path, *, is_root: bool) -> str:
    kind = "folder" if path.is_dir() else "file"
    advice = f"Name the {kind} that it leads to, or put" if is_root else "Put"
    advice = f"{advice} the {kind} in its place." if path.exists() else "It leads nowhere: delete it."
    return f"{path} is a symbolic link, which could open the memory of something else: it is not used. {advice}"
