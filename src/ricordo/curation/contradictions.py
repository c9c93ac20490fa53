"""Contradictions between memories that no rule decides: found, linked in the documents, and moved together. Pure.

An index finds the memories that are worth comparing with another one, without comparing all; an entry is parsed only
when needed. If a person confirmed one of two entries after both existed, that one holds and the other does not. If both
were confirmed, both hold.

Invariants: the index omits no pair that `says_the_same` joins or `replaces` decides. No pair is about two subjects.
"""

import math
from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeAlias

from ricordo.concurrency import yield_point
from ricordo.curation.claims import ParsedStatement, claimed_attributes, parse_statement, statement_words
from ricordo.curation.conflicts import contradict, stance
from ricordo.curation.importance import CORRECTION_TAG, entry_time
from ricordo.curation.memory_document import DocumentPart, MemoryDocument, parse_memory_document
from ricordo.language.duplicates import StatementIndex
from ricordo.lazy import lazy_compile
from ricordo.workspace.entry import CONTRADICTS_FIELD, Entry, contradicted_ids, set_contradictions

__all__ = [
    "ContradictionPair",
    "RelatedEntryIndex",
    "choose_confirmed",
    "find_contradictions",
    "link_contradictions",
    "linked_entry_ids",
    "map_links",
    "move_together",
    "remove_links",
    "with_links",
]


_ORDINAL = lazy_compile(r"^(\d+)(?:st|nd|rd|th)$")
_MIN_SHARED_SUBJECT = 0.6
"""The minimum share of a correction's subject words in the sentence with the other number."""
_ROUNDING = 1e-9
_SaidKey: TypeAlias = tuple[datetime, str]


class RelatedEntryIndex:
    """An index of memories by content; memories with a similarity of `duplicate` (0..1) say the same."""

    def __init__(self, duplicate: float) -> None:
        """Create an empty index."""
        self._statements = StatementIndex(duplicate)
        self._words = _LazyIndex(lambda entry: statement_words(entry.content))
        self._attributes = _LazyIndex(lambda entry: claimed_attributes(entry.content))
        self._stances = _LazyIndex(lambda entry: [taken[0]] if (taken := stance(entry.content)) else [])
        self._replacing = _ReplacingEntries()

    def add(self, entry: Entry) -> None:
        """Add a memory under its id."""
        yield_point()
        self._statements.add(entry.id, entry.content)
        self._words.add(entry)
        self._attributes.add(entry)
        self._stances.add(entry)
        self._replacing.add(entry)

    def find_same(self, entry: Entry) -> set[str]:
        """Return the ids of memories that may say the same."""
        return self._statements.find_candidates(entry.content)

    def find_rivals(self, entry: Entry) -> set[str]:
        """Return the ids of memories that may replace this one, or be replaced by it."""
        return self._find_replaceable(entry) | self._find_later_replacing(entry)

    def find_opponents(self, entry: Entry) -> set[str]:
        """Return the ids of memories that affirm or deny the same words as this one."""
        taken = stance(entry.content)
        return self._stances.find_any((taken[0],)) if taken else set()

    def _find_replaceable(self, entry: Entry) -> set[str]:
        """Return the ids of memories that this one may replace, and of those with an attribute in common."""
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
        """Return the ids of memories with all these words; ordinal numbers also match as plain ones."""
        rows = [
            self._words.find_any((word, plain[1]) if (plain := _ORDINAL.match(word)) else (word,)) for word in words
        ]
        return set.intersection(*rows) if rows else set()

    def _find_with_other_number(self, reading: ParsedStatement) -> set[str]:
        """Return the ids of memories that may be the same sentence with another number."""
        rows = sorted((self._words.find_any((word,)) for word in reading.subject), key=len)
        shared = max(math.ceil(_MIN_SHARED_SUBJECT * len(rows) - _ROUNDING), 1)
        return set().union(*rows[: len(rows) - shared + 1])

    def _find_later_replacing(self, entry: Entry) -> set[str]:
        """Return the ids of later memories that replace something and share a word."""
        words = statement_words(entry.content)
        return {name for name, told in self._replacing.find_after(_said_key(entry)) if not words.isdisjoint(told)}


class _LazyIndex:
    """Memories by the keys that `told` returns; they are indexed at the first lookup."""

    def __init__(self, told: Callable[[Entry], Iterable[str]]) -> None:
        self._extract = told
        self._pending: list[Entry] = []
        self._ids_by_key: defaultdict[str, set[str]] = defaultdict(set)

    def add(self, entry: Entry) -> None:
        self._pending.append(entry)

    def find_any(self, wanted: Iterable[str]) -> set[str]:
        """Return the ids of memories with one of these keys."""
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
    """Memories that can replace an earlier one, whatever its attributes, in the order in which they were said.

    A memory that was said before all looked-up ones is never parsed.
    """

    def __init__(self) -> None:
        self._pending: list[tuple[_SaidKey, Entry]] = []
        self._indexed: list[tuple[_SaidKey, frozenset[str]]] = []

    def add(self, entry: Entry) -> None:
        insort(self._pending, (_said_key(entry), entry), key=_row_key)

    def find_after(self, said: _SaidKey) -> list[tuple[str, frozenset[str]]]:
        """Return the ids and the words of the memories that were said after `said`."""
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
    """Tell whether a memory can replace another without a common attribute."""
    reading = parse_statement(entry.content)
    return (
        CORRECTION_TAG in entry.tags
        or reading.announces_change
        or bool(reading.negated_clauses)
        or any(claim.ended for claim in reading.claims)
    )


_LINK_FIELD = f"[{CONTRADICTS_FIELD}:: ".encode()
ContradictionPair = tuple[str, str]
"""The ids of two memories, the earlier one first."""


