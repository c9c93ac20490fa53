"""Application of an update to a profile: every rule, in one order. Pure.

The order is: confirmations, summaries, the review of old facts, new facts, removals, the trim, merges. So a removal
makes room before any fact is evicted, and it is known whether a replacement was added.

Invariants: a rejected item changes nothing and stops no other. A replaced fact is removed only when its replacement
exists under another id. A fact that a person added or pinned is never removed. The same profile, update and time give
the same result.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
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
    forgotten: Callable[[str], bool] = _nothing_forgotten,
    shown: Collection[str] = (),
    uploads: Collection[str] = (),
    needs_source: bool = False,
    said: datetime | None = None,
    meaning: SimilarityFunction | None = None,
) -> UpdateResult:
    """Return the result of applying `update` to `profile`.

    `confirmed_by_signal` says that the user's own words confirm something; without it nothing is confirmed. `forgotten`
    tells whether a content was forgotten; such a fact is not learned again. `shown` are the ids that a review of old
    facts showed. `uploads` are names of uploaded files: an item that names one is rejected as temporary. With
    `needs_source` a new fact must name its source messages. `said` is the time of the last message in the input: a fact
    that was confirmed since then is not confirmed again. `meaning` returns the similarity of two contents whose
    embeddings are known.
    """
    work = _UpdateState(profile=profile, now=now, config=config, last_said=said, similarity=meaning)
    _apply_confirmations(work, update, by_signal=confirmed_by_signal)
    for edit in update.summaries:
        _apply_summary(work, edit, uploads)
    review = review_facts(
        work.profile.facts,
        [removal for removal in update.removals if removal.stale],
        update.extensions,
        shown=shown,
        now=now,
        config=config,
    )
    work.profile = replace(work.profile, facts=review.facts)
    work.removed.extend(review.removed)
    work.rejections.extend(review.rejections)
    for at, fact in enumerate(update.facts):
        flaw = (
            _find_new_fact_flaw(fact, config, forgotten, uploads, needs_source=needs_source)
            if at < _MAX_NEW_FACTS
            else "too many"
        )
        if flaw:
            work.reject(RejectedItem(item="fact", reason=flaw))
        else:
            work.fact_ids[at] = _learn_fact(work, fact)
    paired = _apply_removals(work, [removal for removal in update.removals if not removal.stale])
    return _finish(work, update, paired, base=profile)


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


def _apply_confirmations(work: _UpdateState, update: ProfileUpdate, *, by_signal: bool) -> None:
    for each in update.confirmations:
        fact = work.profile.find_fact(each.id)
        flaw = "" if by_signal else "signal"
        flaw = flaw or ("" if each.labels.scope == "user" else "scope")
        flaw = flaw or ("" if each.reason.strip() else "reason")
        flaw = flaw or ("used" if each.id in work.confirmed or _is_confirmed_since(fact, work.last_said) else "")
        if flaw or fact is None:
            work.reject(RejectedItem(item="confirmation", reason=flaw or "unknown", id=each.id))
            continue
        moment = format_profile_time(work.now)
        work.confirmed.append(fact.id)
        work.put_fact(
            replace(
                fact,
                confirmations=fact.confirmations + 1,
                confirmed_at=moment,
                updated_at=moment,
                revision=fact.revision + 1,
            )
        )


def _is_confirmed_since(fact: Fact | None, said: datetime | None) -> bool:
    """Tell whether a fact was confirmed at or after the time `said`."""
    last = parse_profile_time(fact.confirmed_at) if fact else None
    return said is not None and last is not None and last >= said


def _apply_summary(work: _UpdateState, edit: SummaryEdit, uploads: Collection[str]) -> None:
    flaw = "" if edit.name in {*USER_SUMMARIES, *HISTORY_SUMMARIES} else "unknown"
    flaw = flaw or find_summary_flaw(edit.labels)
    flaw = flaw or ("" if edit.summary.strip() else "blank")
    flaw = flaw or ("upload" if names_upload(edit.summary, uploads) else "")
    flaw = flaw or ("secret" if has_secret(edit.summary) else "")
    old = work.profile.summaries.get(edit.name, ProfileSummary())
    flaw = flaw or ("" if _is_summary_due(edit.name, old, work) else "interval")
    if flaw:
        work.reject(RejectedItem(item="summary", reason=flaw, id=edit.name))
        return
    limit = work.config.summary_characters.get(edit.name)
    text = edit.summary.strip() if limit is None else shorten(edit.summary, limit)
    new = replace(old, summary=text, updated_at=format_profile_time(work.now))
    work.profile = replace(work.profile, summaries={**work.profile.summaries, edit.name: new})


def _is_summary_due(name: str, old: ProfileSummary, work: _UpdateState) -> bool:
    """Tell whether a summary may be replaced; a timestamp in the future comes from a wrong clock and is ignored."""
    days = work.config.summary_interval_days.get(name, 0)
    last = parse_profile_time(old.updated_at)
    if not old.summary.strip() or last is None:
        return True
    age = (work.now - last).total_seconds()
    return age < 0 or age >= days * _DAY_SECONDS


def _find_new_fact_flaw(
    fact: NewFact,
    config: ProfileConfig,
    forgotten: Callable[[str], bool],
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
        ("forgotten", forgotten(content)),
    )
    return find_fact_flaw(fact.labels) or next((reason for reason, fails in checks if fails), "")


def _learn_fact(work: _UpdateState, fact: NewFact) -> str:
    """Add a fact and return its id, or confirm the fact that says the same and return that id."""
    content = " ".join(fact.content.split())
    confidence = parse_confidence(fact.confidence) or 0.0
    error = (fact.source_error or "").strip() or None
    same = find_same_fact(content, work.profile.facts, work.config, meaning=work.similarity)
    if same is not None:
        again = confirm_fact(same, fact.source, confidence=confidence, error=error, now=work.now)
        if again is not same:
            work.put_fact(again)
            if same.id not in work.added and same.id not in work.confirmed:
                work.confirmed.append(same.id)
        return same.id
    moment = format_profile_time(work.now)
    new = Fact(
        id=create_fact_id(content, {old.id for old in work.profile.facts}),
        content=content,
        category=fact.category.strip().casefold()[:_MAX_CATEGORY_CHARACTERS] or "context",
        confidence=confidence,
        created_at=moment,
        updated_at=moment,
        source=replace(fact.source, thread=fact.source.thread.strip() or "unknown"),
        source_error=error,
        valid_days=_limit_lifetime(fact.valid_days, work.config),
    )
    work.profile = replace(work.profile, facts=(*work.profile.facts, new))
    work.added.append(new.id)
    return new.id


def _limit_lifetime(days: object, config: ProfileConfig) -> int | None:
    if isinstance(days, bool) or not isinstance(days, int) or days < 1:
        return None
    return min(days, config.staleness_age_days * config.staleness_max_lifetime_multiplier)


def _apply_removals(work: _UpdateState, removals: Sequence[FactRemoval]) -> frozenset[str]:
    """Carry out the removals, and return the ids of the facts that replace removed ones."""
    paired: set[str] = set()
    for removal in removals:
        flaw = find_removal_flaw(removal, work.profile.find_fact(removal.id))
        instead = work.fact_ids.get(removal.replacement) if removal.replacement is not None else None
        if not flaw and removal.replacement is not None and instead in {None, removal.id}:
            flaw = "replacement"
        if not flaw and (removal.id in work.added or removal.id in paired):
            flaw = "new"
        if flaw:
            work.reject(RejectedItem(item="removal", reason=flaw, id=removal.id))
            continue
        if instead is not None:
            paired.add(instead)
            _inherit_source_error(work, removal.id, instead)
        facts = tuple(fact for fact in work.profile.facts if fact.id != removal.id)
        work.profile = replace(work.profile, facts=facts)
        work.removed.append(removal.id)
    work.confirmed = [each for each in work.confirmed if each not in work.removed]
    return frozenset(paired)


def _inherit_source_error(work: _UpdateState, old_id: str, new_id: str) -> None:
    """Set a missing `source_error` of a correction to the replaced content."""
    old, new = work.profile.find_fact(old_id), work.profile.find_fact(new_id)
    if old is not None and new is not None and new.category == "correction" and not new.source_error:
        work.put_fact(replace(new, source_error=old.content))


def _finish(work: _UpdateState, update: ProfileUpdate, paired: Collection[str], *, base: Profile) -> UpdateResult:
    """Trim, merge, and record the evictions."""
    cut = trim_facts(work.profile.facts, now=work.now, config=work.config, kept=paired)
    gone = {fact.id for fact in cut.left}
    new_ids: list[str] = []
    for merging in update.mergings:
        new_ids.append(create_fact_id(merging.fact.content, {*new_ids, *(fact.id for fact in cut.facts)}))
    joined = merge_facts(cut.facts, update.mergings, now=work.now, config=work.config, ids=new_ids)
    taken = {fact.id for fact in joined.taken}
    profile = replace(work.profile, facts=joined.facts, extra=_record_evictions(work, cut.evicted))
    if profile != base:
        profile = replace(profile, last_updated=format_profile_time(work.now))
    out = gone | taken
    return UpdateResult(
        profile=profile,
        rejections=(*work.rejections, *joined.rejections),
        added=(*(each for each in work.added if each not in out), *joined.added),
        removed=tuple(work.removed),
        confirmed=tuple(each for each in work.confirmed if each not in out),
        archived=tuple(fact.id for fact in cut.left),
        merged=tuple(fact.id for fact in joined.taken),
        left=(*cut.left, *joined.taken),
        evicted=cut.evicted,
    )


def _record_evictions(work: _UpdateState, evicted: Sequence[EvictedFact]) -> dict[str, JsonValue]:
    most = work.config.eviction_audit_max_entries
    extra = dict(work.profile.extra)
    if not evicted or not most:
        return extra
    held = extra.get(EVICTIONS_FIELD)
    rows: list[JsonValue] = list(held) if isinstance(held, list) else []
    moment = format_profile_time(work.now)
    rows.extend({"id": each.id, "category": each.category, "score": each.score, "at": moment} for each in evicted)
    return {**extra, EVICTIONS_FIELD: rows[-most:]}
