"""What the index says of itself, to a program and to a person, and that every state is answered from the files."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import anyio
import pytest

from command_line import ricordo
from concepts import Concepts
from hand_made_roots import begun
from newer_databases import write_newer_database
from places import place_of
from ricordo import Memory, Scope
from ricordo.search import embedding as meanings
from ricordo.search.contract import Freshness, Query
from ricordo.search.index import WorkspaceIndex
from ricordo.storage import StoredFile
from ricordo.storage.local import LocalFiles
from ricordo.testing import InMemoryFiles
from ricordo.workspace import INDEX_FILE

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.may_block("the test writes the files and runs commands itself"),
    pytest.mark.req("FC-STALE"),
]

SHOP = Scope(user="me", project="shop")
Opened = Callable[..., AbstractAsyncContextManager[Memory]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a root with five topics that no index has taken in."""
    topics = place_of(begun(tmp_path / "root")) / "workspace" / "memory" / "topics"
    topics.mkdir(parents=True)
    for number in range(5):
        (topics / f"t{number}.md").write_text(f"- Animal animal{number} lives here.\n")
    return tmp_path / "root"


@pytest.fixture
def no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no search take anything in, as if there were too much of it."""
    made = WorkspaceIndex.__init__

    def hurried(self: WorkspaceIndex, *given: object, **more: object) -> None:
        made(self, *given, **(more | {"patience_seconds": 0.0}))  # type: ignore[arg-type]

    monkeypatch.setattr(WorkspaceIndex, "__init__", hurried)


async def found(memory: Memory, query: str) -> list[str]:
    return [hit.entry.content for hit in await memory.recall(query)]


async def told(memory: Memory) -> tuple[bool, int, str]:
    [check] = [check for check in await memory.doctor() if check.name == "index"]
    return check.ok, check.count, check.detail


@pytest.mark.req("AS-INDEX-01")
async def test_an_index_that_is_opened_is_stale_and_the_first_recall_makes_it_fresh(root: Path) -> None:
    async with Memory.open(root, scope=SHOP) as memory:
        assert memory.freshness() == Freshness(state="stale", stale_files=5)
        assert await found(memory, "animal3") == ["Animal animal3 lives here."]
        assert memory.freshness() == Freshness(state="fresh")
        assert await told(memory) == (True, 0, "the index is fresh")


@pytest.mark.usefixtures("no_time")
async def test_what_there_was_no_time_for_is_counted_and_found(root: Path) -> None:
    async with Memory.open(root, scope=SHOP) as memory:
        for number in (3, 4):
            assert await found(memory, f"animal{number}") == [f"Animal animal{number} lives here."]
            assert memory.freshness() == Freshness(state="stale", stale_files=5)
        assert str(memory.freshness()) == "stale: 5 files are not taken in yet; searches read the files meanwhile"


@pytest.mark.usefixtures("no_time")
async def test_an_index_that_is_being_built_says_so_and_recall_answers(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached, go_on, read = anyio.Event(), anyio.Event(), LocalFiles.read

    async def slow(self: LocalFiles, path: str) -> StoredFile:
        if not reached.is_set() and path.endswith("t2.md"):
            reached.set()
            await go_on.wait()
        return await read(self, path)

    async with Memory.open(root, scope=SHOP) as memory:
        monkeypatch.setattr(LocalFiles, "read", slow)
        async with anyio.create_task_group() as group:
            group.start_soon(memory._workspace.memory_root.index.refresh)
            await reached.wait()
            assert memory.freshness().state == "building"
            assert await found(memory, "animal2") == ["Animal animal2 lives here."]
            assert memory.freshness().state == "building"
            assert str(memory.freshness()).startswith("building: ")
            go_on.set()
        assert memory.freshness() == Freshness(state="fresh")


async def test_a_broken_index_says_why_and_is_well_again_when_it_can_be(root: Path) -> None:
    write_newer_database(place_of(root) / INDEX_FILE)
    async with Memory.open(root, scope=SHOP) as memory:
        assert await found(memory, "animal1") == ["Animal animal1 lives here."]
        freshness = memory.freshness()
        assert freshness.state == "broken"
        assert freshness.reason
        assert str(freshness).endswith("; searches read the files")
        ok, _, detail = await told(memory)
        assert not ok
        assert detail.startswith("the index is broken: ")
        (place_of(root) / INDEX_FILE).unlink()
        assert await told(memory) == (True, 0, "the index is fresh")
        assert await found(memory, "animal1") == ["Animal animal1 lives here."]


def shown(root: Path) -> str:
    """Return what `ricordo` alone tells of the index."""
    return next(line for line in ricordo("--root", root).out.splitlines() if line.startswith("Index"))


@pytest.fixture
def opened_once(root: Path) -> Path:
    """Return the root when it is known to be one, without an index."""

    async def claim() -> None:
        async with Memory.open(root, scope=SHOP):
            pass

    anyio.run(claim)
    for path in root.glob(f"{INDEX_FILE}*"):
        path.unlink()
    return root


def test_a_person_sees_that_the_index_is_fresh(opened_once: Path) -> None:
    assert shown(opened_once).split(maxsplit=1)[1] == "fresh"
    assert "the index is fresh" in ricordo("doctor", "--root", opened_once).out


@pytest.mark.usefixtures("no_time")
def test_a_person_sees_how_many_files_are_not_taken_in_without_waiting_for_them(opened_once: Path) -> None:
    assert shown(opened_once).split(maxsplit=1)[1].startswith("stale: 5 files are not taken in yet")
    assert ricordo("--root", opened_once, "--json").document["index"].startswith("stale: 5 files")


def test_a_person_sees_why_the_index_is_broken_and_what_to_run(opened_once: Path) -> None:
    write_newer_database(place_of(opened_once) / INDEX_FILE)
    assert "broken: " in shown(opened_once)
    assert "ricordo doctor" in ricordo("--root", opened_once).out
    assert "the index is broken: " in ricordo("doctor", "--root", opened_once).out
    assert "animal4" in ricordo("recall", "animal4", "--root", opened_once).out


@pytest.mark.req("CC-RECALLFAST")
async def test_a_hanging_embedder_is_told_of_and_found_by_meaning_again_when_it_answers(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meanings, "_PAUSE_SECONDS", 0.0)
    embedder = Concepts()
    async with Memory.open(root, scope=SHOP, embedder=embedder) as memory:
        await memory.remember("The dog sleeps in the kitchen.")
        assert (await told(memory))[:2] == (True, 0)
        assert await found(memory, "puppy") == ["The dog sleeps in the kitchen."]
        embedder.hangs = True
        with anyio.fail_after(20):
            assert await found(memory, "dog kitchen") == ["The dog sleeps in the kitchen."]
        assert "did not answer within 0.15 s" in memory.freshness().embedding_error
        embedder.hangs = False
        assert await found(memory, "hound") == ["The dog sleeps in the kitchen."]
        await memory.remember("The loaf is gone.")
        await memory.doctor()
        assert memory.freshness() == Freshness(state="fresh")


@pytest.mark.parametrize("shape", [(0, 8), (2, 8), (1, 0), (8,), (1, 8, 8)])
async def test_vectors_of_another_number_than_was_asked_for_are_no_answer(
    shape: tuple[int, ...], root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import numpy as np

    monkeypatch.setattr(meanings, "_PAUSE_SECONDS", 0.0)
    embedder = Concepts()
    async with Memory.open(root, scope=SHOP, embedder=embedder) as memory:
        await memory.remember("The dog sleeps in the kitchen.")
        await memory.doctor()

        async def wrong(texts: object) -> object:
            return np.ones(shape, dtype=np.float32)

        right, embedder.embed = embedder.embed, wrong  # type: ignore[assignment, method-assign]
        assert await found(memory, "dog kitchen") == ["The dog sleeps in the kitchen."]
        assert "gave vectors of another number" in memory.freshness().embedding_error
        assert any("gave vectors of another number" in check.detail for check in await memory.doctor())
        embedder.embed = right  # type: ignore[method-assign]
        assert await found(memory, "hound") == ["The dog sleeps in the kitchen."]


async def test_an_index_closed_while_idle_sees_what_another_wrote_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ricordo.storage.sqlite._MAX_IDLE", 0)
    monkeypatch.setattr("ricordo.storage.sqlite._IDLE_SECONDS", 0.05)
    files, place = InMemoryFiles(), tmp_path / "index.db"
    await files.create("workspace/memory/2026-11-01.md", b"# Zoo\n\n- The lynx hides.\n")
    index, other = await WorkspaceIndex.open(place, files), await WorkspaceIndex.open(place, files)
    for number in range(2):
        await index.refresh()
        assert await index.search(Query(text=f"bird{number - 1}"), 1) or not number
        with anyio.fail_after(20):
            while place.with_name("index.db-wal").exists():  # noqa: ASYNC110 - a thread closes it, and tells nobody
                await anyio.sleep(0.05)
        await files.create(f"workspace/memory/2026-11-1{number}.md", f"# Zoo\n\n- The bird{number} sings.\n".encode())
        await other.refresh()
        assert [match.content for match in await index.search(Query(text=f"bird{number}"), 1)]
    await index.close()
    await other.close()


async def test_the_first_recall_after_an_index_was_lost_finds_by_meaning_and_embeds_no_memory_again(root: Path) -> None:
    embedder = Concepts()
    async with Memory.open(root, scope=SHOP, embedder=embedder) as memory:
        await memory.remember("The dog sleeps in the kitchen.")
        await memory.doctor()
    for place in root.rglob(INDEX_FILE):  # noqa: ASYNC240 - nothing else runs
        place.unlink()
    embedder.asked.clear()
    async with Memory.open(root, scope=SHOP, embedder=embedder) as memory:
        assert await found(memory, "puppy") == ["The dog sleeps in the kitchen."]
    assert embedder.asked == ["puppy"]
