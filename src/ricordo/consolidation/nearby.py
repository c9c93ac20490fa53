"""Nearby: which memories may say the same as a new one, or lose their place to it, without comparing all. Pure.

Invariant: nothing that `says_the_same` joins, or `replaces` sets aside, is left out; what is given is still to be
compared. Both look at what two texts share, so that is what memories are found by. A memory that is held is read as far
as somebody asks: reading what all of them claim takes longer than all else, and few new ones need it.
"""

import math
import re
from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TypeAlias

from ricordo.consolidation.claims import Reading, attributes_told, read_claims, words_told
from ricordo.consolidation.conflicts import CORRECTION
from ricordo.consolidation.polarity import stance
from ricordo.consolidation.worth import moment
from ricordo.courtesy import give_way
from ricordo.language.statement_index import StatementIndex
from ricordo.workspace.entry import Entry

__all__ = ["Nearby"]

_ORDINAL = re.compile(r"^(\d+)(?:st|nd|rd|th)$")
_FRAME = 0.6
"""The share of what a correction speaks of that the sentence with the other number speaks of too, at least."""
_ROUNDING = 1e-9
_Said: TypeAlias = tuple[datetime, str]


class Nearby:
    """Memories, found by what they say; `duplicate` (0..1) is the likeness from which two say the same."""

    def __init__(self, duplicate: float) -> None:
        """Hold nothing yet."""
        self._statements = StatementIndex(duplicate)
        self._words = _Facet(lambda entry: words_told(entry.content))
        self._attributes = _Facet(lambda entry: attributes_told(entry.content))
        self._stances = _Facet(lambda entry: [taken[0]] if (taken := stance(entry.content)) else [])
        self._telling = _Telling()

    def add(self, entry: Entry) -> None:
        """Hold a memory under its id."""
        give_way()
        self._statements.add(entry.id, entry.content)
        self._words.add(entry)
        self._attributes.add(entry)
        self._stances.add(entry)
        self._telling.add(entry)

    def same(self, entry: Entry) -> set[str]:
        """Return the ids of those that may say the same."""
        return self._statements.may_equal(entry.content)

    def rivals(self, entry: Entry) -> set[str]:
        """Return the ids of those of which one may take the place of the other, in either direction."""
        return self._aimed_at(entry) | self._told_later(entry)

    def opponents(self, entry: Entry) -> set[str]:
        """Return the ids of those that say in the words of this one that it is so, or is not."""
        taken = stance(entry.content)
        return self._stances.any_of((taken[0],)) if taken else set()

    def _aimed_at(self, entry: Entry) -> set[str]:
        """Return the ids of those whose place this one may take, and of those that tell an attribute which it tells."""
        reading = read_claims(entry.content)
        found = self._attributes.any_of(claim.attribute for claim in reading.claims if claim.attribute)
        for claim in reading.claims:
            if claim.ended:
                found |= self._holding(claim.value)
        for denied in reading.denied:
            found |= self._holding(denied)
        if CORRECTION in entry.tags or reading.changes:
            found |= self._framed(reading)
        return found

    def _holding(self, words: Iterable[str]) -> set[str]:
        """Return those that hold all these words, an ordinal number as it stands or as a plain one."""
        rows = [self._words.any_of((word, plain[1]) if (plain := _ORDINAL.match(word)) else (word,)) for word in words]
        return set.intersection(*rows) if rows else set()

    def _framed(self, reading: Reading) -> set[str]:
        """Return those that may be the same sentence but for a number."""
        rows = sorted((self._words.any_of((word,)) for word in reading.subject), key=len)
        shared = max(math.ceil(_FRAME * len(rows) - _ROUNDING), 1)
        return set().union(*rows[: len(rows) - shared + 1])

    def _told_later(self, entry: Entry) -> set[str]:
        """Return those said later that set something aside, and share a word."""
        words = words_told(entry.content)
        return {name for name, told in self._telling.after(_said(entry)) if not words.isdisjoint(told)}


class _Facet:
    """Memories by what `told` reads in each; they are read when it is first asked for."""

    def __init__(self, told: Callable[[Entry], Iterable[str]]) -> None:
        self._told = told
        self._unread: list[Entry] = []
        self._holding: defaultdict[str, set[str]] = defaultdict(set)

    def add(self, entry: Entry) -> None:
        self._unread.append(entry)

    def any_of(self, wanted: Iterable[str]) -> set[str]:
        """Return the ids of those in which one of these is told."""
        found: set[str] = set()
        for each in wanted:
            self._read()
            found |= self._holding.get(each, set())
        return found

    def _read(self) -> None:
        for entry in self._unread:
            give_way()
            for told in self._told(entry):
                self._holding[told].add(entry.id)
        self._unread.clear()


class _Telling:
    """Memories that can take the place of one said before them, whatever its attributes, in the order of what was said.

    One that was said before all that is asked about is never read.
    """

    def __init__(self) -> None:
        self._unread: list[tuple[_Said, Entry]] = []
        self._read: list[tuple[_Said, frozenset[str]]] = []

    def add(self, entry: Entry) -> None:
        insort(self._unread, (_said(entry), entry), key=_when)

    def after(self, said: _Said) -> list[tuple[str, frozenset[str]]]:
        """Return the ids and the words of those that were said after `said`."""
        first = bisect_right(self._unread, said, key=_when)
        for when, entry in self._unread[first:]:
            give_way()
            if _tells(entry):
                insort(self._read, (when, words_told(entry.content)), key=_when)
        del self._unread[first:]
        return [(name, words) for (_, name), words in self._read[bisect_right(self._read, said, key=_when) :]]


def _said(entry: Entry) -> _Said:
    return moment(entry), entry.id


def _when(row: tuple[_Said, object]) -> _Said:
    return row[0]


def _tells(entry: Entry) -> bool:
    """Tell whether a memory can take the place of another that has no attribute in common with it."""
    reading = read_claims(entry.content)
    return (
        CORRECTION in entry.tags
        or reading.changes
        or bool(reading.denied)
        or any(claim.ended for claim in reading.claims)
    )
