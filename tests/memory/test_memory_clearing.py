"""Clearing a memory ends what was going to be learned, removes its backups, and touches nobody else's."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from agents_at_work import said, settings
from places import place_of
from ricordo import FlushConfig, HarnessAgent, Memory, Scope
from ricordo.messages import Message, Text
from ricordo.testing import Say, ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.req("DF-B8", "DF-C58"), pytest.mark.may_block("the test looks at files")]

HERON = "We decided that the staging server is called heron8123."
OTTER = "We decided that the release branch is called otter4567."
ROBIN = "We decided that the mail relay is called robin2345."


def of(user: str = "me") -> Scope:
    return Scope(user=user, project="shop")


def answered(*texts: str) -> list[Message]:
    return [each for text in texts for each in (said(text), Message(role="assistant", parts=(Text(text="Noted."),)))]


def lessons(*texts: str) -> str:
    """Return the answer of a model that learns these texts."""
    fields = {"kind": "decision", "confidence": 0.9, "message": "", "since": None, "until": None, "tags": []}
    return json.dumps({"lessons": [{**fields, "content": text, "quote": text, "corrects": False} for text in texts]})


async def contents(memory: Memory) -> list[str]:
    return [entry.content for entry in await memory.entries()]


def holding(folder: Path, word: str, *, within: Sequence[str]) -> list[str]:
    paths = [path for name in within for path in (folder / name).rglob("*") if path.is_file()]
    return [str(path.relative_to(folder)) for path in paths if word.encode() in path.read_bytes()]


async def test_what_waits_to_be_learned_is_cancelled_and_never_learned(tmp_path: Path) -> None:
    root, model = tmp_path / "r", ScriptedModel([Say(lessons(HERON, ROBIN))])
    given = replace(settings(root), flush=FlushConfig(model=model))
    async with Memory.open(root, scope=of(), settings=given, background=False) as memory:
        for user in ("me", "ben"):
            async with Memory.open(root, scope=of(user), settings=given, background=False) as other:
                assert (await other.ingest(answered(HERON), session=f"s-{user}")).is_queued
        await memory.delete_all()
        assert await memory.drain(seconds=0) == 0
    # the other user's job still waits, and is done later
    async with Memory.open(root, scope=of("ben"), settings=given, background=False) as theirs:
        assert await theirs.drain(seconds=0) == 1
    async with Memory.open(root, scope=of(), settings=given) as memory:
        await memory.ingest(answered(HERON), session="s-me")
        await memory.drain()
        assert await contents(memory) == []
        assert not model.requests
        # what is said from now on is learned, and nothing else, although the model is shown what was said before
        await memory.ingest([*answered(HERON), *answered(ROBIN)], session="s-me")
        await memory.drain()
        assert await contents(memory) == [ROBIN]


async def test_a_turn_of_an_agent_that_still_waits_for_its_pause_is_cancelled_too(tmp_path: Path) -> None:
    root = tmp_path / "r"
    given = settings(root)
    script = ScriptedModel([Say("Noted.")] * 3)
    async with HarnessAgent(script, memory=root, scope=of(), session="s", settings=given) as agent:
        await agent.send(HERON)
        async with Memory.open(root, scope=of(), settings=given, background=False) as memory:
            assert await memory.drain(seconds=0) == 1
            await memory.delete_all()
            assert await memory.drain(seconds=0) == 0
        await agent.send("Thanks.")
    async with Memory.open(root, scope=of(), settings=given) as memory:
        await memory.drain()
        assert not [each for each in await contents(memory) if "heron8123" in each]


async def test_a_cleared_fact_is_not_learned_again_from_old_messages(tmp_path: Path) -> None:
    root = tmp_path / "r"
    async with Memory.open(root, scope=of()) as memory:
        await memory.ingest(answered(HERON, OTTER), session="s")
        saved = await memory.remember("The door code is on the raven7777 card.")
        before = await memory.entries()
        assert saved in before
        result = await memory.delete_all(reason="a new beginning")
        assert len(result.entries) == len(before)
        await memory.ingest(answered(HERON, OTTER), session="s")
        await memory.ingest(answered("I like tea very much.", OTTER), session="later")
        await memory.drain()
        assert not [each for each in await contents(memory) if "heron" in each or "otter" in each or "raven" in each]
        await memory.undo(result.change_id)
        assert {entry.id for entry in before} <= {entry.id for entry in await memory.entries()}


async def test_backups_go_in_the_cleared_place_and_in_no_other_and_come_back_with_an_undo(tmp_path: Path) -> None:
    root = tmp_path / "r"
    for user in ("me", "ben"):
        async with Memory.open(root, scope=of(user)) as memory:
            await memory.remember(HERON)
        place = place_of(root, user)
        for name in ("trash/2026-01-01/sessions/old.md", "workspace/profile.json.broken-1", "workspace/x.md.broken-12"):
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(HERON)
    async with Memory.open(root, scope=of()) as memory:
        # a filter deletes what matches it, and no backup
        await memory.delete_all(kinds=["lesson"])
        assert len(holding(place_of(root), "heron8123", within=["trash", "workspace"])) == 4
        result = await memory.delete_all()
        assert holding(place_of(root), "heron8123", within=["trash", "workspace"]) == []
        assert len(holding(place_of(root, "ben"), "heron8123", within=["trash", "workspace"])) == 4
        await memory.undo(result.change_id)
        assert len(holding(place_of(root), "heron8123", within=["trash", "workspace"])) == 4
        await memory.delete_all()
        # an empty memory may have backups too
        (place_of(root) / "workspace" / "y.md.broken-1").write_text(HERON)
        await memory.delete_all()
        assert holding(place_of(root), "heron8123", within=["trash", "workspace"]) == []
    async with Memory.open(root, scope=of("ben")) as theirs:
        assert await contents(theirs) == [HERON]


async def test_clearing_what_a_project_shares_leaves_what_is_private_waiting(tmp_path: Path) -> None:
    root, model = tmp_path / "r", ScriptedModel([Say(lessons(HERON))])
    given = replace(settings(root), flush=FlushConfig(model=model))
    async with Memory.open(root, scope=of(), settings=given, background=False) as memory:
        await memory.remember(ROBIN, scope="project", reason="All need it.")
        await memory.ingest(answered(HERON), session="s")
        await memory.delete_all(scope=Scope(project="shop"))
        assert await contents(memory) == []
        assert await memory.drain(seconds=0) == 1
    async with Memory.open(root, scope=of(), settings=given) as memory:
        await memory.drain()
        assert await contents(memory) == [HERON]
