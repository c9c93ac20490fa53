"""The report of what would take effect if a root were trusted. Nothing of the root is used or changed for it.

The root may be somebody else's. So each file is read up to a limit, no link is followed, and the report says which
files can't be read.
"""

import os
import re
import shlex
import stat
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from secrets import token_bytes

from ricordo.errors import DocumentInvalid, InvalidSetting, RicordoError, StorageError
from ricordo.guard import Redactor
from ricordo.messages.jsontext import decoded
from ricordo.runtime.config_file import CONFIG, is_secret_name, parsed_config
from ricordo.runtime.guard_key import identity_of
from ricordo.runtime.listing import listed
from ricordo.runtime.settings import Settings
from ricordo.runtime.trust import is_listed, is_private_rule, lies_in, links_in, owner_trouble, stored_key, vouches_for
from ricordo.workspace.layout import GUARD_KEY, IGNORE_FILE, PROJECT

__all__ = ["TrustReport", "has_private_key", "tracked_files", "trust_report"]

_MOST_BYTES = 1_000_000
_MOST_FILES = 20_000
_MOST_LISTED = 20
_FIRST_LINES = 8
_LONGEST = 160
_LONGEST_READ = 4_096
_GUARD = Redactor(token_bytes(32))
"""Takes secrets out of what is shown; nothing is kept of what it finds."""
_GIT_SECONDS = 10
_MOST_TRACKED = 6
_RULE_FIELD = re.compile(r"\[rule:: ([^\]]{1,200})\]")


@dataclass(frozen=True, kw_only=True)
class TrustReport:
    """What lies in a root; `trusted` tells whether it may be used, and `why` by what.

    `trouble` is what keeps it from being trusted. `found` holds, by what it would decide, what would come into effect,
    as lines; it has no line for what is not there.
    """

    root: Path
    exists: bool
    trusted: bool
    why: str = ""
    trouble: tuple[str, ...] = ()
    found: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def trust_report(root: Path, settings: Settings) -> TrustReport:
    """Return what would come into effect if `root` were trusted. It blocks on the disk and changes nothing."""
    links, why = links_in(root), _why_trusted(root, settings)
    trouble = [f"{path} is a symbolic link: a root with a link in it is not used." for path in links]
    trouble += [told] if (told := owner_trouble(root)) else []
    if GUARD_KEY in tracked_files(root):
        trouble.append(
            f"git tracks {root / GUARD_KEY}, and whoever knows the key of a trusted root can make another one that is "
            f"trusted: run `git rm --cached {shlex.quote(str(root / GUARD_KEY))}` first."
        )
    if root.is_symlink():
        return TrustReport(root=root, exists=True, trusted=bool(why), why=why, trouble=tuple(trouble))
    files = list(islice(_walked(root), _MOST_FILES))
    found = {
        "scope": _scope(root),
        "settings": _settings(root),
        "rules": [line for path in files if _is_rule(root, path) for line in _begun(root, path)],
        "memory": [line for path in files if _is_memory(root, path) for line in _begun(root, path)],
        "rules in memories": [line for path in files if path.suffix == ".md" for line in _remembered_rules(root, path)],
        "profile": [line for path in files if path.name == "profile.json" for line in _begun(root, path)],
        "permissions": [line for path in files if path.parent.name == "state" for line in _permissions(root, path)],
        "links": [f"{path.relative_to(root)} -> {path.readlink()}" for path in files if path.is_symlink()],
        "open to others": _open(root, files),
        "git": _git(root),
        "key": _key(root),
        "files": [f"{len(files):,} files"] if files else [],
    }
    return TrustReport(
        root=root,
        exists=bool(files),
        trusted=bool(why),
        why=why,
        trouble=tuple(trouble),
        found={name: tuple(_few(lines)) for name, lines in found.items() if lines},
    )


def _why_trusted(root: Path, settings: Settings) -> str:
    if vouches_for(settings.trust, root):
        return "RICORDO_TRUST names it"
    if lies_in(root, settings.data):
        return "it lies in your own data folder"
    with suppress(DocumentInvalid, StorageError):
        key = stored_key(root)
        if key is not None and is_listed(identity_of(key), settings.data):
            return "it is on the list"
    return ""


def _walked(root: Path) -> Iterator[Path]:
    """Give the files of a root and its links, none of which is followed."""
    for folder, folders, names in os.walk(root):
        here = Path(folder)
        yield from sorted(here / name for name in names)
        yield from sorted(path for path in (here / name for name in folders) if path.is_symlink())


def _text(path: Path) -> str:
    """Return a plain file as text, up to the bound; empty for anything else, and for one that can't be read."""
    with suppress(OSError):
        if stat.S_ISREG(path.lstat().st_mode):
            with path.open("rb") as file:
                return file.read(_MOST_BYTES).decode("utf-8", "replace")
    return ""


def _begun(root: Path, path: Path) -> list[str]:
    """Return the size of a file, then how it begins."""
    lines = _text(path).splitlines()
    with suppress(OSError):
        begun = _GUARD.clean_keeping_lines("\n".join(line[:_LONGEST_READ] for line in lines[:_FIRST_LINES]))
        shown = [f"  {line[:_LONGEST]}" for line in begun.split("\n")]
        more = [f"  … {len(lines) - _FIRST_LINES:,} more lines"] if len(lines) > _FIRST_LINES else []
        return [f"{path.relative_to(root)}: {path.lstat().st_size:,} bytes", *shown, *more]
    return []


