"""Lessons of tools: a call that failed, and what made it work. Pure and deterministic.

A failure is a result that says so, or a command whose output ends in an exit code or a traceback. What made it work is
a later call of the same tool with nearly the same arguments, the calls in between when the arguments stayed the
same, or what a person said right after the failure.

Invariants: nothing of a tool's output is copied but the name of an error, so what somebody hid in it can't become a
memory; of arguments only short single lines are shown. Every lesson rests on the messages it names, and its quote
stands in the first of them.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ricordo.errors import InvalidMessage
from ricordo.flush.types import Finding
from ricordo.language import acts, jaccard, split_sentences, words
from ricordo.language.signals import bundled
from ricordo.messages import Message, Text, ToolCall, ToolResult, mark_of, pair
from ricordo.messages.jsontext import loads

__all__ = ["TOOL", "tool_lessons"]

TOOL = "tool"
"""The tag of a lesson that a tool taught."""

_CONFIDENCE, _TOLD_CONFIDENCE = 0.5, 0.7
_WITHIN = 12
_ALIKE = 0.5
_SHOWN = 100
_PROSE = 14
_HEAD = _TAIL = 4_000
_COMMAND_KEYS = frozenset({"command", "cmd", "code", "script", "source"})
_ERROR = re.compile(
    r"\b[A-Z][A-Za-z]{2,40}(?:Error|Exception|Timeout|Refused|Conflict)\b|\bE[A-Z]{4,12}\b(?=[:,. ])|\bE\d{4}\b|"
    r"\bHTTP(?: status| error)? [45]\d\d\b|\b(?:exit|return|status) (?:code|status):? ?[1-9]\d{0,2}\b|"
    r"\b(?:[Cc]ommand not found|[Nn]o such file or directory|[Pp]ermission denied|[Tt]imed out|[Nn]ot found)\b"
)
_EXIT = re.compile(
    r"(?:^|\n)\W{0,3}(?:exit|return)(?:ed with)?(?: (?:code|status))+:? ?(?!0\b)-?\d{1,3}\b", re.IGNORECASE
)
_EXIT_FIELD = re.compile(r'"(?:exit_?code|returncode|return_code)": ?(?!0\b)-?\d{1,3}\b', re.IGNORECASE)
_WORD = re.compile(r"\w+")
_TRACEBACK = re.compile(r"(?:^|\n)Traceback \(most recent call last\):")
_FIXING = frozenset({"convention", "lesson", "correction", "remember", "request"})


@dataclass(frozen=True, kw_only=True)
class _Try:
    """One call with its result: where both stand, its arguments, and whether it failed."""

    at: int
    done_at: int
    call: ToolCall
    result: ToolResult
    arguments: Mapping[str, object]
    failed: bool


def tool_lessons(messages: Sequence[Message], *, limit: int = 3) -> tuple[Finding, ...]:
    """Return what failing and then working tools of `messages` teach, in order, at most `limit`; empty for nothing.

    Each is of the kind lesson with the tag `tool`, rests on the failed result, its call and what made it work, and is
    only moderately sure unless a person said what to do.
    """
    tries = tuple(_tries(messages))
    found: dict[str, Finding] = {}
    for number, failed in enumerate(tries):
        if not failed.failed:
            continue
        lesson = _from_a_person(messages, failed) or _from_what_worked(messages, failed, tries[number + 1 :])
        if lesson is not None:
            found.setdefault(lesson.content.casefold(), lesson)
    return tuple(found.values())[:limit]


def _tries(messages: Sequence[Message]) -> Iterator[_Try]:
    for asked, answered in pair(messages).answered:
        call, result = messages[asked.message].parts[asked.part], messages[answered.message].parts[answered.part]
        if (
            isinstance(call, ToolCall)
            and isinstance(result, ToolResult)
            and mark_of(messages[answered.message]) is None
        ):
            arguments = _arguments(call)
            yield _Try(
                at=asked.message,
                done_at=answered.message,
                call=call,
                result=result,
                arguments=arguments,
                failed=_fails(result, arguments),
            )


def _arguments(call: ToolCall) -> Mapping[str, object]:
    try:
        given = loads(call.arguments)
    except InvalidMessage:
        return {}
    return dict(given) if isinstance(given, dict) else {}


def _fails(result: ToolResult, arguments: Mapping[str, object]) -> bool:
    """Say whether a call failed: by its own word, else by the end of what a command printed. What a tool merely reads,
    such as a log, may hold anybody's failures."""
    if result.is_error:
        return True
    ends = _ends(result.text)
    ran = not _COMMAND_KEYS.isdisjoint(arguments)
    return ran and any(pattern.search(ends) for pattern in (_EXIT, _EXIT_FIELD, _TRACEBACK))


def _ends(text: str) -> str:
    return text if len(text) <= _HEAD + _TAIL else f"{text[:_HEAD]}\n{text[-_TAIL:]}"


