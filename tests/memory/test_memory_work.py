"""The work of an everyday act does not grow with what it neither changes nor shows."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from pathlib import Path

import pytest

from counted_work import counted_work
from ricordo import Entry, Memory, Message
from ricordo.messages import Text

pytestmark = pytest.mark.anyio
Opened = Callable[..., AbstractAsyncContextManager[Memory]]
BEGIN = datetime(2026, 11, 2, 9, tzinfo=UTC)
SIZES = (50, 500)
LETTERS = str.maketrans("0123456789", "ghijklmnop")


def statements(count: int) -> list[Entry]:
    """Return so many statements that share no word, one for each minute."""
    return [
        Entry(
            content=" ".join(
                blake2b(f"{number} {place}".encode(), digest_size=4).hexdigest() for place in range(6)
            ).translate(LETTERS),
            time=BEGIN + timedelta(minutes=number),
        )
        for number in range(count)
    ]


async def test_one_entry_of_a_long_daily_log_is_forgotten_pinned_and_restored_without_parsing_the_others(
    tmp_path: Path, opened: Opened
) -> None:
    done: list[list[tuple[int, int]]] = []
    for size in SIZES:
        async with opened(folder=tmp_path / str(size) / ".ricordo") as memory:
            entries = await memory.remember_many(statements(size))
            counts = []
            middle = entries[size // 2].id
            for act in (memory.forget(middle), memory.undo(), memory.pin(middle), memory.undo()):
                with counted_work() as work:
                    await act
                counts.append((work.bullets, work.rows))
            assert {entry.id for entry in await memory.entries()} == {entry.id for entry in entries}
            done.append(counts)
    assert done[0] == done[1]
    assert max(rows for _, rows in done[0]) == 1


async def test_what_is_forgotten_together_leaves_the_records_as_if_each_were_forgotten_alone(
    tmp_path: Path, opened: Opened
) -> None:
    said = (
        "The staging database runs on port 5433.",
        "Nadia owns the harbour office in Lisbon.",
        "We deploy only from the main branch on Fridays.",
        "The build cache lies on the second volume.",
    )
    found = []
    for number, together in enumerate((True, False)):
        async with opened(folder=tmp_path / str(number) / ".ricordo") as memory:
            messages = [Message(role="user", parts=(Text(text=f"By the way: {text}"),), time=BEGIN) for text in said]
            await memory.ingest(messages, session="s1")
            forgotten = [await memory.remember(text, tags=["old"]) for text in said[:3]]
            if together:
                await memory.delete_all(tags=["old"])
            else:
                for entry in forgotten:
                    await memory.forget(entry.id)
            hits = await memory.search("staging database Nadia harbour deploy branch cache volume", limit=20)
            found.append({hit.entry.content for hit in hits})
    assert found[0] == found[1]
    assert not any(text in content for text in said[:3] for content in found[0])
    assert any(said[3] in content for content in found[0])
