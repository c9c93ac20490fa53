"""What a run of consolidation came to, and how it is counted. Pure."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from ricordo.consolidation.types import AdviceCost, Refusal
from ricordo.workspace.layout import MEMORY_PATH, TOPICS

__all__ = ["ConsolidationResult", "event_counts", "count_changed_lines"]


@dataclass(frozen=True, kw_only=True)
class ConsolidationResult:
    """What a run did: `change_id` is empty when it wrote nothing, `skipped` says why.

    Counts are of entries: `read` were new, `kept` are curated now, `merged` are said already by another, `superseded`
    lost their place, `retired` left view, `left` stay in the ledger only, `waiting` are for the next run. `files` are
    below the workspace. `refused` says of each proposal of a model that was not carried out why, `note` why the rules
    decided alone though a model was to be asked, and `cost` what asking took. `deep` tells that it was a dream.
    `cap` names the bound of MEMORY.md that kept an entry out of it: lines, bytes or tokens. `undecided` counts the
    pairs of curated memories that contradict each other, and of which nothing says which one holds.
    """

    change_id: str = ""
    read: int = 0
    kept: int = 0
    merged: int = 0
    superseded: int = 0
    retired: int = 0
    left: int = 0
    waiting: int = 0
    files: tuple[str, ...] = ()
    skipped: str = ""
    refused: tuple[Refusal, ...] = ()
    note: str = ""
    cost: AdviceCost = field(default_factory=AdviceCost)
    deep: bool = False
    cap: str = ""
    undecided: int = 0


def event_counts(done: ConsolidationResult) -> dict[str, int]:
    """Return what the event of a run counts; a cost is in millionths of a US dollar."""
    counts = {
        "entries": done.read,
        "kept": done.kept,
        "merged": done.merged,
        "superseded": done.superseded,
        "left": done.left,
    }
    asked = {
        "undecided": done.undecided,
        "retired": done.retired,
        "refused": len(done.refused),
        "requests": done.cost.requests,
        "tokens": done.cost.tokens,
        "microdollars": int((done.cost.dollars or 0) * 1_000_000),
    }
    return counts | {name: count for name, count in asked.items() if count}


def count_changed_lines(before: Mapping[str, bytes], after: Mapping[str, bytes | None]) -> dict[str, int]:
    """Return how many lines of curated memory a proposal adds and removes."""
    added = removed = 0
    for path, data in after.items():
        if path == MEMORY_PATH or path.startswith(f"{TOPICS}/"):
            old, new = Counter(before.get(path, b"").splitlines()), Counter((data or b"").splitlines())
            added, removed = added + (new - old).total(), removed + (old - new).total()
    return {"files": len(after), "added": added, "removed": removed}
