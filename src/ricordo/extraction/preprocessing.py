"""Preprocessing: selects the messages, and the parts of them, that extraction reads. Pure functions.

It drops tool calls and results, text injected by hosts and memory, acknowledgements that answer no question, and an
assistant's repetitions of recalled text. A message's metadata decides first, then whole blocks of text; no sentence of
a person is dropped for its words.

Signals are searched by the patterns of the packs, or by those of a directory with one YAML file for each signal:

    correction.yaml:
    - "that's wrong"
    - pattern: "^nope"
      flags: [ignorecase]

Invariants: input messages are never modified; a shortened message is a copy with the same id. The order stays, and
every message is kept or counted once. A gap marks omitted text.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Literal

from ricordo.errors import InvalidSetting
from ricordo.guard.fence import parse_fence
from ricordo.language import content_words, split_sentences, strip_accents
from ricordo.language.acts import SIGNALS, CompiledPack, Signal, SignalDetector, default_detector, is_acknowledgement
from ricordo.language.packs import pack_phrases, pack_words
from ricordo.lazy import dataclass, lazy_compile
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
    "load_detector",
    "metadata_value",
    "original_user_text",
    "process_messages",
    "strip_echoes",
    "strip_fences",
    "strip_uploads",
]


GAP_MARK = "[…]"
"""The mark of a gap."""
GAP = f"\n\n{GAP_MARK}\n\n"
"""A gap in a text: a paragraph of its own."""


def join_with_gaps(pieces: Iterable[str]) -> str:
    """Return the non-blank pieces, stripped and joined by gaps."""
    return GAP.join(piece for each in pieces if (piece := each.strip()))


_UPLOAD_BLOCK = lazy_compile(r"<(uploaded_files|current_uploads)>.*?</\1>", re.IGNORECASE | re.DOTALL)
_UNCLOSED_UPLOAD = lazy_compile(r"^<(uploaded_files|current_uploads)>.*\Z", re.IGNORECASE | re.DOTALL | re.MULTILINE)
_CODE_SPAN = lazy_compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_FILE_LIST_KEYS = ("files", "uploads", "attachments")
_ORIGINAL_TEXT_KEY = "original_user_content"


def metadata_value(metadata: Mapping[str, JsonValue], key: str) -> JsonValue:
    """Return a value of a message's metadata, including a framework's `additional_kwargs`."""
    additional = metadata.get("additional_kwargs")
    return metadata.get(key, additional.get(key) if isinstance(additional, dict) else None)


def strip_uploads(text: str, metadata: Mapping[str, JsonValue]) -> str:
    """Return `text` without the tags around uploaded files and their content; the same text without such tags."""
    lists = [value for key in _FILE_LIST_KEYS if isinstance(value := metadata_value(metadata, key), list)]
    if "<" not in text or (lists and not any(lists)):
        return text
    parts: list[str] = []
    position = 0
    for start, end in _find_upload_blocks(text, cut_off=any(lists)):
        parts.append(text[position:start])
        position = end
    return join_with_gaps((*parts, text[position:])) if parts else text


def _find_upload_blocks(text: str, *, cut_off: bool) -> Iterator[tuple[int, int]]:
    """Yield the spans of the blocks, and last an unclosed block if `cut_off`."""
    code = [match.span() for match in _CODE_SPAN.finditer(text)]
    last = 0
    for match in _UPLOAD_BLOCK.finditer(text):
        if not any(start <= match.start() < end for start, end in code):
            yield match.span()
            last = match.end()
    if cut_off and (unclosed := _UNCLOSED_UPLOAD.search(text, last)) is not None:
        yield unclosed.span()


def original_user_text(metadata: Mapping[str, JsonValue]) -> str | None:
    """Return the user's text before a host inserted tags; None if the metadata does not hold it."""
    text = metadata_value(metadata, _ORIGINAL_TEXT_KEY)
    return text if isinstance(text, str) else None


_HIDDEN_FLAGS = ("hide_from_ui", "is_visually_hidden_from_conversation", "isMeta")
_CLARIFICATION_KEY = "human_input_response"


