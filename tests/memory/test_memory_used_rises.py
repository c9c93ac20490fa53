"""What somebody opens or confirms is in every prompt after the next dream, and undo takes that back to the byte."""

from dataclasses import replace
from pathlib import Path

import pytest

from agents_at_work import SCOPE, settings
from hand_clock import HandClock
from places import place_of
from ricordo import HarnessAgent, Memory
from ricordo.curation import ConsolidationConfig
from ricordo.models import OFFLINE
from ricordo.workspace import parse_entries

pytestmark = pytest.mark.anyio

THINGS = (
    "anvil",
    "bellows",
    "chisel",
    "drill",
    "easel",
    "file",
    "gouge",
    "hammer",
    "inkwell",
    "jigsaw",
    "kiln",
    "lathe",
)


@pytest.mark.req("CC-INDEXCAP")
async def test_what_was_confirmed_in_a_topic_is_in_the_index_after_a_dream_and_undo_puts_it_back(
    tmp_path: Path,
) -> None:
    root, clock = tmp_path / ".ricordo", HandClock()
    given = replace(settings(root, consolidates=True), consolidation=ConsolidationConfig(max_lines=12, model=OFFLINE))

    async def dreamt(*, deep: bool = True) -> str:
        async with HarnessAgent(OFFLINE, memory=root, scope=SCOPE, settings=given, clock=clock) as agent:
            return (await agent.consolidate(deep=deep)).change_id

    async with Memory.open(root, scope=SCOPE, settings=given, clock=clock) as memory:
        for thing in THINGS:
            await memory.remember(f"The {thing} stands in the shed of Ulla.")
            clock.turn(hours=1)
    assert await dreamt(deep=False)
    below = [each for path in (place_of(root) / "workspace/memory/topics").iterdir() for each in names(path)]
    confirmed, opened = below[-2:]
    async with Memory.open(root, scope=SCOPE, settings=given, clock=clock) as memory:
        await memory.confirm(confirmed)
        await memory.mark_used(opened)
    before = documents(root)
    change = await dreamt()
    assert names(place_of(root) / "workspace/MEMORY.md")[:2] == [confirmed, opened]
    assert await dreamt() == ""
    async with Memory.open(root, scope=SCOPE, settings=given, clock=clock) as memory:
        assert "The anvil" in await memory.preamble()
        await memory.undo(change)
    assert documents(root) == before


def names(path: Path) -> list[str]:
    return [found.entry.id for found in parse_entries(path.read_bytes(), path.name)]


def documents(root: Path) -> dict[str, bytes]:
    folder = place_of(root) / "workspace"
    return {path.name: path.read_bytes() for path in (folder / "MEMORY.md", *(folder / "memory").rglob("*.md"))}
