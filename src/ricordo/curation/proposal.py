"""The proposal of a consolidation, from documents and new entries to new documents, and its checks. Pure.

A proposal is rejected as a whole if it loses a memory, a rule for tool calls or a line that a person wrote, or exceeds
the bounds of MEMORY.md.

Invariants: without new input the documents stay the same, byte for byte. Every new entry is curated, cited by an entry
that says the same, superseded by a named entry, or left in its ledger. No line that a person wrote changes.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace
from datetime import date, datetime
from typing import TypeAlias

from ricordo.curation.config import ConsolidationConfig
from ricordo.curation.contradictions import (
    LinkFields,
    dismissed_id,
    link_entries,
    link_fields,
    map_links,
    move_together,
    with_links,
)
from ricordo.curation.importance import MERGED_FIELD, field_ids, is_explicit, is_worthwhile
from ricordo.curation.memory_document import DocumentPart, MemoryDocument, parse_memory_document
from ricordo.curation.placement import (
    SECTIONS,
    filled_sections,
    fits_bounds,
    is_empty_topic,
    is_movable,
    place_entries,
    render_part,
)
from ricordo.curation.profile.updates import without_facts
from ricordo.curation.reconciliation import reconcile
from ricordo.curation.rewording import is_reworded
from ricordo.curation.topics import FADED_HEAD, FADED_TOPIC, TOPIC_LIST_LINE, has_generated_description, is_generated
from ricordo.curation.types import Advice, CandidateEntry, Proposal, Reconciliation
from ricordo.language import find_validity
from ricordo.lazy import dataclass
from ricordo.workspace.entry import SUCCESSOR_FIELD, Entry, EntryState, supersede, with_validity
from ricordo.workspace.entry_codec import collect_fields, parse_entries, render_entry
from ricordo.workspace.layout import MEMORY_PATH, TOPICS, ledger_date

__all__ = ["ConsolidationInput", "find_faults", "is_due", "propose"]


_StateMark: TypeAlias = tuple[EntryState, str, str, date | None]
"""The new state of an entry, the name and value of the field that gives the reason, and the day on which it ended."""


_MAX_UNCURATED = 1_000


@dataclass(frozen=True, kw_only=True)
class ConsolidationInput:
    """The input of a run.

    `documents` are MEMORY.md and the topics that exist, `ledgers` all ledgers by path, including archived ones. `fresh`
    are the entries that no run has read, without forgotten ones; `forgotten` are ids that must not come back. `held`
    are the sections of MEMORY.md in which the last run left a memory: if one is empty, it can be removed. With `deep`
    all curated entries are decided again. `used` gives the use of an entry by id.

    `profiles` are the profiles by path. `stated` are the entries of ledgers for which a fact of a profile stands: the
    profile is their place, and curated memory does not repeat them. `fact_ids` gives the id of that fact by their ids.
    `uncurated` are entries that earlier runs left in the ledgers: a later one may repeat or replace them. What begins
    after `today` replaces nothing yet; without a day, everything counts as begun.
    """

    documents: Mapping[str, bytes] = field(default_factory=dict)
    ledgers: Mapping[str, bytes] = field(default_factory=dict)
    fresh: Sequence[CandidateEntry] = ()
    forgotten: Collection[str] = ()
    held: Collection[str] = ()
    deep: bool = False
    used: Mapping[str, int] = field(default_factory=dict)
    profiles: Mapping[str, bytes] = field(default_factory=dict)
    stated: Sequence[CandidateEntry] = ()
    fact_ids: Mapping[str, str] = field(default_factory=dict)
    uncurated: Sequence[CandidateEntry] = ()
    today: date | None = None


def is_due(now: datetime, last_run: datetime | None, entries_since: int, config: ConsolidationConfig) -> bool:
    """Tell whether to start a run that no user requested: enough new entries, and enough time since the last run.

    A last run in the future, as after a clock was set back, is ignored.
    """
    if entries_since < config.signal_entries:
        return False
    return last_run is None or not 0 <= (now - last_run).total_seconds() < config.min_gap


def propose(material: ConsolidationInput, config: ConsolidationConfig, advice: Advice | None = None) -> Proposal:
    """Return what consolidating `material` would write; without documents when nothing changes.

    `advice` of a model is followed as far as the rules allow.
    """
    documents = {path: parse_memory_document(data, path) for path, data in material.documents.items()}
    filled = filled_sections(documents.get(MEMORY_PATH, MemoryDocument()))
    documents = {path: document.without(set(material.forgotten)) for path, document in documents.items()}
    curated = [
        CandidateEntry(entry=part.entry, long=part.long)
        for document in documents.values()
        for part in document.parts
        if part.entry is not None and part.entry.state == "active"
    ]
    person_ids = _find_fixed(documents)
    fixed = person_ids | (_find_edited(curated, material.ledgers) if material.deep or advice else set())
    fresh_ids = {one.entry.id for one in material.fresh}
    # what the profile states is decided about with the rest, so that it replaces, and is replaced
    stated = [one for one in material.stated if one.entry.id not in fresh_ids]
    fresh = [_with_validity(one) for one in (*material.fresh, *stated)]
    curated_ids = {one.entry.id for one in curated}
    known_ids = curated_ids | {one.entry.id for one in fresh}
    earlier = [one for one in material.uncurated if one.entry.id not in known_ids]
    reconciliation = reconcile(
        [*curated, *earlier],
        fresh,
        fixed=fixed,
        config=config,
        deep=material.deep,
        advice=advice,
        today=material.today,
    )
    marks = _state_marks(reconciliation)
    removal_marks = _merge_marks(reconciliation, curated_ids) | marks
    unrecorded_ids = _find_without_ledger(removal_marks, material.ledgers)
    in_profile = _find_in_profile(material, reconciliation, curated_ids)
    uncurated = {
        one.entry.id
        for one in earlier
        if (now := reconciliation.active.get(one.entry.id)) and not is_worthwhile(now.entry, config)
    }
    unplaced = in_profile | uncurated
    undecided = tuple(pair for pair in reconciliation.undecided if unplaced.isdisjoint(pair))
    links = map_links(undecided)
    written_links = _link_all(reconciliation, map_links(undecided, person_ids), uncurated)
    documents = {
        path: link_entries(
            _apply_reconciliation(document, reconciliation, removal_marks, unrecorded_ids), written_links
        )
        for path, document in documents.items()
    }
    new = [
        replace(one, entry=with_links(one.entry, written_links[name]))
        for name, one in reconciliation.active.items()
        if name not in curated_ids and name not in unplaced
    ]
    if new or reconciliation.changed or removal_marks:
        # an emptied section alone is no reason to write: the change that emptied it may still be undone
        filled |= set(material.held)
    memory = documents.pop(MEMORY_PATH, MemoryDocument())
    topics = {path: document for path, document in documents.items() if not is_empty_topic(document)}
    placement = place_entries(
        memory,
        topics,
        new,
        filled,
        config,
        originals=material.documents,
        topic_names=reconciliation.topics,
        use_counts=material.used,
        deep=material.deep,
    )
    after = (
        {path: _move_contradictions_together(document, links) for path, document in placement.documents.items()}
        if links
        else placement.documents
    )
    return Proposal(
        documents={**_find_changed_documents(material.documents, after), **_mark_ledgers(material.ledgers, marks)},
        profiles=_without_replaced_facts(material, reconciliation, in_profile),
        in_profile=tuple(sorted(in_profile)),
        kept=tuple(sorted(one.entry.id for one in new)),
        merged=reconciliation.merged,
        superseded=reconciliation.superseded,
        left=tuple(sorted({*reconciliation.left, *(in_profile & fresh_ids)})),
        uncurated=tuple(sorted({*reconciliation.left, *uncurated})[-_MAX_UNCURATED:]),
        retired=reconciliation.retired,
        refused=reconciliation.refused,
        cap=placement.cap,
        undecided=undecided,
    )


def _link_all(
    reconciliation: Reconciliation, contradictions: Mapping[str, Sequence[str]], uncurated: Collection[str]
) -> dict[str, LinkFields]:
    """Return the fields by which each active entry names others: what it contradicts, and what may outdate it.

    A statement whose place is the profile outdates a memory as well as a curated one does.
    """
    active = {name: one.entry for name, one in reconciliation.active.items()}
    newer = {old: active[new] for old, new in reconciliation.outdated.items() if new not in uncurated}
    return {
        name: link_fields(contradictions.get(name, ()), newer.get(name), dismissed_id(entry))
        for name, entry in active.items()
    }


def _find_in_profile(
    material: ConsolidationInput, reconciliation: Reconciliation, curated_ids: Collection[str]
) -> set[str]:
    """Return the ids of the active entries whose place is the profile.

    An entry that a person saved has its place in curated memory, and so has one that is curated already.
    """
    stated_ids = material.fact_ids.keys()
    return {
        name
        for name, one in reconciliation.active.items()
        if name not in curated_ids
        and not is_explicit(one.entry)
        and not stated_ids.isdisjoint({name, *field_ids(one.entry, MERGED_FIELD)})
    }


def _without_replaced_facts(
    material: ConsolidationInput, reconciliation: Reconciliation, in_profile: Collection[str]
) -> dict[str, bytes]:
    """Return the profiles that lose facts: those that curated memory now states, or that a later statement replaced."""
    kept = {name for one in in_profile for name in (one, *field_ids(reconciliation.active[one].entry, MERGED_FIELD))}
    gone = {*reconciliation.merged, *(one.old for one in reconciliation.superseded)} - kept
    lost_ids = {material.fact_ids[name] for name in gone & material.fact_ids.keys()}
    lost_ids -= {material.fact_ids[name] for name in kept & material.fact_ids.keys()}
    changed = {path: without_facts(data, path, lost_ids) for path, data in material.profiles.items() if lost_ids}
    return {path: data for path, data in changed.items() if data != material.profiles[path]}


def _with_validity(one: CandidateEntry) -> CandidateEntry:
    """Return a saved entry with the days from which and until which it holds by its words; others have them already."""
    said_at = one.entry.said_at
    if said_at is None or not is_explicit(one.entry):
        return one
    validity = find_validity(one.entry.content, said_at)
    return replace(one, entry=with_validity(one.entry, start=validity.start, end=validity.end))


def _move_contradictions_together(document: MemoryDocument, links: Mapping[str, Sequence[str]]) -> MemoryDocument:
    """Return a document with each movable entry next to the entries that it contradicts."""
    return move_together(document, links, {part.entry.id for part in document.parts if part.entry and is_movable(part)})


def _find_edited(curated: Sequence[CandidateEntry], ledgers: Mapping[str, bytes]) -> set[str]:
    """Return the ids of curated entries whose text a person changed, so that it differs from their ledger."""
    written = {
        located.entry.id: located.entry for path, data in ledgers.items() for located in parse_entries(data, path)
    }
    return {
        one.entry.id
        for one in curated
        if (ledger_entry := written.get(one.entry.id)) is not None
        and one.long is None
        and ledger_entry.content != one.entry.content
        and not is_reworded(one.entry)
    }


def _state_marks(reconciliation: Reconciliation) -> dict[str, _StateMark]:
    """Return the state, reason field and value of each superseded or retired entry, by id."""
    starts = {name: one.entry.valid_from for name, one in reconciliation.active.items()}
    marks: dict[str, _StateMark] = {
        one.old: ("superseded", SUCCESSOR_FIELD, one.new, starts.get(one.new)) for one in reconciliation.superseded
    }
    return marks | {one.id: ("retired", "retired", one.reason, None) for one in reconciliation.retired}


def _merge_marks(reconciliation: Reconciliation, curated_ids: Collection[str]) -> dict[str, _StateMark]:
    """Return the marks, by id, of curated entries that were merged into another; their ledger lines stay active."""
    successors = {
        name: one.entry.id for one in reconciliation.active.values() for name in field_ids(one.entry, MERGED_FIELD)
    }
    return {
        name: ("superseded", SUCCESSOR_FIELD, successors.get(name, ""), None)
        for name in reconciliation.merged
        if name in curated_ids
    }


def _find_fixed(documents: Mapping[str, MemoryDocument]) -> set[str]:
    """Return the ids of bullets that are never rewritten: pinned, or edited or placed by a person."""
    return {
        part.entry.id
        for path, document in documents.items()
        for part in document.parts
        if part.entry and not (is_movable(part) if path == MEMORY_PATH else part.is_named and not part.entry.pinned)
    }


def _find_without_ledger(names: Collection[str], ledgers: Mapping[str, bytes]) -> set[str]:
    """Return the ids that are in no ledger, so that the curated line is the only copy."""
    return {name for name in names if not any(f"^{name}".encode() in data for data in ledgers.values())}


def _apply_reconciliation(
    document: MemoryDocument,
    reconciliation: Reconciliation,
    marks: Mapping[str, _StateMark],
    unrecorded_ids: Collection[str],
) -> MemoryDocument:
    """Return a document without the entries that leave it, and with the changed ones rewritten."""
    updated = document
    for part in document.parts:
        if part.entry is None:
            continue
        name = part.entry.id
        if name in unrecorded_ids:
            marked_entry = _mark_entry(part.entry, marks[name])
            updated = updated.replace_entry(
                name, render_part(CandidateEntry(entry=marked_entry, long=part.long), part.section)
            )
        elif name in marks:
            updated = updated.without({name})
        elif name in reconciliation.changed:
            updated = updated.replace_entry(name, render_part(reconciliation.active[name], part.section))
    return updated


def _mark_entry(entry: Entry, mark: _StateMark) -> Entry:
    state, key, value, end = mark
    if state == "superseded":
        return supersede(entry, value, end=end)
    return replace(entry, state=state, extra=(*entry.extra, (key, value)) if value else entry.extra)


def _find_changed_documents(
    before: Mapping[str, bytes], after: Mapping[str, MemoryDocument]
) -> dict[str, bytes | None]:
    documents = {path: document.data for path, document in after.items() if path != MEMORY_PATH or document.parts}
    changed: dict[str, bytes | None] = {
        path: collect_fields(data) for path, data in documents.items() if before.get(path) != data
    }
    removed_paths = [path for path in before if path not in documents and path.startswith(f"{TOPICS}/")]
    return changed | dict.fromkeys(removed_paths)


def _mark_ledgers(ledgers: Mapping[str, bytes], marks: Mapping[str, _StateMark]) -> dict[str, bytes | None]:
    """Return the ledgers in which an entry is marked with its new state, and with its successor or the reason."""
    changed: dict[str, bytes | None] = {}
    for path, data in ledgers.items():
        entry_ids = {old for old in marks if f"^{old}".encode() in data}
        if not entry_ids or ledger_date(path) is None:
            continue
        updated = data
        for located in reversed(parse_entries(data, path)):
            entry = located.entry
            if entry.id in entry_ids and entry.state == "active":
                marked = _mark_entry(entry, marks[entry.id])
                bullet = render_entry(marked, long=located.long_path).encode("utf-8", "surrogatepass")
                updated = updated[: located.offset] + bullet + updated[located.offset + located.length :]
        if updated != data:
            changed[path] = updated
    return changed


_RETIRED_DIVISOR = 10
_FRONT_MATTER_LINES = 5
"""The number of lines of a topic's generated front matter."""
_SECTION_HEADINGS = frozenset(f"## {title}".encode() for title in (*SECTIONS.values(), "Notes", "Topics"))


