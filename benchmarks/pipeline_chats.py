"""Labelled conversations for the whole offline pipeline: `tests/flush/pipeline_chats/chats.txt`.

A finding answers an expectation when the expected phrase stands in it and its kind is one of the expected, each at most
once; what answers none is noise. The marks are explained at the head of the file.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from ricordo.extraction.contract import Finding
from ricordo.extraction.preprocessing import ProcessingConfig, process_messages
from ricordo.extraction.rules import extract
from ricordo.extraction.tool_lessons import extract_tool_lessons
from ricordo.guard import FencedItem, Trust, render_fence
from ricordo.messages import Message, Text, ToolCall, ToolResult, with_mark

PATH = Path(__file__).parent.parent / "tests" / "flush" / "pipeline_chats" / "chats.txt"
SAID = datetime(2026, 5, 8, 12, 0, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Expected:
    """A finding to expect: its possible kinds, a phrase in it, and whether it is optional."""

    kinds: tuple[str, ...]
    phrase: str
    optional: bool


@dataclass(frozen=True, kw_only=True)
class Chat:
    """One labelled conversation; `said` counts what users and assistants said in it."""

    messages: tuple[Message, ...]
    expected: tuple[Expected, ...]
    said: int


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What was found rightly, found besides, and missed."""

    right: int
    extra: tuple[Finding, ...]
    missed: tuple[Expected, ...]


@cache
def chats() -> tuple[Chat, ...]:
    """Return the conversations, in the order of the file."""
    lines = [line for line in PATH.read_text("utf8").split("\n") if not line.startswith("#")]
    blocks = "\n".join(lines).split("\n\n")
    return tuple(_chat(block.strip().split("\n")) for block in blocks if block.strip())


def found(chat: Chat) -> tuple[Finding, ...]:
    """Return what the pipeline learns of a conversation without a model."""
    read = process_messages(chat.messages, config=ProcessingConfig(both_sides=False))
    return (*extract(read.messages), *extract_tool_lessons(chat.messages))


def outcome(chat: Chat) -> Outcome:
    """Match findings with expectations."""
    left, missed, right = list(found(chat)), [], 0
    for wanted in chat.expected:
        answer = next((each for each in left if each.kind in wanted.kinds and wanted.phrase in each.content), None)
        if answer is not None:
            left.remove(answer)
            right += not wanted.optional
        elif not wanted.optional:
            missed.append(wanted)
    return Outcome(right=right, extra=tuple(left), missed=tuple(missed))


@cache
def outcomes() -> tuple[Outcome, ...]:
    """Return the outcome of each conversation."""
    return tuple(map(outcome, chats()))


def scores() -> tuple[float, float]:
    """Return precision and recall over all conversations."""
    right = sum(each.right for each in outcomes())
    extra, missed = sum(len(each.extra) for each in outcomes()), sum(len(each.missed) for each in outcomes())
    return right / (right + extra), right / (right + missed)


def _chat(lines: list[str]) -> Chat:
    expected = tuple(_expected(line.removeprefix("=> ")) for line in lines if line.startswith("=> "))
    spoken = [line for line in lines if not line.startswith("=> ")]
    messages = tuple(message for at, line in enumerate(spoken) for message in _messages(f"m{at}", line))
    return Chat(
        messages=messages, expected=expected, said=sum(line.startswith(("U: ", "A: ", "F: ")) for line in spoken)
    )


def _expected(line: str) -> Expected:
    kinds, _, phrase = line.partition(" ~ ")
    return Expected(kinds=tuple(kinds.lstrip("?").split("|")), phrase=phrase, optional=kinds.startswith("?"))


def _messages(name: str, line: str) -> Iterator[Message]:
    mark, _, text = line.partition(": ")
    if mark in {"T", "X"}:
        tool, argument, output = text.split(" | ")
        call = ToolCall(id=name, name=tool, arguments=json.dumps({"command": argument}))
        yield Message(role="assistant", id=f"{name}-call", time=SAID, parts=(call,))
        result = ToolResult(call_id=name, parts=(Text(text=output),), is_error=mark == "X")
        yield Message(role="tool", id=f"{name}-result", time=SAID, parts=(result,))
        return
    if mark == "F":
        text = f"<uploaded_files>\n- {text}\n  Path: /mnt/user-data/uploads/{text}\n</uploaded_files>"
    if mark == "R":
        text = render_fence([FencedItem(text=text, source="ledger 2026-05-01", trust=Trust.USER)])
    message = Message(role="assistant" if mark == "A" else "user", id=name, time=SAID, parts=(Text(text=text),))
    if mark == "H":
        message = Message(role="user", id=name, time=SAID, parts=message.parts, metadata={"hide_from_ui": True})
    yield with_mark(message, "memory") if mark == "R" else message
