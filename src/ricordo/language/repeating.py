"""Whether one text repeats what another says, sentence by sentence. Pure."""

from collections.abc import Sequence

from ricordo.language.sentences import split_sentences
from ricordo.language.words import content_words

__all__ = ["cover", "repeats", "stated"]

_FEWEST = 3
"""Fewer words in common are chance."""
_SHARE = 0.6
_LONGEST = 4_000
"""Characters of each text that are read."""
_FEWEST_COVERED = 2
_WINDOW = 2
_PREFIX = 5


def repeats(text: str, source: str) -> bool:
    """Tell whether a sentence of `text` has most of its words, three at least, from one sentence of `source`."""
    said = _sentences(text)
    told = _sentences(source)
    return any(len(words & other) >= max(_FEWEST, _SHARE * len(words)) for words in said for other in told)


def cover(text: str, sources: Sequence[str]) -> float:
    """Return which share of the words of a sentence of `text` stands together in one of `sources`, at most.

    Together is in two sentences that follow each other; what only asks tells nothing. Words count that begin alike.
    Fewer than two words are none.
    """
    said = _stems(text)
    windows = [
        frozenset[str]().union(*told[at : at + _WINDOW])
        for told in (_stems(stated(source)) for source in sources)
        for at in range(len(told))
    ]
    shares = (
        len(words & window) / len(words)
        for words in said
        for window in windows
        if len(words & window) >= _FEWEST_COVERED
    )
    return max(shares, default=0.0)


def stated(text: str) -> str:
    """Return the sentences of a text that do not ask."""
    sentences = (each.text for each in split_sentences(text[:_LONGEST]))
    return "\n".join(each for each in sentences if not each.rstrip().endswith(("?", "？")))


def _sentences(text: str) -> list[frozenset[str]]:
    found = (frozenset(content_words(each.text)) for each in split_sentences(text[:_LONGEST]))
    return [words for words in found if len(words) >= _FEWEST]


def _stems(text: str) -> list[frozenset[str]]:
    """Return the beginnings of the words of each sentence."""
    sentences = split_sentences(text[:_LONGEST])
    found = (frozenset(word[:_PREFIX] for word in content_words(each.text)) for each in sentences)
    return [words for words in found if words]
