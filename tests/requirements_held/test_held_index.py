"""The index as a user meets it: where it lies, what it takes in, what it says of itself, what losing it costs."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest

from command_line import ricordo
from hand_made_roots import begun
from newer_databases import write_newer_database
from places import place_of
from ricordo import Memory, Message, Scope
from ricordo.guard import Redactor
from ricordo.messages import Text
from ricordo.runtime import Settings
from ricordo.search import ingest as sync
from ricordo.search.chunking import ChunkRow, build_rows
from ricordo.search.documents import SearchDocument
from ricordo.search.index import WorkspaceIndex
from ricordo.storage import StoredFile
from ricordo.storage.local import LocalFiles
from ricordo.workspace import INDEX_FILE

pytestmark = pytest.mark.anyio

SHOP = Scope(project="shop")
MEMORY = "workspace/MEMORY.md"
OLD_LEDGER = "workspace/memory/2025-01-02.md"
Opened = Callable[..., AbstractAsyncContextManager[Memory]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


@pytest.fixture
def opened(root: Path) -> Opened:
    def open_again(settings: Settings | None = None) -> AbstractAsyncContextManager[Memory]:
        return Memory.open(root, scope=SHOP, settings=settings)

    return open_again


def place(root: Path, path: str, content: str) -> None:
    """Write a file by hand, as an editor would."""
    target = begun(root) / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(content, encoding="utf-8")


def said(text: str) -> Message:
    return Message(role="user", parts=(Text(text=text),))


def full_text_databases(folder: Path) -> list[str]:
    """Return the SQLite files with a full-text table anywhere below a folder."""
    found = []
    for path in folder.rglob("*"):
        if path.is_file() and path.read_bytes()[:15] == b"SQLite format 3":
            with closing(sqlite3.connect(path)) as connection:
                made = connection.execute("SELECT sql FROM sqlite_master WHERE sql LIKE '%USING fts5%'").fetchall()
            found += [str(path.relative_to(folder))] if made else []
    return sorted(found)


def indexed(database: Path) -> dict[str, list[tuple[int, str]]]:
    """Return what stands in an index, by file, as another process would read it."""
    found: dict[str, list[tuple[int, str]]] = {}
    select = "SELECT path, chunk.id, content FROM chunk JOIN document ON document.id = document ORDER BY chunk.id"
    with closing(sqlite3.connect(database)) as connection:
        for path, number, content in connection.execute(select):
            found.setdefault(path, []).append((number, content))
    return found


def lose_index(root: Path) -> None:
    for path in root.glob(f"{INDEX_FILE}*"):
        path.unlink()


async def contents(memory: Memory, query: str) -> list[str]:
    return [hit.entry.content for hit in await memory.recall(query)]


@pytest.mark.req("AS-INDEX-01")
@pytest.mark.parametrize("first", ["wombat", "quill"])
async def test_opening_a_workspace_finds_curated_memory_and_old_ledgers_alike(
    first: str, opened: Opened, root: Path
) -> None:
    told = {"wombat": "The mascot is a wombat.", "quill": "The printer is called Quill."}
    place(root, MEMORY, f"# Memory\n\n- {told['wombat']}\n")
    place(root, OLD_LEDGER, f"# 2025-01-02\n\n- {told['quill']}\n")
    async with opened() as memory:
        for query in sorted(told, key=lambda query: query != first):
            assert await contents(memory, query) == [told[query]]
    assert set(indexed(root / INDEX_FILE)) == {MEMORY, OLD_LEDGER}


@pytest.mark.may_block("the check reads the database itself")
@pytest.mark.req("AS-INDEX-02", "AS-FLUSH-03")
async def test_a_flush_indexes_what_it_appended_and_nothing_else_before_it_returns(
    opened: Opened, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_whole: list[str] = []

    def reading(document: SearchDocument, data: bytes, redactor: Redactor) -> list[ChunkRow]:
        read_whole.append(document.path)
        return build_rows(document, data, redactor)

    place(root, MEMORY, "- The mascot is a wombat.\n")
    place(root, OLD_LEDGER, "# 2025-01-02\n\n- The printer is called Quill.\n")
    async with opened() as memory:
        await memory.ingest([said("I prefer tea over coffee.")], session="s1")
        await memory.search("tea")
        before = indexed(root / INDEX_FILE)
        [ledger] = {path for path in before if path.startswith("workspace/memory/")} - {OLD_LEDGER}
        place(root, MEMORY, "- The mascot is a quokka now.\n")
        os.unlink(root / OLD_LEDGER)
        monkeypatch.setattr(sync, "build_rows", reading)
        learned = await memory.ingest([said("We decided to use PostgreSQL for the orders.")], session="s1")
        after = indexed(root / INDEX_FILE)
        assert read_whole == []
        assert after[ledger][:-1] == before[ledger]
        assert [after[ledger][-1][1]] == [entry.content for entry in learned.entries]
        for path in (MEMORY, OLD_LEDGER):
            assert after[path] == before[path]
        assert await contents(memory, "PostgreSQL orders") == [learned.entries[0].content]


@pytest.mark.may_block("the check reads the database itself")
@pytest.mark.req("AS-INDEX-02")
async def test_a_flush_over_several_days_indexes_what_it_appended_to_each_ledger(opened: Opened, root: Path) -> None:
    async with opened() as memory:
        await memory.ingest([said("I prefer tea over coffee.")], session="s1")
        await memory.search("tea")
        told = ["We decided to use PostgreSQL for the orders.", "We decided to use Redis for the carts."]
        days = [datetime(2026, 3, day, 12, tzinfo=UTC) for day in (1, 2)]
        messages = [replace(said(text), time=day) for text, day in zip(told, days, strict=True)]
        learned = await memory.ingest(messages, session="s2")
        after = indexed(root / INDEX_FILE)
        assert [entry.content for entry in learned.entries] == told
        assert [[row[1] for row in after[f"workspace/memory/2026-03-0{day}.md"]] for day in (1, 2)] == [
            [text] for text in told
        ]


@pytest.mark.req("AS-INDEX-03")
async def test_by_default_the_index_is_one_full_text_database_beside_the_workspace(
    opened: Opened, root: Path, tmp_path: Path, home: Path
) -> None:
    async with opened() as memory:
        await memory.remember("The mascot is a wombat.")
        await memory.ingest([said("I prefer tea over coffee.")], session="s1")
        assert await contents(memory, "wombat") == ["The mascot is a wombat."]
    assert (root / "workspace").is_dir()
    assert full_text_databases(tmp_path) == ["root/memory_index.db"]
    async with Memory.open(root, scope=replace(SHOP, user="me")) as memory:
        await memory.remember("My cat is Mona.")
        assert await contents(memory, "cat") == ["My cat is Mona."]
    assert (place_of(root) / "workspace").is_dir()
    assert sorted(full_text_databases(tmp_path)) == ["root/memory_index.db", "root/users/me/memory_index.db"]
    assert full_text_databases(home) == []


@pytest.mark.req("AS-INDEX-03")
async def test_the_settings_say_where_the_indexes_lie_and_each_root_has_its_own(
    root: Path, tmp_path: Path, home: Path
) -> None:
    settings = Settings(root=None, user="me", data=tmp_path / "data", cache=tmp_path / "cache", index=tmp_path / "fast")
    for name in ("root", "other"):
        for _ in range(2):
            async with Memory.open(tmp_path / name, scope=SHOP, settings=settings) as memory:
                await memory.remember(f"The {name} has a wombat.")
                assert set(await contents(memory, "wombat")) == {f"The {name} has a wombat."}
    found = full_text_databases(tmp_path)
    assert len(found) == 2
    assert all(path.startswith("fast/") and path.endswith("/memory_index.db") for path in found)
    assert full_text_databases(home) == []


@pytest.mark.req("AS-INDEX-03")
def test_the_environment_says_where_the_index_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RICORDO_INDEX", str(tmp_path / "fast"))
    assert ricordo("remember", "The mascot is a wombat.", "--root", tmp_path / "root").code == 0
    assert "wombat" in ricordo("recall", "mascot", "--root", tmp_path / "root").out
    found = full_text_databases(tmp_path)
    # one of what is the user's, and one of what the project shares
    assert len(found) == 2
    assert all(each.startswith("fast/") for each in found)


class Slow(LocalFiles):
    """Files of which the next reading can be held up."""

    def __init__(self, root: Path) -> None:
        """Hold up nothing yet."""
        super().__init__(root)
        self.held: anyio.Event | None = None
        self.reached = anyio.Event()

    async def read(self, path: str) -> StoredFile:
        if self.held is not None:
            held, self.held = self.held, None
            self.reached.set()
            await held.wait()
        return await super().read(path)


@pytest.mark.req("FC-STALE")
async def test_an_index_that_is_behind_or_being_built_says_so_and_the_files_are_searched(tmp_path: Path) -> None:
    for number in range(5):
        place(tmp_path, f"workspace/memory/topics/t{number}.md", f"- Animal animal{number} lives here.\n")
    files = Slow(tmp_path)
    index = await WorkspaceIndex.open(tmp_path / INDEX_FILE, files, patience_seconds=0.0)
    assert (index.freshness().state, index.freshness().stale_files) == ("stale", 5)
    assert [match.content for match in await index.search("animal3")] == ["Animal animal3 lives here."]
    assert (index.freshness().state, index.freshness().stale_files) == ("stale", 5)
    files.held = held = anyio.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(index.refresh)
        await files.reached.wait()
        assert index.freshness().state == "building"
        assert [match.content for match in await index.search("animal4")] == ["Animal animal4 lives here."]
        assert index.freshness().state == "building"
        held.set()
    assert index.freshness().state == "fresh"
    assert [match.content for match in await index.search("animal3")] == ["Animal animal3 lives here."]
    # a file that it has read before is not taken for what it was; what was written just now is looked at twice
    await anyio.sleep(0.1)
    await index.refresh()
    place(tmp_path, "workspace/memory/topics/t3.md", "- Animal animal7 moved in.\n")
    assert [match.content for match in await index.search("animal7")] == ["Animal animal7 moved in."]
    assert (index.freshness().state, index.freshness().stale_files) == ("stale", 1)
    assert await index.search("animal3") == []
    both = {match.content for match in await index.search("animal")}
    assert both == {"Animal animal7 moved in.", *(f"Animal animal{number} lives here." for number in (0, 1, 2, 4))}
    await index.close()


@pytest.mark.req("FC-STALE", "FC-DOCTOR")
async def test_a_broken_index_says_so_and_recall_answers_as_before(opened: Opened, root: Path) -> None:
    async with opened() as memory:
        await memory.remember("The mascot is a wombat.")
    write_newer_database(root / INDEX_FILE)
    async with opened() as memory:
        assert await contents(memory, "wombat") == ["The mascot is a wombat."]
        await memory.remember("The deputy is a quokka.")
        assert await contents(memory, "quokka") == ["The deputy is a quokka."]
        assert await contents(memory, "numbat") == []
        [check] = [check for check in await memory.doctor() if check.name == "index"]
        assert not check.ok
        assert "the index is broken: " in check.detail


@pytest.mark.may_block("the check runs commands")
@pytest.mark.req("FC-STALE")
def test_the_status_of_a_broken_index_is_shown(root: Path) -> None:
    ricordo("remember", "The mascot is a wombat.", "--root", root)
    write_newer_database(place_of(root) / INDEX_FILE)
    assert "broken" in ricordo("--root", root).out
    assert ricordo("recall", "wombat", "--root", root, "--json").document["hits"][0]["entry"]["content"] == (
        "The mascot is a wombat."
    )


@pytest.mark.req("FC-STALE")
@pytest.mark.parametrize("while_open", [True, False])
async def test_deleting_the_index_loses_nothing(opened: Opened, root: Path, *, while_open: bool) -> None:
    place(root, MEMORY, "- The mascot is a wombat.\n")
    queries = ("wombat", "deploy main", "PostgreSQL", "tea", "red door", "")

    async def answers(memory: Memory) -> dict[str, list[str]]:
        return {query: [hit.entry.content for hit in await memory.search(query)] for query in queries}

    async with opened() as memory:
        await memory.remember("We deploy only from main.", kind="decision", tags=["ops"])
        await memory.remember("The shop has a red door.\n" + "It is old. " * 600)
        await memory.ingest([said("I prefer tea over coffee."), said("We decided to use PostgreSQL.")], session="s1")
        before = await answers(memory)
        assert all(before.values())
        if while_open:
            lose_index(root)
            assert await answers(memory) == before
    lose_index(root)
    async with opened() as memory:
        assert await answers(memory) == before
    assert (await anyio.Path(root / INDEX_FILE).stat()).st_size > 0
