"""SyncHarnessAgent: an agent for programs that do not use async."""

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import ParamSpec

from anyio.from_thread import start_blocking_portal

from ricordo.agent import HarnessAgent as AsyncAgent
from ricordo.agent import TurnStream as AsyncStream
from ricordo.agent.compactions import Compactions as AsyncCompactions
from ricordo.agent.contract import TurnEvent, TurnResult
from ricordo.agent.permissions import Permissions as AsyncPermissions
from ricordo.agent.tools import Tool
from ricordo.agent.tools.plan_mode import PlanMode
from ricordo.agent.tools.tasks import TaskList as AsyncTaskList
from ricordo.guard.permissions import PermissionRule
from ricordo.messages import Message
from ricordo.runtime.sync import SyncMemory, SyncProxy, make_blocking, run_and_wait
from ricordo.scope import Scope
from ricordo.stores import Store as AsyncStore
from ricordo.workspace.agent_state import AgentState, Todo
from ricordo.workspace.agent_state import PlanState as Planned

__all__ = [
    "SyncCompactions",
    "SyncHarnessAgent",
    "SyncMemory",
    "SyncPermissions",
    "SyncPlan",
    "SyncStore",
    "SyncTaskList",
    "SyncTurnStream",
]


_P = ParamSpec("_P")


def _make_opener(make: Callable[_P, AsyncAgent]) -> Callable[_P, AbstractContextManager["SyncHarnessAgent"]]:
    """Return a function that opens the agent made by `make` on its own event loop."""

    @contextmanager
    @functools.wraps(make, updated=())
    def open_agent(*args: _P.args, **kwargs: _P.kwargs) -> Iterator["SyncHarnessAgent"]:
        with start_blocking_portal() as portal, portal.wrap_async_context_manager(make(*args, **kwargs)) as agent:
            yield SyncHarnessAgent(portal, agent)

    return open_agent


class SyncTurnStream(SyncProxy[AsyncStream]):
    """The events of a turn. Iterate over it once; afterwards `result` is the result of the turn."""

    @property
    def result(self) -> TurnResult:
        """The result of the turn. Raises the turn's error, or `RicordoError` before the turn has ended."""
        return self._inner.result

    def __iter__(self) -> Iterator[TurnEvent]:
        """Yield the events as they come. Raises the turn's error."""
        while (event := run_and_wait(self._portal, self._next)) is not None:
            yield event

    async def _next(self) -> TurnEvent | None:
        return await anext(self._inner, None)


class SyncCompactions(SyncProxy[AsyncCompactions]):
    """The compactions of one session; the methods are those of `ricordo.HarnessAgent.compactions`."""

    all = make_blocking(AsyncCompactions.all)
    expand = make_blocking(AsyncCompactions.expand)
    undo = make_blocking(AsyncCompactions.undo)
    pin = make_blocking(AsyncCompactions.pin)
    unpin = make_blocking(AsyncCompactions.unpin)
    remove = make_blocking(AsyncCompactions.remove)
    edit = make_blocking(AsyncCompactions.edit)


class SyncPlan(SyncProxy[PlanMode]):
    """Plan mode and the plan of one session; the methods are those of `ricordo.HarnessAgent.plan`."""

    @property
    def plan(self) -> Planned:
        """The state of planning in this session."""
        return self._inner.plan

    enter = make_blocking(PlanMode.enter)
    exit = make_blocking(PlanMode.exit)
    text = make_blocking(PlanMode.text)
    write = make_blocking(PlanMode.write)


class SyncPermissions(SyncProxy[AsyncPermissions]):
    """The rules of one session for tool calls; the methods are those of `ricordo.HarnessAgent.permissions`."""

    @property
    def rules(self) -> tuple[PermissionRule, ...]:
        """The rules, oldest first."""
        return self._inner.rules

    allow = make_blocking(AsyncPermissions.allow)
    deny = make_blocking(AsyncPermissions.deny)
    ask = make_blocking(AsyncPermissions.ask)
    remove = make_blocking(AsyncPermissions.remove)


class SyncStore(SyncProxy[AsyncStore]):
    """The store of an agent; the methods are those of `ricordo.stores.Store`."""

    @property
    def scope(self) -> Scope:
        """The scope of the memory."""
        return self._inner.scope

    save = make_blocking(AsyncStore.save)
    recall = make_blocking(AsyncStore.recall)
    preamble = make_blocking(AsyncStore.preamble)


