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
from ricordo.profile.gate import parse_confidence
from ricordo.profile.trimming import last_confirmed
from ricordo.profile.types import FactExtension, RejectedItem, FactRemoval
from ricordo.workspace.profile import Fact, Profile, parse_profile_time, format_profile_time

__all__ = ["ReviewResult", "lifetime_days", "review_facts", "select_for_review"]

_MAX_LIFETIME_DAYS = 36_500


@dataclass(frozen=True, kw_only=True)
class ReviewResult:
    """The facts after a review, the ids of those that went, and what was turned down."""

    facts: tuple[Fact, ...]
    removed: tuple[str, ...] = ()
    rejections: tuple[RejectedItem, ...] = ()


def lifetime_days(fact: Fact, config: ProfileConfig) -> int:
    """Return how many days a fact holds from its last confirmation on."""
    days: object = fact.valid_days
    if isinstance(days, bool) or not isinstance(days, int) or days < 1:
        return config.staleness_age_days
    return min(days, _MAX_LIFETIME_DAYS)


def select_for_review(profile: Profile, *, now: datetime, config: ProfileConfig) -> tuple[Fact, ...]:
    """Return the facts to ask about, the least sure first; empty when they are too few, or the review is off."""
    if not config.staleness_review_enabled:
        return ()
    found = [fact for fact in profile.facts if _is_review_due(fact, now, config)]
    if len(found) < config.staleness_min_candidates:
        return ()
    return tuple(sorted(found, key=_review_order)[: config.staleness_max_reviewed])


def review_facts(
    facts: Sequence[Fact],
    removals: Sequence[FactRemoval],
    extensions: Sequence[FactExtension],
    *,
    shown: Collection[str],
    now: datetime,
    config: ProfileConfig,
) -> ReviewResult:
    """Return the facts after the verdicts on those with the ids `shown`; with none shown every verdict is refused."""
    asked = {fact.id: fact for fact in facts if fact.id in set(shown) and _is_review_due(fact, now, config)}
    if not config.staleness_review_enabled:
        asked = {}
    rejections: list[RejectedItem] = []
    unwanted = {removal.id for removal in removals}
    wanted: list[Fact] = []
    for removal in removals:
        flaw = "" if removal.id in asked else "not reviewed"
        flaw = flaw or ("" if removal.reason.strip() else "reason")
        if flaw:
            rejections.append(RejectedItem(item="removal", reason=flaw, id=removal.id))
        elif asked[removal.id] not in wanted:
            wanted.append(asked[removal.id])
    wanted.sort(key=_review_order)
    going = {fact.id for fact in wanted[: config.staleness_max_removals_per_cycle]}
    rejections.extend(
        RejectedItem(item="removal", reason="too many", id=fact.id)
        for fact in wanted[config.staleness_max_removals_per_cycle :]
    )
    days, refused = _find_extensions(extensions, asked, unwanted, now=now, config=config)
    return ReviewResult(
        facts=tuple(_apply_verdict(fact, asked, days, now) for fact in facts if fact.id not in going),
        removed=tuple(fact.id for fact in facts if fact.id in going),
        rejections=(*rejections, *refused),
    )


def _find_extensions(
    extensions: Sequence[FactExtension],
    asked: Mapping[str, Fact],
    unwanted: Collection[str],
    *,
    now: datetime,
    config: ProfileConfig,
) -> tuple[Mapping[str, int], tuple[RejectedItem, ...]]:
    """Return the new lifetimes in days, and the extensions that were refused."""
    days: dict[str, int] = {}
    refused: list[RejectedItem] = []
    for extension in extensions:
        fact = asked.get(extension.id)
        flaw = "not reviewed" if fact is None else "unwanted" if extension.id in unwanted else ""
        if not flaw and extension.days is not None and extension.days < 1:
            flaw = "days"
        if flaw or fact is None:
            refused.append(RejectedItem(item="extension", reason=flaw, id=extension.id))
        elif extension.days is not None:
            last = last_confirmed(fact)
            age = (now - last).days if last else 0
            days[extension.id] = min(age + extension.days, config.staleness_max_extension_days)
    return days, tuple(refused)


def _apply_verdict(fact: Fact, asked: Mapping[str, Fact], days: Mapping[str, int], now: datetime) -> Fact:
    """Return a fact with what a review wrote down of it; one that was not asked about as it is."""
    if fact.id not in asked:
        return fact
    kept = days.get(fact.id, fact.valid_days)
    return replace(fact, valid_days=kept, reviewed_at=format_profile_time(now), revision=fact.revision + 1)


def _is_review_due(fact: Fact, now: datetime, config: ProfileConfig) -> bool:
    if fact.is_protected or fact.category in config.staleness_protected_categories:
        return False
    span = timedelta(days=lifetime_days(fact, config))
    last, asked = last_confirmed(fact), parse_profile_time(fact.reviewed_at)
    return last is not None and now - last > span and (asked is None or now - asked > span)


def _review_order(fact: Fact) -> tuple[float, str, str]:
    return parse_confidence(fact.confidence) or 0.0, fact.created_at, fact.id
