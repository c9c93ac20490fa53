"""What a place's entries say together: each told once, and what of it curated memory or a text already shows. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ricordo.consolidation.worth import MERGED, REPLACED, cited
from ricordo.stores.preamble import said
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import Located, prompt_lines
from ricordo.workspace.ledger import is_curated

__all__ = ["each_once", "ids_in", "ids_placed", "names_of", "says_something"]


def ids_in(entries: Iterable[Entry], named: frozenset[str], shown: str) -> set[str]:
    """Return the ids of those entries that a text names by id, or has the words of."""
    return {entry.id for entry in entries if entry.id in named or f" {said(entry.content)} " in f" {shown} "}


def says_something(document: bytes) -> bool:
    """Tell whether a document has more than headings, as one does not whose memories were all taken back."""
    return any(not line.startswith("#") for line in prompt_lines(document))


def each_once(located: Iterable[Located]) -> list[Entry]:
    """Return each entry once: as curated memory has it, with the quote that its ledger keeps."""
    found: dict[str, list[Located]] = {}
    for one in located:
        found.setdefault(one.entry.id, []).append(one)
    return [_whole(sorted(places, key=lambda one: not is_curated(one.path))) for places in found.values()]


def _whole(places: Sequence[Located]) -> Entry:
    entry = places[0].entry
    quote = next((one.entry.source.quote for one in places if one.entry.source.quote is not None), None)
    return replace(entry, source=replace(entry.source, quote=quote))


def ids_placed(curated: Iterable[Located]) -> set[str]:
    """Return the ids and the words of what curated memory says, with the ids that its entries stand for."""
    placed: set[str] = set()
    for found in curated:
        entry = found.entry
        placed |= {*names_of(entry), *cited(entry, MERGED), *cited(entry, REPLACED), entry.supersedes or entry.id}
    return placed


def names_of(entry: Entry) -> set[str]:
    """Return the id and the words of an entry; the words are told from an id by the mark before them."""
    return {entry.id, f": {said(entry.content)}"}
