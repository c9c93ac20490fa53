"""The work of an everyday act does not grow with what it neither changes nor shows."""

import os
import random
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from pathlib import Path

import pytest

from counted_work import CountingDisk, counted_work
from ricordo import Entry, Memory, Message
from ricordo.messages import Text, Tokens
from ricordo.runtime.finding import read_entry_page
from ricordo.workspace import render_entry
from ricordo.workspace.entry import find_contradictions

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


def age(folder: Path) -> None:
    """Let every file be so old that its time of modification says whether it changed."""
    for path in folder.rglob("*.md"):
        os.utime(path, (1_700_000_000, 1_700_000_000))


async def test_an_everyday_act_parses_and_reads_as_much_in_a_root_with_tenfold_entries(
    tmp_path: Path, opened: Opened
) -> None:
    done = []
    for days in (4, 40):
        folder, disk = tmp_path / str(days) / ".ricordo", CountingDisk()
        async with opened(folder=folder) as memory:
            ledgers = memory.folder / "workspace" / "memory"
            ledgers.mkdir(parents=True)
            for number, entry in enumerate(statements(days * 60)):
                day = BEGIN - timedelta(days=number // 60)
                time = day + timedelta(minutes=number % 60)
                bullet = render_entry(replace(entry, id=f"01{number:024}", time=time))
                with (ledgers / f"{day:%Y-%m-%d}.md").open("a", encoding="utf-8") as file:
                    file.write(bullet)
        age(folder)
        async with opened(folder=folder) as memory:
            # what is known of the files is stored now
            await memory.doctor()
            await memory.entries(limit=1)
            await memory.preamble()
        counts = []
        acts: list[Callable[[Memory], Awaitable[object]]] = [
            lambda memory: memory.entries(limit=10),
            lambda memory: memory.entries(limit=10, after=f"01{45:024}"),
            lambda memory: memory.preamble(Tokens(500)),
            lambda memory: memory.recall("harbour"),
            lambda memory: memory.remember("The pier is closed."),
        ]
        for act in acts:
            disk.read.clear()
            with counted_work() as work:
                async with opened(folder=folder, disk=disk) as memory:
                    await act(memory)
            counts.append((work.bullets, work.rows, len(disk.read)))
        done.append(counts)
    assert done[0] == done[1]
    assert done[0][0][0] == 10


PIECES = (
    "- The pier is closed. [kind:: fact] [at:: 2026-11-02T09:00:00.000Z] [by:: user] ^01pier",
    "- The pier is open. [kind:: fact] [at:: 2026-11-03T09:00:00.000Z] [by:: user] [contradicts:: 01pier] ^01open",
    "- The crane lifts forty tons. #crane [kind:: fact] [at:: 2026-11-02T09:00:00.000Z] [by:: flush] ^01crane",
    "- Two lines of\n  one memory. [at:: 2026-11-02T09:30:00.000Z] [by:: agent] ^01lines",
    "- By hand.",
    "- By hand, again. [at:: 2026-11-02T11:30:00+02:00]",
    "- [at:: 2026-11-02T09:30:00.000Z] is how a time is written. [at:: 2026-11-05T09:30:00.000Z] ^01field",
    "- [kind:: fact] [at:: 2026-11-05T09:30:00.000Z] ^01empty",
    "- Quoted. [quote:: It \\] was quoted.] [at:: 2026-11-04T09:30:00.000Z] [quote:: no] ^01quoted",
    "Nobody swims here.",
    "```\n- code [at:: 2026-11-05T09:30:00.000Z] ^01code\n```",
    "- The key is AKIAIOSFODNN7EXAMPLE. [at:: 2026-11-01T09:30:00.000Z] ^01secret",
    "- Windows wrote this. [at:: 2026-11-01T09:30:00.000Z] ^01crlf\r",
    "<!-- ricordo-fields: here\n01lines [kind:: goal] [at:: 2026-11-09T09:30:00.000Z]\n-->",
)


async def test_pages_are_the_parts_of_the_whole_list_after_any_edit(opened: Opened) -> None:
    choose = random.Random(11)
    names = ("MEMORY.md", "memory/topics/pier.md", "memory/2026-11-02.md", "memory/2026-11-03.md", "memory/notes.md")
    async with opened() as memory:
        workspace = memory.folder / "workspace"
        (workspace / "memory" / "topics").mkdir(parents=True)
        for _ in range(40):
            document = workspace / choose.choice(names)
            text = "\n".join(choose.choices(PIECES, k=choose.randrange(9)))
            document.write_text(f"{text}\n", encoding="utf-8")
            if choose.random() < 0.3:
                document.unlink()
            every = await memory.entries()
            pages = [page := await memory.entries(limit=2)]
            while page:
                pages.append(
                    page := await memory.entries(limit=2, after=page[-1] if choose.random() < 0.5 else page[-1].id)
                )
            assert [entry for page in pages for entry in page] == every
            listed = await read_entry_page(memory, 1)
            assert sorted(listed.ids) == sorted(entry.id for entry in every)
            assert listed.contradictions == find_contradictions(every)
