"""Repetitions of a text: found in other texts, also in other words, and masked; or found in bytes, and erased. Pure.

A sentence repeats a content with three quarters of its words, or with all of them if it is short; one that lacks a
number, a code or a single letter of it is about something else. In bytes a text is found whatever its case, white space
and escapes.

Invariant: erased in place, a line keeps its length, so offsets into a log stay valid.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from ricordo.language.languages import word_bounds
from ricordo.language.sentences import split_sentences
from ricordo.language.similarity import containment
from ricordo.language.words import content_words, split_words
from ricordo.workspace.session_files import SessionFile, create_digest

__all__ = [
    "ERASED_MARK",
    "FORGOTTEN_MARK",
    "SENTENCE_END_MARKS",
    "ErasePatterns",
    "contains_literally",
    "is_repetition",
    "mask_repetitions",
    "mask_session",
    "nearly_says",
    "repeats_any",
    "repeats_partly",
    "sentences_like",
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
