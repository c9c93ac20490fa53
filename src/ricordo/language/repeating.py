"""Whether one text repeats what another says, sentence by sentence. Pure."""

from collections.abc import Sequence

from ricordo.language.sentences import split_sentences
from ricordo.language.words import content_words

__all__ = ["coverage", "repeats_sentence", "drop_questions"]

_MIN_SHARED_WORDS = 3
"""Fewer words in common are chance."""
_MIN_SHARE = 0.6
_MAX_CHARS = 4_000
"""Characters of each text that are read."""
_MIN_COVERED_WORDS = 2
_WINDOW_SENTENCES = 2
_PREFIX_LETTERS = 5


def repeats_sentence(text: str, source: str) -> bool:
    """Tell whether a sentence of `text` has most of its words, three at least, from one sentence of `source`."""
    said = _sentence_words(text)
    told = _sentence_words(source)
    return any(
        len(words & other) >= max(_MIN_SHARED_WORDS, _MIN_SHARE * len(words)) for words in said for other in told
    )


def coverage(text: str, sources: Sequence[str]) -> float:
    """Return which share of the words of a sentence of `text` stands together in one of `sources`, at most.

    Together is in two sentences that follow each other; what only asks tells nothing. Words count that begin alike.
    Fewer than two words are none.
    """
    said = _sentence_prefixes(text)
    windows = [
        frozenset[str]().union(*told[at : at + _WINDOW_SENTENCES])
        for told in (_sentence_prefixes(drop_questions(source)) for source in sources)
        for at in range(len(told))
    ]
    shares = (
        len(words & window) / len(words)
        for words in said
        for window in windows
        if len(words & window) >= _MIN_COVERED_WORDS
    )
    return max(shares, default=0.0)


def drop_questions(text: str) -> str:
    """Return the sentences of a text that do not ask."""
    sentences = (each.text for each in split_sentences(text[:_MAX_CHARS]))
    return "\n".join(each for each in sentences if not each.rstrip().endswith(("?", "？")))


def _sentence_words(text: str) -> list[frozenset[str]]:
    found = (frozenset(content_words(each.text)) for each in split_sentences(text[:_MAX_CHARS]))
    return [words for words in found if len(words) >= _MIN_SHARED_WORDS]


def _sentence_prefixes(text: str) -> list[frozenset[str]]:
    """Return the beginnings of the words of each sentence."""
    sentences = split_sentences(text[:_MAX_CHARS])
    found = (frozenset(word[:_PREFIX_LETTERS] for word in content_words(each.text)) for each in sentences)
    return [words for words in found if words]
