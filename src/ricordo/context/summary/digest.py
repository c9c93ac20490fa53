"""The digest: a rule-based summary whose lines are taken from the conversation and never invented. Pure functions.

Requests, decisions and answers are detected as in extraction, so that digest and ledger agree. Files and failed
commands have their own lines. Lines of an earlier digest give way to newer ones, so nothing is rephrased twice.

Invariant: it stays within the limit, and is empty only if the conversation is empty or the limit holds no line.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import field, replace
from itertools import chain, pairwise

from ricordo.context.summary.sections import (
    CORRECTED_PREFIX,
    REPLACED_PREFIX,
    SECTION_NAMES,
    DigestLine,
    cite_range,
    fit_lines,
    shorten_ids,
)
from ricordo.context.summary_message import summary_body
from ricordo.errors import InvalidMessage
from ricordo.extraction.rules import extract
from ricordo.language import (
    content_words,
    detect_acts,
    detect_language,
    is_correction,
    overlap,
    split_sentences,
    strip_opener,
)
from ricordo.language.packs import pack_phrases
from ricordo.lazy import dataclass, lazy_compile
from ricordo.messages import JsonValue, Message, ToolCall, ToolResult, get_mark, pair_calls
from ricordo.messages.json_text import loads
from ricordo.messages.tokens.budget import clip_line
from ricordo.workspace.titles import extract_tags, extract_title

__all__ = ["DigestInput", "build_digest", "dialogue_lines", "extract_tags", "extract_title", "tool_lines"]


_MAX_REQUEST_CHARS = 180
_MAX_FINDING_CHARS = 240
_MAX_ANSWER_CHARS = 160
_MAX_REPLACED_CHARS = 90
_MIN_SIMILARITY = 0.5
_MIN_SHARED_WORDS = 2
_MIN_CONTENT_WORDS = 2
_KIND_LABELS = {
    "decision": "decided",
    "convention": "rule",
    "preference": "prefers",
    "lesson": "learned",
    "goal": "goal",
}
_KIND_WEIGHTS = {"decision": 0.5, "convention": 0.4, "lesson": 0.4, "goal": 0.4, "preference": 0.3}
_REMEMBER_LABEL = "remember"
_EXPLICIT_CONFIDENCE = 0.95
"""The confidence of explicit requests to remember, see `ricordo.extraction.selection`; no other finding has it."""
_NOISE_ACTS = frozenset({"greeting", "farewell", "thanks", "praise", "wish", "acknowledgement", "reaction"})
_LABEL = lazy_compile(r"^(?:decided|rule|prefers|learned|goal|remember|answered|asked|about): ")
_CLAUSE_END = lazy_compile(r"[,;:–—.](?=\s|$)")
_OBJECTION = lazy_compile(
    lambda: (
        rf"\W*(?:(?:{pack_phrases('no_in_summary')})\s*[,.!:;–—-]|(?:{pack_phrases('objection')})\b"
        rf"|{pack_phrases('objection_joined')})"
    ),
    re.IGNORECASE,
)
_LETTERS = lazy_compile(r"[^\W\d_]{2}")


@dataclass(frozen=True, kw_only=True)
class DigestInput:
    """The messages to summarize in order, and the short names of their ids."""

    messages: tuple[Message, ...]
    names: Mapping[str, str]

    @property
    def has_several_speakers(self) -> bool:
        """Whether two or more named speakers talk, rather than a user and an agent."""
        return len({message.name for message in self.messages if message.name and message.role != "tool"}) > 1

    def lateness(self, index: int) -> float:
        """Return how late a message comes, from 0 to 1."""
        return index / max(1, len(self.messages) - 1)


def dialogue_lines(
    conversation: DigestInput, earlier: Sequence[DigestLine] = (), *, is_ended: bool = False
) -> Iterator[DigestLine]:
    """Yield unordered lines: those of `earlier` summaries that still hold, and those of the conversation.

    `is_ended` says that nothing follows the conversation, so that a message without a reply is open.
    """
    yield from _finding_lines(conversation, earlier)
    if not conversation.has_several_speakers:
        yield from _request_lines(conversation)
        yield from _answer_lines(conversation)
    if is_ended:
        yield from _open_lines(conversation)


def _finding_lines(conversation: DigestInput, earlier: Sequence[DigestLine]) -> Iterator[DigestLine]:
    positions = {message.id: position for position, message in enumerate(conversation.messages) if message.id}
    findings = extract(conversation.messages)
    texts = [line.text for line in earlier] + [finding.content for finding in findings]
    corrected = _find_corrected(conversation)
    objected = {
        conversation.messages[position].id
        for position in corrected
        if _OBJECTION.match(conversation.messages[position].text)
    }
    correcting = {
        len(earlier) + number
        for number, finding in enumerate(findings)
        if finding.corrects and objected.isdisjoint(finding.message_ids[:1])
    }
    replaced = _match_replacements(texts, correcting)
    replaced_numbers = set(replaced.values())
    yield from (line for number, line in enumerate(earlier) if number not in replaced_numbers)
    for number, finding in enumerate(findings, len(earlier)):
        if number in replaced_numbers:
            continue
        position = positions.get(finding.message_ids[0], 0) if finding.message_ids else 0
        kind = _KIND_LABELS.get(finding.kind) or (_REMEMBER_LABEL if finding.confidence >= _EXPLICIT_CONFIDENCE else "")
        text = clip_line(finding.content, _MAX_FINDING_CHARS)
        if number in replaced:
            text += f"{REPLACED_PREFIX}{clip_line(_LABEL.sub('', texts[replaced[number]]), _MAX_REPLACED_CHARS)})"
        elif finding.corrects and position in corrected:
            text += f"{CORRECTED_PREFIX}{clip_line(corrected[position], _MAX_REPLACED_CHARS)})"
        weight = (
            1.0
            + finding.confidence
            + _KIND_WEIGHTS.get(finding.kind, 0.0)
            + 0.3 * finding.corrects
            + 0.3 * conversation.lateness(position)
        )
        cite = cite_range(sorted(finding.message_ids, key=lambda each: positions.get(each, 0)), conversation.names)
        section = 3 if finding.kind == "goal" else 1
        yield DigestLine(
            section=section, text=f"{kind}: {text}" if kind else text, position=position, weight=weight, cite=cite
        )


def _match_replacements(texts: Sequence[str], correcting: AbstractSet[int]) -> dict[int, int]:
    """Return which earlier text each correcting one replaces: the most similar one, if it is similar enough."""
    unlabelled = [_LABEL.sub("", text) for text in texts]
    words = [frozenset(content_words(text, "en")) for text in unlabelled]
    heads = [frozenset(content_words(_CLAUSE_END.split(text, maxsplit=1)[0], "en")) for text in unlabelled]
    replacements: dict[int, int] = {}
    for number in sorted(correcting):
        candidates = [
            (max(_similarity(words[number], words[earlier]), _similarity(heads[number], heads[earlier])), earlier)
            for earlier in range(number)
            if earlier not in replacements.values()
        ]
        best = max(candidates, default=(0.0, -1))
        if best[0] >= _MIN_SIMILARITY:
            replacements[number] = best[1]
    return replacements


def _similarity(left: frozenset[str], right: frozenset[str]) -> float:
    return overlap(left, right) if len(left & right) >= _MIN_SHARED_WORDS else 0.0


def _find_corrected(conversation: DigestInput) -> dict[int, str]:
    """Return the assistant's statement just before each user correction, by the index of the correction."""
    corrected: dict[int, str] = {}
    for index in range(1, len(conversation.messages)):
        before, message = conversation.messages[index - 1], conversation.messages[index]
        if before.role != "assistant" or message.role != "user" or before.name or not is_correction(message.text):
            continue
        if frozenset(content_words(before.text, "en")) & frozenset(content_words(message.text, "en")) and (
            statement := _answer_text(before)
        ):
            corrected[index] = statement
    return corrected


