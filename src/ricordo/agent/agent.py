"""HarnessAgent: an agent with lasting memory and a bounded context window, in a few lines."""

import inspect
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar, Unpack, overload

from ricordo.agent.compactions import Compactions
from ricordo.agent.contract import TurnResult, TurnStream, TypedResult
from ricordo.agent.loop import TurnLimits
from ricordo.agent.options import (
    AgentOptions,
    BuiltinTools,
    MemoryConfig,
    RemoteAgent,
    SubAgent,
    parse_permission_rules,
)
from ricordo.agent.permissions import Permissions
from ricordo.agent.session import AgentSession, CompactionResult, RequestPreview
from ricordo.agent.session_factory import open_session
from ricordo.agent.tools import ApprovalHandler, Tool
from ricordo.agent.tools.plan_mode import PlanMode
from ricordo.agent.tools.schema import create_output_type
from ricordo.agent.tools.tasks import TaskList
from ricordo.clock import Clock
from ricordo.concurrency import background_task
from ricordo.context.contract import Strategy
from ricordo.context.strategies import Reductions
from ricordo.context.usage import ContextReport
from ricordo.curation.consolidator import ConsolidationResult
from ricordo.errors import InvalidMessage, MemoryClosed
from ricordo.events import EventSink
from ricordo.messages import Message, Text
from ricordo.models import ChatModel, ModelSettings
from ricordo.runtime import Settings
from ricordo.runtime.memory import Memory
from ricordo.runtime.validation import check_scope
from ricordo.scope import Scope
from ricordo.storage.disk import Disk
from ricordo.stores import LayeredMemory, Store
from ricordo.workspace.agent_state import AgentState, Todo

__all__ = ["HarnessAgent", "HarnessAgentBase"]


class HarnessAgentBase:
    """The properties of an open agent. Each raises `MemoryClosed` outside the agent's `async with` block."""

    _open: AgentSession | None = None

    @property
    def session(self) -> str:
        """The id of the session."""
        return self.state.session

    @property
    def memory(self) -> Memory | None:
        """The memory of the agent's root; None if the root could not be opened or another store is in use."""
        resources = self._session.resources
        layers = resources.memory.store.offers(LayeredMemory) if resources.memory.is_own else None
        if resources.workspace is None or layers is None:
            return None
        return Memory(resources.workspace, layers, settings=resources.parts.settings)

    @property
    def store(self) -> Store:
        """The agent's store, with save, recall and preamble; with memory off, a store that saves nothing."""
        return self._session.resources.memory.store

    @property
    def is_recorded(self) -> bool:
        """Whether messages are recorded; False if the root could not be opened or is read-only."""
        return self._session.resources.is_writable

    @property
    def window(self) -> tuple[Message, ...]:
        """The messages that the next request starts with, without the system prompt."""
        return self.state.window

    @property
    def state(self) -> AgentState:
        """The agent's state as it is saved for the next process: the window, the plan, the todos and the rest."""
        return self._session.state

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that the model is offered: those of Ricordo and your own."""
        return self._session.tools

    @property
    def compactions(self) -> Compactions:
        """The compactions of this session: list (`all`), `expand` or `undo` them, or `pin` a message to protect it."""
        return self._session.compactions

    @property
    def plan(self) -> PlanMode | None:
        """Plan mode and the plan: `enter`, `exit`, `text`; None if the session saves nothing."""
        return self._session.services.plan_mode

    @property
    def todos(self) -> tuple[Todo, ...]:
        """The agent's todo list, in order."""
        return self.state.work_state.todos

    @property
    def permissions(self) -> Permissions:
        """The permission rules of this session for tool calls: `allow`, `deny`, `ask` and `remove`."""
        return self._session.services.permissions

    @property
    def tasks(self) -> TaskList:
        """The background tasks, running or finished: `all`, `get`, `cancel`, `wait` and `start`."""
        return self._session.services.task_list

    @property
    def _session(self) -> AgentSession:
        if self._open is None:
            raise MemoryClosed("This agent is closed: use it inside its `async with` block.")
        return self._open


_P = ParamSpec("_P")
_Output = TypeVar("_Output")


def _with_signature_of(
    init: Callable[Concatenate["HarnessAgent", _P], None],
) -> Callable[[Callable[..., "HarnessAgent"]], Callable[Concatenate[type["HarnessAgent"], _P], "HarnessAgent"]]:
    """Copy the constructor's signature to a class method, so that the arguments are listed only once."""

    def copy_signature(
        make: Callable[..., "HarnessAgent"],
    ) -> Callable[Concatenate[type["HarnessAgent"], _P], "HarnessAgent"]:
        signature = inspect.signature(init)
        make.__signature__ = signature.replace(return_annotation="HarnessAgent")  # type: ignore[attr-defined]
        return make

    return copy_signature


