"""What a person pins stays in view, and what a person confirms is sure and fresh; both can be taken back."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from hand_clock import HandClock
from places import place_of
from ricordo import Memory
from ricordo.errors import EntryNotFound
from ricordo.messages import Tokens, estimate_text

pytestmark = pytest.mark.anyio
Opened = Callable[..., AbstractAsyncContextManager[Memory]]


@pytest.mark.req("CC-HALFLIFE")
async def test_a_pinned_memory_stays_in_a_preamble_that_has_no_room_for_the_rest(opened: Opened) -> None:
    async with opened() as memory:
        # longer than the rest, so that it does not slip into a gap that is too small for the newer ones
        rule = await memory.remember(
            "Never deploy on a Friday, nor on the last day before a holiday of the shop.", kind="convention"
        )
        for number in range(60):
            await memory.remember(f"Fact number {number} about the shop and its {number} shelves.")
        tight = Tokens(200)
        assert "Friday" not in await memory.preamble(tight)
        assert (await memory.pin(rule.id)).pinned
        shown = await memory.preamble(tight)
        assert "Never deploy on a Friday, nor on the last day before a holiday of the shop." in shown
        assert shown.count("Friday") == 1
        assert estimate_text(shown) <= tight.count
        assert not (await memory.pin(rule.id, on=False)).pinned
        assert "Friday" not in await memory.preamble(tight)


@pytest.mark.req("CC-INDEXCAP")
async def test_a_pinned_line_of_curated_memory_outlives_the_cut_of_its_tail(opened: Opened, root: Path) -> None:
    lines = [f"- Fact number {number} about the shop and its shelves.\n" for number in range(60)]
    async with opened():
        (place_of(root) / "workspace").mkdir(exist_ok=True)
        last = "- We ship on Mondays.\n- We rest on Sundays.\n"
        (place_of(root) / "workspace" / "MEMORY.md").write_text("# Memory\n\n" + "".join(lines) + last)
    async with opened() as memory:
        tight = Tokens(250)
        cut = await memory.preamble(tight)
        assert "Mondays" not in cut
        assert "Sundays" in cut, "what a person added last is new"
        (found,) = [entry for entry in await memory.entries() if "Mondays" in entry.content]
        await memory.pin(found.id)
        shown = await memory.preamble(tight)
        assert shown.count("Mondays") == 1
        assert estimate_text(shown) <= tight.count
    line = (place_of(root) / "workspace" / "MEMORY.md").read_text().splitlines()[-2]
    assert line.startswith("- We ship on Mondays. ")
    assert "[pinned:: yes]" in line
    assert line.endswith(f"^{found.id}")


@pytest.mark.req("FC-UNDO", "CC-HALFLIFE")
async def test_pinning_changes_one_line_and_undo_brings_back_every_byte(opened: Opened, root: Path) -> None:
    async with opened() as memory:
        await memory.remember("We use uv.")
        kept = await memory.remember("We deploy from main.", kind="decision", tags=("deploy",))
        (ledger,) = (place_of(root) / "workspace" / "memory").glob("*.md")
        before = ledger.read_bytes()
        await memory.pin(kept.id[-8:])
        changed = ledger.read_bytes()
        assert [line for line in changed.splitlines() if line not in before.splitlines()] != []
        assert len(changed.splitlines()) == len(before.splitlines())
        item = await memory.undo()
        assert item.action == "pin"
        assert ledger.read_bytes() == before
        assert not (await memory.entry(kept.id)).pinned


@pytest.mark.req("CC-AGE", "CC-HALFLIFE")
async def test_a_confirmed_memory_is_sure_and_as_fresh_as_today(opened: Opened) -> None:
    clock = HandClock()
    async with opened(clock=clock) as memory:
        old = await memory.remember("The office closes at six.")
        clock.turn(days=30)
        await memory.remember("The office closes at eight.")
        clock.turn(days=300)
        assert "eight" in (await memory.recall("when does the office close"))[0].entry.content
        confirmed = await memory.confirm(old.id)
        assert confirmed.confidence == 1.0
        assert confirmed.confirmed == clock.now()
        assert (await memory.entry(old.id)).confirmed == clock.now()
        fresh = {hit.entry.id: hit.signals["recency"] for hit in await memory.recall("when does the office close")}
        assert fresh.pop(old.id) == 1.0
        assert all(value < 1.0 for value in fresh.values())


@pytest.mark.req("CC-HALFLIFE")
async def test_what_was_doubtful_is_sure_once_it_is_confirmed(opened: Opened, root: Path) -> None:
    async with opened():
        (place_of(root) / "workspace").mkdir(exist_ok=True)
        line = "- The lift is on the left. [kind:: fact] [confidence:: 0.4] [by:: flush] ^01m80ftsj47df9g1b2nek7s7ge\n"
        (place_of(root) / "workspace" / "MEMORY.md").write_text(f"# Memory\n\n{line}")
    async with opened() as memory:
        assert (await memory.entry("01m80ftsj47df9g1b2nek7s7ge")).confidence == 0.4
        await memory.confirm("01m80ftsj47df9g1b2nek7s7ge")
        assert (await memory.entry("01m80ftsj47df9g1b2nek7s7ge")).confidence == 1.0
        await memory.undo()
        assert (await memory.entry("01m80ftsj47df9g1b2nek7s7ge")).confidence == 0.4


async def test_what_does_not_exist_can_be_neither_pinned_nor_confirmed(opened: Opened) -> None:
    async with opened() as memory:
        with pytest.raises(EntryNotFound):
            await memory.pin("nothing-here")
        with pytest.raises(EntryNotFound):
            await memory.confirm("nothing-here")


async def test_pinning_twice_writes_once(opened: Opened) -> None:
    async with opened() as memory:
        kept = await memory.remember("We use uv.")
        await memory.pin(kept.id)
        count = len(await memory.history())
        assert (await memory.pin(kept.id)).pinned
        assert len(await memory.history()) == count
