"""Check: what a proposal must not do, whoever made it. Pure.

A run that loses a memory, a rule for tool calls, a line that a person wrote, or the bounds of MEMORY.md is rejected as
a whole.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from ricordo.consolidation.config import ConsolidationConfig
from ricordo.consolidation.placing import SECTIONS, fits, is_hollow, is_movable
from ricordo.consolidation.plan import Material
from ricordo.consolidation.sheet import Part, Sheet, parse_sheet
from ricordo.consolidation.topics import LISTED, is_ours, tells_its_entries
from ricordo.consolidation.types import Proposal
from ricordo.workspace.layout import MEMORY, ledger_date

__all__ = ["faults"]

_SHARE = 10
_FRONT_LINES = 5
"""How many lines the front matter of a topic has that we wrote."""
_TITLES = frozenset(f"## {title}".encode() for title in (*SECTIONS.values(), "Notes", "Topics"))


def faults(material: Material, proposal: Proposal, config: ConsolidationConfig) -> list[str]:
    """Return what is wrong with a proposal, the worst first; empty when it may be written."""
    before = _sheets(material.documents)
    after = _sheets(_after(material.documents, proposal.documents))
    found = []
    retired = {one.id for one in proposal.retired}
    gone = {*material.forgotten, *(one.old for one in proposal.superseded), *proposal.merged, *retired}
    lost = _ids(before) - _ids(after) - gone
    if lost:
        found.append(f"{len(lost)} curated memories would be lost")
    if theirs := retired & _persons(before):
        found.append(f"{len(theirs)} memories that a person wrote or pinned would be retired")
    if len(retired) > max(config.max_retired, len(_ids(before)) // _SHARE):
        found.append(f"{len(retired)} memories would be retired")
    if off := _rules_before(material, proposal, before) - _rules(after):
        found.append(f"{len(off)} rules would be switched off")
    here = {path: sheet for path, sheet in before.items() if path in after or not _is_ours_alone(path, sheet)}
    if missing := _by_hand(here) - _by_hand(after):
        found.append(f"{missing.total()} lines that a person wrote would be lost")
    unplaced = set(proposal.kept) - _ids(after)
    if unplaced:
        found.append(f"{len(unplaced)} new memories would stand nowhere")
    memory = after.get(MEMORY, Sheet())
    if proposal.kept and not fits(memory.data, config) and any(map(is_movable, memory.parts)):
        found.append("MEMORY.md would be larger than it may be")
    return found


def _after(documents: Mapping[str, bytes], written: Mapping[str, bytes | None]) -> dict[str, bytes]:
    changed = {path: data for path, data in written.items() if ledger_date(path) is None}
    return {path: data for path, data in {**documents, **changed}.items() if data is not None}


def _sheets(documents: Mapping[str, bytes]) -> dict[str, Sheet]:
    return {path: parse_sheet(data, path) for path, data in documents.items()}


def _ids(sheets: Mapping[str, Sheet]) -> set[str]:
    return {entry.id for sheet in sheets.values() for entry in sheet.entries}


def _persons(sheets: Mapping[str, Sheet]) -> set[str]:
    """Return the ids of what people wrote, or pinned."""
    entries = [entry for sheet in sheets.values() for entry in sheet.entries]
    return {entry.id for entry in entries if entry.pinned or entry.by in {"user", "hand"}}


def _rules(sheets: Mapping[str, Sheet]) -> set[tuple[str, str | None]]:
    return {(entry.id, entry.rule) for sheet in sheets.values() for entry in sheet.entries if entry.rule}


def _rules_before(material: Material, proposal: Proposal, before: Mapping[str, Sheet]) -> set[tuple[str, str | None]]:
    """Return the rules that curated memory must have afterwards, by the ids of their entries."""
    new = {(one.entry.id, one.entry.rule) for one in material.fresh if one.entry.rule and one.entry.id in proposal.kept}
    return {row for row in _rules(before) | new if row[0] not in material.forgotten}


def _is_ours_alone(path: str, sheet: Sheet) -> bool:
    """Tell whether a person wrote nothing into a topic, so that it may go when its memories stand elsewhere."""
    named = {part.entry.id for part in sheet.parts if part.entry and part.is_named}
    return tells_its_entries(path, sheet.data) and is_hollow(sheet.without(named))


def _by_hand(sheets: Mapping[str, Sheet]) -> Counter[tuple[str, bytes]]:
    """Return the lines and bullets of each document that are not ours to change."""
    return Counter(
        (path, part.data.rstrip(b"\n"))
        for path, sheet in sheets.items()
        if not (is_ours(sheet.data) and not sheet.entries)
        for part in _written(path, sheet)
        if not part.is_blank and not part.is_named and not LISTED.match(part.data) and part.data.strip() not in _TITLES
    )


def _written(path: str, sheet: Sheet) -> Sequence[Part]:
    """Return the parts of a document without the description that we gave a topic, which goes with its entries."""
    if path == MEMORY or not tells_its_entries(path, sheet.data):
        return sheet.parts
    return [
        part
        for number, part in enumerate(sheet.parts)
        if number >= _FRONT_LINES or not part.data.startswith(b"description: ")
    ]
