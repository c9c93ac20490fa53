"""Whatever the conversation and the configuration: what every reduction keeps."""

import base64
from functools import partial

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversation_strategies import call, conversations, open_calls, orphan_results, result, said
from ricordo.context import (
    Compact,
    CompactionConfig,
    DigestSummarizer,
    EvictResults,
    Reduction,
    Strategy,
    ToolResultEvictionConfig,
    TruncateArgs,
    TruncateArgsConfig,
    Window,
    build_digest,
    count_message_tokens,
)
from ricordo.context.summary_message import find_instructions
from ricordo.context.tool_results import evicted_parts
from ricordo.guard import Redactor
from ricordo.messages import Media, Message, ToolResult, estimate_text, get_mark, with_ids, with_pin
from ricordo.testing import InMemoryFiles

KEY = Redactor(bytes(32))

compactions = st.builds(
    CompactionConfig,
    trigger_messages=st.sampled_from([0, 1, 4, 10]),
    trigger_tokens=st.sampled_from([0, 30, 500]),
    keep_messages=st.sampled_from([1, 2, 5, 20]),
    keep_tokens=st.sampled_from([0, 0, 20, 400]),
    carry_tokens=st.sampled_from([0, 200]),
    summary_tokens=st.sampled_from([20, 300]),
)
truncations = st.builds(
    TruncateArgsConfig,
    trigger_messages=st.sampled_from([0, 1, 5]),
    trigger_tokens=st.sampled_from([0, 100]),
    keep_messages=st.sampled_from([0, 2]),
    keep_tokens=st.sampled_from([0, 50]),
    max_arg_length=st.sampled_from([300, 2_000]),
)
evictions = st.builds(
    ToolResultEvictionConfig,
    max_result_chars=st.sampled_from([10, 200, 1_000]),
    preview_chars=st.sampled_from([0, 10]),
    excluded_tool_names=st.just(frozenset({"read_file"})),
)


def _with_pins(messages: tuple[Message, ...], pins: set[int]) -> tuple[Message, ...]:
    return tuple(with_pin(message) if at in pins else message for at, message in enumerate(messages))


windows = st.builds(
    Window,
    messages=st.builds(_with_pins, conversations(), st.sets(st.integers(0, 15), max_size=2)),
    agent=st.sampled_from(["", "main"]),
    session=st.sampled_from(["", "s1"]),
    overhead=st.sampled_from([0, 0, 100]),
    limit=st.sampled_from([None, None, 400, 4_000]),
    ratio=st.sampled_from([1.0, 0.5, 1.7]),
    forced=st.sampled_from(["", "", "", "overflow", "asked"]),
    target=st.sampled_from([None, None, None, 60, 600]),
    messages_at_undo=st.sampled_from([0, 0, 0, 4, 40]),
)


def reduced(strategy: Strategy, window: Window) -> Reduction:
    return anyio.run(strategy.reduce, window)


def again(window: Window, found: Reduction) -> Window:
    return Window(
        messages=found.messages,
        agent=window.agent,
        session=window.session,
        overhead=window.overhead,
        limit=window.limit,
        ratio=window.ratio,
    )


def assert_sound(window: Window, found: Reduction) -> None:
    """Nothing is parted, reordered, renamed, grown or lost without being told."""
    before = {message.id: at for at, message in enumerate(window.messages)}
    assert open_calls(found.messages) <= open_calls(window.messages)
    assert orphan_results(found.messages) <= orphan_results(window.messages)
    # an id may be used again later, so what is parted is looked at on either side of the cut alone
    assert open_calls(found.dropped) <= open_calls(window.messages)
    assert orphan_results(found.dropped) <= orphan_results(window.messages)
    new = [message for message in found.messages if message.id not in before]
    stayed = [before[message.id] for message in found.messages if message.id in before]
    assert stayed == sorted(set(stayed))
    gone = [message for at, message in enumerate(window.messages) if at not in set(stayed)]
    assert list(found.dropped) == gone
    assert len(new) == (1 if gone else 0)
    assert all(get_mark(message) == "summary" and message.role == "user" for message in new)
    assert found.report.messages_before == len(window.messages)
    assert found.report.messages_after == len(found.messages)
    assert found.report.tokens_before == sum(count_message_tokens(window.messages, window.ratio))
    assert found.report.tokens_after == sum(count_message_tokens(found.messages, window.ratio))
    assert found.report.reason
    if found.messages == window.messages:
        assert found.report.status == "skipped"
    else:
        assert found.report.status == "done"
        assert found.report.tokens_after < found.report.tokens_before


@pytest.mark.req("AS-COMPACT-08", "AS-COMPACT-03", "AS-COMPACT-10", "AS-BUG-11", "DF-C70")
@given(windows, compactions)
def test_compaction_of_any_conversation_is_valid_ordered_smaller_and_told(
    window: Window, config: CompactionConfig
) -> None:
    found = reduced(Compact(config, DigestSummarizer()), window)
    assert_sound(window, found)
    assert find_instructions(found.messages) == find_instructions(window.messages)
    assert bool(found.report.handle) == bool(found.dropped)


