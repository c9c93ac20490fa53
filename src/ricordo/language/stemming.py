"""Stemming: inflected forms of a word to one key, and the irregular forms of English.

English gets the inflectional steps of Porter's stemmer (1a, 1b, 1c, 5a; M. F. Porter, "An algorithm for suffix
stripping", 1980) after a table of irregular forms; its derivational steps are left out on purpose. German and the
Romance languages get a light stemmer in the manner of J. Savoy (2006). Keys are for comparing, not for showing.

Invariant: `stem` is never empty for a non-empty word, and a word that is not plain letters comes back unchanged.
"""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache

from ricordo.language.packs import Language, language_pack, pack_rows, pack_table, pack_words
from ricordo.lazy import lazy_compile

__all__ = ["irregular_forms", "irregular_pasts", "stem", "strip_accents"]


@cache
def irregular_pasts() -> frozenset[str]:
    """Return the past and participle forms of English that differ from their base."""
    return frozenset(form for base, *forms in _verb_rows() for form in forms if form != base) | pack_words(
        "auxiliary_past"
    )


@cache
def irregular_forms() -> Mapping[str, str]:
    """Return each irregular form of English with its base form, all case-folded."""
    verbs = {form: base for base, *forms in _verb_rows() for form in forms if form != base}
    return {**verbs, **pack_table("irregular")}


def _verb_rows() -> Iterator[list[str]]:
    return map(str.split, pack_rows("verb_forms"))


_VOWELS = frozenset("aeiou")
_MEASURE = lazy_compile(r"[aeiouy]+[^aeiouy]+")
_MIN_STEM_LETTERS = 4


@lru_cache(maxsize=32_768)
def stem(word: str, language: Language = "en") -> str:
    """Return the comparison key of a case-folded word; the word itself when no rule applies."""
    if not word.isalpha():
        return word
    if language == "en":
        return _stem_english(word) if word.isascii() else strip_accents(word)
    endings = _light_endings(language)
    if not endings:
        return _stem_english(word) if word.isascii() else word
    return _stem_light(strip_accents(word), endings)


def strip_accents(text: str) -> str:
    """Return the text with combining marks removed from Latin letters and ß as ss; never empty for a non-empty text."""
    plain = "".join(char for char in unicodedata.normalize("NFD", text) if not "\u0300" <= char <= "\u036f")
    return plain.replace("ß", "ss") or text


@cache
def _light_endings(language: Language) -> tuple[str, ...]:
    return tuple(language_pack(language).words.get("ending", "").split())


def _stem_light(word: str, endings: Sequence[str]) -> str:
    for ending in endings:
        if word.endswith(ending) and len(word) - len(ending) >= _MIN_STEM_LETTERS:
            return word.removesuffix(ending)
    return word


def _stem_english(word: str) -> str:
    if len(word) <= 2:
        return word
    word = irregular_forms().get(word, word)
    word = _replace_final_y(_strip_past(_strip_plural(word)))
    return _strip_final_e(word)


def _strip_plural(word: str) -> str:
    if word.endswith("sses") or (word.endswith("ies") and len(word) > 4):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _strip_past(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for ending in ("ed", "ing"):
        stem = word.removesuffix(ending)
        if stem != word and len(stem) > 1 and _has_vowel(stem):
            return _repair_stem(stem)
    return word


def _repair_stem(stem: str) -> str:
    """Give a stripped stem its e back (creat) or take its doubled letter (runn), as Porter's step 1b does."""
    if stem.endswith(("at", "bl", "iz")):
        return stem + "e"
    if len(stem) > 2 and stem[-1] == stem[-2] and stem[-1] not in "lsz" and stem[-1] not in _VOWELS:
        return stem[:-1]
    if _measure(stem) == 1 and _is_short_syllable(stem):
        return stem + "e"
    return stem


def _replace_final_y(word: str) -> str:
    return word[:-1] + "i" if word.endswith("y") and len(word) > 2 and _has_vowel(word[:-1]) else word


def _strip_final_e(word: str) -> str:
    if not word.endswith("e"):
        return word
    stem = word[:-1]
    measure = _measure(stem)
    return stem if measure > 1 or (measure == 1 and not _is_short_syllable(stem)) else word


def _measure(stem: str) -> int:
    """Porter's m: how many vowel runs are followed by a consonant run."""
    return len(_MEASURE.findall(stem))


def _has_vowel(stem: str) -> bool:
    return any(char in _VOWELS for char in stem) or "y" in stem[1:]


def _is_short_syllable(stem: str) -> bool:
    """Porter's *o: ends consonant, vowel, consonant, the last not w, x or y."""
    if len(stem) < 3:
        return False
    first, middle, last = stem[-3], stem[-2], stem[-1]
    return first not in _VOWELS and (middle in _VOWELS or middle == "y") and last not in _VOWELS and last not in "wxy"
