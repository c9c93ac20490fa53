"""The rules about facts: their rank and cap, the review of old facts, and the merging of facts that say the same.

Rank is the confidence, or with the policy `hybrid` 0.65 of the confidence, 0.25 of the recency of the last confirmation
(halved every 90 days) and 0.10 of the number of confirmations (log2, full from eight on). Corrections have reserved
places. A fact is reviewed when it was not confirmed during its lifetime. A repeated fact is confirmed and keeps its
sources.

Invariants: remaining facts keep their order. A fact that a person added or pinned is never reviewed, merged or evicted.
A review removes or extends only facts that were shown. A merged fact is never more certain than its sources. Without an
embedder, similarity is decided by words alone.
"""

import logging
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from math import log2
from typing import TYPE_CHECKING, TypeAlias

from ricordo.curation.config import ProfileConfig
from ricordo.curation.profile.updates import (
    EvictedFact,
    FactExtension,
    FactMerge,
    FactRemoval,
    RejectedItem,
    find_fact_flaw,
    parse_confidence,
)
from ricordo.errors import ModelError
from ricordo.language.duplicates import find_duplicate
from ricordo.lazy import dataclass
from ricordo.messages.types import JsonValue
from ricordo.models.contract import Embedder
from ricordo.workspace.profile import CORRECTION, Fact, FactSource, Profile, format_profile_time, parse_profile_time

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "SOURCES_FIELD",
    "FactSimilarity",
    "MergeResult",
    "ReviewResult",
    "SimilarityFunction",
    "TrimResult",
    "confirm_fact",
    "fact_rank",
    "fact_sources",
    "find_merge_groups",
    "find_same_fact",
    "last_confirmed",
    "lifetime_days",
    "merge_facts",
    "review_facts",
    "select_for_review",
    "trim_facts",
]


_CONFIDENCE, _RECENCY, _REPETITION = 0.65, 0.25, 0.10
_HALF_LIFE_DAYS = 90.0
_FULL_CONFIRMATIONS = 8
_DAY_SECONDS = 86_400.0
_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class TrimResult:
    """The remaining facts, in order, and the evicted ones, lowest rank first, with their ranks."""

    facts: tuple[Fact, ...]
    left: tuple[Fact, ...] = ()
    evicted: tuple[EvictedFact, ...] = ()


def trim_facts(
    facts: Sequence[Fact], *, now: datetime, config: ProfileConfig, keep_ids: Collection[str] = ()
) -> TrimResult:
    """Return at most `max_facts` facts; more only if more are protected. `keep_ids` are ids that stay."""
    if len(facts) <= config.max_facts:
        return TrimResult(facts=tuple(facts))
    retained_ids = {fact.id for fact in facts if fact.is_protected or fact.id in keep_ids}
    ranked = sorted(
        (fact for fact in facts if fact.id not in retained_ids),
        key=lambda fact: (fact_rank(fact, now=now, config=config), last_confirmed(fact) or _NEVER),
        reverse=True,
    )
    reserved = min(config.correction_reserved_max, int(config.max_facts * config.correction_reserved_fraction))
    corrections = [fact.id for fact in ranked if fact.category == CORRECTION]
    capacity = max(config.max_facts - len(retained_ids), 0)
    first = corrections[: min(reserved, capacity)]
    others = [fact.id for fact in ranked if fact.id not in set(first)]
    retained_ids.update(first, others[: capacity - len(first)])
    evicted = tuple(fact for fact in reversed(ranked) if fact.id not in retained_ids)
    return TrimResult(
        facts=tuple(fact for fact in facts if fact.id in retained_ids),
        left=evicted,
        evicted=tuple(
            EvictedFact(id=fact.id, category=fact.category, score=round(fact_rank(fact, now=now, config=config), 4))
            for fact in evicted
        ),
    )


