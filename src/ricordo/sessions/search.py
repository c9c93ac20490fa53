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
from ricordo.messages import Message, Role, decode
from ricordo.messages.jsontext import dumps
from ricordo.sessions.said import Piece, searched
from ricordo.tokens import safe_boundary

__all__ = ["Finding", "Narrowed", "Phrase", "Spoken", "findings", "with_neighbours"]

_AROUND = 120
_LONGEST = 400
_NEAR = 12
_ESCAPES = ("\\u", "\\/", "\\\\")
_SPACES = r"(?:\s|\\[nrtf])+"


@dataclass(frozen=True, kw_only=True)
class Narrowed:
    """Which messages are looked through, by default all: said from `since` up to `until`, in one session, by a speaker.

    A speaker is a role, `user`, `assistant` or `tool`, or a name, whatever its capitals. A message without a time
    passes no bound of time.
    """

    since: datetime | None = None
    until: datetime | None = None
    session: str = ""
    speaker: str = ""

    def passes(self, message: Message) -> bool:
        """Tell whether a message is one of them, whatever its session."""
        speaker = self.speaker.casefold()
        if speaker and speaker not in {message.role, (message.name or "").casefold()}:
            return False
        if self.since is None and self.until is None:
            return True
        time = message.time
        return time is not None and (not self.since or time >= self.since) and (not self.until or time < self.until)


@dataclass(frozen=True, kw_only=True)
class Spoken:
    """What was said beside a finding: its beginning, on one line, and by whom."""

    speaker: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Finding:
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
    piece: Piece
    snippet: str
    before: Spoken | None = None
    after: Spoken | None = None


class Phrase:
    """What is looked for: words that stand next to each other, any white space between them, in parts of words too."""

    def __init__(self, query: str) -> None:
        """Look for `query`. Raises `InvalidQuery` if there is nothing in it."""
        words = _folded(query).split()
        if not words:
            raise InvalidQuery("There is nothing to look for: write a word or a phrase.")
        self._pattern = re.compile(r"\s+".join(map(re.escape, words)))
        self._written = re.compile(_SPACES.join(re.escape(_folded(dumps(word)[1:-1])) for word in words))

    def may_be_in(self, line: str) -> bool:
        """Tell whether a line of JSON could say the phrase."""
        if any(escape in line for escape in _ESCAPES) or not unicodedata.is_normalized("NFC", line):
            return True
        return self._written.search(line.casefold()) is not None

    def snippet_of(self, text: str) -> str | None:
        """Return the first place of the phrase with what is around it, on one line; None when it is not there."""
        composed = unicodedata.normalize("NFC", text)
        folded = composed.casefold()
        match = self._pattern.search(folded)
        if match is None:
            return None
        start, end = match.span()
        if len(folded) != len(composed):
            start, end = _unfolded(composed, start), _unfolded(composed, end - 1) + 1
        return _around(composed, start, end)


def findings(
    data: bytes, phrase: Phrase, *, session: str, agent: str, path: str, within: Narrowed | None = None
) -> list[Finding]:
    """Return the messages of the log `data` that hold the phrase and are `within`, in the order of the log."""
    found = []
    for number, message in _candidates(data, phrase):
        if within and not within.passes(message):
            continue
        for piece in searched(message):
            snippet = phrase.snippet_of(piece.text)
            if snippet is not None:
                found.append(
                    Finding(
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


def with_neighbours(data: bytes, found: Sequence[Finding]) -> list[Finding]:
    """Return findings of the log `data` with what was said before and after each."""
    lines = data.split(b"\n")
    return [
        replace(
            each,
            before=_spoken(lines[max(each.line - 1 - _NEAR, 0) : each.line - 1][::-1]),
            after=_spoken(lines[each.line : each.line + _NEAR]),
        )
        for each in found
    ]


def _spoken(lines: Iterable[bytes]) -> Spoken | None:
    """Return the first of these messages in which a person or an agent says something."""
    for line in lines:
        try:
            message = decode(line) if line.startswith(b"{") else None
        except InvalidMessage:
            continue
        if message is not None and message.role in {"user", "assistant"}:
            text = " ".join(" ".join(piece.text for piece in searched(message) if piece.sort == "text").split())
            if text:
                short = text if len(text) <= _AROUND else f"{text[: safe_boundary(text, _AROUND)]}…"
                return Spoken(speaker=message.name or message.role, text=short)
    return None


def _candidates(data: bytes, phrase: Phrase) -> Iterator[tuple[int, Message]]:
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line.startswith(b"{") and phrase.may_be_in(line.decode("utf-8", "replace")):
            try:
                yield number, decode(line)
            except InvalidMessage:
                continue


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()


def _unfolded(text: str, at: int) -> int:
    """Return the index of the character of `text` that character `at` of its folded form comes from."""
    reached = 0
    for index, character in enumerate(text):
        reached += len(character.casefold())
        if reached > at:
            return index
    return len(text)


def _around(text: str, start: int, end: int) -> str:
    begin = safe_boundary(text, start - _AROUND)
    stop = safe_boundary(text, min(end, start + _LONGEST) + _AROUND)
    shown = " ".join(text[begin:stop].split())
    return f"{'…' if begin else ''}{shown}{'…' if stop < len(text) else ''}"
