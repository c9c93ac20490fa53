"""What goes and what stays when nothing else makes room, or when the window slides."""

from dataclasses import replace

import pytest

from conversation_strategies import call, open_calls, orphan_results, result, said
from dialect_validity import anthropic_faults, openai_faults
from ricordo.context import (
    CompactionConfig,
    DropGroups,
    Reduction,
    SlidingWindow,
    Window,
    count_message_tokens,
    make_handle,
)
from ricordo.errors import InvalidSetting
from ricordo.messages import Media, Message, Text, ToolResult, get_mark, with_ids, with_mark, with_pin

pytestmark = pytest.mark.anyio

WORDS = "Here is one more sentence about the work that was done on the parser. " * 5


def work(count: int, *, request: str = "Mend the parser.") -> tuple[Message, ...]:
    """A request, and steps of two parallel calls."""
    spoken = [said("You are careful.", role="system"), said(request)]
    for number in range(count):
        ids = (f"{number}a", f"{number}b")
        spoken += [call(*ids, text=WORDS), *(result(each, WORDS) for each in ids)]
    return tuple(with_ids(spoken, session="s1"))


def size(messages: tuple[Message, ...]) -> int:
    return sum(count_message_tokens(messages, 1.0))


async def dropped(
    messages: tuple[Message, ...],
    target: int | None,
    config: CompactionConfig | None = None,
    *,
    limit: int | None = None,
) -> Reduction:
    window = Window(messages=messages, agent="main", session="s1", target=target, limit=limit, overhead=100)
    return await DropGroups(config).reduce(window)


def ids(messages: tuple[Message, ...]) -> list[str]:
    return [message.id for message in messages]


@pytest.mark.req("AS-COMPACT-08", "GO-G28")
async def test_the_oldest_groups_go_whole_until_the_rest_fits_and_a_notice_says_where_they_are() -> None:
    before = work(10)
    target = size(before) // 2
    found = await dropped(before, target)
    assert size(found.messages) <= target < size((*found.messages, *found.dropped[-3:]))
    count = len(found.dropped)
    assert count % 3 == 0
    assert ids(found.dropped) == ids(before[2 : 2 + count])
    assert ids(found.messages) == [*ids(before[:2]), found.messages[2].id, *ids(before[2 + count :])]
    notice = found.messages[2]
    assert (get_mark(notice), notice.role) == ("notice", "user")
    assert found.report.handle == make_handle(found.dropped)
    assert notice.text == (
        f"[{count} earlier messages were left out to make room. `expand` with `{found.report.handle}` opens them.]"
    )
    assert found.report.status == "done"
    assert found.report.note == ""
    again = await dropped(found.messages, target)
    assert again.messages is found.messages
    assert again.report.reason == "the messages fit"


