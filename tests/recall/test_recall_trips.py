"""A recall goes to a thread once, and sees all the same what others did meanwhile."""

from pathlib import Path

import anyio
import pytest

from ricordo import Memory, Scope
from ricordo.runtime import Settings
from thread_trips import counted_trips

pytestmark = pytest.mark.anyio


def settings(folder: Path) -> Settings:
    return Settings(root=None, user="me", data=folder / "data", cache=folder / "cache")


async def counted(memory: Memory, question: str) -> tuple[int, list[str]]:
    """Return how often a recall goes to a thread, and what it finds."""
    with counted_trips() as trips:
        hits = await memory.recall(question)
    return len(trips), [hit.entry.content for hit in hits]


async def test_a_recall_where_nothing_changed_is_one_trip_and_one_after_an_edit_finds_the_edit(tmp_path: Path) -> None:
    scope = Scope(project="harbour")
    async with Memory.open(tmp_path / "root", scope=scope, settings=settings(tmp_path)) as memory:
        await memory.remember("The gull sits on the crane.")
        await anyio.sleep(0.06)
        for _ in range(2):
            await memory.recall("gull")
        assert await counted(memory, "gull on what?") == (1, ["The gull sits on the crane."])
        (ledger,) = (tmp_path / "root").glob("workspace/memory/*.md")
        ledger.write_text(ledger.read_text().replace("crane", "mast of the ship"))
        assert (await counted(memory, "gull on what?"))[1] == ["The gull sits on the mast of the ship."]
        ledger.unlink()
        assert (await counted(memory, "gull on what?"))[1] == []


@pytest.mark.parametrize("question", ["zebra", "", "&", "the"])
async def test_a_recall_that_finds_nothing_by_words_is_one_trip_too(tmp_path: Path, question: str) -> None:
    scope = Scope(project="harbour")
    async with Memory.open(tmp_path / "root", scope=scope, settings=settings(tmp_path)) as memory:
        await memory.remember("The gull sits on a crane & sleeps.")
        await anyio.sleep(0.06)
        for _ in range(2):
            await memory.recall("gull")
        found = [] if question == "zebra" else ["The gull sits on a crane & sleeps."]
        assert await counted(memory, question) == (1, found)


async def test_what_is_noted_beside_the_documents_makes_no_trip_more_and_a_new_document_is_found(
    tmp_path: Path,
) -> None:
    scope, root = Scope(project="harbour"), tmp_path / "root"
    async with Memory.open(root, scope=scope, settings=settings(tmp_path)) as memory:
        await memory.remember("The gull sits on the crane.")
        await anyio.sleep(0.06)
        for _ in range(2):
            await memory.recall("gull")
        for _ in range(2):
            with (root / "workspace" / "usage.jsonl").open("a") as file:
                file.write("{}\n")
            assert await counted(memory, "gull") == (1, ["The gull sits on the crane."])
        (root / "workspace" / "MEMORY.md").write_text("- A gull is no omen.\n")
        assert sorted((await counted(memory, "gull"))[1]) == ["A gull is no omen.", "The gull sits on the crane."]


@pytest.mark.req("HE-C5-user")
async def test_what_another_project_saved_for_all_is_found_though_there_was_no_place_for_it_before(
    tmp_path: Path,
) -> None:
    mine, other = (Scope(user="me", project=name) for name in ("harbour", "airport"))
    held = settings(tmp_path)
    async with (
        Memory.open(tmp_path / "one", scope=mine, settings=held) as memory,
        Memory.open(tmp_path / "two", scope=other, settings=held) as elsewhere,
    ):
        await memory.remember("The gull sits on the crane.")
        await anyio.sleep(0.06)
        for _ in range(2):
            await memory.recall("gull")
        assert await counted(memory, "gull") == (1, ["The gull sits on the crane."]), (
            "nothing is shared, and none goes there"
        )
        await elsewhere.remember("A gull is no omen.", scope=Scope(user="me"), reason="It holds everywhere.")
        assert sorted((await counted(memory, "gull"))[1]) == ["A gull is no omen.", "The gull sits on the crane."]
        await elsewhere.remember("No gull likes noise.", scope=Scope(user="me"), reason="It holds everywhere.")
        assert len((await counted(memory, "gull"))[1]) == 3


async def test_what_is_first_shared_by_anybody_is_found_by_the_next_recall(tmp_path: Path) -> None:
    mine, shared, held = Scope(user="me", project="harbour"), Scope(project="harbour"), settings(tmp_path)
    root = tmp_path / "root"
    async with Memory.open(root, scope=mine, settings=held) as memory:
        await memory.remember("The gull sits on the crane.")
        await anyio.sleep(0.06)
        for _ in range(2):
            await memory.recall("gull")
        assert (await counted(memory, "gull"))[0] == 1
        async with Memory.open(root, scope=shared, settings=held) as other:
            await other.remember("A gull is no omen.")
        assert sorted((await counted(memory, "gull"))[1]) == ["A gull is no omen.", "The gull sits on the crane."]
        assert len((await counted(memory, "gull"))[1]) == 2
        await memory.remember("No gull likes noise.", scope=shared)
        assert len((await counted(memory, "gull"))[1]) == 3
