"""Seed phrases of wallets (BIP-39): twelve to twenty-four plain words after a name that announces them.

The words themselves are everyday English, so only the name, their number and their look decide: letters in lower case,
three to eight of them, none that the list of BIP-39 could not hold, such as "the" and "and".
"""

import re
from collections.abc import Iterator

from ricordo.guard.rule import SecretSpan

__all__ = ["SEED_HINTS", "find_seed_phrases"]

SEED_HINTS = (b"phrase", b"mnemonic", b"frase ", b"seed words")
"""One of these stands in every text in which `find_seed_phrases` can find something."""

# Each begins with a letter that is rare enough for a quick search.
_LAST_WORD = re.compile(
    "(?:hrase|HRASE|monic|MONIC|words|Words|WORDS|frase|Frase|FRASE)(?: (?:semilla|seme|de recuperaci[oó]n"
    "|de récupération|secrète|mnémonique))?(?![a-zA-Z])"
)
_SEED_NAME = re.compile(
    r"(?:(?:seed|recovery|backup|mnemonic|secret|wallet)[ _-]?(?:phrase|words)|mnemonic|wiederherstellungsphrase"
    r"|frase (?:semilla|seme|de recuperaci[oó]n)|phrase (?:de récupération|secrète|mnémonique))\Z",
    re.IGNORECASE,
)
_MAX_SEED_NAME = 32
_SEED_SIGN = re.compile(
    r"[^\S\n]?(?:\(\d\d words\))?[\"'*_` \t]{0,4}(?:(?:is|are|ist|lautet|es|est|è)[ \t]?[:=]?|:=|[:=：是は])"
    r"[\s\"'`*>\[(-]{0,40}"
)
_SEED_WORD = re.compile(r"(?:\d{1,2}[.):]?[ \t]*)?[\"']?([a-z]{3,8})[\"']?(?![\w'’-])")
_SEED_GAP = re.compile(r"[\s,>|*-]{1,24}")
_SEED_LENGTHS = (24, 21, 18, 15, 12)
_NOT_SEED_WORDS_LIST = """
and are but did does for from had has her his how into its mine not our out she should than the their them these they
those was were which while who whose why with without words would your yours
"""
_NOT_SEED_WORDS = frozenset(_NOT_SEED_WORDS_LIST.split())


def find_seed_phrases(text: str) -> Iterator[SecretSpan]:
    """Every seed phrase in `text`, its words alone."""
    position = 0
    while last := _LAST_WORD.search(text, position):
        position = last.end()
        if not _SEED_NAME.search(text[max(0, position - _MAX_SEED_NAME) : position]):
            continue
        sign = _SEED_SIGN.match(text, position)
        span = _find_words(text, sign.end()) if sign else None
        if span is not None:
            yield span
            position = span.end


def _find_words(text: str, at: int) -> SecretSpan | None:
    ends: list[int] = []
    start = position = at
    while len(ends) < _SEED_LENGTHS[0]:
        word = _SEED_WORD.match(text, position)
        if word is None or word[1] in _NOT_SEED_WORDS:
            break
        ends.append(word.end())
        gap = _SEED_GAP.match(text, word.end())
        if gap is None:
            break
        position = gap.end()
    length = next((length for length in _SEED_LENGTHS if length <= len(ends)), None)
    return None if length is None else SecretSpan(start=start, end=ends[length - 1], type="seed-phrase", rank=3)
