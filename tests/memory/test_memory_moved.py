"""A root that is moved, removed or replaced while it is open: it is said on every way in, and nothing is made anew."""

import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from anyio.to_thread import run_sync

from agents_at_work import said, settings
from hand_clock import HandClock
from ricordo import HarnessAgent, Memory, Scope
from ricordo.errors import RootMoved
from ricordo.testing import Say, ScriptedModel

if TYPE_CHECKING:
    from ricordo.events import Event

pytestmark = pytest.mark.anyio

SHOP = Scope(user="me", project="shop")
ELSEWHERE = "elsewhere"

Act = Callable[[Memory, str], Awaitable[object]]

ACTS: dict[str, Act] = {
    "entries": lambda memory, entry: memory.entries(),
    "entry": lambda memory, entry: memory.entry(entry),
    "recall": lambda memory, entry: memory.recall("door"),
    "search": lambda memory, entry: memory.search("door"),
    "answer": lambda memory, entry: memory.answer("Which door is red?"),
    "preamble": lambda memory, entry: memory.preamble(),
    "sessions": lambda memory, entry: memory.sessions(),
    "session": lambda memory, entry: memory.session("s"),
    "history": lambda memory, entry: memory.history(),
    "doctor": lambda memory, entry: memory.doctor(),
    "remember": lambda memory, entry: memory.remember("The roof is blue."),
    "remember for all": lambda memory, entry: memory.remember(
        "The roof is blue.", scope=Scope(project="shop"), reason="It holds for all."
    ),
    "forget": lambda memory, entry: memory.forget(entry),
    "undo": lambda memory, entry: memory.undo(),
    "ingest": lambda memory, entry: memory.ingest([said("We deploy only from main.")], session="t"),
}


def remove(root: Path) -> None:
    shutil.rmtree(root)


def move(root: Path) -> None:
    root.rename(root.with_name(ELSEWHERE))


def replace(root: Path) -> None:
    """Put a root that looks alike, and is another one, in its place."""
    shutil.copytree(root, root.with_name("copy"))
    move(root)
    root.with_name("copy").rename(root)


def files_of(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("away", [remove, move, replace])
async def test_each_act_says_that_the_root_is_away_and_makes_nothing_in_its_place(
    tmp_path: Path, away: Callable[[Path], None]
) -> None:
    root = tmp_path / ".ricordo"
    async with Memory.open(root, scope=SHOP, settings=settings(root)) as memory:
        entry = await memory.remember("The door is red.")
        await memory.ingest([said("I prefer tea over coffee.")], session="s")
        await run_sync(away, root)
        before = files_of(root)
        for name, act in ACTS.items():
            with pytest.raises(RootMoved, match="bring it back, or open the memory again"):
                await act(memory, entry.id)
            assert files_of(root) == before, name
    assert root.exists() == (away is replace)
    assert files_of(root) == before


async def test_a_root_that_was_brought_back_goes_on_with_all_that_it_held(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    async with Memory.open(root, scope=SHOP, settings=settings(root)) as memory:
        await memory.remember("The door is red.")
        move(root)
        with pytest.raises(RootMoved):
            await memory.remember("The roof is blue.")
        root.with_name(ELSEWHERE).rename(root)
        await memory.remember("The roof is green.")
        assert sorted(each.content for each in await memory.entries()) == ["The door is red.", "The roof is green."]
        assert [hit.entry.content for hit in await memory.recall("roof")] == ["The roof is green."]
    async with Memory.open(root, scope=SHOP, settings=settings(root)) as memory:
        assert len(await memory.entries()) == 2
        assert [check.name for check in await memory.doctor() if not check.ok] == []


async def test_what_was_noted_before_a_root_went_away_is_written_when_it_is_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root = tmp_path / ".ricordo"
    for is_back in (False, True):
        caplog.clear()
        async with Memory.open(root, scope=SHOP, settings=settings(root)) as memory:
            entry = await memory.remember(f"The door is red: {is_back}.")
            assert await memory.recall("door")
            move(root)
            with pytest.raises(RootMoved):
                await memory.recall("door")
            if is_back:
                root.with_name(ELSEWHERE).rename(root)
        assert ("was not noted 1 times" in caplog.text) is not is_back
        if not is_back:
            root.with_name(ELSEWHERE).rename(root)
    usage = next(root.rglob("usage.jsonl"), None)
    assert usage is not None
    assert entry.id in usage.read_text()


async def test_what_waits_in_an_inbox_is_told_to_be_away_and_done_when_it_is_back(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    events: list[Event] = []
    clock = HandClock()
    async with HarnessAgent(
        ScriptedModel([Say("Noted.")]), memory=root, scope=SHOP, session="s", settings=settings(root),
        on_event=events.append, clock=clock,
    ) as agent:  # fmt: skip
        await agent.send("We deploy only from main.")
        move(root)
        with pytest.raises(RootMoved):
            await agent.flush()
    assert not root.exists()
    assert ("drain", "RootMoved") in {(event.stage, event.error) for event in events}
    root.with_name(ELSEWHERE).rename(root)
    # whoever was at work on it did not come back
    clock.turn(days=1)
    async with Memory.open(root, scope=SHOP, settings=settings(root), clock=clock):
        pass
    async with Memory.open(root, scope=SHOP, settings=settings(root), clock=clock) as memory:
        assert [entry.content for entry in await memory.entries()] == ["We deploy only from main."]


async def test_an_agent_says_that_its_root_is_away_and_goes_on_when_it_is_back(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    model = ScriptedModel([Say("Noted."), Say("Still here."), Say("Again.")])
    async with HarnessAgent(model, memory=root, scope=SHOP, session="s", settings=settings(root)) as agent:
        await agent.send("I prefer tea over coffee.")
        move(root)
        with pytest.raises(RootMoved):
            await agent.send("We deploy only from main.")
        assert not root.exists()
        root.with_name(ELSEWHERE).rename(root)
        await agent.send("We deploy only from main.")
    async with Memory.open(root, scope=SHOP, settings=settings(root)) as memory:
        assert [each.text for each in (await memory.session("s")).messages if each.role == "user"] == [
            "I prefer tea over coffee.", "We deploy only from main.",
        ]  # fmt: skip
        assert any("main" in entry.content for entry in await memory.entries())
