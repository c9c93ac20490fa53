"""The OpenAI Agents SDK for the conformance suite of adapters: a real agent with a real client."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agents import Agent, OpenAIResponsesModel, RunConfig, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

from framework_conformance import COMPACTION, Framework
from ricordo.adapters import Conversation, RicordoSession

__all__ = ["OpenAIAgents", "RicordoSession", "add"]

set_tracing_disabled(disabled=True)


def add(a: int, b: int) -> str:
    """Return the sum of two numbers."""
    return str(a + b)


class Turns:
    """One session of the SDK."""

    def __init__(self, agent: "Agent[None]", session: RicordoSession) -> None:
        self._agent, self._session = agent, session
        self._config = RunConfig(call_model_input_filter=session.add_memory)

    @property
    def conversation(self) -> Conversation:
        return self._session.conversation

    async def ask(self, text: str) -> str:
        result = await Runner.run(self._agent, text, session=self._session, run_config=self._config)
        return str(result.final_output)

    async def stream(self, text: str) -> str:
        result = Runner.run_streamed(self._agent, text, session=self._session, run_config=self._config)
        async for _ in result.stream_events():
            pass
        return str(result.final_output)


class OpenAIAgents(Framework):
    """The SDK with its model for the Responses API."""

    label = "OpenAI Agents SDK"

    @asynccontextmanager
    async def open(self, session: str, *, user: str) -> AsyncIterator[Turns]:
        async with (
            AsyncOpenAI(base_url=f"{self.url}/v1", api_key="none", max_retries=0) as client,
            RicordoSession(session, scope=self.scope(user), memory=self.root, compaction=COMPACTION) as kept,
        ):
            model = OpenAIResponsesModel("gpt-5", client)
            yield Turns(Agent(name="adder", model=model, tools=[function_tool(add), *await kept.tools()]), kept)
