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
from ricordo.flush.echoes import comparison_keys, find_recalled_texts, strip_echoes, strip_fences
from ricordo.flush.gaps import GAP
from ricordo.flush.hidden import is_hidden
from ricordo.flush.uploads import original_user_text, strip_uploads
from ricordo.language import split_sentences
from ricordo.language.signals import Signal, SignalDetector, default_detector, is_acknowledgement
from ricordo.messages import Media, Message, Text, get_mark

__all__ = ["DropReason", "ProcessedMessages", "ProcessingConfig", "process_messages", "detect_signals"]

DropReason = Literal[
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

_QUESTION_SENTENCES = 3
_QUESTION_MARKS = ("?", "？", "؟", "吗", "嗎")
_CLOSERS = " \t\n*_\"'”’»)」』"
_LEADING_NO = re.compile(
    r"^\s*(?:no|nope|nah|nein|nee|nö|non|não|нет|nej|nie|hayır|아니요|아뇨|いいえ|いえ|不是|不|لا|नहीं)"
    r"(?!\w)[,.!،、。，！ ]*",
    re.IGNORECASE,
)
_QUESTION_TOOLS = ("ask", "clarif", "question", "confirm")


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
    detector: SignalDetector = field(default_factory=default_detector)

    def __post_init__(self) -> None:
        """Refuse lengths that leave nothing."""
        if self.max_message_chars < 100:
            raise InvalidSetting(f"max_message_chars is at least 100 characters, not {self.max_message_chars!r}.")
        if self.signal_window < 1:
            raise InvalidSetting(f"signal_window is at least 1 message, not {self.signal_window!r}.")


@dataclass(frozen=True, kw_only=True)
class ProcessedMessages:
    """What is left of a conversation: the messages to read in their order, how many were dropped for each reason, the
    signals of the last ones, and the texts that memory had recalled into it."""

    messages: tuple[Message, ...] = ()
    dropped: Mapping[DropReason, int] = field(default_factory=dict)
    signals: frozenset[Signal] = frozenset()
    recalled: tuple[str, ...] = ()


_DEFAULT_PROCESSING = ProcessingConfig()


def process_messages(
    messages: Sequence[Message], *, config: ProcessingConfig = _DEFAULT_PROCESSING
) -> ProcessedMessages:
    """Return what an extraction reads of `messages`, and the signals in it; no messages when nothing is worth reading.

    What is recalled is looked for in all of them, so give the context of new messages too.
    """
    recalled = find_recalled_texts(messages)
    reading = _MessageReader(recalled=tuple(comparison_keys(text) for text in recalled))
    for message in messages:
        reading.read(message)
    dropped = reading.dropped
    kept = reading.kept
    if config.both_sides and not _has_both_sides(kept):
        dropped["one-sided"] += len(kept)
        kept = []
    return ProcessedMessages(
        messages=tuple(_shorten_message(message, config.max_message_chars) for message in kept),
        dropped={reason: count for reason, count in sorted(dropped.items()) if count},
        signals=detect_signals(kept, config=config),
        recalled=recalled,
    )


def detect_signals(messages: Sequence[Message], *, config: ProcessingConfig = _DEFAULT_PROCESSING) -> frozenset[Signal]:
    """Return the signals that people give in the last `signal_window` of messages that were processed.

    A "no" that answers a question corrects nothing.
    """
    found: set[Signal] = set()
    window = messages[-config.signal_window - 1 :]
    for before, message in zip((None, *window), window, strict=False):
        if message.role == "user" and (before is not None or len(window) <= config.signal_window):
            text = message.text
            found |= config.detector.detect(_LEADING_NO.sub("", text) if before and _is_question(before) else text)
    return frozenset(found)


@dataclass
class _MessageReader:
    """What was taken of the messages so far, and how the next one stands to them."""

    recalled: tuple[frozenset[str], ...]
    kept: list[Message] = field(default_factory=list)
    dropped: Counter[DropReason] = field(default_factory=Counter)
    question_speaker: tuple[str, str | None] | None = None
    unanswered: bool = False

    def read(self, message: Message) -> None:
        """Keep what somebody said, or count why not."""
        reason = _drop_reason(message)
        if reason is None:
            said, reason = self._clean_message(message)
            if said is not None:
                self.kept.append(said)
        if reason is not None:
            self.dropped[reason] += 1
        if reason in {None, "tool call", "reply", "echo"}:
            self.question_speaker = _speaker(message) if _is_question(message) else None

    def _clean_message(self, message: Message) -> tuple[Message | None, DropReason | None]:
        clean, reason = _strip_injected_text(message)
        if message.role == "assistant":
            if self.unanswered:
                return None, "reply"
            return self._clean_assistant_message(clean, reason)
        if reason in {"memory", "empty"}:
            return None, reason
        self.unanswered = reason == "upload" or self._only_acknowledges(clean)
        if reason is None and self.unanswered:
            reason = "acknowledgement"
        return (None, reason) if reason else (clean, None)

    def _clean_assistant_message(
        self, clean: Message, reason: DropReason | None
    ) -> tuple[Message | None, DropReason | None]:
        if reason:
            return None, reason
        text = strip_echoes(clean.text, self.recalled)
        return (_replace_text(clean, text), None) if text.strip() else (None, "echo")

    def _only_acknowledges(self, message: Message) -> bool:
        answers = self.question_speaker is not None and self.question_speaker != _speaker(message)
        bare = not any(isinstance(part, Media) for part in message.parts)
        return bare and not answers and is_acknowledgement(message.text)


def _drop_reason(message: Message) -> DropReason | None:
    """Say why a message is nothing that anybody said, as far as its role, parts and metadata tell."""
    if message.role in {"system", "tool"}:
        return "tool" if message.role == "tool" else "system"
    if message.tool_calls:
        return "tool call"
    mark = get_mark(message)
    if mark in {"notice", "reminder"} or is_hidden(message):
        return "hidden"
    return "memory" if mark in {"memory", "summary"} else None


def _strip_injected_text(message: Message) -> tuple[Message, DropReason | None]:
    """Return a message without what hosts and memory put in, and why nothing is left of it where nothing is."""
    before = original_user_text(message.metadata) if message.role == "user" else None
    texts = [part.text for part in message.parts if isinstance(part, Text)] if before is None else [before]
    left, fenced, tagged = [], False, before is not None and not before.strip()
    for text in texts:
        bare, blocks = strip_fences(text)
        said = strip_uploads(bare, message.metadata) if message.role == "user" else bare
        fenced, tagged = fenced or bool(blocks), tagged or said != bare
        left.append(said)
    if not any(text.strip() for text in left):
        media = any(isinstance(part, Media) for part in message.parts)
        return message, "upload" if tagged or (media and message.role == "user") else "memory" if fenced else "empty"
    return _replace_texts(message, left), None


def _replace_texts(message: Message, texts: Sequence[str]) -> Message:
    """Return the message with these texts in place of its own, in their places; itself when they are the same."""
    own = [part.text for part in message.parts if isinstance(part, Text)]
    if own == list(texts):
        return message
    if len(own) != len(texts):
        return _replace_text(message, "\n".join(texts))
    following = iter(texts)
    parts = [replace(part, text=next(following)) if isinstance(part, Text) else part for part in message.parts]
    return replace(message, parts=tuple(part for part in parts if not isinstance(part, Text) or part.text.strip()))


def _replace_text(message: Message, text: str) -> Message:
    """Return the message saying `text`, its other parts after it; itself when it says that already."""
    if text == message.text:
        return message
    return replace(message, parts=(Text(text=text), *(part for part in message.parts if not isinstance(part, Text))))


def _is_question(message: Message) -> bool:
    """Say whether a message ends in a question, or calls a tool that asks one."""
    if any(word in call.name.casefold() for call in message.tool_calls for word in _QUESTION_TOOLS):
        return True
    sentences = [each for each in split_sentences(message.text[-2_000:]) if each.kind in {"prose", "item", "heading"}]
    return any(
        each.text.rstrip(_CLOSERS + ".。").endswith(_QUESTION_MARKS) for each in sentences[-_QUESTION_SENTENCES:]
    )


def _speaker(message: Message) -> tuple[str, str | None]:
    return message.role, message.name


def _has_both_sides(messages: Sequence[Message]) -> bool:
    roles = {message.role for message in messages}
    people = {message.name for message in messages if message.role == "user" and message.name}
    return roles >= {"user", "assistant"} or len(people) > 1


def _shorten_message(message: Message, longest: int) -> Message:
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
    return _replace_text(message, f"{head.rstrip()}{GAP}{tail.lstrip()}")
