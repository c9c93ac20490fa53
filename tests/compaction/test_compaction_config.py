"""What can be configured, what is refused, and what the documents promise of the defaults."""

import warnings
from collections.abc import Sequence
from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import pytest

from conversation_strategies import said
from ricordo.context import (
    Compact,
    CompactionConfig,
    DigestSummarizer,
    ToolResultEvictionConfig,
    TruncateArgsConfig,
    Window,
    count_message_tokens,
)
from ricordo.context.plan import resolve_thresholds
from ricordo.errors import InvalidSetting
from ricordo.messages import Message, Tokens, with_ids
from ricordo.messages.tokens import Share

pytestmark = pytest.mark.anyio

INVALID: list[tuple[type, dict[str, Any], str]] = [
    (CompactionConfig, {"trigger_messages": -1}, "trigger_messages"),
    (CompactionConfig, {"trigger_messages": 0.5}, "trigger_messages"),
    (CompactionConfig, {"trigger_tokens": -1}, "trigger_tokens"),
    (CompactionConfig, {"trigger_tokens": 0.8}, "trigger_tokens"),
    (CompactionConfig, {"trigger_tokens": True}, "trigger_tokens"),
    (CompactionConfig, {"keep_messages": 0}, "keep_messages"),
    (CompactionConfig, {"keep_tokens": -5}, "keep_tokens"),
    (CompactionConfig, {"reserved": -1}, "reserved"),
    (CompactionConfig, {"keep_tokens_min": -1}, "keep_tokens_min"),
    (CompactionConfig, {"keep_tokens_min": 9_000}, "keep_tokens_max"),
    (CompactionConfig, {"keep_tokens_ratio": 0}, "keep_tokens_ratio"),
    (CompactionConfig, {"keep_tokens_ratio": 1.5}, "keep_tokens_ratio"),
    (CompactionConfig, {"flush_before_compact": "no"}, "flush_before_compact"),
    (CompactionConfig, {"offload_before_compact": None}, "offload_before_compact"),
    (CompactionConfig, {"summary_prompt": "Sum it up."}, "summary_prompt"),
    (CompactionConfig, {"summary_prompt": " "}, "summary_prompt"),
    (CompactionConfig, {"summary_prompt": "Sum up the messages."}, "summary_prompt"),
    (CompactionConfig, {"summary_prompt": "Sum up {message}."}, "summary_prompt"),
    (CompactionConfig, {"summary_tokens": 0}, "summary_tokens"),
    (CompactionConfig, {"summary_seconds": 0}, "summary_seconds"),
    (CompactionConfig, {"summary_seconds": float("inf")}, "summary_seconds"),
    (CompactionConfig, {"carry_tokens": -1}, "carry_tokens"),
    (CompactionConfig, {"truncate_args": {"max_arg_length": 5}}, "truncate_args"),
    (CompactionConfig, {"model": "  "}, "model"),
    (CompactionConfig, {"trigger_share": 1.5}, "trigger_share"),
    (CompactionConfig, {"trigger_share": -0.1}, "trigger_share"),
    (CompactionConfig, {"combined": 1}, "combined"),
    (CompactionConfig, {"breaker": -1}, "breaker"),
    (CompactionConfig, {"breaker_seconds": 0}, "breaker_seconds"),
    (CompactionConfig, {"drop": "no"}, "drop"),
    (CompactionConfig, {"overflow_retries": -1}, "overflow_retries"),
    (CompactionConfig, {"window": 0}, "window"),
    (TruncateArgsConfig, {"trigger_messages": -1}, "trigger_messages"),
    (TruncateArgsConfig, {"trigger_tokens": -1}, "trigger_tokens"),
    (TruncateArgsConfig, {"keep_messages": -1}, "keep_messages"),
    (TruncateArgsConfig, {"keep_tokens": -1}, "keep_tokens"),
    (TruncateArgsConfig, {"max_arg_length": 0}, "max_arg_length"),
    (TruncateArgsConfig, {"kept_chars": -1}, "kept_chars"),
    (TruncateArgsConfig, {"kept_chars": 2_000}, "kept_chars"),
    (TruncateArgsConfig, {"truncation_text": ""}, "truncation_text"),
    (ToolResultEvictionConfig, {"max_result_chars": 0}, "max_result_chars"),
    (ToolResultEvictionConfig, {"preview_chars": -1}, "preview_chars"),
    (ToolResultEvictionConfig, {"max_result_chars": 100, "preview_chars": 101}, "preview_chars"),
    (ToolResultEvictionConfig, {"eviction_path": "/"}, "eviction_path"),
    (ToolResultEvictionConfig, {"eviction_path": "../out"}, "eviction_path"),
    (ToolResultEvictionConfig, {"eviction_path": "a\\b"}, "eviction_path"),
    (ToolResultEvictionConfig, {"excluded_tool_names": "bash"}, "excluded_tool_names"),
    (ToolResultEvictionConfig, {"excluded_tool_names": [3]}, "excluded_tool_names"),
]


