"""A memory that is only looked at: jobs of the inbox wait for a process that has time for them."""

from pathlib import Path

import pytest
from anyio import to_thread

from agents_at_work import settings
from command_line import ricordo
from fake_models import FakeModel, reply
from ricordo import FlushConfig, HarnessAgent, Memory, MemoryConfig, Scope

pytestmark = pytest.mark.anyio

SCOPE = Scope(user="me", project="shop")


@pytest.fixture
async def root(tmp_path: Path) -> Path:
    """Return a root in which a session waits to be learned from."""
    flush = FlushConfig(model="offline", closing_seconds=0)
    async with HarnessAgent(
        FakeModel(reply("Noted.")),
        scope=SCOPE,
        memory=MemoryConfig(root=tmp_path / ".ricordo", flush=flush),
        settings=settings(tmp_path / ".ricordo"),
    ) as agent:
        await agent.send("We decided to deploy from main only.")
    return tmp_path / ".ricordo"


async def test_a_look_runs_no_job_and_the_next_process_with_time_runs_it(root: Path) -> None:
    async with Memory.open(root, scope=SCOPE, settings=settings(root), background=False) as memory:
        assert await memory.drain(seconds=0) == 1
        assert await memory.recall("deploy from main", said=False) == []
    async with Memory.open(root, scope=SCOPE, settings=settings(root), background=False) as memory:
        assert await memory.drain(seconds=0) == 1
    async with Memory.open(root, scope=SCOPE, settings=settings(root)) as memory:
        assert await memory.drain(seconds=30) == 0
        assert [hit.entry.content for hit in await memory.recall("deploy from main")] == [
            "We decided to deploy from main only."
        ]


LOOKS = ["recall deploy", "ask deploy?", "context", "memory list", "session list", "history", "profile show", "doctor"]


async def waiting_jobs(root: Path) -> int:
    async with Memory.open(root, scope=SCOPE, background=False) as memory:
        return await memory.drain(seconds=0)


async def test_commands_that_look_run_no_job_and_one_that_writes_does(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root.parent)
    for name, value in {"ROOT": root, "USER": "me", "PROJECT": "shop", "DATA": "data", "CACHE": "cache"}.items():
        monkeypatch.setenv(f"RICORDO_{name}", str(value))
    for command in LOOKS:
        done = await to_thread.run_sync(ricordo, *command.split())
        assert "Traceback" not in done.err
        assert await waiting_jobs(root) == 1, command
    await to_thread.run_sync(ricordo, "remember", "The lint job takes four minutes.")
    assert await waiting_jobs(root) == 0
    listed = await to_thread.run_sync(ricordo, "memory", "list", "--json")
    assert {each["content"] for each in listed.document["entries"]} == {
        "The lint job takes four minutes.", "We decided to deploy from main only.",
    }  # fmt: skip
