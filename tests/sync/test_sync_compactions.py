"""Compactions for programs that do not await."""

from pathlib import Path

import pytest

from agents_at_work import SCOPE, said, settings
from ricordo import CompactionConfig
from ricordo.agent.sync import SyncHarnessAgent
from ricordo.messages import is_pinned
from ricordo.testing import Say, ScriptedModel


@pytest.mark.req("CC-PIN", "CC-UNDO")
def test_plain_code_opens_undoes_and_pins(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    config = CompactionConfig(trigger_messages=6, keep_messages=2, model="offline")
    model = ScriptedModel(lambda request: Say("Done."))
    with SyncHarnessAgent.open(
        model, memory=root, scope=SCOPE, session="s", compaction=config, settings=settings(root)
    ) as agent:
        agent.record([said(f"Number {number} is a long one, {'with many words ' * 30}") for number in range(8)])
        before = agent.window
        agent.compactions.pin(before[-1].id)
        agent.send("Go on.")
        (made,) = agent.compactions.all()
        assert agent.compactions.expand(made.handle)[0].text == before[0].text
        assert agent.compactions.undo(made.handle).is_undone
        assert [message.id for message in agent.window[:8]] == [message.id for message in before]
        assert is_pinned(agent.window[7])
        assert not is_pinned(agent.compactions.unpin(before[-1].id))
