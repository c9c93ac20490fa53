"""What a conversation says between the lines is found by recall: answers, fixes, habits, facts that belong together."""

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from typing import Literal

import pytest
from anyio.to_thread import run_sync

from command_line import ricordo
from hand_clock import HandClock
from ricordo import Memory, Message
from ricordo.messages import Text, ToolCall, ToolResult

pytestmark = pytest.mark.anyio

Opened = Callable[..., AbstractAsyncContextManager[Memory]]
SAID = datetime(2026, 4, 2, 9, tzinfo=UTC)


def _chat(*lines: str, day: int = 0) -> list[Message]:
    """Messages of a chat; lines of the assistant begin with "A: "."""
    roles: dict[bool, Literal["assistant", "user"]] = {True: "assistant", False: "user"}
    return [
        Message(
            role=roles[line.startswith("A: ")],
            parts=(Text(text=line.removeprefix("A: ")),),
            time=SAID + timedelta(days=day, seconds=at),
        )
        for at, line in enumerate(lines)
    ]


async def _recall(memory: Memory, question: str) -> list[str]:
    return [hit.entry.content for hit in await memory.recall(question) if hit.entry]


@pytest.mark.parametrize(
    ("question", "old", "new"),
    [("What's the session timeout?", "30 minutes", "45 minutes"), ("会话超时设多长？", "三十分钟", "一个小时")],
)
async def test_a_later_answer_to_a_question_replaces_the_earlier_one(
    opened: Opened, question: str, old: str, new: str
) -> None:
    async with opened(clock=HandClock()) as memory:
        await memory.ingest(_chat(f"A: {question}", old), session="first")
        await memory.ingest(_chat(f"A: {question}", new, day=3), session="second")
    await run_sync(ricordo, "consolidate")
    async with opened(clock=HandClock()) as memory:
        current = [entry.content for entry in await memory.entries() if entry.state == "active"]
    assert [new.casefold() in content.casefold() for content in current] == [True]


async def test_a_fix_is_found_by_the_text_of_the_error(opened: Opened) -> None:
    error = "Error response from daemon: Bind for 0.0.0.0:5432 failed: port is already allocated"
    steps = [
        ("docker compose up -d", error),
        ("sudo systemctl stop postgresql", ""),
        ("docker compose up -d", "Started"),
    ]
    messages = _chat("bring the database up")
    for at, (command, output) in enumerate(steps):
        call = ToolCall(id=f"c{at}", name="bash", arguments=json.dumps({"command": command}))
        result = ToolResult(call_id=f"c{at}", parts=(Text(text=output),), is_error=output == error)
        messages += [Message(role="assistant", parts=(call,)), Message(role="tool", parts=(result,))]
    async with opened(clock=HandClock()) as memory:
        await memory.ingest([*messages, *_chat("that was it")], session="s")
        (lesson,) = await _recall(memory, "Bind for 0.0.0.0:5432 failed: port is already allocated")
    assert "systemctl stop postgresql" in lesson


async def test_what_somebody_always_chooses_is_found(opened: Opened) -> None:
    async with opened(clock=HandClock()) as memory:
        await memory.ingest(_chat("format the report", "A: As a table or as a list?", "table"), session="a")
        await memory.ingest(_chat("merge it", "A: Merged with five commits.", "squash it, as always"), session="b")
        assert any(content.endswith(": table") for content in await _recall(memory, "table or list for reports?"))
        assert any("quash it" in content for content in await _recall(memory, "squash the commits?"))


async def test_facts_that_answer_a_question_only_together_are_found_together(opened: Opened) -> None:
    async with opened(clock=HandClock()) as memory:
        await memory.ingest(
            _chat(
                "Our vet is Dr Salcedo, her practice is in Calle Olmo.",
                "Calle Olmo is closed on Mondays for the market.",
            ),
            session="s",
        )
        found = " ".join(await _recall(memory, "On which days is the street of our vet in Calle Olmo closed?"))
    assert "Salcedo" in found
    assert "Mondays" in found


async def test_the_same_thing_in_two_languages_is_found_in_each(opened: Opened) -> None:
    async with opened(clock=HandClock()) as memory:
        await memory.ingest(
            _chat("Die Heizung wird jeden Oktober von Firma Brandl gewartet.", "The heating is serviced by Brandl."),
            session="s",
        )
        assert "Firma Brandl" in (await _recall(memory, "Wer wartet die Heizung?"))[0]
        assert "serviced by Brandl" in (await _recall(memory, "Who services the heating?"))[0]