def turns(count: int) -> tuple[Message, ...]:
    spoken = [
        said(
            f"Message {number} says something of its own: {number * 7}.",
            role="user" if number % 2 == 0 else "assistant",
        )
        for number in range(count)
    ]
    return tuple(with_ids(spoken, session="s1"))


@pytest.mark.req("AS-TRUNC-02", "AS-CFG-01", "AS-COMPACT-07", "CC-CLEAR")
@pytest.mark.parametrize(("kind", "values", "named"), INVALID)
def test_an_invalid_value_is_refused_by_the_name_of_its_field(kind: type, values: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidSetting, match=f"^{named} "):
        kind(**values)


@pytest.mark.req("AS-CFG-01")
@pytest.mark.parametrize("config", [CompactionConfig(), TruncateArgsConfig(), ToolResultEvictionConfig()])
def test_no_field_of_a_configuration_can_be_changed(config: object) -> None:
    for each in fields(config):  # type: ignore[arg-type]
        with pytest.raises(FrozenInstanceError):
            setattr(config, each.name, getattr(config, each.name))


@pytest.mark.req("AS-CFG-01")
def test_the_names_that_stay_are_copied_so_that_a_set_changed_later_changes_nothing() -> None:
    names = {"a"}
    config = ToolResultEvictionConfig(excluded_tool_names=names)  # type: ignore[arg-type]
    names.add("b")
    assert config.excluded_tool_names == frozenset({"a"})


@pytest.mark.req("AS-COMPACT-11")
async def test_thirty_messages_fire_and_ten_stay_whatever_the_window() -> None:
    config = CompactionConfig(trigger_messages=30, keep_messages=10)
    assert config.flush_before_compact
    assert config.offload_before_compact
    for limit in (None, 32_000, 200_000, 1_000_000):
        given: list[list[Message]] = []

        async def keep(messages: Sequence[Message], given: list[list[Message]] = given) -> None:
            given.append([*messages])

        compact = Compact(config, DigestSummarizer(), before_summary=keep, offload=keep)
        below = await compact.reduce(Window(messages=turns(29), session="s1", agent="main", limit=limit))
        assert below.messages == turns(29)
        assert given == []
        at = await compact.reduce(Window(messages=turns(30), session="s1", agent="main", limit=limit))
        assert at.report.status == "done"
        assert len(at.messages) == 11
        assert at.messages[1:] == turns(30)[-10:]
        assert given == [[*turns(30)[:20]]] * 2, "learned from, and in the transcript"


