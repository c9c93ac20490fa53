"""Three-way merge of text by lines, so that a change can be taken back although others came after it. Pure."""

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import TypeAlias

__all__ = ["merge_lines"]

_Hunk: TypeAlias = tuple[int, int, Sequence[bytes]]


def merge_lines(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Return `base` with the changes of both sides, or None where they overlap or two rewrites touch.

    What both insert at one place is kept from both, theirs first; a change that both made is made once. With equal
    sides the result is that side; a side equal to `base` gives the other one, to the byte.
    """
    if ours in (theirs, base):
        return theirs
    if theirs == base:
        return ours
    lines = base.splitlines(keepends=True)
    changed = _find_hunks(lines, theirs)
    changed += [hunk for hunk in _find_hunks(lines, ours) if hunk not in changed]
    hunks = sorted(changed, key=lambda hunk: (hunk[0], hunk[1]))
    result: list[bytes] = []
    position = 0
    for index, (start, end, replacement) in enumerate(hunks):
        if index and _collide(hunks[index - 1], (start, end, replacement)):
            return None
        result += [*lines[position:start], *replacement]
        position = end
    return b"".join([*result, *lines[position:]])


def _collide(first: _Hunk, second: _Hunk) -> bool:
    """Tell whether what is replaced overlaps; beside it something may be inserted or removed."""
    both_rewrite = all(start < end and new for start, end, new in (first, second))
    return second[0] < first[1] or (second[0] == first[1] and both_rewrite)


def _find_hunks(lines: list[bytes], side: bytes) -> list[_Hunk]:
    """Return what `side` replaces in `lines`: from, to, and the new lines."""
    new = side.splitlines(keepends=True)
    matcher = SequenceMatcher(None, lines, new, autojunk=False)
    return [(a, b, new[c:d]) for tag, a, b, c, d in matcher.get_opcodes() if tag != "equal"]
