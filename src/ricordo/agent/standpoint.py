"""Where an agent stands: its session, its window, and what stands beside the window, to be looked at and changed."""

from ricordo.errors import MemoryClosed
from ricordo.harness.compactions import Compactions
from ricordo.harness.permissions import Permissions
from ricordo.harness.task_list import TaskList
from ricordo.memory import Memory
from ricordo.messages import Message
from ricordo.runtime.session import AgentSession
from ricordo.state import AgentState, Todo
from ricordo.stores import LayeredMemory, Store
from ricordo.tools.planning import PlanMode

__all__ = ["HarnessAgentBase"]


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
