"""Striking: replace passages that repeat forgotten content, also in other words. Pure.

A literal repetition is replaced. So is each other sentence that has three quarters of the words of the content, or all
of them if it is short. This rather replaces a sentence too many, which an undo restores. A sentence that lacks a
number, a code or a single letter of the content is about something else.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from ricordo.language.scripts import word_bounds
from ricordo.language.sentences import split_sentences
from ricordo.language.similarity import containment
from ricordo.language.words import content_words, split_words
from ricordo.workspace.session_file import SessionFile, create_digest

__all__ = [
    "SENTENCE_END_MARKS",
    "FORGOTTEN_MARK",
    "nearly_says",
    "is_repetition",
    "repeats_any",
    "contains_literally",
    "repeats_partly",
    "sentences_like",
    "mask_repetitions",
    "mask_session",
]

FORGOTTEN_MARK = "(forgotten)"
"""The mark in the place of forgotten text."""

SENTENCE_END_MARKS = ".!?\u3002\uff01\uff1f"
"""The marks at the end of a sentence, which a copy of it need not have."""

_MIN_OVERLAP = 0.75
_NEAR = 0.6
_MIN_WORDS = 3
_SHORT_WORDS = 4
_MAX_LENGTH_RATIO = 2
_ITEM = re.compile(r"\s*(?:(?:[-*+>#\u2022]+|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?)+")
_IGNORED_LETTERS = frozenset("ai")
_PART_OVERLAP = 0.4
_NEAR_OVERLAP = 0.5
_MIN_PART_WORDS = 2


def mask_repetitions(text: str, contents: Iterable[str], *, near: bool = False) -> str:
    """Return `text` with each passage that repeats one of `contents` replaced by a mark.

    With `near` the text is about the same exchange, and half of the words are enough.
    """
    for content in contents:
        text = _mask_sentences(_literal_pattern(content).sub(FORGOTTEN_MARK, text), content)
        for sentence in reversed(split_sentences(text)) if near else ():
            if repeats_partly(text[sentence.start : sentence.end], [content], least=_NEAR_OVERLAP):
                text = f"{text[: sentence.start]}{FORGOTTEN_MARK}{text[sentence.end :]}"
    return text


def repeats_any(text: str, contents: Iterable[str]) -> bool:
    """Tell whether a passage of `text` repeats one of `contents`."""
    return any(_literal_pattern(content).search(text) or _mask_sentences(text, content) != text for content in contents)


def contains_literally(text: str, contents: Iterable[str]) -> bool:
    """Tell whether `text` contains one of `contents` literally."""
    return any(_literal_pattern(content).search(text) for content in contents)


def nearly_says(text: str, content: str) -> bool:
    """Tell whether `text` repeats `content`, or has a sentence with three fifths of its words where those are many."""
    if repeats_any(text, [content]):
        return True
    return len(set(content_words(content))) > _SHORT_WORDS and repeats_partly(text, [content], least=_NEAR)


def sentences_like(text: str, content: str) -> list[str]:
    """Return the lines and sentences of `text` that repeat `content` or nearly do, in order, each once.

    A content of several sentences can only be found as a line.
    """
    found: dict[str, None] = {}
    for line in text.splitlines():
        said = _ITEM.sub("", line, count=1).strip()
        if not nearly_says(said, content):
            continue
        parts = [said[each.start : each.end].strip() for each in split_sentences(said)]
        found |= dict.fromkeys([each for each in parts if nearly_says(each, content)] or [said])
    return list(found)


def is_repetition(text: str, content: str) -> bool:
    """Tell whether `text` has all words of `content`, the same numbers, codes and letters, and at most as many more."""
    said, wanted = set(content_words(text)), set(content_words(content))
    return (
        wanted <= said
        and len(said) <= _MAX_LENGTH_RATIO * len(wanted)
        and _distinctive_words(text) == _distinctive_words(content)
    )


def repeats_partly(text: str, contents: Iterable[str], *, least: float = _PART_OVERLAP) -> bool:
    """Tell whether a sentence of `text` has the `least` share of the words of one of `contents`, and two at least.

    Use it only for text that is known to be about the content, such as a reply to it.
    """
    sentences = [text[each.start : each.end] for each in split_sentences(text)]
    return any(_shares_words(sentence, content, least) for content in contents for sentence in sentences)


def mask_session(
    file: SessionFile, contents: Sequence[str], ids: Collection[str], *, near: bool = False
) -> SessionFile:
    """Return a session file without these entries and without passages that repeat `contents`; digests are made again.

    With `near` its session is the one in which the entries were said.
    """
    entries = tuple(entry for entry in file.entries if entry.id not in ids)
    made = file.pending and bool(file.entries)
    return replace(
        file,
        entries=entries,
        summary=create_digest(entries) if made else mask_repetitions(file.summary, contents, near=near),
        open_threads=tuple(
            dict.fromkeys(mask_repetitions(thread, contents, near=near) for thread in file.open_threads)
        ),
    )


def _literal_pattern(content: str) -> re.Pattern[str]:
    said = content.strip().rstrip(SENTENCE_END_MARKS).split()
    if not said:
        return re.compile(r"(?!)")
    before, after = word_bounds("".join(said))
    return re.compile(before + r"\s+".join(map(re.escape, said)) + after, re.IGNORECASE)


def _shares_words(sentence: str, content: str, least: float) -> bool:
    wanted = set(content_words(content))
    shared = len(wanted & set(content_words(sentence)))
    return shared >= max(_MIN_PART_WORDS, least * len(wanted)) and _distinctive_words(content) <= _distinctive_words(
        sentence
    )


def _distinctive_words(text: str) -> set[str]:
    """Return the words that tell two statements apart which are the same otherwise: numbers, codes, single letters."""
    return {
        word
        for word in split_words(text)
        if any(map(str.isdigit, word)) or (len(word) == 1 and word not in _IGNORED_LETTERS)
    }


def _mask_sentences(text: str, content: str) -> str:
    wanted = set(content_words(content))
    if len(wanted) < _MIN_WORDS:
        return text
    least = 1.0 if len(wanted) <= _SHORT_WORDS else _MIN_OVERLAP
    for sentence in reversed(split_sentences(text)):
        said = text[sentence.start : sentence.end]
        if containment(wanted, content_words(said)) >= least and _distinctive_words(content) <= _distinctive_words(
            said
        ):
            text = f"{text[: sentence.start]}{FORGOTTEN_MARK}{text[sentence.end :]}"
    return text
