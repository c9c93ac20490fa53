"""Whether one text repeats what another says, sentence by sentence. Pure."""

from ricordo.language.sentences import split_sentences
from ricordo.language.words import content_words

__all__ = ["repeats"]

_FEWEST = 3
"""Fewer words in common are chance."""
_SHARE = 0.6
_LONGEST = 4_000
"""Characters of each text that are read."""


def repeats(text: str, source: str) -> bool:
    """Tell whether a sentence of `text` has most of its words, three at least, from one sentence of `source`."""
    said = _sentences(text)
    told = _sentences(source)
    return any(len(words & other) >= max(_FEWEST, _SHARE * len(words)) for words in said for other in told)


def _sentences(text: str) -> list[frozenset[str]]:
    found = (frozenset(content_words(each.text)) for each in split_sentences(text[:_LONGEST]))
    return [words for words in found if len(words) >= _FEWEST]
