"""Curated memory as a user meets it: shown first, listed once, found once, and what it replaced is out of the way."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from places import place_of
from ricordo import Memory, Message, Scope
from ricordo.curation import ConsolidationResult, Consolidator
from ricordo.messages import Text
from ricordo.runtime import Dependencies, Settings, open_workspace

pytestmark = pytest.mark.anyio

SHOP = Scope(user="me", project="shop")
Opened = Callable[[], AbstractAsyncContextManager[Memory]]


class Ticking:
    """A clock that moves on by a second each time it is asked."""

    def __init__(self) -> None:
        self._time = datetime(2026, 11, 21, 8, tzinfo=UTC)

    def now(self) -> datetime:
        self._time += timedelta(seconds=1)
        return self._time

    def today(self) -> date:
        return self._time.date()


class Root:
    """A root that is opened for each step, as processes do."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._clock = Ticking()
        self._settings = Settings(root=None, user="me", data=folder.parent / "data", cache=folder.parent / "cache")

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Memory]:
        async with Memory.open(self.folder, scope=SHOP, settings=self._settings, clock=self._clock) as memory:
            yield memory

    async def consolidate(self) -> ConsolidationResult:
        parts = Dependencies.create(settings=self._settings, clock=self._clock)
        async with open_workspace(self.folder, SHOP, parts) as workspace:
            place = workspace.memory_root
            made = Consolidator(
                files=place.files, changes=place.changes, redactor=place.redactor, clock=place.clock, key=place.key
            )
            return await made.consolidate(force=True)

    def topics(self) -> list[Path]:
        return sorted((place_of(self.folder) / "workspace" / "memory" / "topics").glob("*.md"))

    def read(self, path: str) -> str:
        return (place_of(self.folder) / "workspace" / path).read_text(encoding="utf-8")


@pytest.fixture
def root(tmp_path: Path) -> Root:
    return Root(tmp_path / "root")


def said(text: str) -> Message:
    return Message(role="user", parts=(Text(text=text),))


@pytest.mark.req("AS-LEDGER-03", "AS-CURATED-03")
async def test_a_save_is_in_the_prompt_at_once_and_once_when_it_is_curated(root: Root) -> None:
    long = f"The release train leaves on Tuesdays{' and waits for nobody' * 8}."
    async with root.opened() as memory:
        await memory.remember("We deploy only from main.", kind="convention")
        await memory.remember(long, kind="convention")
        await memory.ingest([said("Our branches are named ord-<ticket>-<slug>.")], session="s1")
        before = await memory.preamble()
    assert before.count("We deploy only from main.") == before.count(long) == 1
    assert "ord-<ticket>" not in before
    await root.consolidate()
    async with root.opened() as memory:
        await memory.remember("The office closes at six.")
        after = await memory.preamble()
    assert after.count("We deploy only from main.") == 1
    assert [long in path.read_text() for path in (place_of(root.folder) / "workspace/memory/topics").iterdir()] == [
        True
    ]
    assert long not in after, "a topic holds it now"
    assert after.count("ord-") == 1
    assert after.index('source="MEMORY.md"') < after.index("The office closes at six.")


@pytest.mark.req("AS-LEDGER-03", "AS-CURATED-03")
async def test_of_saves_that_were_merged_only_the_line_that_stays_is_shown(root: Root) -> None:
    async with root.opened() as memory:
        await memory.remember("We deploy the shop only from the main branch.", kind="convention")
        await memory.remember("We deploy the shop only from the branch main.", kind="convention")
        assert (await memory.preamble()).count("We deploy the shop") == 2
    assert (await root.consolidate()).merged == 1
    async with root.opened() as memory:
        assert (await memory.preamble()).count("We deploy the shop") == 1


@pytest.mark.req("AS-CURATED-01", "AS-CURATED-02")
async def test_nothing_but_a_run_writes_curated_memory_and_a_run_replaces_it_as_a_whole(root: Root) -> None:
    target = place_of(root.folder) / "workspace" / "MEMORY.md"
    async with root.opened() as memory:
        await memory.remember("We use MySQL for the orders.", kind="decision")
        await memory.ingest([said("Our branches are named ord-<ticket>-<slug>.")], session="s1")
        await memory.recall("orders")
        await memory.preamble()
        assert not target.exists()
    await root.consolidate()
    before = target.read_bytes()
    async with root.opened() as memory:
        await memory.remember("We switched the orders from MySQL to PostgreSQL.", kind="decision")
        await memory.ingest([said("From now on we squash when we merge.")], session="s2")
        await memory.preamble()
        assert target.read_bytes() == before
    await root.consolidate()
    after = target.read_text(encoding="utf-8")
    assert not after.startswith(before.decode())
    assert after.count("# Memory\n") == 1
    assert "We use MySQL" not in after
    assert "PostgreSQL" in after
    assert after.count("ord-<ticket>") == 1


