"""Custom signal patterns: a directory with one YAML file for each signal replaces the built-in packs.

    correction.yaml:
    - "that's wrong"
    - pattern: "^nope"
      flags: [ignorecase]

All six files are required; an empty list disables the signal.
"""

import re
from functools import reduce
from operator import or_
from pathlib import Path

from ricordo.errors import InvalidSetting
from ricordo.language.acts import SIGNALS, CompiledPack, Signal, SignalDetector
from ricordo.lazy import lazy_compile

__all__ = ["load_detector"]


_FLAGS = {"ignorecase": re.IGNORECASE, "multiline": re.MULTILINE, "dotall": re.DOTALL}
_MAX_FILE_BYTES = 1_000_000
_INNERMOST_GROUP = lazy_compile(r"\((?:\?(?:[:=!]|<[=!]|P<\w+>))?([^()]*)\)")
_UNBOUNDED_REPEAT = lazy_compile(r"[+*]|\{\d*,\}")
_ATOM = lazy_compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)


def load_detector(directory: str | Path) -> SignalDetector:
    """Return a detector with only the patterns in `directory`.

    Raises: InvalidSetting if a file is missing, unreadable or not such a list, or if a pattern is not a regular
    expression or nests unbounded repetitions, which can take exponential time.
    """
    folder = Path(directory)
    return SignalDetector(
        custom=(CompiledPack(signals={signal: _load_patterns(folder, signal) for signal in SIGNALS}),)
    )


def _load_patterns(folder: Path, signal: Signal) -> tuple[re.Pattern[str], ...]:
    path = folder / f"{signal}.yaml"
    return tuple(_compile_entry(path, each) for each in _load_list(path))


def _load_list(path: Path) -> list[object]:
    import yaml

    try:
        if path.stat().st_size > _MAX_FILE_BYTES:
            raise InvalidSetting(f"{path}: the file is larger than {_MAX_FILE_BYTES:,} bytes.")
        found = yaml.safe_load(path.read_text("utf-8"))
    except FileNotFoundError:
        raise InvalidSetting(f"{path}: the file is missing; a directory of signal patterns has one a signal.") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InvalidSetting(f"{path}: the file can't be read: {error}") from error
    if not isinstance(found, list):
        raise InvalidSetting(f"{path}: the file is no list of patterns.")
    return found


def _compile_entry(path: Path, entry: object) -> re.Pattern[str]:
    given: object = entry
    names: object = ["ignorecase"]
    if isinstance(entry, dict):
        given, names = entry.get("pattern"), entry.get("flags", [])
    if not isinstance(given, str) or not given.strip():
        raise InvalidSetting(f"{path}: {entry!r} is no pattern, which is a text or a mapping with `pattern`.")
    if not isinstance(names, list) or any(name not in _FLAGS for name in names):
        raise InvalidSetting(f"{path}: the flags of a pattern are {', '.join(_FLAGS)}, not {names!r}.")
    if _repeats_without_bound(given):
        raise InvalidSetting(f"{path}: {given!r} repeats a repetition; bound one of them, as in {{0,40}}.")
    try:
        return re.compile(given, reduce(or_, (_FLAGS[name] for name in names), re.NOFLAG))
    except (re.error, RecursionError, OverflowError) as error:
        raise InvalidSetting(f"{path}: {given!r} is no regular expression: {error}") from None


def _repeats_without_bound(pattern: str) -> bool:
    """Return whether one unbounded repetition is nested in another: "(a+)+" can take very long on a short text."""
    left = _ATOM.sub("x", pattern)
    while (group := _INNERMOST_GROUP.search(left)) is not None:
        inner = bool(_UNBOUNDED_REPEAT.search(group[1])) or "\x00" in group[1]
        if inner and _UNBOUNDED_REPEAT.match(left, group.end()):
            return True
        left = left[: group.start()] + ("\x00" if inner else "x") + left[group.end() :]
    return False
