"""Hiding states: the state of a session is stored without what was forgotten since it was loaded.

A session that runs while something is forgotten still has it in its window, until its next request, and stores that
window when its turn ends. Invariant: what is stored says nothing of it, but in the newest request of the user.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from anyio.to_thread import run_sync

from ricordo.compaction.stays import find_newest_request
from ricordo.state import AgentState, StoredState, StateStore
from ricordo.workspace.forgotten import ForgottenStatements

__all__ = ["FilteredStateStore"]


class FilteredStateStore:
    """Loads and saves through `states`."""

    def __init__(self, states: StateStore, forgotten: Callable[[], Awaitable[Sequence[ForgottenStatements]]]) -> None:
        """Hide what `forgotten` recognises; it is asked before each saving."""
        self._states = states
        self._list_forgotten = forgotten

    async def load(self, agent: str, session: str) -> StoredState:
        """Return the stored state, as `states` does."""
        return await self._states.load(agent, session)

    async def save(self, state: AgentState, *, expected: str) -> str:
        """Store the state without what was forgotten, and return the new version. Raises `VersionConflict`."""
        known = [each for each in await self._list_forgotten() if each]
        hidden = await run_sync(_remove_forgotten, state, known) if known else state
        return await self._states.save(hidden, expected=expected)


def _remove_forgotten(state: AgentState, known: Sequence[ForgottenStatements]) -> AgentState:
    asked = find_newest_request(state.window)
    window, todos = [*state.window], [*state.work_state.todos]
    for each in known:
        window = [m if at == asked else each.mask_message(m, state.session) for at, m in enumerate(window)]
        todos = [replace(todo, content=each.mask(todo.content)) for todo in todos]
    return replace(state, window=tuple(window), work_state=replace(state.work_state, todos=tuple(todos)))
