"""Tool calls: whatever a tool or a model does wrong becomes a result that the model can act on."""

import asyncio
import base64
from collections.abc import Mapping

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_models import FakeModel, FunctionTool, call, calling, reply, say
from message_strategies import any_text
from ricordo.agent import AgentLoop, ToolContext, ToolOutput, Turn
from ricordo.agent.tool_calls import deduplicate_call_ids, exception_result, replace_surrogates, tool_result
from ricordo.errors import ToolFailed
from ricordo.guard import Redactor
from ricordo.messages import (
    JsonValue,
    Media,
    Message,
    Text,
    ToolCall,
    ToolResult,
    decode_message,
    encode_message,
    loads,
    pair_calls,
)
from ricordo.scope import Scope

pytestmark = pytest.mark.anyio

SECRET = "ghp_aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dF3hJ5"


async def results(*calls: ToolCall, seconds: float | None = None, **tools: object) -> tuple[ToolResult, ...]:
    """Run `calls` against tools that return the given values, or raise them; return the results the model is told."""

    def made(name: str, outcome: object) -> FunctionTool:
        async def act(arguments: Mapping[str, JsonValue], context: ToolContext) -> ToolOutput:
            if isinstance(outcome, BaseException):
                raise outcome
            if callable(outcome):
                return await outcome(arguments, context)  # type: ignore[no-any-return]
            return outcome  # type: ignore[return-value]

        return FunctionTool(name, act)

    model = FakeModel(calling(*calls), reply("done"))
    harness = AgentLoop(model, tools=[made(name, outcome) for name, outcome in tools.items()], tool_timeout=seconds)
    turn = Turn(scope=Scope(user="me"), agent="main", session="s1", messages=(say("go"),))
    assert str(await harness.run(turn)) == "done"
    found = model.asked[1][-1].tool_results
    assert pair_calls(model.asked[1]).pending == ()
    return found


async def result(call_: ToolCall, **tools: object) -> ToolResult:
    (found,) = await results(call_, seconds=None, **tools)
    return found


async def test_a_tool_that_is_not_there_is_answered_with_those_that_are() -> None:
    found = await result(call("reed"), read="x", write="y")
    assert found.is_error
    assert "no tool 'reed'" in found.text
    assert "read, write" in found.text


@pytest.mark.parametrize("arguments", ['{"path": ', "[1]", '"text"', "NaN", '{"a": NaN}', "[" * 100_000])
async def test_arguments_that_are_no_json_object_are_answered_with_what_is_wanted(arguments: str) -> None:
    found = await result(call("read", arguments), read="never")
    assert found.is_error
    assert "one JSON object; its fields: path, line" in found.text


@pytest.mark.parametrize("arguments", ["", "  ", "{}"])
async def test_no_arguments_are_an_empty_object(arguments: str) -> None:
    async def count(given: Mapping[str, JsonValue], _context: ToolContext) -> int:
        return len(given)

    assert (await result(call("read", arguments), read=count)).text == "0"


async def test_a_tool_is_told_where_its_call_comes_from() -> None:
    async def tell(given: Mapping[str, JsonValue], context: ToolContext) -> str:
        return f"{given['path']} {context.call_id} {context.agent} {context.session} {context.scope.user}"

    assert (await result(call("read", '{"path": "a"}'), read=tell)).text == "a id-read main s1 me"


async def test_an_error_of_our_own_is_told_in_its_words() -> None:
    found = await result(call("read"), read=ToolFailed("No such file: say another path."))
    assert (found.text, found.is_error) == ("No such file: say another path.", True)


