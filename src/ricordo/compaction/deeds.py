"""What was done with tools, as lines of a digest: files with what happened to them, commands with what came of them.

Pure. A file is one line whatever was done to it how often; a command is a line when it failed or is among the last.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ricordo.compaction.lines import DigestLine, cite_range, clip_line
from ricordo.compaction.said import DigestInput
from ricordo.errors import InvalidMessage
from ricordo.messages import JsonValue, ToolCall, ToolResult, pair_calls
from ricordo.messages.jsontext import loads

__all__ = ["tool_lines"]

_PATH_ARGUMENTS = ("path", "file_path", "filename", "file", "target_file", "notebook_path")
_COMMAND_ARGUMENTS = ("command", "cmd", "script", "code", "query", "pattern", "url", "q")
_CHANGING_TOOL = re.compile(r"write|edit|creat|patch|replace|delet|remov|mov|insert|append|save", re.IGNORECASE)
_FAILURE = re.compile(
    r"^\W{0,4}(?:[\w./-]{1,80}: )?(?:error|fatal|failed|failure|not ok|npm ERR!|permission denied|traceback)\b"
    r"|^\W{0,4}(?:ERR|FAIL)[A-Z_0-9]*\b"
    r"|^\s*[✖✗❌]"
    r"|\b[A-Z]\w*(?:Error|Exception)\b"
    r"|\b(?:command not found|no such file or directory|permission denied|segmentation fault|connection refused)\b"
    r"|\bexit (?:code|status) [1-9]|\bfailed with\b",
    re.IGNORECASE,
)
_NO_FAILURE = re.compile(
    r"^\W{0,4}(?:0|no) (?:errors?|failures?|failed)\b|\b(?:errors?|failed|failures?)[:= ]+0\b", re.IGNORECASE
)
_CAUSE = re.compile(r"\w+(?:Error|Exception)\b|\berror\b|\bfatal\b", re.IGNORECASE)
_READING_TOOL = re.compile(r"read|view|open|cat|grep|search|glob|list|find|fetch|get", re.IGNORECASE)
_CD_PREFIX = re.compile(r"^cd [^&;|]{1,200}(?:&&|;)\s*")
_MAX_COMMAND_CHARS = 110
_MAX_RESULT_CHARS = 130


@dataclass
class _FileActivity:
    """What is known of one file while the calls are read."""

    at: int
    ids: list[str] = field(default_factory=list)
    tools: dict[str, None] = field(default_factory=dict)


def tool_lines(talk: DigestInput) -> Iterator[DigestLine]:
    """Yield the lines, not in order."""
    results = _results_by_call(talk)
    files: dict[str, _FileActivity] = {}
    for at, message in enumerate(talk.messages):
        for place, part in enumerate(message.parts):
            if isinstance(part, ToolCall):
                answer = results.get((at, place))
                named = _text_arguments(part)
                path = _first_argument(named, _PATH_ARGUMENTS)
                if path and (_CHANGING_TOOL.search(part.name) or not _find_failure(part, answer)):
                    known = files.setdefault(path, _FileActivity(at=at))
                    known.at = at
                    known.ids.append(message.id)
                    known.tools[part.name] = None
                yield from _command_lines(talk, at, part, named, answer)
    yield from _file_lines(talk, files)


def _results_by_call(talk: DigestInput) -> Mapping[tuple[int, int], ToolResult]:
    found: dict[tuple[int, int], ToolResult] = {}
    for call, result in pair_calls(talk.messages).answered:
        part = talk.messages[result.message].parts[result.part]
        if isinstance(part, ToolResult):
            found[call.message, call.part] = part
    return found


def _command_lines(
    talk: DigestInput, at: int, call: ToolCall, named: Mapping[str, str], answer: ToolResult | None
) -> Iterator[DigestLine]:
    """A call that failed, and what the latest ones came to."""
    failed = _find_failure(call, answer)
    asked = _CD_PREFIX.sub("", _first_argument(named, _COMMAND_ARGUMENTS)) or _first_argument(named, _PATH_ARGUMENTS)
    if not failed and (not _first_argument(named, _COMMAND_ARGUMENTS) or not asked):
        return
    came = failed or _last_line(answer)
    text = f"{call.name}: {clip_line(asked, _MAX_COMMAND_CHARS)}" if asked else call.name
    if came:
        text += f" -> {'failed: ' if failed else ''}{clip_line(came, _MAX_RESULT_CHARS)}"
    weight = (0.7 if failed else 0.2) + 0.8 * talk.lateness(at)
    yield DigestLine(
        section=2, text=text, position=at, weight=weight, cite=cite_range([talk.messages[at].id], talk.names)
    )


def _file_lines(talk: DigestInput, files: Mapping[str, _FileActivity]) -> Iterator[DigestLine]:
    for path, known in files.items():
        changed = any(_CHANGING_TOOL.search(tool) for tool in known.tools)
        tools = ", ".join(known.tools)
        weight = (1.2 if changed else 0.5) + 0.5 * talk.lateness(known.at)
        cite = cite_range([known.ids[0], known.ids[-1]], talk.names)
        yield DigestLine(
            section=2,
            text=f"{clip_line(path, _MAX_COMMAND_CHARS)}: {tools}",
            position=known.at,
            weight=weight,
            cite=cite,
        )


def _find_failure(call: ToolCall, answer: ToolResult | None) -> str:
    """Return the line of a result that says what failed; empty when nothing did, as far as can be seen.

    What a reading tool answers is content: it fails only if the result says so itself.
    """
    if answer is None or not (answer.is_error or not _READING_TOOL.match(call.name)):
        return ""
    lines = [line.strip() for line in answer.text.splitlines() if line.strip()]
    telling = [line for line in lines if _FAILURE.search(line) and not _NO_FAILURE.search(line)]
    causes = [line for line in telling if _CAUSE.search(line)]
    return (causes or telling or (lines or ["it failed"] if answer.is_error else [""]))[0]


def _last_line(answer: ToolResult | None) -> str:
    lines = [line.strip() for line in answer.text.splitlines() if line.strip()] if answer else []
    return lines[-1] if lines else ""


def _text_arguments(call: ToolCall) -> Mapping[str, str]:
    try:
        value: JsonValue = loads(call.arguments)
    except (InvalidMessage, RecursionError):
        return {}
    return {key: item for key, item in value.items() if isinstance(item, str)} if isinstance(value, dict) else {}


def _first_argument(named: Mapping[str, str], keys: tuple[str, ...]) -> str:
    return next((found for key in keys if (found := " ".join(named.get(key, "").split()))), "")