def find_contradictions(
    entries: Mapping[str, Entry], nearby: RelatedEntryIndex, asked: Iterable[str]
) -> tuple[ContradictionPair, ...]:
    """Return the pairs of ids of contradicting entries, in the order in which they were said.

    One of each pair is in `asked`. `nearby` holds all entries, and maybe others. A pair with two confirmed entries is
    left out.
    """
    looked_at: dict[ContradictionPair, bool] = {}
    for name in entries.keys() & set(asked):
        yield_point()
        entry = entries[name]
        for other in (nearby.find_rivals(entry) | nearby.find_opponents(entry)) & entries.keys() - {name}:
            older, newer = sorted((entries[other], entry), key=_order_key)
            if (older.id, newer.id) not in looked_at:
                looked_at[older.id, newer.id] = _is_contradiction(newer, older)
    found = [pair for pair, undecided in looked_at.items() if undecided]
    return tuple(sorted(found, key=lambda pair: [_order_key(entries[name]) for name in pair]))


def linked_entry_ids(entries: Iterable[Entry]) -> set[str]:
    """Return the ids of entries that an earlier run found to contradict each other."""
    return {name for entry in entries if (others := contradicted_ids(entry)) for name in (entry.id, *others)}


def choose_confirmed(one: Entry, other: Entry) -> Entry | None:
    """Return the confirmed one of two contradicting entries; None if neither or both are confirmed."""
    confirmed = [entry for entry in (one, other) if _is_confirmed(entry, one, other)]
    return confirmed[0] if len(confirmed) == 1 else None


def map_links(pairs: Sequence[ContradictionPair], theirs: Collection[str] = ()) -> dict[str, tuple[str, ...]]:
    """Return for each entry id the ids of the entries that it contradicts.

    In a pair with one id in `theirs` (lines of a person), only the other one gets a link.
    """
    found: defaultdict[str, list[str]] = defaultdict(list)
    for pair in pairs:
        for name, other in (pair, pair[::-1]):
            if name not in theirs or other in theirs:
                found[name].append(other)
    return {name: tuple(others) for name, others in found.items()}


def with_links(entry: Entry, others: Sequence[str]) -> Entry:
    """Return the entry with a field that names `others`, without it if there are none."""
    rest = tuple((key, value) for key, value in entry.extra if key != CONTRADICTS_FIELD)
    return replace(entry, extra=(*rest, *([(CONTRADICTS_FIELD, ",".join(others))] if others else [])))


def link_contradictions(document: MemoryDocument, links: Mapping[str, Sequence[str]]) -> MemoryDocument:
    """Return a document whose bullets name exactly the entries in `links`; a bullet without an id stays unchanged."""
    return MemoryDocument(tuple(_link_part(part, links) for part in document.parts))


def remove_links(document: bytes, path: str, gone: Collection[str]) -> bytes:
    """Return a curated document in which no line has a contradiction link to one of `gone`."""
    if _LINK_FIELD not in document or not any(name.encode() in document for name in gone):
        return document
    sheet = parse_memory_document(document, path)
    links = {entry.id: [other for other in contradicted_ids(entry) if other not in gone] for entry in sheet.entries}
    return link_contradictions(sheet, links).data


def move_together(
    document: MemoryDocument, links: Mapping[str, Sequence[str]], movable: Collection[str]
) -> MemoryDocument:
    """Return a document in which contradicting entries are next to each other, within a section.

    The lower bullet of a pair moves up, or else the upper one down; only those in `movable` move.
    """
    parts = list(document.parts)
    for name, others in links.items():
        for other in others:
            at, there = _find_part(parts, name), _find_part(parts, other)
            if at is None or there is None or at > there or parts[at].section != parts[there].section:
                continue
            between = parts[at + 1 : there]
            if not between or all(_contradicts_either(part, (name, other), links) for part in between):
                continue
            if not parts[there].data.endswith(b"\n"):
                continue
            if other in movable:
                parts.insert(at + 1, parts.pop(there))
            elif name in movable:
                parts.insert(there - 1, parts.pop(at))
    return MemoryDocument(tuple(parts))


def _link_part(part: DocumentPart, links: Mapping[str, Sequence[str]]) -> DocumentPart:
    if part.entry is None or not part.is_named:
        return part
    others = tuple(links.get(part.entry.id, ()))
    if contradicted_ids(part.entry) == others:
        return part
    return replace(part, data=set_contradictions(part.data, part.entry, others), entry=with_links(part.entry, others))


def _find_part(parts: Sequence[DocumentPart], name: str) -> int | None:
    return next((at for at, part in enumerate(parts) if part.entry and part.entry.id == name), None)


def _contradicts_either(part: DocumentPart, pair: ContradictionPair, links: Mapping[str, Sequence[str]]) -> bool:
    """Tell whether a bullet contradicts one of the two as well, so that it may stay between them."""
    return part.entry is not None and any(part.entry.id in links.get(name, ()) for name in pair)


def _is_contradiction(newer: Entry, older: Entry) -> bool:
    if all(_is_confirmed(entry, newer, older) for entry in (newer, older)):
        return False
    return contradict(newer, older) or (entry_time(newer) == entry_time(older) and contradict(older, newer))


def _is_confirmed(entry: Entry, one: Entry, other: Entry) -> bool:
    """Tell whether a person confirmed an entry after both of the two existed."""
    both_there = max(max(entry_time(each), each.time or entry_time(each)) for each in (one, other))
    return entry.confirmed is not None and entry.confirmed > both_there


def _order_key(entry: Entry) -> tuple[object, str]:
    return entry_time(entry), entry.id
