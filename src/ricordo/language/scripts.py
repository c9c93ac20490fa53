"""Which writing system a character belongs to, as far as word and sentence cutting needs it.

Only one question matters downstream: does this script put spaces between words? Scripts that do not are cut into
overlapping pairs of characters (bigrams), the classic index unit for Chinese, Japanese and Thai retrieval. Ranges are
those of the Unicode block chart; blocks that a chat will not hold are left to "other", which behaves like Latin.
"""

from bisect import bisect_right
from collections import Counter
from functools import lru_cache
from typing import Literal

__all__ = ["UNSEGMENTED", "Script", "dominant_script", "is_unsegmented", "joins_words", "script_of", "word_bounds"]

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
