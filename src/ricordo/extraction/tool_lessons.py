"""Lessons of tools: a failed call, and what made it work. Pure and deterministic.

The fix is what an assistant says with the call that worked, or right after it, also after it looked up a person's
problem; else a later call of the same tool with similar arguments, the calls in between if the arguments stayed the
same, or a person's message right after the failure.

Invariants: of the output of a command only the clause that says what went wrong is copied, if it is short, instructs
nobody and holds no secret; of any other output only the name of an error. Of arguments only short single lines are
shown. Every lesson is based on the messages it names, and its quote is in the first of them.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ricordo.errors import InvalidMessage
from ricordo.extraction.config import RuleExtractionConfig
from ricordo.extraction.contract import Finding, Utterance
from ricordo.extraction.grounding import contains_credential
from ricordo.extraction.selection import rate_statements
from ricordo.extraction.statements import Statement, build_turns, find_machine_text
from ricordo.guard.fence import contains_fence
from ricordo.language import Act, detect_acts, jaccard, opens_with_pronoun, split_sentences, split_words
from ricordo.language.acts import default_detector
from ricordo.language.packs import pack_phrases
from ricordo.lazy import dataclass, lazy_compile
from ricordo.messages import Message, Text, ToolCall, ToolResult, get_mark, pair_calls
from ricordo.messages.json_text import loads

__all__ = ["TOOL_TAG", "extract_tool_lessons"]


TOOL_TAG = "tool"
"""The tag of a lesson from a tool."""
_CONFIDENCE, _PERSON_CONFIDENCE, _REPORT_CONFIDENCE = 0.5, 0.7, 0.7
_MAX_REPORT_DISTANCE = 16
_MAX_FOLLOWING = 4
_MAX_PROBLEM_CHARS = 160
_MAX_SENTENCES = _MAX_SAID = 3
_MAX_ERROR_CHARS = 300
_MIN_EXPLAINING_WORDS = 4
_MIN_EXPLAINING = 0.18
_NOT_EXPLAINING: frozenset[Act] = frozenset({"offer", "question", "self", "thanks", "acknowledgement"})
_MAX_DISTANCE = 12
_MIN_SIMILARITY = 0.5
_MAX_SHOWN_CHARS = 100
_MAX_SHOWN_WORDS = 14
_HEAD_CHARS = _TAIL_CHARS = 4_000
_COMMAND_KEYS = frozenset({"command", "cmd", "code", "script", "source"})
_ERROR_NAME = lazy_compile(
    r"\b[A-Z][A-Za-z]{2,40}(?:Error|Exception|Timeout|Refused|Conflict)\b|\bE(?!RROR\b)[A-Z]{4,12}\b(?=[:,. ])|"
    r"\bE\d{4}\b|\bHTTP(?: status| error)? [45]\d\d\b|\b(?:exit|return|status) (?:code|status):? ?[1-9]\d{0,2}\b|"
    r"\b(?:[Cc]ommand not found|[Nn]o such file or directory|[Pp]ermission denied|[Tt]imed out|[Nn]ot found)\b"
)
_EXIT_CODE = lazy_compile(
    r"(?:^|\n)\W{0,3}(?:exit|return)(?:ed with)?(?: (?:code|status))+:? ?(?!0\b)-?\d{1,3}\b", re.IGNORECASE
)
_EXIT_CODE_FIELD = lazy_compile(r'"(?:exit_?code|returncode|return_code)": ?(?!0\b)-?\d{1,3}\b', re.IGNORECASE)
_ERROR_LINE = lazy_compile(
    r"(?m)^(?:[\w./-]{1,40}: |\W{1,4})?(?:error|fatal|fail(?:ed|ure)?|panic|traceback)\b", re.IGNORECASE
)
_REPORTS = lazy_compile(lambda: rf"^(?:\w+[,.] )?(?:{pack_phrases('report')})", re.IGNORECASE)
_PROBLEM = lazy_compile(
    lambda: (
        r"(?-i:(?<![A-Za-z0-9])[A-Z]{1,4}\d{2,4}(?![A-Za-z0-9]))"
        rf"|(?<!\w)(?:{pack_phrases('problem', edges=True)})(?!\w)|{pack_phrases('problem', edges=False)}"
    ),
    re.IGNORECASE,
)
_MAX_CLAUSE_CHARS, _MIN_CLAUSE_CHARS = 140, 8
_TELLS_ERROR = lazy_compile(lambda: rf"\b(?:{pack_phrases('program_error')})\b|::\w", re.IGNORECASE)
_CLAUSE_END = lazy_compile(r"[.!?](?=\s)|;\s|\s[|(]\s?")
_LINE_LEAD = lazy_compile(r"^(?:(?:npm|yarn|pip|pnpm) ERR!|\[ERROR\]|\[error\]|[>!*#=-]+)\s*")
_COMMANDS_ELSEWHERE = lazy_compile(
    lambda: rf"https?://|\b(?:curl|wget|eval|sudo|base64|npx|{pack_phrases('output_instruction')})\b", re.IGNORECASE
)
_INSTRUCTING: frozenset[Act] = frozenset(
    {"remember", "convention", "decision", "preference", "request", "listener", "moment"}
)
_HTTP_FAILURE = lazy_compile(r"(?:HTTP(?:/[\d.]+)? )?[45]\d\d [A-Z][a-z]+")
_EDITS = lazy_compile(r"edit|write|patch|replace|create", re.IGNORECASE)
_ASSIGNMENT = lazy_compile(r"[A-Z][A-Z0-9_]*=\S+")
_ENOUGH_SHARED, _SHARE = 3, 0.6
_CONFIRMS = lazy_compile(lambda: rf"(?:{pack_phrases('agreement')})(?!\w)", re.IGNORECASE)
_HAS_CODE = lazy_compile(r"\d|[a-z][A-Z]|\bE(?!RROR)[A-Z]")
_WORD = lazy_compile(r"\w+")
_TRACEBACK = lazy_compile(r"(?:^|\n)Traceback \(most recent call last\):")
_RULE_ACTS: frozenset[Act] = frozenset({"convention", "decision", "preference", "remember"})
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
    is moderate unless a person said what to do, or that it worked.
    """
    attempts = tuple(_iter_attempts(messages))
    lessons: dict[str, Finding] = {}
    reported: set[int] = set()
    for report in _find_reports(messages, attempts):
        explained = _build_report(messages, report, [attempts[at] for at in report.failures])
        lessons.setdefault(explained.content.casefold(), explained)
        reported |= {*report.failures}
    for index, failed in enumerate(attempts):
        if not failed.failed or index in reported:
            continue
        lesson = _lesson_from_person(messages, failed) or _lesson_from_success(messages, failed, attempts[index + 1 :])
        if lesson is not None:
            lessons.setdefault(lesson.content.casefold(), lesson)
    return tuple(lessons.values())[:limit]


