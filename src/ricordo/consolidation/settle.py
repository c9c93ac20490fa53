"""Settle: what new entries mean beside what is curated already, before anything is placed. Pure.

Entries are taken in the order in which they were said, so the outcome does not depend on the order of the files. The
newer of two that can't both hold wins; the loser is named and never erased. An entry that is a rule for tool calls
loses to none, and what says the same without its rule gives way to it: a rule is switched off by people alone.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import date, datetime

from ricordo.consolidation.answer import MOST_PARENTS
from ricordo.consolidation.config import ConsolidationConfig
from ricordo.consolidation.conflicts import (
    announces,
    contradict,
    of_two_speakers,
    replaces,
    says_the_same,
    speaks_of_the_same,
)
from ricordo.consolidation.nearby import Nearby
from ricordo.consolidation.types import Advice, Fresh, Merge, Refusal, Retired, Settled, Superseded
from ricordo.consolidation.undecided import Pair, chosen, linked_ids, undecided_pairs
from ricordo.consolidation.wording import flaw_of_line, is_topic_name, reworded
from ricordo.consolidation.worth import MERGED, REPLACED, cited, is_explicit, is_worthwhile, moment
from ricordo.courtesy import give_way
from ricordo.language import dated, find_dates
from ricordo.workspace.entry import Entry

__all__ = ["settle"]

_SHARE = 10
_FEWEST_PARENTS = 2
_FEWEST_IN_TOPIC = 2


def settle(
    curated: Sequence[Fresh],
    fresh: Iterable[Fresh],
    *,
    fixed: Collection[str],
    config: ConsolidationConfig,
    deep: bool = False,
    advice: Advice | None = None,
) -> Settled:
    """Decide about `fresh` beside `curated`; entries whose id is in `fixed` are never changed.

    With `deep` what is curated is decided about anew too. `advice` comes last: it settles what the rules leave open.
    """
    desk = _Desk(curated, fixed, config)
    taken = [one for one in sorted(fresh, key=_said) if desk.is_new(one)]
    for one in sorted([*desk.reopened(), *taken] if deep else taken, key=_said):
        desk.take(one)
    asked = {one.entry.id for one in taken} | linked_ids(one.entry for one in curated)
    asked |= desk.changed | (desk.active.keys() if deep else set())
    desk.heed_people(asked)
    if advice:
        desk.follow(advice)
    standing = {one.entry.id for one in curated}
    new = {one.entry.id for one in taken}
    left = {
        name
        for name in new & desk.active.keys()
        if name in desk.dropped or not is_worthwhile(desk.active[name].entry, config)
    }
    return Settled(
        active={name: one for name, one in desk.active.items() if name not in left},
        changed=frozenset(desk.changed & standing & desk.active.keys()),
        merged=tuple(sorted(desk.merged)),
        superseded=tuple(desk.superseded),
        left=tuple(sorted(left)),
        retired=tuple(desk.retired),
        refused=tuple(desk.refused),
        topics=desk.named_topics(advice) if advice else {},
        undecided=tuple(pair for pair in desk.undecided(asked) if left.isdisjoint(pair)),
    )


class _Desk:
    """What is active so far, found by the words it holds."""

    def __init__(self, curated: Sequence[Fresh], fixed: Collection[str], config: ConsolidationConfig) -> None:
        self.active: dict[str, Fresh] = {}
        self.changed: set[str] = set()
        self.merged: set[str] = set()
        self.superseded: list[Superseded] = []
        self.retired: list[Retired] = []
        self.dropped: set[str] = set()
        self.refused: list[Refusal] = []
        self._became: dict[str, str] = {}
        self._config = config
        self._fixed = frozenset(fixed)
        self._standing = frozenset(one.entry.id for one in curated)
        self._known = frozenset(name for one in curated for name in _named(one.entry))
        self._room = max(config.max_superseded, len(curated) // _SHARE)
        self._may_retire = max(config.max_retired, len(curated) // _SHARE)
        self._nearby = Nearby(config.duplicate)
        for one in curated:
            self._seat(one)

    def is_new(self, one: Fresh) -> bool:
        """Tell whether the entry is to be looked at: what curated memory speaks of already is not.

        Where the two differ, the ledger's words count only if they changed since they were read.
        """
        entry = one.entry
        if entry.id in self._standing:
            if one.edited:
                self._edit(entry)
            return False
        return entry.state == "active" and entry.id not in self._known

    def take(self, one: Fresh) -> None:
        """Merge the entry into one that says the same, or seat it, and decide what it takes the place of."""
        others = self._standing_among(self._nearby.rivals(one.entry))
        same = [
            other
            for other in self._standing_among(self._nearby.same(one.entry))
            if self._is_same(one.entry, other.entry)
        ]
        best = max(same, key=self._rank, default=None)
        if best and self._gives_way(best.entry, one.entry):
            self._seat(one)
            self._replace(best, one)
        else:
            one = self._join(best, one) if best else one
            self._seat(one)
        for other in others:
            give_way()
            if other.entry.id in self.active and other.entry.id != one.entry.id and one.entry.id in self.active:
                self._decide(one.entry.id, other.entry.id)

    def _is_same(self, new: Entry, other: Entry) -> bool:
        give_way()
        return self._may_join(new, other) and says_the_same(new, other, duplicate=self._config.duplicate)

    def reopened(self) -> list[Fresh]:
        """Take what is curated and not a person's out again, so that it is decided about anew, and return it."""
        found = [one for one in self.active.values() if not self._is_kept(one.entry)]
        for one in found:
            del self.active[one.entry.id]
        return found

    def undecided(self, asked: Collection[str]) -> tuple[Pair, ...]:
        """Return which of those that are active contradict each other, one of each pair being among `asked`."""
        return undecided_pairs({name: one.entry for name, one in self.active.items()}, self._nearby, asked)

    def heed_people(self, asked: Collection[str]) -> None:
        """Let what a person confirmed take the place of what contradicts it, unless that is a person's own too."""
        confirmed = {name for name in asked if name in self.active and self.active[name].entry.confirmed}
        for pair in self.undecided(confirmed) if confirmed else ():
            if not all(name in self.active for name in pair):
                continue
            one, other = (self.active[name] for name in pair)
            right = chosen(one.entry, other.entry)
            if right is not None:
                loser, winner = (other, one) if right is one.entry else (one, other)
                if not self._is_kept(loser.entry):
                    self._replace(loser, winner)

    def follow(self, advice: Advice) -> None:
        """Carry out what a model proposed as far as that is allowed, and note of the rest why it is not."""
        flaws = [
            *map(self._merge, advice.merges),
            *map(self._supersede, advice.superseded),
            *map(self._retire, advice.retired),
        ]
        self.refused += [flaw for flaw in flaws if flaw]

    def named_topics(self, advice: Advice) -> dict[str, str]:
        """Return by id which topic an entry is to have, as far as its name is made of what stands in its entries."""
        groups: defaultdict[str, list[str]] = defaultdict(list)
        for name, topic in advice.topics.items():
            if self._now(name) in self.active:
                groups[topic].append(self._now(name))
        return {
            name: topic
            for topic, names in groups.items()
            if len(set(names)) >= _FEWEST_IN_TOPIC
            and is_topic_name(topic, [self.active[name].entry.content for name in names])
            for name in names
        }

    def _now(self, name: str) -> str:
        """Return the id of the entry by which this one is said now."""
        while name in self._became:
            name = self._became[name]
        return name

    def _merge(self, merge: Merge) -> Refusal | None:
        """Let one line stand for several; a line that is a person's stays as it is, and then it is the one."""
        names = [*dict.fromkeys(map(self._now, merge.parents))]
        if len(names) < _FEWEST_PARENTS <= len(merge.parents):
            return None
        if not _FEWEST_PARENTS <= len(names) <= MOST_PARENTS:
            return "too few" if len(names) < _FEWEST_PARENTS else "too many"
        if not all(name in self.active and self.active[name].long is None for name in names):
            return "unknown"
        parents = [self.active[name] for name in names]
        kept = [one for one in parents if self._is_persons(one.entry)]
        content = kept[0].entry.content if kept else merge.content
        flaw = flaw_of_line(content, [one.entry.content for one in parents])
        if len(kept) > 1 or (kept and merge.content != content and not self._says_all(kept[0], parents)):
            flaw = "kept"
        if flaw is None:
            self._unite(parents, kept, content)
        return flaw

    def _unite(self, parents: Sequence[Fresh], kept: Sequence[Fresh], content: str) -> None:
        survivor = kept[0] if kept else max(parents, key=self._rank)
        for loser in parents:
            if loser.entry.id != survivor.entry.id:
                survivor = self._joined(loser, survivor)
        if not kept:
            content = dated(content, _day_of(content, parents))
            survivor = replace(survivor, entry=reworded(survivor.entry, content))
        self._seat(survivor)

    def _says_all(self, one: Fresh, parents: Sequence[Fresh]) -> bool:
        """Tell whether a line that stays as it is says what the others say too."""
        return all(
            other is one or says_the_same(other.entry, one.entry, duplicate=self._config.duplicate / 2)
            for other in parents
        )

    def _supersede(self, one: Superseded) -> Refusal | None:
        """Let the newer of two lines about one subject take the other's place, where the rules left both."""
        old, new = self._now(one.old), self._now(one.new)
        if any(done.old == old for done in self.superseded):
            return None
        if old == new or old not in self.active or new not in self.active:
            return "unknown"
        older, newer = self.active[old], self.active[new]
        flaw = self._flaw_of_superseding(older, newer)
        if flaw is None:
            self._replace(older, newer)
            self._room -= 1
        return flaw

    def _flaw_of_superseding(self, older: Fresh, newer: Fresh) -> Refusal | None:
        if _said(newer) <= _said(older):
            return "older"
        if self._is_kept(older.entry) or (is_explicit(older.entry) and not is_explicit(newer.entry)):
            return "kept"
        if not (contradict(newer.entry, older.entry) or speaks_of_the_same(newer.entry, older.entry)):
            return "subject"
        return "too many" if self._room <= 0 else None

    def _retire(self, one: Retired) -> Refusal | None:
        """Take an entry out of view that nothing stands for; a new one then stays in its ledger only."""
        name = one.id
        if any(done.old == name for done in self.superseded) or self._now(name) != name:
            return None
        if name not in self.active:
            return "unknown"
        entry, standing = self.active[name].entry, name in self._standing
        if self._is_persons(entry) or (not standing and (is_explicit(entry) or entry.supersedes)):
            return "kept"
        if not standing:
            self.dropped.add(name)
        elif len(self.retired) < self._may_retire:
            del self.active[name]
            self.retired.append(one)
        else:
            return "too many"
        return None

    def _is_persons(self, entry: Entry) -> bool:
        """Tell whether an entry is what a person wrote, or wants to see."""
        return self._is_kept(entry) or entry.by == "user"

    def _edit(self, entry: Entry) -> None:
        """Take over what a person changed in the ledger."""
        old = self.active[entry.id]
        if entry.content != old.entry.content and old.long is None and entry.id not in self._fixed:
            self.active[entry.id] = replace(old, entry=replace(old.entry, content=entry.content))
            self.changed.add(entry.id)

    def _seat(self, one: Fresh) -> None:
        self.active[one.entry.id] = one
        self._nearby.add(one.entry)

    def _standing_among(self, names: Collection[str]) -> list[Fresh]:
        """Return those of these ids that are active, the first said first."""
        return sorted((self.active[name] for name in names if name in self.active), key=_said)

    def _rank(self, one: Fresh) -> tuple[bool, bool, bool, bool, float, datetime, str]:
        entry = one.entry
        standing = entry.id in self._standing
        ruling = entry.rule is not None
        kept = standing and self._is_kept(entry)
        return ruling, kept, standing, is_explicit(entry), round(entry.confidence, 1), moment(entry), entry.id

    def _may_join(self, new: Entry, other: Entry) -> bool:
        """Tell whether one of two that say the same may go: of two rules only one with the same rule as the other."""
        if new.rule is None or new.rule == other.rule:
            return True
        return other.rule is None and not self._is_kept(other)

    def _gives_way(self, other: Entry, new: Entry) -> bool:
        """Tell whether a curated entry loses its place to a new one that says the same and is a rule."""
        return other.id in self._standing and new.rule is not None and other.rule is None

    def _join(self, left: Fresh, right: Fresh) -> Fresh:
        """Return the one of two that say the same which stays; it cites the other."""
        return self._joined(*sorted((left, right), key=self._rank))

    def _joined(self, loser: Fresh, survivor: Fresh) -> Fresh:
        self._became[loser.entry.id] = survivor.entry.id
        self.merged.add(loser.entry.id)
        self.active.pop(loser.entry.id, None)
        gone = loser.entry.id
        self.superseded = [replace(one, new=survivor.entry.id) if one.new == gone else one for one in self.superseded]
        if survivor.entry.id in self._fixed:
            return survivor
        self.changed.add(survivor.entry.id)
        return replace(survivor, entry=_citing(survivor.entry, loser.entry))

    def _decide(self, one: str, other: str) -> None:
        older, newer = self.active[one], self.active[other]
        if _said(newer) < _said(older):
            older, newer = newer, older
        if not self._may_replace(newer.entry, older.entry) or not replaces(newer.entry, older.entry):
            return
        self._replace(older, newer)
        self._room -= 1

    def _replace(self, older: Fresh, newer: Fresh) -> None:
        del self.active[older.entry.id]
        # what said the same in other words holds no longer either
        for name in (older.entry.id, *cited(older.entry, MERGED)):
            self.superseded.append(Superseded(old=name, new=newer.entry.id))
        if newer.entry.id not in self._fixed:
            self.active[newer.entry.id] = replace(newer, entry=_in_place_of(newer.entry, older.entry.id))
            self.changed.add(newer.entry.id)

    def _may_replace(self, newer: Entry, older: Entry) -> bool:
        if self._room <= 0 or self._is_kept(older):
            return False
        if not announces(newer) and (of_two_speakers(newer, older) or moment(newer) == moment(older)):
            return False
        if is_explicit(newer):
            return True
        told = announces(newer)
        return newer.confidence >= self._config.min_confidence and (told or not is_explicit(older))

    def _is_kept(self, entry: Entry) -> bool:
        """Tell whether an entry keeps its place whatever is new."""
        return entry.id in self._fixed or entry.pinned or entry.by == "hand" or entry.rule is not None


