"""Strategies take each other's place, and a wrapper tells what one did without changing it."""

import logging

import pytest

from conversation_strategies import call, result, said
from ricordo.context import (
    Act,
    Compact,
    CompactionConfig,
    DedupeReads,
    DigestSummarizer,
    LoggingStrategy,
    NoCompaction,
    Reduction,
    SlidingWindow,
    Strategy,
    Window,
    run_pipeline,
)
from ricordo.errors import StorageFailed
from ricordo.messages import Message, get_mark, with_ids

pytestmark = [pytest.mark.anyio, pytest.mark.req("GO-DEDUPE")]

PAGE = "".join(f"{line} of the secret file, which is long\n" for line in range(80))


def reading(count: int) -> tuple[Message, ...]:
    spoken = [said("Read it until it changes.")]
    for number in range(count):
        arguments = '{"path": "a.py"}'
        spoken += [call(f"r{number}", name="read_file", arguments=arguments), result(f"r{number}", PAGE)]
    return tuple(with_ids(spoken, session="s1"))


class Broken:
    action: Act = "compact"

    async def reduce(self, window: Window) -> Reduction:
        raise StorageFailed(f"no room for {window.messages[0].text}")


@pytest.mark.req("GO-DEDUPE", "GO-G27")
async def test_any_strategy_takes_the_place_of_another_and_repeated_reads_point_to_the_latest(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, logger="ricordo.compaction")
    before = reading(6)
    window = Window(messages=before)
    summarise = Compact(CompactionConfig(trigger_messages=8, keep_messages=3), DigestSummarizer())

    async def after(strategy: Strategy) -> tuple[Message, ...]:
        left, (report,) = await run_pipeline(window, [strategy])
        assert report.action == strategy.action
        assert (report.status == "done") is (left.messages != before)
        assert report.tokens_after < report.tokens_before or left.messages is before
        return left.messages

    assert await after(NoCompaction()) == before
    assert await after(SlidingWindow(keep_messages=4)) == (before[0], *before[-4:])
    summed = await after(summarise)
    assert [get_mark(message) for message in summed] == ["summary", None, None, None, None]
    assert summed[1:] == before[-4:]
    pointed = await after(DedupeReads())
    assert [message.id for message in pointed] == [message.id for message in before]
    assert pointed[-1] == before[-1]
    assert all(f"message {before[-1].id}" in message.tool_results[0].text for message in pointed[2:-1:2])
    other = [call("o", name="read_file", arguments='{"path": "b.py"}'), result("o", PAGE)]
    later = [call("l", name="read_file", arguments='{"path": "a.py"}'), result("l", PAGE.replace("secret", "new"))]
    changed = tuple(with_ids([*reading(1), *other, *later], session="s1"))
    assert (await DedupeReads().reduce(Window(messages=changed))).messages == changed
    assert caplog.records == []
    for strategy in (NoCompaction(), SlidingWindow(keep_messages=4), summarise, DedupeReads()):
        assert await after(LoggingStrategy(strategy)) == await after(strategy)
        (told,) = caplog.records
        assert told.getMessage().startswith(f"{strategy.action}: ")
        caplog.clear()


@pytest.mark.req("AS-BUG-32")
async def test_the_log_hears_act_status_reason_and_sizes_and_no_content(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="ricordo.compaction")
    window = Window(messages=reading(3))
    found = await LoggingStrategy(DedupeReads()).reduce(window)
    await LoggingStrategy(NoCompaction()).reduce(window)
    sizes = f"7 to 7 messages, {found.report.tokens_before} to {found.report.tokens_after} tokens"
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [
        (logging.INFO, f"dedupe: done, read again; {sizes}"),
        (
            logging.DEBUG,
            "none: skipped, nothing is to be made smaller; 7 to 7 messages, "
            f"{found.report.tokens_before} to {found.report.tokens_before} tokens",
        ),
    ]
    assert "secret" not in caplog.text


@pytest.mark.req("AS-BUG-32")
async def test_an_error_is_told_by_its_type_and_comes_through(caplog: pytest.LogCaptureFixture) -> None:
    log = logging.getLogger("mine")
    with pytest.raises(StorageFailed, match="no room"):
        await LoggingStrategy(Broken(), log=log).reduce(Window(messages=(said("my secret"),)))
    (told,) = caplog.records
    assert (told.name, told.levelno, told.getMessage()) == (
        "mine",
        logging.WARNING,
        "compact: failed with StorageFailed",
    )
