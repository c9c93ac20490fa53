"""Values of a consolidation: candidate entries, advice of a model, decisions, a proposal, and the result of a run."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal, TypeAlias, get_args

from ricordo.workspace.entry import Entry
from ricordo.workspace.layout import MEMORY_PATH, TOPICS

__all__ = [
    "Advice",
    "AdviceCost",
    "CandidateEntry",
    "ConsolidationResult",
    "LineMerge",
    "MAX_PARENTS",
    "Proposal",
    "RETIREMENT_REASONS",
    "Reconciliation",
    "Refusal",
    "Retirement",
    "RetirementReason",
    "Supersession",
    "count_changed_lines",
    "event_counts",
]


MAX_PARENTS = 8
"""How many lines may become one."""
RetirementReason: TypeAlias = Literal["done", "outdated", "passing", "trivial"]
"""Why a memory is of no more use: what it speaks of is done, no longer so, was of one day, or never mattered."""
RETIREMENT_REASONS: tuple[RetirementReason, ...] = get_args(RetirementReason)
Refusal: TypeAlias = Literal[
    "unknown",
    "kept",
    "too few",
    "invented",
    "lost",
    "order",
    "too long",
    "unlike",
    "contradiction",
    "older",
    "subject",
    "too many",
]
"""Why something that a model proposed is not done, in a word that can be counted and says nothing of the content."""


@dataclass(frozen=True, kw_only=True)
class CandidateEntry:
    """An entry of a ledger that no run has read yet; `long` is the path of the file of a long one.

    `edited` tells that a run has read its line, which says something else since.
    """

    entry: Entry
    long: str | None = None
    edited: bool = False


@dataclass(frozen=True, kw_only=True)
class Supersession:
    """The entry `old` whose place `new` has taken, by their ids."""

    old: str
    new: str


@dataclass(frozen=True, kw_only=True)
class Retirement:
    """The entry `id` leaves curated memory though no other stands for it; it stays in its ledger, marked with why."""

    id: str
    reason: RetirementReason


@dataclass(frozen=True, kw_only=True)
class LineMerge:
    """The entries `parents` are to be one line, `content`."""

    parents: tuple[str, ...]
    content: str


@dataclass(frozen=True, kw_only=True)
class AdviceCost:
    """What asking took: requests, tokens in and out, and US dollars, None where a price is not known."""

    requests: int = 0
    tokens: int = 0
    dollars: Decimal | None = Decimal(0)

    def __add__(self, other: "AdviceCost") -> "AdviceCost":
        """Return both together."""
        known = self.dollars is not None and other.dollars is not None
        return AdviceCost(
            requests=self.requests + other.requests,
            tokens=self.tokens + other.tokens,
            dollars=(self.dollars or Decimal(0)) + (other.dollars or Decimal(0)) if known else None,
        )


@dataclass(frozen=True, kw_only=True)
class Advice:
    """What a model proposed, none of it checked against memory yet. `topics` names the topic of entries by their ids.

    `note` says why the rules decided alone where a model was to be asked; `flaw` why the answer can't be used at all.
    """

    merges: tuple[LineMerge, ...] = ()
    superseded: tuple[Supersession, ...] = ()
    retired: tuple[Retirement, ...] = ()
    topics: Mapping[str, str] = field(default_factory=dict)
    note: str = ""
    flaw: str = ""
    cost: AdviceCost = field(default_factory=AdviceCost)

    def __add__(self, other: "Advice") -> "Advice":
        """Return both together; the first note and flaw count."""
        return Advice(
            merges=(*self.merges, *other.merges),
            superseded=(*self.superseded, *other.superseded),
            retired=(*self.retired, *other.retired),
            topics={**other.topics, **self.topics},
            note=self.note or other.note,
            flaw=self.flaw or other.flaw,
            cost=self.cost + other.cost,
        )


@dataclass(frozen=True, kw_only=True)
class Reconciliation:
    """What was decided about the entries, before anything is placed.

    `active` holds by id what is to be curated, `changed` names those of them that were curated already and read
    otherwise now. `merged` are ids of entries that another one says already, `left` those that stay in the ledger only.
    `refused` says of each proposal of a model that was not carried out why, `topics` which topic an entry is to have.
    `undecided` are pairs of active entries that contradict each other, by their ids, the one that was said first first.
    """

    active: Mapping[str, CandidateEntry]
    changed: frozenset[str]
    merged: tuple[str, ...]
    superseded: tuple[Supersession, ...]
    left: tuple[str, ...]
    retired: tuple[Retirement, ...] = ()
    refused: tuple[Refusal, ...] = ()
    topics: Mapping[str, str] = field(default_factory=dict)
    undecided: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """What a run would write: `documents` are new contents by path, None for a file that goes.

    `kept` and `left` are ids of new entries: curated, and staying in the ledger only; `merged` are those of entries
    that another one says already. `refused` says of each proposal of a model that is not in it why,
    `rejected` why its answer as a whole was of no use, `note` why the rules decided alone. `cap` names
    the bound of MEMORY.md that kept an entry out of it: lines, bytes or tokens. `undecided` are the pairs of curated
    entries that contradict each other, by their ids, the one that was said first first.
    """

    documents: Mapping[str, bytes | None] = field(default_factory=dict)
    kept: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()
    superseded: tuple[Supersession, ...] = ()
    left: tuple[str, ...] = ()
    retired: tuple[Retirement, ...] = ()
    refused: tuple[Refusal, ...] = ()
    rejected: str = ""
    note: str = ""
    cap: str = ""
    undecided: tuple[tuple[str, str], ...] = ()


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
