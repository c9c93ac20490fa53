"""States in memory, for tests and for sessions without a root: what a file would not keep is not kept here either."""

from ricordo.errors import VersionConflict
from ricordo.files import ABSENT, compute_version
from ricordo.state.codec import decode_state, encode_state
from ricordo.state.contract import AgentState, StoredState

__all__ = ["InMemoryStateStore"]


class InMemoryStateStore:
    """The states of this process, as the documents that a file would hold; secrets are left as they are."""

    def __init__(self) -> None:
        """Begin without any state."""
        self._documents: dict[tuple[str, str], bytes] = {}

    async def load(self, agent: str, session: str) -> StoredState:
        """Return the stored state, an empty one when there is none."""
        data = self._documents.get((agent, session))
        if data is None:
            return StoredState(state=AgentState(agent=agent, session=session), version=ABSENT)
        return StoredState(state=decode_state(data, agent=agent, session=session), version=compute_version(data))

    async def save(self, state: AgentState, *, expected: str) -> str:
        """Replace the version `expected` and return the new version.

        Raises: VersionConflict; InvalidMessage for a value that the document has no form for.
        """
        data, key = encode_state(state), (state.agent, state.session)
        held = self._documents.get(key)
        if (ABSENT if held is None else compute_version(held)) != expected:
            raise VersionConflict(f"The state of session {state.session} changed since it was read.")
        self._documents[key] = data
        return compute_version(data)
