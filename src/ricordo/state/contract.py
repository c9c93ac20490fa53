"""AgentState: what an agent must find again when a session goes on in another process.

The transcript is what was said; this is where the agent stands: the window as it was last sent, which a summary or an
eviction may have shortened, and what stands beside the window, which nothing that shortens it may touch. One versioned
document for each session.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from ricordo.guard.permissions import PermissionRule
from ricordo.messages import JsonValue, Message

__all__ = ["AgentState", "WorkStateHolder", "PlanState", "WorkState", "StateStore", "StoredState", "Todo", "TodoStatus"]

TodoStatus: TypeAlias = Literal["pending", "in_progress", "completed"]


@dataclass(frozen=True, kw_only=True)
class Todo:
    """One thing to do; its `id` stays as long as its content does."""

    id: str
    content: str
    status: TodoStatus = "pending"


@dataclass(frozen=True, kw_only=True)
class PlanState:
    """Whether the agent is only planning (`active`), and the file of the plan, as a path in the workspace.

    With a path and not active the plan is in force; without a path there is none. `by` is who began planning.
    `approved` tells that a person let the plan in this file be carried out.
    """

    active: bool = False
    path: str = ""
    by: Literal["user", "agent"] = "agent"
    approved: bool = False


@dataclass(frozen=True, kw_only=True)
class WorkState:
    """What stands beside the window, whatever happens to that.

    `todos` are in their order, at most one of them in progress. `permissions` are the rules that were granted or
    imposed in this session, oldest first. `delivered` names the results of background tasks that the model was told.
    """

    plan: PlanState = field(default_factory=PlanState)
    todos: tuple[Todo, ...] = ()
    permissions: tuple[PermissionRule, ...] = ()
    delivered: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class AgentState:
    """The state of `agent` in `session`.

    `window` are the messages that the next request begins with, the system prompt not among them. `last` is the id of
    the newest message that was recorded when it was so: what the transcript holds after it is not in the window yet.
    `user` is whose session it is, empty where nobody was named. `learns` tells whether what is said in it may be
    learned from. `turns` counts the turns that ended. `undone` counts the messages that the window had when a
    person last undid a compaction, 0 when nobody did. `ratio` is what the token estimate is multiplied by, learned
    from reported usage. `work_state` is what no compaction touches. `extra` holds fields of other versions, kept as
    they are.
    """

    agent: str
    session: str
    window: tuple[Message, ...] = ()
    last: str = ""
    user: str = ""
    learns: bool = True
    turns: int = 0
    undone: int = 0
    ratio: float = 1.0
    work_state: WorkState = field(default_factory=WorkState)
    extra: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class StoredState:
    """A state as it is stored, and the version to name when it is replaced; `set_aside` names an unreadable one.

    Of one that was set aside, `state` is what could be read, and its version is that of none.
    """

    state: AgentState
    version: str
    set_aside: str = ""


class StateStore(Protocol):
    """Where states are kept."""

    async def load(self, agent: str, session: str) -> StoredState:
        """Return the stored state, an empty one when there is none.

        One that can't be parsed is kept under another name, never overwritten, and named in `set_aside`; the state is
        then what can be read of it. Where its rules or its plan can't be, the first rule is that all is asked for.
        """
        ...

    async def save(self, state: AgentState, *, expected: str) -> str:
        """Replace the version `expected` durably and return the new version. Raises `VersionConflict`."""
        ...


class WorkStateHolder(Protocol):
    """Whoever holds what stands in a session; see `SessionState` of the harness."""

    @property
    def work_state(self) -> WorkState:
        """What stands now."""
        ...

    async def update_work_state(self, change: Callable[[WorkState], WorkState]) -> WorkState:
        """Go on with what `change` makes of what stands, durably, and return it.

        Raises: StorageError, and then nothing has changed; what `change` raises.
        """
        ...
