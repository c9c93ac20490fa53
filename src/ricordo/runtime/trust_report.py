"""The report of what would take effect if a root were trusted.

Invariant: nothing in the root is used or changed. Files are read up to a limit, no link is followed, and unreadable
files are named.
"""

import os
import shlex
import stat
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import field
from itertools import islice
from pathlib import Path
from secrets import token_bytes

from ricordo.errors import DocumentInvalid, InvalidSetting, RicordoError, StorageError
from ricordo.guard import Redactor
from ricordo.lazy import dataclass, lazy_compile
from ricordo.messages.json_text import decode_json
from ricordo.runtime.config_file import CONFIG_FILE, is_secret_name, parsed_config
from ricordo.runtime.roots import identity_from_key
from ricordo.runtime.settings import Settings, list_settings
from ricordo.runtime.trust import (
    IGNORE_ALL_BUT_TEAM,
    find_foreign_owner,
    find_links,
    is_in_data_folder,
    is_listed,
    is_own_ignore_file,
    is_vouched_for,
    read_key_file,
)
from ricordo.workspace.layout import GUARD_KEY, IGNORE_FILE, PROJECT_FILE

__all__ = ["TrustReport", "create_trust_report", "has_private_key", "list_tracked_files"]


_MAX_BYTES = 1_000_000
_MAX_FILES = 20_000
_MAX_LISTED_FILES = 20
_HEAD_LINES = 8
_MAX_LINE_CHARS = 160
_MAX_READ_CHARS = 4_096
_REDACTOR = Redactor(token_bytes(32))
"""Redacts displayed text; its random key is not stored."""
_GIT_SECONDS = 10
_MAX_TRACKED = 6
_RULE_FIELD = lazy_compile(r"\[rule:: ([^\]]{1,200})\]")


@dataclass(frozen=True, kw_only=True)
class TrustReport:
    """The contents of a root; `trusted` says whether it may be used, and `reason` why.

    `obstacles` are what prevents trusting it. `effects` holds the lines that would take effect, by what they would
    decide; absent parts have no key.
    """

    root: Path
    exists: bool
    trusted: bool
    reason: str = ""
    obstacles: tuple[str, ...] = ()
    effects: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def create_trust_report(root: Path, settings: Settings) -> TrustReport:
    """Return what would take effect if `root` were trusted. It blocks on the disk and changes nothing."""
    links, reason = find_links(root), _trust_reason(root, settings)
    obstacles = [f"{path} is a symbolic link: a root with a link in it is not used." for path in links]
    obstacles += [foreign_owner] if (foreign_owner := find_foreign_owner(root)) else []
    if GUARD_KEY in list_tracked_files(root):
        obstacles.append(
            f"git tracks {root / GUARD_KEY}, and whoever knows the key of a trusted root can make another one that is "
            f"trusted: run `git rm --cached {shlex.quote(str(root / GUARD_KEY))}` first."
        )
    if root.is_symlink():
        return TrustReport(root=root, exists=True, trusted=bool(reason), reason=reason, obstacles=tuple(obstacles))
    files = list(islice(_walk_files(root), _MAX_FILES))
    effects = {
        "scope": _scope_lines(root),
        "settings": _setting_lines(root),
        "rules": [line for path in files if _is_rule(root, path) for line in _head_lines(root, path)],
        "memory": [line for path in files if _is_memory(root, path) for line in _head_lines(root, path)],
        "rules in memories": [
            line for path in files if path.suffix == ".md" for line in _memory_rule_lines(root, path)
        ],
        "profile": [line for path in files if path.name == "profile.json" for line in _head_lines(root, path)],
        "permissions": [
            line for path in files if path.parent.name == "state" for line in _permission_lines(root, path)
        ],
        "links": [f"{path.relative_to(root)} -> {path.readlink()}" for path in files if path.is_symlink()],
        "open to others": _exposed_files(root, files),
        "git": _git_lines(root),
        "key": _key_lines(root),
        "files": [f"{len(files):,} files"] if files else [],
    }
    return TrustReport(
        root=root,
        exists=bool(files),
        trusted=bool(reason),
        reason=reason,
        obstacles=tuple(obstacles),
        effects={name: tuple(_cap_lines(lines)) for name, lines in effects.items() if lines},
    )


