"""Lessons of tools: a failed call, and what made it work. Pure and deterministic.

The fix is a later call of the same tool with similar arguments, the calls in between if the arguments stayed the same,
or a person's message right after the failure.

Invariants: only error names are copied from a tool's output; of arguments only short single lines are shown. Every
lesson is based on the messages it names, and its quote is in the first of them.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ricordo.errors import InvalidMessage
from ricordo.extraction.contract import Finding
from ricordo.language import detect_acts, jaccard, split_sentences, split_words
from ricordo.language.acts import default_detector
from ricordo.lazy import lazy_compile
from ricordo.messages import Message, Text, ToolCall, ToolResult, get_mark, pair_calls
from ricordo.messages.json_text import loads

__all__ = ["TOOL_TAG", "extract_tool_lessons"]


TOOL_TAG = "tool"
"""The tag of a lesson from a tool."""
_CONFIDENCE, _PERSON_CONFIDENCE = 0.5, 0.7
_MAX_DISTANCE = 12
_MIN_SIMILARITY = 0.5
_MAX_SHOWN_CHARS = 100
_MAX_SHOWN_WORDS = 14
_HEAD_CHARS = _TAIL_CHARS = 4_000
_COMMAND_KEYS = frozenset({"command", "cmd", "code", "script", "source"})
_ERROR_NAME = lazy_compile(
    r"\b[A-Z][A-Za-z]{2,40}(?:Error|Exception|Timeout|Refused|Conflict)\b|\bE[A-Z]{4,12}\b(?=[:,. ])|\bE\d{4}\b|"
    r"\bHTTP(?: status| error)? [45]\d\d\b|\b(?:exit|return|status) (?:code|status):? ?[1-9]\d{0,2}\b|"
    r"\b(?:[Cc]ommand not found|[Nn]o such file or directory|[Pp]ermission denied|[Tt]imed out|[Nn]ot found)\b"
)
_EXIT_CODE = lazy_compile(
    r"(?:^|\n)\W{0,3}(?:exit|return)(?:ed with)?(?: (?:code|status))+:? ?(?!0\b)-?\d{1,3}\b", re.IGNORECASE
)
_EXIT_CODE_FIELD = lazy_compile(r'"(?:exit_?code|returncode|return_code)": ?(?!0\b)-?\d{1,3}\b', re.IGNORECASE)
_WORD = lazy_compile(r"\w+")
_TRACEBACK = lazy_compile(r"(?:^|\n)Traceback \(most recent call last\):")
_FIXING_ACTS = frozenset({"convention", "lesson", "correction", "remember", "request"})


@dataclass(frozen=True, kw_only=True)
class _ToolAttempt:
    """One call with its result: their message indexes, its arguments, and whether it failed."""

    call_index: int
    result_index: int
    call: ToolCall
    result: ToolResult
    arguments: Mapping[str, object]
    failed: bool


def extract_tool_lessons(messages: Sequence[Message], *, limit: int = 3) -> tuple[Finding, ...]:
    """Return the lessons of failed and then successful calls in `messages`, in order, at most `limit`; empty for none.

    Each has the kind lesson and the tag `tool`. Its sources are the failed result, its call and the fix. Its confidence
    is moderate unless a person said what to do.
    """
    tries = tuple(_iter_attempts(messages))
    found: dict[str, Finding] = {}
    for number, failed in enumerate(tries):
        if not failed.failed:
            continue
        lesson = _lesson_from_person(messages, failed) or _lesson_from_success(messages, failed, tries[number + 1 :])
        if lesson is not None:
            found.setdefault(lesson.content.casefold(), lesson)
    return tuple(found.values())[:limit]


def _iter_attempts(messages: Sequence[Message]) -> Iterator[_ToolAttempt]:
    for asked, answered in pair_calls(messages).answered:
        call, result = messages[asked.message].parts[asked.part], messages[answered.message].parts[answered.part]
        if (
            isinstance(call, ToolCall)
            and isinstance(result, ToolResult)
            and get_mark(messages[answered.message]) is None
        ):
            arguments = _parse_arguments(call)
            yield _ToolAttempt(
                call_index=asked.message,
                result_index=answered.message,
                call=call,
                result=result,
                arguments=arguments,
                failed=_is_failure(result, arguments),
            )


def _parse_arguments(call: ToolCall) -> Mapping[str, object]:
    try:
        given = loads(call.arguments)
    except InvalidMessage:
        return {}
    return dict(given) if isinstance(given, dict) else {}


def _is_failure(result: ToolResult, arguments: Mapping[str, object]) -> bool:
    """Return whether a call failed: its result is marked as an error, or the output of a command ends in one.

    The content that a tool only reads, such as a log, may contain unrelated failures."""
    if result.is_error:
        return True
    ends = _head_and_tail(result.text)
    ran = not _COMMAND_KEYS.isdisjoint(arguments)
    return ran and any(pattern.search(ends) for pattern in (_EXIT_CODE, _EXIT_CODE_FIELD, _TRACEBACK))


def _head_and_tail(text: str) -> str:
    return text if len(text) <= _HEAD_CHARS + _TAIL_CHARS else f"{text[:_HEAD_CHARS]}\n{text[-_TAIL_CHARS:]}"


def _lesson_from_success(
    messages: Sequence[Message], failed: _ToolAttempt, later: Sequence[_ToolAttempt]
) -> Finding | None:
    """Return the lesson of the next similar try. If that fails too, it has its own lesson."""
    between: list[_ToolAttempt] = []
    for each in later:
        if each.call_index - failed.result_index > _MAX_DISTANCE or each.call_index < failed.result_index:
            return None
        same = each.call.name == failed.call.name and _are_similar(each.arguments, failed.arguments)
        if same and each.failed:
            return None
        if same:
            how = _describe_fix(failed, each, between)
            return None if how is None else _build_finding(messages, failed, how, (*between[-1:], each))
        if not each.failed:
            between.append(each)
    return None


def _describe_fix(failed: _ToolAttempt, worked: _ToolAttempt, between: Sequence[_ToolAttempt]) -> str | None:
    """Return the difference in words, from names and short arguments; None if there is none to describe."""
    changed = [
        key
        for key in (*failed.arguments, *(key for key in worked.arguments if key not in failed.arguments))
        if failed.arguments.get(key) != worked.arguments.get(key)
    ]
    if not changed and between:
        last = between[-1]
        return f"it worked after `{_clean_name(last.call.name)}`{_format_argument(last.arguments)}"
    told = [_describe_change(key, worked.arguments) for key in changed[:2]]
    return f"it worked with {' and '.join(told)}" if told else None


def _describe_change(key: str, worked: Mapping[str, object]) -> str:
    if key not in worked:
        return f"no `{_clean_name(key)}`"
    shown = _format_value(worked[key])
    return f"another `{_clean_name(key)}`" if shown is None else f"{_clean_name(key)} `{shown}`"


def _build_finding(
    messages: Sequence[Message], failed: _ToolAttempt, how: str, fixing: Sequence[_ToolAttempt]
) -> Finding:
    error = _ERROR_NAME.search(_head_and_tail(failed.result.text))
    first, second = (failed.result_index, failed.call_index) if error else (failed.call_index, failed.result_index)
    places = dict.fromkeys(
        (first, second, *(place for each in fixing for place in (each.call_index, each.result_index)))
    )
    return Finding(
        content=f"{_describe_failure(failed)}; {how}.",
        kind="lesson",
        confidence=_CONFIDENCE,
        message_ids=tuple(messages[place].id for place in places),
        quote=error.group() if error else failed.call.name,
        tags=(TOOL_TAG,),
        since=messages[failed.result_index].time,
    )


def _describe_failure(failed: _ToolAttempt) -> str:
    error = _ERROR_NAME.search(_head_and_tail(failed.result.text))
    why = f" with {error.group()}" if error else ""
    return f"Tool `{_clean_name(failed.call.name)}` failed{why}{_format_argument(failed.arguments, ' for')}"


def _lesson_from_person(messages: Sequence[Message], failed: _ToolAttempt) -> Finding | None:
    """Return the lesson of a person's next message, from its first sentence with a correction."""
    for at in range(failed.result_index + 1, min(len(messages), failed.result_index + 4)):
        message = messages[at]
        if message.tool_calls or message.role in {"tool", "system"}:
            return None
        if message.role == "user" and get_mark(message) is None:
            fix = _find_fix(message)
            if fix is None:
                return None
            return Finding(
                content=f"{_describe_failure(failed)}; the user said: {' '.join(fix.split())}",
                kind="lesson",
                confidence=_PERSON_CONFIDENCE,
                message_ids=tuple(
                    dict.fromkeys((message.id, messages[failed.result_index].id, messages[failed.call_index].id))
                ),
                quote=fix,
                tags=(TOOL_TAG,),
                since=message.time,
            )
    return None