class Rude(Exception):
    """An error that can't say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    "error",
    [
        ValueError("bad value"),
        KeyError("k"),
        RecursionError(),
        MemoryError(),
        StopIteration(),
        StopAsyncIteration(),
        SystemExit(3),
        TimeoutError(),
        ExceptionGroup("many", [ValueError("one")]),
        Rude(),
        AssertionError("Traceback (most recent call last):\n  File x\nValueError: inner"),
    ],
    ids=repr,
)
async def test_whatever_a_tool_raises_is_an_error_result_without_a_traceback(error: BaseException) -> None:
    found = await result(call("read"), read=error)
    assert found.is_error
    assert "read" in found.text
    assert "Traceback" not in found.text
    assert "File " not in found.text


async def test_a_failing_tool_does_not_disturb_the_others() -> None:
    found = await results(call("bad"), call("good"), bad=ValueError("x"), good="fine")
    assert [(each.is_error, each.name) for each in found] == [(True, "bad"), (False, "good")]
    assert found[1].text == "fine"


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_cancellation_that_nobody_asked_for_is_the_tools_failure() -> None:
    async def wait_for_a_cancelled_task(_arguments: Mapping[str, JsonValue], _context: ToolContext) -> str:
        task = asyncio.ensure_future(asyncio.sleep(60))
        task.cancel()
        await task
        return "never"

    async def answer_late(_arguments: Mapping[str, JsonValue], _context: ToolContext) -> str:
        for _ in range(10):
            await anyio.lowlevel.checkpoint()
        return "fine"

    found = await results(call("stray"), call("late"), stray=wait_for_a_cancelled_task, late=answer_late)
    assert [each.is_error for each in found] == [True, False]
    assert "stray failed with CancelledError" in found[0].text


async def test_a_tool_that_hangs_is_stopped_at_its_limit_and_the_others_answer() -> None:
    async def hang(_arguments: Mapping[str, JsonValue], _context: ToolContext) -> str:
        await anyio.sleep_forever()
        return "never"

    found = await results(call("hang"), call("good"), seconds=0.01, hang=hang, good="fine")
    assert "did not answer within 0.01 seconds" in found[0].text
    assert [each.is_error for each in found] == [True, False]


async def test_five_megabytes_on_one_line_are_told_whole() -> None:
    assert len((await result(call("read"), read="x" * 5_000_000)).text) == 5_000_000


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ("plain", "plain"),
        (b"caf\xc3\xa9", "café"),
        ({"a": [1, None, True]}, '{"a":[1,null,true]}'),
        ([], "[]"),
        ((1, 2), "[1,2]"),
        (0, "0"),
        (False, "false"),
    ],
)
async def test_texts_and_json_values_are_told_as_they_are(output: object, text: str) -> None:
    found = await result(call("read"), read=output)
    assert (found.text, found.is_error) == (text, False)


@pytest.mark.parametrize("output", [None, "", b""])
async def test_a_tool_that_returns_nothing_says_so(output: object) -> None:
    found = await result(call("read"), read=output)
    assert found.text == "The tool did its work and returned nothing."
    assert not found.is_error


async def test_bytes_that_are_no_text_travel_as_media_with_a_sentence_of_their_size() -> None:
    picture = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8
    found = await result(call("read"), read=picture)
    assert "2,056 bytes of image/png" in found.text
    media = found.parts[1]
    assert isinstance(media, Media)
    assert base64.b64decode(media.uri.partition(",")[2]) == picture


async def test_parts_of_a_message_are_told_as_they_are() -> None:
    parts = [Text(text="see"), Media(media_type="image/png", uri="https://example.org/a.png")]
    assert (await result(call("read"), read=parts)).parts == tuple(parts)


@pytest.mark.parametrize("output", [object(), {"a": float("nan")}, {1, 2}, [Text(text="a"), 3]], ids=lambda _: "value")
async def test_a_value_that_is_no_json_is_an_error_that_says_the_tool_has_run(output: object) -> None:
    found = await result(call("read"), read=output)
    assert found.is_error
    assert "read has run" in found.text


async def test_a_call_that_stands_twice_is_run_once_and_each_has_its_answer() -> None:
    ran: list[str] = []

    async def note(_arguments: Mapping[str, JsonValue], context: ToolContext) -> str:
        ran.append(context.call_id)
        return "ok"

    found = await results(call("note", id="a"), call("note", id="a"), note=note)
    assert ran == ["a"]
    assert [each.is_error for each in found] == [False, True]
    assert found[0].call_id != found[1].call_id


async def test_two_different_calls_under_one_id_are_both_run() -> None:
    async def tell(given: Mapping[str, JsonValue], _context: ToolContext) -> JsonValue:
        return given["path"]

    found = await results(call("read", '{"path": 1}', id="a"), call("read", '{"path": 2}', id="a"), read=tell)
    assert [each.text for each in found] == ["1", "2"]
    assert len({each.call_id for each in found}) == 2


def test_calls_without_ids_get_some() -> None:
    calls = (ToolCall(id="", name="a"), ToolCall(id="", name="a"), ToolCall(id="call-2", name="b"))
    reply_, repeated = deduplicate_call_ids(Message(role="assistant", parts=calls))
    ids = [each.id for each in reply_.tool_calls]
    assert len(set(ids)) == 3
    assert "" not in ids
    assert ids[2] == "call-2"
    assert repeated == frozenset()


@given(st.lists(st.sampled_from(["", "a", "b", "a-2", "call-2"]), max_size=6))
def test_however_ids_repeat_they_are_told_apart_and_first_ones_stay(ids: list[str]) -> None:
    calls = tuple(ToolCall(id=each, name=f"n{number}") for number, each in enumerate(ids))
    told, _ = deduplicate_call_ids(Message(role="assistant", parts=calls))
    own = [each.id for each in told.tool_calls]
    assert len(set(own)) == len(ids)
    assert all(own)
    first = {each: ids.index(each) for each in ids if each}
    assert all(own[place] == each for each, place in first.items())


@given(any_text())
def test_text_for_a_model_can_be_sent_and_only_half_characters_are_lost(text: str) -> None:
    sent = replace_surrogates(text)
    sent.encode("utf-8")
    assert replace_surrogates(sent) == sent
    assert len(sent) == len(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))
    if not any("\ud800" <= mark <= "\udfff" for mark in text):
        assert sent == text


async def test_half_characters_of_a_tool_reach_neither_the_model_nor_the_transcript() -> None:
    found = await results(call("read"), call("gone\ud800"), read="a\ud800b \ud83d\ude00")
    assert found[0].text == "a\ufffdb 😀"
    line = encode_message(Message(role="tool", parts=found))
    assert decode_message(line).tool_results == found
    assert all(each.text.encode("utf-8") for each in found)


def test_a_long_error_is_cut() -> None:
    assert len(exception_result(call("read"), ValueError("x" * 10_000)).text) < 2_200
    assert exception_result(call("read"), ToolFailed("word " * 1_000)).text == "word " * 399 + "word [cut]"


@pytest.mark.req("FC-SECRET")
@given(st.integers(-50, 50), st.sampled_from([" ", "\n", '"', ","]))
def test_a_secret_at_the_cut_of_an_error_leaves_nothing_where_it_is_recorded(around: int, border: str) -> None:
    text = "word " * ((2_000 + around) // 5) + "x" * (around % 5) + border + SECRET + border + "more " * 9
    left = Redactor(bytes(32)).clean(exception_result(call("read"), ToolFailed(text)).text)
    assert not any(SECRET[at : at + 8] in left for at in range(len(SECRET) - 7))
    assert len(left) > 1_900


@given(st.recursive(st.none() | st.booleans() | st.integers() | any_text(), lambda kept: st.lists(kept, max_size=3)))
def test_any_json_value_is_a_result_with_a_text_that_can_be_sent(value: JsonValue) -> None:
    told = tool_result(call("read"), value)
    told.text.encode("utf-8")
    assert told.parts
    if not isinstance(value, str | None):
        assert loads(told.text) == value