def _trust_reason(root: Path, settings: Settings) -> str:
    if is_vouched_for(settings.trust, root):
        return "RICORDO_TRUST names it"
    if is_in_data_folder(root, settings.data):
        return "it lies in your own data folder"
    with suppress(DocumentInvalid, StorageError):
        key = read_key_file(root)
        if key is not None and is_listed(identity_from_key(key), settings.data):
            return "it is on the list"
    return ""


def _walk_files(root: Path) -> Iterator[Path]:
    """Yield the files of a root and its links, without following them."""
    for folder, folders, names in os.walk(root):
        folder_path = Path(folder)
        yield from sorted(folder_path / name for name in names)
        yield from sorted(path for path in (folder_path / name for name in folders) if path.is_symlink())


def _read_text(path: Path) -> str:
    """Return a regular file as text, up to the limit; empty for anything else, or if unreadable."""
    with suppress(OSError):
        if stat.S_ISREG(path.lstat().st_mode):
            with path.open("rb") as file:
                return file.read(_MAX_BYTES).decode("utf-8", "replace")
    return ""


def _head_lines(root: Path, path: Path) -> list[str]:
    """Return the size of a file, then its first lines."""
    lines = _read_text(path).splitlines()
    with suppress(OSError):
        redacted = _REDACTOR.clean_keeping_lines("\n".join(line[:_MAX_READ_CHARS] for line in lines[:_HEAD_LINES]))
        displayed = [f"  {line[:_MAX_LINE_CHARS]}" for line in redacted.split("\n")]
        remainder = [f"  … {len(lines) - _HEAD_LINES:,} more lines"] if len(lines) > _HEAD_LINES else []
        return [f"{path.relative_to(root)}: {path.lstat().st_size:,} bytes", *displayed, *remainder]
    return []


def _is_rule(root: Path, path: Path) -> bool:
    return "rules" in path.relative_to(root).parts[:-1]


def _is_memory(root: Path, path: Path) -> bool:
    return path.name == "MEMORY.md" or (path.suffix == ".md" and "memory" in path.relative_to(root).parts[:-1])


def _scope_lines(root: Path) -> list[str]:
    text = _read_text(root / PROJECT_FILE)
    if not text:
        return []
    try:
        scope = decode_json(text)["scope"]
        return [f"{name} {_REDACTOR.clean(str(value))[:_MAX_LINE_CHARS]}" for name, value in scope.items()]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return [f"{PROJECT_FILE} can't be read"]


def _setting_lines(root: Path) -> list[str]:
    if (root / CONFIG_FILE).is_symlink():
        return [f"{CONFIG_FILE} is a symbolic link and was not read"]
    try:
        rows = list_settings(Settings.load(root, {}, trusted=True, own=False))
    except (DocumentInvalid, InvalidSetting, StorageError) as error:
        return [str(error), *_refused(root)]
    return [f"{row.key} = {row.value}" for row in rows if row.origin.kind == "file"]


def _refused(root: Path) -> list[str]:
    """Return the content of a refused settings file: it would take effect once its error is fixed."""
    try:
        values = parsed_config(root / CONFIG_FILE, _read_text(root / CONFIG_FILE).encode()).values
    except DocumentInvalid:
        return _head_lines(root, root / CONFIG_FILE)
    masked = {
        name: "[hidden]" if is_secret_name(name) else _REDACTOR.clean(str(value)) for name, value in values.items()
    }
    lines = [f"{_REDACTOR.clean(name)} = {value}"[:_MAX_LINE_CHARS] for name, value in masked.items()]
    return ["The file is not used as long as that is so. It says:", *lines] if lines else []


