"""An agent for programs that do not await."""

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import ParamSpec

from anyio.from_thread import start_blocking_portal

from ricordo.agent import HarnessAgent as AsyncAgent
from ricordo.agent import TurnStream as AsyncStream
from ricordo.guard.permissions import PermissionRule
from ricordo.harness.compactions import Compactions as AsyncCompactions
from ricordo.harness.permissions import Permissions as AsyncPermissions
from ricordo.harness.task_list import TaskList as AsyncTaskList
from ricordo.messages import Message
from ricordo.middleware import TurnEvent, TurnResult
from ricordo.scopes import Scope
from ricordo.state import AgentState, Todo
from ricordo.state import Plan as Planned
from ricordo.stores import Store as AsyncStore
from ricordo.sync.face import Face, blocking, waited_for
from ricordo.sync.memory import Memory
from ricordo.tools.planning import Planning

__all__ = ["Compactions", "HarnessAgent", "Permissions", "Plan", "Store", "TaskList", "TurnStream"]

_P = ParamSpec("_P")


def _opening(make: Callable[_P, AsyncAgent]) -> Callable[_P, AbstractContextManager["HarnessAgent"]]:
    """Return what opens the agent that `make` describes on a loop of its own."""

    @contextmanager
    @functools.wraps(make, updated=())
    def opened(*args: _P.args, **kwargs: _P.kwargs) -> Iterator["HarnessAgent"]:
        with start_blocking_portal() as portal, portal.wrap_async_context_manager(make(*args, **kwargs)) as agent:
            yield HarnessAgent(portal, agent)

    return opened


class TurnStream(Face[AsyncStream]):
    """Iterate it once for the events; afterwards `result` is the whole turn."""

    @property
    def result(self) -> TurnResult:
        """What the turn came to. Raises what the turn raised, and `RicordoError` before its end."""
        return self._inner.result

    def __iter__(self) -> Iterator[TurnEvent]:
        """Give the events as they come. Raises what the turn raised."""
        while (event := waited_for(self._portal, self._next)) is not None:
            yield event

    async def _next(self) -> TurnEvent | None:
        return await anext(self._inner, None)


class Compactions(Face[AsyncCompactions]):
    """The compactions of one session; the methods are those of `ricordo.HarnessAgent.compactions`."""

    all = blocking(AsyncCompactions.all)
    expand = blocking(AsyncCompactions.expand)
    undo = blocking(AsyncCompactions.undo)
    pin = blocking(AsyncCompactions.pin)
    unpin = blocking(AsyncCompactions.unpin)
    remove = blocking(AsyncCompactions.remove)
    edit = blocking(AsyncCompactions.edit)


class Plan(Face[Planning]):
    """Plan mode and the plan of one session; the methods are those of `ricordo.HarnessAgent.plan`."""

    @property
    def plan(self) -> Planned:
        """Where the session stands."""
        return self._inner.plan

    enter = blocking(Planning.enter)
    exit = blocking(Planning.exit)
    text = blocking(Planning.text)
    write = blocking(Planning.write)


class Permissions(Face[AsyncPermissions]):
    """The rules of one session for tool calls; the methods are those of `ricordo.HarnessAgent.permissions`."""

    @property
    def rules(self) -> tuple[PermissionRule, ...]:
        """The rules, oldest first."""
        return self._inner.rules

    allow = blocking(AsyncPermissions.allow)
    deny = blocking(AsyncPermissions.deny)
    ask = blocking(AsyncPermissions.ask)
    remove = blocking(AsyncPermissions.remove)


class Store(Face[AsyncStore]):
    """What an agent remembers with; the methods are those of `ricordo.stores.Store`."""

    @property
    def scope(self) -> Scope:
        """Whose memory it is."""
        return self._inner.scope

    save = blocking(AsyncStore.save)
    recall = blocking(AsyncStore.recall)
    preamble = blocking(AsyncStore.preamble)