@dataclass(frozen=True, kw_only=True)
class _Report:
    """What an assistant says about trouble: the problem, the failed attempts, and its sentences by message index."""

    problem: str
    failures: tuple[int, ...]
    sentences: tuple[tuple[int, str], ...]
    end: int


def _find_reports(messages: Sequence[Message], attempts: Sequence[_ToolAttempt]) -> list[_Report]:
    """Return what an assistant explains after trouble, in order: with the call that worked, or after it.

    What follows soon after a report, without trouble of its own, belongs to that report.
    """
    reports: list[_Report] = []
    for position, message in enumerate(messages):
        if not _speaks_after_success(message, position, attempts):
            continue
        previous = reports[-1] if reports else None
        start = max(previous.end if previous else 0, position - _MAX_REPORT_DISTANCE)
        failures = tuple(
            at for at, each in enumerate(attempts) if start <= each.result_index < position and _has_error(each)
        )
        problem = _find_problem(messages[start:position])
        is_strict = failures and not message.tool_calls
        found = _select_explanation(message, _MIN_EXPLAINING if is_strict else _MIN_EXPLAINING / 4)
        sentences = tuple((position, sentence) for sentence in found)
        if not sentences:
            continue
        if failures or problem:
            reports.append(_Report(problem=problem, failures=failures, sentences=sentences, end=position))
        elif previous and position - previous.end <= _MAX_FOLLOWING:
            reports[-1] = replace(previous, sentences=(*previous.sentences, *sentences)[:_MAX_SENTENCES], end=position)
    return reports


