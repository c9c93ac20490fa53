"""Facts that say the same, and facts that a model makes one of. Pure.

A fact that is said again is one fact that was confirmed, with every place where it was said: the first stands in
`source`, the later ones in its `sources`. A merging of several facts takes its confidence from them and never more,
and names them; they go to the archive whole, so that nothing is lost by it.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeAlias

from ricordo.language.duplicates import find_duplicate
from ricordo.messages.types import JsonValue
from ricordo.profile.config import ProfileConfig
from ricordo.profile.gate import find_fact_flaw, parse_confidence
from ricordo.profile.staleness import lifetime_days
from ricordo.profile.trimming import last_confirmed
from ricordo.profile.types import FactMerge, RejectedItem
from ricordo.workspace.profile import Fact, FactSource, format_profile_time

__all__ = [
    "SOURCES_FIELD",
    "SimilarityFunction",
    "MergeResult",
    "find_same_fact",
    "find_merge_groups",
    "merge_facts",
    "confirm_fact",
    "fact_sources",
]

SOURCES_FIELD = "sources"
"""The further field of a fact that holds where it was said again, oldest first."""

SimilarityFunction: TypeAlias = Callable[[str, str], float]
"""Gives how alike the meanings of two contents are, as the cosine of their embeddings; 0 where that is not known."""

_MAX_SOURCES = 20
_EARLIEST = "0001-01-01T00:00:00Z"


@dataclass(frozen=True, kw_only=True)
class MergeResult:
    """The facts after the mergings, the new ones among them, those that were taken in, and what was turned down."""

    facts: tuple[Fact, ...]
    added: tuple[str, ...] = ()
    taken: tuple[Fact, ...] = ()
    rejections: tuple[RejectedItem, ...] = ()


def find_same_fact(
    content: str, facts: Sequence[Fact], config: ProfileConfig, *, meaning: SimilarityFunction | None = None
) -> Fact | None:
    """Return the fact that says the same as `content`; None when none does."""
    contents = [fact.content for fact in facts]
    meanings = [meaning(content, other) for other in contents] if meaning else None
    at = find_duplicate(content, contents, threshold=config.duplicate_threshold, meanings=meanings)
    return None if at is None else facts[at]


def fact_sources(fact: Fact) -> tuple[FactSource, ...]:
    """Return every place where a fact was said, the first one first."""
    found = fact.extra.get(SOURCES_FIELD)
    rows = [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []
    return (fact.source, *map(_read_source, rows))


def confirm_fact(fact: Fact, source: FactSource, *, confidence: float, error: str | None, now: datetime) -> Fact:
    """Return a fact that was said once more; the same messages that it rests on already confirm nothing."""
    sources = fact_sources(fact)
    known = {(each.thread, message) for each in sources for message in each.messages}
    if source.messages and all((source.thread, message) in known for message in source.messages):
        return fact
    further = [*sources[1:], source][-_MAX_SOURCES:]
    return replace(
        fact,
        confidence=max(parse_confidence(fact.confidence) or 0.0, confidence),
        source_error=fact.source_error or error,
        confirmations=fact.confirmations + 1,
        confirmed_at=format_profile_time(now),
        updated_at=format_profile_time(now),
        revision=fact.revision + 1,
        extra={**fact.extra, SOURCES_FIELD: [_source_row(each) for each in further]},
    )


def find_merge_groups(facts: Sequence[Fact], config: ProfileConfig) -> tuple[tuple[Fact, ...], ...]:
    """Return the groups of facts of one category that may be made fewer, the largest first; none when it is off."""
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
    """Return the facts after `mergings`, of which each item is carried out or turned down by itself.

    `ids` are the ids that new facts get, one for each merging.
    """
    done = MergeResult(facts=tuple(facts))
    used: set[str] = set()
    for merging, new_id in zip(mergings, ids, strict=True):
        held = {fact.id: fact for fact in done.facts}
        flaw = "too many" if len(done.added) >= config.consolidation_max_groups_per_cycle else ""
        flaw = flaw or _find_merge_flaw(merging, held, used, config)
        if flaw:
            rejection = RejectedItem(item="merging", reason=flaw)
            done = replace(done, rejections=(*done.rejections, rejection))
            continue
        sources = [held[each] for each in merging.sources]
        used.update(merging.sources)
        one = _merge_sources(merging, sources, new_id, now, config)
        done = replace(
            done,
            facts=(*(fact for fact in done.facts if fact.id not in merging.sources), one),
            added=(*done.added, new_id),
            taken=(*done.taken, *sources),
        )
    return done


def _find_merge_flaw(merging: FactMerge, held: Mapping[str, Fact], used: Collection[str], config: ProfileConfig) -> str:
    sources = merging.sources
    checks = (
        ("off", not config.consolidation_enabled),
        (find_fact_flaw(merging.fact.labels), bool(find_fact_flaw(merging.fact.labels))),
        ("content", not 0 < len(merging.fact.content.strip()) <= config.max_fact_characters),
        ("number", not 2 <= len(sources) <= config.consolidation_max_sources),
        ("used", len(set(sources)) < len(sources) or not set(sources).isdisjoint(used)),
        ("unknown", not set(sources) <= held.keys()),
    )
    flaw = next((reason for reason, fails in checks if fails), "")
    return flaw or _find_source_flaw([held[each] for each in sources], merging, held, config)


def _find_source_flaw(
    sources: Sequence[Fact], merging: FactMerge, held: Mapping[str, Fact], config: ProfileConfig
) -> str:
    category = sources[0].category
    if any(fact.category != category for fact in sources):
        return "category"
    if not all(_is_mergeable(fact, config) for fact in sources):
        return "protected"
    if (
        sum(fact.category == category and _is_mergeable(fact, config) for fact in held.values())
        < config.consolidation_min_facts
    ):
        return "few"
    surety = parse_confidence(merging.fact.confidence)
    if surety is None or min(surety, _max_confidence(sources)) < config.fact_confidence_threshold:
        return "threshold"
    return ""


def _is_mergeable(fact: Fact, config: ProfileConfig) -> bool:
    return not fact.is_protected and fact.category not in config.staleness_protected_categories


def _max_confidence(sources: Sequence[Fact]) -> float:
    return max(parse_confidence(fact.confidence) or 0.0 for fact in sources)


def _merge_sources(
    merging: FactMerge, sources: Sequence[Fact], new_id: str, now: datetime, config: ProfileConfig
) -> Fact:
    """Return the fact that stands for `sources`: as old as the newest of them, and due when the first of them is."""
    places = tuple(dict.fromkeys(place for fact in sources for place in fact_sources(fact) if place.messages))
    ends = [(last, lifetime_days(fact, config)) for fact in sources if (last := last_confirmed(fact))]
    left = min((days - (now - last).days for last, days in ends), default=config.staleness_age_days)
    errors = dict.fromkeys(fact.source_error for fact in sources if fact.source_error)
    messages = tuple(dict.fromkeys(message for place in places for message in place.messages))
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
        valid_days=min(max(left, 1), config.staleness_max_extension_days),
        confirmations=sum(max(fact.confirmations, 1) for fact in sources),
        merged_from=tuple(fact.id for fact in sources),
        extra={SOURCES_FIELD: [_source_row(place) for place in places[:_MAX_SOURCES]]} if places else {},
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
