"""Stemming: inflected forms of a word to one key, and the irregular forms of English.

English gets the inflectional steps of Porter's stemmer (1a, 1b, 1c, 5a; M. F. Porter, "An algorithm for suffix
stripping", 1980) after a table of irregular forms; its derivational steps are left out on purpose. German and the
Romance languages get a light stemmer in the manner of J. Savoy (2006). Keys are for comparing, not for showing.

Invariant: `stem` is never empty for a non-empty word, and a word that is not plain letters comes back unchanged.
"""

import unicodedata
from functools import lru_cache

from ricordo.language.languages import Language
from ricordo.lazy import lazy_compile

__all__ = ["IRREGULAR_FORMS", "IRREGULAR_PASTS", "SAME_IN_PAST", "stem", "strip_accents"]


# base, past, participle (left out when equal to the past)
_VERBS = """
arise arose arisen|awake awoke awoken|beat beat beaten|become became become|begin began begun|bend bent|bind bound|
bite bit bitten|bleed bled|blow blew blown|break broke broken|breed bred|bring brought|build built|burn burnt|
buy bought|
catch caught|choose chose chosen|cling clung|come came come|creep crept|deal dealt|dig dug|draw drew drawn|
dream dreamt|drink drank drunk|drive drove driven|eat ate eaten|fall fell fallen|feed fed|feel felt|fight fought|
find found|flee fled|fly flew flown|forbid forbade forbidden|forget forgot forgotten|forgive forgave forgiven|
freeze froze frozen|get got gotten|give gave given|go went gone goes|grind ground|grow grew grown|hang hung|hear heard|
hide hid hidden|hold held|keep kept|kneel knelt|know knew known|lay laid|lead led|lean leant|leap leapt|learn learnt|
leave left|lend lent|light lit|lose lost|make made|mean meant|meet met|overcome overcame overcome|
oversee oversaw overseen|pay paid|prove proved proven|ride rode ridden|ring rang rung|rise rose risen|run ran run|
say said|see saw seen|seek sought|sell sold|send sent|sew sewed sewn|shake shook shaken|shine shone|shoot shot|
show showed shown|shrink shrank shrunk|sing sang sung|sink sank sunk|sit sat|sleep slept|slide slid|speak spoke spoken|
spell spelt|spend spent|spin spun|spring sprang sprung|stand stood|steal stole stolen|stick stuck|sting stung|
strike struck|swear swore sworn|sweep swept|swim swam swum|swing swung|take took taken|teach taught|tear tore torn|
tell told|think thought|throw threw thrown|understand understood|undertake undertook undertaken|wake woke woken|
wear wore worn|weave wove woven|weep wept|win won|wind wound|withdraw withdrew withdrawn|write wrote written|
rewrite rewrote rewritten|rebuild rebuilt|redo redid redone|undo undid undone
"""
_PLURALS = """
children child|men man|women woman|people person|feet foot|teeth tooth|geese goose|mice mouse|lives life|wives wife|
knives knife|leaves leaf|shelves shelf|halves half|selves self|wolves wolf|loaves loaf|thieves thief|
indices index|matrices matrix|vertices vertex|analyses analysis|criteria criterion|phenomena phenomenon|
ties tie|pies pie|
dying die|lying lie|tying tie|better good|best good|worse bad|worst bad
"""
_SAME_IN_PAST_LIST = """
bet bid burst cast cost cut fit hit hurt let put quit read rid set shed shut split spread thrust upset
"""
SAME_IN_PAST: frozenset[str] = frozenset(_SAME_IN_PAST_LIST.split())
"""Verbs whose past equals their base; a reader cannot tell which is meant."""


def _verb_rows() -> list[list[str]]:
    return [row.split() for row in _VERBS.replace("\n", "").split("|")]


IRREGULAR_PASTS: frozenset[str] = frozenset(form for row in _verb_rows() for form in row[1:] if form != row[0]) | {
    "was", "were", "had", "did",
}  # fmt: skip
"""Past and participle forms that differ from their base."""
# "found" the verb and "left" the side stay what they look like: the verb reading is the commoner one in a chat.
IRREGULAR_FORMS: dict[str, str] = {
    **{form: row[0] for row in _verb_rows() for form in row[1:] if form != row[0]},
    **dict(pair.split() for pair in _PLURALS.replace("\n", "").split("|")),
}
"""Irregular form to base form, all case-folded."""


_VOWELS = frozenset("aeiou")
_MEASURE = lazy_compile(r"[aeiouy]+[^aeiouy]+")
# Longest first; the stem that stays must keep at least the given number of letters.
_LIGHT_ENDINGS: dict[Language, tuple[tuple[str, ...], int]] = {
    "de": (("ern", "em", "en", "er", "es", "et", "e", "s"), 4),
    "fr": (("issons", "issent", "eraient", "erons", "eront", "aient", "ait", "ent", "ees", "ez", "er",
            "es", "ee", "s", "e"), 4),
    "es": (("aciones", "acion", "ando", "iendo", "aban", "amos", "emos", "imos", "aron", "ieron", "ado", "ada", "ido",
            "ida", "ar", "er", "ir", "an", "en", "as", "os", "es", "a", "o", "e", "s"), 4),
    "it": (("azioni", "azione", "ando", "endo", "iamo", "avano", "are", "ere", "ire", "ato", "ata", "ito", "ita",
            "ano", "ono", "hi", "he", "a", "e", "i", "o"), 4),
    "pt": (("acoes", "acao", "ando", "endo", "indo", "amos", "emos", "imos", "aram", "eram", "ado", "ada", "ido",
            "ida", "ar", "er", "ir", "am", "em", "as", "os", "es", "a", "o", "e", "s"), 4),
}  # fmt: skip


@lru_cache(maxsize=32_768)
def stem(word: str, language: Language = "en") -> str:
    """Return the comparison key of a case-folded word; the word itself when no rule applies."""
    if not word.isalpha():
        return word
    if language == "en":
        return _stem_english(word) if word.isascii() else strip_accents(word)
    endings = _LIGHT_ENDINGS.get(language)
    if endings is None:
        return _stem_english(word) if word.isascii() else word
    return _stem_light(strip_accents(word), *endings)


def strip_accents(text: str) -> str:
    """Return the text with combining marks removed from Latin letters and ß as ss; never empty for a non-empty text."""
    plain = "".join(char for char in unicodedata.normalize("NFD", text) if not "\u0300" <= char <= "\u036f")
    return plain.replace("ß", "ss") or text


def _stem_light(word: str, endings: tuple[str, ...], shortest: int) -> str:
    for ending in endings:
        if word.endswith(ending) and len(word) - len(ending) >= shortest:
            return word.removesuffix(ending)
    return word


def _stem_english(word: str) -> str:
    if len(word) <= 2:
        return word
    word = IRREGULAR_FORMS.get(word, word)
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
