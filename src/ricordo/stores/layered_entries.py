"""What a place's entries say together: each told once, and what of it curated memory or a text already shows. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ricordo.consolidation.worth import MERGED_FIELD, REPLACED_FIELD, field_ids
from ricordo.stores.preamble import normalize_words
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import LocatedEntry, render_prompt_lines
from ricordo.workspace.ledger import is_curated

__all__ = ["merge_duplicates", "find_shown_ids", "curated_keys", "entry_keys", "has_content"]


def find_shown_ids(entries: Iterable[Entry], named: frozenset[str], shown: str) -> set[str]:
    """Return the ids of those entries that a text names by id, or has the words of."""
    return {entry.id for entry in entries if entry.id in named or f" {normalize_words(entry.content)} " in f" {shown} "}


def has_content(document: bytes) -> bool:
    """Tell whether a document has more than headings, as one does not whose memories were all taken back."""
    return any(not line.startswith("#") for line in render_prompt_lines(document))


def merge_duplicates(located: Iterable[LocatedEntry]) -> list[Entry]:
    """Return each entry once: as curated memory has it, with the quote that its ledger keeps."""
    found: dict[str, list[LocatedEntry]] = {}
    for one in located:
        found.setdefault(one.entry.id, []).append(one)
    return [_merge_versions(sorted(places, key=lambda one: not is_curated(one.path))) for places in found.values()]


def _merge_versions(places: Sequence[LocatedEntry]) -> Entry:
    entry = places[0].entry
    quote = next((one.entry.source.quote for one in places if one.entry.source.quote is not None), None)
    return replace(entry, source=replace(entry.source, quote=quote))


def curated_keys(curated: Iterable[LocatedEntry]) -> set[str]:
    """Return the ids and the words of what curated memory says, with the ids that its entries stand for."""
    placed: set[str] = set()
    for found in curated:
        entry = found.entry
        placed |= {
            *entry_keys(entry),
            *field_ids(entry, MERGED_FIELD),
            *field_ids(entry, REPLACED_FIELD),
            entry.supersedes or entry.id,
        }
    return placed


def entry_keys(entry: Entry) -> set[str]:
    """Return the id and the words of an entry; the words are told from an id by the mark before them."""
    return {entry.id, f": {normalize_words(entry.content)}"}