class TaskList(Face[AsyncTaskList]):
    """What runs in the background of one session; the methods are those of `ricordo.HarnessAgent.tasks`."""

    @property
    def running(self) -> int:
        """How many run in this process, for this session."""
        return self._inner.running

    all = blocking(AsyncTaskList.all)
    get = blocking(AsyncTaskList.get)
    cancel = blocking(AsyncTaskList.cancel)
    wait = blocking(AsyncTaskList.wait)
    start = blocking(AsyncTaskList.start)


class HarnessAgent(Face[AsyncAgent]):
    """An agent in one session. Use `with HarnessAgent.open(...) as agent`; it takes what `ricordo.HarnessAgent` takes.

    The methods are those of `ricordo.HarnessAgent`. It may be used from several threads; one turn follows another.
    """

    open = staticmethod(_opening(AsyncAgent))
    recommended = staticmethod(_opening(AsyncAgent.recommended))

    @property
    def session(self) -> str:
        """The id of the session."""
        return self._inner.session

    @property
    def memory(self) -> Memory | None:
        """The memory of the agent's root; None when it could not be opened, and with another store."""
        memory = self._inner.memory
        return None if memory is None else Memory(self._portal, memory)

    @property
    def store(self) -> Store:
        """What the agent remembers with: save, recall and preamble; one that keeps nothing where memory is off."""
        return Store(self._portal, self._inner.store)

    @property
    def keeps(self) -> bool:
        """Whether what is said is recorded; False where the root could not be opened, or can only be read."""
        return self._inner.keeps

    @property
    def window(self) -> tuple[Message, ...]:
        """What the next request begins with, without the system prompt."""
        return self._inner.window

    @property
    def compactions(self) -> Compactions:
        """Every compaction of this session: `all`, `expand` and `undo` them, `pin` a message so that none takes it."""
        return Compactions(self._portal, self._inner.compactions)

    @property
    def state(self) -> AgentState:
        """Where the agent stands, as it is kept for the next process: the window, and what stands beside it."""
        return self._inner.state

    @property
    def plan(self) -> Plan | None:
        """Plan mode and the plan: `enter`, `exit`, `text`; None where nothing can be kept."""
        plan = self._inner.plan
        return None if plan is None else Plan(self._portal, plan)

    @property
    def todos(self) -> tuple[Todo, ...]:
        """What the agent has to do, in its order."""
        return self._inner.todos

    @property
    def permissions(self) -> Permissions:
        """The rules of this session for tool calls: `allow`, `deny`, `ask` and `remove`."""
        return Permissions(self._portal, self._inner.permissions)

    @property
    def tasks(self) -> TaskList:
        """What runs in the background, or did: `all`, `get`, `cancel`, `wait` for it, or `start` something."""
        return TaskList(self._portal, self._inner.tasks)

    @contextmanager
    def stream(
        self, message: str | Message | Sequence[Message], *, output_type: type[object] | None = None
    ) -> Iterator[TurnStream]:
        """Give the reply as it comes: `with agent.stream("...") as events: for event in events`.

        Leaving the block before the end stops the reply; what was said of it is kept. The type and errors as in `send`.
        """
        stream = self._inner.stream(message, output_type=output_type)
        with self._portal.wrap_async_context_manager(stream) as events:
            yield TurnStream(self._portal, events)

    send = blocking(AsyncAgent.send)
    record = blocking(AsyncAgent.record)
    system_prompt = blocking(AsyncAgent.system_prompt)
    get_context_usage = blocking(AsyncAgent.get_context_usage)
    request = blocking(AsyncAgent.request)
    compact = blocking(AsyncAgent.compact)
    clear = blocking(AsyncAgent.clear)
    sum_up = blocking(AsyncAgent.sum_up)
    settle = blocking(AsyncAgent.settle)
    flush = blocking(AsyncAgent.flush)
    consolidate = blocking(AsyncAgent.consolidate)
