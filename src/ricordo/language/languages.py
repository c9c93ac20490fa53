"""Scripts of characters and the language of a text, as far as cutting words and choosing word lists needs them.

Scripts without spaces between words are cut into bigrams. Ranges are those of the Unicode block chart. A language is
told by its script first and by the share of its function words second; when nothing decides it is English, so a wrong
guess costs recall, never correctness.
"""

from bisect import bisect_right
from collections import Counter
from functools import lru_cache
from typing import Literal

from ricordo.lazy import lazy_compile

__all__ = [
    "LANGUAGES",
    "UNSEGMENTED",
    "Language",
    "Script",
    "detect_language",
    "dominant_script",
    "is_unsegmented",
    "joins_words",
    "script_of",
    "word_bounds",
]


Script = Literal[
    "latin", "greek", "cyrillic", "hebrew", "arabic", "indic", "thai", "lao", "myanmar", "khmer", "hangul",
    "hiragana", "katakana", "han", "other",
]  # fmt: skip
_BLOCKS: tuple[tuple[int, int, Script], ...] = (
    (0x0041, 0x005A, "latin"),
    (0x0061, 0x007A, "latin"),
    (0x00AA, 0x024F, "latin"),
    (0x0370, 0x03FF, "greek"),
    (0x0400, 0x052F, "cyrillic"),
    (0x0590, 0x05FF, "hebrew"),
    (0x0600, 0x077F, "arabic"),
    (0x0900, 0x0DFF, "indic"),
    (0x0E00, 0x0E7F, "thai"),
    (0x0E80, 0x0EFF, "lao"),
    (0x1000, 0x109F, "myanmar"),
    (0x1100, 0x11FF, "hangul"),
    (0x1780, 0x17FF, "khmer"),
    (0x1E00, 0x1EFF, "latin"),
    (0x1F00, 0x1FFF, "greek"),
    (0x3005, 0x3007, "han"),
    (0x3041, 0x309F, "hiragana"),
    (0x30A1, 0x30FF, "katakana"),
    (0x3130, 0x318F, "hangul"),
    (0x31F0, 0x31FF, "katakana"),
    (0x3400, 0x4DBF, "han"),
    (0x4E00, 0x9FFF, "han"),
    (0xAC00, 0xD7AF, "hangul"),
    (0xF900, 0xFAFF, "han"),
    (0xFF66, 0xFF9F, "katakana"),
    (0x20000, 0x3FFFF, "han"),
)
_BLOCK_STARTS = [start for start, _, _ in _BLOCKS]
UNSEGMENTED: frozenset[Script] = frozenset({"thai", "lao", "myanmar", "khmer", "hiragana", "katakana", "han"})
"""Scripts that write sentences without spaces between words."""


@lru_cache(maxsize=4096)
def script_of(char: str) -> Script:
    """Return the script of one character; "other" for digits, punctuation, symbols and unlisted blocks."""
    code = ord(char)
    at = bisect_right(_BLOCK_STARTS, code) - 1
    if at >= 0 and code <= _BLOCKS[at][1]:
        return _BLOCKS[at][2]
    return "other"


def is_unsegmented(char: str) -> bool:
    """Say whether the character's script writes no spaces between words."""
    return char > "\u0dff" and script_of(char) in UNSEGMENTED


_JOINS_WORDS = UNSEGMENTED | {"hangul"}
_WORD_CHARACTER = r"[^\W" + "".join(f"{chr(a)}-{chr(b)}" for a, b, script in _BLOCKS if script in _JOINS_WORDS) + "]"


def joins_words(char: str) -> bool:
    """Tell whether the character's script writes no spaces between words, or joins particles to them as Korean does."""
    return script_of(char) in _JOINS_WORDS


def word_bounds(text: str) -> tuple[str, str]:
    """Return the regular expressions to put before and after `text` so that it matches no part of a longer word.

    One is empty where the script has no spaces, or joins particles to words as Korean does: there a text is found
    wherever it stands. `text` has one character at least.
    """
    before = f"(?<!{_WORD_CHARACTER})" if not joins_words(text[0]) else ""
    after = f"(?!{_WORD_CHARACTER})" if not joins_words(text[-1]) else ""
    return before, after


def dominant_script(text: str) -> Script:
    """Return the most frequent script among the first 2,000 characters; "other" when no letter is found.

    Equal counts go to the script that appears first.
    """
    counts = Counter(script for char in text[:2000] if (script := script_of(char)) != "other")
    return counts.most_common(1)[0][0] if counts else "other"


Language = Literal["en", "de", "fr", "es", "it", "pt", "zh", "ja"]
LANGUAGES: tuple[Language, ...] = ("en", "de", "fr", "es", "it", "pt", "zh", "ja")
"""The languages with word lists and cue packs, in the order that breaks ties."""
_SAMPLE = 2000
_WORD, _ASCII_WORD = lazy_compile(r"[^\W\d_]+"), lazy_compile(r"[a-z]+")
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
