"""Processing: which messages, and what of them, an extraction reads. Pure.

Tool chatter, what hosts and memory put into a conversation, and acknowledgements that answer nothing go; what people
and assistants said stays. Everything is told by the metadata of a message first, and by whole blocks of text where a
host strips it: no sentence of a person is ever dropped for its words.

Invariants: the messages given are never changed, a message that loses something is a copy under the same id; the
order stays; every message is kept or counted once.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from ricordo.errors import InvalidSetting
from ricordo.flush.echoes import keys_of, recalled_in, without_echoes, without_fences
from ricordo.flush.gaps import GAP
from ricordo.flush.hidden import is_hidden
from ricordo.flush.uploads import said_before_uploads, without_uploads
from ricordo.language import split_sentences
from ricordo.language.signals import Signal, SignalDetector, bundled, is_acknowledgement
from ricordo.messages import Media, Message, Text, mark_of

__all__ = ["Dropped", "Processed", "ProcessingConfig", "processed", "signals_in"]

Dropped = Literal[
    "acknowledgement",
    "echo",
    "empty",
    "hidden",
    "memory",
    "one-sided",
    "reply",
    "system",
    "tool",
    "tool call",
    "upload",
]
"""Why a message is not read: a `reply` goes with the acknowledgement or upload it replies to, an `echo` only repeats
what was recalled, `one-sided` is what is left when one side said nothing."""

_ASKED_WITHIN = 3
_QUESTION = ("?", "？", "؟", "吗", "嗎")
_CLOSERS = " \t\n*_\"'”’»)」』"
_NO = re.compile(
    r"^\s*(?:no|nope|nah|nein|nee|nö|non|não|нет|nej|nie|hayır|아니요|아뇨|いいえ|いえ|不是|不|لا|नहीं)"
    r"(?!\w)[,.!،、。，！ ]*",
    re.IGNORECASE,
)
_ASKING_TOOLS = ("ask", "clarif", "question", "confirm")


@dataclass(frozen=True, kw_only=True)
class ProcessingConfig:
    """What processing keeps.

    A message of more than `max_message_chars` characters keeps its head and its tail. `signal_window` is how many of
    the last messages that are kept are searched for signals, by `detector`. With `both_sides` nothing is kept unless
    one message of a person and one of an assistant are, or two people talk.
    """

    max_message_chars: int = 8_000
    signal_window: int = 6
    both_sides: bool = True
    detector: SignalDetector = field(default_factory=bundled)

    def __post_init__(self) -> None:
        """Refuse lengths that leave nothing."""
        if self.max_message_chars < 100:
            raise InvalidSetting(f"max_message_chars is at least 100 characters, not {self.max_message_chars!r}.")
        if self.signal_window < 1:
            raise InvalidSetting(f"signal_window is at least 1 message, not {self.signal_window!r}.")


@dataclass(frozen=True, kw_only=True)
class Processed:
    """What is left of a conversation: the messages to read in their order, how many were dropped for each reason, the
    signals of the last ones, and the texts that memory had recalled into it."""

    messages: tuple[Message, ...] = ()
    dropped: Mapping[Dropped, int] = field(default_factory=dict)
    signals: frozenset[Signal] = frozenset()
    recalled: tuple[str, ...] = ()


_DEFAULT = ProcessingConfig()


def processed(messages: Sequence[Message], *, config: ProcessingConfig = _DEFAULT) -> Processed:
    """Return what an extraction reads of `messages`, and the signals in it; no messages when nothing is worth reading.

    What is recalled is looked for in all of them, so give the context of new messages too.
    """
    recalled = recalled_in(messages)
    reading = _Reading(recalled=tuple(keys_of(text) for text in recalled))
    for message in messages:
        reading.take(message)
    dropped = reading.dropped
    kept = reading.kept
    if config.both_sides and not _has_both_sides(kept):
        dropped["one-sided"] += len(kept)
        kept = []
    return Processed(
        messages=tuple(_shortened(message, config.max_message_chars) for message in kept),
        dropped={reason: count for reason, count in sorted(dropped.items()) if count},
        signals=signals_in(kept, config=config),
        recalled=recalled,
    )


def signals_in(messages: Sequence[Message], *, config: ProcessingConfig = _DEFAULT) -> frozenset[Signal]:
    """Return the signals that people give in the last `signal_window` of messages that were processed.

    A "no" that answers a question corrects nothing.
    """
    found: set[Signal] = set()
    window = messages[-config.signal_window - 1 :]
    for before, message in zip((None, *window), window, strict=False):
        if message.role == "user" and (before is not None or len(window) <= config.signal_window):
            text = message.text
            found |= config.detector.signals_of(_NO.sub("", text) if before and _asks(before) else text)
    return frozenset(found)


@dataclass
class _Reading:
    """What was taken of the messages so far, and how the next one stands to them."""

    recalled: tuple[frozenset[str], ...]
    kept: list[Message] = field(default_factory=list)
    dropped: Counter[Dropped] = field(default_factory=Counter)
    asked_by: tuple[str, str | None] | None = None
    unanswered: bool = False

    def take(self, message: Message) -> None:
        """Keep what somebody said, or count why not."""
        reason = _unsaid(message)
        if reason is None:
            said, reason = self._said(message)
            if said is not None:
                self.kept.append(said)
        if reason is not None:
            self.dropped[reason] += 1
        if reason in {None, "tool call", "reply", "echo"}:
            self.asked_by = _speaker(message) if _asks(message) else None

    def _said(self, message: Message) -> tuple[Message | None, Dropped | None]:
        clean, reason = _cleaned(message)
        if message.role == "assistant":
            if self.unanswered:
                return None, "reply"
            return self._of_assistant(clean, reason)
        if reason in {"memory", "empty"}:
            return None, reason
        self.unanswered = reason == "upload" or self._only_acknowledges(clean)
        if reason is None and self.unanswered:
            reason = "acknowledgement"
        return (None, reason) if reason else (clean, None)

    def _of_assistant(self, clean: Message, reason: Dropped | None) -> tuple[Message | None, Dropped | None]:
        if reason:
            return None, reason
        text = without_echoes(clean.text, self.recalled)
        return (_with_text(clean, text), None) if text.strip() else (None, "echo")

    def _only_acknowledges(self, message: Message) -> bool:
        answers = self.asked_by is not None and self.asked_by != _speaker(message)
        bare = not any(isinstance(part, Media) for part in message.parts)
        return bare and not answers and is_acknowledgement(message.text)


def _unsaid(message: Message) -> Dropped | None:
    """Say why a message is nothing that anybody said, as far as its role, parts and metadata tell."""
    if message.role in {"system", "tool"}:
        return "tool" if message.role == "tool" else "system"
    if message.tool_calls:
        return "tool call"
    mark = mark_of(message)
    if mark in {"notice", "reminder"} or is_hidden(message):
        return "hidden"
    return "memory" if mark in {"memory", "summary"} else None


def _cleaned(message: Message) -> tuple[Message, Dropped | None]:
    """Return a message without what hosts and memory put in, and why nothing is left of it where nothing is."""
    before = said_before_uploads(message.metadata) if message.role == "user" else None
    texts = [part.text for part in message.parts if isinstance(part, Text)] if before is None else [before]
    left, fenced, tagged = [], False, before is not None and not before.strip()
    for text in texts:
        bare, blocks = without_fences(text)
        said = without_uploads(bare, message.metadata) if message.role == "user" else bare
        fenced, tagged = fenced or bool(blocks), tagged or said != bare
        left.append(said)
    if not any(text.strip() for text in left):
        media = any(isinstance(part, Media) for part in message.parts)
        return message, "upload" if tagged or (media and message.role == "user") else "memory" if fenced else "empty"
    return _with_texts(message, left), None


def _with_texts(message: Message, texts: Sequence[str]) -> Message:
    """Return the message with these texts in place of its own, in their places; itself when they are the same."""
    own = [part.text for part in message.parts if isinstance(part, Text)]
    if own == list(texts):
        return message
    if len(own) != len(texts):
        return _with_text(message, "\n".join(texts))
    following = iter(texts)
    parts = [replace(part, text=next(following)) if isinstance(part, Text) else part for part in message.parts]
    return replace(message, parts=tuple(part for part in parts if not isinstance(part, Text) or part.text.strip()))


def _with_text(message: Message, text: str) -> Message:
    """Return the message saying `text`, its other parts after it; itself when it says that already."""
    if text == message.text:
        return message
    return replace(message, parts=(Text(text=text), *(part for part in message.parts if not isinstance(part, Text))))


def _asks(message: Message) -> bool:
    """Say whether a message ends in a question, or calls a tool that asks one."""
    if any(word in call.name.casefold() for call in message.tool_calls for word in _ASKING_TOOLS):
        return True
    sentences = [each for each in split_sentences(message.text[-2_000:]) if each.kind in {"prose", "item", "heading"}]
    return any(each.text.rstrip(_CLOSERS + ".。").endswith(_QUESTION) for each in sentences[-_ASKED_WITHIN:])


def _speaker(message: Message) -> tuple[str, str | None]:
    return message.role, message.name


def _has_both_sides(messages: Sequence[Message]) -> bool:
    roles = {message.role for message in messages}
    people = {message.name for message in messages if message.role == "user" and message.name}
    return roles >= {"user", "assistant"} or len(people) > 1


def _shortened(message: Message, longest: int) -> Message:
    """Return the message with the head and the tail of its text, cut between words where there are any."""
    text = message.text
    if len(text) <= longest:
        return message
    half = (longest - len(GAP)) // 2
    head, tail = text[:half], text[-half:]
    if (space := max(head.rfind(" "), head.rfind("\n"))) > half - 80:
        head = head[:space]
    if (space := min((found for mark in " \n" if (found := tail.find(mark)) >= 0), default=half)) < 80:
        tail = tail[space:]
    return _with_text(message, f"{head.rstrip()}{GAP}{tail.lstrip()}")
