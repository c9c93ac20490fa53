"""Preprocessing: which messages, and what of them, an extraction reads. Pure.

Tool chatter, what hosts and memory put into a conversation, and acknowledgements that answer nothing are dropped, and
so is what an assistant only repeats of recalled text. A message's metadata decides first, then whole blocks of text; no
sentence of a person is dropped for its words.

Invariants: the messages given are never changed; one that loses something is a copy under the same id. The order stays,
and every message is kept or counted once. A gap stands where something was left out.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from ricordo.errors import InvalidSetting
from ricordo.guard.fence import parse_fence
from ricordo.language import content_words, split_sentences, strip_accents
from ricordo.language.signals import Signal, SignalDetector, default_detector, is_acknowledgement
from ricordo.lazy import lazy_compile
from ricordo.messages import JsonValue, Media, Message, Text, get_mark

__all__ = [
    "GAP",
    "GAP_MARK",
    "DropReason",
    "ProcessedMessages",
    "ProcessingConfig",
    "comparison_keys",
    "detect_signals",
    "find_recalled_texts",
    "is_clarification_answer",
    "is_hidden",
    "is_restatement",
    "join_with_gaps",
    "metadata_value",
    "original_user_text",
    "process_messages",
    "strip_echoes",
    "strip_fences",
    "strip_uploads",
]


GAP_MARK = "[…]"
"""The sign of a gap."""
GAP = f"\n\n{GAP_MARK}\n\n"
"""A gap as it stands in a text: a paragraph of its own."""


def join_with_gaps(pieces: Iterable[str]) -> str:
    """Return the pieces that hold something, without white space around them, with a gap between each two."""
    return GAP.join(piece for each in pieces if (piece := each.strip()))


_UPLOAD_BLOCK = lazy_compile(r"<(uploaded_files|current_uploads)>.*?</\1>", re.IGNORECASE | re.DOTALL)
_UNCLOSED_UPLOAD = lazy_compile(r"^<(uploaded_files|current_uploads)>.*\Z", re.IGNORECASE | re.DOTALL | re.MULTILINE)
_CODE_SPAN = lazy_compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_FILE_LIST_KEYS = ("files", "uploads", "attachments")
_ORIGINAL_TEXT_KEY = "original_user_content"


def metadata_value(metadata: Mapping[str, JsonValue], key: str) -> JsonValue:
    """Return a value of a message's metadata, also where a framework keeps it under `additional_kwargs`."""
    inner = metadata.get("additional_kwargs")
    return metadata.get(key, inner.get(key) if isinstance(inner, dict) else None)


def strip_uploads(text: str, metadata: Mapping[str, JsonValue]) -> str:
    """Return `text` without the tags around uploaded files and what stands in them; the same text without such tags."""
    lists = [found for key in _FILE_LIST_KEYS if isinstance(found := metadata_value(metadata, key), list)]
    if "<" not in text or (lists and not any(lists)):
        return text
    left: list[str] = []
    at = 0
    for start, end in _find_upload_blocks(text, cut_off=any(lists)):
        left.append(text[at:start])
        at = end
    return join_with_gaps((*left, text[at:])) if left else text


def _find_upload_blocks(text: str, *, cut_off: bool) -> Iterator[tuple[int, int]]:
    """Yield where blocks stand, and at last one that lost its end, where such a one counts."""
    code = [match.span() for match in _CODE_SPAN.finditer(text)]
    last = 0
    for match in _UPLOAD_BLOCK.finditer(text):
        if not any(start <= match.start() < end for start, end in code):
            yield match.span()
            last = match.end()
    if cut_off and (rest := _UNCLOSED_UPLOAD.search(text, last)) is not None:
        yield rest.span()


def original_user_text(metadata: Mapping[str, JsonValue]) -> str | None:
    """Return what was said before a host put tags in; None where it does not say."""
    found = metadata_value(metadata, _ORIGINAL_TEXT_KEY)
    return found if isinstance(found, str) else None


_HIDDEN_FLAGS = ("hide_from_ui", "is_visually_hidden_from_conversation", "isMeta")
_CLARIFICATION_KEY = "human_input_response"


def is_hidden(message: Message) -> bool:
    """Say whether a message was hidden from people and carries no well-formed answer of one."""
    hidden = any(metadata_value(message.metadata, flag) is True for flag in _HIDDEN_FLAGS)
    return hidden and not (
        message.role == "user" and is_clarification_answer(metadata_value(message.metadata, _CLARIFICATION_KEY))
    )


