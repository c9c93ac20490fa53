"""Reconciliation of new entries with curated ones, before any is placed. Pure.

Entries are processed in the order in which they were said, so the result does not depend on the order of the files. The
newer of two incompatible entries wins; the other is marked and never erased. A rule for tool calls is never replaced,
and an entry that says the same without the rule is merged into it: only people switch rules off.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from math import inf

from ricordo.concurrency import yield_point
from ricordo.curation.change_model import CHANGE_THRESHOLD
from ricordo.curation.config import ConsolidationConfig
from ricordo.curation.conflicts import (
    announces_change,
    contradict,
    may_speak_for,
    outdates,
    replaces,
    says_the_same,
    score_change,
    share_subject,
    speak_of_themselves,
)
from ricordo.curation.contradictions import (
    ContradictionPair,
    RelatedEntryIndex,
    choose_confirmed,
    dismissed_id,
    find_contradictions,
    is_confirmed_beside,
    linked_entry_ids,
)
from ricordo.curation.importance import MERGED_FIELD, REPLACED_FIELD, entry_time, field_ids, is_explicit, is_worthwhile
from ricordo.curation.rewording import find_line_flaw, is_topic_name, with_reworded_content
from ricordo.curation.types import (
    MAX_PARENTS,
    Advice,
    CandidateEntry,
    LineMerge,
    Reconciliation,
    Refusal,
    Retirement,
    Supersession,
)
from ricordo.guard import Trust
from ricordo.language import annotate_dates, find_dates
from ricordo.workspace.entry import Entry, announce_successor, reopen

__all__ = ["reconcile"]


_LIMIT_DIVISOR = 10
_MIN_PARENTS = 2
_MIN_TOPIC_ENTRIES = 2
_MAX_CHANGES = 1


def reconcile(
    curated: Sequence[CandidateEntry],
    candidates: Iterable[CandidateEntry],
    *,
    fixed: Collection[str],
    config: ConsolidationConfig,
    deep: bool = False,
    advice: Advice | None = None,
    today: date | None = None,
) -> Reconciliation:
    """Decide about the `candidates` against `curated` ones; entries whose id is in `fixed` are never changed.

    With `deep` the curated entries are decided again too. `advice` is applied last, to what the rules leave open. What
    begins after `today` is only announced as the successor of what it replaces; without a day it replaces at once.
    """
    reconciler = _Reconciler(curated, fixed, config, today or date.max, shown=advice.shown if advice else ())
    accepted = [one for one in sorted(candidates, key=_said_key) if reconciler.is_new(one)]
    for one in sorted([*reconciler.take_out_reconsidered(), *accepted] if deep else accepted, key=_said_key):
        reconciler.add_candidate(one)
    reconciler.settle_announced()
    affected_ids = {one.entry.id for one in accepted} | linked_entry_ids(one.entry for one in curated)
    affected_ids |= reconciler.changed | (reconciler.active.keys() if deep else set())
    reconciler.apply_confirmations(affected_ids)
    if advice:
        reconciler.apply_advice(advice)
    curated_ids = {one.entry.id for one in curated}
    new_ids = {one.entry.id for one in accepted}
    outdated = reconciler.find_outdated()
    skipped_ids = {
        name
        for name in new_ids & reconciler.active.keys()
        if name in reconciler.dropped or not is_worthwhile(reconciler.active[name].entry, config)
    }
    return Reconciliation(
        active={name: one for name, one in reconciler.active.items() if name not in skipped_ids},
        changed=frozenset(reconciler.changed & curated_ids & reconciler.active.keys()),
        merged=tuple(sorted(reconciler.merged)),
        superseded=tuple(reconciler.superseded),
        left=tuple(sorted(skipped_ids)),
        retired=tuple(reconciler.retired),
        refused=tuple(reconciler.refused),
        topics=reconciler.name_topics(advice) if advice else {},
        undecided=tuple(pair for pair in reconciler.find_contradictions(affected_ids) if skipped_ids.isdisjoint(pair)),
        outdated={old: new for old, new in outdated.items() if skipped_ids.isdisjoint((old, new))},
    )


class _Reconciler:
    """The entries that are active so far, indexed by their words, and the decisions."""

    def __init__(
        self,
        curated: Sequence[CandidateEntry],
        fixed: Collection[str],
        config: ConsolidationConfig,
        today: date,
        *,
        shown: Sequence[Collection[str]] = (),
    ) -> None:
        self.active: dict[str, CandidateEntry] = {}
        self.changed: set[str] = set()
        self.merged: set[str] = set()
        self.superseded: list[Supersession] = []
        self.retired: list[Retirement] = []
        self.dropped: set[str] = set()
        self.refused: list[Refusal] = []
        self._merged_into: dict[str, str] = {}
        self._advised_lines: set[str] = set()
        """Ids of the lines that the advice made one, so that it can't remove that one too."""
        self._advised_replacements: dict[str, str] = {}
        self._outdated = {one.entry.id: one.entry.maybe_outdated_by for one in curated if one.entry.maybe_outdated_by}
        self._config = config
        self._today = today
        self._shown = shown
        self._fixed_ids = frozenset(fixed)
        self._curated_ids = frozenset(one.entry.id for one in curated)
        self._cited_ids = frozenset(name for one in curated for name in _cited_entry_ids(one.entry))
        self._supersessions_left = max(config.max_superseded, len(curated) // _LIMIT_DIVISOR)
        self._max_retired = max(config.max_retired, len(curated) // _LIMIT_DIVISOR)
        self._related = RelatedEntryIndex(config.duplicate)
        for one in curated:
            self._activate(one)

    def is_new(self, one: CandidateEntry) -> bool:
        """Tell whether the entry must be processed: not if it is curated or cited by a curated entry.

        If ledger and curated memory differ, the ledger's text wins only if it changed since it was read.
        """
        entry = one.entry
        if entry.id in self._curated_ids:
            if one.edited:
                self._apply_edit(entry)
            return False
        return entry.state == "active" and entry.id not in self._cited_ids

    def add_candidate(self, one: CandidateEntry) -> None:
        """Merge the entry into one that says the same, or activate it, and decide which entries it replaces."""
        others = self._sort_active(self._related.find_rivals(one.entry))
        duplicates = [
            other
            for other in self._sort_active(self._related.find_same(one.entry))
            if self._is_same(one.entry, other.entry)
        ]
        best = max(duplicates, key=self._rank, default=None)
        if best and self._yields_to_rule(best.entry, one.entry):
            self._activate(one)
            self._replace(best, one)
        else:
            one = self._merge_same(best, one) if best else one
            self._activate(one)
        for other in others:
            yield_point()
            if other.entry.id in self.active and other.entry.id != one.entry.id and one.entry.id in self.active:
                self._decide_replacement(one.entry.id, other.entry.id)
        self._decide_changes(one.entry.id)

    def _decide_changes(self, name: str) -> None:
        """Replace what the entry changes, and the entry if a later one changes it, where no rule found that.

        What is less sure is noted: the most likely one of them may be outdated, if the entry replaces none. What a
        model saw together with the entry is left to it.
        """
        if name not in self.active:
            return
        entry = self.active[name].entry
        rivals = [self.active[other] for other in self._related.find_on_subject(entry) if other in self.active]
        scored = sorted(((self._score_change(self.active[name], other), other) for other in rivals), key=_score_key)
        judged = set[str]().union(*(ids for ids in self._shown if name in ids))
        for score, other in [row for row in scored if row[1].entry.id not in judged][:_MAX_CHANGES]:
            if score >= CHANGE_THRESHOLD and name in self.active and other.entry.id in self.active:
                older, newer = sorted((self.active[name], other), key=_said_key)
                if self._may_replace(newer.entry, older.entry):
                    self._replace(older, newer)
                    self._supersessions_left -= 1
                    return
        if name in self.active:
            self._note_outdated(self.active[name], {other.entry.id: score for score, other in scored})

    def _note_outdated(self, one: CandidateEntry, scores: Mapping[str, float]) -> None:
        """Note what the entry may have made outdated, and the entry if a later one may have made it so."""
        names = [*scores, *sorted(self._related.find_with_values(one.entry) - scores.keys())]
        others = [self.active[other] for other in names if other in self.active]
        rows = [self._find_likelihood(one, other, scores.get(other.entry.id, -inf)) for other in others]
        likelihood, older, newer = max(rows, key=lambda row: row[0], default=(0.0, one, one))
        if not likelihood:
            return
        known = self.active.get(self._outdated.get(older.entry.id, ""))
        if known is None or likelihood >= self._find_likelihood(older, known, self._score_change(older, known))[0]:
            self._outdated[older.entry.id] = newer.entry.id

    def _find_likelihood(
        self, one: CandidateEntry, other: CandidateEntry, score: float
    ) -> tuple[float, CandidateEntry, CandidateEntry]:
        """Return how likely the later of two entries makes the earlier one outdated, the earlier one, and the later."""
        older, newer = sorted((one, other), key=_said_key)
        return outdates(newer.entry, older.entry, self._related.rarity, score), older, newer

    def find_outdated(self) -> dict[str, str]:
        """Return by the id of an active entry that of the newer active one that may have made it outdated.

        A person's line is never outdated, nor is one that they confirmed or that was said again since.
        """
        successors = {one.old: one.new for one in self.superseded}
        found: dict[str, str] = {}
        for old, by in self._outdated.items():
            new = self._resolve(by)
            while new in successors:
                new = self._resolve(successors[new])
            if old == new or not {old, new} <= self.active.keys():
                continue
            older, newer = self.active[old].entry, self.active[new].entry
            is_repeated = any(name > new for name in field_ids(older, MERGED_FIELD))
            is_decided = dismissed_id(older) == new or is_confirmed_beside(older, newer)
            if not (self._is_protected(older) or older.superseded_by or is_repeated or is_decided):
                found[old] = new
        return found

    def _score_change(self, one: CandidateEntry, other: CandidateEntry) -> float:
        """Return the score that the later of two entries changes the other one."""
        yield_point()
        older, newer = (each.entry for each in sorted((one, other), key=_said_key))
        return score_change(newer, older, self._related.rarity)

    def _is_same(self, new: Entry, other: Entry) -> bool:
        yield_point()
        return self._may_merge(new, other) and says_the_same(new, other, duplicate=self._config.duplicate)

    def take_out_reconsidered(self) -> list[CandidateEntry]:
        """Remove the unprotected curated entries, so that they are decided again, and return them."""
        unprotected = [one for one in self.active.values() if not self._is_protected(one.entry)]
        for one in unprotected:
            del self.active[one.entry.id]
        return unprotected

    def settle_announced(self) -> None:
        """Let announced successors that have begun replace entries; an entry whose successor is gone stays."""
        for one in [each for each in self.active.values() if each.entry.superseded_by]:
            successor = self.active.get(one.entry.superseded_by)
            if successor is None:
                self.active[one.entry.id] = replace(one, entry=reopen(one.entry))
                self.changed.add(one.entry.id)
            elif not self._begins_later(successor.entry):
                self._replace(one, successor)

    def find_contradictions(self, ids: Collection[str]) -> tuple[ContradictionPair, ...]:
        """Return the pairs of active entries that contradict each other, with at least one of each pair in `ids`.

        An entry does not contradict its announced successor.
        """
        entries = {name: one.entry for name, one in self.active.items()}
        pairs = find_contradictions(entries, self._related, ids)
        return tuple(pair for pair in pairs if not any(entries[name].superseded_by in pair for name in pair))

    def apply_confirmations(self, ids: Collection[str]) -> None:
        """Let confirmed entries replace those that contradict them, unless those are protected too."""
        confirmed = {name for name in ids if name in self.active and self.active[name].entry.confirmed}
        for pair in self.find_contradictions(confirmed) if confirmed else ():
            if not all(name in self.active for name in pair):
                continue
            one, other = (self.active[name] for name in pair)
            confirmed_entry = choose_confirmed(one.entry, other.entry)
            if confirmed_entry is not None:
                loser, winner = (other, one) if confirmed_entry is one.entry else (one, other)
                if not self._is_protected(loser.entry):
                    self._replace(loser, winner)

    def apply_advice(self, advice: Advice) -> None:
        """Carry out the allowed proposals of a model, and note why the others are refused."""
        flaws = [
            *map(self._merge, advice.merges),
            *map(self._supersede, advice.superseded),
            *map(self._retire, advice.retired),
        ]
        self.refused += [flaw for flaw in flaws if flaw]

    def name_topics(self, advice: Advice) -> dict[str, str]:
        """Return the topic of each entry by id, if its name is made of words of its entries."""
        groups: defaultdict[str, list[str]] = defaultdict(list)
        for name, topic in advice.topics.items():
            if self._resolve(name) in self.active:
                groups[topic].append(self._resolve(name))
        return {
            name: topic
            for topic, names in groups.items()
            if len(set(names)) >= _MIN_TOPIC_ENTRIES
            and is_topic_name(topic, [self.active[name].entry.content for name in names])
            for name in names
        }

    def _resolve(self, name: str) -> str:
        """Return the id of the entry into which this one was merged, if any."""
        while name in self._merged_into:
            name = self._merged_into[name]
        return name

    def _merge(self, merge: LineMerge) -> Refusal | None:
        """Merge several lines into one; if a person wrote one of them, it stays unchanged and is the result."""
        names = [*dict.fromkeys(map(self._resolve, merge.parents))]
        if len(names) < _MIN_PARENTS <= len(merge.parents):
            return None
        if not _MIN_PARENTS <= len(names) <= MAX_PARENTS:
            return "too few" if len(names) < _MIN_PARENTS else "too many"
        is_known = all(name in self.active and self.active[name].long is None for name in names)
        if not (is_known and self._are_shown(merge.parents)):
            return "unknown"
        parents = [self.active[name] for name in names]
        protected = [one for one in parents if self._is_by_person(one.entry)]
        content = protected[0].entry.content if protected else merge.content
        entries = [one.entry for one in parents]
        flaw = _find_parents_flaw(entries) or find_line_flaw(content, entries)
        if len(protected) > 1 or (protected and merge.content != content and not self._says_all(protected[0], parents)):
            flaw = "kept"
        if flaw is None:
            self._merge_parents(parents, protected, content)
            self._advised_lines.update(names)
        return flaw

    def _merge_parents(
        self, parents: Sequence[CandidateEntry], protected: Sequence[CandidateEntry], content: str
    ) -> None:
        survivor = protected[0] if protected else max(parents, key=self._rank)
        for loser in parents:
            if loser.entry.id != survivor.entry.id:
                survivor = self._merge_into(loser, survivor)
        if not protected:
            content = annotate_dates(content, _date_said(content, parents))
            survivor = replace(survivor, entry=with_reworded_content(survivor.entry, content))
        self._activate(survivor)

    def _says_all(self, one: CandidateEntry, parents: Sequence[CandidateEntry]) -> bool:
        """Tell whether a line that stays unchanged also says what the others say."""
        return all(
            other is one or says_the_same(other.entry, one.entry, duplicate=self._config.duplicate / 2)
            for other in parents
        )

    def _supersede(self, one: Supersession) -> Refusal | None:
        """Let the newer of two lines about one subject replace the other, where the rules left both."""
        old, new = self._resolve(one.old), self._resolve(one.new)
        if old in self._advised_lines or self._advised_replacements.get(old, new) != new:
            return "contradiction"
        if any(supersession.old == old for supersession in self.superseded):
            return None
        if not self._are_shown((one.old, one.new)):
            return "unknown"
        if old == new or old not in self.active or new not in self.active:
            return "unknown"
        older, newer = self.active[old], self.active[new]
        flaw = self._find_supersession_flaw(older, newer)
        if flaw is None:
            self._replace(older, newer)
            self._supersessions_left -= 1
            self._advised_replacements[old] = new
        return flaw

    def _find_supersession_flaw(self, older: CandidateEntry, newer: CandidateEntry) -> Refusal | None:
        if _said_key(newer) <= _said_key(older):
            return "older"
        if newer.entry.trust is Trust.EXTERNAL and older.entry.trust is not Trust.EXTERNAL:
            return "trust"
        if not may_speak_for(newer.entry, older.entry):
            return "speaker"
        if self._is_protected(older.entry) or (is_explicit(older.entry) and not is_explicit(newer.entry)):
            return "kept"
        if not (contradict(newer.entry, older.entry) or share_subject(newer.entry, older.entry)):
            return "subject"
        return "too many" if self._supersessions_left <= 0 else None

    def _retire(self, one: Retirement) -> Refusal | None:
        """Remove an entry from curated memory without a replacement; a new one stays in its ledger only."""
        name = one.id
        if self._resolve(name) in {*self._advised_lines, *self._advised_replacements.values()}:
            return "contradiction"
        if any(supersession.old == name for supersession in self.superseded) or self._resolve(name) != name:
            return None
        if name not in self.active or not self._are_shown((name,)):
            return "unknown"
        entry, is_curated = self.active[name].entry, name in self._curated_ids
        if self._is_by_person(entry) or (not is_curated and (is_explicit(entry) or entry.supersedes)):
            return "kept"
        if not is_curated:
            self.dropped.add(name)
        elif len(self.retired) < self._max_retired:
            del self.active[name]
            self.retired.append(one)
        else:
            return "too many"
        return None

    def _are_shown(self, names: Collection[str]) -> bool:
        """Tell whether the model saw all of these entries in one request; True where nothing is known of it."""
        return not self._shown or any(shown >= set(names) for shown in map(frozenset, self._shown))

    def _is_by_person(self, entry: Entry) -> bool:
        """Tell whether an entry is protected or was saved by a person."""
        return self._is_protected(entry) or entry.by == "user"

    def _apply_edit(self, entry: Entry) -> None:
        """Apply an edit of a person in the ledger."""
        old = self.active[entry.id]
        if entry.content != old.entry.content and old.long is None and entry.id not in self._fixed_ids:
            self.active[entry.id] = replace(old, entry=replace(old.entry, content=entry.content))
            self.changed.add(entry.id)

    def _activate(self, one: CandidateEntry) -> None:
        self.active[one.entry.id] = one
        self._related.add(one.entry)

    def _sort_active(self, names: Collection[str]) -> list[CandidateEntry]:
        """Return the active entries among these ids, the earliest first."""
        return sorted((self.active[name] for name in names if name in self.active), key=_said_key)

    def _rank(self, one: CandidateEntry) -> tuple[bool, bool, bool, bool, float, datetime, str]:
        entry = one.entry
        is_curated = entry.id in self._curated_ids
        is_rule = entry.rule is not None
        is_protected = is_curated and self._is_protected(entry)
        return (
            is_rule,
            is_protected,
            is_curated,
            is_explicit(entry),
            round(entry.confidence, 1),
            entry_time(entry),
            entry.id,
        )

    def _may_merge(self, new: Entry, other: Entry) -> bool:
        """Tell whether `new` may merge with `other`: a rule only with an equal rule, or an unprotected plain entry.

        What was learned from a tool's output merges with nothing else, which it would take out of curated memory.
        """
        if new.is_external != other.is_external:
            return False
        if new.rule is None or new.rule == other.rule:
            return True
        return other.rule is None and not self._is_protected(other)

    def _yields_to_rule(self, other: Entry, new: Entry) -> bool:
        """Tell whether a new rule replaces a curated entry that says the same without a rule."""
        return other.id in self._curated_ids and new.rule is not None and other.rule is None

    def _merge_same(self, left: CandidateEntry, right: CandidateEntry) -> CandidateEntry:
        """Merge two entries that say the same and return the survivor, which cites the other."""
        return self._merge_into(*sorted((left, right), key=self._rank))

    def _merge_into(self, loser: CandidateEntry, survivor: CandidateEntry) -> CandidateEntry:
        self._merged_into[loser.entry.id] = survivor.entry.id
        self.merged.add(loser.entry.id)
        self.active.pop(loser.entry.id, None)
        loser_id = loser.entry.id
        self.superseded = [
            replace(one, new=survivor.entry.id) if one.new == loser_id else one for one in self.superseded
        ]
        if survivor.entry.id in self._fixed_ids:
            return survivor
        self.changed.add(survivor.entry.id)
        return replace(survivor, entry=_with_citation(survivor.entry, loser.entry))

    def _decide_replacement(self, one: str, other: str) -> None:
        older, newer = self.active[one], self.active[other]
        if _said_key(newer) < _said_key(older):
            older, newer = newer, older
        if not self._may_replace(newer.entry, older.entry) or not replaces(newer.entry, older.entry):
            return
        self._replace(older, newer)
        self._supersessions_left -= 1

    def _begins_later(self, entry: Entry) -> bool:
        return entry.valid_from is not None and entry.valid_from > self._today

    def _replace(self, older: CandidateEntry, newer: CandidateEntry) -> None:
        if self._begins_later(newer.entry):
            announced = announce_successor(older.entry, newer.entry.id, end=newer.entry.valid_from)
            self.active[older.entry.id] = replace(older, entry=announced)
            self.changed.add(older.entry.id)
            return
        del self.active[older.entry.id]
        # entries merged into the older one are superseded too
        for name in (older.entry.id, *field_ids(older.entry, MERGED_FIELD)):
            self.superseded.append(Supersession(old=name, new=newer.entry.id))
        if newer.entry.id not in self._fixed_ids:
            self.active[newer.entry.id] = replace(newer, entry=_with_supersession(newer.entry, older.entry.id))
            self.changed.add(newer.entry.id)

    def _may_replace(self, newer: Entry, older: Entry) -> bool:
        if self._supersessions_left <= 0 or self._is_protected(older) or newer.is_external:
            return False
        if not may_speak_for(newer, older):
            return False
        if not announces_change(newer) and entry_time(newer) == entry_time(older):
            return False
        if is_explicit(newer):
            return True
        is_change = announces_change(newer)
        return newer.confidence >= self._config.min_confidence and (is_change or not is_explicit(older))

    def _is_protected(self, entry: Entry) -> bool:
        """Tell whether an entry can't be replaced by new ones."""
        return entry.id in self._fixed_ids or entry.pinned or entry.by == "hand" or entry.rule is not None


def _find_parents_flaw(parents: Sequence[Entry]) -> Refusal | None:
    """Return why these entries can't become one: what a tool said is no statement of somebody, nor is one person's of
    another.
    """
    if len({entry.is_external for entry in parents}) > 1:
        return "trust"
    is_mixed = any(speak_of_themselves(one, other) for one in parents for other in parents)
    return "speaker" if is_mixed else None


def _date_said(content: str, parents: Sequence[CandidateEntry]) -> date:
    """Return the day on which a merged line was said: that of its newest parent with the same relative dates."""
    mention_texts = {mention.text.casefold() for mention in find_dates(content, date(2000, 1, 1)) if mention.relative}
    mentioning = [one for one in parents if any(text in one.entry.content.casefold() for text in mention_texts)]
    return entry_time(max(mentioning or parents, key=_said_key).entry).date()


def _score_key(row: tuple[float, CandidateEntry]) -> tuple[float, datetime, str]:
    """Return the order of equal scores by time and text, because an id has a random part."""
    return -row[0], entry_time(row[1].entry), row[1].entry.content


def _said_key(one: CandidateEntry) -> tuple[datetime, str]:
    return entry_time(one.entry), one.entry.id


def _cited_entry_ids(entry: Entry) -> tuple[str, ...]:
    """Return the ids of other entries that a curated entry replaces."""
    return (
        *field_ids(entry, MERGED_FIELD),
        *field_ids(entry, REPLACED_FIELD),
        *([entry.supersedes] if entry.supersedes else []),
    )


def _with_citation(survivor: Entry, loser: Entry) -> Entry:
    names = dict.fromkeys((*field_ids(survivor, MERGED_FIELD), *field_ids(loser, MERGED_FIELD), loser.id))
    updated = _with_field(survivor, MERGED_FIELD, sorted(names))
    replaced_ids = [name for name in (loser.supersedes, *field_ids(loser, REPLACED_FIELD)) if name]
    for name in replaced_ids:
        updated = _with_supersession(updated, name)
    return updated


def _with_supersession(entry: Entry, old: str) -> Entry:
    if entry.supersedes is None:
        return replace(entry, supersedes=old)
    if old == entry.supersedes:
        return entry
    return _with_field(entry, REPLACED_FIELD, sorted({*field_ids(entry, REPLACED_FIELD), old}))


def _with_field(entry: Entry, name: str, values: Sequence[str]) -> Entry:
    rest = tuple((key, value) for key, value in entry.extra if key != name)
    return replace(entry, extra=(*rest, (name, ",".join(values))))