class SyncTaskList(SyncProxy[AsyncTaskList]):
    """The background tasks of one session; the methods are those of `ricordo.HarnessAgent.tasks`."""

    @property
    def running_count(self) -> int:
        """The number of tasks of this session that run in this process."""
        return self._inner.running_count

    all = make_blocking(AsyncTaskList.all)
    get = make_blocking(AsyncTaskList.get)
    cancel = make_blocking(AsyncTaskList.cancel)
    wait = make_blocking(AsyncTaskList.wait)
    start = make_blocking(AsyncTaskList.start)


class SyncHarnessAgent(SyncProxy[AsyncAgent]):
    """An agent in one session. Use `with SyncHarnessAgent.open(...) as agent`; arguments as for `ricordo.HarnessAgent`.

    The methods are those of `ricordo.HarnessAgent`. It may be used from several threads; turns run one at a time.
    """

    open = staticmethod(_make_opener(AsyncAgent))
    with_recommended_settings = staticmethod(_make_opener(AsyncAgent.with_recommended_settings))

    @property
    def session(self) -> str:
        """The id of the session."""
        return self._inner.session

    @property
    def memory(self) -> SyncMemory | None:
        """The memory of the agent's root; None if the root could not be opened or another store is in use."""
        memory = self._inner.memory
        return None if memory is None else SyncMemory(self._portal, memory)

    @property
    def store(self) -> SyncStore:
        """The agent's store, with save, recall and preamble; with memory off, a store that saves nothing."""
        return SyncStore(self._portal, self._inner.store)

    @property
    def is_recorded(self) -> bool:
        """Whether messages are recorded; False if the root could not be opened or is read-only."""
        return self._inner.is_recorded

    @property
    def window(self) -> tuple[Message, ...]:
        """The messages that the next request starts with, without the system prompt."""
        return self._inner.window

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that the model is offered: those of Ricordo and your own."""
        return self._inner.tools

    @property
    def compactions(self) -> SyncCompactions:
        """The compactions of this session: list (`all`), `expand` or `undo` them, or `pin` a message to protect it."""
        return SyncCompactions(self._portal, self._inner.compactions)

    @property
    def state(self) -> AgentState:
        """The agent's state as it is saved for the next process: the window, the plan, the todos and the rest."""
        return self._inner.state

    @property
    def plan(self) -> SyncPlan | None:
        """Plan mode and the plan: `enter`, `exit`, `text`; None if the session saves nothing."""
        plan = self._inner.plan
        return None if plan is None else SyncPlan(self._portal, plan)

    @property
    def todos(self) -> tuple[Todo, ...]:
        """The agent's todo list, in order."""
        return self._inner.todos

    @property
    def permissions(self) -> SyncPermissions:
        """The permission rules of this session for tool calls: `allow`, `deny`, `ask` and `remove`."""
        return SyncPermissions(self._portal, self._inner.permissions)

    @property
    def tasks(self) -> SyncTaskList:
        """The background tasks, running or finished: `all`, `get`, `cancel`, `wait` and `start`."""
        return SyncTaskList(self._portal, self._inner.tasks)

    @contextmanager
    def stream(
        self, message: str | Message | Sequence[Message], *, output_type: type[object] | None = None
    ) -> Iterator[SyncTurnStream]:
        """Stream the reply: `with agent.stream("...") as events: for event in events`.

        Leaving the block early stops the reply; the text received so far is recorded. `output_type` and errors as in
        `send`.
        """
        stream = self._inner.stream(message, output_type=output_type)
        with self._portal.wrap_async_context_manager(stream) as events:
            yield SyncTurnStream(self._portal, events)

    send = make_blocking(AsyncAgent.send)
    record = make_blocking(AsyncAgent.record)
    system_prompt = make_blocking(AsyncAgent.system_prompt)
    get_context_usage = make_blocking(AsyncAgent.get_context_usage)
    preview_request = make_blocking(AsyncAgent.preview_request)
    prepare_request = make_blocking(AsyncAgent.prepare_request)
    compact = make_blocking(AsyncAgent.compact)
    clear = make_blocking(AsyncAgent.clear)
    summarize = make_blocking(AsyncAgent.summarize)
    drain = make_blocking(AsyncAgent.drain)
    flush = make_blocking(AsyncAgent.flush)
    consolidate = make_blocking(AsyncAgent.consolidate)
