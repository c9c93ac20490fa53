"""Application of an update to a profile: every rule, in one order. Pure.

The order is: confirmations, summaries, the review of old facts, new facts, removals, the trim, merges. So a removal
makes room before any fact is evicted, and it is known whether a replacement was added.

Invariants: a rejected item changes nothing and stops no other. A replaced fact is removed only when its replacement
exists under another id. A fact that a person added or pinned is never removed. The same profile, update and time give
the same result.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import field, replace
from datetime import datetime

from ricordo.curation.config import ProfileConfig
from ricordo.curation.profile.facts import (
    SimilarityFunction,
    confirm_fact,
    find_same_fact,
    merge_facts,
    review_facts,
    trim_facts,
)
from ricordo.curation.profile.updates import (
    EvictedFact,
    FactRemoval,
    NewFact,
    ProfileUpdate,
    RejectedItem,
    SummaryEdit,
    UpdateResult,
    find_fact_flaw,
    find_removal_flaw,
    find_summary_flaw,
    names_upload,
    parse_confidence,
)
from ricordo.guard.redact import has_secret
from ricordo.language.sentences import split_sentences
from ricordo.lazy import dataclass
from ricordo.messages.types import JsonValue
from ricordo.workspace.profile import (
    HISTORY_SUMMARIES,
    USER_SUMMARIES,
    Fact,
    Profile,
    ProfileSummary,
    create_fact_id,
    format_profile_time,
    parse_profile_time,
)
from ricordo.workspace.redaction import find_orders

__all__ = ["EVICTIONS_FIELD", "apply_update", "shorten"]


EVICTIONS_FIELD = "evictions"
"""The extra field of a profile with the audit of evicted facts: ids, categories and scores, no content."""
_MAX_NEW_FACTS = 100
_MAX_CATEGORY_CHARACTERS = 60
_DAY_SECONDS = 86_400.0


def _nothing_forgotten(_: str) -> bool:
    return False


@dataclass
class _UpdateState:
    """An update in progress: the profile so far, and the results of the items."""

    profile: Profile
    now: datetime
    config: ProfileConfig
    last_said: datetime | None = None
    similarity: SimilarityFunction | None = None
    rejections: list[RejectedItem] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    confirmed: list[str] = field(default_factory=list)
    fact_ids: dict[int, str] = field(default_factory=dict)

    def reject(self, rejection: RejectedItem) -> None:
        self.rejections.append(rejection)

    def put_fact(self, fact: Fact) -> None:
        facts = tuple(fact if old.id == fact.id else old for old in self.profile.facts)
        self.profile = replace(self.profile, facts=facts)


def apply_update(
    profile: Profile,
    update: ProfileUpdate,
    *,
    now: datetime,
    config: ProfileConfig,
    confirmed_by_signal: bool = False,
    is_forgotten: Callable[[str], bool] = _nothing_forgotten,
    reviewed_ids: Collection[str] = (),
    uploads: Collection[str] = (),
    needs_source: bool = False,
    last_message_at: datetime | None = None,
    similarity: SimilarityFunction | None = None,
) -> UpdateResult:
    """Return the result of applying `update` to `profile`.

    `confirmed_by_signal` says that the user's own words confirm something; without it nothing is confirmed.
    `is_forgotten` tells whether a content was forgotten; such a fact is not learned again. `reviewed_ids` are the ids
    that a review of old facts showed. `uploads` are names of uploaded files: an item that names one is rejected as
    temporary. With `needs_source` a new fact must name its source messages. `last_message_at` is the time of the last
    message in the input: a fact that was confirmed since then is not confirmed again. `similarity` returns the
    similarity of two contents whose embeddings are known.
    """
    state = _UpdateState(profile=profile, now=now, config=config, last_said=last_message_at, similarity=similarity)
    _apply_confirmations(state, update, by_signal=confirmed_by_signal)
    for edit in update.summaries:
        _apply_summary(state, edit, uploads)
    review = review_facts(
        state.profile.facts,
        [removal for removal in update.removals if removal.stale],
        update.extensions,
        reviewed_ids=reviewed_ids,
        now=now,
        config=config,
    )
    state.profile = replace(state.profile, facts=review.facts)
    state.removed.extend(review.removed)
    state.rejections.extend(review.rejections)
    for index, fact in enumerate(update.facts):
        reason = (
            _find_new_fact_flaw(fact, config, is_forgotten, uploads, needs_source=needs_source)
            if index < _MAX_NEW_FACTS
            else "too many"
        )
        if reason:
            state.reject(RejectedItem(item="fact", reason=reason))
        else:
            state.fact_ids[index] = _learn_fact(state, fact)
    replacement_ids = _apply_removals(state, [removal for removal in update.removals if not removal.stale])
    return _finish(state, update, replacement_ids, base=profile)


def shorten(text: str, limit: int) -> str:
    """Return a text of at most `limit` characters: whole sentences if one fits, else whole words and an ellipsis."""
    plain = text.strip()
    if len(plain) <= limit:
        return plain
    end = 0
    for sentence in split_sentences(plain[: limit + 1]):
        if sentence.end <= limit:
            end = sentence.end
    if end >= limit // 2:
        return plain[:end].rstrip()
    head = plain[: max(limit - 1, 0)]
    words, space, _ = head.rpartition(" ")
    return ((words if space and len(words) >= limit // 2 else head).rstrip() + "…")[:limit]


def _apply_confirmations(state: _UpdateState, update: ProfileUpdate, *, by_signal: bool) -> None:
    for confirmation in update.confirmations:
        fact = state.profile.find_fact(confirmation.id)
        reason = "" if by_signal else "signal"
        reason = reason or ("" if confirmation.labels.scope == "user" else "scope")
        reason = reason or ("" if confirmation.reason.strip() else "reason")
        reason = reason or (
            "used" if confirmation.id in state.confirmed or _is_confirmed_since(fact, state.last_said) else ""
        )
        if reason or fact is None:
            state.reject(RejectedItem(item="confirmation", reason=reason or "unknown", id=confirmation.id))
            continue
        timestamp = format_profile_time(state.now)
        state.confirmed.append(fact.id)
        state.put_fact(
            replace(
                fact,
                confirmations=fact.confirmations + 1,
                confirmed_at=timestamp,
                updated_at=timestamp,
                revision=fact.revision + 1,
            )
        )


def _is_confirmed_since(fact: Fact | None, since: datetime | None) -> bool:
    """Tell whether a fact was confirmed at or after the time `since`."""
    last = parse_profile_time(fact.confirmed_at) if fact else None
    return since is not None and last is not None and last >= since


def _apply_summary(state: _UpdateState, edit: SummaryEdit, uploads: Collection[str]) -> None:
    reason = "" if edit.name in {*USER_SUMMARIES, *HISTORY_SUMMARIES} else "unknown"
    reason = reason or find_summary_flaw(edit.labels)
    reason = reason or ("" if edit.summary.strip() else "blank")
    reason = reason or ("upload" if names_upload(edit.summary, uploads) else "")
    reason = reason or ("secret" if has_secret(edit.summary) else "")
    reason = reason or ("orders" if find_orders([edit.summary]) else "")
    old = state.profile.summaries.get(edit.name, ProfileSummary())
    reason = reason or ("" if _is_summary_due(edit.name, old, state) else "interval")
    if reason:
        state.reject(RejectedItem(item="summary", reason=reason, id=edit.name))
        return
    limit = state.config.summary_characters.get(edit.name)
    text = edit.summary.strip() if limit is None else shorten(edit.summary, limit)
    new = replace(old, summary=text, updated_at=format_profile_time(state.now))
    state.profile = replace(state.profile, summaries={**state.profile.summaries, edit.name: new})


def _is_summary_due(name: str, old: ProfileSummary, state: _UpdateState) -> bool:
    """Tell whether a summary may be replaced; a timestamp in the future comes from a wrong clock and is ignored."""
    days = state.config.summary_interval_days.get(name, 0)
    last = parse_profile_time(old.updated_at)
    if not old.summary.strip() or last is None:
        return True
    age = (state.now - last).total_seconds()
    return age < 0 or age >= days * _DAY_SECONDS


def _find_new_fact_flaw(
    fact: NewFact,
    config: ProfileConfig,
    is_forgotten: Callable[[str], bool],
    uploads: Iterable[str],
    *,
    needs_source: bool,
) -> str:
    """Return why a fact is rejected; empty for one that may be learned."""
    confidence = parse_confidence(fact.confidence)
    content = " ".join(fact.content.split())
    checks = (
        ("blank", not content),
        ("length", len(content) > config.max_fact_characters),
        ("confidence", confidence is None),
        ("threshold", confidence is not None and confidence < config.fact_confidence_threshold),
        ("unsupported", needs_source and not fact.source.messages),
        ("upload", names_upload(content, uploads)),
        ("secret", has_secret(content)),
        ("forgotten", is_forgotten(content)),
        ("orders", bool(find_orders([content, fact.source.quote]))),
    )
    return find_fact_flaw(fact.labels) or next((reason for reason, fails in checks if fails), "")


def _learn_fact(state: _UpdateState, fact: NewFact) -> str:
    """Add a fact and return its id, or confirm the fact that says the same and return that id."""
    content = " ".join(fact.content.split())
    confidence = parse_confidence(fact.confidence) or 0.0
    error = (fact.source_error or "").strip() or None
    duplicate = find_same_fact(content, state.profile.facts, state.config, similarity=state.similarity)
    if duplicate is not None:
        confirmed = confirm_fact(duplicate, fact.source, confidence=confidence, error=error, now=state.now)
        if confirmed is not duplicate:
            state.put_fact(confirmed)
            if duplicate.id not in state.added and duplicate.id not in state.confirmed:
                state.confirmed.append(duplicate.id)
        return duplicate.id
    timestamp = format_profile_time(state.now)
    new = Fact(
        id=create_fact_id(content, {old.id for old in state.profile.facts}),
        content=content,
        category=fact.category.strip().casefold()[:_MAX_CATEGORY_CHARACTERS] or "context",
        confidence=confidence,
        created_at=timestamp,
        updated_at=timestamp,
        source=replace(fact.source, thread=fact.source.thread.strip() or "unknown"),
        source_error=error,
        valid_days=_limit_lifetime(fact.valid_days, state.config),
    )
    state.profile = replace(state.profile, facts=(*state.profile.facts, new))
    state.added.append(new.id)
    return new.id


def _limit_lifetime(days: object, config: ProfileConfig) -> int | None:
    if isinstance(days, bool) or not isinstance(days, int) or days < 1:
        return None
    return min(days, config.staleness_age_days * config.staleness_max_lifetime_multiplier)


def _apply_removals(state: _UpdateState, removals: Sequence[FactRemoval]) -> frozenset[str]:
    """Carry out the removals, and return the ids of the facts that replace removed ones."""
    replacement_ids: set[str] = set()
    for removal in removals:
        reason = find_removal_flaw(removal, state.profile.find_fact(removal.id))
        replacement_id = state.fact_ids.get(removal.replacement) if removal.replacement is not None else None
        if not reason and removal.replacement is not None and replacement_id in {None, removal.id}:
            reason = "replacement"
        if not reason and (removal.id in state.added or removal.id in replacement_ids):
            reason = "new"
        if reason:
            state.reject(RejectedItem(item="removal", reason=reason, id=removal.id))
            continue
        if replacement_id is not None:
            replacement_ids.add(replacement_id)
            _inherit_source_error(state, removal.id, replacement_id)
        facts = tuple(fact for fact in state.profile.facts if fact.id != removal.id)
        state.profile = replace(state.profile, facts=facts)
        state.removed.append(removal.id)
    state.confirmed = [each for each in state.confirmed if each not in state.removed]
    return frozenset(replacement_ids)


def _inherit_source_error(state: _UpdateState, old_id: str, new_id: str) -> None:
    """Set a missing `source_error` of a correction to the replaced content."""
    old, new = state.profile.find_fact(old_id), state.profile.find_fact(new_id)
    if old is not None and new is not None and new.category == "correction" and not new.source_error:
        state.put_fact(replace(new, source_error=old.content))


def _finish(
    state: _UpdateState, update: ProfileUpdate, replacement_ids: Collection[str], *, base: Profile
) -> UpdateResult:
    """Trim, merge, and record the evictions."""
    trimmed = trim_facts(state.profile.facts, now=state.now, config=state.config, keep_ids=replacement_ids)
    trimmed_ids = {fact.id for fact in trimmed.left}
    new_ids: list[str] = []
    for merging in update.mergings:
        new_ids.append(create_fact_id(merging.fact.content, {*new_ids, *(fact.id for fact in trimmed.facts)}))
    merged = merge_facts(trimmed.facts, update.mergings, now=state.now, config=state.config, ids=new_ids)
    merged_ids = {fact.id for fact in merged.taken}
    profile = replace(state.profile, facts=merged.facts, extra=_record_evictions(state, trimmed.evicted))
    if profile != base:
        profile = replace(profile, last_updated=format_profile_time(state.now))
    removed_ids = trimmed_ids | merged_ids
    return UpdateResult(
        profile=profile,
        rejections=(*state.rejections, *merged.rejections),
        added=(*(each for each in state.added if each not in removed_ids), *merged.added),
        removed=tuple(state.removed),
        confirmed=tuple(each for each in state.confirmed if each not in removed_ids),
        archived=tuple(fact.id for fact in trimmed.left),
        merged=tuple(fact.id for fact in merged.taken),
        left=(*trimmed.left, *merged.taken),
        evicted=trimmed.evicted,
    )


def _record_evictions(state: _UpdateState, evicted: Sequence[EvictedFact]) -> dict[str, JsonValue]:
    max_entries = state.config.eviction_audit_max_entries
    extra = dict(state.profile.extra)
    if not evicted or not max_entries:
        return extra
    entries = extra.get(EVICTIONS_FIELD)
    rows: list[JsonValue] = list(entries) if isinstance(entries, list) else []
    timestamp = format_profile_time(state.now)
    rows.extend({"id": each.id, "category": each.category, "score": each.score, "at": timestamp} for each in evicted)
    return {**extra, EVICTIONS_FIELD: rows[-max_entries:]}
