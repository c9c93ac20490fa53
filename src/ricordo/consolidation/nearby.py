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

from ricordo.consolidation.claims import ParsedStatement, claimed_attributes, parse_statement, statement_words
from ricordo.consolidation.conflicts import CORRECTION_TAG
from ricordo.consolidation.polarity import stance
from ricordo.consolidation.worth import entry_time
from ricordo.courtesy import yield_point
from ricordo.language.statement_index import StatementIndex
from ricordo.workspace.entry import Entry

__all__ = ["RelatedEntryIndex"]

_ORDINAL = re.compile(r"^(\d+)(?:st|nd|rd|th)$")
_MIN_SHARED_SUBJECT = 0.6
"""The share of what a correction speaks of that the sentence with the other number speaks of too, at least."""
_ROUNDING = 1e-9
_SaidKey: TypeAlias = tuple[datetime, str]


class RelatedEntryIndex:
    """Memories, found by what they say; `duplicate` (0..1) is the likeness from which two say the same."""

    def __init__(self, duplicate: float) -> None:
        """Hold nothing yet."""
        self._statements = StatementIndex(duplicate)
        self._words = _LazyIndex(lambda entry: statement_words(entry.content))
        self._attributes = _LazyIndex(lambda entry: claimed_attributes(entry.content))
        self._stances = _LazyIndex(lambda entry: [taken[0]] if (taken := stance(entry.content)) else [])
        self._replacing = _ReplacingEntries()

    def add(self, entry: Entry) -> None:
        """Hold a memory under its id."""
        yield_point()
        self._statements.add(entry.id, entry.content)
        self._words.add(entry)
        self._attributes.add(entry)
        self._stances.add(entry)
        self._replacing.add(entry)

    def find_same(self, entry: Entry) -> set[str]:
        """Return the ids of those that may say the same."""
        return self._statements.find_candidates(entry.content)

    def find_rivals(self, entry: Entry) -> set[str]:
        """Return the ids of those of which one may take the place of the other, in either direction."""
        return self._find_replaceable(entry) | self._find_later_replacing(entry)

    def find_opponents(self, entry: Entry) -> set[str]:
        """Return the ids of those that say in the words of this one that it is so, or is not."""
        taken = stance(entry.content)
        return self._stances.find_any((taken[0],)) if taken else set()

    def _find_replaceable(self, entry: Entry) -> set[str]:
        """Return the ids of those whose place this one may take, and of those that tell an attribute which it tells."""
        reading = parse_statement(entry.content)
        found = self._attributes.find_any(claim.attribute for claim in reading.claims if claim.attribute)
        for claim in reading.claims:
            if claim.ended:
                found |= self._find_with_words(claim.value)
        for denied in reading.negated_clauses:
            found |= self._find_with_words(denied)
        if CORRECTION_TAG in entry.tags or reading.announces_change:
            found |= self._find_with_other_number(reading)
        return found

    def _find_with_words(self, words: Iterable[str]) -> set[str]:
        """Return those that hold all these words, an ordinal number as it stands or as a plain one."""
        rows = [
            self._words.find_any((word, plain[1]) if (plain := _ORDINAL.match(word)) else (word,)) for word in words
        ]
        return set.intersection(*rows) if rows else set()

    def _find_with_other_number(self, reading: ParsedStatement) -> set[str]:
        """Return those that may be the same sentence but for a number."""
        rows = sorted((self._words.find_any((word,)) for word in reading.subject), key=len)
        shared = max(math.ceil(_MIN_SHARED_SUBJECT * len(rows) - _ROUNDING), 1)
        return set().union(*rows[: len(rows) - shared + 1])

    def _find_later_replacing(self, entry: Entry) -> set[str]:
        """Return those said later that set something aside, and share a word."""
        words = statement_words(entry.content)
        return {name for name, told in self._replacing.find_after(_said_key(entry)) if not words.isdisjoint(told)}


class _LazyIndex:
    """Memories by what `told` reads in each; they are read when it is first asked for."""

    def __init__(self, told: Callable[[Entry], Iterable[str]]) -> None:
        self._extract = told
        self._pending: list[Entry] = []
        self._ids_by_key: defaultdict[str, set[str]] = defaultdict(set)

    def add(self, entry: Entry) -> None:
        self._pending.append(entry)

    def find_any(self, wanted: Iterable[str]) -> set[str]:
        """Return the ids of those in which one of these is told."""
        found: set[str] = set()
        for each in wanted:
            self._read_pending()
            found |= self._ids_by_key.get(each, set())
        return found

    def _read_pending(self) -> None:
        for entry in self._pending:
            yield_point()
            for told in self._extract(entry):
                self._ids_by_key[told].add(entry.id)
        self._pending.clear()


class _ReplacingEntries:
    """Memories that can take the place of one said before them, whatever its attributes, in the order of what was said.

    One that was said before all that is asked about is never read.
    """

    def __init__(self) -> None:
        self._pending: list[tuple[_SaidKey, Entry]] = []
        self._indexed: list[tuple[_SaidKey, frozenset[str]]] = []

    def add(self, entry: Entry) -> None:
        insort(self._pending, (_said_key(entry), entry), key=_row_key)

    def find_after(self, said: _SaidKey) -> list[tuple[str, frozenset[str]]]:
        """Return the ids and the words of those that were said after `said`."""
        first = bisect_right(self._pending, said, key=_row_key)
        for when, entry in self._pending[first:]:
            yield_point()
            if _can_replace(entry):
                insort(self._indexed, (when, statement_words(entry.content)), key=_row_key)
        del self._pending[first:]
        return [(name, words) for (_, name), words in self._indexed[bisect_right(self._indexed, said, key=_row_key) :]]


def _said_key(entry: Entry) -> _SaidKey:
    return entry_time(entry), entry.id


def _row_key(row: tuple[_SaidKey, object]) -> _SaidKey:
    return row[0]


def _can_replace(entry: Entry) -> bool:
    """Tell whether a memory can take the place of another that has no attribute in common with it."""
    reading = parse_statement(entry.content)
    return (
        CORRECTION_TAG in entry.tags
        or reading.announces_change
        or bool(reading.negated_clauses)
        or any(claim.ended for claim in reading.claims)
    )
