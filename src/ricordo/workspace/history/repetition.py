"""Repetitions of a text, found and masked in other texts even if reworded, or found and erased in bytes. Pure.

A sentence repeats a content with three quarters of its words, or with all of them if it is short. A sentence that lacks
one of its numbers, codes or single letters does not repeat it. Search in bytes ignores case, white space and escapes.

Invariant: with `in_place`, a line keeps its length, so offsets into a log stay valid.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from anyio.to_thread import run_sync

from ricordo.errors import DocumentInvalid, FileMissing, StorageError
from ricordo.guard import Redactor
from ricordo.language.languages import word_bounds
from ricordo.language.sentences import split_sentences
from ricordo.language.words import containment, content_words, split_words
from ricordo.lazy import dataclass, lazy_compile
from ricordo.storage import FileStore
from ricordo.workspace.entry import Entry
from ricordo.workspace.layout import (
    AGENT_NOTES,
    LEDGERS,
    MEMORY_PATH,
    WORKSPACE,
    is_memory,
    is_profile,
    parse_record_path,
)
from ricordo.workspace.ledger import read_entries

if TYPE_CHECKING:
    from ricordo.workspace.session_files import SessionFile

__all__ = [
    "ERASED_MARK",
    "FORGOTTEN_MARK",
    "SENTENCE_END_MARKS",
    "ContentIndex",
    "ErasePatterns",
    "Remaining",
    "contains_literally",
    "is_repetition",
    "mask_repetitions",
    "mask_session",
    "nearly_says",
    "remaining_entries",
    "remaining_in",
    "repeats_any",
    "repeats_partly",
    "sentences_like",
]


FORGOTTEN_MARK = "(forgotten)"
"""The replacement for forgotten text."""
SENTENCE_END_MARKS = ".!?\u3002\uff01\uff1f"
"""The marks at the end of a sentence; a copy need not have them."""
_MIN_OVERLAP = 0.75
_NEAR = 0.6
_MIN_WORDS = 3
_SHORT_WORDS = 4
_MAX_LENGTH_RATIO = 2
_ITEM = lazy_compile(r"\s*(?:(?:[-*+>#\u2022]+|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?)+")
_IGNORED_LETTERS = frozenset("ai")
_PART_OVERLAP = 0.4
_NEAR_OVERLAP = 0.5
_MIN_PART_WORDS = 2
_ROOT_LENGTH = 4
_FEW_ROOTS = 64


class ContentIndex:
    """Finds which of many contents a text may repeat, without comparing the text with each of them."""

    def __init__(self, contents: Iterable[str]) -> None:
        """Index the beginnings of the words of each content; a content that repeats an earlier one is left out."""
        self.contents = tuple(dict.fromkeys(contents))
        self._roots = [[word[:_ROOT_LENGTH] for word in dict.fromkeys(content_words(each))] for each in self.contents]
        self._rootless = [number for number, roots in enumerate(self._roots) if not roots]
        self._numbers: defaultdict[str, list[int]] = defaultdict(list)
        frequency = Counter(root for roots in self._roots for root in roots)
        for number, roots in enumerate(self._roots):
            # a text with enough of the roots has at least one of the rarest
            rarest = sorted(roots, key=lambda root: (frequency[root], root))[: len(roots) - _required(roots) + 1]
            for root in dict.fromkeys(rarest):
                self._numbers[root].append(number)

    def candidates(self, text: str) -> list[str]:
        """Return the contents of which `text` has at least two fifths of the words, in order."""
        folded = text.casefold()
        if len(self._numbers) <= _FEW_ROOTS:
            found = [root for root in self._numbers if root in folded]
        else:
            pieces = {folded[at : at + size] for size in range(1, _ROOT_LENGTH + 1) for at in range(len(folded))}
            found = [piece for piece in pieces if piece in self._numbers]
        numbers = {number for root in found for number in self._numbers[root]}
        matching = [number for number in numbers if self._has_enough(folded, self._roots[number])]
        return [self.contents[number] for number in sorted([*self._rootless, *matching])]

    def _has_enough(self, folded: str, roots: Sequence[str]) -> bool:
        return sum(root in folded for root in roots) >= _required(roots)


def _required(roots: Sequence[str]) -> int:
    """Return how many of the roots a text has that repeats them: two fifths, rounded up."""
    return -(-2 * len(roots) // 5)


def mask_repetitions(text: str, contents: Iterable[str], *, fuzzy: bool = False) -> str:
    """Return `text` with each passage that repeats one of `contents` masked.

    With `fuzzy` the text is from the same exchange, and half of the words are enough.
    """
    for content in contents:
        text = _mask_sentences(_parse_content(content).pattern.sub(FORGOTTEN_MARK, text), content)
        for sentence in reversed(split_sentences(text)) if fuzzy else ():
            if repeats_partly(text[sentence.start : sentence.end], [content], min_overlap=_NEAR_OVERLAP):
                text = f"{text[: sentence.start]}{FORGOTTEN_MARK}{text[sentence.end :]}"
    return text


def repeats_any(text: str, contents: Iterable[str]) -> bool:
    """Return whether a passage of `text` repeats one of `contents`."""
    folded = text.casefold()
    return any(
        _parse_content(content).pattern.search(text) or _mask_sentences(text, content) != text
        for content in contents
        if _has_distinctive_words(folded, content)
    )


def contains_literally(text: str, contents: Iterable[str]) -> bool:
    """Return whether `text` contains one of `contents` literally."""
    return any(_parse_content(content).pattern.search(text) for content in contents)


def nearly_says(text: str, content: str) -> bool:
    """Return whether `text` repeats `content`, or a sentence has three fifths of its words if it is not short."""
    if repeats_any(text, [content]):
        return True
    return len(set(content_words(content))) > _SHORT_WORDS and repeats_partly(text, [content], min_overlap=_NEAR)


def sentences_like(text: str, content: str) -> list[str]:
    """Return the lines and sentences of `text` that repeat or nearly repeat `content`, in order, each once.

    A content of several sentences can only be found as a line.
    """
    matches: dict[str, None] = {}
    for line in text.splitlines():
        item = _ITEM.sub("", line, count=1).strip()
        if not nearly_says(item, content):
            continue
        parts = [item[each.start : each.end].strip() for each in split_sentences(item)]
        matches |= dict.fromkeys([each for each in parts if nearly_says(each, content)] or [item])
    return list(matches)


def is_repetition(text: str, content: str) -> bool:
    """Return whether `text` has all words of `content`, at most twice as many, and its numbers, codes and letters."""
    words, required = set(content_words(text)), set(content_words(content))
    return (
        required <= words
        and len(words) <= _MAX_LENGTH_RATIO * len(required)
        and _distinctive_words(text) == _distinctive_words(content)
    )


def repeats_partly(text: str, contents: Iterable[str], *, min_overlap: float = _PART_OVERLAP) -> bool:
    """Return whether a sentence of `text` shares at least two words and the `min_overlap` share of one of `contents`.

    Use it only for text known to be about the content, such as a reply to it.
    """
    sentences = [text[each.start : each.end] for each in split_sentences(text)]
    return any(_shares_words(sentence, content, min_overlap) for content in contents for sentence in sentences)


def mask_session(
    file: "SessionFile", contents: Sequence[str], ids: Collection[str], *, fuzzy: bool = False
) -> "SessionFile":
    """Return a session file without these entries and repetitions of `contents`; digests are recreated.

    With `fuzzy` it is the session in which the entries were said.
    """
    from ricordo.workspace.session_files import create_digest

    entries = tuple(entry for entry in file.entries if entry.id not in ids)
    has_digest = file.is_pending and bool(file.entries)
    return replace(
        file,
        entries=entries,
        summary=create_digest(entries) if has_digest else mask_repetitions(file.summary, contents, fuzzy=fuzzy),
        open_threads=tuple(
            dict.fromkeys(mask_repetitions(thread, contents, fuzzy=fuzzy) for thread in file.open_threads)
        ),
    )


@dataclass(frozen=True, kw_only=True)
class _Content:
    """A content to look for: its literal pattern, its words, and those that a repetition must have."""

    pattern: re.Pattern[str]
    words: frozenset[str]
    distinctive: frozenset[str]


@lru_cache(maxsize=64)
def _parse_content(content: str) -> _Content:
    words = content.strip().rstrip(SENTENCE_END_MARKS).split()
    before, after = word_bounds("".join(words))
    literal = before + r"\s+".join(map(re.escape, words)) + after if words else r"(?!)"
    return _Content(
        pattern=re.compile(literal, re.IGNORECASE),
        words=frozenset(content_words(content)),
        distinctive=frozenset(_distinctive_words(content)),
    )


def _has_distinctive_words(folded: str, content: str) -> bool:
    """Return False only if the case-folded text lacks a word without which it can't repeat `content`.

    It is exact only for ASCII, whose words stand in the text as they are.
    """
    if not (folded.isascii() and content.isascii()):
        return True
    return all(word in folded for word in _parse_content(content).distinctive)


def _shares_words(sentence: str, content: str, min_share: float) -> bool:
    parsed = _parse_content(content)
    shared = len(parsed.words & set(content_words(sentence)))
    is_near = shared >= max(_MIN_PART_WORDS, min_share * len(parsed.words))
    return is_near and parsed.distinctive <= _distinctive_words(sentence)


def _distinctive_words(text: str) -> set[str]:
    """Return the words that distinguish otherwise equal statements: numbers, codes, single letters."""
    return {
        word
        for word in split_words(text)
        if any(map(str.isdigit, word)) or (len(word) == 1 and word not in _IGNORED_LETTERS)
    }


def _mask_sentences(text: str, content: str) -> str:
    parsed = _parse_content(content)
    if len(parsed.words) < _MIN_WORDS:
        return text
    min_overlap = 1.0 if len(parsed.words) <= _SHORT_WORDS else _MIN_OVERLAP
    for sentence in reversed(split_sentences(text)):
        passage = text[sentence.start : sentence.end]
        is_near = containment(parsed.words, content_words(passage)) >= min_overlap
        if is_near and parsed.distinctive <= _distinctive_words(passage):
            text = f"{text[: sentence.start]}{FORGOTTEN_MARK}{text[sentence.end :]}"
    return text


ERASED_MARK = "[erased]"
"""The replacement for erased text; in a log, shorter texts become an asterisk."""
_SPACE_PATTERN = r"(?:\s|\\+[nrt])+"
_ESCAPE_BEFORE = r"(?<=\\n)|(?<=\\r)|(?<=\\t)|(?<=\\u[2-9a-f][0-9a-f]{3})"
_ENTITIES = {"<": "lt", ">": "gt", "&": "amp", '"': "quot", "'": "#39"}


class ErasePatterns:
    """The texts to erase: as whole words, or with `inside_words` also inside longer words."""

    def __init__(self, texts: Iterable[str], *, inside_words: bool = False) -> None:
        """Compile patterns for `texts`, without the punctuation at their end."""
        self.texts = tuple(sorted({text for text in texts if _split_words(text)}, key=len, reverse=True))
        self._anywhere = _compile_alternatives(_text_pattern(text) for text in self.texts)
        self._pattern = self._anywhere if inside_words else _compile_alternatives(map(_whole_word_pattern, self.texts))

    def __bool__(self) -> bool:
        """Return whether there is a text to search for."""
        return bool(self.texts)

    def occur_in(self, data: bytes) -> bool:
        """Return whether `data` contains a text to erase."""
        return self._pattern.search(_decode(data)) is not None

    def occur_anywhere_in(self, data: bytes) -> bool:
        """Return whether `data` contains one of the texts, even inside longer words."""
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


_ROOT = 4
_FEWEST = 3
_LONG_FILE = b"[long::"
_NOTES = lazy_compile(rf"{WORKSPACE}/(?:plans|rules|{AGENT_NOTES})/.+\.(?:md|txt)")
_LARGEST = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Remaining:
    """Something that still contains the words of a forgotten entry, with its secrets replaced by marks.

    `id` is the id of an entry or of a profile fact, the path of a file below the root, or the session of a todo; `text`
    is the whole entry, fact or todo, or the sentence of the file.
    """

    kind: Literal["memory", "fact", "file", "todo"]
    id: str
    text: str


def remaining_entries(entries: Iterable[Entry], forgotten: Entry) -> list[Remaining]:
    """Return which of `entries` repeat the forgotten entry, or one of its sentences, each id once."""
    contents = _statements(forgotten.content)
    matches = {
        each.id: each.content for each in entries if each.id != forgotten.id and repeats_any(each.content, contents)
    }
    return [Remaining(kind="memory", id=name, text=text) for name, text in matches.items()]


async def remaining_in(files: FileStore, forgotten: Entry, redactor: Redactor) -> list[Remaining]:
    """Return what in a root still repeats the forgotten entry: entries, then facts, files and todos.

    Files that can't be read are left out.
    """
    contents = _statements(forgotten.content)
    results = await run_sync(remaining_entries, await _entries(files, contents), forgotten)
    for info in await files.list(WORKSPACE):
        is_note = bool(_NOTES.fullmatch(info.path)) and info.size <= _LARGEST
        record = parse_record_path(info.path)
        is_state = record is not None and record.kind == "state" and not record.is_set_aside
        if is_note or is_state or is_profile(info.path):
            with suppress(FileMissing, StorageError, DocumentInvalid):
                data = (await files.read(info.path)).data
                results += await run_sync(_said, data, info.path, contents)
    return await run_sync(_guarded, dict.fromkeys(results), redactor)


def _guarded(results: Iterable[Remaining], redactor: Redactor) -> list[Remaining]:
    return [replace(each, text=redactor.clean(each.text)) for each in results]


def _statements(content: str) -> list[str]:
    """Return the content and, if it has several sentences, those with enough words to be recognised."""
    sentences = [content[each.start : each.end] for each in split_sentences(content)]
    recognizable = [each for each in sentences if len(set(content_words(each))) >= _FEWEST]
    return [content, *(recognizable if len(sentences) > 1 else ())]


async def _entries(files: FileStore, contents: Sequence[str]) -> list[Entry]:
    """Return the active entries that may repeat one of `contents`; others are not parsed."""
    stem_lists = [[word[:_ROOT].encode() for word in dict.fromkeys(content_words(each))] for each in contents]
    # Only these stand in a bullet of ASCII as they are: other words may be escaped.
    plain_words = [[word for word in _parse_content(each).distinctive if word.isalnum()] for each in contents]
    required = [[word.encode() for word in words if word.isascii()] for words in plain_words]

    def may_say(bullet: bytes) -> bool:
        is_ascii = bullet.isascii()
        lowered = bullet.lower() if is_ascii else bullet.decode("utf-8", "replace").casefold().encode()
        return _LONG_FILE in bullet or any(
            2 * sum(stem in lowered for stem in stems) >= len(stems)
            for stems, words in zip(stem_lists, required, strict=True)
            if not is_ascii or all(word in lowered for word in words)
        )

    entries: list[Entry] = []
    for path in [MEMORY_PATH, *(info.path for info in await files.list(LEDGERS) if is_memory(info.path))]:
        if not path.startswith(f"{LEDGERS}/long/"):
            with suppress(FileMissing, StorageError):
                entries += [each.entry for each in await read_entries(files, path, only=may_say)]
    return [each for each in entries if each.state == "active"]


def _said(data: bytes, path: str, contents: Sequence[str]) -> list[Remaining]:
    from ricordo.workspace.agent_state import salvage_state
    from ricordo.workspace.profile import parse_profile

    if is_profile(path):
        facts = parse_profile(data, path).profile.facts
        repeated_facts = [each for each in facts if repeats_any(each.content, contents)]
        return [Remaining(kind="fact", id=each.id, text=each.content) for each in repeated_facts]
    record = parse_record_path(path)
    if record is not None:
        todos = salvage_state(data, agent=record.folder, session=record.session).work_state.todos
        repeated_todos = [each.content for each in todos if any(nearly_says(each.content, one) for one in contents)]
        return [Remaining(kind="todo", id=record.session, text=each) for each in repeated_todos]
    text = data.decode("utf-8", "replace")
    return [Remaining(kind="file", id=path, text=each) for one in contents for each in sentences_like(text, one)]
