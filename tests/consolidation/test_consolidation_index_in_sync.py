"""The list of topics in MEMORY.md is that of the files, whatever is saved, curated, taken back or done by hand."""

import random
import re
from datetime import UTC, date, datetime, timedelta

import pytest

from ricordo import Entry
from ricordo.clock import MonotonicIds
from ricordo.curation import ConsolidationConfig, Consolidator, undo_change
from ricordo.curation.forget import forget
from ricordo.errors import UndoRefused
from ricordo.guard import Redactor
from ricordo.testing import InMemoryFiles
from ricordo.workspace import MEMORY_PATH, ChangeSets, append_entries, list_history, read_all_entries
from ricordo.workspace.layout import TOPICS

pytestmark = pytest.mark.anyio

KEY = b"k" * 32
REDACTOR = Redactor(KEY)
DAY = date(2026, 11, 21)
LINE = re.compile(rb"^\d+\. \[[^\n]*\]\((memory/topics/[^)\n]+)\)", re.MULTILINE)
NAMES = ("Aurora", "Borealis", "Calypso", "Daphne")
KINDS = ("fact", "decision", "preference", "lesson")


class Root:
    """The files of a root, and everything that is done to them."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.time = datetime(2026, 11, 21, 8, tzinfo=UTC)
        self.files = InMemoryFiles()
        self.ids = MonotonicIds(self, lambda bits: 7)
        self.changes = ChangeSets(self.files, clock=self, ids=self.ids)
        self.consolidator = Consolidator(
            files=self.files, changes=self.changes, redactor=REDACTOR, clock=self, key=KEY,
            config=ConsolidationConfig(max_lines=24),
        )  # fmt: skip
        self.saved = 0

    def now(self) -> datetime:
        self.time += timedelta(seconds=1)
        return self.time

    def today(self) -> date:
        return DAY

    async def save(self) -> None:
        for _ in range(self.chance.randrange(1, 9)):
            self.saved += 1
            name = self.chance.choice(NAMES)
            more = "It was talked over at length with everybody who works on it. " * self.chance.randrange(3)
            content = (
                f"The {name} project has rule number {self.saved}{self.chance.choice('abcdef') * 3}. {more}".strip()
            )
            entry = Entry(
                content=content, kind=self.chance.choice(KINDS), id=self.ids.new(), time=self.now(), by="user"
            )
            await append_entries(self.files, DAY, [entry], REDACTOR)

    async def consolidate(self) -> None:
        await self.consolidator.consolidate(force=True)

    async def forget(self) -> None:
        located = await read_all_entries(self.files)
        if located:
            chosen = self.chance.choice(located).entry.id
            await forget(self.files, self.changes, chosen, key=KEY, who="user")

    async def undo(self) -> None:
        items = [item for item in await list_history(self.files, self.changes) if not item.is_undone]
        if items:
            try:
                await undo_change(self.files, self.changes, self.chance.choice(items[:4]), who="user")
            except UndoRefused:
                return

    async def topics(self) -> list[str]:
        return [info.path for info in await self.files.list(TOPICS)]

    async def delete_by_hand(self) -> None:
        topics = await self.topics()
        if topics:
            await self.files.delete(self.chance.choice(topics))

    async def make_by_hand(self) -> None:
        path = f"{TOPICS}/by-hand-{self.chance.randrange(6)}.md"
        if path not in await self.topics():
            front = "---\nname: By hand\ndescription: What I wrote\ntype: project\n---\n" * self.chance.randrange(2)
            await self.files.create(path, f"{front}# By hand\n\nThe boiler is in the cellar.\n".encode())

    async def rename_by_hand(self) -> None:
        topics = await self.topics()
        if topics:
            path = self.chance.choice(topics)
            target = f"{TOPICS}/renamed-{self.chance.randrange(1_000)}.md"
            data = (await self.files.read(path)).data
            await self.files.delete(path)
            if target not in topics:
                await self.files.create(target, data)

    async def has_index(self) -> bool:
        return await self.files.info(MEMORY_PATH) is not None

    async def is_in_sync(self) -> bool:
        index = (await self.files.read(MEMORY_PATH)).data if await self.has_index() else b""
        listed = [f"workspace/{path.decode()}" for path in LINE.findall(index)]
        return sorted(listed) == sorted(await self.topics())


@pytest.mark.req("HE-C1b", "FC-UNDO")
@pytest.mark.parametrize("seed", range(1, 5))
async def test_the_list_of_topics_is_that_of_the_files_after_every_change(seed: int) -> None:
    root = Root(seed)
    most = 0
    for step in range(40):
        act = root.chance.choice((root.save, root.save, root.consolidate, root.forget, root.undo))
        await act()
        assert await root.is_in_sync(), (step, act.__name__)
        most = max(most, len(await root.topics()))
    assert most > 1


@pytest.mark.req("HE-C1b")
@pytest.mark.parametrize("seed", range(6, 9))
async def test_what_was_done_to_topics_by_hand_is_listed_after_the_next_forget_or_consolidation(seed: int) -> None:
    root = Root(seed)
    await root.save()
    await root.consolidate()
    most = 0
    for step in range(16):
        for act in (root.save, root.save, root.undo)[: root.chance.randrange(4)]:
            await act()
        if await root.has_index():
            await root.chance.choice((root.delete_by_hand, root.make_by_hand, root.rename_by_hand))()
        act = root.chance.choice((root.forget, root.consolidate, root.consolidate))
        await act()
        assert await root.is_in_sync(), (step, act.__name__)
        most = max(most, len(await root.topics()))
    assert most > 1
