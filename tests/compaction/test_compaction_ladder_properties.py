"""Whatever the conversation and the order of the strategies: what every one of them keeps, and all of them together."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conversation_strategies import call, conversations, open_calls, orphan_results, result, said
from dialect_validity import new_faults
from ricordo.context import (
    ClearResults,
    ClearResultsConfig,
    Compact,
    CompactionConfig,
    DedupeReads,
    DedupeReadsConfig,
    DigestSummarizer,
    DropGroups,
    EvictResults,
    Reduction,
    SlidingWindow,
    Strategy,
    ToolResultEvictionConfig,
    TruncateArgs,
    TruncateArgsConfig,
    Window,
    count_message_tokens,
    make_handle,
    run_pipeline,
)
from ricordo.context.tool_results import restore_original
from ricordo.guard import Redactor
from ricordo.messages import Message, Thinking, encode_message, get_mark, is_pinned, with_pin
from ricordo.testing import InMemoryFiles

KEY = Redactor(bytes(32))
PAGE = "A line of a file that is longer than any pointer to it.\n" * 20

in_place = st.one_of(
    st.builds(
        lambda config: EvictResults(config, InMemoryFiles(), KEY),
        st.builds(
            ToolResultEvictionConfig,
            max_result_chars=st.sampled_from([800, 1_000]),
            preview_chars=st.sampled_from([150, 200]),
        ),
    ),
    st.builds(
        ClearResults,
        st.builds(
            ClearResultsConfig,
            trigger_messages=st.sampled_from([0, 1]),
            trigger_tokens=st.sampled_from([0, 300]),
            keep_results=st.sampled_from([0, 1, 5]),
            min_tokens=st.sampled_from([0, 200]),
        ),
    ),
    st.builds(DedupeReads, st.builds(DedupeReadsConfig, min_tokens=st.sampled_from([0, 200]))),
)
others = st.one_of(
    st.builds(
        TruncateArgs, st.builds(TruncateArgsConfig, trigger_messages=st.just(1), keep_messages=st.sampled_from([0, 3]))
    ),
    st.builds(
        lambda config: Compact(config, DigestSummarizer()),
        st.builds(
            CompactionConfig,
            trigger_messages=st.sampled_from([0, 4]),
            keep_messages=st.sampled_from([1, 5]),
            summary_tokens=st.sampled_from([20, 300]),
        ),
    ),
    st.just(DropGroups()),
    st.builds(SlidingWindow, keep_messages=st.sampled_from([1, 4]), keep_tokens=st.sampled_from([0, 0, 60])),
)
plans: st.SearchStrategy[list[Strategy]] = st.lists(st.one_of(in_place, others), min_size=1, max_size=4)


def varied(
    messages: tuple[Message, ...], steps: Sequence[str], place: int, thinks: bool, pins: Sequence[int], target: float
) -> tuple[tuple[Message, ...], int]:
    """Put reads and talk into a conversation, let the assistant think and a person pin; return a target too."""
    work = [message for number, step in enumerate(steps) for message in worked(number, step)]
    found = [*messages[:place], *work, *messages[place:]]
    for at, message in enumerate(found):
        if thinks and message.tool_calls:
            found[at] = replace(message, parts=(Thinking(text="考える " * 3, signature="s"), *message.parts))
    for pin in pins:
        if pin < len(found):
            found[pin] = with_pin(found[pin])
    return tuple(found), int(sum(count_message_tokens(found, 1.0)) * target)


def worked(number: int, step: str) -> list[Message]:
    """One step: a file is read, as it is or changed, in vain, or twice at once; or a user asks something."""
    if step == "asked":
        return [said(PAGE, id=f"asked{number}")]
    called = [f"x{number}", f"y{number}"][: 2 if step == "twice" else 1]
    text = PAGE.upper() if step == "changed" else PAGE
    answers = [result(each, text, is_error=step == "in vain") for each in called]
    asked = call(*called, name="read_file", arguments='{"path": "a.py"}')
    return [replace(message, id=f"step{number}-{at}") for at, message in enumerate((asked, *answers))]


cases = st.builds(
    varied,
    conversations(6),
    st.lists(st.sampled_from(["read", "read", "twice", "changed", "in vain", "asked"]), max_size=6),
    st.integers(0, 8),
    st.booleans(),
    st.lists(st.integers(0, 15), max_size=2),
    st.sampled_from([0.0, 0.3, 0.6, 1.0]),
)
situations: st.SearchStrategy[Callable[..., Window]] = st.builds(
    lambda **fields: partial(Window, **fields),
    agent=st.sampled_from(["", "main"]),
    session=st.sampled_from(["", "s1"]),
    overhead=st.sampled_from([0, 100]),
    limit=st.sampled_from([None, 400, 4_000]),
    ratio=st.sampled_from([1.0, 1.7]),
    forced=st.sampled_from(["", "", "overflow", "asked", "progress"]),
)


def assert_sound(window: Window, found: Reduction) -> None:
    """Both providers take it as before; nothing is reordered, renamed, grown, or lost without being told."""
    assert new_faults(window.messages, found.messages) == {}
    assert open_calls(found.messages) <= open_calls(window.messages)
    assert orphan_results(found.messages) <= orphan_results(window.messages)
    places = {message.id: at for at, message in enumerate(window.messages)}
    stayed = [places[message.id] for message in found.messages if message.id in places]
    assert stayed == sorted(set(stayed))
    assert list(found.dropped) == [message for at, message in enumerate(window.messages) if at not in set(stayed)]
    new = [message for message in found.messages if message.id not in places]
    assert [(message.role, get_mark(message)) for message in new] in (
        [],
        [("user", "summary" if found.report.action == "compact" else "notice")],
    )
    assert bool(found.report.handle) is bool(found.dropped) or found.report.action == "compact"
    assert (found.report.status == "skipped") is (found.messages == window.messages)
    assert found.report.tokens_before == sum(count_message_tokens(window.messages, window.ratio))
    assert found.report.tokens_after == sum(count_message_tokens(found.messages, window.ratio))
    assert found.report.status == "skipped" or found.report.tokens_after < found.report.tokens_before


def assert_told(window: Window, found: Reduction) -> None:
    """What a strategy promises beyond that."""
    report = found.report
    if report.action in {"drop", "slide"}:
        assert [m for m in window.messages if is_pinned(m)] == [m for m in found.messages if is_pinned(m)]
        assert report.handle == make_handle(found.dropped)
    if report.action == "drop" and window.target is not None and report.tokens_after > window.target:
        assert "are left, more than" in report.note
    if report.action in {"evict", "clear", "dedupe", "truncate"}:
        assert [m.id for m in found.messages] == [m.id for m in window.messages]
        for old, new in zip(window.messages, found.messages, strict=True):
            assert replace(new, parts=old.parts, metadata=old.metadata) == old
            same = thoughtless(restore_original(new, old)) == thoughtless(old)
            assert report.action not in {"clear", "dedupe"} or same or restore_original(old, old) != old


def thoughtless(message: Message) -> Message:
    parts = (Thinking(text="") if isinstance(part, Thinking) else part for part in message.parts)
    return replace(message, parts=tuple(parts))


async def checked(strategy: Strategy, window: Window) -> Reduction:
    found = await strategy.reduce(window)
    assert_sound(window, found)
    assert_told(window, found)
    return found


@pytest.mark.req("AS-COMPACT-08", "AS-EVICT-09", "AS-BUG-04", "AS-BUG-11")
@settings(max_examples=80)
@given(cases, situations, plans)
def test_after_any_sequence_the_window_is_valid_for_both_providers_ordered_smaller_and_told(
    case: tuple[tuple[Message, ...], int], situation: Callable[..., Window], plan: list[Strategy]
) -> None:
    messages, target = case
    written = [encode_message(message) for message in messages]
    window = situation(messages=messages, target=target)
    left, reports = anyio.run(partial(run_pipeline, run=checked), window, plan)
    assert [encode_message(message) for message in messages] == written
    assert new_faults(messages, left.messages) == {}
    assert len(reports) == len(plan)


@settings(max_examples=40)
@given(cases, situations, st.lists(in_place, min_size=1, max_size=3))
def test_what_only_shortens_results_changes_nothing_the_second_time(
    case: tuple[tuple[Message, ...], int], situation: Callable[..., Window], plan: list[Strategy]
) -> None:
    first, _ = anyio.run(partial(run_pipeline, run=checked), situation(messages=case[0]), plan)
    second, reports = anyio.run(run_pipeline, first, plan)
    assert second.messages == first.messages
    assert {report.status for report in reports} == {"skipped"}
