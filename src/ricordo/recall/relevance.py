"""Relevance: which memories have to do with what a session begins with. Pure.

It has to be certain, because nobody asked: a memory has to hold two words of the text that say something, or one of a
text that has hardly more. Words count in all their forms, and generic ones hardly. The same hits give the same choice.
"""

from collections.abc import Iterable

from ricordo.index.contract import Chunk
from ricordo.index.terms import QueryWords, own_terms, query_words
from ricordo.recall.hits import Hit
from ricordo.workspace.entry import Entry
from ricordo.workspace.layout import ledger_date

__all__ = ["DEFAULT_OPENING_MEMORIES", "search_words", "select_relevant"]

DEFAULT_OPENING_MEMORIES = 5
"""How many memories are loaded for the first message of a session when no number is set."""

_MAX_SEARCH_WORDS = 8
_MIN_STEM_CHARS = 4
_FEW, _MANY = 3.0, 16.0


def search_words(text: str) -> tuple[str, ...]:
    """Return what to look for word by word: the first eight words that say something, each also in its shortest form.

    Empty for a text that says nothing, such as a greeting.
    """
    words = query_words(text)
    telling = [
        (shown, group)
        for shown, group, share in zip(words.words, words.groups, words.weights, strict=True)
        if share == 1
    ]
    forms: dict[str, None] = {}
    for shown, group in telling[:_MAX_SEARCH_WORDS]:
        forms[shown] = None
        stem = min(sorted(group), key=len)
        if len(stem) >= _MIN_STEM_CHARS and shown.startswith(stem):
            forms[stem] = None
    return tuple(forms)


def select_relevant(text: str, hits: Iterable[Hit], limit: int) -> list[Hit]:
    """Return at most `limit` of the hits that have to do with `text`, first those that hold most of its words.

    Of equals the earlier hit comes first. What was superseded is left out, and so is what was only extracted and
    nobody has curated: that is found by search alone.
    """
    asked = query_words(text)
    least = _min_matched_weight(sum(asked.weights))
    shown = {(hit.entry.id or hit.entry.content, hit.path): hit for hit in hits if _is_showable(hit)}
    held = [(_matched_weight(asked, hit.entry), hit) for hit in _unique_by_content(shown.values())]
    chosen = sorted((row for row in held if row[0] >= least), key=lambda row: -row[0])
    return [hit for _, hit in chosen[:limit]]


def _min_matched_weight(said: float) -> float:
    """Return how many words a memory has to hold of a text that says so much."""
    return 1.0 if said < _FEW else 2.0 if said <= _MANY else 3.0


def _is_showable(hit: Hit) -> bool:
    entry = hit.entry
    holds = entry.state == "active" and not hit.superseded_by
    return holds and not (entry.by == "flush" and ledger_date(hit.path) is not None)


def _unique_by_content(hits: Iterable[Hit]) -> list[Hit]:
    """Return the hits without those that say what an earlier one says."""
    return list({hit.entry.content: hit for hit in reversed(list(hits))}.values())[::-1]


def _matched_weight(asked: QueryWords, entry: Entry) -> float:
    terms = frozenset(own_terms(_as_chunk(entry)))
    return sum(share for group, share in zip(asked.groups, asked.weights, strict=True) if group & terms)


def _as_chunk(entry: Entry) -> Chunk:
    return Chunk(path="", line_number=1, end_line=1, content=entry.content, sort="note", tags=entry.tags)