def _request_lines(conversation: DigestInput) -> Iterator[DigestLine]:
    requests = [
        (position, text) for position, message in enumerate(conversation.messages) if (text := _request_text(message))
    ]
    for number, (position, text) in enumerate(requests):
        weight = (
            2.6 if number == 0 else 2.4 if number == len(requests) - 1 else 1.2 + 0.4 * conversation.lateness(position)
        )
        yield DigestLine(
            section=0,
            text=f"asked: {text}",
            position=position,
            weight=weight,
            cite=_cite_message(conversation, position),
        )


def _request_text(message: Message) -> str:
    """Return the requests and questions of a user's message that have content."""
    if message.role != "user" or message.tool_results:
        return ""
    language = detect_language(message.text)
    requests = [
        sentence.text
        for sentence in split_sentences(message.text)
        if sentence.kind in {"prose", "item"}
        and detect_acts(strip_opener(sentence.text), language) & {"request", "question"}
        and len(content_words(sentence.text, language)) >= _MIN_CONTENT_WORDS
    ]
    return clip_line(" ".join(strip_opener(text) for text in requests), _MAX_REQUEST_CHARS)


def _answer_lines(conversation: DigestInput) -> Iterator[DigestLine]:
    """Yield the assistant's last answer before each user message: the result of a piece of work."""
    corrected = _find_corrected(conversation)
    for position, message in enumerate(conversation.messages):
        following = conversation.messages[position + 1] if position + 1 < len(conversation.messages) else None
        if position + 1 in corrected:
            continue
        if message.role != "assistant" or message.tool_calls or (following is not None and following.role != "user"):
            continue
        text = _answer_text(message)
        if text:
            weight = 0.8 + 0.8 * conversation.lateness(position)
            yield DigestLine(
                section=1,
                text=f"answered: {text}",
                position=position,
                weight=weight,
                cite=_cite_message(conversation, position),
            )