def fact_rank(fact: Fact, *, now: datetime, config: ProfileConfig) -> float:
    """Return the rank of a fact in 0..1, higher stays longer."""
    confidence = parse_confidence(fact.confidence) or 0.0
    if config.fact_eviction_policy == "confidence":
        return confidence
    last = last_confirmed(fact)
    age = max((now - last).total_seconds() / _DAY_SECONDS, 0.0) if last else None
    recency = 0.0 if age is None else 0.5 ** (age / _HALF_LIFE_DAYS)
    repetition = min(log2(max(fact.confirmations, 1)) / log2(_FULL_CONFIRMATIONS), 1.0)
    return _CONFIDENCE * confidence + _RECENCY * recency + _REPETITION * repetition


def last_confirmed(fact: Fact) -> datetime | None:
    """Return when a fact was last confirmed, else when it was learned; None when neither time can be read."""
    return parse_profile_time(fact.confirmed_at) or parse_profile_time(fact.created_at)


_MAX_LIFETIME_DAYS = 36_500


@dataclass(frozen=True, kw_only=True)
class ReviewResult:
    """The facts after a review, the ids of the removed ones, and the rejected items."""

    facts: tuple[Fact, ...]
    removed: tuple[str, ...] = ()
    rejections: tuple[RejectedItem, ...] = ()


def lifetime_days(fact: Fact, config: ProfileConfig) -> int:
    """Return the number of days that a fact holds after its last confirmation."""
    days: object = fact.valid_days
    if isinstance(days, bool) or not isinstance(days, int) or days < 1:
        return config.staleness_age_days
    return min(days, _MAX_LIFETIME_DAYS)


def select_for_review(profile: Profile, *, now: datetime, config: ProfileConfig) -> tuple[Fact, ...]:
    """Return the facts to review, the least certain first; empty when there are too few, or the review is off."""
    if not config.staleness_review_enabled:
        return ()
    due = [fact for fact in profile.facts if _is_review_due(fact, now, config)]
    if len(due) < config.staleness_min_candidates:
        return ()
    return tuple(sorted(due, key=_review_order)[: config.staleness_max_reviewed])


def review_facts(
    facts: Sequence[Fact],
    removals: Sequence[FactRemoval],
    extensions: Sequence[FactExtension],
    *,
    reviewed_ids: Collection[str],
    now: datetime,
    config: ProfileConfig,
) -> ReviewResult:
    """Return the facts after the verdicts on the ids in `reviewed_ids`; verdicts on other facts are rejected."""
    due_facts = {fact.id: fact for fact in facts if fact.id in set(reviewed_ids) and _is_review_due(fact, now, config)}
    if not config.staleness_review_enabled:
        due_facts = {}
    rejections: list[RejectedItem] = []
    unwanted_ids = {removal.id for removal in removals}
    to_remove: list[Fact] = []
    for removal in removals:
        reason = "" if removal.id in due_facts else "not reviewed"
        reason = reason or ("" if removal.reason.strip() else "reason")
        if reason:
            rejections.append(RejectedItem(item="removal", reason=reason, id=removal.id))
        elif due_facts[removal.id] not in to_remove:
            to_remove.append(due_facts[removal.id])
    to_remove.sort(key=_review_order)
    removed_ids = {fact.id for fact in to_remove[: config.staleness_max_removals_per_cycle]}
    rejections.extend(
        RejectedItem(item="removal", reason="too many", id=fact.id)
        for fact in to_remove[config.staleness_max_removals_per_cycle :]
    )
    days, rejected_extensions = _find_extensions(extensions, due_facts, unwanted_ids, now=now, config=config)
    return ReviewResult(
        facts=tuple(_apply_verdict(fact, due_facts, days, now) for fact in facts if fact.id not in removed_ids),
        removed=tuple(fact.id for fact in facts if fact.id in removed_ids),
        rejections=(*rejections, *rejected_extensions),
    )


