"""Facts that say the same, and facts that a model makes one of. Pure.

A fact that is said again is one fact that was confirmed, with every place where it was said: the first stands in
`source`, the later ones in its `sources`. A merging of several facts takes its confidence from them and never more,
and names them; they go to the archive whole, so that nothing is lost by it.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeAlias

from ricordo.language.duplicates import duplicate_of
from ricordo.messages.types import JsonValue
from ricordo.profile.config import ProfileConfig
from ricordo.profile.gate import flaw_of_fact, sure
from ricordo.profile.staleness import lifetime
from ricordo.profile.trimming import confirmed_last
from ricordo.profile.types import Merging, Rejection
from ricordo.workspace.profile import Fact, FactSource, written

__all__ = ["SOURCES", "Meaning", "Merged", "alike", "groups_to_merge", "merged", "said_again", "sources_of"]

SOURCES = "sources"
"""The further field of a fact that holds where it was said again, oldest first."""

Meaning: TypeAlias = Callable[[str, str], float]
"""Gives how alike the meanings of two contents are, as the cosine of their embeddings; 0 where that is not known."""

_MOST_SOURCES = 20
_EARLIEST = "0001-01-01T00:00:00Z"


@dataclass(frozen=True, kw_only=True)
class Merged:
    """The facts after the mergings, the new ones among them, those that were taken in, and what was turned down."""

    facts: tuple[Fact, ...]
    added: tuple[str, ...] = ()
    taken: tuple[Fact, ...] = ()
    rejections: tuple[Rejection, ...] = ()


def alike(content: str, facts: Sequence[Fact], config: ProfileConfig, *, meaning: Meaning | None = None) -> Fact | None:
    """Return the fact that says the same as `content`; None when none does."""
    contents = [fact.content for fact in facts]
    meanings = [meaning(content, other) for other in contents] if meaning else None
    at = duplicate_of(content, contents, threshold=config.duplicate_threshold, meanings=meanings)
    return None if at is None else facts[at]


def sources_of(fact: Fact) -> tuple[FactSource, ...]:
    """Return every place where a fact was said, the first one first."""
    found = fact.extra.get(SOURCES)
    rows = [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []
    return (fact.source, *map(_source, rows))


def said_again(fact: Fact, source: FactSource, *, confidence: float, error: str | None, now: datetime) -> Fact:
    """Return a fact that was said once more; the same messages that it rests on already confirm nothing."""
    sources = sources_of(fact)
    known = {(each.thread, message) for each in sources for message in each.messages}
    if source.messages and all((source.thread, message) in known for message in source.messages):
        return fact
    further = [*sources[1:], source][-_MOST_SOURCES:]
    return replace(
        fact,
        confidence=max(sure(fact.confidence) or 0.0, confidence),
        source_error=fact.source_error or error,
        confirmations=fact.confirmations + 1,
        confirmed_at=written(now),
        updated_at=written(now),
        revision=fact.revision + 1,
        extra={**fact.extra, SOURCES: [_row(each) for each in further]},
    )


def groups_to_merge(facts: Sequence[Fact], config: ProfileConfig) -> tuple[tuple[Fact, ...], ...]:
    """Return the groups of facts of one category that may be made fewer, the largest first; none when it is off."""
    if not config.consolidation_enabled:
        return ()
    groups: dict[str, list[Fact]] = {}
    for fact in facts:
        if _is_open(fact, config):
            groups.setdefault(fact.category, []).append(fact)
    large = [group for group in groups.values() if len(group) >= config.consolidation_min_facts]
    large.sort(key=lambda group: (-len(group), group[0].category))
    return tuple(map(tuple, large[: config.consolidation_max_groups_per_cycle]))


def merged(
    facts: Sequence[Fact], mergings: Sequence[Merging], *, now: datetime, config: ProfileConfig, ids: Sequence[str]
) -> Merged:
    """Return the facts after `mergings`, of which each item is carried out or turned down by itself.

    `ids` are the ids that new facts get, one for each merging.
    """
    done = Merged(facts=tuple(facts))
    used: set[str] = set()
    for merging, new_id in zip(mergings, ids, strict=True):
        held = {fact.id: fact for fact in done.facts}
        flaw = "too many" if len(done.added) >= config.consolidation_max_groups_per_cycle else ""
        flaw = flaw or _flaw(merging, held, used, config)
        if flaw:
            rejection = Rejection(item="merging", reason=flaw)
            done = replace(done, rejections=(*done.rejections, rejection))
            continue
        sources = [held[each] for each in merging.sources]
        used.update(merging.sources)
        one = _joined(merging, sources, new_id, now, config)
        done = replace(
            done,
            facts=(*(fact for fact in done.facts if fact.id not in merging.sources), one),
            added=(*done.added, new_id),
            taken=(*done.taken, *sources),
        )
    return done


def _flaw(merging: Merging, held: Mapping[str, Fact], used: Collection[str], config: ProfileConfig) -> str:
    sources = merging.sources
    checks = (
        ("off", not config.consolidation_enabled),
        (flaw_of_fact(merging.fact.labels), bool(flaw_of_fact(merging.fact.labels))),
        ("content", not 0 < len(merging.fact.content.strip()) <= config.max_fact_characters),
        ("number", not 2 <= len(sources) <= config.consolidation_max_sources),
        ("used", len(set(sources)) < len(sources) or not set(sources).isdisjoint(used)),
        ("unknown", not set(sources) <= held.keys()),
    )
    flaw = next((reason for reason, fails in checks if fails), "")
    return flaw or _flaw_of_sources([held[each] for each in sources], merging, held, config)


def _flaw_of_sources(sources: Sequence[Fact], merging: Merging, held: Mapping[str, Fact], config: ProfileConfig) -> str:
    category = sources[0].category
    if any(fact.category != category for fact in sources):
        return "category"
    if not all(_is_open(fact, config) for fact in sources):
        return "protected"
    if (
        sum(fact.category == category and _is_open(fact, config) for fact in held.values())
        < config.consolidation_min_facts
    ):
        return "few"
    surety = sure(merging.fact.confidence)
    if surety is None or min(surety, _surest(sources)) < config.fact_confidence_threshold:
        return "threshold"
    return ""


def _is_open(fact: Fact, config: ProfileConfig) -> bool:
    return not fact.is_kept and fact.category not in config.staleness_protected_categories


def _surest(sources: Sequence[Fact]) -> float:
    return max(sure(fact.confidence) or 0.0 for fact in sources)


def _joined(merging: Merging, sources: Sequence[Fact], new_id: str, now: datetime, config: ProfileConfig) -> Fact:
    """Return the fact that stands for `sources`: as old as the newest of them, and due when the first of them is."""
    places = tuple(dict.fromkeys(place for fact in sources for place in sources_of(fact) if place.messages))
    ends = [(last, lifetime(fact, config)) for fact in sources if (last := confirmed_last(fact))]
    left = min((days - (now - last).days for last, days in ends), default=config.staleness_age_days)
    errors = dict.fromkeys(fact.source_error for fact in sources if fact.source_error)
    messages = tuple(dict.fromkeys(message for place in places for message in place.messages))
    return Fact(
        id=new_id,
        content=" ".join(merging.fact.content.split()),
        category=sources[0].category,
        confidence=min(sure(merging.fact.confidence) or 0.0, _surest(sources)),
        created_at=max((fact.created_at for fact in sources), default=_EARLIEST),
        updated_at=written(now),
        confirmed_at=written(now),
        source=FactSource(thread="consolidation", messages=messages[:_MOST_SOURCES]),
        source_error="; ".join(filter(None, errors)) or None,
        valid_days=min(max(left, 1), config.staleness_max_extension_days),
        confirmations=sum(max(fact.confirmations, 1) for fact in sources),
        merged_from=tuple(fact.id for fact in sources),
        extra={SOURCES: [_row(place) for place in places[:_MOST_SOURCES]]} if places else {},
    )


def _row(source: FactSource) -> JsonValue:
    return {"thread": source.thread, "messages": list(source.messages), "quote": source.quote}


def _source(row: Mapping[str, JsonValue]) -> FactSource:
    thread, messages, quote = row.get("thread"), row.get("messages"), row.get("quote")
    return FactSource(
        thread=thread if isinstance(thread, str) else "unknown",
        messages=tuple(each for each in messages if isinstance(each, str)) if isinstance(messages, list) else (),
        quote=quote if isinstance(quote, str) else "",
    )