def find_faults(material: ConsolidationInput, proposal: Proposal, config: ConsolidationConfig) -> list[str]:
    """Return the faults of a proposal, the worst first; empty when it may be written."""
    before = _parse_documents(material.documents)
    after = _parse_documents(_documents_after(material.documents, proposal.documents))
    faults = []
    retired = {one.id for one in proposal.retired}
    removed_ids = {*material.forgotten, *(one.old for one in proposal.superseded), *proposal.merged, *retired}
    lost_ids = _entry_ids(before) - _entry_ids(after) - removed_ids
    if lost_ids:
        faults.append(f"{len(lost_ids)} curated memories would be lost")
    if person_ids := retired & _person_entry_ids(before):
        faults.append(f"{len(person_ids)} memories that a person wrote or pinned would be retired")
    if len(retired) > max(config.max_retired, len(_entry_ids(before)) // _RETIRED_DIVISOR):
        faults.append(f"{len(retired)} memories would be retired")
    if missing_rules := _required_rules(material, proposal, before) - _find_rules(after):
        faults.append(f"{len(missing_rules)} rules would be switched off")
    remaining_documents = {
        path: document for path, document in before.items() if path in after or not _is_removable_topic(path, document)
    }
    if missing := _count_person_lines(remaining_documents) - _count_person_lines(after):
        faults.append(f"{missing.total()} lines that a person wrote would be lost")
    unplaced = set(proposal.kept) - _entry_ids(after)
    if unplaced:
        faults.append(f"{len(unplaced)} new memories would stand nowhere")
    memory = after.get(MEMORY_PATH, MemoryDocument())
    if proposal.kept and not fits_bounds(memory.data, config) and any(map(is_movable, memory.parts)):
        faults.append("MEMORY.md would be larger than it may be")
    return faults


def _documents_after(documents: Mapping[str, bytes], written: Mapping[str, bytes | None]) -> dict[str, bytes]:
    changed = {path: data for path, data in written.items() if ledger_date(path) is None}
    return {path: data for path, data in {**documents, **changed}.items() if data is not None}


def _parse_documents(documents: Mapping[str, bytes]) -> dict[str, MemoryDocument]:
    return {path: parse_memory_document(data, path) for path, data in documents.items()}


def _entry_ids(documents: Mapping[str, MemoryDocument]) -> set[str]:
    return {entry.id for document in documents.values() for entry in document.entries}


def _person_entry_ids(documents: Mapping[str, MemoryDocument]) -> set[str]:
    """Return the ids of entries that people wrote or pinned."""
    entries = [entry for document in documents.values() for entry in document.entries]
    return {entry.id for entry in entries if entry.pinned or entry.by in {"user", "hand"}}


def _find_rules(documents: Mapping[str, MemoryDocument]) -> set[tuple[str, str | None]]:
    return {(entry.id, entry.rule) for document in documents.values() for entry in document.entries if entry.rule}


def _required_rules(
    material: ConsolidationInput, proposal: Proposal, before: Mapping[str, MemoryDocument]
) -> set[tuple[str, str | None]]:
    """Return the rules that curated memory must have afterwards, with the ids of their entries."""
    new = {(one.entry.id, one.entry.rule) for one in material.fresh if one.entry.rule and one.entry.id in proposal.kept}
    return {row for row in _find_rules(before) | new if row[0] not in material.forgotten}


def _is_removable_topic(path: str, document: MemoryDocument) -> bool:
    """Tell whether a person wrote nothing into a topic, so that it can be removed when its memories are elsewhere."""
    entry_ids = {part.entry.id for part in document.parts if part.entry and part.is_named}
    head = FADED_HEAD.rstrip()
    is_ours = document.data.startswith(head) if path == FADED_TOPIC else has_generated_description(path, document.data)
    return is_ours and is_empty_topic(document.without(entry_ids))


def _count_person_lines(documents: Mapping[str, MemoryDocument]) -> Counter[tuple[str, bytes]]:
    """Return the lines and bullets of each document that curation must not change."""
    return Counter(
        (path, part.data.rstrip(b"\n"))
        for path, document in documents.items()
        if not (is_generated(document.data) and not document.entries)
        for part in _without_description(path, document)
        if not part.is_blank
        and not part.is_named
        and not TOPIC_LIST_LINE.match(part.data)
        and part.data.strip() not in _SECTION_HEADINGS
    )


def _without_description(path: str, document: MemoryDocument) -> Sequence[DocumentPart]:
    """Return the parts of a document without a generated topic description, which is removed with its entries."""
    if path == MEMORY_PATH or not has_generated_description(path, document.data):
        return document.parts
    return [
        part
        for number, part in enumerate(document.parts)
        if number >= _FRONT_MATTER_LINES or not part.data.startswith(b"description: ")
    ]