def _answer_text(message: Message) -> str:
    """Return the informative sentences of an answer, cut to the maximum length."""
    language = detect_language(message.text)
    informative = [
        sentence.text
        for sentence in split_sentences(message.text)
        if sentence.kind in {"prose", "item"}
        and "question" not in (acts := detect_acts(sentence.text, language))
        and not (acts & _NOISE_ACTS and len(content_words(sentence.text, language)) <= _MIN_CONTENT_WORDS)
        and _LETTERS.search(sentence.text)
    ]
    text = " ".join(informative)
    return clip_line(text, _MAX_ANSWER_CHARS) if len(content_words(text, language)) > _MIN_CONTENT_WORDS else ""


def _open_lines(conversation: DigestInput) -> Iterator[DigestLine]:
    """Yield what is open at the end: the user's last message without a reply, or the assistant's question."""
    positions = [
        position
        for position, message in enumerate(conversation.messages)
        if message.role in {"user", "assistant"} and message.text.strip()
    ]
    if not positions:
        return
    position = positions[-1]
    message = conversation.messages[position]
    if message.role == "user" and not conversation.has_several_speakers:
        text = clip_line(message.text, _MAX_REQUEST_CHARS)
        yield DigestLine(
            section=3,
            text=f"last word, without a reply: {text}",
            position=position,
            weight=2.8,
            cite=_cite_message(conversation, position),
        )
        return
    questions = [
        s.text for s in split_sentences(message.text) if s.kind == "prose" and "question" in detect_acts(s.text)
    ]
    if questions:
        speaker = message.name or ("the user" if message.role == "user" else "the assistant")
        text = clip_line(questions[-1], _MAX_REQUEST_CHARS)
        yield DigestLine(
            section=3,
            text=f"{speaker} asked: {text}",
            position=position,
            weight=2.5,
            cite=_cite_message(conversation, position),
        )


def _cite_message(conversation: DigestInput, index: int) -> str:
    return cite_range([conversation.messages[index].id], conversation.names)