def _from_what_worked(messages: Sequence[Message], failed: _Try, later: Sequence[_Try]) -> Finding | None:
    """The next try of the same thing decides: when it fails too, the lesson is its own."""
    between: list[_Try] = []
    for each in later:
        if each.at - failed.done_at > _WITHIN or each.at < failed.done_at:
            return None
        same = each.call.name == failed.call.name and _alike(each.arguments, failed.arguments)
        if same and each.failed:
            return None
        if same:
            how = _how(failed, each, between)
            return None if how is None else _finding(messages, failed, how, (*between[-1:], each))
        if not each.failed:
            between.append(each)
    return None


def _how(failed: _Try, worked: _Try, between: Sequence[_Try]) -> str | None:
    """Say what made the difference, from names and short arguments; None when nothing did that can be told."""
    changed = [
        key
        for key in (*failed.arguments, *(key for key in worked.arguments if key not in failed.arguments))
        if failed.arguments.get(key) != worked.arguments.get(key)
    ]
    if not changed and between:
        last = between[-1]
        return f"it worked after `{_name(last.call.name)}`{_with(last.arguments)}"
    told = [_change(key, worked.arguments) for key in changed[:2]]
    return f"it worked with {' and '.join(told)}" if told else None


def _change(key: str, worked: Mapping[str, object]) -> str:
    if key not in worked:
        return f"no `{_name(key)}`"
    shown = _shown(worked[key])
    return f"another `{_name(key)}`" if shown is None else f"{_name(key)} `{shown}`"


def _finding(messages: Sequence[Message], failed: _Try, how: str, fixing: Sequence[_Try]) -> Finding:
    error = _ERROR.search(_ends(failed.result.text))
    first, second = (failed.done_at, failed.at) if error else (failed.at, failed.done_at)
    places = dict.fromkeys((first, second, *(place for each in fixing for place in (each.at, each.done_at))))
    return Finding(
        content=f"{_failure(failed)}; {how}.",
        kind="lesson",
        confidence=_CONFIDENCE,
        message_ids=tuple(messages[place].id for place in places),
        quote=error.group() if error else failed.call.name,
        tags=(TOOL,),
        since=messages[failed.done_at].time,
    )


def _failure(failed: _Try) -> str:
    error = _ERROR.search(_ends(failed.result.text))
    why = f" with {error.group()}" if error else ""
    return f"Tool `{_name(failed.call.name)}` failed{why}{_with(failed.arguments, ' for')}"


def _from_a_person(messages: Sequence[Message], failed: _Try) -> Finding | None:
    """What a person said next, when it sets something right: the first sentence of it that does."""
    for at in range(failed.done_at + 1, min(len(messages), failed.done_at + 4)):
        message = messages[at]
        if message.tool_calls or message.role in {"tool", "system"}:
            return None
        if message.role == "user" and mark_of(message) is None:
            fix = _fix_in(message)
            if fix is None:
                return None
            return Finding(
                content=f"{_failure(failed)}; the user said: {' '.join(fix.split())}",
                kind="lesson",
                confidence=_TOLD_CONFIDENCE,
                message_ids=tuple(dict.fromkeys((message.id, messages[failed.done_at].id, messages[failed.at].id))),
                quote=fix,
                tags=(TOOL,),
                since=message.time,
            )
    return None


def _fix_in(message: Message) -> str | None:
    texts = [part.text for part in message.parts if isinstance(part, Text)]
    for sentence in (each for text in texts for each in split_sentences(text)):
        if sentence.kind not in {"prose", "item"} or not 3 <= len(words(sentence.text)) <= 60:
            continue
        found = acts(sentence.text)
        if "question" not in found and (found & _FIXING or "correction" in bundled().signals_of(sentence.text)):
            return sentence.text
    return None


def _alike(left: Mapping[str, object], right: Mapping[str, object]) -> bool:
    """Say whether two calls try the same thing: they share more than half of the words of their arguments."""
    if left == right:
        return True
    return jaccard(_words(left), _words(right)) > _ALIKE


def _words(arguments: Mapping[str, object]) -> frozenset[str]:
    return frozenset(word for value in arguments.values() for word in _WORD.findall(str(value)[:2_000].casefold()))


def _with(arguments: Mapping[str, object], before: str = "") -> str:
    """Return the first argument that can be shown, in code; "" when none can."""
    shown = next((text for value in arguments.values() if (text := _shown(value)) is not None), None)
    return "" if shown is None else f"{before} `{shown}`"


def _shown(value: object) -> str | None:
    """Return a short single line as it is; None for what is long, or reads like prose rather than an argument."""
    if isinstance(value, bool | int | float):
        return str(value)
    if not isinstance(value, str) or not value.strip() or len(value) > _SHOWN or len(value.split()) > _PROSE:
        return None
    plain = value.strip()
    return None if "\n" in plain or not plain.isprintable() else plain.replace("`", "'")


def _name(text: str) -> str:
    return "".join(char for char in text if char.isalnum() or char in "_-.")[:60] or "?"
