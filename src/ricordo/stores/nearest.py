"""Hits by vectors: which entries may be found, what the nearest say, and how they meet what was found by text. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ricordo.index.contract import Query
from ricordo.index.vector import VectorMatch, text_digest
from ricordo.recall.hits import Hit
from ricordo.stores.plain import match_entries
from ricordo.workspace.entry import Entry

__all__ = ["hits_by_vector", "text_to_embed", "entry_digest", "merge_hits", "create_filter"]

_MAX_EMBEDDED_CHARACTERS = 8_000
"""The most characters of an entry that are embedded: its beginning, which every usual model takes."""


def text_to_embed(entry: Entry) -> str:
    """Return what is embedded of an entry: its beginning and its tags."""
    text = "\n".join((entry.content[:_MAX_EMBEDDED_CHARACTERS], *entry.tags))
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def entry_digest(entry: Entry) -> str:
    """Return what tells whether a vector was made of what the entry says now."""
    return text_digest(text_to_embed(entry))


def create_filter(entries: Mapping[str, Entry], query: Query) -> Callable[[str, str], bool]:
    """Return what tells of an id and a digest whether the entry may be found and the vector is of what it says now."""
    filters = replace(query, text="")

    def passes(identity: str, digest: str) -> bool:
        entry = entries.get(identity)
        return entry is not None and entry_digest(entry) == digest and bool(match_entries([entry], filters, 1))

    return passes


def hits_by_vector(entries: Mapping[str, Entry], near: Sequence[VectorMatch]) -> list[Hit]:
    """Return the hits of what is near, best first; what has nothing in common with the query is left out."""
    ids = {one.id for one in near}
    concerned = [entry for entry in entries.values() if entry.id in ids or entry.supersedes]
    hits = {hit.entry.id: hit for hit in match_entries(concerned, Query(text=""), len(concerned))}
    return [_score_hit(hits[one.id], min(one.cosine, 1.0)) for one in near if one.cosine > 0 and one.id in hits]


def merge_hits(by_text: Sequence[Hit], nearest: Sequence[Hit], limit: int) -> list[Hit]:
    """Return both: first what was found by text, in at most half of the places unless the others leave more free."""
    share = max(limit - len(nearest), (limit + 1) // 2)
    return [*by_text[:share], *nearest][:limit]


def _score_hit(hit: Hit, cosine: float) -> Hit:
    reasons = [f"cosine {cosine:.2f}", *([f"superseded by {hit.superseded_by}"] if hit.superseded_by else [])]
    return replace(hit, score=cosine, why="; ".join(reasons), signals={"cosine": cosine})