def _speaks_after_success(message: Message, position: int, attempts: Sequence[_ToolAttempt]) -> bool:
    """Return whether an assistant's text stands with calls that all worked, or right after one that did."""
    if message.role != "assistant" or get_mark(message) is not None or not message.text.strip():
        return False
    index = "call_index" if message.tool_calls else "result_index"
    at = position if message.tool_calls else position - 1
    done = [each for each in attempts if getattr(each, index) == at]
    return bool(done) and not any(_has_error(each) for each in done)


def _has_error(attempt: _ToolAttempt) -> bool:
    return attempt.failed or (
        (not _COMMAND_KEYS.isdisjoint(attempt.arguments) or len(attempt.result.text) <= _MAX_ERROR_CHARS)
        and _ERROR_LINE.search(attempt.result.text[:_HEAD_CHARS]) is not None
    )


def _find_problem(messages: Sequence[Message]) -> str:
    """Return the last of the few messages of a person that tells of a problem in a few words; "" if there is none."""
    said = [" ".join(each.text.split()) for each in messages if each.role == "user" and get_mark(each) is None]
    problems = (text for text in reversed(said[-_MAX_SAID:]) if len(text) <= _MAX_PROBLEM_CHARS)
    return next((text for text in problems if _PROBLEM.search(text) and not _sets_rule(text)), "")


def _sets_rule(text: str) -> bool:
    return any(detect_acts(sentence.text) & _RULE_ACTS for sentence in split_sentences(text))


def _select_explanation(message: Message, min_relevance: float) -> list[str]:
    """Return the sentences of a report that explain something, in order; empty if none does.

    They begin with one whose subject is no pronoun, if there is one.
    """
    utterance = Utterance(message_id=message.id, role="assistant", text=message.text)
    rated = [
        each
        for turn in build_turns([utterance], RuleExtractionConfig())
        for each in rate_statements(turn, min_relevance)
        if not each.statement.acts & _NOT_EXPLAINING and not _REPORTS.match(each.statement.text)
    ]
    if not any(each.is_kept for each in rated):
        return []
    explaining = [
        each.statement for each in rated if each.is_kept or len(each.statement.words) >= _MIN_EXPLAINING_WORDS
    ]
    first = next((at for at, each in enumerate(explaining) if _names_subject(each)), 0)
    return [each.text for each in explaining[first : first + _MAX_SENTENCES]]


def _names_subject(statement: Statement) -> bool:
    return ": " in statement.text or not opens_with_pronoun(statement.text, statement.language)


def _build_report(messages: Sequence[Message], report: _Report, failures: Sequence[_ToolAttempt]) -> Finding:
    text = " ".join(" ".join(sentence for _, sentence in report.sentences).split())
    names = dict.fromkeys(
        match.group() for each in failures if (match := _ERROR_NAME.search(_head_and_tail(each.result.text)))
    )
    missing = [name for name in names if name not in text and _HAS_CODE.search(name)]
    lead = f"{missing[0]}: " if missing else f"“{report.problem}”: " if report.problem and not failures else ""
    position, quote = max(report.sentences, key=lambda said: len(said[1]))
    said = [position, *(at for at, _ in report.sentences)]
    indexes = dict.fromkeys((*said, *(index for each in failures for index in (each.call_index, each.result_index))))
    return Finding(
        content=f"{lead}{text}",
        kind="lesson",
        confidence=_REPORT_CONFIDENCE,
        message_ids=tuple(messages[index].id for index in indexes),
        quote=quote,
        tags=(TOOL_TAG,),
        since=messages[position].time,
    )


def _iter_attempts(messages: Sequence[Message]) -> Iterator[_ToolAttempt]:
    for call_position, result_position in pair_calls(messages).answered:
        call, result = (
            messages[call_position.message].parts[call_position.part],
            messages[result_position.message].parts[result_position.part],
        )
        if (
            isinstance(call, ToolCall)
            and isinstance(result, ToolResult)
            and get_mark(messages[result_position.message]) is None
        ):
            arguments = _parse_arguments(call)
            yield _ToolAttempt(
                call_index=call_position.message,
                result_index=result_position.message,
                call=call,
                result=result,
                arguments=arguments,
                failed=_is_failure(result, arguments),
            )


