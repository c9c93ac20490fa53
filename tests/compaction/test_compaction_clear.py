"""Old results are cleared: which stay, what is left of the others, and how they come back."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from conversation_strategies import call, result, said
from ricordo.context import (
    ClearResults,
    ClearResultsConfig,
    EvictResults,
    Reduction,
    ToolResultEvictionConfig,
    Window,
    count_message_tokens,
)
from ricordo.context.tool_results import restore_original
from ricordo.guard import Redactor
from ricordo.messages import (
    Media,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Unknown,
    Usage,
    decode_message,
    encode_message,
    with_ids,
)
from ricordo.testing import InMemoryFiles

pytestmark = [pytest.mark.anyio, pytest.mark.req("CC-CLEAR")]

NOW = ClearResultsConfig(trigger_messages=1, trigger_tokens=0, min_tokens=0)


def output(number: int) -> str:
    return "".join(f"{number}.{line} of the output, which is long\n" for line in range(50))


def steps(count: int, *, tool: str = "bash") -> tuple[Message, ...]:
    spoken = [said("Run them all.")]
    for number in range(count):
        spoken += [call(f"c{number}", name=tool), result(f"c{number}", output(number))]
    return tuple(with_ids([*spoken, said("Done.", role="assistant")], session="s1"))


async def cleared(messages: tuple[Message, ...], config: ClearResultsConfig = NOW, *, forced: str = "") -> Reduction:
    return await ClearResults(config).reduce(Window(messages=messages, forced=forced))


def changed(before: tuple[Message, ...], found: Reduction) -> list[int]:
    return [at for at, (old, new) in enumerate(zip(before, found.messages, strict=True)) if old != new]


@pytest.mark.req("CC-CLEAR", "AS-BUG-11", "HE-C3-kinds")
async def test_all_but_the_five_newest_results_become_handles_that_bring_them_back_exactly() -> None:
    # what is never cleared does not count as one of the five
    excluded = (call("m", name="memory_get"), result("m", output(9)), call("e"), result("e", output(10), is_error=True))
    before = (*steps(9), *with_ids(excluded, session="s1"), said("I see.", role="assistant", id="last"))
    least = 100
    found = await cleared(before, ClearResultsConfig(trigger_messages=1, min_tokens=least))
    assert changed(before, found) == [2, 4, 6, 8]
    gained = found.report.tokens_before - found.report.tokens_after
    assert gained == sum(count_message_tokens(before, 1.0)) - sum(count_message_tokens(found.messages, 1.0)) > least
    for old, new in zip(before, found.messages, strict=True):
        assert restore_original(decode_message(encode_message(new)), old) == old
    handle = found.messages[2].tool_results[0].text
    assert handle == (
        f"[An earlier result of bash ({len(output(0)):,} characters, 50 lines) was cleared. "
        f"`expand` with `m:{before[2].id}` shows it whole.]"
    )
    exact = ClearResultsConfig(trigger_messages=1, min_tokens=gained)
    assert (await cleared(before, exact)).messages == found.messages
    more = await cleared(before, replace(exact, min_tokens=gained + 1))
    assert more.messages is before
    assert more.report.status == "skipped"
    assert f"{gained} tokens" in more.report.reason


async def test_each_of_several_results_in_one_message_becomes_a_handle() -> None:
    asked = call(*(f"c{number}" for number in range(9)))
    told = tuple(part for number in range(9) for part in result(f"c{number}", output(number)).parts)
    before = tuple(
        with_ids([said("Run."), asked, Message(role="tool", parts=told), said("Done.", role="assistant")], session="s1")
    )
    found = await cleared(before)
    texts = [each.text for each in found.messages[2].tool_results]
    assert ["was cleared" in text for text in texts] == [True] * 4 + [False] * 5
    assert restore_original(found.messages[2], before[2]) == before[2]


async def test_what_must_be_gained_is_counted_as_the_provider_counts() -> None:
    before = steps(7)
    gained = (await cleared(before)).report
    most = ClearResultsConfig(trigger_messages=1, min_tokens=gained.tokens_before - gained.tokens_after + 1)
    clear = ClearResults(most)
    assert (await clear.reduce(Window(messages=before))).report.status == "skipped"
    assert (await clear.reduce(Window(messages=before, ratio=1.5))).report.status == "done"


async def test_a_forced_one_needs_no_threshold_and_clears_even_the_little_that_is_gained() -> None:
    before = steps(6)
    patient = ClearResultsConfig(trigger_tokens=10**9, min_tokens=10**9)
    assert (await cleared(before, patient)).report.reason == "below the thresholds"
    found = await cleared(before, patient, forced="overflow")
    assert changed(before, found) == [2]
    assert found.report.reason == "overflow"
    again = await cleared(found.messages, patient, forced="overflow")
    assert again.messages is found.messages
    assert again.report.status == "skipped"


async def test_it_starts_at_its_count_of_messages_or_tokens_the_prompt_included_and_never_with_both_off() -> None:
    before = steps(6)
    total = sum(count_message_tokens(before, 1.0))
    for config, overhead, acts in (
        (ClearResultsConfig(trigger_messages=14, trigger_tokens=0, min_tokens=0), 0, True),
        (ClearResultsConfig(trigger_messages=15, trigger_tokens=0, min_tokens=0), 0, False),
        (ClearResultsConfig(trigger_tokens=total, min_tokens=0), 0, True),
        (ClearResultsConfig(trigger_tokens=total + 5, min_tokens=0), 4, False),
        (ClearResultsConfig(trigger_tokens=total + 5, min_tokens=0), 5, True),
        (ClearResultsConfig(trigger_tokens=0, min_tokens=0), 10**6, False),
    ):
        found = await ClearResults(config).reduce(Window(messages=before, overhead=overhead))
        assert (found.report.status == "done") is acts


async def test_a_handle_is_known_by_the_metadata_and_never_by_its_text() -> None:
    before = steps(8)
    first = await cleared(before)
    assert (await cleared(first.messages)).messages is first.messages
    lying = replace(
        before[2],
        parts=(
            replace(
                before[2].tool_results[0], parts=(Text(text=f"{first.messages[2].tool_results[0].text}{output(0)}"),)
            ),
        ),
    )
    found = await cleared((*before[:2], lying, *before[3:]))
    assert len(found.messages[2].tool_results[0].text) < 200
    assert restore_original(found.messages[2], lying) == lying


async def test_errors_short_results_excluded_tools_and_results_of_no_known_tool_stay() -> None:
    kept = with_ids(
        [
            said("Go on."),
            call("a", name="bash"),
            result("a", output(1), is_error=True),
            call("b", name="bash"),
            result("b", "ok"),
            call("c", name="memory_search"),
            result("c", output(2)),
            result("nobody", output(3)),
        ],
        session="s1",
    )
    before = (*kept, *steps(1))
    found = await cleared(before, replace(NOW, keep_results=0))
    assert changed(before, found) == [10]
    others = replace(NOW, keep_results=0, excluded_tool_names=frozenset({"ba*"}))
    assert changed(before, await cleared(before, others)) == [6]


async def test_results_that_the_assistant_has_not_answered_yet_stay_however_many_they_are() -> None:
    ids = [f"p{number}" for number in range(9)]
    fresh = with_ids([call(*ids), *(result(each, output(at)) for at, each in enumerate(ids))], session="s2")
    before = (*steps(3), *fresh)
    assert changed(before, await cleared(before)) == [2, 4, 6]
    answered = (*before, said("I see.", role="assistant", id="last"))
    assert changed(answered, await cleared(answered)) == [2, 4, 6, 9, 10, 11, 12]


async def test_ids_names_times_usage_and_other_metadata_stay_and_the_callers_messages_too() -> None:
    asked = replace(call("a", "b"), usage=Usage(input=5), id="asked")
    both = Message(
        role="user",
        parts=(
            ToolResult(call_id="a", parts=(Text(text=output(0)),), name="bash"),
            Text(text="and what do you think?"),
            ToolResult(call_id="b", parts=(Text(text=output(1)),)),
        ),
        id="both",
        name="Ana",
        parent="asked",
        time=datetime(2026, 1, 1, tzinfo=UTC),
        metadata={"mine": [1]},
    )
    before = (said("Go on.", id="first"), asked, both, said("Yes.", role="assistant", id="last"))
    written = [encode_message(message) for message in before]
    found = await cleared(before, replace(NOW, keep_results=1))
    new = found.messages[2]
    assert [encode_message(message) for message in before] == written
    assert new.metadata == {"mine": [1], "ricordo.cleared": [{"part": 0}]}
    assert replace(new, parts=both.parts, metadata=both.metadata) == both
    assert new.parts[1:] == both.parts[1:]
    assert (new.tool_results[0].call_id, new.tool_results[0].name) == ("a", "bash")
    more = await cleared(found.messages, replace(NOW, keep_results=0))
    assert new.metadata != more.messages[2].metadata
    assert restore_original(more.messages[2], both) == both


@pytest.mark.req("CC-CLEAR")
async def test_what_goes_beside_the_text_is_named_in_the_handle() -> None:
    picture = Media(media_type="image/png", uri="data:image/png;base64,AAAA", name="chart.png")
    clips = tuple(Media(media_type="audio/wav", uri=f"https://example.org/{at}.wav") for at in range(3))
    parts: tuple[Text | Media | Unknown, ...] = (
        Text(text="See."),
        picture,
        Unknown(kind="openai:file", raw="{}"),
        *clips,
    )
    message = Message(role="tool", parts=(ToolResult(call_id="a", parts=parts, name="shoot"),), id="shot")
    before = (said("Go on."), call("a", name="shoot"), message, said("Nice.", role="assistant"))
    found = await cleared(before, replace(NOW, keep_results=0))
    assert found.messages[2].tool_results[0].text == (
        "[An earlier result of shoot (4 characters, 1 line; image/png chart.png; openai:file; audio/wav; "
        "2 more media) was cleared. `expand` with `m:shot` shows it whole.]"
    )
    assert restore_original(found.messages[2], message) == message
    alone = replace(message, parts=(ToolResult(call_id="a", parts=(replace(picture, uri=f"data:{'A' * 900}"),)),))
    found = await cleared((*before[:2], alone, before[3]), replace(NOW, keep_results=0))
    assert "image/png chart.png) was cleared" in found.messages[2].tool_results[0].text


@pytest.mark.req("AS-EVICT-06")
async def test_the_handle_of_an_evicted_result_still_names_its_file() -> None:
    files = InMemoryFiles()
    evict = EvictResults(
        ToolResultEvictionConfig(max_result_chars=1_500, preview_chars=300), files, Redactor(bytes(32))
    )
    before = steps(1)
    evicted = (await evict.reduce(Window(messages=before, session="s1"))).messages
    found = await cleared(evicted, replace(NOW, keep_results=0))
    (file,) = await files.list()
    handle = found.messages[2].tool_results[0].text
    assert f"It is kept in {file.path.removeprefix('workspace')}." in handle
    assert "characters" not in handle
    assert restore_original(found.messages[2], evicted[2]) == evicted[2]
    assert restore_original(found.messages[2], before[2]) == before[2]
    again = await evict.reduce(Window(messages=found.messages, session="s1", forced="overflow"))
    assert again.messages == found.messages


async def test_a_result_in_a_message_without_an_id_says_that_it_cannot_be_opened() -> None:
    before = tuple(replace(message, id="") for message in steps(1))
    found = await cleared(before, replace(NOW, keep_results=0))
    assert "its message has no id" in found.messages[2].tool_results[0].text


@pytest.mark.req("AS-BUG-11")
async def test_only_the_message_that_it_was_made_of_brings_a_handle_back() -> None:
    before = steps(7)
    found = await cleared(before)
    assert restore_original(found.messages[2], before[4]) == found.messages[2]
    assert restore_original(before[2], before[2]) is before[2]


def _thinking(turns: int, *, results: bool = False) -> tuple[Message, ...]:
    said: list[Message] = []
    for number in range(turns):
        call = ToolCall(id=f"c{number}", name="look")
        thought = Thinking(text=f"thought {number} " * 200, signature="sealed")
        found = ToolResult(call_id=call.id, parts=(Text(text="found " * (400 if results else 1)),))
        said += [
            Message(role="user", parts=(Text(text=f"Look {number}."),)),
            Message(role="assistant", parts=(thought, call)),
            Message(role="tool", parts=(found,)),
            Message(role="assistant", parts=(Thinking(text="so " * 100), Text(text=f"Done {number}."))),
        ]
    return tuple(with_ids(said, session="s1"))


@pytest.mark.req("AS-BUG-11")
async def test_old_thoughts_go_before_results_and_those_of_the_turn_that_goes_on_stay() -> None:
    window = Window(messages=_thinking(6, results=True)[:-1])
    size = sum(count_message_tokens(window.messages, 1.0))
    few = await ClearResults(ClearResultsConfig(trigger_tokens=size - 50, min_tokens=10)).reduce(window)
    thoughts = [part for message in few.messages for part in message.parts if isinstance(part, Thinking) and part.text]
    assert [part.text.split()[1] for part in thoughts] == ["5"]
    assert [message.tool_results for message in few.messages] == [message.tool_results for message in window.messages]
    assert [len(message.parts) for message in few.messages] == [len(message.parts) for message in window.messages]
    more = await ClearResults(ClearResultsConfig(trigger_tokens=500, keep_results=1, min_tokens=10)).reduce(window)
    assert sum("was cleared" in result.text for message in more.messages for result in message.tool_results) == 5
    kept = await ClearResults(ClearResultsConfig(trigger_tokens=size - 50, keep_thinking=3, min_tokens=10)).reduce(
        window
    )
    assert sum(isinstance(part, Thinking) and bool(part.text) for each in kept.messages for part in each.parts) == 5
    again = await ClearResults(ClearResultsConfig(trigger_tokens=1, min_tokens=10)).reduce(
        Window(messages=few.messages[:12])
    )
    assert again.report.status == "skipped"
