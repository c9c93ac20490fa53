"""Which language a text is in, as far as a word list can tell.

A guess by script first (kana means Japanese, Han alone Chinese) and by the share of function words second. It only
picks stop words, inflection rules and cue packs, so a wrong guess costs recall, never correctness; when nothing speaks
for another language the answer is English.
"""

import re
from collections import Counter
from functools import lru_cache
from typing import Literal

from ricordo.language.scripts import script_of

__all__ = ["LANGUAGES", "Language", "detect_language"]

Language = Literal["en", "de", "fr", "es", "it", "pt", "zh", "ja"]
LANGUAGES: tuple[Language, ...] = ("en", "de", "fr", "es", "it", "pt", "zh", "ja")
"""The languages with word lists and cue packs, in the order that breaks ties."""

_SAMPLE = 2000
_WORD, _ASCII_WORD = re.compile(r"[^\W\d_]+"), re.compile(r"[a-z]+")

# The most frequent function words of each language that hardly occur as words of the others; words that several
# of them share (a, me, no, de, que, per, ...) count for each and so decide nothing alone.
_FUNCTION_WORDS: dict[Language, str] = {
    "en": "a thanks thank great let the and is are was were you your it this that to of for with have has not "
    "we they our from i my in on be "
    "do don't should will would can at by always never only use no please what how when if but as an so about",
    "de": "der die das und ist sind war ich du wir ihr nicht ein eine einen einem mit auf für von zu im am den dem des "
    "auch aber immer nur nie niemals bitte mein meine unser unsere wenn oder dass wie was kein keine nein ja haben "
    "hat habe wird werden bei nach aus seit sondern statt jetzt heute gestern verwenden benutzen",
    "fr": "le la les des et est sont je tu nous vous il elle ne pas un une dans sur pour avec de du au aux que qui mon "
    "ma mes notre nos toujours jamais mais ou si ce cette non oui merci suis ai avons avez j'ai c'est plutôt "
    "chez à a on",
    "es": "el la los las y es son yo tú usted nosotros no un una en para con de del al que mi mis nuestro nuestra "
    "siempre nunca pero o si este esta sí gracias estoy soy hemos he ha por favor solo sólo hay muy ahora vivo a "
    "migramos pasamos prefiero",
    "it": "il lo la gli le e è sono io tu noi voi non un una in per con di del della al alla che mio mia nostro nostra "
    "sempre mai ma o se questo questa no sì grazie ho ha abbiamo anche solo più adesso dei delle nel nella "
    "preferisco uso usiamo dal dalla voglio lavoro abito",
    "pt": "o a os as e é são eu você nós não um uma em para com de do da no na dos das que meu minha nosso nossa "
    "sempre nunca mas ou se este esta sim obrigado obrigada prefiro estou sou temos tenho ao por muito agora só",
}
# Letters that English does without, and who writes them.
_LETTERS: dict[str, tuple[Language, ...]] = {
    **dict.fromkeys("äöüß", ("de",)),
    **dict.fromkeys("èêëîïôûœæ", ("fr",)),
    **dict.fromkeys("éàçù", ("fr", "pt", "it")),
    **dict.fromkeys("ñ¿¡", ("es",)),
    **dict.fromkeys("áíóú", ("es", "pt")),
    **dict.fromkeys("ãõ", ("pt",)),
    **dict.fromkeys("ìò", ("it",)),
}
_LANGUAGES_OF_WORD: dict[str, tuple[Language, ...]] = {}
for _language, _listed in _FUNCTION_WORDS.items():
    for _word in _listed.split():
        _LANGUAGES_OF_WORD[_word] = (*_LANGUAGES_OF_WORD.get(_word, ()), _language)
_VOTES = {_word: tuple((each, 1 / len(_spoken)) for each in _spoken) for _word, _spoken in _LANGUAGES_OF_WORD.items()}


@lru_cache(maxsize=2048)
def detect_language(text: str) -> Language:
    """Return the likeliest language of a text, judged by its first 2,000 characters; "en" when nothing decides."""
    sample = text[:_SAMPLE]
    if not sample.isascii():
        eastern = _detect_eastern(sample)
        if eastern is not None:
            return eastern
    votes: dict[Language, float] = dict.fromkeys(LANGUAGES, 0.0)
    lowered = sample.lower()
    found = (_ASCII_WORD if lowered.isascii() else _WORD).findall(lowered)
    for word in filter(_VOTES.__contains__, found):
        for language, share in _VOTES[word]:
            votes[language] += share
    for letter in () if lowered.isascii() else set(lowered) & _LETTERS.keys():
        for language in _LETTERS[letter]:
            votes[language] += 1 / len(_LETTERS[letter])
    best = max(LANGUAGES, key=votes.__getitem__)
    return best if votes[best] > votes["en"] else "en"


def _detect_eastern(sample: str) -> Language | None:
    """Japanese or Chinese when their characters make up a fifth of the letters (one such sign says a lot)."""
    scripts = Counter(script_of(char) for char in sample if char.isalpha())
    kana, han = scripts["hiragana"] + scripts["katakana"], scripts["han"]
    if (kana + han) * 5 < scripts.total() or not kana + han:
        return None
    return "ja" if kana else "zh"