def _parse_arguments(call: ToolCall) -> Mapping[str, object]:
    try:
        arguments = loads(call.arguments)
    except InvalidMessage:
        return {}
    return dict(arguments) if isinstance(arguments, dict) else {}


def _is_failure(result: ToolResult, arguments: Mapping[str, object]) -> bool:
    """Return whether a call failed: its result is marked as an error, or the output of a command ends in one.

    The content that a tool only reads, such as a log, may contain unrelated failures."""
    if result.is_error or _HTTP_FAILURE.match(result.text):
        return True
    excerpt = _head_and_tail(result.text)
    is_command = not _COMMAND_KEYS.isdisjoint(arguments)
    return is_command and any(pattern.search(excerpt) for pattern in (_EXIT_CODE, _EXIT_CODE_FIELD, _TRACEBACK))


def _head_and_tail(text: str) -> str:
    return text if len(text) <= _HEAD_CHARS + _TAIL_CHARS else f"{text[:_HEAD_CHARS]}\n{text[-_TAIL_CHARS:]}"


def _lesson_from_success(
    messages: Sequence[Message], failed: _ToolAttempt, later: Sequence[_ToolAttempt]
) -> Finding | None:
    """Return the lesson of the next similar try. If that fails too, it has its own lesson."""
    between: list[_ToolAttempt] = []
    for attempt in later:
        if attempt.call_index - failed.result_index > _MAX_DISTANCE or attempt.call_index < failed.result_index:
            return None
        is_similar = attempt.call.name == failed.call.name and _are_similar(attempt.arguments, failed.arguments)
        if is_similar and attempt.failed:
            return None
        if is_similar:
            fix = _describe_fix(failed, attempt, between)
            return None if fix is None else _build_finding(messages, failed, fix, (*between[-1:], attempt))
        if not attempt.failed and not _EDITS.search(attempt.call.name):
            between.append(attempt)
    return None


def _describe_fix(failed: _ToolAttempt, succeeded: _ToolAttempt, between: Sequence[_ToolAttempt]) -> str | None:
    """Return the difference in words, from names and short arguments; None if there is none to describe."""
    changed = [
        key
        for key in (*failed.arguments, *(key for key in succeeded.arguments if key not in failed.arguments))
        if failed.arguments.get(key) != succeeded.arguments.get(key)
    ]
    if not changed and between:
        last = between[-1]
        return f"it worked after `{_clean_name(last.call.name)}`{_format_argument(last.arguments)}"
    changes = [_describe_change(key, succeeded.arguments) for key in changed[:2]]
    return f"it worked with {' and '.join(changes)}" if changes else None


def _describe_change(key: str, arguments: Mapping[str, object]) -> str:
    if key not in arguments:
        return f"no `{_clean_name(key)}`"
    value = _format_value(arguments[key])
    return f"another `{_clean_name(key)}`" if value is None else f"{_clean_name(key)} `{value}`"


def _build_finding(
    messages: Sequence[Message], failed: _ToolAttempt, fix: str, fix_attempts: Sequence[_ToolAttempt]
) -> Finding:
    error, last = _find_error(failed), fix_attempts[-1].result_index
    first, second = (failed.result_index, failed.call_index) if error else (failed.call_index, failed.result_index)
    message_indexes = dict.fromkeys(
        (first, second, *(index for each in fix_attempts for index in (each.call_index, each.result_index)))
    )
    return Finding(
        content=f"{_describe_failure(failed)}; {fix}.",
        kind="lesson",
        confidence=_PERSON_CONFIDENCE if _is_confirmed(messages[last + 1 : last + 3]) else _CONFIDENCE,
        message_ids=tuple(messages[index].id for index in message_indexes),
        quote=error or failed.call.name,
        tags=(TOOL_TAG,),
        since=messages[failed.result_index].time,
    )


def _is_confirmed(following: Sequence[Message]) -> bool:
    """Return whether a person says of a fix that it worked: "that was it"."""
    said = next((each for each in following if each.role == "user" and get_mark(each) is None), None)
    return said is not None and _CONFIRMS.match(said.text.strip()) is not None


def _describe_failure(failed: _ToolAttempt) -> str:
    error = _find_error(failed)
    shown = error if " " not in error or _ERROR_NAME.fullmatch(error) else f"“{error}”"
    reason = f" with {shown}" if error else ""
    return f"Tool `{_clean_name(failed.call.name)}` failed{reason}{_format_argument(failed.arguments, ' for')}"


