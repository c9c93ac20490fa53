"""Placement: the distribution of curated entries over MEMORY.md and topics, within the bounds of MEMORY.md. Pure.

The most useful entries are in MEMORY.md, by kind. Entries without room there, or too long for a line, go to a topic. A
used entry returns from its topic when its grade is higher than that of an entry in MEMORY.md, or there is room; grades
are coarse, so lines do not move with every use. New entries are inserted in order; others keep their order, except in a
dream, which sorts each section by use.

Invariant: lines that are pinned, have no id, or are under a heading or in a topic of a person never move.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from ricordo.concurrency import yield_point
from ricordo.curation.config import ConsolidationConfig
from ricordo.curation.importance import entry_time, usefulness, usefulness_grade
from ricordo.curation.memory_document import DocumentPart, MemoryDocument, parse_memory_document
from ricordo.curation.topics import (
    TOPIC_LIST_LINE,
    Topic,
    add_pointers,
    count_subjects,
    create_topic,
    description_line,
    find_renamed_topics,
    has_generated_description,
    is_generated,
    is_kind_topic,
    kind_topic_name,
    read_topic,
    render_topic_list,
    select_listed_topics,
    topic_path,
    update_further_topics,
)
from ricordo.curation.types import CandidateEntry
from ricordo.lazy import dataclass
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import preview_line, render_entry
from ricordo.workspace.layout import MEMORY_PATH

__all__ = [
    "SECTIONS",
    "Placement",
    "empty_sections",
    "filled_sections",
    "find_promotable",
    "fits_bounds",
    "is_empty_topic",
    "is_more_useful",
    "is_movable",
    "is_short",
    "max_listed_topics",
    "order_candidates",
    "place_entries",
    "render_part",
    "sort_by_use",
    "to_candidate",
    "update_topic_list",
]


def to_candidate(part: DocumentPart) -> CandidateEntry:
    """Return the entry of a bullet."""
    assert part.entry is not None
    return CandidateEntry(entry=part.entry, long=part.long)


def find_promotable(
    topics: Mapping[str, MemoryDocument],
    excluded_ids: Collection[str],
    use_counts: Mapping[str, int],
    is_short: Callable[[CandidateEntry], bool],
) -> dict[str, dict[str, DocumentPart]]:
    """Return by topic and id the used bullets that may move to MEMORY.md, without the ids in `excluded_ids`."""
    promotable = {}
    for path, document in topics.items():
        parts = {
            part.entry.id: part
            for part in document.parts
            if part.entry and use_counts.get(part.entry.id, 0) and part.entry.id not in excluded_ids
            if _is_promotable(part) and is_short(to_candidate(part))
        }
        if parts and has_generated_description(path, document.data):
            promotable[path] = parts
    return promotable


def order_candidates(
    candidates: Sequence[CandidateEntry], topic_candidates: Sequence[CandidateEntry], use_counts: Mapping[str, int]
) -> list[CandidateEntry]:
    """Return the candidates for MEMORY.md by priority: the newest of `candidates`, then the most useful.

    Within one grade `candidates` (in MEMORY.md or new, in their order) comes before `topic_candidates` (in topics).
    """
    newest = max(candidates, key=lambda one: (entry_time(one.entry), one.entry.id), default=None)
    sorted_topic_candidates = sorted(topic_candidates, key=lambda one: usefulness(one.entry, use_counts), reverse=True)
    rest = [*(one for one in candidates if one is not newest), *sorted_topic_candidates]
    rest.sort(key=lambda one: usefulness_grade(one.entry, use_counts), reverse=True)
    return [*([newest] if newest else []), *rest]


def is_more_useful(new: DocumentPart, old: DocumentPart, use_counts: Mapping[str, int]) -> bool:
    """Tell whether a new bullet goes before an existing, less useful one."""
    assert new.entry is not None
    if not old.is_named or old.entry is None:
        return False
    return usefulness(old.entry, use_counts) < usefulness(new.entry, use_counts)


def sort_by_use(
    memory: MemoryDocument,
    titles: Sequence[str],
    is_movable: Callable[[DocumentPart], bool],
    use_counts: Mapping[str, int],
) -> MemoryDocument:
    """Return MEMORY.md with the movable bullets of each of these sections sorted by grade, in the same positions."""
    parts = list(memory.parts)
    for title in titles:
        indexes = [index for index, part in enumerate(parts) if part.section == title and is_movable(part)]
        if all(parts[index].data.endswith(b"\n") for index in indexes):
            sorted_parts = sorted(
                (parts[index] for index in indexes), key=lambda part: _part_grade(part, use_counts), reverse=True
            )
            for index, part in zip(indexes, sorted_parts, strict=True):
                parts[index] = part
    return memory.with_parts(parts)


def _part_grade(part: DocumentPart, use_counts: Mapping[str, int]) -> tuple[bool, int]:
    return usefulness_grade(to_candidate(part).entry, use_counts)


def _is_promotable(part: DocumentPart) -> bool:
    """Tell whether a bullet of a generated topic may move: no person wrote it or put it under a heading."""
    entry = part.entry
    if entry is None or entry.state != "active" or entry.pinned or entry.by == "hand":
        return False
    return part.is_named and not part.section


SECTIONS: Mapping[str, str] = {
    "preference": "Preferences",
    "convention": "Conventions",
    "decision": "Decisions",
    "goal": "Goals",
    "lesson": "Lessons",
    "fact": "Facts",
}
_OTHER_SECTION = "Notes"
_TOPICS_SECTION = "Topics"
_SECTION_ORDER = (_TOPICS_SECTION, *SECTIONS.values(), _OTHER_SECTION)
_OWN_SECTIONS = frozenset(_SECTION_ORDER)
_DOCUMENT_TITLE = b"# Memory\n"
_MIN_TOPIC_ENTRIES = 2
_MAX_UNSETTLED = 300
"""A topic of a kind with more entries keeps them, since a look for their subjects would take too long."""
_RESERVED_SHARE = 4
"""A quarter of the pointers have room before the least useful short entries."""
_POINTER_SHARE = 5
"""At most one fifth of the lines of MEMORY.md state the long memories of topics in short."""
_DESCRIPTION_LENGTHS = (40, 20, 0)


@dataclass(frozen=True, kw_only=True)
class Placement:
    """The documents by path, and the bound of MEMORY.md that excluded an entry: lines, bytes, tokens; else empty."""

    documents: Mapping[str, MemoryDocument]
    cap: str = ""


@dataclass(frozen=True, kw_only=True)
class _Arrangement:
    memory: MemoryDocument
    topics: Mapping[str, MemoryDocument]


def render_part(one: CandidateEntry, section: str = "") -> DocumentPart:
    """Return the bullet of an entry for curated memory; its source quote stays in the ledger."""
    entry = replace(one.entry, source=replace(one.entry.source, quote=None))
    bullet = render_entry(entry, long=one.long).encode("utf-8", "surrogatepass")
    return DocumentPart(data=bullet, section=section, entry=one.entry, long=one.long)


def is_movable(part: DocumentPart) -> bool:
    """Tell whether a bullet of MEMORY.md may be moved: it has an id, is not pinned, and is in a generated section."""
    return part.is_named and part.entry is not None and not part.entry.pinned and part.section in _OWN_SECTIONS


def fits_bounds(document: bytes, config: ConsolidationConfig) -> bool:
    """Tell whether MEMORY.md is within its bounds."""
    return config.bounds.find_exceeded(document) is None


def is_short(one: CandidateEntry, config: ConsolidationConfig) -> bool:
    """Tell whether an entry may be in MEMORY.md: its text is short and not in a separate file."""
    return one.long is None and len(one.entry.content) <= config.index_characters


def is_empty_topic(topic: MemoryDocument) -> bool:
    """Tell whether a topic holds only generated text and no entries."""
    return is_generated(topic.data) and not any(
        part.entry or not (part.fenced or part.is_blank or part.data.startswith(b"# ")) for part in topic.parts
    )


def filled_sections(memory: MemoryDocument) -> frozenset[str]:
    """Return the generated sections of MEMORY.md that hold a memory with an id."""
    return frozenset(part.section for part in memory.parts if part.is_named and part.section in _OWN_SECTIONS)


def empty_sections(memory: MemoryDocument) -> frozenset[str]:
    """Return the sections of MEMORY.md with a generated title that are empty."""
    return frozenset(title for title in _SECTION_ORDER[1:] if memory.without_section(title) is not memory)


def place_entries(
    memory: MemoryDocument,
    topics: Mapping[str, MemoryDocument],
    new: Sequence[CandidateEntry],
    filled: Collection[str],
    config: ConsolidationConfig,
    *,
    originals: Mapping[str, bytes],
    topic_names: Mapping[str, str] | None = None,
    use_counts: Mapping[str, int] | None = None,
    deep: bool = False,
) -> Placement:
    """Return the documents with `new` placed, as many entries in MEMORY.md as fit, the most useful first.

    The newest short entry is always placed there. `use_counts` gives the use of an entry by id: with new entries, and
    with `deep`, used entries may return from a topic.

    Sections in `filled` that are empty afterwards are removed: they held a memory before. `originals` are the topics
    before anything was removed from them. `topic_names` gives the topic of an entry by id, in case it goes to one.
    """
    base = memory if memory.parts else parse_memory_document(_DOCUMENT_TITLE, MEMORY_PATH)
    arranger = _Arranger(
        base, topics, new, filled=filled, originals=originals, topic_names=topic_names or {},
        use_counts=use_counts or {}, config=config,
        promote=deep or bool(new),
    )  # fmt: skip
    arrangement = arranger.find_best()
    if deep and use_counts:
        arrangement = replace(
            arrangement, memory=sort_by_use(arrangement.memory, _SECTION_ORDER[1:], is_movable, use_counts)
        )
    if not memory.parts and arrangement.memory == base:
        arrangement = replace(arrangement, memory=memory)
    topics = update_further_topics(arrangement.memory.data, arrangement.topics)
    return Placement(documents={MEMORY_PATH: arrangement.memory, **topics}, cap=arranger.cap)


class _Arranger:
    """Computes one arrangement for each number of entries in MEMORY.md."""

    def __init__(
        self,
        memory: MemoryDocument,
        topics: Mapping[str, MemoryDocument],
        new: Sequence[CandidateEntry],
        *,
        filled: Collection[str],
        originals: Mapping[str, bytes],
        topic_names: Mapping[str, str],
        use_counts: Mapping[str, int],
        config: ConsolidationConfig,
        promote: bool,
    ) -> None:
        self.cap = ""
        self._memory = memory
        self._topics = topics
        self._use_counts = use_counts
        self._config = config
        self._new_ids = frozenset(one.entry.id for one in new)
        self._parts_in_memory = {part.entry.id: part for part in reversed(memory.parts) if part.entry}
        present_ids = self._new_ids | self._parts_in_memory.keys()
        self._promotable = (
            find_promotable(topics, present_ids, use_counts, lambda one: is_short(one, config))
            if promote and use_counts
            else {}
        )
        self._promotable_parts = {name: part for rising in self._promotable.values() for name, part in rising.items()}
        candidates = [*(to_candidate(part) for part in memory.parts if is_movable(part)), *new]
        ranked_candidates = sorted(candidates, key=lambda one: usefulness(one.entry, use_counts), reverse=True)
        self._long_entries = [one for one in ranked_candidates if not is_short(one, config)]
        topic_candidates = [to_candidate(part) for part in self._promotable_parts.values()]
        self._short_entries = order_candidates(
            [one for one in ranked_candidates if is_short(one, config)], topic_candidates, use_counts
        )
        self._rendered_parts: dict[tuple[str, str], DocumentPart] = {}
        self._generated_descriptions: dict[str, bool] = {}
        self._previously_filled = filled
        self._original_topics = originals
        self._topic_names = {name: topic for name, topic in topic_names.items() if topic}
        self._max_listed = max_listed_topics(config)
        topic_entries = [entry for document in topics.values() for entry in document.entries]
        self._filled_topics: dict[tuple[str, ...], tuple[MemoryDocument, Topic]] = {}
        unsettled = self._find_unsettled(present_ids) if promote else {}
        candidate_entries = [one.entry for one in ranked_candidates]
        self._subjects = count_subjects(
            (*topic_entries, *candidate_entries),
            [
                *candidate_entries,
                *(part.entry for parts in unsettled.values() for part in parts.values() if part.entry),
            ],
        )
        self._renamed_topics = find_renamed_topics(topics, self._subjects)
        self._resettled = self._find_resettled(unsettled)
        self._resettled_parts = {name: part for parts in self._resettled.values() for name, part in parts.items()}

    def _find_unsettled(self, excluded_ids: Collection[str]) -> dict[str, dict[str, DocumentPart]]:
        """Return by topic and id the bullets that may have a better topic: those of a topic of a kind, which share no
        subject as far as it was known, and the only one of a topic.
        """
        return {
            path: {
                part.entry.id: part
                for part in document.parts
                if part.entry
                and _is_promotable(part)
                and part.entry.id not in excluded_ids | self._promotable_parts.keys()
            }
            for path, document in self._topics.items()
            if is_kind_topic(path) or (len(document.entries) == 1 and self._is_own_topic(path))
            if len(document.entries) <= _MAX_UNSETTLED and has_generated_description(path, document.data)
        }

    def _is_own_topic(self, path: str) -> bool:
        """Tell whether a topic has the name that placement gave it."""
        return topic_path(read_topic(path, self._topics[path].data).name) == path

    def _find_resettled(
        self, unsettled: Mapping[str, Mapping[str, DocumentPart]]
    ) -> dict[str, dict[str, DocumentPart]]:
        """Return those of these bullets that go to another topic, and choose it.

        It has enough bullets then, or is that of their kind where their own topic holds nothing else.
        """
        single = {path for path in unsettled if not is_kind_topic(path)}
        waiting = [one.entry for one in self._long_entries]
        waiting += [part.entry for parts in unsettled.values() for part in parts.values() if part.entry]
        sizes = Counter(topic_path(self._choose_topic(entry)) for entry in waiting)
        settled = {path for path in sizes.keys() | self._topics.keys() if not is_kind_topic(path)}
        settled = {
            path for path in settled if sizes[path] >= _MIN_TOPIC_ENTRIES or path in self._topics.keys() - single
        }
        resettled: defaultdict[str, dict[str, DocumentPart]] = defaultdict(dict)
        for path, parts in unsettled.items():
            for name, part in parts.items():
                entry = to_candidate(part).entry
                target = topic_path(self._choose_topic(entry))
                is_alone = path in single and target not in settled
                if is_alone:
                    self._topic_names[name] = kind_topic_name(entry)
                if is_alone or target in settled - {path}:
                    resettled[path][name] = part
        return resettled

    def find_best(self) -> _Arrangement:
        """Return the arrangement with the most entries in MEMORY.md that fits; the one with the fewest if none fits."""
        # an entry has at least one line
        low, high = 0, min(len(self._short_entries), self._config.max_lines)
        if high == len(self._short_entries):
            full = self._arrange(high)
            if fits_bounds(full.memory.data, self._config):
                return full
        best: _Arrangement | None = None
        while low < high:
            middle = (low + high + 1) // 2
            arrangement = self._arrange(middle)
            if fits_bounds(arrangement.memory.data, self._config):
                low, best = middle, arrangement
            else:
                high = middle - 1
        best = best or self._arrange(low)
        next_memory = self._arrange(low + 1).memory.data if low < len(self._short_entries) else b""
        self.cap = self._config.bounds.find_exceeded(next_memory) or ""
        return best if fits_bounds(best.memory.data, self._config) else self._shorten_descriptions(best)

    def _shorten_descriptions(self, arrangement: _Arrangement) -> _Arrangement:
        """Return the arrangement with the topic descriptions shortened until it fits."""
        topics = [read_topic(path, topic.data) for path, topic in arrangement.topics.items()]
        for max_length in _DESCRIPTION_LENGTHS:
            shortened = [
                replace(topic, description=preview_line(topic.description, max_length) if max_length else "")
                for topic in topics
            ]
            arrangement = replace(
                arrangement, memory=self._list_topics(arrangement.memory, shortened, arrangement.topics)
            )
            if fits_bounds(arrangement.memory.data, self._config):
                return arrangement
        while self._max_listed > 1 and not fits_bounds(arrangement.memory.data, self._config):
            self._max_listed //= 2
            arrangement = replace(
                arrangement, memory=self._list_topics(arrangement.memory, shortened, arrangement.topics)
            )
        return arrangement

    def _list_topics(
        self, memory: MemoryDocument, topics: Sequence[Topic], documents: Mapping[str, MemoryDocument]
    ) -> MemoryDocument:
        return _list_topics(memory, topics, documents, self._max_listed, self._config)

    def _arrange(self, count: int) -> _Arrangement:
        inside = self._short_entries[:count]
        promoted_ids = {one.entry.id for one in inside} & self._promotable_parts.keys()
        outside = [
            *self._long_entries,
            *(one for one in self._short_entries[count:] if one.entry.id not in self._promotable_parts),
            *map(to_candidate, self._resettled_parts.values()),
        ]
        document = self._memory.without({one.entry.id for one in outside if one.entry.id not in self._new_ids})
        added: defaultdict[str, list[DocumentPart]] = defaultdict(list)
        for one in sorted(inside, key=lambda one: usefulness(one.entry, self._use_counts), reverse=True):
            if one.entry.id in self._new_ids or one.entry.id in promoted_ids:
                title = SECTIONS.get(one.entry.kind, _OTHER_SECTION)
                added[title].append(self._move_part(one, title))
        for title, parts in added.items():
            document = document.with_section(title, _SECTION_ORDER).insert_all(parts, self._is_more_useful)
        for title in _SECTION_ORDER[1:]:
            if title in self._previously_filled:
                document = document.without_section(title)
        filled_topics = self._fill_topics(outside, promoted_ids)
        topics = {path: topic for path, (topic, _) in filled_topics.items()}
        return _Arrangement(
            memory=self._list_topics(document, [listed_topic for _, listed_topic in filled_topics.values()], topics),
            topics=topics,
        )

    def _fill_topics(
        self, outside: Sequence[CandidateEntry], promoted_ids: Collection[str]
    ) -> Mapping[str, tuple[MemoryDocument, Topic]]:
        """Return the topics with the entries outside of MEMORY.md and without `promoted_ids`, and their list items."""
        joining: defaultdict[str, dict[str, Sequence[CandidateEntry]]] = defaultdict(dict)
        for name, group in self._group_by_topic(outside).items():
            joining[topic_path(name)][name] = group
        paths = dict.fromkeys((*self._topics, *joining))
        filled_topics = {path: self._fill_topic(path, joining.get(path, {}), promoted_ids) for path in paths}
        return {
            path: filled_topics[path]
            for path in paths
            if path not in {*self._promotable, *self._resettled} or not is_empty_topic(filled_topics[path][0])
        }

    def _fill_topic(
        self, path: str, groups: Mapping[str, Sequence[CandidateEntry]], promoted_ids: Collection[str]
    ) -> tuple[MemoryDocument, Topic]:
        """Return a topic with its new entries; cached, as most arrangements share most topics."""
        removed_ids = [name for name in self._promotable.get(path, ()) if name in promoted_ids]
        removed_ids += self._resettled.get(path, ())
        joining = (part for name, group in groups.items() for part in (name, *(one.entry.id for one in group)))
        key = (path, *removed_ids, "", *joining)
        if key not in self._filled_topics:
            yield_point()
            document = self._topics.get(path)
            document = document.without(removed_ids) if document and removed_ids else document
            for name, group in groups.items():
                document = document or parse_memory_document(create_topic(name, [one.entry for one in group])[1], path)
                # a bullet goes after the last heading, whoever wrote it
                section = document.parts[-1].section if document.parts else ""
                document = document.insert_all([self._move_part(one, section) for one in group], self._is_more_useful)
            document = self._update_description(path, document or MemoryDocument())
            self._filled_topics[key] = document, read_topic(path, document.data)
        return self._filled_topics[key]

    def _update_description(self, path: str, document: MemoryDocument) -> MemoryDocument:
        """Return a topic with a new generated description, if its old one was generated."""
        before = self._original_topics.get(path, b"")
        # most topics do not change, and the check for a generated description parses the topic
        if document.data == before or not self._has_generated_description(path, before):
            return document
        entries = [entry for entry in document.entries if entry.state == "active"]
        line = description_line(read_topic(path, document.data).name, entries)
        index = next(index for index, part in enumerate(document.parts) if part.data.startswith(b"description: "))
        return document.with_parts(
            (*document.parts[:index], replace(document.parts[index], data=line), *document.parts[index + 1 :])
        )

    def _has_generated_description(self, path: str, before: bytes) -> bool:
        if path not in self._generated_descriptions:
            self._generated_descriptions[path] = bool(before) and has_generated_description(path, before)
        return self._generated_descriptions[path]

    def _group_by_topic(self, outside: Sequence[CandidateEntry]) -> Mapping[str, list[CandidateEntry]]:
        groups: defaultdict[str, list[CandidateEntry]] = defaultdict(list)
        for one in outside:
            groups[self._choose_topic(one.entry)].append(one)
        for name in [name for name, group in groups.items() if len(group) < _MIN_TOPIC_ENTRIES]:
            # an earlier iteration may have added another entry to it
            if len(groups[name]) < _MIN_TOPIC_ENTRIES and topic_path(name) not in self._topics:
                (one,) = groups.pop(name)
                groups[kind_topic_name(one.entry)].append(one)
        return {
            name: sorted(groups[name], key=lambda one: usefulness(one.entry, self._use_counts), reverse=True)
            for name in sorted(groups)
        }

    def _choose_topic(self, entry: Entry) -> str:
        if entry.id not in self._topic_names:
            shared = self._subjects.find(entry, self._config.subject_entries)
            name = shared[0] if shared else kind_topic_name(entry)
            self._topic_names[entry.id] = self._renamed_topics.get(name, name)
        return self._topic_names[entry.id]

    def _move_part(self, one: CandidateEntry, section: str) -> DocumentPart:
        name = one.entry.id
        part = self._parts_in_memory.get(name) or self._promotable_parts.get(name) or self._resettled_parts.get(name)
        if part is None:
            return self._render_part(one, section)
        return replace(part, section=section, data=_with_line_end(part.data))

    def _is_more_useful(self, new: DocumentPart, old: DocumentPart) -> bool:
        return is_more_useful(new, old, self._use_counts)

    def _render_part(self, one: CandidateEntry, section: str) -> DocumentPart:
        key = one.entry.id, section
        if key not in self._rendered_parts:
            self._rendered_parts[key] = render_part(one, section)
        return self._rendered_parts[key]


def max_listed_topics(config: ConsolidationConfig) -> int:
    """Return the maximum number of topics in MEMORY.md: half of its lines are reserved for memories."""
    return max(config.max_lines // 2, 1)


def update_topic_list(memory: bytes, topics: Mapping[str, bytes], config: ConsolidationConfig) -> dict[str, bytes]:
    """Return MEMORY.md with the list of `topics` (by path) in their current form, and the topics."""
    documents = {path: parse_memory_document(data, path) for path, data in topics.items()}
    parsed_topics = [read_topic(path, data) for path, data in topics.items()]
    updated = _list_topics(
        parse_memory_document(memory, MEMORY_PATH), parsed_topics, documents, max_listed_topics(config), config
    ).data
    further = update_further_topics(updated, documents)
    return {MEMORY_PATH: updated, **{path: document.data for path, document in further.items()}}


def _list_topics(
    document: MemoryDocument,
    topics: Sequence[Topic],
    documents: Mapping[str, MemoryDocument],
    max_topics: int,
    config: ConsolidationConfig,
) -> MemoryDocument:
    """Return MEMORY.md with a line for each topic that no person links to, at most `max_topics`, and with pointers.

    Most pointers only fill room that is left.
    """
    listed = select_listed_topics(topics, documents, _without_topic_list(document).data, max_topics)
    long_entries = {topic.path: _find_long(documents.get(topic.path, MemoryDocument()), config) for topic in listed}
    count = min(config.max_lines // _POINTER_SHARE, sum(map(len, long_entries.values())))
    reserved = min(count, max_topics // _POINTER_SHARE // _RESERVED_SHARE)
    while True:
        updated = _write_topic_list(document, add_pointers(listed, long_entries, count))
        if count == reserved or fits_bounds(updated.data, config):
            return updated
        count = max(count // 2, reserved)


def _find_long(document: MemoryDocument, config: ConsolidationConfig) -> list[Entry]:
    """Return the active entries of a topic that are too long for MEMORY.md."""
    return [
        part.entry
        for part in document.parts
        if part.entry and part.entry.state == "active" and not is_short(to_candidate(part), config)
    ]


def _without_topic_list(document: MemoryDocument) -> MemoryDocument:
    return document.with_parts(
        part for part in document.parts if part.section != _TOPICS_SECTION or not TOPIC_LIST_LINE.match(part.data)
    )


def _write_topic_list(document: MemoryDocument, topics: Sequence[Topic]) -> MemoryDocument:
    """Return MEMORY.md with the lines that list these topics."""
    listed_parts = [
        part for part in document.parts if part.section == _TOPICS_SECTION and TOPIC_LIST_LINE.match(part.data)
    ]
    rest = _without_topic_list(document)
    lines = render_topic_list(topics, rest.data)
    if [part.data for part in listed_parts] == lines:
        return document
    if not lines:
        return rest.without_section(_TOPICS_SECTION)
    updated = rest.with_section(_TOPICS_SECTION, _SECTION_ORDER)
    for line in lines:
        updated = updated.insert(DocumentPart(data=line, section=_TOPICS_SECTION), lambda _: False)
    return updated


def _with_line_end(data: bytes) -> bytes:
    return data if data.endswith(b"\n") else data + b"\n"
