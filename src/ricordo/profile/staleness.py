"""The review of old facts: which are asked about, and what a verdict does. Pure.

A fact is old when nobody confirmed it for its lifetime, its own or the one of the config. What a person gave and the
protected categories are never asked about, nor is a fact whose times can't be read. Whoever was asked about and stays
is not asked about again before another lifetime has passed: a verdict to keep is written down.

Invariant: only what was shown is removed or extended, a fact that somebody wants removed is never extended, and an
extension counts from the same moment as the review does.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from ricordo.profile.config import ProfileConfig
from ricordo.profile.gate import sure
from ricordo.profile.trimming import confirmed_last
from ricordo.profile.types import Extension, Rejection, Removal
from ricordo.workspace.profile import Fact, Profile, moment_of, written

__all__ = ["Reviewed", "lifetime", "reviewed", "to_review"]

_LONGEST_DAYS = 36_500


@dataclass(frozen=True, kw_only=True)
class Reviewed:
    """The facts after a review, the ids of those that went, and what was turned down."""

    facts: tuple[Fact, ...]
    removed: tuple[str, ...] = ()
    rejections: tuple[Rejection, ...] = ()


def lifetime(fact: Fact, config: ProfileConfig) -> int:
    """Return how many days a fact holds from its last confirmation on."""
    days: object = fact.valid_days
    if isinstance(days, bool) or not isinstance(days, int) or days < 1:
        return config.staleness_age_days
    return min(days, _LONGEST_DAYS)


def to_review(profile: Profile, *, now: datetime, config: ProfileConfig) -> tuple[Fact, ...]:
    """Return the facts to ask about, the least sure first; empty when they are too few, or the review is off."""
    if not config.staleness_review_enabled:
        return ()
    found = [fact for fact in profile.facts if _is_due(fact, now, config)]
    if len(found) < config.staleness_min_candidates:
        return ()
    return tuple(sorted(found, key=_surety)[: config.staleness_max_reviewed])


def reviewed(
    facts: Sequence[Fact],
    removals: Sequence[Removal],
    extensions: Sequence[Extension],
    *,
    shown: Collection[str],
    now: datetime,
    config: ProfileConfig,
) -> Reviewed:
    """Return the facts after the verdicts on those with the ids `shown`; with none shown every verdict is refused."""
    asked = {fact.id: fact for fact in facts if fact.id in set(shown) and _is_due(fact, now, config)}
    if not config.staleness_review_enabled:
        asked = {}
    rejections: list[Rejection] = []
    unwanted = {removal.id for removal in removals}
    wanted: list[Fact] = []
    for removal in removals:
        flaw = "" if removal.id in asked else "not reviewed"
        flaw = flaw or ("" if removal.reason.strip() else "reason")
        if flaw:
            rejections.append(Rejection(item="removal", reason=flaw, id=removal.id))
        elif asked[removal.id] not in wanted:
            wanted.append(asked[removal.id])
    wanted.sort(key=_surety)
    going = {fact.id for fact in wanted[: config.staleness_max_removals_per_cycle]}
    rejections.extend(
        Rejection(item="removal", reason="too many", id=fact.id)
        for fact in wanted[config.staleness_max_removals_per_cycle :]
    )
    days, refused = _extended(extensions, asked, unwanted, now=now, config=config)
    return Reviewed(
        facts=tuple(_verdict(fact, asked, days, now) for fact in facts if fact.id not in going),
        removed=tuple(fact.id for fact in facts if fact.id in going),
        rejections=(*rejections, *refused),
    )


def _extended(
    extensions: Sequence[Extension],
    asked: Mapping[str, Fact],
    unwanted: Collection[str],
    *,
    now: datetime,
    config: ProfileConfig,
) -> tuple[Mapping[str, int], tuple[Rejection, ...]]:
    """Return the new lifetimes in days, and the extensions that were refused."""
    days: dict[str, int] = {}
    refused: list[Rejection] = []
    for extension in extensions:
        fact = asked.get(extension.id)
        flaw = "not reviewed" if fact is None else "unwanted" if extension.id in unwanted else ""
        if not flaw and extension.days is not None and extension.days < 1:
            flaw = "days"
        if flaw or fact is None:
            refused.append(Rejection(item="extension", reason=flaw, id=extension.id))
        elif extension.days is not None:
            last = confirmed_last(fact)
            age = (now - last).days if last else 0
            days[extension.id] = min(age + extension.days, config.staleness_max_extension_days)
    return days, tuple(refused)


def _verdict(fact: Fact, asked: Mapping[str, Fact], days: Mapping[str, int], now: datetime) -> Fact:
    """Return a fact with what a review wrote down of it; one that was not asked about as it is."""
    if fact.id not in asked:
        return fact
    kept = days.get(fact.id, fact.valid_days)
    return replace(fact, valid_days=kept, reviewed_at=written(now), revision=fact.revision + 1)


def _is_due(fact: Fact, now: datetime, config: ProfileConfig) -> bool:
    if fact.is_kept or fact.category in config.staleness_protected_categories:
        return False
    span = timedelta(days=lifetime(fact, config))
    last, asked = confirmed_last(fact), moment_of(fact.reviewed_at)
    return last is not None and now - last > span and (asked is None or now - asked > span)


def _surety(fact: Fact) -> tuple[float, str, str]:
    return sure(fact.confidence) or 0.0, fact.created_at, fact.id
