"""Saving over what others saved: both count, and neither a broken document nor a failing disk takes anything away."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from ricordo.errors import StorageFull, VersionConflict
from ricordo.guard import PermissionRule, Redactor, ToolPattern
from ricordo.storage import ABSENT
from ricordo.testing import InMemoryFiles
from ricordo.workspace import AgentState, FileStateStore, PermissionGrants, PlanState, Todo, WorkState, state_path
from ricordo.workspace.agent_state import UNKNOWN_RULES, StateStore
from ricordo.workspace.agent_state_store import InMemoryStateStore, StateSaver

pytestmark = pytest.mark.anyio

NEW = AgentState(agent="main", session="s")
DENY = PermissionRule(decision="deny", pattern=ToolPattern(tool="shell"))
STANDING = WorkState(plan=PlanState(path="plans/a.md"), todos=(Todo(id="1", content="Go"),), permissions=(DENY,))


async def opened(states: StateStore) -> tuple[StateSaver, AgentState]:
    """Return the state as another process opens it."""
    stated = await states.load("main", "s")
    return StateSaver(states, stated.state, stated.version), stated.state


async def stored(states: StateStore) -> AgentState:
    return (await states.load("main", "s")).state


def told(state: AgentState, *ids: str) -> AgentState:
    return replace(
        state, work_state=replace(state.work_state, delivered_results=(*state.work_state.delivered_results, *ids))
    )


@pytest.mark.req("AS-STATE-01")
async def test_what_two_processes_saved_in_turn_is_in_the_document_of_both() -> None:
    states = InMemoryStateStore()
    one, state = await opened(states)
    other, same = await opened(states)
    here = await one.save(told(state, "a"))
    there = await other.save(replace(told(same, "b"), turns=1))
    assert there.work_state.delivered_results == ("a", "b")
    here = await one.save(told(here, "c"))
    assert here.work_state.delivered_results == ("a", "b", "c")
    assert here == await stored(states)
    assert one.is_up_to_date(here)
    assert not other.is_up_to_date(here)


async def test_a_state_is_up_to_date_once_it_was_saved_here() -> None:
    states = InMemoryStateStore()
    await states.save(NEW, expected=ABSENT)
    one, state = await opened(states)
    assert not one.is_up_to_date(state), "what was taken up may differ from what is stored"
    assert one.is_up_to_date(await one.save(state))
    assert not one.is_up_to_date(told(state, "a"))


@pytest.mark.req("AS-BUG-29")
@pytest.mark.parametrize("turns", [0, 4])
async def test_what_stands_survives_a_document_that_broke_meanwhile(
    turns: int, caplog: pytest.LogCaptureFixture
) -> None:
    files = InMemoryFiles()
    states = FileStateStore(files, Redactor(bytes(32)), PermissionGrants(files, "granted"))
    await states.save(replace(NEW, turns=turns, work_state=STANDING), expected=ABSENT)
    one, state = await opened(states)
    path = state_path("main", "s")
    await files.replace(path, b"{", expected=(await files.read(path)).version)
    if turns:
        # another process came first, set it aside and began anew
        other, fresh = await opened(states)
        await other.save(replace(told(fresh, "b"), turns=1))
    saved = await one.save(told(state, "a"))
    # who began anew knew no rules, and only a person takes back what was held because of that
    rules = (UNKNOWN_RULES, DENY) if turns else (DENY,)
    assert replace(saved.work_state, delivered_results=()) == replace(STANDING, permissions=rules)
    assert set(saved.work_state.delivered_results) == ({"a", "b"} if turns else {"a"})
    assert saved == await stored(states)
    assert (await files.read(f"{path}.broken-1")).data == b"{"
    assert [each.getMessage().endswith("s.json.broken-1.") for each in caplog.records] == [True] * (not turns)


async def test_what_stands_from_the_beginning_is_not_taken_away_by_who_began_first() -> None:
    states = InMemoryStateStore()
    one = StateSaver(states, replace(NEW, work_state=STANDING), ABSENT)
    other, fresh = await opened(states)
    await other.save(told(fresh, "b"))
    saved = await one.save(replace(NEW, work_state=STANDING))
    assert saved.work_state == replace(STANDING, delivered_results=("b",))


async def test_a_document_that_was_removed_is_written_again_whole() -> None:
    files = InMemoryFiles()
    states = FileStateStore(files, Redactor(bytes(32)), PermissionGrants(files, "granted"))
    await states.save(replace(NEW, work_state=STANDING), expected=ABSENT)
    one, state = await opened(states)
    await files.delete(state_path("main", "s"))
    assert (await one.save(told(state, "a"))).work_state == told(state, "a").work_state


class Busy(InMemoryStateStore):
    """Another process saves just before each of the next savings."""

    def __init__(self) -> None:
        super().__init__()
        self.others = 0

    async def save(self, state: AgentState, *, expected: str) -> str:
        if self.others:
            self.others -= 1
            stated = await self.load("main", "s")
            theirs = told(stated.state, f"theirs {self.others}")
            await super().save(replace(theirs, turns=stated.state.turns + 1), expected=stated.version)
        return await super().save(state, expected=expected)


async def test_a_saving_that_often_comes_second_is_made_all_the_same() -> None:
    states = Busy()
    one, state = await opened(states)
    states.others = 9
    saved = await one.save(told(state, "a"))
    assert saved.work_state.delivered_results == (*(f"theirs {number}" for number in reversed(range(9))), "a")
    assert saved == await stored(states)


async def test_a_saving_that_always_comes_second_is_given_up_and_forgets_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ricordo.workspace.agent_state_store._SECONDS", 0)
    states = Busy()
    one, state = await opened(states)
    state = await one.save(replace(told(state, "a"), turns=1))
    states.others = 9
    with pytest.raises(VersionConflict, match=r"changed the session s each of the 3 times .* Try again"):
        await one.save(told(state, "b"))
    states.others = 2
    saved = await one.save(told(state, "c"))
    assert saved == await stored(states)
    assert saved.work_state.delivered_results == ("a", "theirs 8", "theirs 7", "theirs 6", "theirs 1", "theirs 0", "c")
    assert saved.turns == 6


@pytest.mark.req("AS-BUG-29")
async def test_what_another_process_made_is_taken_from_a_document_that_broke_after_it() -> None:
    files = InMemoryFiles()
    states = FileStateStore(files, Redactor(bytes(32)), PermissionGrants(files, "granted"))
    await states.save(replace(NEW, work_state=STANDING), expected=ABSENT)
    one, state = await opened(states)
    other, theirs = await opened(states)
    rule = PermissionRule(decision="deny", pattern=ToolPattern(tool="write_file"))
    added = replace(
        theirs.work_state, permissions=(DENY, rule), plan=PlanState(active=True, path="plans/b.md", author="user")
    )
    await other.save(replace(theirs, turns=2, work_state=added))
    path = state_path("main", "s")
    stored_now = await files.read(path)
    broken = stored_now.data.replace(b'"window":[]', b'"window":[1]')
    assert broken != stored_now.data
    await files.replace(path, broken, expected=stored_now.version)
    saved = await one.save(told(state, "a"))
    assert saved.work_state == replace(added, delivered_results=("a",))
    assert saved == await stored(states)


class Failing(InMemoryStateStore):
    """Fails after it has written, as a disk may."""

    fails = False

    async def save(self, state: AgentState, *, expected: str) -> str:
        version = await super().save(state, expected=expected)
        if self.fails:
            raise StorageFull
        return version


async def test_what_was_refused_and_stands_all_the_same_is_not_taken_for_anothers() -> None:
    states = Failing()
    one, state = await opened(states)
    state = await one.save(replace(told(state, "a"), turns=1))
    states.fails = True
    with pytest.raises(StorageFull):
        await one.save(replace(state, turns=2, work_state=STANDING))
    assert (await stored(states)).work_state == STANDING
    states.fails = False
    assert await one.save(state) == state == await stored(states)


class Astray(Busy):
    """Fails at the given savings, before or after they wrote; another process saves just before the first ones."""

    def __init__(self, failing: Mapping[int, str]) -> None:
        super().__init__()
        self.failing = dict(failing)
        self.saved = 0

    async def save(self, state: AgentState, *, expected: str) -> str:
        self.saved += 1
        fails = self.failing.pop(self.saved, "")
        if fails == "before":
            raise StorageFull
        version = await super().save(state, expected=expected)
        if fails:
            raise StorageFull
        return version


async def test_a_refused_change_that_reached_the_store_leaves_alone_what_was_merged_into_it() -> None:
    states = Astray({})
    one, state = await opened(states)
    state = await one.save(replace(state, turns=1))
    # another process comes first, and the merged state is written before the disk fails
    states.failing, states.saved, states.others = {2: "after"}, 0, 1
    with pytest.raises(StorageFull):
        await one.save(told(state, "refused"))
    assert (await stored(states)).work_state.delivered_results == ("theirs 0", "refused")
    saved = await one.save(state)
    assert saved.work_state.delivered_results == ("theirs 0",)
    assert saved == await stored(states)
