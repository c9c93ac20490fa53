"""LangChain for the conformance suite of adapters: a real agent with a real client of chat completions."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

from framework_conformance import COMPACTION, Framework
from ricordo.adapters import Conversation, RicordoMiddleware

__all__ = ["LangChain", "RicordoMiddleware", "add", "connect", "say"]


@tool
def add(a: int, b: int) -> str:
    """Return the sum of two numbers."""
    return str(a + b)


def connect(url: str) -> ChatOpenAI:
    """Return a model at `url`."""
    return ChatOpenAI(model="gpt-5", base_url=f"{url}/v1", api_key="none", max_retries=0)


def say(text: str) -> dict[str, Any]:
    """Return the input of a turn."""
    return {"messages": [{"role": "user", "content": text}]}


class Turns:
    """One session of an agent."""

    def __init__(self, agent: Any, memory: RicordoMiddleware) -> None:
        self._agent, self._memory = agent, memory

    @property
    def conversation(self) -> Conversation:
        return self._memory.conversation

    async def ask(self, text: str) -> str:
        return str((await self._agent.ainvoke(say(text)))["messages"][-1].content)

    async def stream(self, text: str) -> str:
        last = ""
        async for mode, event in self._agent.astream(say(text), stream_mode=["messages", "values"]):
            if mode == "values":
                last = event["messages"][-1].content
        return str(last)


class LangChain(Framework):
    """An agent that LangChain creates."""

    label = "LangChain"

    @asynccontextmanager
    async def open(self, session: str, *, user: str) -> AsyncIterator[Turns]:
        async with RicordoMiddleware(
            session, scope=self.scope(user), memory=self.root, compaction=COMPACTION
        ) as memory:
            yield Turns(create_agent(connect(self.url), [add], middleware=[memory]), memory)
