"""HarnessAgent: an agent with lasting memory and a bounded context window, in a few lines."""

import inspect
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import NoneType, TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar, overload

from ricordo.agent import arguments
from ricordo.agent.compactions import Compactions
from ricordo.agent.contract import TurnResult, TurnStream, TypedResult
from ricordo.agent.loop import TurnLimits
from ricordo.agent.options import AgentOptions, PromptRefresh, ReductionOptions
from ricordo.agent.permissions import Permissions
from ricordo.agent.session import AgentSession, CompactionResult, RequestPreview
from ricordo.agent.session_closing import ClosingMode
from ricordo.agent.session_opening import open_session
from ricordo.agent.sub_agents import RemoteAgent, SubAgent
from ricordo.agent.task_list import TaskList
from ricordo.agent.tools import ApprovalHandler, Tool
from ricordo.agent.tools.plan_mode import PlanMode
from ricordo.agent.tools.schema import create_output_type
from ricordo.clock import Clock
from ricordo.concurrency import background_task
from ricordo.context.config import (
    ClearResultsConfig,
    CompactionConfig,
    DedupeReadsConfig,
    ToolResultEvictionConfig,
    TruncateArgsConfig,
)
from ricordo.context.contract import Strategy
from ricordo.context.usage import ContextReport
from ricordo.curation.consolidator import ConsolidationResult
from ricordo.errors import InvalidMessage, MemoryClosed
from ricordo.events import EventSink
from ricordo.extraction.config import FlushConfig
from ricordo.messages import Message, Text
from ricordo.models import ChatModel, ModelSettings
from ricordo.runtime import Settings
from ricordo.runtime.memory import Memory
from ricordo.runtime.validation import check_scope, check_type
from ricordo.scope import Scope
from ricordo.storage.disk import Disk
from ricordo.stores import LayeredMemory, Store
from ricordo.workspace.agent_state import AgentState, StateStore, Todo

__all__ = ["HarnessAgent", "HarnessAgentBase"]


class HarnessAgentBase:
    """What an open agent shows of itself. Raises `MemoryClosed` for all of it outside of its `async with` block."""

    _open: AgentSession | None = None

    @property
    def session(self) -> str:
        """The id of the session."""
        return self._session.name

    @property
    def memory(self) -> Memory | None:
        """The memory of the agent's root; None when it could not be opened, and with another store."""
        session = self._session
        layers = session.store.offers(LayeredMemory) if session.memory.is_own else None
        if session.workspace is None or layers is None:
            return None
        return Memory(session.workspace, layers, settings=session.settings)

    @property
    def store(self) -> Store:
        """What the agent remembers with: save, recall and preamble; one that keeps nothing where memory is off."""
        return self._session.store

    @property
    def is_recorded(self) -> bool:
        """Whether what is said is recorded; False where the root could not be opened, or can only be read."""
        return self._session.is_recorded

    @property
    def window(self) -> tuple[Message, ...]:
        """What the next request begins with, without the system prompt."""
        return self.state.window

    @property
    def state(self) -> AgentState:
        """Where the agent stands, as it is kept for the next process: the window, and what stands beside it."""
        return self._session.turn_runner.session_state.state

    @property
    def compactions(self) -> Compactions:
        """Every compaction of this session: `all`, `expand` and `undo` them, `pin` a message so that none takes it."""
        return self._session.compactions

    @property
    def plan(self) -> PlanMode | None:
        """Plan mode and the plan: `enter`, `exit`, `text`; None where nothing can be kept."""
        return self._session.services.plan_mode

    @property
    def todos(self) -> tuple[Todo, ...]:
        """What the agent has to do, in its order."""
        return self.state.work_state.todos

    @property
    def permissions(self) -> Permissions:
        """The rules of this session for tool calls: `allow`, `deny`, `ask` and `remove`."""
        return self._session.services.permissions

    @property
    def tasks(self) -> TaskList:
        """What runs in the background, or did: `all`, `get`, `cancel`, `wait` for it, or `start` something."""
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
    """Give a function of the class the arguments of its constructor, so that they are named once."""

    def copy_signature(
        make: Callable[..., "HarnessAgent"],
    ) -> Callable[Concatenate[type["HarnessAgent"], _P], "HarnessAgent"]:
        signature = inspect.signature(init)
        make.__signature__ = signature.replace(return_annotation="HarnessAgent")  # type: ignore[attr-defined]
        return make

    return copy_signature


