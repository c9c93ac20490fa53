"""Trimming: which facts stay when there are more than there is room for. Pure.

First what only a person may remove, and what takes a corrected fact's place; then as many corrections as places are
reserved for them; then the others by rank. Reserved places that no correction needs go to the others.

Rank is the confidence, or with the policy `hybrid` a weighted sum that can be checked by hand: 0.65 of the confidence,
0.25 of how recently it was confirmed (halved every 90 days; being learned counts as a confirmation), 0.10 of how often
(log2, full from eight times on). Equal ranks: the one confirmed later, then the one that was there first.

Invariant: the facts that stay keep their order, and the same facts at the same time always stay.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import log2

from ricordo.profile.config import ProfileConfig
from ricordo.profile.gate import sure
from ricordo.profile.types import Evicted
from ricordo.workspace.profile import CORRECTION, Fact, moment_of

__all__ = ["Trimmed", "confirmed_last", "rank", "trimmed"]

_CONFIDENCE, _RECENCY, _REPETITION = 0.65, 0.25, 0.10
_HALF_LIFE_DAYS = 90.0
_OFTEN = 8
_DAY = 86_400.0
_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Trimmed:
    """The facts that stay, in their order, and those that leave, lowest rank first, with their ranks."""

    facts: tuple[Fact, ...]
    left: tuple[Fact, ...] = ()
    evicted: tuple[Evicted, ...] = ()


def trimmed(facts: Sequence[Fact], *, now: datetime, config: ProfileConfig, kept: Collection[str] = ()) -> Trimmed:
    """Return at most `max_facts` facts; more only when a person gave more than that. `kept` are ids that stay."""
    if len(facts) <= config.max_facts:
        return Trimmed(facts=tuple(facts))
    staying = {fact.id for fact in facts if fact.is_kept or fact.id in kept}
    ordered = sorted(
        (fact for fact in facts if fact.id not in staying),
        key=lambda fact: (rank(fact, now=now, config=config), confirmed_last(fact) or _NEVER),
        reverse=True,
    )
    reserved = min(config.correction_reserved_max, int(config.max_facts * config.correction_reserved_fraction))
    corrections = [fact.id for fact in ordered if fact.category == CORRECTION]
    room = max(config.max_facts - len(staying), 0)
    first = corrections[: min(reserved, room)]
    others = [fact.id for fact in ordered if fact.id not in set(first)]
    staying.update(first, others[: room - len(first)])
    left = tuple(fact for fact in reversed(ordered) if fact.id not in staying)
    return Trimmed(
        facts=tuple(fact for fact in facts if fact.id in staying),
        left=left,
        evicted=tuple(
            Evicted(id=fact.id, category=fact.category, score=round(rank(fact, now=now, config=config), 4))
            for fact in left
        ),
    )


def rank(fact: Fact, *, now: datetime, config: ProfileConfig) -> float:
    """Return the rank of a fact in 0..1, higher stays longer."""
    surety = sure(fact.confidence) or 0.0
    if config.fact_eviction_policy == "confidence":
        return surety
    last = confirmed_last(fact)
    age = max((now - last).total_seconds() / _DAY, 0.0) if last else None
    recency = 0.0 if age is None else 0.5 ** (age / _HALF_LIFE_DAYS)
    repetition = min(log2(max(fact.confirmations, 1)) / log2(_OFTEN), 1.0)
    return _CONFIDENCE * surety + _RECENCY * recency + _REPETITION * repetition


def confirmed_last(fact: Fact) -> datetime | None:
    """Return when a fact was last confirmed, or else learned; None when no such time can be read."""
    return moment_of(fact.confirmed_at) or moment_of(fact.created_at)