class HarnessAgent(HarnessAgentBase):
    """An agent in one session. Use it as `async with HarnessAgent(...) as agent`.

    Every message is recorded before it is processed, and facts are extracted from it in the background. A session that
    is reopened under its id continues where it stopped. Each reduction of the window is off until its configuration is
    passed by its name in `ricordo.context.Reductions`: `tool_result_eviction`, `clear_results`, `dedupe_reads`,
    `truncate_args` and `compaction`. `with_recommended_settings` turns all of them on; `strategies` replaces all of
    them.

    `model` is a name such as `anthropic:claude-sonnet-5`, a `ChatModel`, or `offline`, which quotes memory.
    `model_settings` applies to a model given by name; the default comes from the settings. `tools` are your own.
    `scope` is whose memory it is. `memory` is the folder of the memory, or a `MemoryConfig`.

    Tools that change files, and the shell, call `approve`. `permissions` are rules that are checked first, such as
    `deny shell(git push*)`. `sub_agents` are the agents that `spawn` can run in the background. `limits` are those of
    one turn: requests, tokens and cost.
    """

    def __init__(
        self,
        model: str | ChatModel,
        tools: Sequence[Tool] = (),
        *,
        scope: Scope | None,
        memory: str | Path | MemoryConfig | None = None,
        instructions: str | None = None,
        session: str | None = None,
        builtin_tools: BuiltinTools | None = None,
        approve: ApprovalHandler | None = None,
        permissions: Sequence[str] = (),
        sub_agents: Sequence[SubAgent | RemoteAgent] = (),
        limits: TurnLimits | None = None,
        strategies: Sequence[Strategy] | None = None,
        model_settings: ModelSettings | None = None,
        settings: Settings | None = None,
        on_event: EventSink | None = None,
        clock: Clock | None = None,
        disk: Disk | None = None,
        **reductions: Unpack[Reductions],
    ) -> None:
        """Store the options without opening anything. Raises: ScopeRequired; InvalidScope; InvalidSetting."""
        self.scope = check_scope(scope)
        self._options = AgentOptions(
            model=model,
            tools=tools,
            scope=self.scope,
            memory=memory if isinstance(memory, MemoryConfig) else MemoryConfig(root=memory),
            instructions=instructions,
            session=session,
            builtin_tools=BuiltinTools() if builtin_tools is None else builtin_tools,
            approve=approve,
            permissions=parse_permission_rules(permissions),
            sub_agents=sub_agents,
            limits=TurnLimits() if limits is None else limits,
            reductions=reductions,
            strategies=strategies,
            model_settings=model_settings,
            settings=settings,
            on_event=on_event,
            clock=clock,
            disk=disk,
        )
        self._stack = AsyncExitStack()

    @classmethod
    @_with_signature_of(__init__)
    def with_recommended_settings(cls, *args: Any, **options: Any) -> "HarnessAgent":
        """Create an agent with every reduction on and with recall for each turn. Takes the constructor's arguments.

        A reduction that is not passed, and `turn_recall`, is read from the root's config.toml and the environment. If
        they do not set it, the defaults apply; compaction adapts to the model's window if its size is known. A
        reduction that the settings turn off stays off.
        """
        agent = cls(*args, **options)
        agent._options = replace(agent._options, recommended=True)
        return agent

    async def __aenter__(self) -> "HarnessAgent":
        """Open the memory and resume the session.

        Raises: RootNotTrusted, ScopeMismatch, ModelNotFound, ModelKeyMissing, ExtraMissing.

        A root or store that can't be opened is an error only if the memory is `required`. Otherwise the agent logs it
        once and runs without memory; without a root, `memory` is None and `is_recorded` is False.
        """
        self._open = await self._stack.enter_async_context(open_session(self._options))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        """Close the session and its store. Jobs in the inbox run up to its time limit; the others stay there."""
        self._open = None
        return await self._stack.__aexit__(kind, error, trace)

    @overload
    async def send(self, message: str | Message | Sequence[Message]) -> TurnResult: ...

    @overload
    async def send(
        self, message: str | Message | Sequence[Message], *, output_type: type[_Output]
    ) -> TypedResult[_Output]: ...

    async def send(
        self, message: str | Message | Sequence[Message], *, output_type: type[_Output] | None = None
    ) -> TurnResult | TypedResult[_Output]:
        """Send a message and return the agent's reply; `str()` of the result is its text.

        With an `output_type` (a dataclass, a TypedDict, a pydantic model or a plain type), `output` of the result is a
        value of that type. The model may call any number of tools before it answers. An invalid answer is requested
        once more. Raises: ModelError and related errors, including OutputInvalid (recorded messages stay, and the next
        turn continues from them); InvalidMessage for a blank text; InvalidSetting for a type without a JSON schema;
        StorageError when a message can't be recorded.
        """
        output = None if output_type is None else create_output_type(output_type)
        return await self._session.turn_runner.send(_to_messages(message), output=output)

    @asynccontextmanager
    async def stream(
        self, message: str | Message | Sequence[Message], *, output_type: type[object] | None = None
    ) -> AsyncIterator[TurnStream]:
        """Stream the reply: `async with agent.stream("...") as events: async for event in events`.

        Leaving the block early stops the reply; the text received so far is recorded. `output_type` and errors as in
        `send`.
        """
        conversation, messages = self._session.turn_runner, _to_messages(message)
        output = None if output_type is None else create_output_type(output_type)
        with TurnStream() as events:
            async with background_task(lambda: events.run(lambda: conversation.send(messages, events.emit, output))):
                yield events

    async def record(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Record messages from elsewhere, such as a conversation between people, without calling the model.

        Return the messages as stored. Facts are extracted from them as in a turn. Raises `StorageError`.
        """
        return await self._session.record(_to_messages(messages))

    async def system_prompt(self, *, rebuild: bool = False) -> str:
        """Return the system prompt of this session, including its memory.

        It stays the same until a compaction. With `rebuild` it is rebuilt from the current memory, for example after
        something was forgotten outside this agent.
        """
        return await self._session.system_prompt(rebuild=rebuild)

    async def get_context_usage(self) -> ContextReport:
        """Return what fills the window of the next request, by section, in tokens."""
        return await self._session.report_usage()

    async def preview_request(
        self, message: str | Message | Sequence[Message] = (), *, output_type: type[object] | None = None
    ) -> RequestPreview:
        """Return the next request to the model, with or without `message`, as it would be sent.

        With an `output_type` the request includes its schema, as in `send`. Nothing is sent, recorded or reduced.
        Raises: InvalidMessage; InvalidSetting for a type without a JSON schema; ModelOverflow for a request that is too
        large.
        """
        output = None if output_type is None else create_output_type(output_type)
        return await self._session.preview_request(_to_messages(message), output)

    async def prepare_request(self, message: str | Message | Sequence[Message] = ()) -> RequestPreview:
        """Return the request that a turn would begin with, for a program that asks its own model.

        It has the system prompt with memory, the window without forgotten content and reduced where it has to be, and
        the memories recalled for `message`. `message` itself is not part of it, and is not recorded: pass it to
        `record`. The reduced window is saved. Raises: ModelOverflow for a request that can't be made small enough.
        """
        return await self._session.prepare_request(_to_messages(message))

    async def compact(self, *, focus: str = "", dry_run: bool = False) -> CompactionResult:
        """Reduce the window now, whatever its size, and return a sequence of what each reduction did.

        `focus` is the topic that a summary should emphasize. With `dry_run` nothing is changed or written and no model
        is called; the summary is the rule-based one. If compaction is off, a summary is still made, with the default
        configuration. Raises `StorageError`.
        """
        return await self._session.compact(focus=focus, dry_run=dry_run)

    async def clear(self) -> None:
        """Start over with an empty window; the transcript keeps the messages. Raises `StorageError`."""
        await self._session.clear()

    async def summarize(self) -> bool:
        """Summarize the session for its store now, as on leaving the agent; return whether there was anything new.

        Return False if the store keeps no sessions or the summary is turned off. A cancellation skips the summary: the
        session then has a sentence chosen by rules until the next agent writes a summary.
        """
        closing = self._session.closing
        if closing is None or not closing.is_due:
            return False
        await closing.close()
        return True

    async def drain(self, *, seconds: float = 10.0) -> int:
        """Run the jobs in the inbox for at most `seconds` and return how many are left.

        Jobs of this agent do not wait for a pause. With 0 seconds the jobs are only counted.
        """
        return await self._session.drain(seconds=seconds)

    async def flush(self, *, seconds: float = 30.0) -> bool:
        """Extract facts from all messages so far without waiting for a pause, and wait for running jobs.

        Return True if the inbox is empty and no job failed, False if a job failed or `seconds` ran out; the remaining
        jobs stay in the inbox. Raises: StorageError when the inbox can't be read.
        """
        return await self._session.flush_inbox(seconds=seconds)

    async def consolidate(self, *, deep: bool = False) -> ConsolidationResult:
        """Consolidate extracted facts into curated memory now, however recent the last consolidation is.

        With `deep` all curated memory is read again. Call `drain` first to include every fact. The result enters the
        prompt with the next session or after the next compaction.
        """
        return await self._session.consolidate(deep=deep)


def _to_messages(content: str | Message | Sequence[Message]) -> list[Message]:
    """Return `content` as messages. Raises `InvalidMessage` for other types and for messages that are all blank."""
    if isinstance(content, str):
        if not content.strip():
            raise InvalidMessage("There is nothing to answer: the message is blank, which most providers refuse.")
        return [Message(role="user", parts=(Text(text=content),))]
    messages = [content] if isinstance(content, Message) else list(content)
    if not all(isinstance(message, Message) for message in messages):
        raise InvalidMessage("Messages are `Message` values: `ricordo.messages.formats.from_openai` makes them.")
    if messages and all(map(_is_blank, messages)):
        raise InvalidMessage("There is nothing to answer: the message is blank, which most providers refuse.")
    return messages


def _is_blank(message: Message) -> bool:
    return all(isinstance(part, Text) and not part.text.strip() for part in message.parts)
