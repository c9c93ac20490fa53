"""Nearby: which memories may say the same as a new one, or lose their place to it, without comparing all. Pure.

Invariant: nothing that `says_the_same` joins, or `replaces` sets aside, is left out; what is given is still to be
compared. Both look at what two texts share, so that is what memories are found by.
"""

import math
import re
from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from typing import TypeAlias

from ricordo.consolidation.claims import Reading, read_claims
from ricordo.consolidation.conflicts import CORRECTION
from ricordo.consolidation.worth import moment
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
        self._words: defaultdict[str, set[str]] = defaultdict(set)
        self._attributes: defaultdict[str, set[str]] = defaultdict(set)
        self._telling: list[_Said] = []
        self._said: dict[str, Reading] = {}

    def add(self, entry: Entry) -> None:
        """Hold a memory under its id."""
        reading = read_claims(entry.content)
        self._statements.add(entry.id, entry.content)
        for word in reading.words | reading.numbers:
            self._words[word].add(entry.id)
        for claim in reading.claims:
            self._attributes[claim.attribute].add(entry.id)
        if _tells(entry, reading) and entry.id not in self._said:
            insort(self._telling, (moment(entry), entry.id))
            self._said[entry.id] = reading

    def same(self, entry: Entry) -> set[str]:
        """Return the ids of those that may say the same."""
        return self._statements.may_equal(entry.content)

    def rivals(self, entry: Entry) -> set[str]:
        """Return the ids of those of which one may take the place of the other, in either direction."""
        reading = read_claims(entry.content)
        found = set().union(*(self._attributes.get(claim.attribute, ()) for claim in reading.claims if claim.attribute))
        for claim in reading.claims:
            if claim.ended:
                found |= self._holding(claim.value)
        for denied in reading.denied:
            found |= self._holding(denied)
        if CORRECTION in entry.tags or reading.changes:
            found |= self._framed(reading)
        return found | self._later(entry, reading)

    def _holding(self, words: Iterable[str]) -> set[str]:
        """Return those that hold all these words, an ordinal number as it stands or as a plain one."""
        rows = [
            self._words.get(word, set())
            | (self._words.get(plain[1], set()) if (plain := _ORDINAL.match(word)) else set())
            for word in words
        ]
        return set.intersection(*rows) if rows else set()

    def _framed(self, reading: Reading) -> set[str]:
        """Return those that may be the same sentence but for a number."""
        rows = sorted((self._words.get(word, set()) for word in reading.subject), key=len)
        shared = max(math.ceil(_FRAME * len(rows) - _ROUNDING), 1)
        return set().union(*rows[: len(rows) - shared + 1])

    def _later(self, entry: Entry, reading: Reading) -> set[str]:
        """Return those said later that set something aside, and share a word."""
        first = bisect_right(self._telling, (moment(entry), entry.id))
        words = reading.words | reading.numbers
        return {
            name for _, name in self._telling[first:] if words & (self._said[name].words | self._said[name].numbers)
        }


def _tells(entry: Entry, reading: Reading) -> bool:
    """Tell whether a memory can take the place of another that has no attribute in common with it."""
    return (
        CORRECTION in entry.tags
        or reading.changes
        or bool(reading.denied)
        or any(claim.ended for claim in reading.claims)
    )