def _find_extensions(
    extensions: Sequence[FactExtension],
    due_facts: Mapping[str, Fact],
    unwanted_ids: Collection[str],
    *,
    now: datetime,
    config: ProfileConfig,
) -> tuple[Mapping[str, int], tuple[RejectedItem, ...]]:
    """Return the new lifetimes in days, and the rejected extensions."""
    days: dict[str, int] = {}
    rejections: list[RejectedItem] = []
    for extension in extensions:
        fact = due_facts.get(extension.id)
        reason = "not reviewed" if fact is None else "unwanted" if extension.id in unwanted_ids else ""
        if not reason and extension.days is not None and extension.days < 1:
            reason = "days"
        if reason or fact is None:
            rejections.append(RejectedItem(item="extension", reason=reason, id=extension.id))
        elif extension.days is not None:
            last = last_confirmed(fact)
            age = (now - last).days if last else 0
            days[extension.id] = min(age + extension.days, config.staleness_max_extension_days)
    return days, tuple(rejections)


def _apply_verdict(fact: Fact, due_facts: Mapping[str, Fact], days: Mapping[str, int], now: datetime) -> Fact:
    """Return a reviewed fact with its new lifetime and review time; any other fact unchanged."""
    if fact.id not in due_facts:
        return fact
    valid_days = days.get(fact.id, fact.valid_days)
    return replace(fact, valid_days=valid_days, reviewed_at=format_profile_time(now), revision=fact.revision + 1)


def _is_review_due(fact: Fact, now: datetime, config: ProfileConfig) -> bool:
    if fact.is_protected or fact.category in config.staleness_protected_categories:
        return False
    span = timedelta(days=lifetime_days(fact, config))
    last, reviewed_at = last_confirmed(fact), parse_profile_time(fact.reviewed_at)
    return last is not None and now - last > span and (reviewed_at is None or now - reviewed_at > span)


def _review_order(fact: Fact) -> tuple[float, str, str]:
    return parse_confidence(fact.confidence) or 0.0, fact.created_at, fact.id


SOURCES_FIELD = "sources"
"""The extra field of a fact with the sources of its repetitions, oldest first."""
SimilarityFunction: TypeAlias = Callable[[str, str], float]
"""Returns the similarity of two contents, as the cosine of their embeddings; 0 if unknown."""
_MAX_SOURCES = 20
_EARLIEST = "0001-01-01T00:00:00Z"


@dataclass(frozen=True, kw_only=True)
class MergeResult:
    """The facts after merging, the ids of the new ones, the merged ones, and the rejected items."""

    facts: tuple[Fact, ...]
    added: tuple[str, ...] = ()
    taken: tuple[Fact, ...] = ()
    rejections: tuple[RejectedItem, ...] = ()


def find_same_fact(
    content: str, facts: Sequence[Fact], config: ProfileConfig, *, similarity: SimilarityFunction | None = None
) -> Fact | None:
    """Return the fact that says the same as `content`; None without one."""
    contents = [fact.content for fact in facts]
    similarities = [similarity(content, other) for other in contents] if similarity else None
    index = find_duplicate(content, contents, threshold=config.duplicate_threshold, meanings=similarities)
    return None if index is None else facts[index]


def fact_sources(fact: Fact) -> tuple[FactSource, ...]:
    """Return all sources of a fact, the first one first."""
    entries = fact.extra.get(SOURCES_FIELD)
    rows = [row for row in entries if isinstance(row, dict)] if isinstance(entries, list) else []
    return (fact.source, *map(_read_source, rows))


def confirm_fact(fact: Fact, source: FactSource, *, confidence: float, error: str | None, now: datetime) -> Fact:
    """Return a repeated fact with one more confirmation; unchanged if it already has these source messages."""
    sources = fact_sources(fact)
    known_messages = {(each.thread, message) for each in sources for message in each.messages}
    if source.messages and all((source.thread, message) in known_messages for message in source.messages):
        return fact
    repeated_sources = [*sources[1:], source][-_MAX_SOURCES:]
    return replace(
        fact,
        confidence=max(parse_confidence(fact.confidence) or 0.0, confidence),
        source_error=fact.source_error or error,
        confirmations=fact.confirmations + 1,
        confirmed_at=format_profile_time(now),
        updated_at=format_profile_time(now),
        revision=fact.revision + 1,
        extra={**fact.extra, SOURCES_FIELD: [_source_row(each) for each in repeated_sources]},
    )


