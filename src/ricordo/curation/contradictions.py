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
from ricordo.curation.change_model import read_statement
from ricordo.curation.claims import ParsedStatement, claimed_attributes, parse_statement, read_ending, statement_words
from ricordo.curation.conflicts import contradict, stance
from ricordo.curation.importance import CORRECTION_TAG, entry_time
from ricordo.curation.memory_document import DocumentPart, MemoryDocument, parse_memory_document
from ricordo.language.duplicates import StatementIndex
from ricordo.lazy import lazy_compile
from ricordo.workspace.entry import (
    CONTRADICTS_FIELD,
    OUTDATED_BY_FIELD,
    OUTDATED_FIELD,
    Entry,
    contradicted_ids,
    replace_fields,
)
from ricordo.workspace.titles import shorten_statement

__all__ = [
    "ContradictionPair",
    "LinkFields",
    "RelatedEntryIndex",
    "choose_confirmed",
    "dismissed_id",
    "find_contradictions",
    "is_confirmed_beside",
    "link_entries",
    "link_fields",
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
_MAX_POSTINGS = 200
_MAX_ON_SUBJECT = 40
_SMOOTHING = 20
_SaidKey: TypeAlias = tuple[datetime, str]


class RelatedEntryIndex:
    """An index of memories by content; memories with a similarity of `duplicate` (0..1) say the same."""

    def __init__(self, duplicate: float) -> None:
        """Create an empty index."""
        self._statements = StatementIndex(duplicate)
        self._words = _LazyIndex(lambda entry: statement_words(entry.content))
        self._attributes = _LazyIndex(lambda entry: claimed_attributes(entry.content))
        self._stances = _LazyIndex(lambda entry: [entry_stance[0]] if (entry_stance := stance(entry.content)) else [])
        self._replacing = _ReplacingEntries()
        self._names: set[str] = set()
        self._rarities: dict[str, float] = {}

    def add(self, entry: Entry) -> None:
        """Add a memory under its id."""
        yield_point()
        self._names.add(entry.id)
        self._rarities.clear()
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

    def find_on_subject(self, entry: Entry) -> list[str]:
        """Return the ids of the memories that share the rarest subject words with this one, the most alike first."""
        scores: defaultdict[str, float] = defaultdict(float)
        for word in read_statement(entry.content).subject:
            names = self._words.find_any((word,)) - {entry.id}
            weight = self.rarity(word)
            for name in names if len(names) <= _MAX_POSTINGS else ():
                scores[name] += weight
        return sorted(scores, key=lambda name: (-scores[name], name))[:_MAX_ON_SUBJECT]

    def find_with_values(self, entry: Entry) -> set[str]:
        """Return the ids of memories that share a value or a name which this one says to end."""
        ending = read_ending(entry.content)
        words = {*ending.words, *(statement_words(entry.content) - read_statement(entry.content).subject)}
        rows = (self._words.find_any((word,)) for word in (words if ending.ended or ending.words else ()))
        return set().union(*(row for row in rows if len(row) <= _MAX_POSTINGS)) - {entry.id}

    def rarity(self, word: str) -> float:
        """Return the weight of a word: 0 if all memories have it, more the fewer do."""
        if (known := self._rarities.get(word)) is not None:
            return known
        rarity = max(math.log((len(self._names) + _SMOOTHING) / (self._words.count(word) + 1)), 0.0)
        self._rarities[word] = rarity
        return rarity

    def find_opponents(self, entry: Entry) -> set[str]:
        """Return the ids of memories that affirm or deny the same words as this one."""
        entry_stance = stance(entry.content)
        return self._stances.find_any((entry_stance[0],)) if entry_stance else set()

    def _find_replaceable(self, entry: Entry) -> set[str]:
        """Return the ids of memories that this one may replace, and of those with an attribute in common."""
        statement = parse_statement(entry.content)
        entry_ids = self._attributes.find_any(claim.attribute for claim in statement.claims if claim.attribute)
        for claim in statement.claims:
            if claim.ended:
                entry_ids |= self._find_with_words(claim.value)
        for clause in statement.negated_clauses:
            entry_ids |= self._find_with_words(clause)
        if CORRECTION_TAG in entry.tags or statement.announces_change:
            entry_ids |= self._find_with_other_number(statement)
        return entry_ids

    def _find_with_words(self, words: Iterable[str]) -> set[str]:
        """Return the ids of memories with all these words; ordinal numbers also match as plain ones."""
        rows = [
            self._words.find_any((word, plain[1]) if (plain := _ORDINAL.match(word)) else (word,)) for word in words
        ]
        return set.intersection(*rows) if rows else set()

    def _find_with_other_number(self, statement: ParsedStatement) -> set[str]:
        """Return the ids of memories that may be the same sentence with another number."""
        rows = sorted((self._words.find_any((word,)) for word in statement.subject), key=len)
        shared = max(math.ceil(_MIN_SHARED_SUBJECT * len(rows) - _ROUNDING), 1)
        return set().union(*rows[: len(rows) - shared + 1])

    def _find_later_replacing(self, entry: Entry) -> set[str]:
        """Return the ids of later memories that replace something and share a word."""
        words = statement_words(entry.content)
        return {
            name
            for name, other_words in self._replacing.find_after(_said_key(entry))
            if not words.isdisjoint(other_words)
        }


class _LazyIndex:
    """Memories by the keys that `told` returns; they are indexed at the first lookup."""

    def __init__(self, extract: Callable[[Entry], Iterable[str]]) -> None:
        self._extract = extract
        self._pending: list[Entry] = []
        self._ids_by_key: defaultdict[str, set[str]] = defaultdict(set)

    def add(self, entry: Entry) -> None:
        self._pending.append(entry)

    def find_any(self, keys: Iterable[str]) -> set[str]:
        """Return the ids of memories with one of these keys."""
        entry_ids: set[str] = set()
        for key in keys:
            self._read_pending()
            entry_ids |= self._ids_by_key.get(key, set())
        return entry_ids

    def count(self, key: str) -> int:
        """Return the number of memories with this key."""
        self._read_pending()
        return len(self._ids_by_key.get(key, ()))

    def _read_pending(self) -> None:
        for entry in self._pending:
            yield_point()
            for key in self._extract(entry):
                self._ids_by_key[key].add(entry.id)
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

    def find_after(self, said_key: _SaidKey) -> list[tuple[str, frozenset[str]]]:
        """Return the ids and the words of the memories that were said after `said_key`."""
        first = bisect_right(self._pending, said_key, key=_row_key)
        for entry_key, entry in self._pending[first:]:
            yield_point()
            if _can_replace(entry):
                insort(self._indexed, (entry_key, statement_words(entry.content)), key=_row_key)
        del self._pending[first:]
        return [
            (name, words) for (_, name), words in self._indexed[bisect_right(self._indexed, said_key, key=_row_key) :]
        ]


def _said_key(entry: Entry) -> _SaidKey:
    return entry_time(entry), entry.id


def _row_key(row: tuple[_SaidKey, object]) -> _SaidKey:
    return row[0]


def _can_replace(entry: Entry) -> bool:
    """Tell whether a memory can replace another without a common attribute."""
    statement = parse_statement(entry.content)
    return (
        CORRECTION_TAG in entry.tags
        or statement.announces_change
        or bool(statement.negated_clauses)
        or any(claim.ended for claim in statement.claims)
    )


LinkFields: TypeAlias = tuple[tuple[str, str], ...]
"""The fields by which an entry names other entries."""
_LINK_FIELDS = frozenset({CONTRADICTS_FIELD, OUTDATED_BY_FIELD, OUTDATED_FIELD})
_MAX_WORDS = 60
ContradictionPair = tuple[str, str]
"""The ids of two memories, the earlier one first."""


def find_contradictions(
    entries: Mapping[str, Entry], index: RelatedEntryIndex, ids: Iterable[str]
) -> tuple[ContradictionPair, ...]:
    """Return the pairs of ids of contradicting entries, in the order in which they were said.

    One of each pair is in `ids`. `index` holds all entries, and maybe others. A pair with two confirmed entries is
    left out.
    """
    decisions: dict[ContradictionPair, bool] = {}
    for name in entries.keys() & set(ids):
        yield_point()
        entry = entries[name]
        for other in (index.find_rivals(entry) | index.find_opponents(entry)) & entries.keys() - {name}:
            older, newer = sorted((entries[other], entry), key=_order_key)
            if (older.id, newer.id) not in decisions:
                decisions[older.id, newer.id] = _is_contradiction(newer, older)
    pairs = [pair for pair, undecided in decisions.items() if undecided]
    return tuple(sorted(pairs, key=lambda pair: [_order_key(entries[name]) for name in pair]))


def linked_entry_ids(entries: Iterable[Entry]) -> set[str]:
    """Return the ids of entries that an earlier run found to contradict each other."""
    return {name for entry in entries if (others := contradicted_ids(entry)) for name in (entry.id, *others)}


def choose_confirmed(one: Entry, other: Entry) -> Entry | None:
    """Return the confirmed one of two contradicting entries; None if neither or both are confirmed."""
    confirmed = [entry for entry in (one, other) if _is_confirmed(entry, one, other)]
    return confirmed[0] if len(confirmed) == 1 else None


def map_links(pairs: Sequence[ContradictionPair], person_ids: Collection[str] = ()) -> dict[str, tuple[str, ...]]:
    """Return for each entry id the ids of the entries that it contradicts.

    In a pair with one id in `person_ids` (lines of a person), only the other one gets a link.
    """
    links: defaultdict[str, list[str]] = defaultdict(list)
    for pair in pairs:
        for name, other in (pair, pair[::-1]):
            if name not in person_ids or other in person_ids:
                links[name].append(other)
    return {name: tuple(others) for name, others in links.items()}


def link_fields(others: Sequence[str] = (), newer: Entry | None = None, dismissed: str = "") -> LinkFields:
    """Return the fields of an entry that contradicts `others`, and that `newer` may have made outdated.

    `dismissed` is the id of a newer entry beside which it holds, because a person removed the words of the mark.
    """
    contradictions = ((CONTRADICTS_FIELD, ",".join(others)),) if others else ()
    if newer is None:
        return (*contradictions, *(((OUTDATED_BY_FIELD, dismissed),) if dismissed else ()))
    words = f"see “{shorten_statement(newer.content, _MAX_WORDS)}”"
    return (*contradictions, (OUTDATED_BY_FIELD, newer.id), (OUTDATED_FIELD, words))


def dismissed_id(entry: Entry) -> str:
    """Return the id of the newer entry whose mark a person removed by hand; empty if there is none."""
    fields = dict(entry.extra)
    return "" if OUTDATED_FIELD in fields else fields.get(OUTDATED_BY_FIELD, "")


def with_links(entry: Entry, fields: LinkFields) -> Entry:
    """Return the entry with exactly these links to other entries."""
    rest = tuple(pair for pair in entry.extra if pair[0] not in _LINK_FIELDS)
    pointer = tuple(pair for pair in fields if pair[0] == OUTDATED_BY_FIELD)
    return replace(entry, extra=(*pointer, *rest, *(pair for pair in fields if pair not in pointer)))


def link_entries(document: MemoryDocument, links: Mapping[str, LinkFields]) -> MemoryDocument:
    """Return a document whose bullets have exactly these links by id; a bullet without an id stays unchanged."""
    return document.with_parts(
        _link_part(part, links.get(part.entry.id, ()) if part.entry else ()) for part in document.parts
    )


def remove_links(document: bytes, path: str, removed_ids: Collection[str]) -> bytes:
    """Return a curated document in which no line has a link to one of `removed_ids`."""
    is_linked = any(f"[{name}:: ".encode() in document for name in _LINK_FIELDS)
    if not is_linked or not any(name.encode() in document for name in removed_ids):
        return document
    parsed = parse_memory_document(document, path)
    links = {entry.id: _fields_without(entry, removed_ids) for entry in parsed.entries}
    return link_entries(parsed, links).data


def _fields_without(entry: Entry, removed_ids: Collection[str]) -> LinkFields:
    """Return the links of an entry without those to `removed_ids`."""
    others = [other for other in contradicted_ids(entry) if other not in removed_ids]
    outdated = tuple((key, value) for key, value in entry.extra if key in {OUTDATED_BY_FIELD, OUTDATED_FIELD})
    is_removed = any(value in removed_ids for key, value in outdated if key == OUTDATED_BY_FIELD)
    return (*link_fields(others), *(() if is_removed else outdated))


def move_together(
    document: MemoryDocument, links: Mapping[str, Sequence[str]], movable: Collection[str]
) -> MemoryDocument:
    """Return a document in which contradicting entries are next to each other, within a section.

    The lower bullet of a pair moves up, or else the upper one down; only those in `movable` move.
    """
    parts = list(document.parts)
    for name, others in links.items():
        for other in others:
            index, other_index = _find_part(parts, name), _find_part(parts, other)
            if (
                index is None
                or other_index is None
                or index > other_index
                or parts[index].section != parts[other_index].section
            ):
                continue
            between = parts[index + 1 : other_index]
            if not between or all(_contradicts_either(part, (name, other), links) for part in between):
                continue
            if not parts[other_index].data.endswith(b"\n"):
                continue
            if other in movable:
                parts.insert(index + 1, parts.pop(other_index))
            elif name in movable:
                parts.insert(other_index - 1, parts.pop(index))
    return document.with_parts(parts)


def _link_part(part: DocumentPart, fields: LinkFields) -> DocumentPart:
    if part.entry is None or not part.is_named:
        return part
    if with_links(part.entry, fields).extra == part.entry.extra:
        return part
    data = replace_fields(part.data, part.entry, _LINK_FIELDS, fields)
    return replace(part, data=data, entry=with_links(part.entry, fields))


def _find_part(parts: Sequence[DocumentPart], name: str) -> int | None:
    return next((at for at, part in enumerate(parts) if part.entry and part.entry.id == name), None)


def _contradicts_either(part: DocumentPart, pair: ContradictionPair, links: Mapping[str, Sequence[str]]) -> bool:
    """Tell whether a bullet contradicts one of the two as well, so that it may stay between them."""
    return part.entry is not None and any(part.entry.id in links.get(name, ()) for name in pair)


def _is_contradiction(newer: Entry, older: Entry) -> bool:
    if all(_is_confirmed(entry, newer, older) for entry in (newer, older)):
        return False
    return contradict(newer, older) or (entry_time(newer) == entry_time(older) and contradict(older, newer))


def is_confirmed_beside(entry: Entry, other: Entry) -> bool:
    """Tell whether a person confirmed an entry when the other one was already there."""
    return _is_confirmed(entry, entry, other)


def _is_confirmed(entry: Entry, one: Entry, other: Entry) -> bool:
    """Tell whether a person confirmed an entry after both of the two existed."""
    newest_time = max(max(entry_time(each), each.time or entry_time(each)) for each in (one, other))
    return entry.confirmed is not None and entry.confirmed > newest_time


def _order_key(entry: Entry) -> tuple[object, str]:
    return entry_time(entry), entry.id