class HarnessAgent(HarnessAgentBase):
    """An agent in one session. Use `async with HarnessAgent(...) as agent`.

    What is said is recorded before anything else happens to it, what it teaches is learned while nobody waits, and a
    session that is opened again under its id goes on where it was. Each reduction of the window is off until its
    configuration is passed; `with_recommended_settings` switches all of them on, and `strategies` take the place of
    all.

    `model` is a name such as `anthropic:claude-sonnet-5`, a `ChatModel`, or `offline`, which quotes memory.
    `model_settings` is what one that is given by name is told, by default as the settings say. `workspace` is the root,
    by default that of `Memory.open`.

    Memory: `memory_tools` gives the model `remember` and `recall`, and those of `forget` and `memory` that
    `opt_in_tools`, else the settings, name; `memory_hooks` learns from what was said. Without both, memory stays
    out of the prompt, which shows what changed in it with the next session or compaction, or, by `refresh="step"`,
    with the next request. With another `store`, an address or an open one, than the root's own nothing is learned;
    by default it is that of process or settings. `session_tools` lets the model look into its user's past sessions.
    With `require_memory` a root that can't be opened is raised. `trusted` vouches for a root
    that was not made or trusted on this machine, which is refused else. `states` keeps the state elsewhere.
    Where the `store` keeps sessions, `closing_summary` says when this one is summed up: on leaving it (`"sync"`, the
    default of a store of session files), by the next agent that is opened (`"background"`), or never (`"off"`, the
    default of the root's own memory). `flush` says when and by which model what was said is learned, by default as
    the settings say: by the agent's own. An `incognito` session shows nothing of memory or profile and keeps nothing,
    not even what is said, and nor do its sub-agents; the rules that people wrote hold all the same.

    Acting: what changes a file, and `shell`, asks `approve`; `permissions` are rules that come first, such as
    `deny shell(git push*)`. `planning` gives the model its todo list and plan mode, `sub_agents` are who `spawn` lets
    work in the background. `max_iters` (1 and up) bounds a turn's requests, `turn_limits` its tokens and its cost.
    """

    def __init__(
        self,
        model: str | ChatModel,
        *,
        model_settings: ModelSettings | None = None,
        workspace: str | Path | None = None,
        store: str | Store | None = None,
        scope: Scope | None,
        session: str | None = None,
        instructions: str | None = None,
        tools: Sequence[Tool] = (),
        compaction: CompactionConfig | None = None,
        tool_result_eviction: ToolResultEvictionConfig | None = None,
        clear_results: ClearResultsConfig | None = None,
        dedupe_reads: DedupeReadsConfig | None = None,
        truncate_args: TruncateArgsConfig | None = None,
        strategies: Sequence[Strategy] | None = None,
        memory_tools: bool = True,
        opt_in_tools: Sequence[str] | None = None,
        memory_hooks: bool = True,
        session_tools: bool = True,
        incognito: bool = False,
        refresh: PromptRefresh = "session",
        require_memory: bool = False,
        file_tools: bool = False,
        shell: bool = False,
        working_directory: str | Path | None = None,
        approve: ApprovalHandler | None = None,
        permissions: Sequence[str] = (),
        planning: bool = False,
        sub_agents: Sequence[SubAgent | RemoteAgent] = (),
        states: StateStore | None = None,
        closing_summary: ClosingMode | None = None,
        flush: FlushConfig | None = None,
        max_iters: int | None = None,
        turn_limits: TurnLimits | None = None,
        on_event: EventSink | None = None,
        settings: Settings | None = None,
        trusted: bool = False,
        clock: Clock | None = None,
        disk: Disk | None = None,
    ) -> None:
        """Describe the agent; nothing is opened yet. Raises: ScopeRequired; InvalidScope; InvalidSetting."""
        self.scope = check_scope(scope)
        self._options = AgentOptions(
            reductions=ReductionOptions(
                compaction=compaction,
                clear_results=clear_results,
                dedupe_reads=dedupe_reads,
                tool_result_eviction=tool_result_eviction,
                truncate_args=truncate_args,
                strategies=arguments.check_strategies(strategies),
            ),
            working_directory=_to_path(working_directory),
            opt_in_tools=arguments.check_opt_in_tools(opt_in_tools),
            scope=self.scope,
            sub_agents=arguments.check_sub_agents(sub_agents),
            permissions=arguments.parse_permission_rules(permissions),
            max_iters=max_iters,
            approve=arguments.check_approve(approve),
            states=arguments.check_state_store(states),
            closing_summary=closing_summary,
            tools=arguments.check_tools(tools),
            require_memory=require_memory,
            session_tools=session_tools,
            model=model,
            instructions=instructions,
            memory_tools=memory_tools,
            memory_hooks=memory_hooks,
            root=_to_path(workspace),
            turn_limits=turn_limits,
            file_tools=file_tools,
            incognito=incognito,
            planning=planning,
            on_event=on_event,
            settings=settings,
            refresh=refresh,
            session=session,
            trusted=trusted,
            flush=flush,
            store=store,
            shell=shell,
            clock=clock,
            disk=disk,
            model_settings=model_settings,
        )
        self._stack = AsyncExitStack()

    @classmethod
    @_with_signature_of(__init__)
    def with_recommended_settings(cls, *args: Any, **options: Any) -> "HarnessAgent":
        """Describe an agent with every reduction on, and with memories for each turn; the arguments are those of the
        constructor.

        A reduction that is not passed, and `turn_recall`, is taken from the root's config.toml and the environment,
        and what those do not mention has its defaults: compaction follows the model's window where it is known.
        What they switch off stays off.
        """
        agent = cls(*args, **options)
        agent._options = replace(agent._options, recommended=True)
        return agent

    async def __aenter__(self) -> "HarnessAgent":
        """Open the memory and take up the session.

        Raises: RootNotTrusted, ScopeMismatch, ModelNotFound, ModelKeyMissing, ExtraMissing.

        A root or a store that can't be opened is no reason to fail, unless `require_memory` says so: the agent tells
        the log once and runs without memory; without a root `memory` is None, and `is_recorded` False.
        """
        self._open = await self._stack.enter_async_context(open_session(self._options))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        """Close the session and its store: the inbox is worked off within its limit, the rest stays there."""
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
        """Return what the agent replies; `str()` of it is the text.

        With an `output_type`, which is a dataclass, a TypedDict, a model of pydantic or a plain type, `output` of the
        result is a value of it: the model answers in that form, after as many tool calls as it wants. An answer of
        another form is asked for once more. Raises: ModelError and its siblings, OutputInvalid among them, and then
        what was said is kept, and the next turn goes on from it; InvalidMessage for a blank text; InvalidSetting for a
        type that no JSON schema can say; StorageError when it can't be recorded.
        """
        output = None if output_type is None else create_output_type(output_type)
        return await self._session.turn_runner.send(_to_messages(message), output=output)

    @asynccontextmanager
    async def stream(
        self, message: str | Message | Sequence[Message], *, output_type: type[object] | None = None
    ) -> AsyncIterator[TurnStream]:
        """Give the reply as it comes: `async with agent.stream("...") as events: async for event in events`.

        Leaving the block before the end stops the reply; what was said of it is kept. The type and errors as in `send`.
        """
        conversation, given = self._session.turn_runner, _to_messages(message)
        output = None if output_type is None else create_output_type(output_type)
        with TurnStream() as events:
            async with background_task(lambda: events.run(lambda: conversation.send(given, events.emit, output))):
                yield events

    async def record(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Take in what was said elsewhere, such as by a person to another, without asking the model.

        Return it as it is stored. It is learned from like what is said in a turn. Raises `StorageError`.
        """
        return await self._session.record(_to_messages(messages))

    async def system_prompt(self, *, anew: bool = False) -> str:
        """Return the system prompt of this session, its memory included.

        It stays the same until a compaction; `rebuild_below` makes it of memory as it is now, such as when something
        was forgotten outside of this agent.
        """
        return await self._session.system_prompt(anew=anew)

    async def get_context_usage(self) -> ContextReport:
        """Return what fills the window of the next request, by section, in tokens."""
        return await self._session.report_usage()

    async def preview_request(
        self, message: str | Message | Sequence[Message] = (), *, output_type: type[object] | None = None
    ) -> RequestPreview:
        """Return what would be asked of the model next, with `message` or without one, as it would be sent.

        With an `output_type` it has the schema of that, as `send` would. Nothing is sent, recorded or reduced. Raises:
        InvalidMessage; InvalidSetting for a type that no JSON schema can say; ModelOverflow for what would not be sent.
        """
        output = None if output_type is None else create_output_type(output_type)
        return await self._session.preview_request(_to_messages(message), output)

    async def compact(self, *, focus: str = "", dry_run: bool = False) -> CompactionResult:
        """Make the window smaller now, whatever its size, and return what each reduction did; it is their sequence.

        `focus` is what a summary is to dwell on. With `dry_run` nothing is changed or written and no model is asked:
        the summary is the one that rules would write. Where compaction is off, a summary with the default
        configuration is made all the same. Raises `StorageError`.
        """
        return await self._session.compact(focus=focus, dry_run=dry_run)

    async def clear(self) -> None:
        """Begin with an empty window; the transcript keeps what was said. Raises `StorageError`."""
        await self._session.clear()

    async def summarize(self) -> bool:
        """Sum the session up for its store now, as leaving the agent does, and tell whether there was anything new.

        False where the store keeps no sessions, or this is switched off. A cancellation skips the summary: the session
        is kept with a sentence chosen by rules until the next agent has made one.
        """
        closing = self._session.closing
        if closing is None or not closing.is_due:
            return False
        await closing.close()
        return True

    async def drain(self, *, seconds: float = 10.0) -> int:
        """Work off what waits in the inbox, for at most `seconds`, and return how many jobs are left.

        What this agent asked for does not wait for a pause; with 0 seconds the jobs are only counted.
        """
        return await self._session.drain(seconds=seconds)

    async def flush(self, *, seconds: float = 30.0) -> bool:
        """Learn from what was said so far, now and not after a pause; wait for what is being worked on.

        True when nothing waits in the inbox any more and nothing failed; False when that took more than so many
        seconds, or failed: what is left waits there. Raises: StorageError when the inbox can't be read.
        """
        return await self._session.flush_inbox(seconds=seconds)

    async def consolidate(self, *, deep: bool = False) -> ConsolidationResult:
        """Let what was learned so far enter curated memory now, however recent the last consolidation is.

        With `deep` all curated memory is read anew. `drain` first, to have all of it. It enters the prompt with
        the next session, or after the next compaction.
        """
        return await self._session.consolidate(deep=deep)


def _to_path(named: str | Path | None) -> Path | None:
    check_type("A folder", named, str, Path, NoneType, words="a path or None")
    return None if named is None else Path(named)


def _to_messages(given: str | Message | Sequence[Message]) -> list[Message]:
    """Return what is said as messages. Raises `InvalidMessage` for what is none, and for a text without a word."""
    if isinstance(given, str):
        if not given.strip():
            raise InvalidMessage("There is nothing to answer: the message is blank, which most providers refuse.")
        return [Message(role="user", parts=(Text(text=given),))]
    found = [given] if isinstance(given, Message) else list(given)
    if not all(isinstance(message, Message) for message in found):
        raise InvalidMessage("Messages are `Message` values: `ricordo.messages.formats.from_openai` makes them.")
    if found and all(map(_is_blank, found)):
        raise InvalidMessage("There is nothing to answer: the message is blank, which most providers refuse.")
    return found


def _is_blank(message: Message) -> bool:
    return all(isinstance(part, Text) and not part.text.strip() for part in message.parts)