def _find_fix(message: Message) -> str | None:
    texts = [part.text for part in message.parts if isinstance(part, Text)]
    for sentence in (each for text in texts for each in split_sentences(text)):
        if sentence.kind not in {"prose", "item"} or not 3 <= len(split_words(sentence.text)) <= 60:
            continue
        found = detect_acts(sentence.text)
        if "question" not in found and (
            found & _FIXING_ACTS or "correction" in default_detector().detect(sentence.text)
        ):
            return sentence.text
    return None


def _are_similar(left: Mapping[str, object], right: Mapping[str, object]) -> bool:
    """Return whether two calls try the same thing: their arguments share more than half of their words."""
    if left == right:
        return True
    return jaccard(_argument_words(left), _argument_words(right)) > _MIN_SIMILARITY


def _argument_words(arguments: Mapping[str, object]) -> frozenset[str]:
    return frozenset(word for value in arguments.values() for word in _WORD.findall(str(value)[:2_000].casefold()))


def _format_argument(arguments: Mapping[str, object], before: str = "") -> str:
    """Return the first argument that can be shown, as code; "" if there is none."""
    shown = next((text for value in arguments.values() if (text := _format_value(value)) is not None), None)
    return "" if shown is None else f"{before} `{shown}`"


def _format_value(value: object) -> str | None:
    """Return a short single line unchanged; None for a long value, or prose."""
    if isinstance(value, bool | int | float):
        return str(value)
    if (
        not isinstance(value, str)
        or not value.strip()
        or len(value) > _MAX_SHOWN_CHARS
        or len(value.split()) > _MAX_SHOWN_WORDS
    ):
        return None
    plain = value.strip()
    return None if "\n" in plain or not plain.isprintable() else plain.replace("`", "'")


def _clean_name(text: str) -> str:
    return "".join(char for char in text if char.isalnum() or char in "_-.")[:60] or "?"
