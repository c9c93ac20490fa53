"""Whatever an agent does with a long conversation, the event loop is never blocked for more than 50 ms."""

from functools import partial
from pathlib import Path

import pytest

from agents_at_work import SCOPE, settings
from loop_guard import LeavesLoopFree
from ricordo import CompactionConfig, HarnessAgent
from ricordo.messages import Message, Text
from ricordo.testing import Say, ScriptedModel

pytestmark = pytest.mark.anyio


def said(count: int) -> list[Message]:
    return [
        Message(role=role, parts=(Text(text=f"{role} {number} says that crane {number % 77} lifts {number} tons. "),))
        for number in range(count // 2)
        for role in ("user", "assistant")
    ]


@pytest.mark.req("DF-B19")
async def test_compacting_and_consolidating_thousands_of_messages_leaves_the_loop_free(
    tmp_path: Path, leaves_loop_free: LeavesLoopFree
) -> None:
    config = CompactionConfig(trigger_messages=0, trigger_tokens=None, keep_tokens=None, model="offline")
    async with HarnessAgent(
        ScriptedModel(lambda _: Say("Yes.")),
        memory=tmp_path,
        scope=SCOPE,
        session="s",
        settings=settings(tmp_path, consolidates=True),
        compaction=config,
    ) as agent:
        await agent.record(said(3_000))
        await leaves_loop_free(partial(agent.compact, dry_run=True))
        await leaves_loop_free(agent.consolidate)
        await leaves_loop_free(partial(agent.send, "And now?"))
        assert len(agent.window) > 3_000
