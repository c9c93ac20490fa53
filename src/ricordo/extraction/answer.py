"""Parses a model's answer and turns its notes into findings that are supported by messages. Pure functions.

Invariants: an unreadable answer is distinguished from an empty one. Every finding quotes, verbatim, one of the messages
to extract from, and contains no name or number that is missing from the conversation.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from datetime import UTC, date, datetime
from functools import cached_property

from ricordo.extraction.contract import Finding
from ricordo.extraction.grounding import GroundingText, contains_credential
from ricordo.guard import contains_fence
from ricordo.language import strip_lead_in
from ricordo.lazy import dataclass, lazy_compile
from ricordo.messages import JsonValue, Message, get_mark
from ricordo.messages.json_text import iterate_objects

__all__ = [
    "LESSONS_PART",
    "LESSONS_SCHEMA",
    "LESSON_KINDS",
    "MAX_LESSONS",
    "CheckedLessons",
    "LessonsAnswer",
    "check_lessons",
    "is_learnable",
    "is_no_reply",
    "parse_lessons",
    "parse_lessons_answer",
]


LESSONS_PART = "lessons"
"""The part of an answer that holds the lessons."""
_NO_REPLY = lazy_compile(r"[\s\"'`*_.!]*no[_ -]?reply[\s\"'`*_.!]*", re.IGNORECASE)
_CODE_FENCE = lazy_compile(r"\A\s*```[\w-]*[ \t]*\n?(.*?)\n?[ \t]*```\s*\Z", re.DOTALL)
_THINKING = lazy_compile(r"<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_MAX_ANSWER_CHARS = 400_000


@dataclass(frozen=True, kw_only=True)
class LessonsAnswer:
    """The parts of an answer: the unchecked lessons, and every other part by its name."""

    lessons: JsonValue = None
    parts: Mapping[str, JsonValue] = field(default_factory=dict)


def is_no_reply(text: str) -> bool:
    """Return whether `text` is NO_REPLY in any letter case, with punctuation, space or a code fence around it."""
    fenced = _CODE_FENCE.match(text)
    return _NO_REPLY.fullmatch(fenced[1] if fenced else text) is not None


def parse_lessons_answer(text: str) -> LessonsAnswer | None:
    """Return the last JSON object with lessons in a model's answer; prose, thinking and fences are ignored.

    A NO_REPLY answer has no lessons and no parts. None if there is no complete object, such as in a truncated answer.
    """
    text = _THINKING.sub(" ", text[:_MAX_ANSWER_CHARS])
    if is_no_reply(text):
        return LessonsAnswer(lessons=[])
    documents = [each for each in iterate_objects(text) if LESSONS_PART in each]
    if not documents:
        return None
    document = documents[-1]
    lessons = document[LESSONS_PART]
    if lessons is None or (isinstance(lessons, str) and (not lessons.strip() or is_no_reply(lessons))):
        lessons = []
    return LessonsAnswer(
        lessons=lessons, parts={name: value for name, value in document.items() if name != LESSONS_PART}
    )


LESSON_KINDS = ("fact", "decision", "preference", "lesson", "convention", "goal")
"""The kinds of lessons; any other kind becomes a fact."""
MAX_LESSONS = 12
"""The maximum number of lessons in one answer."""
_DAY_SCHEMA: JsonValue = {"type": "string", "description": "a day as YYYY-MM-DD, empty where none was told"}
LESSONS_SCHEMA: Mapping[str, JsonValue] = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "content": {"type": "string", "description": "one thing to remember, understandable by itself"},
            "kind": {"type": "string", "enum": list(LESSON_KINDS)},
            "confidence": {"type": "number", "description": "how sure it is, from 0 to 1"},
            "quote": {"type": "string", "description": "the words that it rests on, copied exactly"},
            "message": {"type": "string", "description": "the id of the message that holds these words"},
            "since": _DAY_SCHEMA,
            "until": _DAY_SCHEMA,
            "tags": {"type": "array", "items": {"type": "string"}, "description": "up to five words"},
            "corrects": {"type": "boolean", "description": "whether it takes the place of something known before"},
        },
        "required": ["content", "kind", "confidence", "quote", "message", "since", "until", "tags", "corrects"],
        "additionalProperties": False,
    },
}
"""The JSON schema of the lessons. A note without the less important required properties is still accepted."""
_MAX_NOTE_CHARS = 700
_MAX_QUOTE_CHARS = 2_000
_MAX_KEPT_QUOTE_CHARS = 300
_MIN_QUOTE_CHARS = 3
_MAX_TAGS = 5
_TAG_PATTERN = lazy_compile(r"[^\W_][\w-]{0,39}")
_DEFAULT_CONFIDENCE: Mapping[str, float] = {"user": 0.7, "assistant": 0.5}
_MAX_CONFIDENCE: Mapping[str, float] = {"user": 0.95, "assistant": 0.55}
_MAX_LESSON_CONFIDENCE = 0.75
"""The most that a lesson of the assistant may have: the person need not confirm what failed, and what helped."""
_MIN_CONFIDENCE = 0.05


def is_learnable(message: Message) -> bool:
    """Return whether a message can be a source: written by a user or the assistant, not by a tool or memory."""
    is_authored = (
        message.role in _DEFAULT_CONFIDENCE and not message.tool_results and get_mark(message) in {None, "cut"}
    )
    return is_authored and bool(message.id) and bool(message.text.strip()) and not contains_fence(message.text)


@dataclass(frozen=True, kw_only=True)
class CheckedLessons:
    """The lessons of an answer, in order, each once, and why the other notes were refused: a word for each.

    `lessons` is None if the answer is unusable: it is not a list, or none of its notes is supported by the messages.
    """

    lessons: tuple[Finding, ...] | None = None
    refused: tuple[str, ...] = ()


def parse_lessons(value: JsonValue, messages: Sequence[Message], *, context: str = "") -> tuple[Finding, ...] | None:
    """Return the lessons of an answer as `check_lessons` does, without the reasons."""
    return check_lessons(value, messages, context=context).lessons


def check_lessons(value: JsonValue, messages: Sequence[Message], *, context: str = "") -> CheckedLessons:
    """Return the lessons of an answer, and why notes were refused; `messages` are their possible sources.

    Names and numbers in a lesson must occur in `messages` or in `context`.
    """
    if not isinstance(value, list):
        return CheckedLessons()
    validator = _NoteValidator(messages=messages, context=context)
    findings: dict[str, Finding] = {}
    refused: list[str] = []
    for note in value[:MAX_LESSONS]:
        finding = validator.to_finding(note) if isinstance(note, dict) else "form"
        if isinstance(finding, str):
            refused.append(finding)
        else:
            findings.setdefault(finding.content.casefold(), finding)
    refused += ["too many"] * len(value[MAX_LESSONS:])
    return CheckedLessons(lessons=tuple(findings.values()) if findings or not value else None, refused=tuple(refused))


@dataclass(frozen=True, kw_only=True)
class _NoteValidator:
    """Validates a note."""

    messages: Sequence[Message]
    context: str

    def to_finding(self, note: Mapping[str, JsonValue]) -> Finding | str:
        """Return the note as a finding, or why it is refused: it is unsupported, or must not be stored."""
        content = strip_lead_in(" ".join(_text_field(note, "content").split()))
        if flaw := self._find_flaw(content):
            return flaw
        quote = _text_field(note, "quote")
        for message in _rank_messages(self.messages, _text_field(note, "message").strip(" []")):
            matched_quote = _find_quote(quote, message.text)
            if matched_quote and not contains_credential(matched_quote):
                return _build_finding(note, content, message, matched_quote)
        return "source"

    def _find_flaw(self, content: str) -> str:
        if not content:
            return "form"
        if len(content) > _MAX_NOTE_CHARS:
            return "too long"
        if contains_credential(content):
            return "secret"
        if contains_fence(content):
            return "order"
        return "" if self._grounding_text.supports(content) else "invented"

    @cached_property
    def _grounding_text(self) -> GroundingText:
        names = [message.name for message in self.messages if message.name]
        return GroundingText("\n".join([*(message.text for message in self.messages), *names, self.context]))


def _build_finding(note: Mapping[str, JsonValue], content: str, message: Message, quote: str) -> Finding:
    kind = _parse_kind(note)
    since = _parse_day(note.get("since"))
    return Finding(
        content=content,
        kind=kind,
        confidence=_parse_confidence(note.get("confidence"), message.role, kind),
        message_ids=(message.id,),
        quote=quote,
        tags=tuple(_parse_tags(note.get("tags"))),
        since=datetime(since.year, since.month, since.day, tzinfo=UTC) if since else message.time,
        corrects=note.get("corrects") is True,
        until=_parse_day(note.get("until")),
    )


def _rank_messages(messages: Sequence[Message], cited: str) -> Iterator[Message]:
    """Yield the cited message, then messages of people, then the rest; the quote decides among them."""

    def rank(message: Message) -> int:
        is_cited = bool(cited) and (message.id.startswith(cited) or message.id.endswith(cited))
        return 0 if is_cited else 1 if message.role == "user" else 2

    yield from sorted(messages, key=rank)


def _find_quote(quote: str, text: str) -> str:
    """Return `quote` as it appears in `text`, ignoring white space; empty if it does not appear."""
    words = quote[: _MAX_QUOTE_CHARS + 1].split()
    if len(quote) > _MAX_QUOTE_CHARS or sum(char.isalnum() for char in quote) < _MIN_QUOTE_CHARS:
        return ""
    match = re.search(r"\s+".join(map(re.escape, words)), text)
    if match is None or len(match[0]) <= _MAX_KEPT_QUOTE_CHARS:
        return match[0] if match else ""
    # The beginning of a quote identifies its position and is verbatim too.
    return match[0][:_MAX_KEPT_QUOTE_CHARS].rsplit(maxsplit=1)[0]


def _parse_kind(note: Mapping[str, JsonValue]) -> str:
    kind = _text_field(note, "kind").casefold()
    return kind if kind in LESSON_KINDS else "fact"


def _parse_confidence(value: JsonValue, role: str, kind: str) -> float:
    """Return the confidence, limited by role: an assistant's is below a person's, and both below a saved entry's."""
    is_valid = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
    confidence = float(value) if is_valid and isinstance(value, int | float) else _DEFAULT_CONFIDENCE[role]
    is_lesson = kind == "lesson" and role == "assistant"
    return round(
        min(max(confidence, _MIN_CONFIDENCE), _MAX_LESSON_CONFIDENCE if is_lesson else _MAX_CONFIDENCE[role]), 2
    )


def _parse_tags(value: JsonValue) -> Iterator[str]:
    tags = [each.strip().lstrip("#").casefold() for each in _as_list(value) if isinstance(each, str)]
    yield from list(dict.fromkeys(each for each in tags if _TAG_PATTERN.fullmatch(each)))[:_MAX_TAGS]


def _as_list(value: JsonValue) -> Sequence[JsonValue]:
    return value if isinstance(value, list) else []


def _parse_day(value: JsonValue) -> date | None:
    try:
        return date.fromisoformat(value[:10]) if isinstance(value, str) else None
    except ValueError:
        return None


def _text_field(note: Mapping[str, JsonValue], name: str) -> str:
    value = note.get(name)
    return value.strip() if isinstance(value, str) else ""
