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
from ricordo.consolidation.nearby import Nearby
from ricordo.consolidation.sheet import Part, Sheet, parse_sheet
from ricordo.consolidation.worth import moment
from ricordo.courtesy import give_way
from ricordo.workspace.contradictions import CONTRADICTS, contradicted, relinked
from ricordo.workspace.entry import Entry

__all__ = [
    "Pair",
    "chosen",
    "linked",
    "linked_entry",
    "linked_ids",
    "links_of",
    "side_by_side",
    "undecided_pairs",
    "unlinked",
]

_LINKED = f"[{CONTRADICTS}:: ".encode()

Pair = tuple[str, str]
"""The ids of two memories, the one that was said first first."""


def undecided_pairs(entries: Mapping[str, Entry], nearby: Nearby, asked: Iterable[str]) -> tuple[Pair, ...]:
    """Return the pairs of these entries, by id, that contradict each other, in the order in which they were said.

    One of each is among `asked`. `nearby` holds all of them, and maybe others. A pair of which a person confirmed both
    is none.
    """
    looked_at: dict[Pair, bool] = {}
    for name in entries.keys() & set(asked):
        give_way()
        entry = entries[name]
        for other in (nearby.rivals(entry) | nearby.opponents(entry)) & entries.keys() - {name}:
            older, newer = sorted((entries[other], entry), key=_said)
            if (older.id, newer.id) not in looked_at:
                looked_at[older.id, newer.id] = _is_undecided(newer, older)
    found = [pair for pair, undecided in looked_at.items() if undecided]
    return tuple(sorted(found, key=lambda pair: [_said(entries[name]) for name in pair]))


def linked_ids(entries: Iterable[Entry]) -> set[str]:
    """Return the ids of those that an earlier run found to contradict each other."""
    return {name for entry in entries if (others := contradicted(entry)) for name in (entry.id, *others)}


def chosen(one: Entry, other: Entry) -> Entry | None:
    """Return which of two that contradict each other a person said holds; None for neither, and for both."""
    confirmed = [entry for entry in (one, other) if _is_confirmed(entry, one, other)]
    return confirmed[0] if len(confirmed) == 1 else None


def links_of(pairs: Sequence[Pair], theirs: Collection[str] = ()) -> dict[str, tuple[str, ...]]:
    """Return by id with which others each entry is in a pair.

    Of a pair of which one is among `theirs`, lines of a person's own, only the other one is told.
    """
    found: defaultdict[str, list[str]] = defaultdict(list)
    for pair in pairs:
        for name, other in (pair, pair[::-1]):
            if name not in theirs or other in theirs:
                found[name].append(other)
    return {name: tuple(others) for name, others in found.items()}


def linked_entry(entry: Entry, others: Sequence[str]) -> Entry:
    """Return the entry with the field that names `others`, and with none where there are none."""
    rest = tuple((key, value) for key, value in entry.extra if key != CONTRADICTS)
    return replace(entry, extra=(*rest, *([(CONTRADICTS, ",".join(others))] if others else [])))


def linked(sheet: Sheet, links: Mapping[str, Sequence[str]]) -> Sheet:
    """Return a document whose bullets name what they contradict, and nothing else; one without an id stays as it is."""
    return Sheet(tuple(_linked(part, links) for part in sheet.parts))


def unlinked(document: bytes, path: str, gone: Collection[str]) -> bytes:
    """Return a curated document in which no line names one of `gone` as what it contradicts."""
    if _LINKED not in document or not any(name.encode() in document for name in gone):
        return document
    sheet = parse_sheet(document, path)
    links = {entry.id: [other for other in contradicted(entry) if other not in gone] for entry in sheet.entries}
    return linked(sheet, links).data


def side_by_side(sheet: Sheet, links: Mapping[str, Sequence[str]], movable: Collection[str]) -> Sheet:
    """Return a document in which what contradicts each other stands together, within its section.

    Of a pair the lower bullet moves up, or the upper one down; only those in `movable` move.
    """
    parts = list(sheet.parts)
    for name, others in links.items():
        for other in others:
            at, there = _at(parts, name), _at(parts, other)
            if at is None or there is None or at > there or parts[at].section != parts[there].section:
                continue
            between = parts[at + 1 : there]
            if not between or all(_is_with(part, (name, other), links) for part in between):
                continue
            if not parts[there].data.endswith(b"\n"):
                continue
            if other in movable:
                parts.insert(at + 1, parts.pop(there))
            elif name in movable:
                parts.insert(there - 1, parts.pop(at))
    return Sheet(tuple(parts))


def _linked(part: Part, links: Mapping[str, Sequence[str]]) -> Part:
    if part.entry is None or not part.is_named:
        return part
    others = tuple(links.get(part.entry.id, ()))
    if contradicted(part.entry) == others:
        return part
    return replace(part, data=relinked(part.data, part.entry, others), entry=linked_entry(part.entry, others))


def _at(parts: Sequence[Part], name: str) -> int | None:
    return next((at for at, part in enumerate(parts) if part.entry and part.entry.id == name), None)


def _is_with(part: Part, pair: Pair, links: Mapping[str, Sequence[str]]) -> bool:
    """Tell whether a bullet contradicts one of the two as well, so that it may stand between them."""
    return part.entry is not None and any(part.entry.id in links.get(name, ()) for name in pair)


def _is_undecided(newer: Entry, older: Entry) -> bool:
    if all(_is_confirmed(entry, newer, older) for entry in (newer, older)):
        return False
    return contradict(newer, older) or (moment(newer) == moment(older) and contradict(older, newer))


def _is_confirmed(entry: Entry, one: Entry, other: Entry) -> bool:
    """Tell whether a person said that an entry holds when both of the two were there."""
    both_there = max(max(moment(each), each.time or moment(each)) for each in (one, other))
    return entry.confirmed is not None and entry.confirmed > both_there


def _said(entry: Entry) -> tuple[object, str]:
    return moment(entry), entry.id