def is_hidden(message: Message) -> bool:
    """Return whether a message is hidden from people and is not a valid clarification answer."""
    hidden = any(metadata_value(message.metadata, flag) is True for flag in _HIDDEN_FLAGS)
    return hidden and not (
        message.role == "user" and is_clarification_answer(metadata_value(message.metadata, _CLARIFICATION_KEY))
    )


def is_clarification_answer(payload: JsonValue) -> bool:
    """Return whether `payload` is a complete answer of a person to a clarifying question."""
    if not isinstance(payload, Mapping) or payload.get("kind") != _CLARIFICATION_KEY:
        return False
    version = payload.get("version")
    if isinstance(version, bool) or version != 1:
        return False
    required_keys = ["source", "request_id", "value"]
    response = payload.get("response_kind")
    if response not in {"text", "option"}:
        return False
    return all(
        _is_nonblank(payload.get(key)) for key in [*required_keys, *(["option_id"] if response == "option" else [])]
    )


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
    """Return `text` without the blocks of memory, and those blocks; a truncated block is removed whole."""
    parts: list[str] = []
    blocks: list[str] = []
    position = 0
    while (opening := _FENCE_OPENING.search(text, position)) is not None:
        closing = f"\n</{opening['name']}>"
        end = text.find(closing, opening.end())
        stop = len(text) if end < 0 else end + len(closing)
        parts.append(text[position : opening.start()])
        blocks.append(text[opening.start() : stop])
        position = stop
    if not blocks:
        return text, ()
    return join_with_gaps((*parts, text[position:])), tuple(blocks)


def find_recalled_texts(messages: Sequence[Message]) -> tuple[str, ...]:
    """Return each text that memory recalled into `messages`, in order, without repetitions."""
    return tuple(dict.fromkeys(text for message in messages for text in _iter_recalled_texts(message)))


def is_restatement(statement: str, recalled: Sequence[frozenset[str]]) -> bool:
    """Return whether a statement says no more than one of the recalled texts (see `comparison_keys`)."""
    keys = comparison_keys(statement)
    if len(keys) < _MIN_KEYS:
        return False
    return any(_has_same_content(keys, other) for other in recalled)


def comparison_keys(text: str) -> frozenset[str]:
    """Return the comparison keys of a text: content words without accents, cut to six letters, with y as i."""
    return frozenset(
        strip_accents(word)[:_KEY_LETTERS].replace("y", "i") for word in content_words(text[:_MAX_KEYED_CHARS])
    )


def strip_echoes(text: str, recalled: Sequence[frozenset[str]]) -> str:
    """Return `text` without the sentences that only restate recalled text.

    Each run of them becomes a gap. Empty if nothing else is left."""
    if not recalled:
        return text
    parts: list[str] = []
    kept_count = position = 0
    for sentence in split_sentences(text):
        if sentence.kind in {"prose", "item"} and is_restatement(sentence.text, recalled):
            parts.append(text[position : sentence.start])
            position = sentence.end
        else:
            kept_count += 1
    if not position:
        return text
    return join_with_gaps(part.strip(" \t\n-*•") for part in (*parts, text[position:])) if kept_count else ""


def _has_same_content(keys: frozenset[str], other_keys: frozenset[str]) -> bool:
    """Return whether a statement adds almost nothing to the other, or covers most of the other and adds little."""
    shared = len(keys & other_keys)
    if shared < min(_MIN_KEYS, len(other_keys)) or not other_keys:
        return False
    return shared >= _MIN_SHARED * len(keys) or (
        shared >= _MIN_SHARED * len(other_keys) and len(keys) <= 2 * len(other_keys) + 1
    )


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
"""Why a message is not read: a `reply` replies to a dropped acknowledgement or upload, an `echo` only repeats recalled
text, and `one-sided` messages are those of one side when the other side said nothing."""
_QUESTION_SENTENCES = 3
_QUESTION_MARKS = ("?", "？", "؟")
_CLOSERS = " \t\n*_\"'”’»)」』"
_LEADING_NO = lazy_compile(lambda: rf"^\s*(?:{pack_phrases('no_in_reply')})(?!\w)[,.!،、。，！ ]*", re.IGNORECASE)
_QUESTION_TOOLS = ("ask", "clarif", "question", "confirm")