@pytest.mark.req("HE-C2", "HE-T2", "HE-C1-topic", "HE-C1b")
async def test_a_memory_of_150_characters_stands_in_memory_md_and_a_longer_one_in_a_topic(root: Root) -> None:
    kinds = ("preference", "decision", "fact", "lesson", "own")
    words = {kind: f"{kind} of the " + " ".join(f"{kind[:3]}{number}" for number in range(40)) for kind in kinds}
    async with root.opened() as memory:
        for kind, text in words.items():
            await memory.remember(f"S{text}"[:149].strip().ljust(150, "é"), kind=kind)
            await memory.remember(f"L{text[::-1]}"[:150].strip().ljust(151, "é"), kind=kind)
    await root.consolidate()
    index = root.read("MEMORY.md")
    topics = {path.name: path.read_text(encoding="utf-8") for path in root.topics()}
    for kind, text in words.items():
        assert f"- S{text[:100]}" in index
        (topic,) = [name for name, held in topics.items() if f"- L{text[::-1][:100]}" in held]
        assert f"L{text[::-1][:140]}" not in index, kind
        assert index.count(f"(memory/topics/{topic})") == 1


async def test_what_is_in_curated_memory_in_the_same_words_is_not_shown_again(root: Root) -> None:
    async with root.opened() as memory:
        await memory.remember("We deploy only from main.")
    target = place_of(root.folder) / "workspace" / "MEMORY.md"
    target.write_text("# Mine\n\n- we deploy only from `main`\n", encoding="utf-8")
    async with root.opened() as memory:
        assert (await memory.preamble()).casefold().count("we deploy only from") == 1


async def test_a_memory_is_listed_and_found_once_though_it_stands_in_two_files(root: Root) -> None:
    async with root.opened() as memory:
        saved = await memory.remember("We deploy only from main.", kind="convention")
        await memory.ingest([said("We decided to use PostgreSQL for the orders, it rolls back.")], session="s1")
        listed = await memory.entries()
    await root.consolidate()
    assert saved.id in root.read("MEMORY.md")
    async with root.opened() as memory:
        assert [(one.id, one.source) for one in await memory.entries()] == [(one.id, one.source) for one in listed]
        assert [hit.entry.id for hit in await memory.recall("deploy main")] == [saved.id]
        assert (await memory.entry(saved.id)).content == "We deploy only from main."


@pytest.mark.req("HE-O-audit-forget", "HE-C1b")
async def test_forgetting_a_curated_memory_takes_it_out_everywhere(root: Root) -> None:
    async with root.opened() as memory:
        saved = await memory.remember("We deploy only from main.")
    await root.consolidate()
    async with root.opened() as memory:
        await memory.forget(saved.id)
        assert "main" not in await memory.preamble()
        assert await memory.recall("deploy main") == []
    await root.consolidate()
    assert "main" not in root.read("MEMORY.md")


@pytest.mark.req("HE-O-conflict", "HE-C3")
async def test_of_two_decisions_the_newer_is_active_and_the_older_shown_as_superseded_until_the_run_is_undone(
    root: Root,
) -> None:
    async with root.opened() as memory:
        older = await memory.remember("use Postgres", kind="decision")
        newer = await memory.remember("we migrated to MongoDB", kind="decision")
    assert (await root.consolidate()).superseded == 1
    async with root.opened() as memory:
        preamble = await memory.preamble()
        assert "MongoDB" in preamble
        assert "Postgres" not in preamble
        hits = await memory.recall("Postgres MongoDB")
        assert [hit.entry.id for hit in hits if hit.entry.state == "active"] == [newer.id] == [hits[0].entry.id]
        shown = await memory.entry(older.id)
        assert (shown.state, dict(shown.extra)["successor"]) == ("superseded", newer.id)
        assert (await memory.entry(newer.id)).supersedes == older.id
        await memory.undo(next(item.id for item in await memory.history() if item.action == "consolidate"))
        assert (await memory.entry(older.id)).state == "active"
        hits = await memory.recall("Postgres MongoDB")
        assert {hit.entry.id for hit in hits if hit.entry.state == "active"} == {older.id, newer.id}
