"""Needles: find texts to erase in the bytes of a file, and replace them. Pure.

A text is found whatever its case and white space, with the escapes of Markdown, JSON, JSON in JSON, and fences. In a
log the mark is never longer than the text, so a line keeps its length, and offsets into the log stay valid.
"""

import re
from collections.abc import Iterable

from ricordo.language.scripts import word_bounds
from ricordo.workspace.striking import SENTENCE_END_MARKS

__all__ = ["ERASED_MARK", "ErasePatterns"]

ERASED_MARK = "[erased]"
"""The mark in the place of erased text; in a log an asterisk for a text that is shorter."""

_SPACE_PATTERN = r"(?:\s|\\+[nrt])+"
_ESCAPE_BEFORE = r"(?<=\\n)|(?<=\\r)|(?<=\\t)|(?<=\\u[2-9a-f][0-9a-f]{3})"
_ENTITIES = {"<": "lt", ">": "gt", "&": "amp", '"': "quot", "'": "#39"}


class ErasePatterns:
    """The texts to erase: as whole words, or with `inside_words` also as a part of longer words."""

    def __init__(self, texts: Iterable[str], *, inside_words: bool = False) -> None:
        """Look for each of `texts`, without the punctuation at its end."""
        self.texts = tuple(sorted({text for text in texts if _split_words(text)}, key=len, reverse=True))
        self._anywhere = _compile_alternatives(_text_pattern(text) for text in self.texts)
        self._pattern = self._anywhere if inside_words else _compile_alternatives(map(_whole_word_pattern, self.texts))

    def __bool__(self) -> bool:
        """Tell whether there is a text to look for."""
        return bool(self.texts)

    def occur_in(self, data: bytes) -> bool:
        """Tell whether `data` contains a text to erase."""
        return self._pattern.search(_decode(data)) is not None

    def occur_anywhere_in(self, data: bytes) -> bool:
        """Tell whether `data` contains one of the texts, also as a part of longer words."""
        return self._anywhere.search(_decode(data)) is not None

    def erase(self, data: bytes, *, in_place: bool = False) -> bytes:
        """Return `data` with each text replaced by a mark; with `in_place` every line keeps its length."""
        if not self.occur_in(data):
            return data
        if not in_place:
            return _encode(self._pattern.sub(ERASED_MARK, _decode(data)))
        lines = data.split(b"\n")
        return b"\n".join(_encode(self._pattern.sub(_fitting_mark, _decode(line))).ljust(len(line)) for line in lines)


def _compile_alternatives(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(patterns) or r"(?!)", re.IGNORECASE)


def _whole_word_pattern(text: str) -> str:
    before, after = word_bounds("".join(_split_words(text)))
    return f"{before and f'(?:{before}|{_ESCAPE_BEFORE})'}{_text_pattern(text)}{after}"


def _fitting_mark(match: re.Match[str]) -> str:
    return ERASED_MARK if len(match[0]) >= len(ERASED_MARK) else "*"


def _text_pattern(text: str) -> str:
    return _SPACE_PATTERN.join("".join(map(_character_pattern, word)) for word in _split_words(text))


def _character_pattern(character: str) -> str:
    if character.isascii():
        if character.isalnum() or character == "_":
            return character
        entity = f"|&{_ENTITIES[character]};" if character in _ENTITIES else ""
        return rf"(?:\\*{re.escape(character)}{entity}|\\+u{ord(character):04x})"
    units = character.encode("utf-16-be", "surrogatepass").hex()
    escape = "".join(rf"\\+u{units[at : at + 4]}" for at in range(0, len(units), 4))
    return f"(?:{re.escape(character)}|{escape})"


def _split_words(text: str) -> list[str]:
    return text.strip().rstrip(SENTENCE_END_MARKS).split()


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