@dataclass(frozen=True, kw_only=True)
class ProcessingConfig:
    """The limits of preprocessing.

    A message of more than `max_message_chars` characters keeps its beginning and its end. `detector` searches the last
    `signal_window` kept messages for signals. With `both_sides` nothing is kept unless there is one message of a person
    and one of an assistant, or two people talk.
    """

    max_message_chars: int = 8_000
    signal_window: int = 6
    both_sides: bool = True
    detector: SignalDetector = field(default_factory=default_detector)

    def __post_init__(self) -> None:
        """Reject limits that are too small."""
        if self.max_message_chars < 100:
            raise InvalidSetting(f"max_message_chars is at least 100 characters, not {self.max_message_chars!r}.")
        if self.signal_window < 1:
            raise InvalidSetting(f"signal_window is at least 1 message, not {self.signal_window!r}.")


@dataclass(frozen=True, kw_only=True)
class ProcessedMessages:
    """The result of preprocessing: the messages to read in order, the number of dropped messages by reason, the signals
    of the last messages, and the texts that memory recalled into the conversation."""

    messages: tuple[Message, ...] = ()
    dropped: Mapping[DropReason, int] = field(default_factory=dict)
    signals: frozenset[Signal] = frozenset()
    recalled: tuple[str, ...] = ()

    @property
    def has_both_sides(self) -> bool:
        """Whether there is a message of a person and one of an assistant, or two people talk."""
        roles = {message.role for message in self.messages}
        people = {message.name for message in self.messages if message.role == "user" and message.name}
        return roles >= {"user", "assistant"} or len(people) > 1


_DEFAULT_PROCESSING = ProcessingConfig()


def process_messages(
    messages: Sequence[Message], *, config: ProcessingConfig = _DEFAULT_PROCESSING
) -> ProcessedMessages:
    """Return the messages that extraction reads, and their signals; no messages if nothing is worth reading.

    Recalled text is searched in all of them, so pass the context of new messages too.
    """
    recalled = find_recalled_texts(messages)
    reader = _MessageReader(recalled=tuple(comparison_keys(text) for text in recalled))
    for message in messages:
        reader.read(message)
    processed = ProcessedMessages(
        messages=tuple(_shorten_message(message, config.max_message_chars) for message in reader.kept),
        dropped={reason: count for reason, count in sorted(reader.dropped.items()) if count},
        signals=detect_signals(reader.kept, config=config),
        recalled=recalled,
    )
    if not config.both_sides or processed.has_both_sides or not reader.kept:
        return processed
    reader.dropped["one-sided"] += len(reader.kept)
    return ProcessedMessages(dropped=dict(sorted(reader.dropped.items())), recalled=recalled)


def detect_signals(messages: Sequence[Message], *, config: ProcessingConfig = _DEFAULT_PROCESSING) -> frozenset[Signal]:
    """Return the signals of people in the last `signal_window` processed messages.

    A "no" that answers a question is not a correction.
    """
    signals: set[Signal] = set()
    window = messages[-config.signal_window - 1 :]
    for previous, message in zip((None, *window), window, strict=False):
        if message.role == "user" and (previous is not None or len(window) <= config.signal_window):
            text = message.text
            signals |= config.detector.detect(
                _LEADING_NO.sub("", text) if previous and _is_question(previous) else text
            )
    return frozenset(signals)


