"""Contradictions: memories that can't both hold while nothing decides, as they are written and shown.

The field `contradicts` on a curated line names the others by id. Invariant: what is told from it never rests on the
field alone: one line is enough for both, and a memory that is gone, or holds no more, contradicts nothing.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

from ricordo.workspace.entry import Entry

__all__ = [
    "CONTRADICTS_PREVIOUS",
    "CONTRADICTS_FIELD",
    "CONTRADICTS_NEXT",
    "contradicted_ids",
    "is_contradiction_marker",
    "contradiction_marker",
    "name_contradiction",
    "set_contradictions",
    "find_contradictions",
]

CONTRADICTS_FIELD = "contradicts"
"""The field of a curated entry that holds the ids of those which it contradicts, while that is not decided."""

CONTRADICTS_NEXT = "(contradicts the next: not decided)"
CONTRADICTS_PREVIOUS = "(contradicts the one before: not decided)"
_MARKER_START, _MARKER_END = "(contradicts ", ": not decided)"


def contradicted_ids(entry: Entry) -> tuple[str, ...]:
    """Return the ids that the line of an entry names as contradicting it, whether they are still there or not."""
    return tuple(part for key, value in entry.extra if key == CONTRADICTS_FIELD for part in value.split(",") if part)


def find_contradictions(
    entries: Iterable[Entry], *, elsewhere: Collection[str] | None = ()
) -> dict[str, tuple[str, ...]]:
    """Return by id which of these entries contradict which others, in both directions, as far as both hold.

    `elsewhere` are ids of further entries that hold; None takes every id that is not among `entries` for one.
    """
    every = list(entries)
    holding = {entry.id for entry in every if entry.state == "active"}
    known = {entry.id for entry in every}
    found: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for entry in every:
        if entry.id not in holding:
            continue
        for other in contradicted_ids(entry):
            if other in holding and other != entry.id:
                found[entry.id][other] = None
                found[other][entry.id] = None
            elif other not in known and (elsewhere is None or other in elsewhere):
                found[entry.id][other] = None
    return {name: tuple(others) for name, others in found.items()}


def contradiction_marker(others: Sequence[str], *, before: str = "", after: str = "") -> str:
    """Return what is shown with a memory that contradicts `others`; empty where those are none.

    `before` and `after` are the ids of what is shown right before and after it.
    """
    if not others:
        return ""
    return (
        CONTRADICTS_NEXT
        if after in others
        else CONTRADICTS_PREVIOUS
        if before in others
        else name_contradiction(others[0])
    )


def name_contradiction(other: str) -> str:
    """Return what is shown where the memory that is contradicted is not beside it."""
    return f"{_MARKER_START}{other}{_MARKER_END}"


def is_contradiction_marker(line: str) -> bool:
    """Tell whether a line that is shown is such a marker, and no memory."""
    bare = line.strip()
    return bare.startswith(_MARKER_START) and bare.endswith(_MARKER_END)


def set_contradictions(bullet: bytes, entry: Entry, others: Sequence[str]) -> bytes:
    """Return the bullet of an entry whose id stands in it, naming `others` and no more; every other byte stays."""
    shown = bullet
    for key, value in entry.extra:
        before, field, after = shown.rpartition(f" [{key}:: {value}]".encode("utf-8", "surrogatepass"))
        shown = before + after if key == CONTRADICTS_FIELD and field else shown
    before, name, after = shown.rpartition(f"^{entry.id}".encode())
    if not name or not others:
        return shown
    return before + f"[{CONTRADICTS_FIELD}:: {','.join(others)}] ".encode() + name + after
