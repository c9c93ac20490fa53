"""What a model answered, whatever it put around it.

Pure. Invariant: an answer that can't be read is told from one that has nothing to say, so no half answer is taken for
"nothing new".
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ricordo.errors import InvalidMessage
from ricordo.messages import JsonValue
from ricordo.messages.jsontext import loads

__all__ = ["LESSONS_PART", "LessonsAnswer", "parse_lessons_answer", "is_no_reply"]

LESSONS_PART = "lessons"
"""The part of an answer that holds the lessons."""

_NO_REPLY = re.compile(r"[\s\"'`*_.!]*no[_ -]?reply[\s\"'`*_.!]*", re.IGNORECASE)
_CODE_FENCE = re.compile(r"\A\s*```[\w-]*[ \t]*\n?(.*?)\n?[ \t]*```\s*\Z", re.DOTALL)
_THINKING = re.compile(r"<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_DECODER = json.JSONDecoder()
_MAX_STARTS = 200
_MAX_ANSWER_CHARS = 400_000


@dataclass(frozen=True, kw_only=True)
class LessonsAnswer:
    """The parts of an answer: what stands in the place of lessons, and every other part by its name."""

    lessons: JsonValue = None
    parts: Mapping[str, JsonValue] = field(default_factory=dict)


def is_no_reply(text: str) -> bool:
    """Tell whether `text` is NO_REPLY, in any letter case, with a full stop, space or a code fence around it."""
    fenced = _CODE_FENCE.match(text)
    return _NO_REPLY.fullmatch(fenced[1] if fenced else text) is not None


def parse_lessons_answer(text: str) -> LessonsAnswer | None:
    """Return what a model said: the last JSON object in it that has lessons, prose, thoughts and fences left aside.

    An answer of NO_REPLY has no lessons and no parts. None when there is no whole object, as in one that is cut off.
    """
    text = _THINKING.sub(" ", text[:_MAX_ANSWER_CHARS])
    if is_no_reply(text):
        return LessonsAnswer(lessons=[])
    found = next((each for each in _iter_objects(text) if LESSONS_PART in each), None)
    if found is None:
        return None
    lessons = found[LESSONS_PART]
    if lessons is None or (isinstance(lessons, str) and (not lessons.strip() or is_no_reply(lessons))):
        lessons = []
    return LessonsAnswer(lessons=lessons, parts={name: value for name, value in found.items() if name != LESSONS_PART})


def _iter_objects(text: str) -> Iterator[Mapping[str, JsonValue]]:
    """Yield the outermost objects of a text, the last one first; a half one hides those in it."""
    found: list[Mapping[str, JsonValue]] = []
    at = text.find("{")
    for _ in range(_MAX_STARTS):
        if at < 0:
            break
        end = _find_object_end(text, at)
        if end < 0:
            at = text.find("{", at + 1)
            continue
        try:
            value = loads(text[at:end])
        except InvalidMessage:
            value = None
        if isinstance(value, dict):
            found.append(value)
        at = text.find("{", end)
    yield from reversed(found)


def _find_object_end(text: str, at: int) -> int:
    try:
        return _DECODER.raw_decode(text, at)[1]
    except (ValueError, RecursionError):
        return -1
