"""Calls, results, and where a conversation may be cut."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo.messages import (
    Message,
    PartPosition,
    Role,
    Text,
    ToolCall,
    ToolResult,
    find_cut_points,
    find_orphan_results,
    find_safe_cut,
    pair_calls,
    split_groups,
)

pytestmark = pytest.mark.req("GO-G28")


def _said(role: Role, text: str = "ok") -> Message:
    return Message(role=role, parts=(Text(text=text),))


def _calls(*ids: str) -> Message:
    return Message(role="assistant", parts=(Text(text="let me look"), *(ToolCall(id=i, name="ls") for i in ids)))


def _results(*ids: str, role: Role = "tool") -> Message:
    return Message(role=role, parts=tuple(ToolResult(call_id=i, parts=(Text(text="a.py"),)) for i in ids))


@st.composite
def _steps(draw: st.DrawFn, number: int) -> list[Message]:
    """One step of an agent: a word, or calls with all their results in any order and split into any messages."""
    if draw(st.booleans()):
        return [_said(draw(st.sampled_from(["user", "assistant", "system"])))]
    unique = draw(st.booleans())
    ids = [f"{number}-{i}" if unique else f"call_{i}" for i in range(draw(st.integers(1, 3)))]
    order = draw(st.permutations(ids))
    role: Role = draw(st.sampled_from(["tool", "user"]))
    split = draw(st.booleans())
    answers = [_results(i, role=role) for i in order] if split else [_results(*order, role=role)]
    between = [_said("user", "hurry")] if draw(st.booleans()) else []
    return [_calls(*ids), *between, *answers]


@st.composite
def _histories(draw: st.DrawFn) -> list[Message]:
    return [message for number in range(draw(st.integers(0, 6))) for message in draw(_steps(number))]


@pytest.mark.req("GO-G28", "GO-D15", "AS-COMPACT-08")
@given(_histories(), st.data())
def test_no_cut_parts_a_call_from_its_result_here_or_still_to_come(history: list[Message], data: st.DataObject) -> None:
    now = history[: data.draw(st.integers(0, len(history)))]
    whole = pair_calls(history)
    assert not whole.orphans
    assert not whole.abandoned
    for point in find_cut_points(now):
        assert not [1 for call, result in whole.answered if call.message < point <= result.message]
        assert not find_orphan_results(history[point:])


@pytest.mark.req("AS-COMPACT-08")
@given(_histories())
def test_every_place_where_nothing_is_parted_is_a_cut_point(history: list[Message]) -> None:
    spans = [(call.message, result.message) for call, result in pair_calls(history).answered]
    free = [i for i in range(len(history) + 1) if not any(start < i <= stop for start, stop in spans)]
    assert list(find_cut_points(history)) == free


@pytest.mark.req("AS-COMPACT-08")
@given(_histories(), st.integers(-3, 40))
def test_a_safe_cut_is_the_nearest_cut_point_that_is_not_later(history: list[Message], wanted: int) -> None:
    found = find_safe_cut(history, wanted)
    assert found in find_cut_points(history)
    assert found <= max(wanted, 0)
    assert not [point for point in find_cut_points(history) if found < point <= wanted]


@pytest.mark.req("AS-COMPACT-08")
@given(_histories(), st.data())
def test_groups_cover_the_conversation_once_and_each_is_whole(history: list[Message], data: st.DataObject) -> None:
    now = history[: data.draw(st.integers(0, len(history)))]
    found = split_groups(now)
    assert [i for group in found for i in range(group.start, group.stop)] == list(range(len(now)))
    assert not [group for group in found if find_orphan_results(now[group.start : group.stop])]


@pytest.mark.req("GO-G28", "GO-D15", "AS-COMPACT-08")
def test_one_long_tool_loop_without_user_turns_can_be_cut() -> None:
    history = [_said("user"), *(m for i in range(100) for m in (_calls(f"c{i}"), _results(f"c{i}")))]
    assert find_cut_points(history) == (0, *range(1, 202, 2))
    assert find_safe_cut(history, 100) == 99


@pytest.mark.req("GO-G28", "GO-D15", "AS-COMPACT-08")
def test_several_consecutive_results_to_parallel_calls_stay_with_them() -> None:
    history = [_said("user"), _calls("a", "b", "c"), _results("b"), _results("a"), _results("c"), _said("assistant")]
    assert find_cut_points(history) == (0, 1, 5, 6)


@pytest.mark.req("AS-COMPACT-08")
def test_nothing_after_a_pending_call_is_cut_off() -> None:
    history = [_said("user"), _calls("a", "b"), _results("a"), _said("user", "hurry")]
    assert find_cut_points(history) == (0, 1)
    assert find_safe_cut(history, 4) == 1
    assert pair_calls(history).pending == (PartPosition(message=1, part=2),)
    assert [(group.start, group.stop) for group in split_groups(history)] == [(0, 1), (1, 4)]


@pytest.mark.req("AS-COMPACT-08")
def test_calls_that_a_provider_split_into_several_messages_are_pending_together() -> None:
    assert find_cut_points([_said("user"), _calls("a"), _calls("b")]) == (0, 1)


@pytest.mark.req("AS-COMPACT-08")
def test_a_call_that_was_never_answered_does_not_bind_the_rest_of_the_conversation() -> None:
    history = [_calls("a"), _said("user", "never mind"), _said("assistant"), _said("user")]
    assert pair_calls(history).abandoned == (PartPosition(message=0, part=1),)
    assert find_cut_points(history) == (0, 1, 2, 3, 4)


@pytest.mark.req("AS-COMPACT-08")
def test_an_id_that_is_used_again_pairs_with_its_nearest_call() -> None:
    turn = [_calls("call_0"), _results("call_0")]
    assert find_cut_points([*turn, _said("user"), *turn]) == (0, 2, 3, 5)


@pytest.mark.req("AS-COMPACT-08")
def test_a_second_result_to_one_call_is_no_orphan() -> None:
    history = [_calls("a"), _results("a"), _results("a")]
    assert find_orphan_results(history) == ()
    assert find_cut_points(history) == (0, 3)


@pytest.mark.req("AS-COMPACT-08")
def test_results_without_a_call_before_them_are_orphans_and_bind_nothing() -> None:
    history = [_results("x"), _said("user"), _results("late"), _calls("late"), _results("late")]
    assert find_orphan_results(history) == (PartPosition(message=0, part=0), PartPosition(message=2, part=0))
    assert find_cut_points(history) == (0, 1, 2, 3, 5)


def test_an_empty_conversation_has_one_cut_point() -> None:
    assert find_cut_points([]) == (0,)
    assert split_groups([]) == ()
    assert find_safe_cut([], 7) == 0


def test_a_call_and_its_result_in_one_message_part_nothing() -> None:
    both = replace(_calls("a"), parts=(*_calls("a").parts, *_results("a").parts))
    assert find_cut_points([both, _said("user")]) == (0, 1, 2)
