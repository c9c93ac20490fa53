"""Looking for a word or a phrase in transcripts, whatever its capitals, in every script. Pure.

A line is read as a message only if the raw line can hold the phrase, so a long log costs little. Invariant: that
leaves no message out in which the phrase stands.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from ricordo.errors import InvalidMessage, InvalidQuery
from ricordo.messages import Message, Role, decode_message
from ricordo.messages.jsontext import dumps
from ricordo.sessions.said import MessageText, searchable_texts
from ricordo.tokens import safe_boundary

__all__ = ["SessionMatch", "SessionFilter", "Phrase", "MessageExcerpt", "find_matches", "add_neighbours"]

_SNIPPET_MARGIN = 120
_MAX_SNIPPET_CHARS = 400
_MAX_LINE_DISTANCE = 12
_ESCAPES = ("\\u", "\\/", "\\\\")
_SPACES = r"(?:\s|\\[nrtf])+"


@dataclass(frozen=True, kw_only=True)
class SessionFilter:
    """Which messages are looked through, by default all: said from `since` up to `until`, in one session, by a speaker.

    A speaker is a role, `user`, `assistant` or `tool`, or a name, whatever its capitals. A message without a time
    passes no bound of time.
    """

    since: datetime | None = None
    until: datetime | None = None
    session: str = ""
    speaker: str = ""

    def matches(self, message: Message) -> bool:
        """Tell whether a message is one of them, whatever its session."""
        speaker = self.speaker.casefold()
        if speaker and speaker not in {message.role, (message.name or "").casefold()}:
            return False
        if self.since is None and self.until is None:
            return True
        time = message.time
        return time is not None and (not self.since or time >= self.since) and (not self.until or time < self.until)


@dataclass(frozen=True, kw_only=True)
class MessageExcerpt:
    """What was said beside a finding: its beginning, on one line, and by whom."""

    speaker: str
    text: str


@dataclass(frozen=True, kw_only=True)
class SessionMatch:
    """A message that holds the phrase: its place, `line` from 1, and what stands around the phrase, on one line.

    `agent` is a folder. `piece` is the text in which it was found first. `before` and `after` are what people and
    agents said next to it, None where there is nothing near.
    """

    session: str
    agent: str
    path: str
    line: int
    message: str
    role: Role
    name: str | None
    time: datetime | None
    piece: MessageText
    snippet: str
    before: MessageExcerpt | None = None
    after: MessageExcerpt | None = None


class Phrase:
    """What is looked for: words that stand next to each other, any white space between them, in parts of words too."""

    def __init__(self, query: str) -> None:
        """Look for `query`. Raises `InvalidQuery` if there is nothing in it."""
        words = _fold(query).split()
        if not words:
            raise InvalidQuery("There is nothing to look for: write a word or a phrase.")
        self._pattern = re.compile(r"\s+".join(map(re.escape, words)))
        self._raw_pattern = re.compile(_SPACES.join(re.escape(_fold(dumps(word)[1:-1])) for word in words))

    def may_match(self, line: str) -> bool:
        """Tell whether a line of JSON could say the phrase."""
        if any(escape in line for escape in _ESCAPES) or not unicodedata.is_normalized("NFC", line):
            return True
        return self._raw_pattern.search(line.casefold()) is not None

    def find_snippet(self, text: str) -> str | None:
        """Return the first place of the phrase with what is around it, on one line; None when it is not there."""
        composed = unicodedata.normalize("NFC", text)
        folded = composed.casefold()
        match = self._pattern.search(folded)
        if match is None:
            return None
        start, end = match.span()
        if len(folded) != len(composed):
            start, end = _original_index(composed, start), _original_index(composed, end - 1) + 1
        return _cut_snippet(composed, start, end)


def find_matches(
    data: bytes, phrase: Phrase, *, session: str, agent: str, path: str, within: SessionFilter | None = None
) -> list[SessionMatch]:
    """Return the messages of the log `data` that hold the phrase and are `within`, in the order of the log."""
    found = []
    for number, message in _candidate_messages(data, phrase):
        if within and not within.matches(message):
            continue
        for piece in searchable_texts(message):
            snippet = phrase.find_snippet(piece.text)
            if snippet is not None:
                found.append(
                    SessionMatch(
                        session=session,
                        agent=agent,
                        path=path,
                        line=number,
                        message=message.id,
                        role=message.role,
                        name=message.name,
                        time=message.time,
                        piece=piece,
                        snippet=snippet,
                    )
                )
                break
    return found


def add_neighbours(data: bytes, found: Sequence[SessionMatch]) -> list[SessionMatch]:
    """Return findings of the log `data` with what was said before and after each."""
    lines = data.split(b"\n")
    return [
        replace(
            each,
            before=_first_excerpt(lines[max(each.line - 1 - _MAX_LINE_DISTANCE, 0) : each.line - 1][::-1]),
            after=_first_excerpt(lines[each.line : each.line + _MAX_LINE_DISTANCE]),
        )
        for each in found
    ]


def _first_excerpt(lines: Iterable[bytes]) -> MessageExcerpt | None:
    """Return the first of these messages in which a person or an agent says something."""
    for line in lines:
        try:
            message = decode_message(line) if line.startswith(b"{") else None
        except InvalidMessage:
            continue
        if message is not None and message.role in {"user", "assistant"}:
            text = " ".join(" ".join(piece.text for piece in searchable_texts(message) if piece.sort == "text").split())
            if text:
                short = text if len(text) <= _SNIPPET_MARGIN else f"{text[: safe_boundary(text, _SNIPPET_MARGIN)]}…"
                return MessageExcerpt(speaker=message.name or message.role, text=short)
    return None


def _candidate_messages(data: bytes, phrase: Phrase) -> Iterator[tuple[int, Message]]:
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line.startswith(b"{") and phrase.may_match(line.decode("utf-8", "replace")):
            try:
                yield number, decode_message(line)
            except InvalidMessage:
                continue


def _fold(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()


def _original_index(text: str, at: int) -> int:
    """Return the index of the character of `text` that character `at` of its folded form comes from."""
    reached = 0
    for index, character in enumerate(text):
        reached += len(character.casefold())
        if reached > at:
            return index
    return len(text)


def _cut_snippet(text: str, start: int, end: int) -> str:
    begin = safe_boundary(text, start - _SNIPPET_MARGIN)
    stop = safe_boundary(text, min(end, start + _MAX_SNIPPET_CHARS) + _SNIPPET_MARGIN)
    shown = " ".join(text[begin:stop].split())
    return f"{'…' if begin else ''}{shown}{'…' if stop < len(text) else ''}"
