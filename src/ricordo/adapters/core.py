"""Conversation: one session of another framework's agent, kept by Ricordo.

Every adapter uses it: it takes messages in, gives what the next request needs, compacts, and closes. An adapter maps
names and decides nothing.

Invariants: a message is durable when `take_in` returns. What `give` returns has no forgotten content, and its window
is one that providers accept. Several tasks may use a conversation at once; it is opened once, at its first use.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Required, Self, TypeVar, Unpack

import anyio
from anyio import to_thread
from anyio.from_thread import BlockingPortal, start_blocking_portal

from ricordo.agent import BuiltinTools, HarnessAgent, MemoryConfig, Tool, ToolContext
from ricordo.concurrency import Opening
from ricordo.context.strategies import Reductions
from ricordo.errors import (
    ExtraMissing,
    InvalidMessage,
    MemoryClosed,
    SessionNotFound,
    ToolFailed,
    install_command,
)
from ricordo.events import EventSink
from ricordo.lazy import dataclass
from ricordo.messages import JsonValue, Message, get_mark
from ricordo.messages.json_text import loads, require_object
from ricordo.models import ChatModel
from ricordo.models.offline import OfflineModel
from ricordo.runtime import Settings
from ricordo.runtime.sync import run_and_wait
from ricordo.scope import Scope

__all__ = ["Adapter", "Bridge", "Conversation", "ConversationOptions", "GivenContext", "framework_missing"]

_R = TypeVar("_R")


class ConversationOptions(Reductions, total=False):
    """The options of `Conversation` and of every adapter, by name; `scope` is required."""

    scope: Required[Scope | None]
    memory: str | Path | MemoryConfig | None
    model: str | ChatModel | None
    memory_tools: bool
    settings: Settings | None
    on_event: EventSink | None


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
        opt_in: Sequence[str] = (),
        settings: Settings | None = None,
        on_event: EventSink | None = None,
        **reductions: Unpack[Reductions],
    ) -> None:
        """Store the options without opening anything; they are those of `HarnessAgent.with_recommended_settings`.

        `session` is continued if it exists. `model` writes summaries and extracts facts; without it, rules do. With
        `memory_tools`, `tools` has those that remember and recall, and the prompt tells the model about them; `opt_in`
        names further ones, as in `BuiltinTools`. Raises: ScopeRequired; InvalidScope; InvalidSetting.
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
            builtin_tools=BuiltinTools(memory=memory_tools, opt_in=opt_in or None, sessions=False),
            settings=settings,
            on_event=on_event,
            **reductions,
        )
        self._opening: Opening[HarnessAgent] | None = None
        self._open_agent: HarnessAgent | None = None
        self._known_ids: set[str] | None = None
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

    async def run_tool(self, tool: Tool, arguments: str | Mapping[str, JsonValue], *, call_id: str) -> str:
        """Run a tool with the arguments or JSON that the model wrote; return its result, or the error for the model."""
        agent = await self.agent()
        context = ToolContext(call_id=call_id, scope=agent.scope, agent=agent.state.agent, session=agent.session)
        try:
            value = loads(arguments or "{}") if isinstance(arguments, str) else dict(arguments)
            return str(await tool(require_object(value, "arguments"), context))
        except (InvalidMessage, ToolFailed) as error:
            return f"Error: {error}"

    async def take_in(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Record messages and learn from them in the background; return them as stored.

        A message with an id is recorded once in a session, however often it is taken in. Raises: StorageError.
        """
        agent = await self.agent()
        if self._known_ids is None and any(message.id for message in messages):
            self._known_ids = await _list_ids(agent)
        known = self._known_ids or set()
        new = [message for message in messages if message.id not in known or not message.id]
        stored = await agent.record(new) if new else ()
        known.update(message.id for message in stored)
        return stored

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


class Bridge(ABC):
    """Something that is opened once, for callers that await and for callers that block.

    In an `async with` block it lives on the caller's event loop, in a `with` block on one in a thread of its own. Calls
    of the other kind, and from other threads, are carried there.
    """

    _portal: BlockingPortal | None = None
    _thread = 0
    _stack: ExitStack | AsyncExitStack | None = None

    @abstractmethod
    async def open(self) -> None:
        """Open it."""

    @abstractmethod
    async def close(self) -> None:
        """Close it; a second call does nothing."""

    def run_blocking(self, act: Callable[[], Awaitable[_R]]) -> _R:
        """Run `act` where this is open, and wait for it. Raises: MemoryClosed outside of its block, and in a blocking
        call on the event loop itself.
        """
        if self._portal is None or self._thread == threading.get_ident():
            raise MemoryClosed("Blocking calls need a `with` block, or another thread than that of the event loop.")
        return run_and_wait(self._portal, act)

    async def run(self, act: Callable[[], Awaitable[_R]]) -> _R:
        """Run `act` where this is open."""
        if self._portal is None or self._thread == threading.get_ident():
            return await act()
        return await to_thread.run_sync(self.run_blocking, act)

    async def __aenter__(self) -> Self:
        """Open it on this event loop."""
        async with AsyncExitStack() as stack:
            self._portal = await stack.enter_async_context(BlockingPortal())
            await self._open_here()
            stack.push_async_callback(self.close)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *details: object) -> None:
        """Close it."""
        stack, self._stack = self._stack, None
        assert isinstance(stack, AsyncExitStack)
        await stack.aclose()
        self._portal = None

    def __enter__(self) -> Self:
        """Open it on an event loop in a thread of its own."""
        with ExitStack() as stack:
            self._portal = stack.enter_context(start_blocking_portal())
            self._portal.call(self._open_here)
            stack.callback(self._portal.call, self.close)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *details: object) -> None:
        """Close it, then its event loop."""
        stack, self._stack = self._stack, None
        assert isinstance(stack, ExitStack)
        stack.close()
        self._portal = None

    async def _open_here(self) -> None:
        self._thread = threading.get_ident()
        await self.open()


class Adapter(Bridge):
    """A conversation behind the interface of a framework. Use it as `async with`, or as `with` without awaiting."""

    def __init__(self, conversation: Conversation) -> None:
        """Use `conversation`, which is opened on entering the block."""
        self.conversation = conversation

    async def open(self) -> None:
        """Open the session."""
        await self.conversation.agent()

    async def close(self) -> None:
        """Close the session; a second call does nothing."""
        await self.conversation.close()


async def _list_ids(agent: HarnessAgent) -> set[str]:
    """Return the ids of all messages of the session, also of those that left the window."""
    ids = {message.id for message in agent.window}
    if agent.memory is not None:
        with suppress(SessionNotFound):
            ids.update(message.id for message in (await agent.memory.session(agent.session)).messages)
    return ids


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
