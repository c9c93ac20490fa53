"""What was said months ago and taken in today is of the day on which it was said, wherever time decides."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from command_line import chat, ricordo
from hand_clock import HandClock
from ricordo import Memory, Message
from ricordo.messages import Text
from ricordo.search import MEMORY_SORTS, Query

pytestmark = pytest.mark.anyio

Opened = Callable[..., AbstractAsyncContextManager[Memory]]
SAID = datetime(2026, 4, 2, 9, tzinfo=UTC)
BEFORE, AFTER = SAID - timedelta(days=1), SAID + timedelta(days=1)


async def test_a_time_range_and_a_look_back_go_by_when_it_was_said(opened: Opened) -> None:
    clock = HandClock()
    async with opened(clock=clock) as memory:
        await memory.ingest([Message(role="user", parts=(Text(text="Nadia owns staging."),), time=SAID)], session="s")
        await memory.remember("Paul owns billing.")
        for when, found in (({"since": BEFORE, "until": AFTER}, ["Nadia owns staging."]),
                            ({"since": AFTER}, ["Paul owns billing."]), ({"until": BEFORE}, [])):  # fmt: skip
            assert [hit.entry.content for hit in await memory.recall("who owns", **when)] == found  # type: ignore[arg-type]
            assert [hit.entry.content for hit in await memory.recall("", **when)] == found  # type: ignore[arg-type]
            asked = Query(text="owns", sorts=MEMORY_SORTS, **when)  # type: ignore[arg-type]
            assert [hit.entry.content for hit in await memory.search(asked)] == found
        assert [entry.content for entry in await memory.entries(as_of=AFTER)] == ["Nadia owns staging."]
        assert await memory.entries(as_of=BEFORE) == []
        assert len(await memory.entries(as_of=clock.now() + timedelta(seconds=1))) == 2


def test_the_commands_go_by_when_it_was_said(tmp_path: Path) -> None:
    ricordo("ingest", chat(tmp_path / "old.jsonl", (("user", "Nadia owns staging."), ("assistant", "Noted."))))
    ricordo("remember", "Paul owns billing.")

    def listed(*options: str) -> list[str]:
        entries = ricordo("memory", "list", *options, "--json").document["entries"]
        return [entry["content"] for entry in entries]

    assert listed("--as-of", "2026-11-03") == ["Nadia owns staging."]
    hits = ricordo("recall", "who owns", "--until", "2026-11-03", "--json").document["hits"]
    assert [hit["entry"]["content"] for hit in hits] == ["Nadia owns staging."]
