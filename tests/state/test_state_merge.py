"""Merging two states: what only one process changed survives, a denial is never lost, and turns of both count."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from message_strategies import any_text
from ricordo.guard import PermissionRule, ToolPattern
from ricordo.guard.permissions import Decision
from ricordo.messages import Message
from ricordo.workspace import AgentState, Todo, WorkState
from ricordo.workspace.agent_state_store import merge_states
from standings import standings

BASE = AgentState(agent="main", session="s")


def states() -> st.SearchStrategy[AgentState]:
    return st.builds(
        AgentState,
        agent=st.just("main"),
        session=st.just("s"),
        window=st.lists(st.builds(Message, role=st.just("user"), id=any_text(3)), max_size=2).map(tuple),
        last=any_text(3),
        user=st.sampled_from(["", "ada"]),
        learns=st.booleans(),
        turns=st.integers(0, 9),
        messages_at_undo=st.integers(0, 9),
        ratio=st.floats(0.5, 2),
        work_state=standings(),
        extra=st.dictionaries(st.sampled_from("abc"), st.integers(0, 2)),
    )


def rule(decision: Decision, argument: str = "x", *, reason: str = "") -> PermissionRule:
    return PermissionRule(decision=decision, pattern=ToolPattern(tool="shell", argument=argument), reason=reason)


def of(*permissions: PermissionRule) -> AgentState:
    return replace(BASE, work_state=WorkState(permissions=permissions))


@pytest.mark.req("AS-STATE-03", "AS-STATE-06", "AS-STATE-07")
@given(states(), states())
def test_what_only_one_process_changed_survives(base: AgentState, other: AgentState) -> None:
    here, there = merge_states(base, other, base), merge_states(base, base, other)
    assert here.work_state == there.work_state == other.work_state
    assert dict(here.extra) == dict(there.extra) == dict(other.extra)
    assert here.turns == max(base.turns, other.turns)
    assert there.turns == other.turns


@pytest.mark.req("AS-STATE-06", "AS-STATE-07")
@given(states(), states(), states())
def test_of_two_that_changed_a_state_neither_is_lost(base: AgentState, ours: AgentState, theirs: AgentState) -> None:
    found = merge_states(base, ours, theirs)
    assert replace(found, user="", learns=True, turns=0, work_state=WorkState(), extra={}) == replace(
        ours, user="", learns=True, turns=0, work_state=WorkState(), extra={}
    ), "the window and what belongs to it stay ours"
    assert found.user == (ours.user or theirs.user)
    assert found.learns == (ours.learns or theirs.learns)
    standing = found.work_state
    assert standing.todos in (ours.work_state.todos, theirs.work_state.todos)
    assert [todo.status for todo in standing.todos].count("in_progress") <= 1
    assert standing.plan in (ours.work_state.plan, theirs.work_state.plan)
    told = set(base.work_state.delivered_results)
    for side in (ours, theirs):
        assert set(side.work_state.delivered_results) - told <= set(standing.delivered_results)
    assert len(set(standing.delivered_results)) == len(standing.delivered_results)


@pytest.mark.req("AS-STATE-07")
@given(states(), states(), states())
def test_a_denial_is_never_lost(base: AgentState, ours: AgentState, theirs: AgentState) -> None:
    before, here, there, found = (
        {each.pattern for each in state.work_state.permissions if each.decision == "deny"}
        for state in (base, ours, theirs, merge_states(base, ours, theirs))
    )
    assert (here - before) | (there - before) | (here & there) <= found
    assert found <= here | there


_DENY, _ASK, _ALLOW = rule("deny"), rule("ask"), rule("allow")


@pytest.mark.req("AS-STATE-07")
@pytest.mark.parametrize(
    ("base", "ours", "theirs", "found"),
    [
        ([_ASK], [_ALLOW], [_DENY], [_DENY]),
        ([_ASK], [_DENY], [_ALLOW], [_DENY]),
        ([], [_ASK], [_ALLOW], [_ASK]),
        ([_DENY], [], [_ALLOW], []),
        ([_DENY], [], [_ASK], [_ASK]),
        ([_ALLOW], [], [_DENY], [_DENY]),
        ([_ASK], [rule("deny", reason="ours")], [rule("deny", reason="theirs")], [rule("deny", reason="theirs")]),
        ([_ALLOW, rule("allow", "y")], [rule("allow", "y")], [_ALLOW, rule("deny", "z")], [rule("deny", "z")]),
        ([], [rule("ask", "y"), rule("deny", "y")], [rule("ask", "y")], [rule("ask", "y"), rule("deny", "y")]),
    ],
)
def test_of_two_changes_of_one_pattern_the_stricter_counts(
    base: list[PermissionRule], ours: list[PermissionRule], theirs: list[PermissionRule], found: list[PermissionRule]
) -> None:
    assert merge_states(of(*base), of(*ours), of(*theirs)).work_state.permissions == tuple(found)


@pytest.mark.req("AS-STATE-07", "AS-STATE-05")
def test_rules_and_told_results_of_both_are_kept_in_a_stable_order() -> None:
    base = replace(BASE, work_state=WorkState(permissions=(_ALLOW,), delivered_results=("a",)))
    ours = replace(
        BASE, work_state=WorkState(permissions=(_ALLOW, rule("deny", "ours")), delivered_results=("a", "c", "b"))
    )
    theirs = replace(
        BASE, work_state=WorkState(permissions=(_ALLOW, rule("deny", "theirs")), delivered_results=("a", "b", "d"))
    )
    found = merge_states(base, ours, theirs).work_state
    assert [each.pattern.argument for each in found.permissions] == ["x", "theirs", "ours"]
    assert found.delivered_results == ("a", "b", "d", "c")


@pytest.mark.req("AS-STATE-06")
def test_turns_of_both_processes_are_counted_and_ours_wins_where_both_wrote_todos() -> None:
    base = replace(BASE, turns=5)
    ours = replace(base, turns=7, work_state=WorkState(todos=(Todo(id="1", content="ours", status="in_progress"),)))
    theirs = replace(base, turns=6, work_state=WorkState(todos=(Todo(id="2", content="theirs", status="in_progress"),)))
    found = merge_states(base, ours, theirs)
    assert (found.turns, found.work_state.todos) == (8, ours.work_state.todos)


def test_fields_of_other_versions_are_theirs_but_for_what_changed_here() -> None:
    base, ours, theirs = (
        replace(BASE, extra=extra)
        for extra in ({"a": 1, "b": 1, "c": 1}, {"a": 2, "b": 1, "d": 2}, {"a": 3, "b": 3, "c": 1, "e": 3})
    )
    assert merge_states(base, ours, theirs).extra == {"a": 2, "b": 3, "d": 2, "e": 3}
