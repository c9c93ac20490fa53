"""AgentState: what an agent must find again when a session goes on in another process.

The transcript is what was said; this is where the agent stands: the window as it was last sent, which a summary or an
eviction may have shortened. One versioned document for each session.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ricordo.messages import JsonValue, Message

__all__ = ["AgentState", "StateStore", "Stated"]


@dataclass(frozen=True, kw_only=True)
class AgentState:
    """The state of `agent` in `session`.

    `window` are the messages that the next request begins with, the system prompt not among them. `last` is the id of
    the newest message that was recorded when it was so: what the transcript holds after it is not in the window yet.
    `user` is whose session it is, empty where nobody was named. `turns` counts the turns that ended. `undone`
    counts the messages that the window had when a person last undid a compaction, 0 when nobody did. `ratio` is
    what the token estimate is multiplied by, learned from reported usage. `extra` holds fields of other versions,
    kept as they are.
    """

    agent: str
    session: str
    window: tuple[Message, ...] = ()
    last: str = ""
    user: str = ""
    turns: int = 0
    undone: int = 0
    ratio: float = 1.0
    extra: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Stated:
    """A state as it is stored, and the version to name when it is replaced; `set_aside` names an unreadable one."""

    state: AgentState
    version: str
    set_aside: str = ""


class StateStore(Protocol):
    """Where states are kept."""

    async def load(self, agent: str, session: str) -> Stated:
        """Return the stored state, an empty one when there is none.

        One that can't be parsed is set aside under another name, never overwritten, and named in `set_aside`.
        """
        ...

    async def save(self, state: AgentState, *, expected: str) -> str:
        """Replace the version `expected` durably and return the new version. Raises `VersionConflict`."""
        ...
