"""Polarity: whether one text says in the words of another that it is not so. Pure.

Narrow on purpose: both are the same words in the same order but for one denial, which tells what is so from now on and
not what did not happen, or but for one word and its opposite. Invariant: it is mutual, and no text is opposed to
itself.
"""

import re
from collections.abc import Mapping
from functools import lru_cache

__all__ = ["is_opposed", "stance"]

_MAX_STANCE_CHARACTERS = 300
_MIN_STANCE_WORDS = 2
_WORD = re.compile(r"\w+(?:['’]\w+)?")
# what denies one part of a sentence, or how often, says nothing against the rest
_PARTIAL_NEGATION = re.compile(
    r"(?<!\w)(?:not|n['’]t|nicht)\s+(?:only|just|always|all|every|necessarily|yet|until|unless|nur|immer|alle|jede\w*)"
    r"(?!\w)|^\W*(?:no|nein)\s*[,.!:;]",
    re.IGNORECASE,
)
_DENIAL_LIST = """
not never no don't doesn't won't can't cannot isn't aren't mustn't shouldn't without
nicht nie niemals kein keine keinen keinem keiner ohne
"""
_OFTEN_LIST = "always usually generally mostly still definitely really immer meistens weiterhin wirklich"
# words that carry a denial, and nothing of what is denied
_FRAME_LIST = "do does will can must should is are a an the any ever with mit ein eine einen einem einer"
_DENIALS = frozenset(_DENIAL_LIST.split())
_NEUTRAL_WORDS = frozenset((*_OFTEN_LIST.split(), *_FRAME_LIST.split()))
_OPPOSITES: Mapping[str, str] = {
    "dislike": "like", "hate": "like", "love": "like", "forbidden": "allowed", "forbid": "allow", "disabled": "enabled",
    "disable": "enable", "disallow": "allow", "optional": "required", "verboten": "erlaubt", "hasst": "mag",
    "liebt": "mag", "private": "public", "false": "true",
}  # fmt: skip
_AFFIRMING_SYNONYMS = frozenset({"love", "liebt"})


@lru_cache(maxsize=4096)
def stance(text: str) -> tuple[str, bool] | None:
    """Return the words of a text in their order without what affirms or denies them, and whether it denies them.

    None for a text that is too long, asks, or denies a part of what it says or more than once.
    """
    if len(text) > _MAX_STANCE_CHARACTERS or text.rstrip().endswith("?"):
        return None
    words: list[str] = []
    denials = 0
    for word in (match[0].casefold().replace("’", "'") for match in _WORD.finditer(text)):
        if word in _DENIALS:
            denials += 1
        elif word not in _NEUTRAL_WORDS:
            plain = _without_ending(word)
            denials += plain in _OPPOSITES and plain not in _AFFIRMING_SYNONYMS
            words.append(_OPPOSITES.get(plain, plain))
    if denials > 1 or len(words) < _MIN_STANCE_WORDS or (denials and _PARTIAL_NEGATION.search(text)):
        return None
    return " ".join(words), bool(denials)


def is_opposed(one: str, other: str) -> bool:
    """Tell whether one text denies what the other says."""
    left, right = stance(one), stance(other)
    return left is not None and right is not None and left[0] == right[0] and left[1] != right[1]


def _without_ending(word: str) -> str:
    """Return a word without the ending of its number or person."""
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
