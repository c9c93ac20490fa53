"""Scripts of characters and the language of a text, as far as cutting words and choosing word lists needs them.

Scripts without spaces between words are cut into bigrams. Ranges are those of the Unicode block chart. A language is
told by its script first and by the share of its function words second; when nothing decides it is English, so a wrong
guess costs recall, never correctness.
"""

from bisect import bisect_right
from collections import Counter
from functools import cache, lru_cache
from typing import TypeAlias

from ricordo.language.packs import LANGUAGES, Language, Script, language_pack
from ricordo.lazy import lazy_compile

__all__ = [
    "LANGUAGES",
    "UNSEGMENTED",
    "Language",
    "Script",
    "detect_language",
    "dominant_script",
    "is_unsegmented",
    "is_unsegmented_language",
    "joins_words",
    "script_of",
    "word_bounds",
]


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
    block_index = bisect_right(_BLOCK_STARTS, code) - 1
    if block_index >= 0 and code <= _BLOCKS[block_index][1]:
        return _BLOCKS[block_index][2]
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


_SAMPLE = 2000
_WORD, _ASCII_WORD = lazy_compile(r"[^\W\d_]+"), lazy_compile(r"[a-z]+")
_Votes: TypeAlias = dict[str, tuple[tuple[Language, float], ...]]


@cache
def _votes() -> tuple[_Votes, _Votes]:
    """Return the votes of function words and of letters; what several languages share counts for each a part."""
    speakers: tuple[dict[str, list[Language]], dict[str, list[Language]]] = ({}, {})
    for language in LANGUAGES:
        pack = language_pack(language)
        for tokens, languages_by_token in zip(
            (pack.words.get("function", "").split(), pack.letters), speakers, strict=True
        ):
            for each in tokens:
                languages_by_token.setdefault(each, []).append(language)
    words, letters = ({k: tuple((each, 1 / len(v)) for each in v) for k, v in table.items()} for table in speakers)
    return words, letters


@lru_cache(maxsize=2048)
def detect_language(text: str, default: Language = "en", margin: float = 0.0) -> Language:
    """Return the likeliest language of a text, judged by its first 2,000 characters; `default` when nothing decides.

    Another language needs more votes than the default, by more than `margin`; a function word is a vote.
    """
    sample = text[:_SAMPLE]
    if not sample.isascii():
        eastern = _detect_eastern(sample) or _languages_by_script().get(dominant_script(sample))
        if eastern is not None:
            return eastern
    by_word, by_letter = _votes()
    votes: dict[Language, float] = dict.fromkeys(LANGUAGES, 0.0)
    lowered = sample.lower()
    words = (_ASCII_WORD if lowered.isascii() else _WORD).findall(lowered)
    for word in filter(by_word.__contains__, words):
        for language, share in by_word[word]:
            votes[language] += share
    for letter in () if lowered.isascii() else set(lowered) & by_letter.keys():
        for language, share in by_letter[letter]:
            votes[language] += share
    best = max(LANGUAGES, key=votes.__getitem__)
    return best if votes[best] > votes[default] + margin else default


def _detect_eastern(sample: str) -> Language | None:
    """Return the language whose script has a fifth of the letters, for those that write no spaces between words.

    One such sign says a lot. A script of its own decides before one that is shared: Japanese has Chinese characters.
    """
    scripts = Counter(script_of(char) for char in sample if char.isalpha())
    counts = {language: sum(scripts[each] for each in own) for language, own in _unsegmented_languages().items()}
    if sum(counts.values()) * 5 < scripts.total() or not any(counts.values()):
        return None
    return min(
        (language for language, count in counts.items() if count),
        key=lambda each: "han" in _unsegmented_languages()[each],
    )


@cache
def _unsegmented_languages() -> dict[Language, frozenset[Script]]:
    packs = {language: language_pack(language) for language in LANGUAGES}
    return {language: pack.scripts for language, pack in packs.items() if pack.scripts <= UNSEGMENTED}


@cache
def _languages_by_script() -> dict[Script, Language]:
    """Return the languages that are told by their script and whose words of grammar are known."""
    packs = {language: language_pack(language) for language in LANGUAGES}
    return {
        script: language
        for language, pack in packs.items()
        for script in pack.scripts - UNSEGMENTED - {"latin"}
        if "stop" in pack.words
    }


def is_unsegmented_language(language: Language) -> bool:
    """Say whether a language writes no spaces between words."""
    return language in _unsegmented_languages()