@dataclass
class _MessageReader:
    """The messages read so far, and the state that the next one depends on."""

    recalled: tuple[frozenset[str], ...]
    kept: list[Message] = field(default_factory=list)
    dropped: Counter[DropReason] = field(default_factory=Counter)
    question_speaker: tuple[str, str | None] | None = None
    unanswered: bool = False

    def read(self, message: Message) -> None:
        """Keep the message, or count the reason for dropping it."""
        reason = _drop_reason(message)
        if reason is None:
            cleaned, reason = self._clean_message(message)
            if cleaned is not None:
                self.kept.append(cleaned)
        if reason is not None:
            self.dropped[reason] += 1
        if reason in {None, "tool call", "reply", "echo"}:
            self.question_speaker = _speaker(message) if _is_question(message) else None

    def _clean_message(self, message: Message) -> tuple[Message | None, DropReason | None]:
        cleaned, reason = _strip_injected_text(message)
        if message.role == "assistant":
            if self.unanswered:
                return None, "reply"
            return self._clean_assistant_message(cleaned, reason)
        if reason in {"memory", "empty"}:
            return None, reason
        self.unanswered = reason == "upload" or self._only_acknowledges(cleaned)
        if reason is None and self.unanswered:
            reason = "acknowledgement"
        return (None, reason) if reason else (cleaned, None)

    def _clean_assistant_message(
        self, cleaned: Message, reason: DropReason | None
    ) -> tuple[Message | None, DropReason | None]:
        if reason:
            return None, reason
        text = strip_echoes(cleaned.text, self.recalled)
        return (_replace_text(cleaned, text), None) if text.strip() else (None, "echo")

    def _only_acknowledges(self, message: Message) -> bool:
        is_answer = self.question_speaker is not None and self.question_speaker != _speaker(message)
        is_text_only = not any(isinstance(part, Media) for part in message.parts)
        return is_text_only and not is_answer and is_acknowledgement(message.text)


def _drop_reason(message: Message) -> DropReason | None:
    """Return why a message is dropped according to its role, parts and metadata; None if it is not."""
    if message.role in {"system", "tool"}:
        return "tool" if message.role == "tool" else "system"
    if message.tool_calls:
        return "tool call"
    mark = get_mark(message)
    if mark in {"notice", "reminder"} or is_hidden(message):
        return "hidden"
    return "memory" if mark in {"memory", "summary"} else None


def _strip_injected_text(message: Message) -> tuple[Message, DropReason | None]:
    """Return a message without injected text, and the reason if nothing is left of it."""
    original = original_user_text(message.metadata) if message.role == "user" else None
    texts = [part.text for part in message.parts if isinstance(part, Text)] if original is None else [original]
    stripped_texts, had_fence, had_upload = [], False, original is not None and not original.strip()
    for text in texts:
        unfenced, blocks = strip_fences(text)
        stripped = strip_uploads(unfenced, message.metadata) if message.role == "user" else unfenced
        had_fence, had_upload = had_fence or bool(blocks), had_upload or stripped != unfenced
        stripped_texts.append(stripped)
    if not any(text.strip() for text in stripped_texts):
        media = any(isinstance(part, Media) for part in message.parts)
        return message, "upload" if had_upload or (
            media and message.role == "user"
        ) else "memory" if had_fence else "empty"
    return _replace_texts(message, stripped_texts), None


def _replace_texts(message: Message, texts: Sequence[str]) -> Message:
    """Return the message with its texts replaced in place; the same message if they are equal."""
    current = [part.text for part in message.parts if isinstance(part, Text)]
    if current == list(texts):
        return message
    if len(current) != len(texts):
        return _replace_text(message, "\n".join(texts))
    replacements = iter(texts)
    parts = [replace(part, text=next(replacements)) if isinstance(part, Text) else part for part in message.parts]
    return replace(message, parts=tuple(part for part in parts if not isinstance(part, Text) or part.text.strip()))


def _replace_text(message: Message, text: str) -> Message:
    """Return the message with `text`, followed by its other parts; the same message if the text is equal."""
    if text == message.text:
        return message
    return replace(message, parts=(Text(text=text), *(part for part in message.parts if not isinstance(part, Text))))


def _is_question(message: Message) -> bool:
    """Return whether a message ends in a question, or calls a tool that asks one."""
    if any(word in call.name.casefold() for call in message.tool_calls for word in _QUESTION_TOOLS):
        return True
    sentences = [each for each in split_sentences(message.text[-2_000:]) if each.kind in {"prose", "item", "heading"}]
    return any(
        each.text.rstrip(_CLOSERS + ".。").endswith((*_QUESTION_MARKS, *pack_words("question_particle")))
        for each in sentences[-_QUESTION_SENTENCES:]
    )


def _speaker(message: Message) -> tuple[str, str | None]:
    return message.role, message.name