def _memory_rule_lines(root: Path, path: Path) -> list[str]:
    return [f"{path.relative_to(root)}: {_REDACTOR.clean(rule)}" for rule in _RULE_FIELD.findall(_read_text(path))]


def _permission_lines(root: Path, path: Path) -> list[str]:
    """Return the rules in the state of a session; rules that allow calls would not be used."""
    try:
        rules = decode_json(_read_text(path) or "{}").get("permissions") or []
        lines = [_REDACTOR.clean(str(rule["rule"]))[:_MAX_LINE_CHARS] for rule in rules]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return [f"{path.relative_to(root)} can't be read"]
    unused = " (not used: it was not permitted here)"
    return [f"{path.relative_to(root)}: {line}{unused if line.startswith('allow') else ''}" for line in lines]


def _exposed_files(root: Path, files: list[Path]) -> list[str]:
    """Return what other users of this machine may read or change: the root and its direct entries."""
    if os.name != "posix":
        return []
    exposed = []
    for path in [root, *(path for path in files if path.parent == root)]:
        with suppress(OSError):
            mode = stat.S_IMODE(path.lstat().st_mode)
            if mode & (stat.S_IRWXG | stat.S_IRWXO) and not path.is_symlink():
                exposed.append(f"{path.name} has mode {mode:o}")
    return exposed


def list_tracked_files(root: Path) -> tuple[str, ...]:
    """Return the files of a root that git tracks, as paths below it; none without git. It blocks on the disk."""
    command = ["git", "-c", "core.fsmonitor=false", "-C", str(root), "ls-files", "-z"]
    try:
        process = subprocess.run(command, capture_output=True, check=True, timeout=_GIT_SECONDS)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(os.fsdecode(name) for name in process.stdout.split(b"\0") if name)


def has_private_key(root: Path) -> bool:
    """Return whether the key of a root can be this user's own secret, because nobody else can read the file.

    Files checked out by git are readable by others, as git does not store narrower modes. It blocks on the disk.
    Raises: DocumentInvalid; StorageError.
    """
    if read_key_file(root) is None:
        return False
    mode = (root / GUARD_KEY).lstat().st_mode
    return os.name != "posix" or not mode & (stat.S_IRWXG | stat.S_IRWXO)


def _git_lines(root: Path) -> list[str]:
    tracked, rule = list_tracked_files(root), _read_text(root / IGNORE_FILE)
    remainder = f" and {len(tracked) - _MAX_TRACKED:,} more" if len(tracked) > _MAX_TRACKED else ""
    names = ", ".join(tracked[:_MAX_TRACKED]) + remainder
    lines = [f"git tracks {names}: what is written into them can be committed"] if tracked else []
    if not is_own_ignore_file(root, rule.encode()):
        return [f"{IGNORE_FILE} does not hide the root: trusting puts that right", *lines]
    if rule.encode() == IGNORE_ALL_BUT_TEAM:
        return ["it is the memory of a team, which git carries", *lines]
    shows_curated = "MEMORY.md" in rule
    return [
        *(["git sees MEMORY.md and the topics: `ricordo memory untrack` hides them"] if shows_curated else []),
        *lines,
    ]


def _key_lines(root: Path) -> list[str]:
    try:
        is_exposed = read_key_file(root) is not None and not has_private_key(root)
    except (RicordoError, OSError) as error:
        return [str(error)]
    return [f"{GUARD_KEY} can be known to others: trusting makes a new one"] if is_exposed else []


def _cap_lines(lines: list[str]) -> list[str]:
    rest = len(lines) - _MAX_LISTED_FILES * _HEAD_LINES
    return [*lines[: _MAX_LISTED_FILES * _HEAD_LINES], *([f"… {rest:,} more lines"] if rest > 0 else [])]