@pytest.mark.req(
    "AS-COMPACT-17", "AS-COMPACT-clamp", "AS-COMPACT-01", "AS-COMPACT-02", "AS-COMPACT-03", "AS-COMPACT-04"
)
async def test_presets_are_the_documented_numbers() -> None:
    assert CompactionConfig.classic() == CompactionConfig()
    classic = resolve_thresholds(CompactionConfig.classic(), 200_000)
    assert (classic.messages, classic.tokens, classic.keep_messages, classic.keep_tokens) == (50, 80_000, 20, 0)
    dynamic = CompactionConfig.dynamic()
    expected = {None: (160_000, 0), 200_000: (180_000, 8_000), 40_000: (20_000, 5_000), 24_000: (4_000, 2_000)}
    for window, (trigger, keep) in expected.items():
        found = resolve_thresholds(dynamic, window)
        assert (found.tokens, found.keep_tokens, found.is_clamped) == (trigger, keep, False)
    assert resolve_thresholds(CompactionConfig.dynamic(100_000), 200_000).tokens == 80_000
    for window in (20_000, 10_000):
        clamped = resolve_thresholds(dynamic, window)
        assert (clamped.tokens, clamped.is_clamped) == (window // 2, True)
    compact = Compact(dynamic, DigestSummarizer())
    with pytest.warns(UserWarning, match="reserved") as told:
        await compact.reduce(Window(messages=turns(4), limit=10_000))
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        await compact.reduce(Window(messages=turns(4), limit=10_000))
        await Compact(dynamic, DigestSummarizer()).reduce(Window(messages=turns(4), limit=200_000))


@pytest.mark.req("AS-COMPACT-17", "AS-BUG-02")
async def test_dynamic_fires_at_the_window_less_its_reserve_and_not_one_token_below() -> None:
    compact = Compact(CompactionConfig.dynamic(), DigestSummarizer())
    messages = turns(800)
    size = 200_000 - 20_000
    used = sum(count_message_tokens(messages, 1.0))
    below = await compact.reduce(Window(messages=messages, overhead=size - used - 1, limit=200_000))
    assert below.report.status == "skipped"
    reached = await compact.reduce(Window(messages=messages, overhead=size - used, limit=200_000))
    assert reached.report.status == "done"
    for reserved in (5_000, 50_000):
        other = replace(CompactionConfig.dynamic(), reserved=reserved)
        assert resolve_thresholds(other, 200_000).tokens == 200_000 - reserved


@pytest.mark.req("AS-BUG-02", "AS-COMPACT-11", "AS-COMPACT-04", "AS-COMPACT-02")
def test_a_share_is_one_of_the_window_and_tokens_are_themselves() -> None:
    config = CompactionConfig(trigger_tokens=Share(0.5), keep_tokens=Share(0.1))
    found = resolve_thresholds(config, 40_000)
    assert (found.tokens, found.keep_tokens) == (20_000, 4_000)
    assert resolve_thresholds(CompactionConfig(trigger_tokens=Tokens(7_000)), None).tokens == 7_000


@pytest.mark.req("AS-BUG-02", "AS-COMPACT-01", "AS-COMPACT-02")
async def test_a_part_of_the_window_is_a_trigger_like_the_others_and_rests_where_the_window_is_not_known() -> None:
    messages = turns(40)
    used = sum(count_message_tokens(messages, 1.0))
    config = CompactionConfig(trigger_messages=0, trigger_tokens=0, trigger_share=0.5)
    compact = Compact(config, DigestSummarizer())

    async def status(window: int | None, overhead: int) -> str:
        found = await compact.reduce(Window(messages=messages, overhead=overhead, limit=window))
        return found.report.status

    assert await status(10_000, 4_999 - used) == "skipped"
    assert await status(10_000, 5_000 - used) == "done"
    assert await status(None, 10**6) == "skipped"
    assert (resolve_thresholds(config, None).is_active, resolve_thresholds(config, 10_000).tokens) == (False, 5_000)
    assert resolve_thresholds(replace(config, window=8_000), 200_000).tokens == 4_000
    # whichever comes first
    both = replace(config, trigger_tokens=80_000)
    assert [resolve_thresholds(both, window).tokens for window in (10_000, 1_000_000, None)] == [5_000, 80_000, 80_000]
    counted = await Compact(replace(config, trigger_messages=30), DigestSummarizer()).reduce(Window(messages=messages))
    assert counted.report.reason == "40 messages"


@pytest.mark.req("AS-COMPACT-02")
async def test_with_both_triggers_off_not_even_a_full_window_starts_a_compaction() -> None:
    messages = turns(40)
    full = Window(messages=messages, session="s1", limit=sum(count_message_tokens(messages, 1.0)))
    off, on = CompactionConfig(trigger_messages=0, trigger_tokens=0), CompactionConfig(trigger_messages=1_000)
    for window in (full, replace(full, limit=None, max_messages=40)):
        statuses = [(await Compact(each, DigestSummarizer()).reduce(window)).report.status for each in (off, on)]
        assert statuses == ["skipped", "done"]


@pytest.mark.req("AS-BUG-03")
async def test_a_window_that_was_brought_back_waits_for_a_fifth_more_messages_unless_it_must_get_smaller() -> None:
    compact = Compact(CompactionConfig(), DigestSummarizer())

    async def reduced(count: int, **values: object) -> str:
        window = replace(Window(messages=turns(count), session="s1", messages_at_undo=60), **values)  # type: ignore[arg-type]
        report = (await compact.reduce(window)).report
        assert "undone" in report.reason or report.status == "done"
        return report.status

    assert [await reduced(count) for count in (60, 71, 72)] == ["skipped", "skipped", "done"]
    assert await reduced(61, forced="asked") == "done"
    assert await reduced(61, limit=1_000) == "done"
    assert await reduced(61, messages_at_undo=0) == "done"


@pytest.mark.req("AS-TRIG-01", "AS-COMPACT-01", "AS-COMPACT-02", "AS-BUG-32")
async def test_a_report_says_whether_messages_or_tokens_were_too_many() -> None:
    messages = turns(60)
    used = sum(count_message_tokens(messages, 1.0))
    for config, due in (
        (CompactionConfig(), "messages"),
        (CompactionConfig(trigger_messages=0, trigger_tokens=used), "tokens"),
        (CompactionConfig(trigger_tokens=used), "tokens"),
    ):
        report = (await Compact(config, DigestSummarizer()).reduce(Window(messages=messages, session="s1"))).report
        assert (report.status, report.trigger) == ("done", due)
    pressed = Window(messages=messages, session="s1", limit=used)
    assert (await Compact(CompactionConfig(), DigestSummarizer()).reduce(pressed)).report.trigger == "tokens"
