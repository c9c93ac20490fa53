"""Proper names, found by their capitals, and introductions such as "my name is Ana". High precision before reach.

A run of capitalised words is a name unless the capital is only the sentence's first letter; in German only runs of two
words and words with inner capitals count. Behind openings that leave a doubt ("I'm late"), a word that is a state, an
origin or a trade is no name.

Invariant: a name stands verbatim in its text.
"""

import re
from functools import cache
from typing import Literal

from ricordo.language.languages import detect_language
from ricordo.language.packs import LANGUAGES, Language, PhraseKind, language_pack, pack_phrases, pack_words
from ricordo.language.sentences import split_sentences
from ricordo.language.words import is_stop_word
from ricordo.lazy import dataclass, lazy_compile

__all__ = ["Introduction", "NameKind", "NameMention", "find_introduction", "find_names", "find_whose_names"]


NameKind = Literal["person", "project"]
"""What a name can be seen to belong to."""


_CAP = r"[^\W\d_a-zà-öø-ÿ][\w'’&-]*"
_RUN = lazy_compile(
    lambda: rf"(?<![\w/@#.]){_CAP}(?:[ ](?:(?:{pack_phrases('name_particle')}|&)[ ]){{0,2}}{_CAP}){{0,5}}"
)


@dataclass(frozen=True, kw_only=True)
class NameMention:
    """A name and where it stands (character offsets)."""

    text: str
    start: int
    end: int


def find_names(text: str, language: Language | None = None) -> tuple[NameMention, ...]:
    """Return the proper names of a text in order, repeats kept; empty where the script has no capitals."""
    text_language = language or detect_language(text)
    mentions: list[NameMention] = []
    for sentence in split_sentences(text):
        if sentence.kind == "code" or _is_all_capitals(sentence.text):
            continue
        for run in _RUN.finditer(sentence.text):
            mentions.extend(_build_mentions(sentence.start, run, text_language))
    return tuple(mentions)


_KINDS: tuple[tuple[NameKind, PhraseKind, PhraseKind], ...] = (
    ("person", "person_lead", "person_tail"),
    ("project", "project_lead", "project_tail"),
)
_NAME = rf"(?-i:(?P<name>{_CAP}(?: {_CAP}){{0,2}}))"


@cache
def _cues_around_names(language: Language) -> tuple[tuple[NameKind, re.Pattern[str]], ...]:
    patterns: list[tuple[NameKind, re.Pattern[str]]] = []
    for kind, lead, tail in _KINDS:
        before = pack_phrases(lead, language=language)
        behind = pack_phrases(tail, language=language)
        patterns.append((kind, re.compile(rf"(?<!\w)(?:{before}) {_NAME}(?!\w)", re.IGNORECASE)))
        patterns.append((kind, re.compile(rf"(?<![\w/@#.]){_NAME}(?= ?(?:{behind})(?!\w))", re.IGNORECASE)))
    return tuple(patterns)


def find_whose_names(text: str, language: Language | None = None) -> frozenset[tuple[NameKind, str]]:
    """Return the names of a text around which words say that they belong to a person or a project, with which it is.

    Here the first word of a sentence can be a name: "Nadia prefers tea". Words such as "my sister", "says", "the
    repository" are in the packs; a name without any stays out. Empty where a language has no such words.
    """
    text_language = language or detect_language(text)
    found: set[tuple[NameKind, str]] = set()
    for kind, pattern in _cues_around_names(text_language):
        for match in pattern.finditer(text):
            words = match["name"].split(" ")
            while words and _is_common(words[0], text_language):
                words.pop(0)
            if words:
                found.add((kind, " ".join(words).rstrip("'’-&").removesuffix("'s").removesuffix("’s")))
    return frozenset(found)


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
    if len(text) < 2 or (language_pack(language).capital_nouns and len(words) == 1 and not _has_inner_capital(text)):
        return []
    return [NameMention(text=text, start=offset + start, end=offset + start + len(text))]


def _is_common(word: str, language: Language) -> bool:
    plain = word.casefold().replace("’", "'")
    not_names = pack_words("not_name")
    return plain in not_names or plain.removesuffix("s") in not_names or is_stop_word(plain, language)


def _has_inner_capital(word: str) -> bool:
    return any(char.isupper() for char in word[1:])


def _is_all_capitals(sentence: str) -> bool:
    letters = [char for char in sentence if char.isalpha()]
    return len(letters) > 12 and sum(char.isupper() for char in letters) * 2 > len(letters)


_NOTHING_ELSE = lazy_compile(r"[\s.!]*")
_PREFIXED = lazy_compile(lambda: rf"(?:{pack_phrases('name_prefix')})-", re.IGNORECASE)
_STATES = lazy_compile(lambda: pack_phrases("state_word"), re.IGNORECASE)


def _opening_pattern(language: Language, opening: str) -> re.Pattern[str]:
    greeted = rf"(?:,? (?:{pack_phrases('greeting_all')}))?[,.! –-]+"
    particle = rf"(?:(?:{pack_phrases('given_name_particle')}) ){{0,2}}"
    capital = r"[A-ZÀ-ÖØ-ÞĀ-Ž][\w'’-]*"
    name = rf"(?-i:(?P<name>{capital}(?: {particle}{capital}){{0,3}}))"
    end = rf"(?![\w'’-])(?:\s*(?:$|[.,;!(–—])|\s+(?:- |(?:{pack_phrases('after_name')})\b))"
    return re.compile(
        rf"(?:(?P<greeting>{pack_phrases('greeting')}){greeted})?(?:{opening})\s+{name}{end}", re.IGNORECASE
    )


@cache
def _openings() -> tuple[tuple[Language, bool, re.Pattern[str]], ...]:
    """Return the openings of introductions, those behind which a name is certain first."""
    kinds: tuple[tuple[PhraseKind, bool], ...] = (("name_opening", True), ("name_opening_unsure", False))
    return tuple(
        (language, certain, _opening_pattern(language, pack_phrases(kind, language=language)))
        for kind, certain in kinds
        for language in LANGUAGES
        if kind in language_pack(language).phrases
    )


@dataclass(frozen=True, kw_only=True)
class Introduction:
    """The name somebody gives of themselves and the language they do it in.

    `is_whole` is true when the sentence says nothing else.
    """

    name: str
    language: Language
    is_whole: bool


def find_introduction(sentence: str) -> Introduction | None:
    """Return the introduction that a sentence opens with; None when it opens with anything else."""
    for language, certain, pattern in _openings():
        match = pattern.match(sentence)
        if match and _is_name(match["name"], certain=certain) and (certain or _is_plausible(match, language)):
            tail = sentence[match.end("name") :]
            return Introduction(
                name=match["name"], language=language, is_whole=_NOTHING_ELSE.fullmatch(tail) is not None
            )
    return None


def _is_name(name: str, *, certain: bool) -> bool:
    words = name.casefold().split()
    if not (pack_words("origin") | pack_words("state")).isdisjoint(words) or _PREFIXED.match(name):
        return False
    if not certain and (name.isupper() or _is_state(words[0])):
        return False
    return [mention.text for mention in find_names(f"with {name}", "en")] == [name]


def _is_state(word: str) -> bool:
    return _STATES.fullmatch(word) is not None and word not in pack_words("name_like_state")


def _is_plausible(match: re.Match[str], language: Language) -> bool:
    if match["greeting"] or " " in match["name"]:
        return True
    return re.fullmatch(pack_phrases("noun_like_name", language=language), match["name"], re.IGNORECASE) is None
