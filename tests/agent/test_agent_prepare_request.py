"""A program with its own loop gets the request that a turn would begin with, and asks its own model."""

from pathlib import Path

import pytest

from ricordo import CompactionConfig, HarnessAgent, Memory, Message, Scope
from ricordo.agent import MemoryConfig
from ricordo.messages import Text
from ricordo.testing import ScriptedModel

pytestmark = pytest.mark.anyio
SCOPE = Scope(project="shop", user="ann")


def _say(text: str, role: str = "user") -> Message:
    return Message(role="assistant" if role == "assistant" else "user", parts=(Text(text=text),))


async def test_the_request_has_memory_and_window_and_asks_no_model(tmp_path: Path) -> None:
    model = ScriptedModel([])
    async with HarnessAgent(model, scope=SCOPE, memory=tmp_path, session="s1") as agent:
        assert agent.memory is not None
        await agent.memory.remember("We deploy only from main.")
        await agent.record([_say("Where do we deploy from?"), _say("From main.", "assistant")])
        prepared = await agent.prepare_request("And when?")
    assert "We deploy only from main." in prepared.messages[0].text
    assert [each.text for each in prepared.messages[1:3]] == ["Where do we deploy from?", "From main."]
    assert model.requests == ()


async def test_a_window_that_is_too_long_is_reduced_and_stays_reduced(tmp_path: Path) -> None:
    compaction = CompactionConfig(trigger_messages=10, keep_messages=4)
    agent = HarnessAgent("offline", scope=SCOPE, memory=tmp_path, session="s1", compaction=compaction)
    async with agent:
        for number in range(10):
            await agent.record([_say(f"Question {number}? " * 40), _say(f"Answer {number}. " * 40, "assistant")])
        prepared = await agent.prepare_request()
        assert len(agent.window) < 10
        assert agent.window[-1].text.startswith("Answer 9.")
        assert [each.id for each in agent.window] == [each.id for each in prepared.messages if each in agent.window]
    again = HarnessAgent("offline", scope=SCOPE, memory=tmp_path, session="s1", compaction=compaction)
    async with again:
        assert len(again.window) < 10


async def test_forgotten_content_is_not_in_the_request(tmp_path: Path) -> None:
    memory = MemoryConfig(root=tmp_path, hooks=False)
    async with HarnessAgent("offline", scope=SCOPE, memory=memory, session="s1") as agent:
        opened: Memory | None = agent.memory
        assert opened is not None
        fact = "The spare key lies below the blue kettle"
        entry = await opened.remember(fact)
        await agent.record([_say(fact), _say("I know.", "assistant"), _say("Good."), _say("Yes.", "assistant")])
        assert "blue kettle" in "".join(each.text for each in (await agent.prepare_request()).messages)
        await opened.forget(entry.id)
        assert "blue kettle" not in "".join(each.text for each in (await agent.prepare_request()).messages)