@pytest.mark.req("AS-COMPACT-08")
@given(st.lists(st.integers(0, 3), min_size=6, max_size=14), st.integers(1, 12), st.sampled_from([0, 100, 300]))
def test_no_cut_parts_parallel_calls_from_their_results(
    groups: list[int], keep_messages: int, keep_tokens: int
) -> None:
    spoken: list[Message] = []
    for at, calls in enumerate(groups):
        ids = [f"{at}-{number}" for number in range(calls)]
        told = f"Step {at} looks for the cause in one more place, and says what it finds there in a sentence."
        spoken += [call(*ids, text=told), *(result(each, told) for each in ids)] if calls else [said(told)]
    messages = tuple(with_ids(spoken, session="s1"))
    config = CompactionConfig(
        trigger_messages=1, keep_messages=keep_messages, keep_tokens=keep_tokens, summary_tokens=40, carry_tokens=0
    )
    found = reduced(Compact(config, DigestSummarizer()), Window(messages=messages, agent="main", session="s1"))
    for side in (found.dropped, found.messages):
        assert open_calls(side) == set()
        assert orphan_results(side) == set()


@pytest.mark.req("AS-BUG-03")
@given(windows, compactions)
def test_compacting_a_second_time_without_new_messages_changes_nothing(
    window: Window, config: CompactionConfig
) -> None:
    compact = Compact(config, DigestSummarizer())
    first = reduced(compact, window)
    if first.report.status == "done" or not window.forced:
        second = reduced(compact, again(window, first))
        third = reduced(compact, again(window, second))
        assert third.messages == second.messages
        if not window.forced and mark_count(window) < 2:
            assert second.messages == first.messages


def mark_count(window: Window) -> int:
    return sum(get_mark(message) == "summary" for message in window.messages)


@pytest.mark.req("AS-TRUNC-02", "AS-TRUNC-05")
@given(windows, truncations)
def test_truncation_of_any_conversation_shortens_arguments_and_nothing_else(
    window: Window, config: TruncateArgsConfig
) -> None:
    truncate = TruncateArgs(config)
    found = reduced(truncate, window)
    assert_sound(window, found)
    assert [message.id for message in found.messages] == [message.id for message in window.messages]
    second = reduced(truncate, again(window, found))
    assert second.messages == found.messages or window.forced or found.report.status == "skipped"


@pytest.mark.req("AS-EVICT-10", "AS-EVICT-06", "AS-EVICT-09", "AS-BUG-11")
@given(windows, evictions)
def test_whatever_is_evicted_can_be_read_back_byte_for_byte_and_is_not_evicted_again(
    window: Window, config: ToolResultEvictionConfig
) -> None:
    files = InMemoryFiles()
    evict = EvictResults(config, files, KEY)
    found = reduced(evict, window)
    assert [message.id for message in found.messages] == [message.id for message in window.messages]
    assert open_calls(found.messages) == open_calls(window.messages)
    for old, new in zip(window.messages, found.messages, strict=True):
        for part, item in evicted_parts(new) - evicted_parts(old):
            was = old.parts[part]
            assert isinstance(was, ToolResult)
            assert stored(files, path_of(new, part, item)) == content_of(was, item)
            now = new.parts[part]
            assert isinstance(now, ToolResult)
            assert (now.call_id, now.name, now.is_error) == (was.call_id, was.name, was.is_error)
    listed = anyio.run(files.list)
    second = reduced(evict, again(window, found))
    assert second.messages == found.messages
    assert anyio.run(files.list) == listed


def stored(files: InMemoryFiles, path: str) -> bytes:
    return anyio.run(partial(files.read, f"workspace{path}")).data


def path_of(message: Message, part: int, item: int | None) -> str:
    records = message.metadata["ricordo.evicted"]
    assert isinstance(records, list)
    for record in records:
        assert isinstance(record, dict)
        if (record["part"], record["item"]) == (part, item):
            return str(record["path"])
    raise AssertionError("no path is kept")


def content_of(result: ToolResult, item: int | None) -> bytes:
    if item is None:
        return result.text.encode("utf-8", "surrogatepass")
    medium = result.parts[item]
    assert isinstance(medium, Media)
    return base64.b64decode(medium.uri.partition(",")[2])


@pytest.mark.req("AS-BUG-01")
@given(conversations(), st.integers(1, 600))
def test_a_digest_is_within_its_budget_the_same_each_time_and_empty_only_for_silence(
    messages: tuple[Message, ...], limit: int
) -> None:
    found = build_digest(messages, limit_tokens=limit)
    assert estimate_text(found) <= limit
    assert found == build_digest(messages, limit_tokens=limit)
    spoken = [
        m for m in messages if m.role in {"user", "assistant"} and get_mark(m) in {None, "cut"} and m.text.strip()
    ]
    if spoken and limit >= 200:
        assert found.strip()
