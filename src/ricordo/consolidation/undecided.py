"""Undecided: which memories contradict each other though no rule says which of them holds. Pure.

They are told from the memories alone: of what is new, or was told of by an earlier run, whatever the reason, so that a
marker goes with what it is there for; a dream looks at all of them. What a
person confirms after both were there is decided: it holds, the other does not, and where both were confirmed both do.
Invariant: nothing about another subject is among them.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from ricordo.consolidation.conflicts import contradict
from ricordo.consolidation.nearby import RelatedEntryIndex
from ricordo.consolidation.sheet import DocumentPart, MemoryDocument, parse_memory_document
from ricordo.consolidation.worth import entry_time
from ricordo.courtesy import yield_point
from ricordo.workspace.contradictions import CONTRADICTS_FIELD, contradicted_ids, set_contradictions
from ricordo.workspace.entry import Entry

__all__ = [
    "ContradictionPair",
    "choose_confirmed",
    "link_contradictions",
    "with_links",
    "linked_entry_ids",
    "map_links",
    "move_together",
    "find_contradictions",
    "remove_links",
]

_LINK_FIELD = f"[{CONTRADICTS_FIELD}:: ".encode()

ContradictionPair = tuple[str, str]
"""The ids of two memories, the one that was said first first."""


def find_contradictions(
    entries: Mapping[str, Entry], nearby: RelatedEntryIndex, asked: Iterable[str]
) -> tuple[ContradictionPair, ...]:
    """Return the pairs of these entries, by id, that contradict each other, in the order in which they were said.

    One of each is among `asked`. `nearby` holds all of them, and maybe others. A pair of which a person confirmed both
    is none.
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
    """Return the ids of those that an earlier run found to contradict each other."""
    return {name for entry in entries if (others := contradicted_ids(entry)) for name in (entry.id, *others)}


def choose_confirmed(one: Entry, other: Entry) -> Entry | None:
    """Return which of two that contradict each other a person said holds; None for neither, and for both."""
    confirmed = [entry for entry in (one, other) if _is_confirmed(entry, one, other)]
    return confirmed[0] if len(confirmed) == 1 else None


def map_links(pairs: Sequence[ContradictionPair], theirs: Collection[str] = ()) -> dict[str, tuple[str, ...]]:
    """Return by id with which others each entry is in a pair.

    Of a pair of which one is among `theirs`, lines of a person's own, only the other one is told.
    """
    found: defaultdict[str, list[str]] = defaultdict(list)
    for pair in pairs:
        for name, other in (pair, pair[::-1]):
            if name not in theirs or other in theirs:
                found[name].append(other)
    return {name: tuple(others) for name, others in found.items()}


def with_links(entry: Entry, others: Sequence[str]) -> Entry:
    """Return the entry with the field that names `others`, and with none where there are none."""
    rest = tuple((key, value) for key, value in entry.extra if key != CONTRADICTS_FIELD)
    return replace(entry, extra=(*rest, *([(CONTRADICTS_FIELD, ",".join(others))] if others else [])))


def link_contradictions(sheet: MemoryDocument, links: Mapping[str, Sequence[str]]) -> MemoryDocument:
    """Return a document whose bullets name what they contradict, and nothing else; one without an id stays as it is."""
    return MemoryDocument(tuple(_link_part(part, links) for part in sheet.parts))


def remove_links(document: bytes, path: str, gone: Collection[str]) -> bytes:
    """Return a curated document in which no line names one of `gone` as what it contradicts."""
    if _LINK_FIELD not in document or not any(name.encode() in document for name in gone):
        return document
    sheet = parse_memory_document(document, path)
    links = {entry.id: [other for other in contradicted_ids(entry) if other not in gone] for entry in sheet.entries}
    return link_contradictions(sheet, links).data


def move_together(
    sheet: MemoryDocument, links: Mapping[str, Sequence[str]], movable: Collection[str]
) -> MemoryDocument:
    """Return a document in which what contradicts each other stands together, within its section.

    Of a pair the lower bullet moves up, or the upper one down; only those in `movable` move.
    """
    parts = list(sheet.parts)
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
    """Tell whether a bullet contradicts one of the two as well, so that it may stand between them."""
    return part.entry is not None and any(part.entry.id in links.get(name, ()) for name in pair)


def _is_contradiction(newer: Entry, older: Entry) -> bool:
    if all(_is_confirmed(entry, newer, older) for entry in (newer, older)):
        return False
    return contradict(newer, older) or (entry_time(newer) == entry_time(older) and contradict(older, newer))


def _is_confirmed(entry: Entry, one: Entry, other: Entry) -> bool:
    """Tell whether a person said that an entry holds when both of the two were there."""
    both_there = max(max(entry_time(each), each.time or entry_time(each)) for each in (one, other))
    return entry.confirmed is not None and entry.confirmed > both_there


def _order_key(entry: Entry) -> tuple[object, str]:
    return entry_time(entry), entry.id
