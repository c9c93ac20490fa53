"""LangChain over Ricordo, with a scripted model over the wire."""

from pathlib import Path
from typing import Any

import pytest

from framework_conformance import COMPACTION, FrameworkConformance, check_example, is_installed, play, run_page
from ricordo import Scope
from ricordo.errors import InvalidMessage, MemoryClosed
from ricordo.messages import Thinking, ToolCall, ToolResult, Unknown
from ricordo.testing import Fail, LoopbackServer, Say, ScriptItem

if not is_installed("langchain"):
    pytest.skip("LangChain is not installed: make test-adapters installs it", allow_module_level=True)

from langchain.agents import create_agent
from langchain.agents.middleware import ModelRetryMiddleware
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    messages_from_dict,
    messages_to_dict,
)
from langgraph.checkpoint.memory import InMemorySaver

from langchain_driver import LangChain, RicordoMiddleware, add, connect, say
from ricordo.adapters.langchain_messages import from_langchain, to_langchain

pytestmark = [pytest.mark.adapters, pytest.mark.anyio]
SCOPE = Scope(project="shop", user="ann")
MESSAGES: list[AnyMessage] = [
    SystemMessage("Be brief.", id="1"),
    HumanMessage(
        [{"type": "text", "text": "Look."}, {"type": "image_url", "image_url": {"url": "https://x/y.png"}}], id="2"
    ),
    AIMessage(
        [{"type": "thinking", "thinking": "Hm.", "signature": "abc"}, {"type": "text", "text": "I add."}],
        id="3",
        tool_calls=[{"name": "add", "args": {"a": 1}, "id": "a", "type": "tool_call"}],
        invalid_tool_calls=[{"name": "add", "args": "{", "id": "b", "error": "bad", "type": "invalid_tool_call"}],
        additional_kwargs={"reasoning_content": "x"},
    ),
    ToolMessage("3", id="4", tool_call_id="a", name="add"),
    ToolMessage(
        [{"type": "text", "text": "bad"}, {"type": "image", "base64": "AA=="}], id="5", tool_call_id="b", status="error"
    ),
    AIMessage("", id="6"),
]


class TestConformance(FrameworkConformance):
    """What every adapter withstands."""

    framework = LangChain


def test_messages_survive_the_conversion_in_both_directions() -> None:
    read = from_langchain(messages_to_dict(MESSAGES))
    assert [each.id for each in read] == ["1", "2", "3", "4", "5", "6"]
    assert isinstance(read[2].parts[0], Thinking)
    assert [(part.id, part.arguments) for part in read[2].parts if isinstance(part, ToolCall)] == [
        ("a", '{"a":1}'),
        ("b", "{"),
    ]
    assert isinstance(read[1].parts[1], Unknown)
    (failed,) = [part for part in read[4].parts if isinstance(part, ToolResult)]
    assert failed.is_error
    written = messages_from_dict(to_langchain(read))
    for before, after in zip(MESSAGES, written, strict=True):
        assert (after.type, after.id, after.name) == (before.type, before.id, before.name)
        assert after.content_blocks == before.content_blocks or after.content == before.content
        assert getattr(after, "tool_calls", None) == getattr(before, "tool_calls", None)
    assert written[2].invalid_tool_calls[0]["args"] == "{"
    assert written[2].additional_kwargs == {"reasoning_content": "x"}


@pytest.mark.parametrize(
    "value", [{"type": "human"}, {"type": "remove", "data": {"content": ""}}, {"type": "ai", "data": {"content": 3}}]
)
def test_a_message_that_cannot_be_read_is_named(value: Any) -> None:
    with pytest.raises(InvalidMessage, match=r"messages\[0\]"):
        from_langchain([value])


def test_an_agent_that_blocks_remembers_and_streams(tmp_path: Path) -> None:
    with LoopbackServer(play) as server:
        with RicordoMiddleware("s1", scope=SCOPE, memory=tmp_path, compaction=COMPACTION) as memory:
            agent = create_agent(connect(server.url), [add], middleware=[memory])
            for number in range(1, 9):
                reply = agent.invoke(say(f"Turn {number}: add {number} and 1"))["messages"][-1].content
                assert reply == f"Sums: {number + 1}, {number + 2}"
            assert [*agent.stream(say("And now?"), stream_mode="messages")]
        assert max(len(each.messages) for each in server.requests) < 30
        assert server.problems == ()
        with RicordoMiddleware("s1", scope=SCOPE, memory=tmp_path) as memory:
            create_agent(connect(server.url), [add], middleware=[memory]).invoke(say("What was the first?"))
        assert "Turn 8" in str(server.requests[-1].body)
    with pytest.raises(MemoryClosed, match="with"):
        create_agent(connect("http://127.0.0.1:9"), middleware=[memory]).invoke(say("Hello?"))


async def test_a_checkpointer_and_retries_double_nothing(tmp_path: Path) -> None:
    kept = InMemorySaver()
    config: Any = {"configurable": {"thread_id": "s1"}}
    replies: list[ScriptItem] = [Say("One."), Fail(503), Say("Two."), Say("Three.")]
    with LoopbackServer(replies) as server:
        for text in ("First", "Second", "Third"):
            # each turn is a program of its own, whose state comes from the checkpointer
            async with RicordoMiddleware("s1", scope=SCOPE, memory=tmp_path) as memory:
                retry = ModelRetryMiddleware(max_retries=2, initial_delay=0.0)
                agent = create_agent(connect(server.url), middleware=[memory, retry], checkpointer=kept)
                state = await agent.ainvoke(say(text), config)
                opened = (await memory.conversation.agent()).memory
                assert opened is not None
                recorded = (await opened.session("s1")).messages
        assert len(state["messages"]) == 6
        assert [each.text for each in recorded] == ["First", "One.", "Second", "Two.", "Third", "Three."]
        assert [each.text for each in server.requests[-1].messages if each.role != "system"] == [
            "First", "One.", "Second", "Two.", "Third",
        ]  # fmt: skip


def test_the_page_shows_what_happens(tmp_path: Path) -> None:
    with LoopbackServer(play) as server:
        assert "I was sent" in run_page("langchain", server.url, tmp_path)
        assert server.problems == ()


def test_the_example_remembers_from_run_to_run(tmp_path: Path) -> None:
    check_example("langchain_agent", tmp_path)
