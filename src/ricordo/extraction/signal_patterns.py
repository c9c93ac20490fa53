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
        patterns = yaml.safe_load(path.read_text("utf-8"))
    except FileNotFoundError:
        raise InvalidSetting(f"{path}: the file is missing; a directory of signal patterns has one a signal.") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InvalidSetting(f"{path}: the file can't be read: {error}") from error
    if not isinstance(patterns, list):
        raise InvalidSetting(f"{path}: the file is no list of patterns.")
    return patterns


def _compile_entry(path: Path, entry: object) -> re.Pattern[str]:
    pattern: object = entry
    flag_names: object = ["ignorecase"]
    if isinstance(entry, dict):
        pattern, flag_names = entry.get("pattern"), entry.get("flags", [])
    if not isinstance(pattern, str) or not pattern.strip():
        raise InvalidSetting(f"{path}: {entry!r} is no pattern, which is a text or a mapping with `pattern`.")
    if not isinstance(flag_names, list) or any(name not in _FLAGS for name in flag_names):
        raise InvalidSetting(f"{path}: the flags of a pattern are {', '.join(_FLAGS)}, not {flag_names!r}.")
    if _repeats_without_bound(pattern):
        raise InvalidSetting(f"{path}: {pattern!r} repeats a repetition; bound one of them, as in {{0,40}}.")
    try:
        return re.compile(pattern, reduce(or_, (_FLAGS[name] for name in flag_names), re.NOFLAG))
    except (re.error, RecursionError, OverflowError) as error:
        raise InvalidSetting(f"{path}: {pattern!r} is no regular expression: {error}") from None


def _repeats_without_bound(pattern: str) -> bool:
    """Return whether one unbounded repetition is nested in another: "(a+)+" can take very long on a short text."""
    remaining = _ATOM.sub("x", pattern)
    while (group := _INNERMOST_GROUP.search(remaining)) is not None:
        is_unbounded = bool(_UNBOUNDED_REPEAT.search(group[1])) or "\x00" in group[1]
        if is_unbounded and _UNBOUNDED_REPEAT.match(remaining, group.end()):
            return True
        remaining = remaining[: group.start()] + ("\x00" if is_unbounded else "x") + remaining[group.end() :]
    return False
