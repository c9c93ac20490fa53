"""What a text is made of, counted in one pass of C code for each feature: the input of the estimate.

Idea: what a byte-pair vocabulary charges for follows the runs of one class of characters (words, numbers, punctuation,
blanks), and beyond Latin the script. So the text is split into its Latin-1 characters, which are mapped to classes with
`bytes.translate`, and the rest, which is counted by the high byte of UTF-16: that byte tells the script.

Invariant: the work is linear in the length of the text, and no character is looked at by Python code.
"""

import re
import string
from collections.abc import Callable

__all__ = ["BLOCKS", "count_blocks", "count_latin"]

_BEYOND_LATIN_1 = re.compile("[^\x00-\xff]+")
_LATIN_1 = [chr(code) for code in range(256)]

BLOCKS: dict[str, tuple[tuple[int, int], ...]] = {
    "latin_extended": ((0x01, 0x02),),
    "latin_additional": ((0x1E, 0x1E),),
    "greek": ((0x03, 0x03),),
    "cyrillic": ((0x04, 0x04),),
    "hebrew": ((0x05, 0x05),),
    "arabic": ((0x06, 0x08),),
    "indic": ((0x09, 0x0D),),
    "thai": ((0x0E, 0x0F),),
    "punctuation": ((0x20, 0x23),),
    "kana": ((0x30, 0x30),),
    "han": ((0x34, 0x9F),),
    "hangul": ((0x11, 0x11), (0xAC, 0xD7)),
    "surrogates": ((0xD8, 0xDF),),
    "fullwidth": ((0xFF, 0xFF),),
}
"""The scripts by the first and last high byte of their UTF-16 code units; emoji are two surrogates each."""


def _class_table(**members: Callable[[str], bool]) -> bytes:
    """Return a table that maps a Latin-1 byte to the letter of the class that it belongs to, else to a blank."""
    found = (next((name for name, belongs in members.items() if belongs(char)), " ") for char in _LATIN_1)
    return "".join(found).encode()


def _member_bytes(belongs: Callable[[str], bool]) -> bytes:
    return "".join(filter(belongs, _LATIN_1)).encode("latin-1")


def _is_blank(char: str) -> bool:
    return char in " \t\r\x0b\x0c\xa0"


def _is_mark(char: str) -> bool:
    return char != "\x00" and not char.isalnum() and not char.isspace()


_WORDS = _class_table(w=str.isalpha)
_CASES = _class_table(a=lambda char: char.isalpha() and not char.isupper(), A=str.isupper)
_NUMBERS = _class_table(n=string.digits.__contains__)
_MARKS = _class_table(m=_is_mark)
_LINES = _class_table(l="\n".__contains__)
_BLANKS = _class_table(x=lambda char: not _is_blank(char))
_LETTERS = _member_bytes(str.isalpha)
_DIGITS = _member_bytes(string.digits.__contains__)
_PUNCTUATION = _member_bytes(_is_mark)
_ACCENTED = _member_bytes(lambda char: ord(char) > 127)


def count_latin(text: str) -> tuple[dict[str, int], str]:
    """Count the features of the Latin-1 characters of `text`, and return them with the other characters, joined.

    The features: runs of letters, digits, punctuation, line breaks, of two and more blanks, and of foreign characters;
    letters, digits, punctuation, accented characters; changes from lower to upper case and pairs of upper case; NULs.
    """
    foreign = [] if text.isascii() else _BEYOND_LATIN_1.findall(text)
    data = (_BEYOND_LATIN_1.sub("\x00", text) if foreign else text).encode("latin-1")
    cases = data.translate(_CASES)
    blanks = data.translate(_BLANKS)
    counts = {
        "words": _count_runs(data.translate(_WORDS), b"w"),
        "letters": _count_bytes(data, _LETTERS),
        "humps": cases.count(b"aA"),
        "capitals": cases.count(b"AA"),
        "numbers": _count_runs(data.translate(_NUMBERS), b"n"),
        "digits": _count_bytes(data, _DIGITS),
        "mark_runs": _count_runs(data.translate(_MARKS), b"m"),
        "marks": _count_bytes(data, _PUNCTUATION),
        "line_runs": _count_runs(data.translate(_LINES), b"l"),
        "blank_runs": blanks.count(b"x  ") + blanks.startswith(b"  "),
        "accented": _count_bytes(data, _ACCENTED),
        "foreign_runs": len(foreign),
        "nuls": data.count(b"\x00") - len(foreign),
    }
    return counts, "".join(foreign)


def count_blocks(text: str) -> dict[str, int]:
    """Count the UTF-16 code units of `text` by script, those of no named script as `other`; empty for an empty text."""
    if not text:
        return {}
    high = text.encode("utf-16-le", "surrogatepass")[1::2]
    counts = {name: _count_bytes(high, _BLOCK_BYTES[name]) for name in BLOCKS}
    return counts | {"other": len(high) - sum(counts.values())}


_BLOCK_BYTES = {
    name: b"".join(bytes(range(first, last + 1)) for first, last in ranges) for name, ranges in BLOCKS.items()
}


def _count_runs(classes: bytes, letter: bytes) -> int:
    return classes.count(b" " + letter) + classes.startswith(letter)


def _count_bytes(data: bytes, members: bytes) -> int:
    return len(data) - len(data.translate(None, members))
