"""Own words: what a line that stood for several says once one of those is forgotten, or taken back. Pure.

Invariant: nothing that only the one that is gone had said is left in curated memory.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

from ricordo.consolidation.wording import REWORDED_FIELD
from ricordo.consolidation.worth import MERGED_FIELD, field_ids
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import parse_entries, render_entry

__all__ = ["find_dependent_lines", "restore_own_words"]


def find_dependent_lines(document: bytes, path: str, gone: Collection[str]) -> frozenset[str]:
    """Return the ids of the lines whose words a run made of what one of `gone` said, among others."""
    if not any(name.encode() in document for name in gone):
        return frozenset()
    return frozenset(found.entry.id for found in parse_entries(document, path) if _depends_on(found.entry, gone))


def restore_own_words(document: bytes, path: str, gone: Collection[str], own: Mapping[str, str]) -> bytes:
    """Return a curated document in which such lines say what their ledger has, `own` by id, and are gone without it."""
    for found in reversed(parse_entries(document, path)):
        entry = found.entry
        if not _depends_on(entry, gone):
            continue
        bullet = b""
        if entry.id in own:
            others = ",".join(name for name in field_ids(entry, MERGED_FIELD) if name not in gone)
            rest = tuple((key, value) for key, value in entry.extra if key not in {MERGED_FIELD, REWORDED_FIELD})
            shown = replace(entry, content=own[entry.id], extra=(*rest, *([(MERGED_FIELD, others)] if others else [])))
            bullet = render_entry(shown, long=found.long_path).encode("utf-8", "surrogatepass")
        document = document[: found.offset] + bullet + document[found.offset + found.length :]
    return document


def _depends_on(entry: Entry, gone: Collection[str]) -> bool:
    return bool(field_ids(entry, REWORDED_FIELD)) and any(name in gone for name in field_ids(entry, MERGED_FIELD))
