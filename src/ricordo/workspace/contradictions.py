"""Contradictions: memories that can't both hold while nothing decides, as they are written and shown.

The field `contradicts` on a curated line names the others by id. Invariant: what is told from it never rests on the
field alone: one line is enough for both, and a memory that is gone, or holds no more, contradicts nothing.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

from ricordo.workspace.entry import Entry

__all__ = [
    "BEFORE",
    "CONTRADICTS",
    "NEXT",
    "contradicted",
    "is_marker",
    "marker",
    "naming",
    "relinked",
    "undecided",
]

CONTRADICTS = "contradicts"
"""The field of a curated entry that holds the ids of those which it contradicts, while that is not decided."""

NEXT = "(contradicts the next: not decided)"
BEFORE = "(contradicts the one before: not decided)"
_BEGINNING, _END = "(contradicts ", ": not decided)"


def contradicted(entry: Entry) -> tuple[str, ...]:
    """Return the ids that the line of an entry names as contradicting it, whether they are still there or not."""
    return tuple(part for key, value in entry.extra if key == CONTRADICTS for part in value.split(",") if part)


def undecided(entries: Iterable[Entry], *, elsewhere: Collection[str] | None = ()) -> dict[str, tuple[str, ...]]:
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
        for other in contradicted(entry):
            if other in holding and other != entry.id:
                found[entry.id][other] = None
                found[other][entry.id] = None
            elif other not in known and (elsewhere is None or other in elsewhere):
                found[entry.id][other] = None
    return {name: tuple(others) for name, others in found.items()}


def marker(others: Sequence[str], *, before: str = "", after: str = "") -> str:
    """Return what is shown with a memory that contradicts `others`; empty where those are none.

    `before` and `after` are the ids of what is shown right before and after it.
    """
    if not others:
        return ""
    return NEXT if after in others else BEFORE if before in others else naming(others[0])


def naming(other: str) -> str:
    """Return what is shown where the memory that is contradicted is not beside it."""
    return f"{_BEGINNING}{other}{_END}"


def is_marker(line: str) -> bool:
    """Tell whether a line that is shown is such a marker, and no memory."""
    bare = line.strip()
    return bare.startswith(_BEGINNING) and bare.endswith(_END)


def relinked(bullet: bytes, entry: Entry, others: Sequence[str]) -> bytes:
    """Return the bullet of an entry whose id stands in it, naming `others` and no more; every other byte stays."""
    shown = bullet
    for key, value in entry.extra:
        before, field, after = shown.rpartition(f" [{key}:: {value}]".encode("utf-8", "surrogatepass"))
        shown = before + after if key == CONTRADICTS and field else shown
    before, name, after = shown.rpartition(f"^{entry.id}".encode())
    if not name or not others:
        return shown
    return before + f"[{CONTRADICTS}:: {','.join(others)}] ".encode() + name + after
