"""Conversation: one session of another framework's agent, kept by Ricordo.

Every adapter uses it: it takes messages in, gives what the next request needs, compacts, and closes. An adapter maps
names and decides nothing.

Invariants: a message is durable when `take_in` returns. What `give` returns has no forgotten content, and its window
is one that providers accept. Several tasks may use a conversation at once; it is opened once, at its first use.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self, Unpack

import anyio

from ricordo.agent import BuiltinTools, HarnessAgent, MemoryConfig, Tool, ToolContext
from ricordo.concurrency import Opening
from ricordo.context.strategies import Reductions
from ricordo.errors import ExtraMissing, InvalidMessage, MemoryClosed, ToolFailed, install_command
from ricordo.events import EventSink
from ricordo.lazy import dataclass
from ricordo.messages import Message, get_mark
from ricordo.messages.json_text import loads, require_object
from ricordo.models import ChatModel
from ricordo.models.offline import OfflineModel
from ricordo.runtime import Settings
from ricordo.scope import Scope

__all__ = ["Conversation", "GivenContext", "framework_missing"]


@dataclass(frozen=True, kw_only=True)
class GivenContext:
    """What the next request needs: `memory` for the system prompt, the `window`, and memories `recalled` for a message.

    The texts are empty if there is nothing to give. `memory` stays the same within a session, until a compaction or a
    correction; `recalled` is for one request, and is never part of the window.
    """

    memory: str
    window: tuple[Message, ...]
    recalled: str


class Conversation:
    """One session of an agent of another framework. Use it as `async with`, or call `close` at its end, in any task."""

    def __init__(
        self,
        session: str,
        *,
        scope: Scope | None,
        memory: str | Path | MemoryConfig | None = None,
        model: str | ChatModel | None = None,
        memory_tools: bool = False,
        settings: Settings | None = None,
        on_event: EventSink | None = None,
        **reductions: Unpack[Reductions],
    ) -> None:
        """Store the options without opening anything; they are those of `HarnessAgent.with_recommended_settings`.

        `session` is continued if it exists. `model` writes summaries and extracts facts; without it, rules do. With
        `memory_tools`, `tools` has those that remember and recall, and the prompt tells the model about them. Raises:
        ScopeRequired; InvalidScope; InvalidSetting.
        """
        config = memory if isinstance(memory, MemoryConfig) else MemoryConfig(root=memory)
        self.session = session
        self._agent = HarnessAgent.with_recommended_settings(
            OfflineModel(_answer_nothing) if model is None else model,
            scope=scope,
            # what can't be remembered is an error here, because nobody would see it in the framework's log
            memory=replace(config, required=True, keeps_session=True),
            session=session,
            instructions="",
            builtin_tools=BuiltinTools(memory=memory_tools, sessions=False),
            settings=settings,
            on_event=on_event,
            **reductions,
        )
        self._opening: Opening[HarnessAgent] | None = None
        self._open_agent: HarnessAgent | None = None
        self._is_closed = False
        self._lock = anyio.Lock()

    async def agent(self) -> HarnessAgent:
        """Return the open agent that keeps this session: its memory, window and compactions.

        Raises: MemoryClosed after `close`; what opening a `HarnessAgent` raises.
        """
        async with self._lock:
            if self._is_closed:
                raise MemoryClosed(f"The conversation {self.session} is closed: make another one to continue it.")
            if self._open_agent is None:
                self._opening = Opening(partial(_open_agent, self._agent))
                self._open_agent = await self._opening
            return self._open_agent

    async def tools(self) -> tuple[Tool, ...]:
        """Return the tools for the framework's model: `expand`, which opens what a compaction removed, and others."""
        return (await self.agent()).tools

    async def run_tool(self, tool: Tool, arguments: str, *, call_id: str) -> str:
        """Run a tool with the JSON that the model wrote; return its result, or the error for the model to mend."""
        agent = await self.agent()
        context = ToolContext(call_id=call_id, scope=agent.scope, agent=agent.state.agent, session=agent.session)
        try:
            return str(await tool(require_object(loads(arguments or "{}"), "arguments"), context))
        except (InvalidMessage, ToolFailed) as error:
            return f"Error: {error}"

    async def take_in(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Record messages and learn from them in the background; return them as stored. Raises: StorageError."""
        return await (await self.agent()).record(messages) if messages else ()

    async def give(self, messages: Sequence[Message] = ()) -> GivenContext:
        """Return what the next request needs; memories are recalled for `messages`, which are not taken in."""
        sent = list((await (await self.agent()).prepare_request(messages)).messages)
        memory = sent.pop(0).text if sent and sent[0].role == "system" and get_mark(sent[0]) is None else ""
        recalled = sent.pop().text if sent and get_mark(sent[-1]) == "reminder" else ""
        return GivenContext(memory=memory, window=tuple(sent), recalled=recalled)

    async def compact(self, *, focus: str = "") -> None:
        """Reduce the window now, whatever its size; a summary emphasizes `focus`. Raises: StorageError."""
        await (await self.agent()).compact(focus=focus)

    async def close(self) -> None:
        """Close the session; a second call does nothing. Due work is finished, the rest waits in the inbox."""
        async with self._lock:
            self._is_closed = True
            self._open_agent, opening, self._opening = None, self._opening, None
            if opening is not None:
                await opening.close()

    async def __aenter__(self) -> Self:
        """Open the session."""
        await self.agent()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the session."""
        await self.close()


async def _answer_nothing(text: str) -> str:
    """Answer for the model of a framework, which is the one that answers; Ricordo's own only writes summaries."""
    del text
    return ""


@asynccontextmanager
async def _open_agent(agent: HarnessAgent, opening: Opening[HarnessAgent]) -> AsyncIterator[HarnessAgent]:
    del opening
    async with agent:
        yield agent


def framework_missing(framework: str, extra: str) -> ExtraMissing:
    """Return the error for an adapter whose framework is not installed."""
    return ExtraMissing(
        f"This adapter needs {framework}, which is not installed. Install it with {install_command(extra)}."
    )
