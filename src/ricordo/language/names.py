"""Proper names, found by their capitals.

A run of capitalised words is a name unless the capital is only the sentence's first letter. Runs may hold lower-case
particles (Leonardo da Vinci). German writes every noun with a capital, so there only runs of two words and words with
inner capitals count; scripts without capitals yield nothing. High precision is preferred over reach.
"""

import re
from dataclasses import dataclass

from ricordo.language.languages import Language, detect_language
from ricordo.language.sentences import split_sentences
from ricordo.language.stopwords import is_stop_word

__all__ = ["NameMention", "find_names"]

_CAP = r"[^\W\d_a-zà-öø-ÿ][\w'’&-]*"
_RUN = re.compile(
    rf"(?<![\w/@#.]){_CAP}(?:[ ](?:(?:of|the|de|da|di|du|del|della|van|von|der|la|le|y|&)[ ]){{0,2}}{_CAP}){{0,5}}"
)
_NOT_NAMES_LIST = """
i i'm i've i'd i'll monday tuesday wednesday thursday friday saturday sunday january february march april may june
july august september october november december mr mrs ms dr prof ok wow hey hi thanks yeah oh omg lol todo fyi api
url montag dienstag mittwoch donnerstag freitag samstag sonntag
"""
_NOT_NAMES = frozenset(_NOT_NAMES_LIST.split())


@dataclass(frozen=True, kw_only=True, slots=True)
class NameMention:
    """A name and where it stands (character offsets)."""

    text: str
    start: int
    end: int


def find_names(text: str, language: Language | None = None) -> tuple[NameMention, ...]:
    """Return the proper names of a text in order, repeats kept; empty where the script has no capitals."""
    tongue = language or detect_language(text)
    found: list[NameMention] = []
    for sentence in split_sentences(text):
        if sentence.kind == "code" or _is_all_capitals(sentence.text):
            continue
        for run in _RUN.finditer(sentence.text):
            found.extend(_build_mentions(sentence.start, run, tongue))
    return tuple(found)


def _build_mentions(offset: int, run: re.Match[str], language: Language) -> list[NameMention]:
    words = run.group().split(" ")
    start = run.start()
    while words and (
        _is_common(words[0], language) or (start == 0 and len(words) == 1 and not _has_inner_capital(words[0]))
    ):
        start += len(words.pop(0)) + 1
    while words and words[-1].islower():
        words.pop()
    text = " ".join(words).rstrip("'’-&").removesuffix("'s").removesuffix("’s")
    if len(text) < 2 or (language == "de" and len(words) == 1 and not _has_inner_capital(text)):
        return []
    return [NameMention(text=text, start=offset + start, end=offset + start + len(text))]


def _is_common(word: str, language: Language) -> bool:
    plain = word.casefold().replace("’", "'")
    return plain in _NOT_NAMES or plain.removesuffix("s") in _NOT_NAMES or is_stop_word(plain, language)


def _has_inner_capital(word: str) -> bool:
    return any(char.isupper() for char in word[1:])


def _is_all_capitals(sentence: str) -> bool:
    letters = [char for char in sentence if char.isalpha()]
    return len(letters) > 12 and sum(char.isupper() for char in letters) * 2 > len(letters)
