"""What an update of a profile asks for, whoever wrote it: a model, the rules, or another system.

Nothing of it holds yet: the gate of `plan` decides item by item.
"""

from dataclasses import dataclass, field
from typing import Literal

from ricordo.workspace.profile import Fact, FactSource, Profile

__all__ = [
    "UpdateResult",
    "FactConfirmation",
    "EvictedFact",
    "FactExtension",
    "UpdateLabels",
    "FactMerge",
    "NewFact",
    "ProfileUpdate",
    "RejectedItem",
    "FactRemoval",
    "SummaryEdit",
]


@dataclass(frozen=True, kw_only=True)
class UpdateLabels:
    """How an item was labelled; a label that was not given is empty and fails the gate.

    `scope` is whom it is about (user), `durability` how long it holds (durable), `authority` what it is (descriptive).
    """

    scope: str = ""
    durability: str = ""
    authority: str = ""


@dataclass(frozen=True, kw_only=True)
class SummaryEdit:
    """A new text for the summary `name`, such as `topOfMind`."""

    name: str
    summary: str
    labels: UpdateLabels = UpdateLabels()


@dataclass(frozen=True, kw_only=True)
class NewFact:
    """A fact to be added; `source_error` says what was wrong before, for a correction."""

    content: str
    category: str = "context"
    confidence: float = 0.5
    valid_days: int | None = None
    source_error: str | None = None
    source: FactSource = field(default_factory=FactSource)
    labels: UpdateLabels = UpdateLabels()


@dataclass(frozen=True, kw_only=True)
class FactRemoval:
    """A fact to be taken out. `replacement` is the number of the new fact, from 0, that takes its place.

    `stale` marks one that a review of old facts asked for.
    """

    id: str
    reason: str = ""
    labels: UpdateLabels = UpdateLabels()
    replacement: int | None = None
    stale: bool = False


@dataclass(frozen=True, kw_only=True)
class FactConfirmation:
    """A fact that was said again, or praised."""

    id: str
    reason: str = ""
    labels: UpdateLabels = UpdateLabels()


@dataclass(frozen=True, kw_only=True)
class FactExtension:
    """An old fact that a review wants to keep for `days` more; None for as long as its kind lasts."""

    id: str
    days: int | None = None
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class FactMerge:
    """Facts that become one: the ids of the sources, and the fact that stands for them."""

    sources: tuple[str, ...]
    fact: NewFact


@dataclass(frozen=True, kw_only=True)
class ProfileUpdate:
    """All that one update asks for."""

    summaries: tuple[SummaryEdit, ...] = ()
    facts: tuple[NewFact, ...] = ()
    removals: tuple[FactRemoval, ...] = ()
    confirmations: tuple[FactConfirmation, ...] = ()
    extensions: tuple[FactExtension, ...] = ()
    mergings: tuple[FactMerge, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RejectedItem:
    """An item that was not carried out, and why, in a word that can be counted; never its content."""

    item: Literal["summary", "fact", "removal", "confirmation", "extension", "merging"]
    reason: str
    id: str = ""


@dataclass(frozen=True, kw_only=True)
class EvictedFact:
    """A fact that left for want of room, as an audit keeps it: never its content. `score` is its rank, higher stays."""

    id: str
    category: str
    score: float


@dataclass(frozen=True, kw_only=True)
class UpdateResult:
    """What became of an update: the profile, what was turned down, and what has to leave it.

    `archived` are the ids of facts that left for want of room, lowest rank first; their content goes to the archive.
    `removed`, `added` and `confirmed` are ids too, and `merged` those of the facts that others took in. `left` are the
    facts that `archived` and `merged` name, as they were; `evicted` says how those of `archived` ranked.
    """

    profile: Profile
    rejections: tuple[RejectedItem, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    confirmed: tuple[str, ...] = ()
    archived: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()
    left: tuple[Fact, ...] = ()
    evicted: tuple[EvictedFact, ...] = ()