def _find_error(failed: _ToolAttempt) -> str:
    """Return the clause of a command's output that says what went wrong; else the name of the error, or nothing."""
    excerpt = _head_and_tail(failed.result.text)
    name = _ERROR_NAME.search(excerpt)
    if _COMMAND_KEYS.isdisjoint(failed.arguments):
        return name.group() if name else ""
    lines = [_LINE_LEAD.sub("", line.strip(), count=1) for line in excerpt.splitlines() if line.strip()]
    if _TRACEBACK.search(excerpt):
        lines = lines[-1:]
    telling = [line for line in lines if _ERROR_NAME.search(line) or _TELLS_ERROR.search(line)]
    clauses = (_cut_clause(line) for line in (*telling, *(lines if failed.result.is_error else ())))
    return next((each for each in clauses if _is_harmless(each)), name.group() if name else "")


def _cut_clause(line: str) -> str:
    """Return the first clause of a line, verbatim, up to a whole word."""
    end = _CLAUSE_END.search(line, _MIN_CLAUSE_CHARS)
    clause = line[: end.start()] if end else line
    return clause if len(clause) <= _MAX_CLAUSE_CHARS else clause[:_MAX_CLAUSE_CHARS].rsplit(" ", 1)[0]


def _is_harmless(clause: str) -> bool:
    """Return whether a clause of an output may be kept: it instructs nobody and holds no secret and no address."""
    is_plain = len(clause) >= _MIN_CLAUSE_CHARS and clause.isprintable() and not _COMMANDS_ELSEWHERE.search(clause)
    parts = (clause, *clause.split(": ")[1:])
    is_quiet = is_plain and not any(detect_acts(part) & _INSTRUCTING or find_machine_text(part) for part in parts)
    return is_quiet and not contains_credential(clause) and not contains_fence(clause)


def _lesson_from_person(messages: Sequence[Message], failed: _ToolAttempt) -> Finding | None:
    """Return the lesson of a person's next message, from its first sentence with a correction."""
    for index in range(failed.result_index + 1, min(len(messages), failed.result_index + 4)):
        message = messages[index]
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
        acts = detect_acts(sentence.text)
        if "question" not in acts and (acts & _FIXING_ACTS or "correction" in default_detector().detect(sentence.text)):
            return sentence.text
    return None


def _are_similar(left: Mapping[str, object], right: Mapping[str, object]) -> bool:
    """Return whether two calls try the same thing: their arguments share more than half of their words."""
    if left == right:
        return True
    words, others = _argument_words(left), _argument_words(right)
    return jaccard(words, others) > _MIN_SIMILARITY or _extends(left, right) or _varies(left, right)


def _argument_words(arguments: Mapping[str, object]) -> frozenset[str]:
    return frozenset(word for value in arguments.values() for word in _WORD.findall(str(value)[:2_000].casefold()))


def _extends(left: Mapping[str, object], right: Mapping[str, object]) -> bool:
    """Return whether one call is the other with options, or variables of the environment, added."""
    shorter, longer = sorted((_split_arguments(left), _split_arguments(right)), key=len)
    if not shorter or not set(shorter) <= set(longer):
        return False
    added = [word for word in longer if word not in shorter]
    return added[0].startswith("-") or _ASSIGNMENT.fullmatch(added[0]) is not None if added else True


def _varies(left: Mapping[str, object], right: Mapping[str, object]) -> bool:
    """Return whether two commands begin alike and share most of their words: `git push origin main`, `… HEAD:next`."""
    first, second = _split_arguments(left), _split_arguments(right)
    shared = set(first) & set(second)
    return first[:2] == second[:2] and len(shared) >= max(_ENOUGH_SHARED, _SHARE * len(set(first)))


def _split_arguments(arguments: Mapping[str, object]) -> list[str]:
    return [word for value in arguments.values() for word in str(value)[:2_000].split()]


def _format_argument(arguments: Mapping[str, object], prefix: str = "") -> str:
    """Return the first argument that can be shown, as code; "" if there is none."""
    value_text = next((text for value in arguments.values() if (text := _format_value(value)) is not None), None)
    return "" if value_text is None else f"{prefix} `{value_text}`"


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
