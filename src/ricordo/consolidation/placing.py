"""Placing: where curated entries stand, within the bounds of MEMORY.md. Pure.

The most useful stand in MEMORY.md, by kind; what does not fit there goes to a topic, which is listed, and so does
every entry that is too long for a line of it: what an entry costs decides, its kind does not. What was of use comes
back out of a topic when it is of a higher grade than what stands in MEMORY.md, or there is room; grades are coarse, so
lines do not change places with every use. Entries that stand already keep their order but in a dream, which puts the
most used on top of their section; new ones are put where they belong. What is pinned, has no id in its line or stands
under a heading of somebody else's is never moved.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from ricordo.consolidation.config import ConsolidationConfig
from ricordo.consolidation.folding import folded, with_further
from ricordo.consolidation.rising import comes_before, fresh_of, in_order, most_used_first, of_use
from ricordo.consolidation.sheet import Part, Sheet, parse_sheet
from ricordo.consolidation.topics import (
    LISTED,
    Topic,
    description_line,
    is_ours,
    listing,
    named_subjects,
    new_topic,
    read_topic,
    tells_its_entries,
    topic_name,
    topic_path,
)
from ricordo.consolidation.types import Fresh
from ricordo.consolidation.worth import usefulness
from ricordo.courtesy import give_way
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import content_line, render_entry
from ricordo.workspace.layout import MEMORY

__all__ = [
    "SECTIONS",
    "Placement",
    "emptied",
    "fits",
    "held_sections",
    "is_hollow",
    "is_movable",
    "is_short",
    "most_listed",
    "part_of",
    "place",
    "relisted",
]

SECTIONS: Mapping[str, str] = {
    "preference": "Preferences",
    "convention": "Conventions",
    "decision": "Decisions",
    "goal": "Goals",
    "lesson": "Lessons",
    "fact": "Facts",
}
_OTHER = "Notes"
_TOPICS = "Topics"
_ORDER = (_TOPICS, *SECTIONS.values(), _OTHER)
_OWN = frozenset(_ORDER)
_TITLE = b"# Memory\n"
_FEWEST_IN_TOPIC = 2
_BRIEF = (40, 20, 0)


@dataclass(frozen=True, kw_only=True)
class Placement:
    """The documents by path, and which bound of MEMORY.md kept an entry out of it: lines, bytes, tokens; else empty."""

    documents: Mapping[str, Sheet]
    cap: str = ""


@dataclass(frozen=True, kw_only=True)
class _Placed:
    memory: Sheet
    topics: Mapping[str, Sheet]


def part_of(one: Fresh, section: str = "") -> Part:
    """Return the bullet of an entry as curated memory shows it: what it was quoted from stays in the ledger."""
    entry = replace(one.entry, source=replace(one.entry.source, quote=None))
    bullet = render_entry(entry, long=one.long).encode("utf-8", "surrogatepass")
    return Part(data=bullet, section=section, entry=one.entry, long=one.long)


def is_movable(part: Part) -> bool:
    """Tell whether a bullet of MEMORY.md is ours to move: it has its id, is not pinned, and has one of our headings."""
    return part.is_named and part.entry is not None and not part.entry.pinned and part.section in _OWN


def fits(document: bytes, config: ConsolidationConfig) -> bool:
    """Tell whether MEMORY.md is within its bounds."""
    return config.bounds.exceeded(document) is None


def is_short(one: Fresh, config: ConsolidationConfig) -> bool:
    """Tell whether an entry may stand in MEMORY.md: its text is short, and all of it is there."""
    return one.long is None and len(one.entry.content) <= config.index_characters


def is_hollow(topic: Sheet) -> bool:
    """Tell whether a topic holds nothing but what we wrote around its entries."""
    return is_ours(topic.data) and not any(
        part.entry or not (part.fenced or part.is_blank or part.data.startswith(b"# ")) for part in topic.parts
    )


def held_sections(memory: Sheet) -> frozenset[str]:
    """Return which of our sections of MEMORY.md hold a memory with its id."""
    return frozenset(part.section for part in memory.parts if part.is_named and part.section in _OWN)


def emptied(memory: Sheet) -> frozenset[str]:
    """Return which sections of MEMORY.md with a title of ours hold nothing."""
    return frozenset(title for title in _ORDER[1:] if memory.without_section(title) is not memory)


def place(
    memory: Sheet,
    topics: Mapping[str, Sheet],
    new: Sequence[Fresh],
    held: Collection[str],
    config: ConsolidationConfig,
    *,
    written: Mapping[str, bytes],
    named: Mapping[str, str] | None = None,
    used: Mapping[str, int] | None = None,
    deep: bool = False,
) -> Placement:
    """Return the documents with `new` placed, as many entries in MEMORY.md as fit, the most useful first.

    The newest of those that are short enough always stands there. `used` says by id how much an entry was of use:
    where something is new, and with `deep`, what was of use and went to a topic may come back.

    Of the sections that are empty then, those in `held` go: they held a memory before. `written` are the topics as
    they were before anything was taken out of them. `named` says by id which topic an entry goes to, if it goes to one.
    """
    base = memory if memory.parts else parse_sheet(_TITLE, MEMORY)
    arranged = _Arranging(
        base, topics, new, held=held, written=written, named=named or {}, used=used or {}, config=config,
        lifts=deep or bool(new),
    )  # fmt: skip
    placed = arranged.best()
    if deep and used:
        placed = replace(placed, memory=most_used_first(placed.memory, _ORDER[1:], is_movable, used))
    if not memory.parts and placed.memory == base:
        placed = replace(placed, memory=memory)
    topics = with_further(placed.memory.data, placed.topics)
    return Placement(documents={MEMORY: placed.memory, **topics}, cap=arranged.cap)


class _Arranging:
    """One arrangement for each number of entries that are left in MEMORY.md."""

    def __init__(
        self,
        memory: Sheet,
        topics: Mapping[str, Sheet],
        new: Sequence[Fresh],
        *,
        held: Collection[str],
        written: Mapping[str, bytes],
        named: Mapping[str, str],
        used: Mapping[str, int],
        config: ConsolidationConfig,
        lifts: bool,
    ) -> None:
        self.cap = ""
        self._memory = memory
        self._topics = topics
        self._used = used
        self._config = config
        self._new = frozenset(one.entry.id for one in new)
        self._standing = {part.entry.id: part for part in reversed(memory.parts) if part.entry}
        taken = self._new | self._standing.keys()
        self._rising = of_use(topics, taken, used, lambda one: is_short(one, config)) if lifts and used else {}
        self._below = {name: part for rising in self._rising.values() for name, part in rising.items()}
        here = [*(fresh_of(part) for part in memory.parts if is_movable(part)), *new]
        ranked = sorted(here, key=lambda one: usefulness(one.entry, used), reverse=True)
        self._long = [one for one in ranked if not is_short(one, config)]
        below = [fresh_of(part) for part in self._below.values()]
        self._short = in_order([one for one in ranked if is_short(one, config)], below, used)
        self._parts: dict[tuple[str, str], Part] = {}
        self._told: dict[str, bool] = {}
        self._held = held
        self._written = written
        self._named = {name: topic for name, topic in named.items() if topic}
        self._most_listed = most_listed(config)
        told = [entry for sheet in topics.values() for entry in sheet.entries]
        self._made: dict[tuple[str, ...], tuple[Sheet, Topic]] = {}
        self._subjects = named_subjects((*told, *(one.entry for one in ranked)), [one.entry for one in ranked])

    def best(self) -> _Placed:
        """Return the arrangement with the most entries in MEMORY.md that fits, with the fewest when none does."""
        # an entry has a line at least
        low, high = 0, min(len(self._short), self._config.max_lines)
        if high == len(self._short):
            most = self._arranged(high)
            if fits(most.memory.data, self._config):
                return most
        found: _Placed | None = None
        while low < high:
            middle = (low + high + 1) // 2
            tried = self._arranged(middle)
            if fits(tried.memory.data, self._config):
                low, found = middle, tried
            else:
                high = middle - 1
        found = found or self._arranged(low)
        beyond = self._arranged(low + 1).memory.data if low < len(self._short) else b""
        self.cap = self._config.bounds.exceeded(beyond) or ""
        return found if fits(found.memory.data, self._config) else self._briefly(found)

    def _briefly(self, found: _Placed) -> _Placed:
        """Return the arrangement with as much of the descriptions of topics as there is room for."""
        named = [read_topic(path, topic.data) for path, topic in found.topics.items()]
        for most in _BRIEF:
            brief = [
                replace(topic, description=content_line(topic.description, most) if most else "") for topic in named
            ]
            found = replace(found, memory=self._listed(found.memory, brief, found.topics))
            if fits(found.memory.data, self._config):
                return found
        while self._most_listed > 1 and not fits(found.memory.data, self._config):
            self._most_listed //= 2
            found = replace(found, memory=self._listed(found.memory, brief, found.topics))
        return found

    def _listed(self, memory: Sheet, topics: Sequence[Topic], sheets: Mapping[str, Sheet]) -> Sheet:
        return _listed(memory, topics, sheets, self._most_listed)

    def _arranged(self, count: int) -> _Placed:
        inside = self._short[:count]
        raised = {one.entry.id for one in inside} & self._below.keys()
        outside = [*self._long, *(one for one in self._short[count:] if one.entry.id not in self._below)]
        sheet = self._memory.without({one.entry.id for one in outside if one.entry.id not in self._new})
        added: defaultdict[str, list[Part]] = defaultdict(list)
        for one in sorted(inside, key=lambda one: usefulness(one.entry, self._used), reverse=True):
            if one.entry.id in self._new or one.entry.id in raised:
                title = SECTIONS.get(one.entry.kind, _OTHER)
                added[title].append(self._moved(one, title))
        for title, parts in added.items():
            sheet = sheet.with_section(title, _ORDER).grown(parts, self._comes_before)
        for title in _ORDER[1:]:
            if title in self._held:
                sheet = sheet.without_section(title)
        made = self._grown(outside, raised)
        topics = {path: topic for path, (topic, _) in made.items()}
        return _Placed(memory=self._listed(sheet, [told for _, told in made.values()], topics), topics=topics)

    def _grown(self, outside: Sequence[Fresh], raised: Collection[str]) -> Mapping[str, tuple[Sheet, Topic]]:
        """Return the topics with what has no room in MEMORY.md and without `raised`, and how they are listed."""
        joining: defaultdict[str, dict[str, Sequence[Fresh]]] = defaultdict(dict)
        for name, group in self._grouped(outside).items():
            joining[topic_path(name)][name] = group
        paths = dict.fromkeys((*self._topics, *joining))
        made = {path: self._topic(path, joining.get(path, {}), raised) for path in paths}
        return {path: made[path] for path in paths if path not in self._rising or not is_hollow(made[path][0])}

    def _topic(self, path: str, groups: Mapping[str, Sequence[Fresh]], raised: Collection[str]) -> tuple[Sheet, Topic]:
        """Return a topic with what joins it; most arrangements share most of their topics."""
        gone = [name for name in self._rising.get(path, ()) if name in raised]
        joining = (part for name, group in groups.items() for part in (name, *(one.entry.id for one in group)))
        key = (path, *gone, "", *joining)
        if key not in self._made:
            give_way()
            sheet = self._topics.get(path)
            sheet = sheet.without(gone) if sheet and gone else sheet
            for name, group in groups.items():
                sheet = sheet or parse_sheet(new_topic(name, [one.entry for one in group])[1], path)
                # the place of a bullet is after the heading that is there, whoever wrote it
                section = sheet.parts[-1].section if sheet.parts else ""
                sheet = sheet.grown([self._moved(one, section) for one in group], self._comes_before)
            sheet = self._described(path, sheet or Sheet())
            self._made[key] = sheet, read_topic(path, sheet.data)
        return self._made[key]

    def _described(self, path: str, sheet: Sheet) -> Sheet:
        """Return a topic with the description of its entries, if it had the one that we gave it."""
        before = self._written.get(path, b"")
        # most topics stay as they are, and telling what was written of one takes reading it
        if sheet.data == before or not self._is_told(path, before):
            return sheet
        entries = [entry for entry in sheet.entries if entry.state == "active"]
        line = description_line(read_topic(path, before).name, entries)
        at = next(at for at, part in enumerate(sheet.parts) if part.data.startswith(b"description: "))
        return Sheet((*sheet.parts[:at], replace(sheet.parts[at], data=line), *sheet.parts[at + 1 :]))

    def _is_told(self, path: str, before: bytes) -> bool:
        if path not in self._told:
            self._told[path] = bool(before) and tells_its_entries(path, before)
        return self._told[path]

    def _grouped(self, outside: Sequence[Fresh]) -> Mapping[str, list[Fresh]]:
        groups: defaultdict[str, list[Fresh]] = defaultdict(list)
        for one in outside:
            groups[self._topic_of(one.entry)].append(one)
        for name in [name for name, group in groups.items() if len(group) < _FEWEST_IN_TOPIC]:
            # it may have got company from one that was looked at before it
            if len(groups[name]) < _FEWEST_IN_TOPIC and topic_path(name) not in self._topics:
                (one,) = groups.pop(name)
                groups[topic_name(one.entry, {}, 1)].append(one)
        return {
            name: sorted(groups[name], key=lambda one: usefulness(one.entry, self._used), reverse=True)
            for name in sorted(groups)
        }

    def _topic_of(self, entry: Entry) -> str:
        if entry.id not in self._named:
            self._named[entry.id] = topic_name(entry, self._subjects, self._config.subject_entries)
        return self._named[entry.id]

    def _moved(self, one: Fresh, section: str) -> Part:
        found = self._standing.get(one.entry.id) or self._below.get(one.entry.id)
        if found is None:
            return self._shown(one, section)
        return replace(found, section=section, data=_closed(found.data))

    def _comes_before(self, new: Part, old: Part) -> bool:
        return comes_before(new, old, self._used)

    def _shown(self, one: Fresh, section: str) -> Part:
        key = one.entry.id, section
        if key not in self._parts:
            self._parts[key] = part_of(one, section)
        return self._parts[key]


def most_listed(config: ConsolidationConfig) -> int:
    """Return how many topics MEMORY.md lists at most: half of its lines are for what is remembered."""
    return max(config.max_lines // 2, 1)


def relisted(memory: bytes, topics: Mapping[str, bytes], config: ConsolidationConfig) -> dict[str, bytes]:
    """Return MEMORY.md with the lines that list `topics`, by path, as those describe themselves now, and the topics."""
    sheets = {path: parse_sheet(data, path) for path, data in topics.items()}
    told = [read_topic(path, data) for path, data in topics.items()]
    shown = _listed(parse_sheet(memory, MEMORY), told, sheets, most_listed(config)).data
    further = with_further(shown, sheets)
    return {MEMORY: shown, **{path: sheet.data for path, sheet in further.items()}}


def _listed(sheet: Sheet, topics: Sequence[Topic], sheets: Mapping[str, Sheet], most: int) -> Sheet:
    """Return MEMORY.md with one line for each topic that people do not link to themselves, at most so many."""
    ours = [part for part in sheet.parts if part.section == _TOPICS and LISTED.match(part.data)]
    rest = Sheet(tuple(part for part in sheet.parts if part not in ours))
    lines = listing(folded(topics, sheets, rest.data, most), rest.data)
    if [part.data for part in ours] == lines:
        return sheet
    if not lines:
        return rest.without_section(_TOPICS)
    shown = rest.with_section(_TOPICS, _ORDER)
    for line in lines:
        shown = shown.inserted(Part(data=line, section=_TOPICS), lambda _: False)
    return shown


def _closed(data: bytes) -> bytes:
    return data if data.endswith(b"\n") else data + b"\n"
