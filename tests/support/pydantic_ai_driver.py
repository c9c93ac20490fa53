"""pydantic-ai for the conformance suite of adapters: a real agent with a real client of chat completions."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from framework_conformance import COMPACTION, Framework
from ricordo.adapters import Conversation, RicordoCapability

__all__ = ["PydanticAI", "RicordoCapability", "create"]


def add(a: int, b: int) -> str:
    """Return the sum of two numbers."""
    return str(a + b)


def create(url: str, memory: RicordoCapability, system_prompt: str = "") -> "Agent[None, str]":
    """Return an agent with a model at `url`."""
    model = OpenAIChatModel("gpt-5", provider=OpenAIProvider(base_url=f"{url}/v1", api_key="none"))
    return Agent(model, tools=[add], capabilities=[memory], system_prompt=system_prompt or ())


class Turns:
    """One session of an agent."""

    def __init__(self, agent: "Agent[None, str]", memory: RicordoCapability) -> None:
        self._agent, self._memory = agent, memory

    @property
    def conversation(self) -> Conversation:
        return self._memory.conversation

    async def ask(self, text: str) -> str:
        return (await self._agent.run(text)).output

    async def stream(self, text: str) -> str:
        async with self._agent.run_stream(text) as result:
            return await result.get_output()


class PydanticAI(Framework):
    """An agent of pydantic-ai."""

    label = "pydantic-ai"

    @asynccontextmanager
    async def open(self, session: str, *, user: str) -> AsyncIterator[Turns]:
        async with RicordoCapability(
            session, scope=self.scope(user), memory=self.root, compaction=COMPACTION
        ) as memory:
            yield Turns(create(self.url, memory), memory)
