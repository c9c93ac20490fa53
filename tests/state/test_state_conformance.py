"""Every store of states does the same, on disk and in memory."""

from pathlib import Path

import pytest

from ricordo.errors import InvalidMessage
from ricordo.guard import Redactor
from ricordo.storage import ABSENT
from ricordo.storage.local import LocalFiles
from ricordo.testing import STATE_STORE_CHECKS, InMemoryFiles, StateStoreCheck
from ricordo.workspace import AgentState, FileStateStore, PermissionGrants
from ricordo.workspace.agent_state import StateStore, StoredState
from ricordo.workspace.agent_state_store import InMemoryStateStore

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["local files", "files in memory", "memory"])
def states(request: pytest.FixtureRequest, tmp_path: Path) -> StateStore:
    if request.param == "memory":
        return InMemoryStateStore()
    files = InMemoryFiles() if request.param == "files in memory" else LocalFiles(tmp_path)
    return FileStateStore(files, Redactor(bytes(32)), PermissionGrants(files, "granted"))


@pytest.mark.req("AS-STATE-02", "AS-STATE-06", "AS-STATE-07", "AS-STATE-03", "AS-BUG-29")
@pytest.mark.parametrize("check", STATE_STORE_CHECKS, ids=lambda check: check.__name__.strip("_"))
async def test_a_store_of_states_does_what_it_has_to(check: StateStoreCheck, states: StateStore) -> None:
    await check(states)


async def test_what_no_file_would_hold_is_refused_and_nothing_is_changed(states: StateStore) -> None:
    state = AgentState(agent="main", session="s", extra={"b": [1]})
    version = await states.save(state, expected=ABSENT)
    with pytest.raises(InvalidMessage):
        await states.save(AgentState(agent="main", session="s", ratio=float("nan")), expected=version)
    assert await states.load("main", "s") == StoredState(state=state, version=version)


class Forgetful(InMemoryStateStore):
    """Loses what stands."""

    async def load(self, agent: str, session: str) -> StoredState:
        found = await super().load(agent, session)
        return StoredState(state=AgentState(agent=agent, session=session), version=found.version)


class Careless(InMemoryStateStore):
    """Replaces any version."""

    async def save(self, state: AgentState, *, expected: str) -> str:
        return await super().save(state, expected=(await self.load(state.agent, state.session)).version)


@pytest.mark.parametrize("broken", [Forgetful, Careless])
async def test_a_store_that_does_not_is_found_out(broken: type[InMemoryStateStore]) -> None:
    found: list[str] = []
    for check in STATE_STORE_CHECKS:
        try:
            await check(broken())
        except AssertionError as error:
            found.append(str(error))
    assert found
    assert all(each.startswith("A store of states: ") for each in found)
