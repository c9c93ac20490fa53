"""Needles: texts that are to be erased, found in bytes however a file writes them. Pure.

A text is found whatever its capitals and white space, with the escapes of Markdown, JSON and fences in it, also where
JSON stands in JSON. What takes its place is never longer, so a line of a log can keep its length, and with it every
offset that is kept of the log.
"""

import re
from collections.abc import Iterable

__all__ = ["ERASED", "Needles"]

ERASED = "[erased]"
"""What stands in the place of what was erased."""

_SPACE = r"(?:\s|\\+[nrt])+"
_START = r"(?:(?<!\w)|(?<=\\n)|(?<=\\r)|(?<=\\t))"
_END = r"(?!\w)"
_ENTITIES = {"<": "lt", ">": "gt", "&": "amp", '"': "quot", "'": "#39"}


class Needles:
    """What is to be erased."""

    def __init__(self, texts: Iterable[str]) -> None:
        """Look for each of `texts`; the marks at the end of a sentence need not be there."""
        self.texts = tuple(sorted({text for text in texts if _words(text)}, key=len, reverse=True))
        written = [*map(_written, self.texts)]
        self._raw = re.compile("|".join(written) or r"(?!)", re.IGNORECASE)
        self._pattern = re.compile("|".join(f"{_START}{each}{_END}" for each in written) or r"(?!)", re.IGNORECASE)

    def __bool__(self) -> bool:
        """Tell whether there is anything to look for."""
        return bool(self.texts)

    def are_in(self, data: bytes, *, raw: bool = False) -> bool:
        """Tell whether `data` holds one of the texts as words of their own; `raw` as a part of others too."""
        return (self._raw if raw else self._pattern).search(_decoded(data)) is not None

    def erased(self, data: bytes, *, in_place: bool = False) -> bytes:
        """Return `data` with a mark in the place of each text; with `in_place` every line keeps its length."""
        if not self.are_in(data):
            return data
        if not in_place:
            return _encoded(self._pattern.sub(_mark, _decoded(data)))
        lines = data.split(b"\n")
        return b"\n".join(_encoded(self._pattern.sub(_mark, _decoded(line))).ljust(len(line)) for line in lines)


def _mark(match: re.Match[str]) -> str:
    return ERASED if len(match[0]) >= len(ERASED) else "*" * len(match[0])


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
    return text.strip().rstrip(".!?").split()


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