def _is_rule(root: Path, path: Path) -> bool:
    return "rules" in path.relative_to(root).parts[:-1]


def _is_memory(root: Path, path: Path) -> bool:
    return path.name == "MEMORY.md" or (path.suffix == ".md" and "memory" in path.relative_to(root).parts[:-1])


def _scope(root: Path) -> list[str]:
    text = _text(root / PROJECT)
    if not text:
        return []
    try:
        scope = decoded(text)["scope"]
        return [f"{name} {_GUARD.clean(str(value))[:_LONGEST]}" for name, value in scope.items()]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return [f"{PROJECT} can't be read"]


def _settings(root: Path) -> list[str]:
    if (root / CONFIG).is_symlink():
        return [f"{CONFIG} is a symbolic link and was not read"]
    try:
        rows = listed(Settings.load(root, {}, trusted=True, own=False))
    except (DocumentInvalid, InvalidSetting, StorageError) as error:
        return [str(error), *_refused(root)]
    return [f"{row.key} = {row.value}" for row in rows if row.origin.kind == "file"]


def _refused(root: Path) -> list[str]:
    """Return what a settings file says that is refused as a whole: it would take effect once its fault is mended."""
    try:
        values = parsed_config(root / CONFIG, _text(root / CONFIG).encode()).values
    except DocumentInvalid:
        return _begun(root, root / CONFIG)
    shown = {name: "[hidden]" if is_secret_name(name) else _GUARD.clean(str(value)) for name, value in values.items()}
    said = [f"{_GUARD.clean(name)} = {value}"[:_LONGEST] for name, value in shown.items()]
    return ["The file is not used as long as that is so. It says:", *said] if said else []


def _remembered_rules(root: Path, path: Path) -> list[str]:
    return [f"{path.relative_to(root)}: {_GUARD.clean(rule)}" for rule in _RULE_FIELD.findall(_text(path))]


def _permissions(root: Path, path: Path) -> list[str]:
    """Return the rules in the state of a session; those that let calls through would not be used."""
    try:
        rules = decoded(_text(path) or "{}").get("permissions") or []
        lines = [_GUARD.clean(str(rule["rule"]))[:_LONGEST] for rule in rules]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return [f"{path.relative_to(root)} can't be read"]
    unused = " (not used: it was not permitted here)"
    return [f"{path.relative_to(root)}: {line}{unused if line.startswith('allow') else ''}" for line in lines]


def _open(root: Path, files: list[Path]) -> list[str]:
    """Return what others on this machine may read or change: the root, and what lies right in it."""
    if os.name != "posix":
        return []
    found = []
    for path in [root, *(path for path in files if path.parent == root)]:
        with suppress(OSError):
            mode = stat.S_IMODE(path.lstat().st_mode)
            if mode & (stat.S_IRWXG | stat.S_IRWXO) and not path.is_symlink():
                found.append(f"{path.name} has mode {mode:o}")
    return found


def tracked_files(root: Path) -> tuple[str, ...]:
    """Return the files of a root that git tracks, as paths below it; none without git. It blocks on the disk."""
    command = ["git", "-c", "core.fsmonitor=false", "-C", str(root), "ls-files", "-z"]
    try:
        done = subprocess.run(command, capture_output=True, check=True, timeout=_GIT_SECONDS)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(os.fsdecode(name) for name in done.stdout.split(b"\0") if name)


def has_private_key(root: Path) -> bool:
    """Tell whether the key of a root can be this person's own secret, as nobody else can read the file.

    What git checks out can be read by others: it keeps no narrower mode. It blocks on the disk. Raises:
    DocumentInvalid; StorageError.
    """
    if stored_key(root) is None:
        return False
    mode = (root / GUARD_KEY).lstat().st_mode
    return os.name != "posix" or not mode & (stat.S_IRWXG | stat.S_IRWXO)


def _git(root: Path) -> list[str]:
    tracked, rule = tracked_files(root), _text(root / IGNORE_FILE)
    more = f" and {len(tracked) - _MOST_TRACKED:,} more" if len(tracked) > _MOST_TRACKED else ""
    names = ", ".join(tracked[:_MOST_TRACKED]) + more
    lines = [f"git tracks {names}: what is written into them can be committed"] if tracked else []
    if not is_private_rule(root, rule.encode()):
        return [f"{IGNORE_FILE} does not hide the root: trusting puts that right", *lines]
    shows = "MEMORY.md" in rule
    return [*(["git sees MEMORY.md and the topics: `ricordo memory untrack` hides them"] if shows else []), *lines]


def _key(root: Path) -> list[str]:
    try:
        known = stored_key(root) is not None and not has_private_key(root)
    except (RicordoError, OSError) as error:
        return [str(error)]
    return [f"{GUARD_KEY} can be known to others: trusting makes a new one"] if known else []


def _few(lines: list[str]) -> list[str]:
    rest = len(lines) - _MOST_LISTED * _FIRST_LINES
    return [*lines[: _MOST_LISTED * _FIRST_LINES], *([f"… {rest:,} more lines"] if rest > 0 else [])]