def find_merge_groups(facts: Sequence[Fact], config: ProfileConfig) -> tuple[tuple[Fact, ...], ...]:
    """Return the groups of facts of one category that may be merged, the largest first; empty when merging is off."""
    if not config.consolidation_enabled:
        return ()
    groups: dict[str, list[Fact]] = {}
    for fact in facts:
        if _is_mergeable(fact, config):
            groups.setdefault(fact.category, []).append(fact)
    large = [group for group in groups.values() if len(group) >= config.consolidation_min_facts]
    large.sort(key=lambda group: (-len(group), group[0].category))
    return tuple(map(tuple, large[: config.consolidation_max_groups_per_cycle]))


def merge_facts(
    facts: Sequence[Fact], mergings: Sequence[FactMerge], *, now: datetime, config: ProfileConfig, ids: Sequence[str]
) -> MergeResult:
    """Return the facts after `mergings`; each item is carried out or rejected separately.

    `ids` are the ids of the new facts, one for each merge.
    """
    result = MergeResult(facts=tuple(facts))
    used: set[str] = set()
    for merging, new_id in zip(mergings, ids, strict=True):
        facts_by_id = {fact.id: fact for fact in result.facts}
        reason = "too many" if len(result.added) >= config.consolidation_max_groups_per_cycle else ""
        reason = reason or _find_merge_flaw(merging, facts_by_id, used, config)
        if reason:
            rejection = RejectedItem(item="merging", reason=reason)
            result = replace(result, rejections=(*result.rejections, rejection))
            continue
        sources = [facts_by_id[each] for each in merging.sources]
        used.update(merging.sources)
        merged = _merge_sources(merging, sources, new_id, now, config)
        result = replace(
            result,
            facts=(*(fact for fact in result.facts if fact.id not in merging.sources), merged),
            added=(*result.added, new_id),
            taken=(*result.taken, *sources),
        )
    return result


def _find_merge_flaw(
    merging: FactMerge, facts_by_id: Mapping[str, Fact], used: Collection[str], config: ProfileConfig
) -> str:
    sources = merging.sources
    checks = (
        ("off", not config.consolidation_enabled),
        (find_fact_flaw(merging.fact.labels), bool(find_fact_flaw(merging.fact.labels))),
        ("content", not 0 < len(merging.fact.content.strip()) <= config.max_fact_characters),
        ("number", not 2 <= len(sources) <= config.consolidation_max_sources),
        ("used", len(set(sources)) < len(sources) or not set(sources).isdisjoint(used)),
        ("unknown", not set(sources) <= facts_by_id.keys()),
    )
    rejection_reason = next((reason for reason, fails in checks if fails), "")
    return rejection_reason or _find_source_flaw([facts_by_id[each] for each in sources], merging, facts_by_id, config)


def _find_source_flaw(
    sources: Sequence[Fact], merging: FactMerge, facts_by_id: Mapping[str, Fact], config: ProfileConfig
) -> str:
    category = sources[0].category
    if any(fact.category != category for fact in sources):
        return "category"
    if not all(_is_mergeable(fact, config) for fact in sources):
        return "protected"
    if (
        sum(fact.category == category and _is_mergeable(fact, config) for fact in facts_by_id.values())
        < config.consolidation_min_facts
    ):
        return "few"
    confidence = parse_confidence(merging.fact.confidence)
    if confidence is None or min(confidence, _max_confidence(sources)) < config.fact_confidence_threshold:
        return "threshold"
    return ""


