"""What only says again what memory itself said in the conversation: it need not be learned once more.

A statement adds nothing when each of its words stands in a recalled text, whoever is meant by "we" and "they", and that
text does not deny what the statement says. Pure; a statement with one word of its own is never a repeat.
"""

from collections.abc import Sequence
from functools import cached_property

from ricordo.language import strip_accents, split_words

__all__ = ["RecalledTexts"]

_KEY_LETTERS = 6
_MIN_KEYS = 2
_PERSON_WORDS_LIST = """
i we you they he she it my our your their his her its me us them the a an user users team assistant is are was were am
be been that this have has had do does did s re ve m ich wir du ihr sie er es mein meine unser unsere der die das
den ein eine nutzer ist sind war hat haben je nous tu vous il elle on le la les un une yo nosotros el los las es son
"""
_PERSON_WORDS = frozenset(_PERSON_WORDS_LIST.split())
_DENIAL_WORDS_LIST = """
not no never none nobody nothing without t cannot dont isnt arent wasnt longer stop stopped nicht kein keine keinen nie
niemals ohne mehr pas jamais sans ne plus nunca jamas sin ya nao sem mai non senza не нет никогда без 不 没 別
"""
_DENIAL_WORDS = frozenset(_DENIAL_WORDS_LIST.split())


class RecalledTexts:
    """The texts that memory said, as repeats are told by them."""

    def __init__(self, texts: Sequence[str]) -> None:
        """Compare with `texts`."""
        self._texts = texts

    def covers(self, statement: str) -> bool:
        """Tell whether `statement` says nothing beside what one of the texts says."""
        own = _comparison_keys(statement)
        return len(own) >= _MIN_KEYS and any(own <= other and not (other - own) & _DENIAL_WORDS for other in self._keys)

    @cached_property
    def _keys(self) -> list[frozenset[str]]:
        return [_comparison_keys(text) for text in self._texts]


def _comparison_keys(text: str) -> frozenset[str]:
    return frozenset(strip_accents(word)[:_KEY_LETTERS] for word in split_words(text) if word not in _PERSON_WORDS)