_PATH_ARGUMENTS = ("path", "file_path", "filename", "file", "target_file", "notebook_path")
_COMMAND_ARGUMENTS = ("command", "cmd", "script", "code", "query", "pattern", "url", "q")
_CHANGING_TOOL = lazy_compile(r"write|edit|creat|patch|replace|delet|remov|mov|insert|append|save", re.IGNORECASE)
_FAILURE = lazy_compile(
    r"^\W{0,4}(?:[\w./-]{1,80}: )?(?:error|fatal|failed|failure|not ok|npm ERR!|permission denied|traceback)\b"
    r"|^\W{0,4}(?:ERR|FAIL)[A-Z_0-9]*\b"
    r"|^\s*[✖✗❌]"
    r"|\b[A-Z]\w*(?:Error|Exception)\b"
    r"|\b(?:command not found|no such file or directory|permission denied|segmentation fault|connection refused)\b"
    r"|\bexit (?:code|status) [1-9]|\bfailed with\b",
    re.IGNORECASE,
)
_NO_FAILURE = lazy_compile(
    r"^\W{0,4}(?:0|no) (?:errors?|failures?|failed)\b|\b(?:errors?|failed|failures?)[:= ]+0\b", re.IGNORECASE
)
_CAUSE = lazy_compile(r"\w+(?:Error|Exception)\b|\berror\b|\bfatal\b", re.IGNORECASE)
_READING_TOOL = lazy_compile(r"read|view|open|cat|grep|search|glob|list|find|fetch|get", re.IGNORECASE)
_CD_PREFIX = lazy_compile(r"^cd [^&;|]{1,200}(?:&&|;)\s*")
_MAX_COMMAND_CHARS = 110
_MAX_RESULT_CHARS = 130


@dataclass
class _FileActivity:
    """The calls seen so far for one file."""

    at: int
    ids: list[str] = field(default_factory=list)
    tools: dict[str, None] = field(default_factory=dict)


def tool_lines(conversation: DigestInput) -> Iterator[DigestLine]:
    """Yield the lines of files and commands, unordered."""
    results = _results_by_call(conversation)
    files: dict[str, _FileActivity] = {}
    for position, message in enumerate(conversation.messages):
        for part_index, part in enumerate(message.parts):
            if isinstance(part, ToolCall):
                answer = results.get((position, part_index))
                arguments = _text_arguments(part)
                path = _first_argument(arguments, _PATH_ARGUMENTS)
                if path and (_CHANGING_TOOL.search(part.name) or not _find_failure(part, answer)):
                    activity = files.setdefault(path, _FileActivity(at=position))
                    activity.at = position
                    activity.ids.append(message.id)
                    activity.tools[part.name] = None
                yield from _command_lines(conversation, position, part, arguments, answer)
    yield from _file_lines(conversation, files)


def _results_by_call(conversation: DigestInput) -> Mapping[tuple[int, int], ToolResult]:
    results: dict[tuple[int, int], ToolResult] = {}
    for call, result in pair_calls(conversation.messages).answered:
        part = conversation.messages[result.message].parts[result.part]
        if isinstance(part, ToolResult):
            results[call.message, call.part] = part
    return results


def _command_lines(
    conversation: DigestInput, position: int, call: ToolCall, arguments: Mapping[str, str], answer: ToolResult | None
) -> Iterator[DigestLine]:
    """Yield the line of a call, with its failure or its last output line."""
    failure = _find_failure(call, answer)
    command = _CD_PREFIX.sub("", _first_argument(arguments, _COMMAND_ARGUMENTS)) or _first_argument(
        arguments, _PATH_ARGUMENTS
    )
    if not failure and (not _first_argument(arguments, _COMMAND_ARGUMENTS) or not command):
        return
    outcome = failure or _last_line(answer)
    text = f"{call.name}: {clip_line(command, _MAX_COMMAND_CHARS)}" if command else call.name
    if outcome:
        text += f" -> {'failed: ' if failure else ''}{clip_line(outcome, _MAX_RESULT_CHARS)}"
    weight = (0.7 if failure else 0.2) + 0.8 * conversation.lateness(position)
    yield DigestLine(
        section=2,
        text=text,
        position=position,
        weight=weight,
        cite=cite_range([conversation.messages[position].id], conversation.names),
    )


def _file_lines(conversation: DigestInput, files: Mapping[str, _FileActivity]) -> Iterator[DigestLine]:
    for path, activity in files.items():
        is_changed = any(_CHANGING_TOOL.search(tool) for tool in activity.tools)
        tools = ", ".join(activity.tools)
        weight = (1.2 if is_changed else 0.5) + 0.5 * conversation.lateness(activity.at)
        cite = cite_range([activity.ids[0], activity.ids[-1]], conversation.names)
        yield DigestLine(
            section=2,
            text=f"{clip_line(path, _MAX_COMMAND_CHARS)}: {tools}",
            position=activity.at,
            weight=weight,
            cite=cite,
        )


