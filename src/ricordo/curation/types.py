"""Values of a consolidation: candidate entries, advice of a model, decisions, a proposal, and the result of a run."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import field
from decimal import Decimal
from typing import Literal, TypeAlias, get_args

from ricordo.events import count_refusals
from ricordo.lazy import dataclass
from ricordo.workspace.entry import Entry
from ricordo.workspace.layout import MEMORY_PATH, TOPICS

__all__ = [
    "MAX_PARENTS",
    "RETIREMENT_REASONS",
    "Advice",
    "AdviceCost",
    "CandidateEntry",
    "ConsolidationResult",
    "LineMerge",
    "Proposal",
    "Reconciliation",
    "Refusal",
    "Retirement",
    "RetirementReason",
    "Supersession",
    "count_changed_lines",
    "event_counts",
]


MAX_PARENTS = 8
"""The maximum number of lines in one merge."""
RetirementReason: TypeAlias = Literal["done", "outdated", "passing", "trivial"]
"""Why a memory is no longer useful: it is done, outdated, was relevant for one day, or never mattered."""
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
    "date",
    "older",
    "speaker",
    "subject",
    "trust",
    "too many",
]
"""Why a proposal of a model is not carried out: a word that can be counted and reveals no content."""


@dataclass(frozen=True, kw_only=True)
class CandidateEntry:
    """An entry of a ledger that no run has read yet; `long` is the path of the file of a long one.

    `edited` says that a run has read its line, and that the line changed since.
    """

    entry: Entry
    long: str | None = None
    edited: bool = False


@dataclass(frozen=True, kw_only=True)
class Supersession:
    """The entry with id `new` replaces the entry with id `old`."""

    old: str
    new: str


@dataclass(frozen=True, kw_only=True)
class Retirement:
    """The entry `id` leaves curated memory without a replacement; it stays in its ledger, marked with the reason."""

    id: str
    reason: RetirementReason


@dataclass(frozen=True, kw_only=True)
class LineMerge:
    """The entries `parents` become one line, `content`."""

    parents: tuple[str, ...]
    content: str


@dataclass(frozen=True, kw_only=True)
class AdviceCost:
    """The cost of the requests: their number, tokens in and out, and US dollars, None where a price is unknown."""

    requests: int = 0
    tokens: int = 0
    dollars: Decimal | None = Decimal(0)

    def __add__(self, other: "AdviceCost") -> "AdviceCost":
        """Return the sum of both."""
        is_known = self.dollars is not None and other.dollars is not None
        return AdviceCost(
            requests=self.requests + other.requests,
            tokens=self.tokens + other.tokens,
            dollars=(self.dollars or Decimal(0)) + (other.dollars or Decimal(0)) if is_known else None,
        )


@dataclass(frozen=True, kw_only=True)
class Advice:
    """The proposals of a model, not yet checked against memory. `topics` maps ids of entries to topics.

    `shown` are the ids of the entries that the model saw, one set for each request: of two that it saw together, it
    would have named one that holds no longer.
    `note` says why the rules decided alone although a model was configured; `flaw` why the whole answer is unusable.
    """

    merges: tuple[LineMerge, ...] = ()
    superseded: tuple[Supersession, ...] = ()
    retired: tuple[Retirement, ...] = ()
    topics: Mapping[str, str] = field(default_factory=dict)
    shown: tuple[frozenset[str], ...] = ()
    note: str = ""
    flaw: str = ""
    cost: AdviceCost = field(default_factory=AdviceCost)

    def __add__(self, other: "Advice") -> "Advice":
        """Return both together; the first note and the first flaw win."""
        return Advice(
            merges=(*self.merges, *other.merges),
            superseded=(*self.superseded, *other.superseded),
            retired=(*self.retired, *other.retired),
            topics={**other.topics, **self.topics},
            shown=(*self.shown, *other.shown),
            note=self.note or other.note,
            flaw=self.flaw or other.flaw,
            cost=self.cost + other.cost,
        )


@dataclass(frozen=True, kw_only=True)
class Reconciliation:
    """The decisions about the entries, before any is placed.

    `active` holds the entries to curate by id; `changed` are the ids of those that were already curated and now differ.
    `merged` are ids of entries that duplicate another one, `left` those that stay in the ledger only. `refused` holds
    the reason for each refused proposal of a model, `topics` the topic of an entry. `undecided` are pairs of ids of
    active entries that contradict each other, the earlier statement first. `outdated` gives by the id of an active
    entry that of a newer one that may have made it outdated.
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
    outdated: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """The result of a run before it is written: `documents` are new contents by path, None for a file to delete.

    `kept` and `left` are ids of new entries: curated, and staying in the ledger only; `merged` are ids of entries that
    duplicate another one. `refused` holds the reason for each refused proposal of a model, `rejected` the reason why
    its whole answer is unusable, `note` the reason why the rules decided alone. `cap` names the bound of MEMORY.md that
    excluded an entry: lines, bytes or tokens. `undecided` are pairs of ids of curated entries that contradict each
    other, the earlier statement first. `profiles` are the new contents of profiles that lose facts, by path;
    `in_profile` are the ids of the entries for which a fact of a profile stands, so that they are not curated.
    `uncurated` are the ids of the newest entries that this run and earlier ones left in the ledgers.
    """

    documents: Mapping[str, bytes | None] = field(default_factory=dict)
    profiles: Mapping[str, bytes] = field(default_factory=dict)
    in_profile: tuple[str, ...] = ()
    uncurated: tuple[str, ...] = ()
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
    """The result of a run: `change_id` is empty when it wrote nothing, `skipped` says why.

    Counts are of entries: `read` were new, `kept` are curated now, `merged` duplicate another one, `superseded` were
    replaced, `retired` left curated memory, `left` stay in the ledger only, `waiting` are for the next run. `files` are
    paths below the workspace. `refused` holds the reason for each refused proposal of a model, `note` the reason why
    the rules decided alone although a model was configured, `cost` the cost of the requests. `deep` is true for a
    dream. `cap` names the bound of MEMORY.md that excluded an entry: lines, bytes or tokens. `undecided` counts the
    pairs of curated memories that contradict each other without a decision.
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


def event_counts(result: ConsolidationResult) -> dict[str, int]:
    """Return the counts for the event of a run; a cost is in millionths of a US dollar."""
    counts = {
        "entries": result.read,
        "kept": result.kept,
        "merged": result.merged,
        "superseded": result.superseded,
        "left": result.left,
    }
    advice_counts = {
        "undecided": result.undecided,
        "retired": result.retired,
        **count_refusals(result.refused),
        "requests": result.cost.requests,
        "tokens": result.cost.tokens,
        "microdollars": int((result.cost.dollars or 0) * 1_000_000),
    }
    return counts | {name: count for name, count in advice_counts.items() if count}


def count_changed_lines(before: Mapping[str, bytes], after: Mapping[str, bytes | None]) -> dict[str, int]:
    """Return the number of files, and of curated lines that a proposal adds and removes."""
    added = removed = 0
    for path, data in after.items():
        if path == MEMORY_PATH or path.startswith(f"{TOPICS}/"):
            old, new = Counter(before.get(path, b"").splitlines()), Counter((data or b"").splitlines())
            added, removed = added + (new - old).total(), removed + (old - new).total()
    return {"files": len(after), "added": added, "removed": removed}
