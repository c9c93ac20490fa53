"""Patterns for paths: `*` and `?` within a name, `[abc]`, and `**` for any number of folders. Pure.

The time is bounded by the product of the lengths, whatever the pattern: names are matched one by one, and the folders
between them by a table instead of by trying.
"""

from collections.abc import Sequence
from fnmatch import fnmatchcase

__all__ = ["matches_glob"]


def matches_glob(pattern: str, path: str) -> bool:
    """Tell whether `path` matches `pattern`; a pattern without a slash matches the name in any folder."""
    names = path.split("/")
    if "/" not in pattern.strip("/"):
        return fnmatchcase(names[-1], pattern.strip("/"))
    return _matches_parts([part for part in pattern.split("/") if part not in {"", "."}], names)


def _matches_parts(parts: Sequence[str], names: Sequence[str]) -> bool:
    # reached[n]: the parts so far match the first n names
    reached = [True, *[False] * len(names)]
    for part in parts:
        if part == "**":
            for count in range(1, len(names) + 1):
                reached[count] = reached[count] or reached[count - 1]
        else:
            reached = [False, *(reached[count] and fnmatchcase(name, part) for count, name in enumerate(names))]
    return reached[-1]
