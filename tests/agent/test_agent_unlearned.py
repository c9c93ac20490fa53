"""A session that is not to be learned from stays out of memory, also when the inbox was lost."""

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest

from agent_arguments import agent_arguments
from agents_at_work import settings, transcript
from named_disks import NamedDisk
from ricordo import FlushConfig, HarnessAgent, Scope
from ricordo.errors import StorageFull
from ricordo.testing import Say, ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.req("HE-C8-async")]

SCOPE = Scope(project="shop")
DECIDED = "We decided to use {} for module 3."


def agent(root: Path, **options: object) -> HarnessAgent:
    given = {"session": "s", "settings": settings(root), "scope": SCOPE} | options
    model = ScriptedModel(lambda request: Say(f"Reply {request.number}."))
    return HarnessAgent(model, **agent_arguments(workspace=root, **given))


def ledgers(root: Path) -> str:
    return "".join(path.read_text(encoding="utf-8") for path in (root / "workspace" / "memory").glob("*.md"))


def lose_inbox(root: Path) -> None:
    for name in ("queue.db", "queue.db-wal"):
        (root / name).write_bytes(b"this is no database\n" * 500)


@pytest.mark.req("AS-BUG-14", "AS-COMPACT-16")
@pytest.mark.parametrize("name", [None, "coder"])
async def test_a_session_without_hooks_is_not_learned_from_when_the_inbox_was_lost(
    tmp_path: Path, name: str | None
) -> None:
    root = tmp_path / "root"
    async with agent(root, memory_hooks=False, scope=replace(SCOPE, agent=name)) as one:
        await one.send(DECIDED.format("Celery"))
    lose_inbox(root)
    async with agent(root, session="other") as one:
        await one.send(DECIDED.format("Alembic"))
        assert await one.drain() == 0
    assert "Alembic" in ledgers(root)
    assert "Celery" not in ledgers(root)


@pytest.mark.req("AS-BUG-14")
async def test_each_session_that_an_inbox_held_when_it_was_lost_is_learned_from_at_the_next_start(
    tmp_path: Path,
) -> None:
    root = tmp_path / "root"
    late = replace(settings(root), flush=FlushConfig(model="offline", closing_seconds=0.0))
    async with agent(root, session="one", settings=late) as one, agent(root, session="two", settings=late) as two:
        await one.send(DECIDED.format("Celery"))
        await two.send(DECIDED.format("Alembic"))
    assert ledgers(root) == ""
    lose_inbox(root)
    async with agent(root, session="next") as one:
        assert await one.drain() == 0
    assert "Celery" in ledgers(root)
    assert "Alembic" in ledgers(root)


@pytest.mark.req("AS-BUG-14")
async def test_who_opens_a_session_with_hooks_lets_it_be_learned_from_for_good(tmp_path: Path) -> None:
    for hooks, learns in ((False, False), (True, True), (False, True)):
        async with agent(tmp_path / "root", memory_hooks=hooks) as one:
            await one.send("Hello.")
            assert one.state.learns is learns


async def test_nothing_is_said_where_the_wish_not_to_be_learned_from_can_not_be_kept(tmp_path: Path) -> None:
    def reached(step: str) -> None:
        if step == "write state":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async with agent(tmp_path / "off", memory_hooks=False, disk=NamedDisk(reached)) as one:
        with pytest.raises(StorageFull):
            await one.send("Hello.")
        assert one.window == ()
    assert await transcript(tmp_path / "off") == ()
    async with agent(tmp_path / "on", disk=NamedDisk(reached)) as one:
        assert str(await one.send("Hello.")) == "Reply 1."
