"""Check: what a proposal must not do, whoever made it. Pure.

A run that loses a memory, a rule for tool calls, a line that a person wrote, or the bounds of MEMORY.md is rejected as
a whole.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from ricordo.consolidation.config import ConsolidationConfig
from ricordo.consolidation.placing import SECTIONS, fits_bounds, is_empty_topic, is_movable
from ricordo.consolidation.plan import ConsolidationInput
from ricordo.consolidation.sheet import DocumentPart, MemoryDocument, parse_memory_document
from ricordo.consolidation.topics import TOPIC_LIST_LINE, is_generated, has_generated_description
from ricordo.consolidation.types import Proposal
from ricordo.workspace.layout import MEMORY_PATH, ledger_date

__all__ = ["find_faults"]

_RETIRED_DIVISOR = 10
_FRONT_MATTER_LINES = 5
"""How many lines the front matter of a topic has that we wrote."""
_SECTION_HEADINGS = frozenset(f"## {title}".encode() for title in (*SECTIONS.values(), "Notes", "Topics"))


def find_faults(material: ConsolidationInput, proposal: Proposal, config: ConsolidationConfig) -> list[str]:
    """Return what is wrong with a proposal, the worst first; empty when it may be written."""
    before = _parse_documents(material.documents)
    after = _parse_documents(_documents_after(material.documents, proposal.documents))
    found = []
    retired = {one.id for one in proposal.retired}
    gone = {*material.forgotten, *(one.old for one in proposal.superseded), *proposal.merged, *retired}
    lost = _entry_ids(before) - _entry_ids(after) - gone
    if lost:
        found.append(f"{len(lost)} curated memories would be lost")
    if theirs := retired & _person_entry_ids(before):
        found.append(f"{len(theirs)} memories that a person wrote or pinned would be retired")
    if len(retired) > max(config.max_retired, len(_entry_ids(before)) // _RETIRED_DIVISOR):
        found.append(f"{len(retired)} memories would be retired")
    if off := _required_rules(material, proposal, before) - _find_rules(after):
        found.append(f"{len(off)} rules would be switched off")
    here = {path: sheet for path, sheet in before.items() if path in after or not _is_removable_topic(path, sheet)}
    if missing := _count_person_lines(here) - _count_person_lines(after):
        found.append(f"{missing.total()} lines that a person wrote would be lost")
    unplaced = set(proposal.kept) - _entry_ids(after)
    if unplaced:
        found.append(f"{len(unplaced)} new memories would stand nowhere")
    memory = after.get(MEMORY_PATH, MemoryDocument())
    if proposal.kept and not fits_bounds(memory.data, config) and any(map(is_movable, memory.parts)):
        found.append("MEMORY.md would be larger than it may be")
    return found


def _documents_after(documents: Mapping[str, bytes], written: Mapping[str, bytes | None]) -> dict[str, bytes]:
    changed = {path: data for path, data in written.items() if ledger_date(path) is None}
    return {path: data for path, data in {**documents, **changed}.items() if data is not None}


def _parse_documents(documents: Mapping[str, bytes]) -> dict[str, MemoryDocument]:
    return {path: parse_memory_document(data, path) for path, data in documents.items()}


def _entry_ids(sheets: Mapping[str, MemoryDocument]) -> set[str]:
    return {entry.id for sheet in sheets.values() for entry in sheet.entries}


def _person_entry_ids(sheets: Mapping[str, MemoryDocument]) -> set[str]:
    """Return the ids of what people wrote, or pinned."""
    entries = [entry for sheet in sheets.values() for entry in sheet.entries]
    return {entry.id for entry in entries if entry.pinned or entry.by in {"user", "hand"}}


def _find_rules(sheets: Mapping[str, MemoryDocument]) -> set[tuple[str, str | None]]:
    return {(entry.id, entry.rule) for sheet in sheets.values() for entry in sheet.entries if entry.rule}


def _required_rules(
    material: ConsolidationInput, proposal: Proposal, before: Mapping[str, MemoryDocument]
) -> set[tuple[str, str | None]]:
    """Return the rules that curated memory must have afterwards, by the ids of their entries."""
    new = {(one.entry.id, one.entry.rule) for one in material.fresh if one.entry.rule and one.entry.id in proposal.kept}
    return {row for row in _find_rules(before) | new if row[0] not in material.forgotten}


def _is_removable_topic(path: str, sheet: MemoryDocument) -> bool:
    """Tell whether a person wrote nothing into a topic, so that it may go when its memories stand elsewhere."""
    named = {part.entry.id for part in sheet.parts if part.entry and part.is_named}
    return has_generated_description(path, sheet.data) and is_empty_topic(sheet.without(named))


def _count_person_lines(sheets: Mapping[str, MemoryDocument]) -> Counter[tuple[str, bytes]]:
    """Return the lines and bullets of each document that are not ours to change."""
    return Counter(
        (path, part.data.rstrip(b"\n"))
        for path, sheet in sheets.items()
        if not (is_generated(sheet.data) and not sheet.entries)
        for part in _without_description(path, sheet)
        if not part.is_blank
        and not part.is_named
        and not TOPIC_LIST_LINE.match(part.data)
        and part.data.strip() not in _SECTION_HEADINGS
    )


def _without_description(path: str, sheet: MemoryDocument) -> Sequence[DocumentPart]:
    """Return the parts of a document without the description that we gave a topic, which goes with its entries."""
    if path == MEMORY_PATH or not has_generated_description(path, sheet.data):
        return sheet.parts
    return [
        part
        for number, part in enumerate(sheet.parts)
        if number >= _FRONT_MATTER_LINES or not part.data.startswith(b"description: ")
    ]
