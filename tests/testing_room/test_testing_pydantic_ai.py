"""A whole agent of another library runs against the server: it calls a tool, sends the result back, and ends."""

import pytest
from pydantic_ai import Agent
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from ricordo.testing import Call, LoopbackServer, Say

BACKENDS = ["asyncio"]
"""The library has no other event loop."""
KINDS = ["chat", "responses", "messages"]


def _model(kind: str, server: LoopbackServer) -> Model:
    if kind == "messages":
        return AnthropicModel("m", provider=AnthropicProvider(base_url=server.url, api_key="key"))
    provider = OpenAIProvider(base_url=f"{server.url}/v1", api_key="key")
    return OpenAIChatModel("m", provider=provider) if kind == "chat" else OpenAIResponsesModel("m", provider=provider)


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", BACKENDS)
@pytest.mark.parametrize("kind", KINDS)
async def test_an_agent_calls_its_tool_and_answers(kind: str, anyio_backend: str) -> None:
    del anyio_backend
    with LoopbackServer([Call("weather", {"place": "Oslo"}), Say("It snows in Oslo.")]) as server:
        agent = Agent(_model(kind, server), system_prompt="Be brief.")

        @agent.tool_plain
        def weather(place: str) -> str:
            """Say what the weather is."""
            return f"snow in {place}"

        async with agent:
            done = await agent.run("How is the weather in Oslo?")
        assert done.output == "It snows in Oslo."
        assert server.problems == ()
        asked, answered = server.requests
    assert [tool.name for tool in asked.tools] == ["weather"]
    assert [(message.role, message.text) for message in asked.messages] == [
        ("system", "Be brief."),
        ("user", "How is the weather in Oslo?"),
    ]
    results = [result.text for message in answered.messages for result in message.tool_results]
    assert results == ["snow in Oslo"]


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", BACKENDS)
@pytest.mark.parametrize("kind", KINDS)
async def test_an_agent_streams_what_is_said(kind: str, anyio_backend: str) -> None:
    del anyio_backend
    with LoopbackServer([Say("one two three", thinking="Hm.")]) as server:
        async with Agent(_model(kind, server)) as agent, agent.run_stream("Count.") as stream:
            pieces = [piece async for piece in stream.stream_text(delta=True, debounce_by=None)]
    assert "".join(pieces) == "one two three"
    assert len(pieces) == 3
