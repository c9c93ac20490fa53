"""The conformance suite for stores of agent states, as checks that need no test framework.

    @pytest.mark.parametrize("check", STATE_STORE_CHECKS)
    async def test_my_states(check):
        await check(MyStates())

A check takes an empty store. It returns if the store passes, and raises `AssertionError` with a sentence otherwise.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeAlias

from ricordo.errors import VersionConflict
from ricordo.guard.permissions import PermissionRule, ToolPattern
from ricordo.messages import Message, Text
from ricordo.storage import ABSENT
from ricordo.workspace.agent_state import AgentState, PlanState, StateStore, Todo, WorkState

__all__ = ["STATE_STORE_CHECKS", "StateStoreCheck"]


StateStoreCheck: TypeAlias = Callable[[StateStore], Awaitable[None]]
_SAMPLE_STANDING = WorkState(
    plan=PlanState(active=True, path="plans/move.md", by="user"),
    todos=(Todo(id="1", content="Read it", status="completed"), Todo(id="2", content="Write it", status="in_progress")),
    permissions=(
        PermissionRule(decision="deny", pattern=ToolPattern(tool="shell", argument="git push*"), why="Never."),
        PermissionRule(decision="allow", pattern=ToolPattern(tool="read_file"), source="person"),
    ),
    delivered=("task-1",),
)
_SAMPLE_STATE = AgentState(
    agent="main",
    session="s",
    window=(Message(role="user", parts=(Text(text="Hello."),), id="m1"),),
    last="m1",
    user="ada",
    learns=False,
    turns=2,
    ratio=1.25,
    work_state=_SAMPLE_STANDING,
)


async def _what_was_never_saved_is_an_empty_state(states: StateStore) -> None:
    loaded = await states.load("main", "s")
    _require(loaded.state == AgentState(agent="main", session="s"), "a state that was never saved is not empty")
    _require(loaded.version == ABSENT, "a state that was never saved has a version")
    _require(not loaded.set_aside, "something was set aside that was never there")


async def _what_was_saved_is_found_again(states: StateStore) -> None:
    version = await states.save(_SAMPLE_STATE, expected=ABSENT)
    loaded = await states.load("main", "s")
    _require(loaded.state == _SAMPLE_STATE, "a state is not loaded as it was saved")
    _require(loaded.version == version, "the version that is loaded is not the one that was saved")
    later = replace(_SAMPLE_STATE, window=(), turns=3, work_state=WorkState())
    await states.save(later, expected=version)
    _require((await states.load("main", "s")).state == later, "a state is not replaced as a whole")


async def _of_two_that_replace_one_version_the_second_is_refused(states: StateStore) -> None:
    first = await states.save(_SAMPLE_STATE, expected=ABSENT)
    newest = replace(_SAMPLE_STATE, turns=3)
    await states.save(newest, expected=first)
    for expected in (first, ABSENT):
        refused = False
        try:
            await states.save(replace(_SAMPLE_STATE, turns=9), expected=expected)
        except VersionConflict:
            refused = True
        _require(refused, "a version is replaced that is not the newest")
    _require((await states.load("main", "s")).state == newest, "what was refused was saved all the same")


async def _each_session_of_each_agent_is_by_itself(states: StateStore) -> None:
    saved_states = [
        replace(_SAMPLE_STATE, agent=agent, session=session) for agent in ("main", "other") for session in ("s", "s.2")
    ]
    for turns, state in enumerate(saved_states):
        await states.save(replace(state, turns=turns), expected=ABSENT)
    loaded_states = [(await states.load(state.agent, state.session)).state for state in saved_states]
    _require([state.turns for state in loaded_states] == [0, 1, 2, 3], "the state of one session is that of another")


async def _what_a_newer_version_wrote_survives(states: StateStore) -> None:
    newer = replace(_SAMPLE_STATE, extra={"v": 99, "mood": {"calm": [True, None]}})
    version = await states.save(newer, expected=ABSENT)
    loaded = await states.load("main", "s")
    _require(loaded.state == newer, "the fields of a newer version are lost")
    await states.save(replace(loaded.state, turns=3), expected=version)
    resaved = (await states.load("main", "s")).state
    _require(resaved == replace(newer, turns=3), "the fields of a newer version are lost with the next saving")


def _require(condition: bool, message: str) -> None:  # noqa: FBT001
    if not condition:
        raise AssertionError(f"A store of states: {message}.")


STATE_STORE_CHECKS: tuple[StateStoreCheck, ...] = (
    _what_was_never_saved_is_an_empty_state,
    _what_was_saved_is_found_again,
    _of_two_that_replace_one_version_the_second_is_refused,
    _each_session_of_each_agent_is_by_itself,
    _what_a_newer_version_wrote_survives,
)
"""Every check. Call each with a new, empty store."""
