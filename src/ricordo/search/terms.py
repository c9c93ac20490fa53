"""Converts text to index terms, and queries to the terms to look up.

A chunk is stemmed by the rules of its own language. The language of a short query is uncertain, so each of its words is
represented by a group of terms, its stems in every language. Hangul is indexed by word and by pairs of syllables.

Invariant: a term contains no white space and no quote, so terms joined by spaces can be split again.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import chain, repeat

from ricordo.language import LANGUAGES, Language, detect_language, is_stop_word, script_of, split_words, stem
from ricordo.language.dates import month_numbers
from ricordo.language.words import GENERIC_WEIGHT, is_generic
from ricordo.lazy import lazy_compile
from ricordo.search.contract import Chunk

__all__ = ["QueryWords", "neighbour_terms", "own_terms", "query_words"]


_DERIVED_NOUN = lazy_compile(r"([a-z]{4,})ment|([a-z]{3,}[st])ion")
_PATH_AND_LINE = lazy_compile(r"(.*[./].*):\d+")
_NEIGHBOUR_CHARS = 400
_MAX_QUERY_CHARS = 2_000
_MAX_QUERY_WORDS = 48


@dataclass(frozen=True, kw_only=True)
class QueryWords:
    """The distinct content words of a query in order, each with a group of terms and a weight.

    `weights` are in 0..1: 1 for an informative word, less for a generic one.
    """

    words: tuple[str, ...] = ()
    groups: tuple[frozenset[str], ...] = ()
    weights: tuple[float, ...] = ()

    @property
    def terms(self) -> tuple[str, ...]:
        """All terms, sorted."""
        return tuple(sorted(frozenset().union(*self.groups)))


def own_terms(chunk: Chunk) -> tuple[str, ...]:
    """Return the terms of a chunk itself: its speaker, heading, tags, time and text."""
    # the heading of a ledger is a date, and any small number would match its day
    about = (term for term in _text_terms(" ".join((chunk.speaker, chunk.heading, *chunk.tags))) if not term.isdigit())
    return (*about, *_time_terms(chunk.time), *_text_terms(chunk.content))


def neighbour_terms(chunk: Chunk) -> tuple[str, ...]:
    """Return the terms of its neighbours; only the nearest 400 characters of each are used."""
    return (*_text_terms(chunk.before[-_NEIGHBOUR_CHARS:]), *_text_terms(chunk.after[:_NEIGHBOUR_CHARS]))


@lru_cache(maxsize=256)
def query_words(text: str) -> QueryWords:
    """Return the content words of a query; empty for a text of stop words or punctuation, or an empty text.

    Only the first 2,000 characters and the first 48 distinct words are used.
    """
    asked = text[:_MAX_QUERY_CHARS]
    language = detect_language(asked)
    groups: dict[frozenset[str], str] = {}
    for word in _split_words(split_words(asked)):
        if not is_stop_word(word, language):
            groups.setdefault(_word_forms(word, language), word)
    chosen = list(groups.items())[:_MAX_QUERY_WORDS]
    return QueryWords(
        words=tuple(word for _, word in chosen),
        groups=tuple(group for group, _ in chosen),
        weights=tuple(GENERIC_WEIGHT if is_generic(word, language) else 1.0 for _, word in chosen),
    )


def _text_terms(text: str) -> tuple[str, ...]:
    language = detect_language(text)
    return tuple(chain.from_iterable(map(_word_terms, split_words(text), repeat(language))))


@lru_cache(maxsize=32_768)
def _word_terms(word: str, language: Language) -> tuple[str, ...]:
    return tuple(_normalize_word(each, language) for each in _split_words((word,)) if not is_stop_word(each, language))


@lru_cache(maxsize=4_096)
def _word_forms(word: str, language: Language) -> frozenset[str]:
    """Return the terms of a word in every language, as its language is uncertain."""
    return frozenset(_normalize_word(word, tongue) for tongue in (language, *LANGUAGES))


def _split_words(found: Iterable[str]) -> Iterable[str]:
    """Yield the words; a Hangul word is followed by its pairs of syllables, a path with a line number by the path."""
    for found_word in found:
        # the full-text table splits words at the straight apostrophe
        word = found_word.replace("'", "’")
        yield word
        if len(word) > 2 and not word.isascii() and script_of(word[0]) == "hangul":
            yield from (word[at : at + 2] for at in range(len(word) - 1))
        elif (place := _PATH_AND_LINE.fullmatch(word)) is not None:
            yield place[1]


@lru_cache(maxsize=32_768)
def _normalize_word(word: str, language: Language) -> str:
    """Return the term of a word: its stem; nouns in -ment or -ion get the stem of their verb."""
    folded = stem(word, language)
    noun = _DERIVED_NOUN.fullmatch(folded)
    return stem(noun[1] or noun[2], language) if noun else folded


@lru_cache(maxsize=12)
def _month_name(number: int) -> str:
    """Return the English name of a month, by which times are indexed."""
    return next(word for word, each in month_numbers().items() if each == number)


def _time_terms(time: datetime | None) -> tuple[str, ...]:
    """Return year, month and date; the day of the month alone is left out, or any small number would match it."""
    if time is None:
        return ()
    return (f"{time:%Y}", stem(_month_name(time.month)), f"{time:%Y-%m}", f"{time:%Y-%m-%d}")
