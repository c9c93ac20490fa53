"""What a session is taken up with is what providers accept, whatever order its processes wrote in and died in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents_at_work import is_valid
from ricordo.agent.session_state import messages_from_state, repair_window, resume_window
from ricordo.messages import (
    Mark,
    Message,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    pair_calls,
    with_mark,
    with_parents,
)
from ricordo.workspace import AgentState

IDS = st.sampled_from(["a", "b", "c"])
PARTS: st.SearchStrategy[Part] = st.one_of(
    st.builds(Text, text=st.just("words")),
    st.builds(Thinking, text=st.just("hm")),
    st.builds(ToolCall, id=IDS, name=st.just("look")),
)
RESULTS = st.builds(ToolResult, call_id=IDS)


@st.composite
def conversations(draw: st.DrawFn) -> tuple[Message, ...]:
    spoken = st.one_of(
        st.builds(Message, role=st.just("user"), parts=st.tuples(st.just(Text(text="asks")))),
        st.builds(Message, role=st.just("assistant"), parts=st.lists(PARTS, min_size=1, max_size=3).map(tuple)),
        st.builds(Message, role=st.just("tool"), parts=st.lists(RESULTS, min_size=1, max_size=2).map(tuple)),
    )
    found = draw(st.lists(spoken, max_size=12))
    return tuple(
        Message(role=message.role, parts=message.parts, id=str(number)) for number, message in enumerate(found)
    )


@pytest.mark.req("AS-STATE-01")
@given(conversations())
def test_a_window_is_made_valid_once(window: tuple[Message, ...]) -> None:
    once = repair_window(window)
    pairing = pair_calls(once)
    assert is_valid(once)
    assert len({call for call, _ in pairing.answered}) == len(pairing.answered)
    assert repair_window(once) == once
    said = [message.id for message in window if any(isinstance(part, Text) for part in message.parts)]
    assert [message.id for message in once if any(isinstance(part, Text) for part in message.parts)] == said


@given(conversations())
def test_a_window_in_which_each_result_follows_its_call_stays(window: tuple[Message, ...]) -> None:
    calls = [part.id for message in window for part in message.parts if isinstance(part, ToolCall)]
    answers = tuple(
        Message(role="tool", parts=(ToolResult(call_id=f"{number}"),), id=f"r{number}") for number in range(len(calls))
    )
    whole: list[Message] = []
    number = 0
    for message in window:
        if message.role == "tool":
            continue
        own = [part for part in message.parts if isinstance(part, ToolCall)]
        parts = tuple(part for part in message.parts if not isinstance(part, ToolCall))
        named = tuple(ToolCall(id=str(number + place), name="look") for place in range(len(own)))
        whole += [Message(role=message.role, parts=(*parts, *named), id=message.id)]
        whole += answers[number : number + len(own)]
        number += len(own)
    assert repair_window(whole) == tuple(whole)


@pytest.mark.req("AS-TRANS-03", "AS-BUG-12")
@given(conversations(), st.integers(0, 12))
def test_what_only_the_log_holds_is_taken_up(logged: tuple[Message, ...], at: int) -> None:
    kept = logged[:at]
    last = kept[-1].id if kept else ""
    assert resume_window(kept, last, logged) == repair_window(logged)
    assert resume_window(kept, "unknown", logged) == repair_window(logged)
    assert resume_window((), last, logged) == repair_window(logged[len(kept) :] if kept else logged)


@pytest.mark.req("AS-TRANS-03")
@given(
    conversations(), st.lists(st.sampled_from([None, "summary", "memory", "notice", "cut"]), min_size=12, max_size=12)
)
def test_a_lost_log_is_made_of_what_was_said_in_one_chain(
    window: tuple[Message, ...], marks: list[Mark | None]
) -> None:
    chained = with_parents(window, after="lost")
    shown = [with_mark(message, mark) if mark else message for message, mark in zip(chained, marks, strict=False)]
    again = messages_from_state(AgentState(agent="main", session="s", window=tuple(shown)))
    said = [message for message, mark in zip(shown, marks, strict=False) if mark in {None, "cut"}]
    assert [(message.id, message.parts) for message in again] == [(message.id, message.parts) for message in said]
    ids = [message.id for message in again]
    assert [message.parent for message in with_parents(again)] == [None, *ids][: len(ids)]
