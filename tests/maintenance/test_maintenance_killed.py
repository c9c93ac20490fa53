"""Processes that are killed while they learn from a session: the next one learns from it, once."""

import signal
from pathlib import Path

import anyio
import pytest

from agents_at_work import SCOPE, settings
from ricordo import Memory
from warm_processes import run_warm

pytestmark = [pytest.mark.may_block("it runs processes"), pytest.mark.req("DF-B24")]

TALK = """
import os, signal, sys
from dataclasses import replace
from pathlib import Path
import anyio
sys.path.append(sys.argv[3])
from agents_at_work import SCOPE, settings
from ricordo import HarnessAgent
from ricordo.extraction.config import FlushConfig
from ricordo.testing import Say, ScriptedModel

class Killing(ScriptedModel):
    async def complete(self, messages, **given):
        os.kill(os.getpid(), signal.SIGKILL)

async def main(root, session):
    given = replace(settings(root), flush=FlushConfig(model=Killing([])))
    model = ScriptedModel([Say("Noted.")])
    async with HarnessAgent(model, memory=root, scope=SCOPE, session=session, settings=given) as agent:
        if session == "deploying":
            await agent.send("We deploy only from main.")

anyio.run(main, Path(sys.argv[1]), sys.argv[2])
"""
SUPPORT = Path(__file__).parents[1] / "support"


def killed(root: Path, session: str) -> None:
    """Run a process that is killed as soon as it learns from a session."""
    ended = run_warm(["python", "-c", TALK, str(root), session, str(SUPPORT)])
    assert ended.returncode == -signal.SIGKILL, ended.stderr


async def after(root: Path) -> None:
    async with Memory.open(root, scope=SCOPE, settings=settings(root)):
        pass
    async with Memory.open(root, scope=SCOPE, settings=settings(root)) as memory:
        assert [entry.content for entry in await memory.entries()] == ["We deploy only from main."]
        [inbox] = [check for check in await memory.doctor() if check.name == "inbox"]
        assert (inbox.ok, inbox.count) == (True, 0)


@pytest.mark.req("AS-BUG-14", "AS-BUG-13")
def test_a_session_whose_extraction_was_killed_often_is_learned_from_once_by_the_next_process(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    killed(root, "deploying")
    for number in range(6):
        killed(root, f"other-{number}")
    anyio.run(after, root)
