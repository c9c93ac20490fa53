"""Programs with a loop of their own around the SDKs of OpenAI and Anthropic, for the conformance suite of adapters."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from framework_conformance import COMPACTION, Framework
from ricordo.adapters import Conversation, SessionMemory

__all__ = ["AnthropicLoop", "OpenAILoop", "SessionMemory"]

_SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}


class OpenAITurns:
    """A loop around chat completions, which keeps the whole conversation in a list."""

    def __init__(self, client: AsyncOpenAI, memory: SessionMemory) -> None:
        self._client, self._memory = memory.wrap(client), memory
        self._messages: list[Any] = [{"role": "system", "content": "You add."}]

    @property
    def conversation(self) -> Conversation:
        return self._memory.conversation

    async def ask(self, text: str) -> str:
        return await self._run(text, streamed=False)

    async def stream(self, text: str) -> str:
        return await self._run(text, streamed=True)

    async def _run(self, text: str, *, streamed: bool) -> str:
        self._messages.append({"role": "user", "content": text})
        while True:
            message = await (self._stream() if streamed else self._call())
            self._messages.append(message)
            calls = message.get("tool_calls") or []
            if not calls:
                return str(message["content"])
            for call in calls:
                given = json.loads(call["function"]["arguments"])
                total = str(given["a"] + given["b"])
                self._messages.append({"role": "tool", "tool_call_id": call["id"], "content": total})

    def _create(self, **options: Any) -> Any:
        tool: Any = {"type": "function", "function": {"name": "add", "parameters": _SCHEMA}}
        return self._client.chat.completions.create(model="gpt-5", messages=self._messages, tools=[tool], **options)

    async def _call(self) -> dict[str, Any]:
        reply = await self._create()
        message: dict[str, Any] = reply.choices[0].message.model_dump(exclude_none=True)
        return message

    async def _stream(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": ""}
        async for event in await self._create(stream=True):
            for choice in event.choices:
                message["content"] += choice.delta.content or ""
                for part in choice.delta.tool_calls or ():
                    calls = message.setdefault("tool_calls", [])
                    if part.id:
                        calls.append({"id": part.id, "type": "function", "function": {"name": "", "arguments": ""}})
                    calls[-1]["function"]["name"] += part.function.name or ""
                    calls[-1]["function"]["arguments"] += part.function.arguments or ""
        return message


class OpenAILoop(Framework):
    """A loop around OpenAI's SDK."""

    label = "a loop around `openai`"

    @asynccontextmanager
    async def open(self, session: str, *, user: str) -> AsyncIterator[OpenAITurns]:
        async with (
            AsyncOpenAI(base_url=f"{self.url}/v1", api_key="none", max_retries=0) as client,
            SessionMemory(session, scope=self.scope(user), memory=self.root, compaction=COMPACTION) as memory,
        ):
            yield OpenAITurns(client, memory)


class AnthropicTurns:
    """A loop around messages, which keeps the whole conversation in a list."""

    def __init__(self, client: AsyncAnthropic, memory: SessionMemory) -> None:
        self._client, self._memory = memory.wrap(client), memory
        self._messages: list[Any] = []

    @property
    def conversation(self) -> Conversation:
        return self._memory.conversation

    async def ask(self, text: str) -> str:
        return await self._run(text, streamed=False)

    async def stream(self, text: str) -> str:
        return await self._run(text, streamed=True)

    async def _run(self, text: str, *, streamed: bool) -> str:
        self._messages.append({"role": "user", "content": text})
        while True:
            reply = await (self._stream() if streamed else self._create())
            self._messages.append({"role": "assistant", "content": reply.content})
            calls = [block for block in reply.content if block.type == "tool_use"]
            if not calls:
                return "".join(block.text for block in reply.content)
            results = [
                {"type": "tool_result", "tool_use_id": each.id, "content": str(each.input["a"] + each.input["b"])}
                for each in calls
            ]
            self._messages.append({"role": "user", "content": results})

    def _fields(self) -> dict[str, Any]:
        tool = {"name": "add", "input_schema": _SCHEMA}
        return {
            "model": "claude-sonnet-5",
            "max_tokens": 100,
            "system": "You add.",
            "messages": self._messages,
            "tools": [tool],
        }

    async def _create(self) -> Any:
        return await self._client.messages.create(**self._fields())

    async def _stream(self) -> Any:
        async with self._client.messages.stream(**self._fields()) as events:
            async for _ in events:
                pass
            return await events.get_final_message()


class AnthropicLoop(Framework):
    """A loop around Anthropic's SDK."""

    label = "a loop around `anthropic`"

    @asynccontextmanager
    async def open(self, session: str, *, user: str) -> AsyncIterator[AnthropicTurns]:
        async with (
            AsyncAnthropic(base_url=self.url, api_key="none", max_retries=0) as client,
            SessionMemory(session, scope=self.scope(user), memory=self.root, compaction=COMPACTION) as memory,
        ):
            yield AnthropicTurns(client, memory)