def _shorten_message(message: Message, max_chars: int) -> Message:
    """Return the message with the beginning and the end of its text, cut between words if possible."""
    text = message.text
    if len(text) <= max_chars:
        return message
    half = (max_chars - len(GAP)) // 2
    head, tail = text[:half], text[-half:]
    if (space := max(head.rfind(" "), head.rfind("\n"))) > half - 80:
        head = head[:space]
    if (space := min((index for mark in " \n" if (index := tail.find(mark)) >= 0), default=half)) < 80:
        tail = tail[space:]
    return _replace_text(message, f"{head.rstrip()}{GAP}{tail.lstrip()}")


_FLAGS = {"ignorecase": re.IGNORECASE, "multiline": re.MULTILINE, "dotall": re.DOTALL}
_MAX_FILE_BYTES = 1_000_000
_INNERMOST_GROUP = lazy_compile(r"\((?:\?(?:[:=!]|<[=!]|P<\w+>))?([^()]*)\)")
_UNBOUNDED_REPEAT = lazy_compile(r"[+*]|\{\d*,\}")
_ATOM = lazy_compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)


def load_detector(directory: str | Path) -> SignalDetector:
    """Return a detector with only the patterns in `directory`.

    Raises: InvalidSetting if a file is missing, unreadable or not such a list, or if a pattern is not a regular
    expression or nests unbounded repetitions, which can take exponential time.
    """
    folder = Path(directory)
    return SignalDetector(custom=(CompiledPack(signals={signal: _load_signal(folder, signal) for signal in SIGNALS}),))


def _load_signal(folder: Path, signal: Signal) -> tuple[re.Pattern[str], ...]:
    path = folder / f"{signal}.yaml"
    return tuple(_compile_entry(path, each) for each in _load_list(path))


def _load_list(path: Path) -> list[object]:
    import yaml

    try:
        if path.stat().st_size > _MAX_FILE_BYTES:
            raise InvalidSetting(f"{path}: the file is larger than {_MAX_FILE_BYTES:,} bytes.")
        patterns = yaml.safe_load(path.read_text("utf-8"))
    except FileNotFoundError:
        raise InvalidSetting(f"{path}: the file is missing; a directory of signal patterns has one a signal.") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InvalidSetting(f"{path}: the file can't be read: {error}") from error
    if not isinstance(patterns, list):
        raise InvalidSetting(f"{path}: the file is no list of patterns.")
    return patterns


def _compile_entry(path: Path, entry: object) -> re.Pattern[str]:
    pattern: object = entry
    flag_names: object = ["ignorecase"]
    if isinstance(entry, dict):
        pattern, flag_names = entry.get("pattern"), entry.get("flags", [])
    if not isinstance(pattern, str) or not pattern.strip():
        raise InvalidSetting(f"{path}: {entry!r} is no pattern, which is a text or a mapping with `pattern`.")
    if not isinstance(flag_names, list) or any(name not in _FLAGS for name in flag_names):
        raise InvalidSetting(f"{path}: the flags of a pattern are {', '.join(_FLAGS)}, not {flag_names!r}.")
    if _repeats_without_bound(pattern):
        raise InvalidSetting(f"{path}: {pattern!r} repeats a repetition; bound one of them, as in {{0,40}}.")
    try:
        return re.compile(pattern, reduce(or_, (_FLAGS[name] for name in flag_names), re.NOFLAG))
    except (re.error, RecursionError, OverflowError) as error:
        raise InvalidSetting(f"{path}: {pattern!r} is no regular expression: {error}") from None


def _repeats_without_bound(pattern: str) -> bool:
    """Return whether one unbounded repetition is nested in another: "(a+)+" can take very long on a short text."""
    remaining = _ATOM.sub("x", pattern)
    while (group := _INNERMOST_GROUP.search(remaining)) is not None:
        is_unbounded = bool(_UNBOUNDED_REPEAT.search(group[1])) or "\x00" in group[1]
        if is_unbounded and _UNBOUNDED_REPEAT.match(remaining, group.end()):
            return True
        remaining = remaining[: group.start()] + ("\x00" if is_unbounded else "x") + remaining[group.end() :]
    return False