def _is_mergeable(fact: Fact, config: ProfileConfig) -> bool:
    return not fact.is_protected and fact.category not in config.staleness_protected_categories


def _max_confidence(sources: Sequence[Fact]) -> float:
    return max(parse_confidence(fact.confidence) or 0.0 for fact in sources)


def _merge_sources(
    merging: FactMerge, sources: Sequence[Fact], new_id: str, now: datetime, config: ProfileConfig
) -> Fact:
    """Return the fact that replaces `sources`: as old as the newest of them, and due with the first of them."""
    all_sources = tuple(dict.fromkeys(source for fact in sources for source in fact_sources(fact) if source.messages))
    lifetimes = [(last, lifetime_days(fact, config)) for fact in sources if (last := last_confirmed(fact))]
    remaining_days = min((days - (now - last).days for last, days in lifetimes), default=config.staleness_age_days)
    errors = dict.fromkeys(fact.source_error for fact in sources if fact.source_error)
    messages = tuple(dict.fromkeys(message for source in all_sources for message in source.messages))
    return Fact(
        id=new_id,
        content=" ".join(merging.fact.content.split()),
        category=sources[0].category,
        confidence=min(parse_confidence(merging.fact.confidence) or 0.0, _max_confidence(sources)),
        created_at=max((fact.created_at for fact in sources), default=_EARLIEST),
        updated_at=format_profile_time(now),
        confirmed_at=format_profile_time(now),
        source=FactSource(thread="consolidation", messages=messages[:_MAX_SOURCES]),
        source_error="; ".join(filter(None, errors)) or None,
        valid_days=min(max(remaining_days, 1), config.staleness_max_extension_days),
        confirmations=sum(max(fact.confirmations, 1) for fact in sources),
        merged_from=tuple(fact.id for fact in sources),
        extra={SOURCES_FIELD: [_source_row(source) for source in all_sources[:_MAX_SOURCES]]} if all_sources else {},
    )


def _source_row(source: FactSource) -> JsonValue:
    return {"thread": source.thread, "messages": list(source.messages), "quote": source.quote}


def _read_source(row: Mapping[str, JsonValue]) -> FactSource:
    thread, messages, quote = row.get("thread"), row.get("messages"), row.get("quote")
    return FactSource(
        thread=thread if isinstance(thread, str) else "unknown",
        messages=tuple(each for each in messages if isinstance(each, str)) if isinstance(messages, list) else (),
        quote=quote if isinstance(quote, str) else "",
    )


_LOG = logging.getLogger(__name__)
_MAX_VECTORS = 1_000


class FactSimilarity:
    """Compares texts by embeddings, and caches the last 1,000 vectors."""

    def __init__(self, embedder: Embedder) -> None:
        """Embed texts with `embedder`."""
        self._embedder = embedder
        self._vectors: OrderedDict[str, NDArray[np.float32]] = OrderedDict()

    async def make_similarity(self, texts: Sequence[str]) -> SimilarityFunction | None:
        """Return a similarity function for `texts`, which ignores white space; None when the embedder fails."""
        unique_texts = list(dict.fromkeys(_collapse_spaces(text) for text in texts if text.strip()))
        missing = [text for text in unique_texts if text not in self._vectors]
        if missing:
            try:
                rows = await self._embedder.embed(missing)
            except ModelError as error:
                _LOG.warning("Similar facts are compared by words alone: %s", error)
                return None
            self._vectors.update(zip(missing, rows, strict=True))
        vectors = {text: self._vectors[text] for text in unique_texts}
        for text in unique_texts:
            self._vectors.move_to_end(text)
        while len(self._vectors) > _MAX_VECTORS:
            self._vectors.popitem(last=False)

        def similarity(first: str, second: str) -> float:
            left, right = vectors.get(_collapse_spaces(first)), vectors.get(_collapse_spaces(second))
            return 0.0 if left is None or right is None else float(left @ right)

        return similarity


def _collapse_spaces(text: str) -> str:
    return " ".join(text.split())