async def test_a_later_drop_takes_the_earlier_notice_into_its_own() -> None:
    handles: list[str] = []
    gone = 0
    messages = work(4)
    for _ in range(5):
        messages = (*messages, *work(4)[2:])
        found = await dropped(messages, size(messages) * 2 // 3)
        notices = [message for message in found.messages if get_mark(message) == "notice"]
        assert len(notices) == 1
        gone += sum(get_mark(message) != "notice" for message in found.dropped)
        assert notices[0].text.startswith(f"[{gone} earlier messages were")
        handles = [found.report.handle, *handles]
        assert [handle for handle in handles if f"`{handle}`" in notices[0].text] == handles[:3]
        messages = found.messages


@pytest.mark.req("CC-PIN", "DF-C70")
async def test_summaries_system_messages_what_is_pinned_and_the_newest_request_stay() -> None:
    steps = work(8)
    summary = with_mark(said("What was said before.", id="summary"), "summary")
    pin = with_pin(said("Never touch the lexer.", id="pin"))
    rule = said("Answer in English.", role="system", id="rule")
    image = Message(role="user", parts=(Media(media_type="image/png", uri="https://example.org/a.png"),), id="image")
    held = (replace(steps[5], id="held"), with_pin(replace(steps[6], id="result")), replace(steps[7], id="other"))
    before = (*steps[:5], summary, pin, rule, *held, image, *steps[8:])
    found = await dropped(before, 1)
    stayed = [message.id for message in found.messages if get_mark(message) != "notice"]
    assert stayed == [steps[0].id, "summary", "pin", "rule", "held", "result", "other", "image", *ids(steps[-3:])]
    assert found.messages[1].text.startswith("[")
    assert "more than the 1 that fit" in found.report.note


async def test_without_a_target_the_models_window_counts_less_what_else_is_sent() -> None:
    before = work(10)
    config = CompactionConfig(reserved=200)
    room = size(before) - 400
    limit = room + 200 + 100
    found = await dropped(before, None, config, limit=limit)
    assert size(found.messages) <= room
    assert found.dropped
    enough = await dropped(before, None, config, limit=limit + 400)
    assert enough.messages is before
    wide = await dropped(before, None, config)
    assert wide.report.reason == "it is not known what the messages may take"
    own = await dropped(before, None, replace(config, window=limit))
    assert own.messages == found.messages


async def test_a_target_that_is_larger_than_the_models_window_makes_no_more_room_than_that() -> None:
    before = work(10)
    total = size(before)
    config = CompactionConfig(reserved=100)
    alone = await dropped(before, None, config, limit=total // 2)
    wide = await dropped(before, total - 100, config, limit=total // 2)
    assert alone.dropped
    assert wide.messages == alone.messages


async def test_dropping_can_be_switched_off() -> None:
    before = work(10)
    found = await dropped(before, 1, CompactionConfig(drop=False))
    assert found.messages is before
    assert (found.report.status, found.report.reason) == ("skipped", "dropping is off")


@pytest.mark.req("CC-PIN", "AS-BUG-04", "AS-BUG-06")
async def test_what_is_left_and_still_too_long_is_shortened_but_never_what_is_pinned() -> None:
    pin = with_pin(said("Keep this. " * 400, id="pin"))
    before = (pin, *work(1, request="Read this: " + WORDS * 40))
    found = await dropped(before, size((pin,)) + 1_500)
    assert found.messages[0] is pin
    assert found.dropped == ()
    assert found.report.handle == ""
    assert f"`expand` with `m:{found.messages[2].id}`" in found.messages[2].text
    assert found.report.note == "messages that were too long were shortened"
    assert size(found.messages) <= size((pin,)) + 1_500


@pytest.mark.req("AS-BUG-06")
async def test_a_giant_result_of_many_small_parts_is_shortened_as_one_text() -> None:
    pieces = tuple(Text(text=f"line {number}, " + "and more. " * 5) for number in range(2_000))
    found_lines = replace(result("a", ""), parts=(ToolResult(call_id="a", parts=pieces),))
    before = tuple(with_ids([said("Look."), call("a"), found_lines], session="s1"))
    found = await dropped(before, 3_000)
    assert size(found.messages) <= 3_000
    assert "line 0, " in str(found.messages[-1].parts)
    assert f"`expand` with `m:{before[-1].id}`" in str(found.messages[-1].parts)


async def test_nothing_goes_when_the_notice_would_take_more_than_it_makes_room_for() -> None:
    before = tuple(with_ids([said("a"), said("b", role="assistant"), said("c")], session="s1"))
    found = await dropped(before, 12)
    assert found.messages is before
    assert found.report.status == "skipped"
    assert "nothing may go" in found.report.reason
    assert "are left, more than the 12 that fit" in found.report.note


@pytest.mark.req("AS-COMPACT-08", "GO-G28")
async def test_a_pending_call_and_an_empty_conversation_are_left_alone() -> None:
    before = (*work(3), *with_ids([call("open", text=WORDS), said(WORDS)], session="s2"))
    found = await dropped(before, 1)
    assert open_calls(found.messages) == open_calls(before) != set()
    assert orphan_results(found.messages) == set()
    assert (await dropped((), 0)).messages == ()


async def slid(messages: tuple[Message, ...], *, keep_messages: int = 6, keep_tokens: int = 0) -> Reduction:
    strategy = SlidingWindow(keep_messages=keep_messages, keep_tokens=keep_tokens)
    return await strategy.reduce(Window(messages=messages))


@pytest.mark.req("GO-DEDUPE", "GO-G28")
async def test_the_last_messages_stay_in_whole_groups_with_the_request_they_belong_to() -> None:
    before = work(10)
    for keep, kept in ((6, 6), (5, 6), (1, 3)):
        found = await slid(before, keep_messages=keep)
        assert ids(found.messages) == [*ids(before[:2]), *ids(before[-kept:])]
        assert ids(found.dropped) == ids(before[2:-kept])
        assert found.report.handle == make_handle(found.dropped)
        assert openai_faults(found.messages) == anthropic_faults(found.messages) == {}
        assert (await slid(found.messages, keep_messages=keep)).messages is found.messages
    talk = tuple(with_ids([said(f"{WORDS}{at}") for at in range(9)], session="s1"))
    assert (await slid(talk, keep_messages=2)).messages == talk[-2:]


@pytest.mark.req("GO-DEDUPE")
async def test_a_window_can_slide_by_tokens() -> None:
    before = work(10)
    found = await slid(before, keep_tokens=size(before[-6:]))
    assert ids(found.messages) == [*ids(before[:2]), *ids(before[-6:])]
    fewer = await slid(before, keep_tokens=size(before[-6:]) - 1)
    assert ids(fewer.messages) == [*ids(before[:2]), *ids(before[-3:])]


@pytest.mark.req("GO-DEDUPE")
async def test_a_window_no_longer_than_what_stays_is_handed_back_as_it_came() -> None:
    before = work(2)
    found = await slid(before, keep_messages=len(before))
    assert found.messages is before
    assert found.report.status == "skipped"
    assert (await slid(())).messages == ()


@pytest.mark.req("GO-DEDUPE")
@pytest.mark.parametrize("sizes", [{"keep_messages": 0}, {"keep_messages": True}, {"keep_tokens": -1}])
async def test_a_window_of_no_size_is_refused(sizes: dict[str, int]) -> None:
    with pytest.raises(InvalidSetting, match="is a whole number of at least"):
        SlidingWindow(**sizes)
