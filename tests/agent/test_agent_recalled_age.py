"""What is recalled says how old it is, counted from when it was last known to hold, never from the times of files."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from agents_at_work import SCOPE, settings
from hand_clock import HandClock
from hand_made_roots import begun
from ricordo import BuiltinTools, HarnessAgent, Memory, MemoryConfig
from ricordo.context import TurnRecallConfig
from ricordo.testing import Call, RecordedRequest, Say, ScriptedModel, ScriptItem

pytestmark = [pytest.mark.anyio, pytest.mark.req("HE-C7")]

HARVEST = "We rent the walnut harvester from Okonkwo for the orchard."
OTHER = "The walnut harvester is green."
QUESTION = "Who rents us the walnut harvester for the orchard?"


async def shown(root: Path, clock: HandClock) -> list[str]:
    """Return what the recall tool, the search tool and a turn's reminder show."""

    def answer(request: RecordedRequest) -> ScriptItem:
        named = {1: "recall", 2: "memory_search"}.get(request.number)
        return Call(named, {"query": "walnut harvester"}) if named else Say("Okonkwo.")

    model = ScriptedModel(answer)
    given = replace(settings(root), preamble_tokens=0, turn_recall=TurnRecallConfig(seconds=20.0))
    async with HarnessAgent(
        model,
        memory=MemoryConfig(root=root, hooks=False),
        scope=SCOPE,
        settings=given,
        builtin_tools=BuiltinTools(sessions=False),
        clock=clock,
    ) as one:
        await one.send(QUESTION)
    results = [result.text for each in model.requests[-1].messages for result in each.tool_results]
    return [*results, model.requests[0].messages[-1].text]


def age_of(block: str, text: str) -> str | None:
    """Return the age that a block tells of a memory; None where it tells none."""
    head = block[: block.index(text)].rpartition("<memory-item ")[2]
    return head.partition('age="')[2].partition('"')[0] or None


@pytest.mark.req("CC-AGE")
async def test_an_age_counts_from_the_last_confirmation_and_copied_files_make_nothing_fresher(tmp_path: Path) -> None:
    root, clock = tmp_path / "one" / ".ricordo", HandClock()
    root.parent.mkdir()
    async with Memory.open(root, scope=SCOPE, settings=settings(root), clock=clock) as memory:
        entry = await memory.remember(HARVEST)
        await memory.remember(OTHER)
    clock.turn(hours=20)
    assert age_of((await shown(root, clock))[1], HARVEST) is None, "younger than a day"
    clock.turn(hours=5)
    assert [age_of(block, HARVEST) for block in (await shown(root, clock))[1:]] == ["1 day"] * 2
    clock.turn(days=60)
    before = await shown(root, clock)
    assert [age_of(block, HARVEST) for block in before] == ["2 months"] * 3
    copy = tmp_path / "two" / ".ricordo"
    shutil.copytree(root, copy, ignore=shutil.ignore_patterns("*.log.jsonl"))
    begun(copy, copy.parent / "data")
    for path in copy.rglob("*"):
        os.utime(path, (clock.now().timestamp(),) * 2)
    assert await shown(copy, clock) == before
    async with Memory.open(root, scope=SCOPE, settings=settings(root), clock=clock) as memory:
        await memory.confirm(entry.id)
    clock.turn(days=3)
    after = await shown(root, clock)
    assert [age_of(block, HARVEST) for block in after] == ["3 days"] * 3
    assert age_of(after[0], OTHER) == "2 months"