def is_clarification_answer(payload: JsonValue) -> bool:
    """Say whether `payload` is a whole answer of a person to a clarifying question."""
    if not isinstance(payload, Mapping) or payload.get("kind") != _CLARIFICATION_KEY:
        return False
    version = payload.get("version")
    if isinstance(version, bool) or version != 1:
        return False
    needed = ["source", "request_id", "value"]
    response = payload.get("response_kind")
    if response not in {"text", "option"}:
        return False
    return all(_is_nonblank(payload.get(key)) for key in [*needed, *(["option_id"] if response == "option" else [])])


def _is_nonblank(value: JsonValue) -> bool:
    return isinstance(value, str) and bool(value.strip())


_FENCE_OPENING = lazy_compile(
    r"<(?P<name>[a-z][a-z0-9_-]{0,40})(?: note=\"[^\"\n]*\")?>\n<(?P=name)-item source=\"[^\"\n]*\" trust=\"[a-z]+\""
)
_MIN_KEYS = 2
_KEY_LETTERS = 6
_MIN_SHARED = 0.75
_MAX_KEYED_CHARS = 2_000


def strip_fences(text: str) -> tuple[str, tuple[str, ...]]:
    """Return `text` without the blocks that memory put there, and those blocks; a block that was cut off goes whole."""
    left: list[str] = []
    blocks: list[str] = []
    at = 0
    while (opening := _FENCE_OPENING.search(text, at)) is not None:
        closing = f"\n</{opening['name']}>"
        end = text.find(closing, opening.end())
        stop = len(text) if end < 0 else end + len(closing)
        left.append(text[at : opening.start()])
        blocks.append(text[opening.start() : stop])
        at = stop
    if not blocks:
        return text, ()
    return join_with_gaps((*left, text[at:])), tuple(blocks)


def find_recalled_texts(messages: Sequence[Message]) -> tuple[str, ...]:
    """Return each text that memory recalled into `messages`, in order, repeats left out."""
    return tuple(dict.fromkeys(text for message in messages for text in _iter_recalled_texts(message)))


def is_restatement(statement: str, recalled: Sequence[frozenset[str]]) -> bool:
    """Say whether a statement says no more than one of the recalled texts (see `comparison_keys`)."""
    own = comparison_keys(statement)
    if len(own) < _MIN_KEYS:
        return False
    return any(_has_same_content(own, other) for other in recalled)


def comparison_keys(text: str) -> frozenset[str]:
    """Return what a text is compared by: its content words without accents, cut to six letters; y counts as i."""
    return frozenset(
        strip_accents(word)[:_KEY_LETTERS].replace("y", "i") for word in content_words(text[:_MAX_KEYED_CHARS])
    )


def strip_echoes(text: str, recalled: Sequence[frozenset[str]]) -> str:
    """Return `text` without the sentences that only restate what was recalled, each run of them a gap; "" when
    nothing else is in it."""
    if not recalled:
        return text
    left: list[str] = []
    rest = at = 0
    for sentence in split_sentences(text):
        if sentence.kind in {"prose", "item"} and is_restatement(sentence.text, recalled):
            left.append(text[at : sentence.start])
            at = sentence.end
        else:
            rest += 1
    if not at:
        return text
    return join_with_gaps(part.strip(" \t\n-*•") for part in (*left, text[at:])) if rest else ""


def _has_same_content(own: frozenset[str], other: frozenset[str]) -> bool:
    """The statement says nearly nothing else, or nearly all of the other and not much beside it."""
    shared = len(own & other)
    if shared < min(_MIN_KEYS, len(other)) or not other:
        return False
    return shared >= _MIN_SHARED * len(own) or (shared >= _MIN_SHARED * len(other) and len(own) <= 2 * len(other) + 1)


def _iter_recalled_texts(message: Message) -> Iterator[str]:
    texts = [message.text, *(result.text for result in message.tool_results)]
    for block in (block for text in texts for block in strip_fences(text)[1]):
        yield from parse_fence(block) or (block,)
    if get_mark(message) == "memory" and not strip_fences(message.text)[1] and message.text.strip():
        yield message.text


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
_LEADING_NO = lazy_compile(
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