def _find_failure(call: ToolCall, answer: ToolResult | None) -> str:
    """Return the line of a result that describes the failure; empty if no failure is visible.

    The output of a reading tool is content: it fails only if the result is marked as an error.
    """
    if answer is None or not (answer.is_error or not _READING_TOOL.match(call.name)):
        return ""
    lines = [line.strip() for line in answer.text.splitlines() if line.strip()]
    failures = [line for line in lines if _FAILURE.search(line) and not _NO_FAILURE.search(line)]
    causes = [line for line in failures if _CAUSE.search(line)]
    return (causes or failures or (lines or ["it failed"] if answer.is_error else [""]))[0]


def _last_line(answer: ToolResult | None) -> str:
    lines = [line.strip() for line in answer.text.splitlines() if line.strip()] if answer else []
    return lines[-1] if lines else ""


def _text_arguments(call: ToolCall) -> Mapping[str, str]:
    try:
        value: JsonValue = loads(call.arguments)
    except (InvalidMessage, RecursionError):
        return {}
    return {key: item for key, item in value.items() if isinstance(item, str)} if isinstance(value, dict) else {}


def _first_argument(arguments: Mapping[str, str], keys: tuple[str, ...]) -> str:
    return next((value for key in keys if (value := " ".join(arguments.get(key, "").split()))), "")


_TOPIC_WEIGHT = 3.0
_FIRST_TOPIC_WEIGHT = 1.5
_NOTICE_WEIGHT = 1.8
_MAX_LINE_CHARS = 340
_SECTION_WEIGHTS = (1.9, 1.6, 0.9, 1.2)
_LABEL_WEIGHTS = {
    "decided": 2.1,
    "rule": 2.1,
    "prefers": 2.0,
    "learned": 2.0,
    "remember": 2.0,
    "goal": 1.9,
    "about": 0.5,
    "asked": 1.0,
    "answered": 0.7,
    "bash": 0.2,
}
_MAX_READ_MESSAGES, _FIRST_MESSAGES, _NEWEST_MESSAGES, _MAX_LOOKED_AT = 400, 20, 200, 1_000
_TELLING_ACTS = frozenset({"convention", "correction", "decision", "goal", "lesson", "preference", "remember"})
_CITATION = lazy_compile(r" (\[\w[^\]\s]*\])$")
_EMPTY_LINES = {"none", "(none)", "none.", "n/a"}


def build_digest(messages: Sequence[Message], *, limit_tokens: int = 2_000, is_ended: bool = False) -> str:
    """Return a summary of `messages` in at most `limit_tokens` tokens; empty if there is no content.

    Summaries among the messages are included. Recalled memory is not, because it is not part of the conversation.
    `is_ended` says that no message follows, so that a message without a reply is open.
    """
    messages_to_digest = tuple(
        message for message in messages if message.role != "system" and get_mark(message) in {None, "cut"}
    )
    conversation = DigestInput(messages=messages_to_digest, names=shorten_ids([message.id for message in messages]))
    positions = _choose_positions(messages_to_digest)
    read = replace(conversation, messages=tuple(messages_to_digest[position] for position in positions))
    said_lines = [*_topic_line(read), *dialogue_lines(read, list(_earlier_lines(messages)), is_ended=is_ended)]
    lines = [
        *(replace(line, position=positions[line.position]) if line.position >= 0 else line for line in said_lines),
        *tool_lines(conversation),
        *_notice_lines(messages, conversation),
    ]
    return fit_lines(lines, limit_tokens) or fit_lines(list(_opening_lines(conversation)), limit_tokens)


