"""What an update makes of a profile: every rule of it, in one order. Pure.

Confirmations, summaries, the review of old facts, new facts, removals, the trim, mergings. So a removal makes room
before anything has to leave for want of it, and what takes a removed fact's place is known to stand.

Invariants: an item that is turned down changes nothing and stops no other; a fact that is to be replaced goes only
when its replacement stands under another id; what a person gave or pinned never goes; the same profile, update and
time give the same result.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from ricordo.guard.redact import has_secret
from ricordo.language.sentences import split_sentences
from ricordo.messages.types import JsonValue
from ricordo.profile.config import ProfileConfig
from ricordo.profile.gate import flaw_of_fact, flaw_of_removal, flaw_of_summary, names_upload, sure
from ricordo.profile.merging import Meaning, alike, merged, said_again
from ricordo.profile.staleness import reviewed
from ricordo.profile.trimming import trimmed
from ricordo.profile.types import Applied, Evicted, NewFact, ProfileUpdate, Rejection, Removal, SummaryEdit
from ricordo.workspace.profile import HISTORY_LEVEL, USER_LEVEL, Fact, Profile, Summary, fact_id, moment_of, written

__all__ = ["AUDIT", "applied", "shortened"]

AUDIT = "evictions"
"""The further field of a profile that holds what left for want of room: ids, categories and scores, no content."""

_MOST_FACTS = 100
_LONGEST_CATEGORY = 60
_DAY = 86_400.0


def _nothing_forgotten(_: str) -> bool:
    return False


@dataclass
class _Work:
    """An update on its way: the profile so far, and what became of the items."""

    profile: Profile
    now: datetime
    config: ProfileConfig
    said: datetime | None = None
    meaning: Meaning | None = None
    rejections: list[Rejection] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    confirmed: list[str] = field(default_factory=list)
    stands: dict[int, str] = field(default_factory=dict)

    def refuse(self, rejection: Rejection) -> None:
        self.rejections.append(rejection)

    def put(self, fact: Fact) -> None:
        facts = tuple(fact if old.id == fact.id else old for old in self.profile.facts)
        self.profile = replace(self.profile, facts=facts)


def applied(
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
    meaning: Meaning | None = None,
) -> Applied:
    """Return what `update` makes of `profile`.

    `confirmed_by_signal` says that the user's own words confirm something, without which nothing is confirmed.
    `forgotten` tells whether a content was forgotten, which is not learned again. `shown` are the ids that a review of
    old facts showed. `uploads` are the names of files that were handed over: what names one of them is of that moment,
    and not kept. With `needs_source` a new fact has to name the messages that it rests on. `said` is when the last
    of what is learned from was said: what was confirmed since then is not confirmed by it again. `meaning` gives
    the likeness of two contents where their embeddings are known.
    """
    work = _Work(profile=profile, now=now, config=config, said=said, meaning=meaning)
    _confirm(work, update, by_signal=confirmed_by_signal)
    for edit in update.summaries:
        _summarise(work, edit, uploads)
    review = reviewed(
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
        flaw = _flaw(fact, config, forgotten, uploads, needs_source=needs_source) if at < _MOST_FACTS else "too many"
        if flaw:
            work.refuse(Rejection(item="fact", reason=flaw))
        else:
            work.stands[at] = _learned(work, fact)
    paired = _remove(work, [removal for removal in update.removals if not removal.stale])
    return _finished(work, update, paired, base=profile)


def shortened(text: str, limit: int) -> str:
    """Return a text of at most `limit` characters: whole sentences where one fits, else whole words and an ellipsis."""
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


def _confirm(work: _Work, update: ProfileUpdate, *, by_signal: bool) -> None:
    for each in update.confirmations:
        fact = work.profile.fact(each.id)
        flaw = "" if by_signal else "signal"
        flaw = flaw or ("" if each.labels.scope == "user" else "scope")
        flaw = flaw or ("" if each.reason.strip() else "reason")
        flaw = flaw or ("used" if each.id in work.confirmed or _is_confirmed(fact, work.said) else "")
        if flaw or fact is None:
            work.refuse(Rejection(item="confirmation", reason=flaw or "unknown", id=each.id))
            continue
        moment = written(work.now)
        work.confirmed.append(fact.id)
        work.put(
            replace(
                fact,
                confirmations=fact.confirmations + 1,
                confirmed_at=moment,
                updated_at=moment,
                revision=fact.revision + 1,
            )
        )


def _is_confirmed(fact: Fact | None, said: datetime | None) -> bool:
    """Tell whether a fact was confirmed after something was said, so by this or by what came later."""
    last = moment_of(fact.confirmed_at) if fact else None
    return said is not None and last is not None and last >= said


def _summarise(work: _Work, edit: SummaryEdit, uploads: Collection[str]) -> None:
    flaw = "" if edit.name in {*USER_LEVEL, *HISTORY_LEVEL} else "unknown"
    flaw = flaw or flaw_of_summary(edit.labels)
    flaw = flaw or ("" if edit.summary.strip() else "blank")
    flaw = flaw or ("upload" if names_upload(edit.summary, uploads) else "")
    flaw = flaw or ("secret" if has_secret(edit.summary) else "")
    old = work.profile.summaries.get(edit.name, Summary())
    flaw = flaw or ("" if _is_due(edit.name, old, work) else "interval")
    if flaw:
        work.refuse(Rejection(item="summary", reason=flaw, id=edit.name))
        return
    limit = work.config.summary_characters.get(edit.name)
    text = edit.summary.strip() if limit is None else shortened(edit.summary, limit)
    new = replace(old, summary=text, updated_at=written(work.now))
    work.profile = replace(work.profile, summaries={**work.profile.summaries, edit.name: new})


def _is_due(name: str, old: Summary, work: _Work) -> bool:
    """Tell whether a summary may be written anew; one of a time to come was written by a clock that was wrong."""
    days = work.config.summary_interval_days.get(name, 0)
    last = moment_of(old.updated_at)
    if not old.summary.strip() or last is None:
        return True
    age = (work.now - last).total_seconds()
    return age < 0 or age >= days * _DAY


def _flaw(
    fact: NewFact,
    config: ProfileConfig,
    forgotten: Callable[[str], bool],
    uploads: Iterable[str],
    *,
    needs_source: bool,
) -> str:
    """Return why a fact is turned down; empty for one that may be learned."""
    surety = sure(fact.confidence)
    content = " ".join(fact.content.split())
    checks = (
        ("blank", not content),
        ("length", len(content) > config.max_fact_characters),
        ("confidence", surety is None),
        ("threshold", surety is not None and surety < config.fact_confidence_threshold),
        ("unsupported", needs_source and not fact.source.messages),
        ("upload", names_upload(content, uploads)),
        ("secret", has_secret(content)),
        ("forgotten", forgotten(content)),
    )
    return flaw_of_fact(fact.labels) or next((reason for reason, fails in checks if fails), "")


def _learned(work: _Work, fact: NewFact) -> str:
    """Take a fact in and return the id under which it stands: its own, or that of the one that says the same."""
    content = " ".join(fact.content.split())
    surety = sure(fact.confidence) or 0.0
    error = (fact.source_error or "").strip() or None
    same = alike(content, work.profile.facts, work.config, meaning=work.meaning)
    if same is not None:
        again = said_again(same, fact.source, confidence=surety, error=error, now=work.now)
        if again is not same:
            work.put(again)
            if same.id not in work.added and same.id not in work.confirmed:
                work.confirmed.append(same.id)
        return same.id
    moment = written(work.now)
    new = Fact(
        id=fact_id(content, {old.id for old in work.profile.facts}),
        content=content,
        category=fact.category.strip().casefold()[:_LONGEST_CATEGORY] or "context",
        confidence=surety,
        created_at=moment,
        updated_at=moment,
        source=replace(fact.source, thread=fact.source.thread.strip() or "unknown"),
        source_error=error,
        valid_days=_lifetime(fact.valid_days, work.config),
    )
    work.profile = replace(work.profile, facts=(*work.profile.facts, new))
    work.added.append(new.id)
    return new.id


def _lifetime(days: object, config: ProfileConfig) -> int | None:
    if isinstance(days, bool) or not isinstance(days, int) or days < 1:
        return None
    return min(days, config.staleness_age_days * config.staleness_max_lifetime_multiplier)


def _remove(work: _Work, removals: Sequence[Removal]) -> frozenset[str]:
    """Carry the removals out, and return the ids of what took the place of a removed fact."""
    paired: set[str] = set()
    for removal in removals:
        flaw = flaw_of_removal(removal, work.profile.fact(removal.id))
        instead = work.stands.get(removal.replacement) if removal.replacement is not None else None
        if not flaw and removal.replacement is not None and instead in {None, removal.id}:
            flaw = "replacement"
        if not flaw and (removal.id in work.added or removal.id in paired):
            flaw = "new"
        if flaw:
            work.refuse(Rejection(item="removal", reason=flaw, id=removal.id))
            continue
        if instead is not None:
            paired.add(instead)
            _inherit(work, removal.id, instead)
        facts = tuple(fact for fact in work.profile.facts if fact.id != removal.id)
        work.profile = replace(work.profile, facts=facts)
        work.removed.append(removal.id)
    work.confirmed = [each for each in work.confirmed if each not in work.removed]
    return frozenset(paired)


def _inherit(work: _Work, old_id: str, new_id: str) -> None:
    """Say in a correction what was wrong before, where nobody said it."""
    old, new = work.profile.fact(old_id), work.profile.fact(new_id)
    if old is not None and new is not None and new.category == "correction" and not new.source_error:
        work.put(replace(new, source_error=old.content))


def _finished(work: _Work, update: ProfileUpdate, paired: Collection[str], *, base: Profile) -> Applied:
    """Trim, merge, and write down what left."""
    cut = trimmed(work.profile.facts, now=work.now, config=work.config, kept=paired)
    gone = {fact.id for fact in cut.left}
    new_ids: list[str] = []
    for merging in update.mergings:
        new_ids.append(fact_id(merging.fact.content, {*new_ids, *(fact.id for fact in cut.facts)}))
    joined = merged(cut.facts, update.mergings, now=work.now, config=work.config, ids=new_ids)
    taken = {fact.id for fact in joined.taken}
    profile = replace(work.profile, facts=joined.facts, extra=_audited(work, cut.evicted))
    if profile != base:
        profile = replace(profile, last_updated=written(work.now))
    out = gone | taken
    return Applied(
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


def _audited(work: _Work, evicted: Sequence[Evicted]) -> dict[str, JsonValue]:
    most = work.config.eviction_audit_max_entries
    extra = dict(work.profile.extra)
    if not evicted or not most:
        return extra
    held = extra.get(AUDIT)
    rows: list[JsonValue] = list(held) if isinstance(held, list) else []
    moment = written(work.now)
    rows.extend({"id": each.id, "category": each.category, "score": each.score, "at": moment} for each in evicted)
    return {**extra, AUDIT: rows[-most:]}
