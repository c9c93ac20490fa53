"""The OpenAI Agents SDK over Ricordo, with a scripted model over the wire."""

from pathlib import Path

import pytest

from framework_conformance import FrameworkConformance, check_example, is_installed, play, run_page
from ricordo import Scope
from ricordo.errors import MemoryClosed
from ricordo.messages import ToolCall
from ricordo.testing import Call, LoopbackServer, Say, ScriptItem

if not is_installed("agents"):
    pytest.skip("the OpenAI Agents SDK is not installed: make test-adapters installs it", allow_module_level=True)

from agents import Agent, OpenAIResponsesModel, RunConfig, Runner, function_tool
from openai import AsyncOpenAI

from openai_agents_driver import OpenAIAgents, RicordoSession, add

pytestmark = [pytest.mark.adapters, pytest.mark.anyio]
SCOPE = Scope(project="shop", user="ann")
CALLED = [
    {"type": "message", "role": "user", "content": "Add them."},
    {"type": "reasoning", "id": "rs_1", "summary": []},
    {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "add", "arguments": "{}"},
    {"type": "function_call", "id": "fc_2", "call_id": "b", "name": "add", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "a", "output": "3"},
    {"type": "function_call_output", "call_id": "b", "output": "4"},
]


class TestConformance(FrameworkConformance):
    """What every adapter withstands."""

    framework = OpenAIAgents


async def test_items_are_popped_one_by_one_from_the_end(tmp_path: Path) -> None:
    async with RicordoSession("s1", scope=SCOPE, memory=tmp_path) as session:
        await session.add_items(CALLED)
        assert await session.get_items() == CALLED
        assert await session.get_items(2) == CALLED[-2:]
        for number in range(len(CALLED), 0, -1):
            assert await session.pop_item() == CALLED[number - 1]
        assert await session.pop_item() is None
        assert await session.get_items() == []


async def test_a_cleared_session_is_empty_and_its_transcript_is_not(tmp_path: Path) -> None:
    async with RicordoSession("s1", scope=SCOPE, memory=tmp_path) as session:
        await session.add_items(CALLED)
        await session.clear_session()
        assert await session.get_items() == []
        memory = (await session.conversation.agent()).memory
        assert memory is not None
        recorded = (await memory.session("s1")).messages
    assert len([part for each in recorded for part in each.parts if isinstance(part, ToolCall)]) == 2


async def test_a_closed_session_says_so(tmp_path: Path) -> None:
    session = RicordoSession("s1", scope=SCOPE, memory=tmp_path)
    await session.add_items(CALLED)
    await session.close()
    await session.close()
    with pytest.raises(MemoryClosed, match="s1"):
        await session.get_items()


async def test_the_model_remembers_by_a_tool_and_is_told_of_its_mistakes(tmp_path: Path) -> None:
    async with RicordoSession("s1", scope=SCOPE, memory=tmp_path, memory_tools=True) as session:
        tools = {each.spec.name: each for each in await session.conversation.tools()}
        assert {each.name for each in await session.tools()} == set(tools)
        remember = tools["remember"]
        run = session.conversation.run_tool
        assert (await run(remember, "{", call_id="c1")).startswith("Error: ")
        assert "Error" not in await run(remember, '{"content": "We deploy only from main."}', call_id="c2")
        memory = (await session.conversation.agent()).memory
        assert memory is not None
        assert [each.content for each in await memory.entries()] == ["We deploy only from main."]


async def test_a_handoff_stays_in_one_session(tmp_path: Path) -> None:
    script: list[ScriptItem] = [
        Call("transfer_to_adder", {}),
        Call("add", {"a": 1, "b": 2}),
        Say("It is 3."),
        Say("Still 3."),
    ]
    with LoopbackServer(script) as server:
        async with (
            AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client,
            RicordoSession("s1", scope=SCOPE, memory=tmp_path) as session,
        ):
            model = OpenAIResponsesModel("gpt-5", client)
            adder = Agent(name="adder", model=model, tools=[function_tool(add)])
            desk = Agent(name="desk", model=model, handoffs=[adder])
            config = RunConfig(call_model_input_filter=session.add_memory)
            result = await Runner.run(desk, "What is 1 and 2?", session=session, run_config=config)
            assert result.last_agent is adder
            result = await Runner.run(adder, "Sure?", session=session, run_config=config)
            assert result.final_output == "Still 3."
            memory = (await session.conversation.agent()).memory
            assert memory is not None
            recorded = (await memory.session("s1")).messages
        assert server.problems == ()
    assert [call.name for each in recorded for call in each.tool_calls] == ["transfer_to_adder", "add"]
    assert len([result for each in recorded for result in each.tool_results]) == 2
    assert [each.text for each in recorded if each.text] == ["What is 1 and 2?", "It is 3.", "Sure?", "Still 3."]
    assert "It is 3." in str(server.requests[-1].body)


def test_the_page_shows_what_happens(tmp_path: Path) -> None:
    with LoopbackServer(play) as server:
        assert "I was sent" in run_page("openai-agents", server.url, tmp_path)
        assert server.problems == ()


def test_the_example_remembers_from_run_to_run(tmp_path: Path) -> None:
    check_example("openai_agents", tmp_path)