def _choose_positions(messages: Sequence[Message]) -> Sequence[int]:
    """Return the positions of the messages whose words are read, in order: all, or in a long conversation the first,
    the newest, and users' messages between them that decide or correct, each with the message before it.

    A digest has some dozens of lines, so a few hundred messages fill it; reading one takes about two milliseconds.
    """
    spoken = [
        position
        for position, message in enumerate(messages)
        if message.role in {"user", "assistant"} and message.text.strip() and not message.tool_calls
    ]
    if len(spoken) <= _MAX_READ_MESSAGES:
        return range(len(messages))
    first, newest = spoken[:_FIRST_MESSAGES], spoken[-_NEWEST_MESSAGES:]
    between = pairwise(spoken[_FIRST_MESSAGES:-_NEWEST_MESSAGES])
    by_users = [pair for pair in between if messages[pair[1]].role == "user"]
    telling = [pair for pair in by_users[-_MAX_LOOKED_AT:] if detect_acts(messages[pair[1]].text) & _TELLING_ACTS]
    room = (_MAX_READ_MESSAGES - _FIRST_MESSAGES - _NEWEST_MESSAGES) // 2
    return sorted({*first, *chain.from_iterable(telling[-room:]), *newest})


def _topic_line(conversation: DigestInput) -> Iterator[DigestLine]:
    title = extract_title(conversation.messages)
    if not title:
        return
    topics = ", ".join(extract_tags(conversation.messages))
    people = (
        list(dict.fromkeys(message.name for message in conversation.messages if message.name))
        if conversation.has_several_speakers
        else []
    )
    speakers = f" ({', '.join(people)})" if people else ""
    cite = cite_range([conversation.messages[0].id, conversation.messages[-1].id], conversation.names)
    text = f"about{speakers}: {title}" + (f" ({topics})" if topics else "")
    yield DigestLine(section=0, text=text, position=-1, weight=_TOPIC_WEIGHT, cite=cite, allows_repetition=True)


def _earlier_lines(messages: Sequence[Message]) -> Iterator[DigestLine]:
    """Yield the lines of earlier summaries, positioned before all others of their section."""
    bodies = [summary_body(message) for message in messages if get_mark(message) == "summary"]
    count = sum(body.count("\n") + 1 for body in bodies)
    position = -count - 1
    has_title = False
    for body in bodies:
        section = 1
        for line in body.splitlines():
            heading = line.strip(" #*_:").upper()
            text = line.strip().lstrip("-*• ").strip()
            position += 1
            if heading in SECTION_NAMES:
                section = SECTION_NAMES.index(heading)
            elif text and text.casefold() not in _EMPTY_LINES:
                match = _CITATION.search(text)
                text, cite = (text[: match.start()], match[1]) if match else (text, "")
                weight = _earlier_weight(text, section) + 0.2 * (1 + position / count)
                if section == 0 and text.startswith("about") and not has_title:
                    weight, has_title = weight + _FIRST_TOPIC_WEIGHT, True
                yield DigestLine(
                    section=section, text=clip_line(text, _MAX_LINE_CHARS), position=position, weight=weight, cite=cite
                )


def _earlier_weight(text: str, section: int) -> float:
    """Return the weight of an earlier line: lasting rules weigh as much as new ones, finished work weighs less."""
    label, colon, _ = text.partition(": ")
    return _LABEL_WEIGHTS.get(label, _SECTION_WEIGHTS[section]) if colon else _SECTION_WEIGHTS[section]


def _notice_lines(messages: Sequence[Message], conversation: DigestInput) -> Iterator[DigestLine]:
    """Yield the notices of the harness to the model, such as the result of background work."""
    for position, message in enumerate(messages):
        if get_mark(message) == "notice" and message.text.strip():
            cite = cite_range([message.id], conversation.names)
            yield DigestLine(
                section=1,
                text=f"notice: {clip_line(message.text, _MAX_LINE_CHARS)}",
                position=position,
                weight=_NOTICE_WEIGHT,
                cite=cite,
            )


def _opening_lines(conversation: DigestInput) -> Iterator[DigestLine]:
    """Yield the beginning of each message, as a fallback if no better line is found or fits."""
    for position, message in enumerate(conversation.messages):
        text = clip_line(message.text, 60)
        if text:
            yield DigestLine(
                section=1,
                text=f"{message.name or message.role}: {text}",
                position=position,
                weight=1.0 + conversation.lateness(position),
            )
