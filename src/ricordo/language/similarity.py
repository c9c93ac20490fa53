"""How much two texts share in content words, and whether one repeats a sentence of the other. Pure.

Set arithmetic only: no weights and no corpus. Every measure is in 0..1, higher is nearer; an empty side scores 0.
"""

from collections.abc import Collection, Sequence

from ricordo.language.languages import Language
from ricordo.language.sentences import split_sentences
from ricordo.language.words import content_words

__all__ = ["containment", "coverage", "drop_questions", "jaccard", "overlap", "repeats_sentence", "text_similarity"]


def containment(part: Collection[str], whole: Collection[str]) -> float:
    """Return the share of the distinct words of `part` that `whole` holds too."""
    wanted = set(part)
    return len(wanted & set(whole)) / len(wanted) if wanted else 0.0


def overlap(left: Collection[str], right: Collection[str]) -> float:
    """Return the shared words over the smaller side (Szymkiewicz-Simpson): 1 when one holds all of the other."""
    first, second = set(left), set(right)
    return len(first & second) / min(len(first), len(second)) if first and second else 0.0


def jaccard(left: Collection[str], right: Collection[str]) -> float:
    """Return the shared words over all words: 1 only for equal sets."""
    first, second = set(left), set(right)
    return len(first & second) / len(first | second) if first and second else 0.0


def text_similarity(left: str, right: str, language: Language | None = None) -> float:
    """Return the Jaccard similarity of the content words of two texts."""
    return jaccard(content_words(left, language), content_words(right, language))


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
