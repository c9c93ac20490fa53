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
from ricordo.profile.gate import parse_confidence
from ricordo.profile.types import EvictedFact
from ricordo.workspace.profile import CORRECTION, Fact, parse_profile_time

__all__ = ["TrimResult", "last_confirmed", "fact_rank", "trim_facts"]

_CONFIDENCE, _RECENCY, _REPETITION = 0.65, 0.25, 0.10
_HALF_LIFE_DAYS = 90.0
_FULL_CONFIRMATIONS = 8
_DAY_SECONDS = 86_400.0
_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class TrimResult:
    """The facts that stay, in their order, and those that leave, lowest rank first, with their ranks."""

    facts: tuple[Fact, ...]
    left: tuple[Fact, ...] = ()
    evicted: tuple[EvictedFact, ...] = ()


def trim_facts(
    facts: Sequence[Fact], *, now: datetime, config: ProfileConfig, kept: Collection[str] = ()
) -> TrimResult:
    """Return at most `max_facts` facts; more only when a person gave more than that. `kept` are ids that stay."""
    if len(facts) <= config.max_facts:
        return TrimResult(facts=tuple(facts))
    staying = {fact.id for fact in facts if fact.is_protected or fact.id in kept}
    ordered = sorted(
        (fact for fact in facts if fact.id not in staying),
        key=lambda fact: (fact_rank(fact, now=now, config=config), last_confirmed(fact) or _NEVER),
        reverse=True,
    )
    reserved = min(config.correction_reserved_max, int(config.max_facts * config.correction_reserved_fraction))
    corrections = [fact.id for fact in ordered if fact.category == CORRECTION]
    room = max(config.max_facts - len(staying), 0)
    first = corrections[: min(reserved, room)]
    others = [fact.id for fact in ordered if fact.id not in set(first)]
    staying.update(first, others[: room - len(first)])
    left = tuple(fact for fact in reversed(ordered) if fact.id not in staying)
    return TrimResult(
        facts=tuple(fact for fact in facts if fact.id in staying),
        left=left,
        evicted=tuple(
            EvictedFact(id=fact.id, category=fact.category, score=round(fact_rank(fact, now=now, config=config), 4))
            for fact in left
        ),
    )


def fact_rank(fact: Fact, *, now: datetime, config: ProfileConfig) -> float:
    """Return the rank of a fact in 0..1, higher stays longer."""
    surety = parse_confidence(fact.confidence) or 0.0
    if config.fact_eviction_policy == "confidence":
        return surety
    last = last_confirmed(fact)
    age = max((now - last).total_seconds() / _DAY_SECONDS, 0.0) if last else None
    recency = 0.0 if age is None else 0.5 ** (age / _HALF_LIFE_DAYS)
    repetition = min(log2(max(fact.confirmations, 1)) / log2(_FULL_CONFIRMATIONS), 1.0)
    return _CONFIDENCE * surety + _RECENCY * recency + _REPETITION * repetition


def last_confirmed(fact: Fact) -> datetime | None:
    """Return when a fact was last confirmed, or else learned; None when no such time can be read."""
    return parse_profile_time(fact.confirmed_at) or parse_profile_time(fact.created_at)
