"""Needles: find texts to erase in the bytes of a file, and replace them. Pure.

A text is found whatever its case and white space, with the escapes of Markdown, JSON, JSON in JSON, and fences. In a
log the mark is never longer than the text, so a line keeps its length, and offsets into the log stay valid.
"""

import re
from collections.abc import Iterable

from ricordo.language.scripts import word_bounds
from ricordo.workspace.striking import END_MARKS

__all__ = ["ERASED", "Needles"]

ERASED = "[erased]"
"""The mark in the place of erased text; in a log an asterisk for a text that is shorter."""

_SPACE = r"(?:\s|\\+[nrt])+"
_ESCAPE_BEFORE = r"(?<=\\n)|(?<=\\r)|(?<=\\t)|(?<=\\u[2-9a-f][0-9a-f]{3})"
_ENTITIES = {"<": "lt", ">": "gt", "&": "amp", '"': "quot", "'": "#39"}


class Needles:
    """The texts to erase: as whole words, or with `inside_words` also as a part of longer words."""

    def __init__(self, texts: Iterable[str], *, inside_words: bool = False) -> None:
        """Look for each of `texts`, without the punctuation at its end."""
        self.texts = tuple(sorted({text for text in texts if _words(text)}, key=len, reverse=True))
        self._anywhere = _alternatives(_written(text) for text in self.texts)
        self._pattern = self._anywhere if inside_words else _alternatives(map(_as_own_words, self.texts))

    def __bool__(self) -> bool:
        """Tell whether there is a text to look for."""
        return bool(self.texts)

    def are_in(self, data: bytes) -> bool:
        """Tell whether `data` contains a text to erase."""
        return self._pattern.search(_decoded(data)) is not None

    def stand_in(self, data: bytes) -> bool:
        """Tell whether `data` contains one of the texts, also as a part of longer words."""
        return self._anywhere.search(_decoded(data)) is not None

    def erased(self, data: bytes, *, in_place: bool = False) -> bytes:
        """Return `data` with each text replaced by a mark; with `in_place` every line keeps its length."""
        if not self.are_in(data):
            return data
        if not in_place:
            return _encoded(self._pattern.sub(ERASED, _decoded(data)))
        lines = data.split(b"\n")
        return b"\n".join(_encoded(self._pattern.sub(_short_mark, _decoded(line))).ljust(len(line)) for line in lines)


def _alternatives(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(patterns) or r"(?!)", re.IGNORECASE)


def _as_own_words(text: str) -> str:
    before, after = word_bounds("".join(_words(text)))
    return f"{before and f'(?:{before}|{_ESCAPE_BEFORE})'}{_written(text)}{after}"


def _short_mark(match: re.Match[str]) -> str:
    return ERASED if len(match[0]) >= len(ERASED) else "*"


def _written(text: str) -> str:
    return _SPACE.join("".join(map(_character, word)) for word in _words(text))


def _character(character: str) -> str:
    if character.isascii():
        if character.isalnum() or character == "_":
            return character
        entity = f"|&{_ENTITIES[character]};" if character in _ENTITIES else ""
        return rf"(?:\\*{re.escape(character)}{entity}|\\+u{ord(character):04x})"
    units = character.encode("utf-16-be", "surrogatepass").hex()
    escape = "".join(rf"\\+u{units[at : at + 4]}" for at in range(0, len(units), 4))
    return f"(?:{re.escape(character)}|{escape})"


def _words(text: str) -> list[str]:
    return text.strip().rstrip(END_MARKS).split()


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
