"""What was said, as a text that a note is held against: it may name only who and what was named there.

A model that invents gives names and numbers that nobody said; one that translates writes "Munich" where "München" was
said, and then nobody finds it again. Both are told by the names and numbers of the note.

Pure. Invariant: a note that holds no name and no number names nothing that was not said.
"""

import re
import unicodedata
from datetime import date

from ricordo.language import find_dates, find_names

__all__ = ["GroundingText"]

_NUMBER = re.compile(r"\d{2,}")
_YEAR = re.compile(r"(?:19|20)\d\d")
_REFERENCE_DAY = date(2000, 1, 1)
_SENTENCE_END = ".!?:;\n"
_INFLECTION_CHARS = 2
_MIN_INFLECTED_CHARS = 5
_NAME_PARTICLES = frozenset(
    {"of", "the", "de", "da", "di", "du", "del", "della", "van", "von", "der", "la", "le", "y", "and"}
)
_ALWAYS_ALLOWED_LIST = """
user user's users assistant agent ai llm english german french spanish italian portuguese dutch polish russian
ukrainian turkish arabic hebrew hindi chinese mandarin japanese korean swedish danish norwegian finnish czech greek
"""
_ALWAYS_ALLOWED = frozenset(_ALWAYS_ALLOWED_LIST.split())


class GroundingText:
    """A text in which names and numbers are looked up."""

    def __init__(self, text: str) -> None:
        """Look up in `text`."""
        self._text = _normalize(text)
        self._digits = re.sub(r"(?<=\d)[.,'’\s_](?=\d{3})", "", self._text)

    def supports(self, note: str) -> bool:
        """Tell whether every name and every number of `note` was said; days may be worked out, and are not asked."""
        return all(map(self._has_name, _find_name_words(note))) and all(map(self._has_number, _find_numbers(note)))

    def _has_name(self, name: str) -> bool:
        if name in self._text:
            return True
        # other scripts inflect names, and no language writes them twice
        return not name.isascii() and len(name) >= _MIN_INFLECTED_CHARS and name[:-_INFLECTION_CHARS] in self._text

    def _has_number(self, number: str) -> bool:
        return number in self._text or number in self._digits


def _find_name_words(note: str) -> list[str]:
    """Return the words of the names in a note; the first word of a sentence has its capital from there."""
    found: list[str] = []
    for mention in find_names(note):
        before = note[: mention.start].rstrip(" \"'“”‘’(*_`")
        opens = not before or before[-1] in _SENTENCE_END
        words = mention.text.split()
        if opens and words and words[0][1:] == words[0][1:].lower():
            words = words[1:]
        found += [_normalize(word).removesuffix("'s").removesuffix("’s") for word in words]
    return [word for word in found if word not in _NAME_PARTICLES | _ALWAYS_ALLOWED]


def _find_numbers(note: str) -> list[str]:
    """Return the numbers of a note that are no part of a day."""
    text = note
    for mention in reversed(find_dates(note, _REFERENCE_DAY)):
        text = f"{text[: mention.start]} {text[mention.end :]}"
    text = re.sub(r"(?<=\d)[,'’_](?=\d{3})", "", _normalize(text))
    return [each for each in _NUMBER.findall(text) if not _YEAR.fullmatch(each)]


def _normalize(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()
