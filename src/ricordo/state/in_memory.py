"""States in memory, for tests and for sessions without a root: what a file would not keep is not kept here either."""

from ricordo.errors import VersionConflict
from ricordo.files import ABSENT, version_of
from ricordo.state.codec import decode, encode
from ricordo.state.contract import AgentState, Stated

__all__ = ["MemoryStates"]


class MemoryStates:
    """The states of this process, as the documents that a file would hold; secrets are left as they are."""

    def __init__(self) -> None:
        """Begin without any state."""
        self._documents: dict[tuple[str, str], bytes] = {}

    async def load(self, agent: str, session: str) -> Stated:
        """Return the stored state, an empty one when there is none."""
        data = self._documents.get((agent, session))
        if data is None:
            return Stated(state=AgentState(agent=agent, session=session), version=ABSENT)
        return Stated(state=decode(data, agent=agent, session=session), version=version_of(data))

    async def save(self, state: AgentState, *, expected: str) -> str:
        """Replace the version `expected` and return the new version.

        Raises: VersionConflict; InvalidMessage for a value that the document has no form for.
        """
        data, key = encode(state), (state.agent, state.session)
        held = self._documents.get(key)
        if (ABSENT if held is None else version_of(held)) != expected:
            raise VersionConflict(f"The state of session {state.session} changed since it was read.")
        self._documents[key] = data
        return version_of(data)
