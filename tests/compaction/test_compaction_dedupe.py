"""Reads that were made again: which become pointers, to what, and which stay."""

from dataclasses import replace

import pytest

from conversation_strategies import call, result, said
from ricordo.context import ClearResults, ClearResultsConfig, DedupeReads, DedupeReadsConfig, Reduction, Window
from ricordo.context.tool_results import restore_original
from ricordo.messages import Message, with_ids

pytestmark = [pytest.mark.anyio, pytest.mark.req("GO-DEDUPE")]

ANY = DedupeReadsConfig(min_tokens=1)
PAGE = "".join(f"{line} of the file, which is long\n" for line in range(40))
OTHER = PAGE.replace("file", "page")


def read(number: int, text: str, arguments: str = '{"path": "a.py"}', *, tool: str = "read_file") -> list[Message]:
    return [call(f"r{number}", name=tool, arguments=arguments), result(f"r{number}", text)]


def conversation(*turns: list[Message]) -> tuple[Message, ...]:
    return tuple(with_ids([said("Look."), *(message for turn in turns for message in turn)], session="s1"))


async def deduped(messages: tuple[Message, ...], config: DedupeReadsConfig = ANY, *, forced: str = "") -> Reduction:
    return await DedupeReads(config).reduce(Window(messages=messages, forced=forced))


def changed(before: tuple[Message, ...], found: Reduction) -> list[int]:
    return [at for at, (old, new) in enumerate(zip(before, found.messages, strict=True)) if old != new]


async def test_every_earlier_read_of_an_unchanged_file_points_to_the_latest_which_stays_whole() -> None:
    before = conversation(read(1, PAGE), read(2, PAGE), read(3, PAGE))
    found = await deduped(before)
    assert changed(before, found) == [2, 4]
    for at in (2, 4):
        assert found.messages[at].tool_results[0].text == (
            f"[read_file gave exactly this again later, in message {before[6].id}: see there. "
            f"`expand` with `m:{before[at].id}` shows it here.]"
        )
        assert restore_original(found.messages[at], before[at]) == before[at]
    assert found.report.tokens_after < found.report.tokens_before
    again = await deduped(found.messages)
    assert again.messages is found.messages
    assert again.report.reason == "nothing was read again"


@pytest.mark.req("GO-DEDUPE")
async def test_a_pointer_follows_when_its_target_becomes_a_pointer_itself() -> None:
    first = await deduped(conversation(read(1, PAGE), read(2, PAGE)))
    before = tuple(with_ids([*first.messages, *read(3, PAGE)], session="s1"))
    found = await deduped(before)
    assert changed(before, found) == [2, 4]
    for at in (2, 4):
        assert f"in message {before[6].id}:" in found.messages[at].tool_results[0].text
        assert len(found.messages[at].metadata) == 1


async def test_a_file_that_changed_in_between_keeps_both() -> None:
    before = conversation(read(1, PAGE), read(2, OTHER))
    assert (await deduped(before)).messages is before
    back = conversation(read(1, PAGE), read(2, OTHER), read(3, PAGE), read(4, PAGE))
    assert changed(back, await deduped(back)) == [6]


async def test_an_answer_that_was_cleared_in_between_may_have_been_another_one() -> None:
    before = conversation(read(1, PAGE), read(2, OTHER), read(3, PAGE), [said("I see.", role="assistant")])
    newest = ClearResultsConfig(trigger_messages=1, keep_results=1, min_tokens=0)
    cleared = (await ClearResults(newest).reduce(Window(messages=before))).messages
    found = (*before[:3], *cleared[3:])
    assert found[4] != before[4]
    assert (await deduped(found)).messages is found


async def test_arguments_are_the_same_in_any_order_and_spacing_and_another_range_is_another_read() -> None:
    same = conversation(read(1, PAGE, '{"path":"a.py","limit":2}'), read(2, PAGE, '{ "limit": 2, "path": "a.py" }'))
    assert changed(same, await deduped(same)) == [2]
    for one, other in (
        ('{"path":"a.py","limit":2}', '{"path":"a.py","limit":3}'),
        ('{"path":"a.py"}', '{"path":"b.py"}'),
        ('{"path":"a.py","limit":1}', '{"path":"a.py","limit":true}'),
        ("no json", "no  json"),
    ):
        before = conversation(read(1, PAGE, one), read(2, PAGE, other))
        assert (await deduped(before)).messages is before
    broken = conversation(read(1, PAGE, "no json"), read(2, PAGE, "no json"))
    assert changed(broken, await deduped(broken)) == [2]


async def test_other_tools_errors_and_results_that_nobody_asked_for_stay() -> None:
    failed = [replace(read(1, PAGE)[0]), result("r1", PAGE, is_error=True)]
    for before in (
        conversation(read(1, PAGE, tool="bash"), read(2, PAGE, tool="bash")),
        conversation(failed, read(2, PAGE)),
        conversation(read(2, PAGE), failed, read(3, PAGE)),
        conversation([result("x", PAGE, name="read_file")], [result("y", PAGE, name="read_file")]),
        conversation(read(1, "short"), read(2, "short")),
    ):
        found = await deduped(before)
        assert found.messages is before
        assert found.report.status == "skipped"
    named = replace(ANY, tool_names=frozenset({"bash"}))
    before = conversation(read(1, PAGE, tool="bash"), read(2, PAGE, tool="bash"))
    assert changed(before, await deduped(before, named)) == [2]


async def test_it_acts_only_for_the_least_number_of_tokens_unless_it_is_forced() -> None:
    before = conversation(read(1, PAGE), read(2, PAGE))
    report = (await deduped(before)).report
    gained = report.tokens_before - report.tokens_after
    assert (await deduped(before, DedupeReadsConfig(min_tokens=gained))).report.status == "done"
    more = DedupeReadsConfig(min_tokens=gained + 1)
    assert (await deduped(before, more)).messages is before
    assert (await deduped(before, more, forced="overflow")).report.status == "done"


async def test_without_ids_a_pointer_names_no_message() -> None:
    before = tuple(replace(message, id="") for message in conversation(read(1, PAGE), read(2, PAGE)))
    found = await deduped(before)
    assert found.messages[2].tool_results[0].text == "[read_file gave exactly this again later: see there.]"
