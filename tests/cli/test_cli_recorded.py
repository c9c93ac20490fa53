"""A record is cut into turns that lose nothing, and answers again what it holds."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversation_strategies import call, conversations, result, said
from ricordo.agent import ToolContext
from ricordo.cli.commands.replay import (
    RecordedClock,
    RecordedModel,
    RecordedTool,
    RecordedTurn,
    split_turns,
)
from ricordo.errors import ReplyInvalid, ToolFailed
from ricordo.messages import Message, ToolResult
from ricordo.scope import Scope

if TYPE_CHECKING:
    from collections.abc import Sequence

_NOON = datetime(2026, 11, 2, 12, tzinfo=UTC)


def _replied(text: str) -> Message:
    return said(text, role="assistant")


def _texts(turn: RecordedTurn) -> tuple[list[str], list[str]]:
    return [message.text for message in turn.user_messages], [message.text for message in turn.replies]


def _results(turn: RecordedTurn) -> dict[str, list[str | None]]:
    return {name: [each.text if each else None for each in found] for name, found in turn.results.items()}


@given(conversations())
def test_every_message_but_the_systems_is_in_exactly_one_turn_and_in_order(messages: tuple[Message, ...]) -> None:
    lived = [message for turn in split_turns(messages) for message in turn.messages]
    assert lived == [message for message in messages if message.role != "system"]


@given(conversations())
def test_no_result_of_an_exchange_is_lost_or_given_twice(messages: tuple[Message, ...]) -> None:
    found: list[ToolResult] = []
    for turn in split_turns(messages):
        found += [each for given in turn.results.values() for each in given if each]
        found += [each for message in turn.stray_results for each in message.tool_results]
        # what is no exchange is recorded as it is
        found += [] if turn.is_exchange else [each for message in turn.messages for each in message.tool_results]
    recorded = [id(each) for message in messages if message.role != "assistant" for each in message.tool_results]
    assert set(recorded) <= {id(each) for each in found}


@given(conversations())
def test_every_call_of_an_exchange_has_one_answer_even_if_it_is_none(messages: tuple[Message, ...]) -> None:
    for turn in split_turns(messages):
        calls = [call.id for reply in turn.replies for call in reply.tool_calls] if turn.is_exchange else []
        assert {name: len(found) for name, found in turn.results.items()} == {each: calls.count(each) for each in calls}


def test_a_turn_is_what_was_said_and_all_replies_to_it() -> None:
    talk = [
        said("One."),
        said("Two."),
        call("a"),
        result("a", "found"),
        _replied("Done."),
        said("Three."),
        _replied("3"),
    ]
    first, second = split_turns(talk)
    assert _texts(first) == (["One.", "Two."], ["", "Done."])
    assert _results(first) == {"a": ["found"]}
    assert _texts(second) == (["Three."], ["3"])


def test_a_beginning_by_the_assistant_and_a_question_at_the_end_are_no_exchanges() -> None:
    turns = split_turns([_replied("Hello!"), said("Hi."), _replied("How are you?"), said("Well?")])
    assert [turn.is_exchange for turn in turns] == [False, True, False]


def test_a_second_reply_in_a_row_is_a_turn_of_its_own() -> None:
    turns = split_turns([said("Hi."), _replied("Hello."), _replied("Anything else?"), said("No.")])
    assert [_texts(turn) for turn in turns] == [(["Hi."], ["Hello."]), ([], ["Anything else?"]), (["No."], [])]


def test_of_ids_that_repeat_each_call_has_its_own_result() -> None:
    talk = [
        said("Go."),
        call("a", "a"),
        result("a", "1"),
        result("a", "2"),
        call("a"),
        result("a", "3"),
        _replied("Ok."),
    ]
    (turn,) = split_turns(talk)
    assert _results(turn) == {"a": ["1", "3"], "a-2": ["2"]}


def test_a_result_that_comes_after_the_next_question_answers_its_call_all_the_same() -> None:
    first, second = split_turns([said("Go."), call("a"), said("Wait."), result("a", "late"), _replied("Ok.")])
    assert _results(first) == {"a": ["late"]}
    assert second.results == {}


def test_a_result_beside_words_of_the_user_is_not_said_again() -> None:
    answer = Message(role="user", parts=(*result("a", "found").parts, *said("And now?").parts))
    _, second = split_turns([said("Go."), call("a"), answer, _replied("Ok.")])
    assert [message.parts for message in second.user_messages] == [said("And now?").parts]


@given(st.lists(st.one_of(st.none(), st.integers(-1_000, 1_000)), max_size=8))
def test_the_clock_of_a_record_never_runs_backwards(minutes: list[int | None]) -> None:
    clock = RecordedClock()
    newest: datetime | None = None
    for minute in minutes:
        time = None if minute is None else _NOON + timedelta(minutes=minute)
        clock.advance([Message(role="user", time=time)])
        newest = max(filter(None, [newest, time]), default=None)
        assert newest is None or clock.now() == newest


def test_without_a_time_in_the_record_the_clock_is_the_machines() -> None:
    clock = RecordedClock()
    clock.advance([said("Hi.")])
    assert abs(clock.now() - datetime.now(UTC)) < timedelta(minutes=1)
    assert clock.today() == clock.now().astimezone().date()


def test_a_clock_that_shows_another_zone_is_in_utc() -> None:
    clock = RecordedClock()
    clock.advance([Message(role="user", time=datetime.fromisoformat("2026-11-02T23:30:00-05:00"))])
    assert clock.now().isoformat() == "2026-11-03T04:30:00+00:00"


def test_the_model_says_its_replies_and_then_that_the_record_ends() -> None:
    windows: list[Sequence[Message]] = []
    model = RecordedModel(RecordedClock(), on_window=windows.append)
    (turn,) = split_turns([said("Go."), call("a"), result("a", "1"), _replied("Ok.")])
    model.start_turn(turn)

    async def ask() -> list[str]:
        replies = [await model.complete([said("Go.")]) for _ in range(2)]
        with pytest.raises(ReplyInvalid):
            await model.complete([said("Go.")])
        return [reply.stop for reply in replies]

    assert anyio.run(ask) == ["tools", "end"]
    assert len(windows) == 3
    assert model.largest_tokens > 0


def test_a_tool_answers_fails_and_has_nothing_as_it_was_recorded() -> None:
    answers = [result("a", "fine"), result("b", "broken", is_error=True)]
    (turn,) = split_turns([said("Go."), call("a", "b", "c"), *answers, _replied("Ok.")])
    tool = RecordedTool("bash")
    tool.start_turn(turn)

    async def ask(call_id: str) -> object:
        return await tool({}, ToolContext(call_id=call_id, session="s", agent="main", scope=Scope(user="me")))

    assert anyio.run(ask, "a") == list(answers[0].tool_results[0].parts)
    with pytest.raises(ToolFailed, match="broken"):
        anyio.run(ask, "b")
    for unknown in ("c", "d"):
        with pytest.raises(ToolFailed, match="no result"):
            anyio.run(ask, unknown)