def _day_of(content: str, parents: Sequence[Fresh]) -> date:
    """Return the day on which what a line says was said: that of the newest of those that name a day as it does."""
    own = {mention.text.casefold() for mention in find_dates(content, date(2000, 1, 1)) if mention.relative}
    saying = [one for one in parents if any(text in one.entry.content.casefold() for text in own)]
    return moment(max(saying or parents, key=_said).entry).date()


def _said(one: Fresh) -> tuple[datetime, str]:
    return moment(one.entry), one.entry.id


def _named(entry: Entry) -> tuple[str, ...]:
    """Return the ids of other entries that a curated one stands for."""
    return (*cited(entry, MERGED), *cited(entry, REPLACED), *([entry.supersedes] if entry.supersedes else []))


def _citing(survivor: Entry, loser: Entry) -> Entry:
    names = dict.fromkeys((*cited(survivor, MERGED), *cited(loser, MERGED), loser.id))
    shown = _with_field(survivor, MERGED, sorted(names))
    taken = [name for name in (loser.supersedes, *cited(loser, REPLACED)) if name]
    for name in taken:
        shown = _in_place_of(shown, name)
    return shown


def _in_place_of(entry: Entry, old: str) -> Entry:
    if entry.supersedes is None:
        return replace(entry, supersedes=old)
    if old == entry.supersedes:
        return entry
    return _with_field(entry, REPLACED, sorted({*cited(entry, REPLACED), old}))


def _with_field(entry: Entry, name: str, values: Sequence[str]) -> Entry:
    rest = tuple((key, value) for key, value in entry.extra if key != name)
    return replace(entry, extra=(*rest, (name, ",".join(values))))
