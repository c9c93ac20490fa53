"""What recommended reductions start at follows the model's window, and what was chosen stays as it was chosen."""

import pytest

from ricordo.context import ClearResultsConfig, CompactionConfig, Reductions, TruncateArgsConfig
from ricordo.context.strategies import with_recommended


@pytest.mark.req("AS-BUG-10")
@pytest.mark.parametrize(
    ("window", "reserved", "trigger", "least"),
    [(8_000, 2_000, 4_000, 500), (24_000, 6_000, 12_000, 1_500), (200_000, 20_000, 40_000, 5_000)],
)
def test_each_step_starts_before_the_one_after_it_in_a_window_of_any_size(
    window: int, reserved: int, trigger: int, least: int
) -> None:
    found = with_recommended({}, {}, window)
    compaction, clear, truncate = found["compaction"], found["clear_results"], found["truncate_args"]
    assert compaction is not None
    assert clear is not None
    assert truncate is not None
    assert (compaction.trigger_tokens, compaction.reserved) == (None, reserved)
    assert (clear.trigger_tokens, clear.min_tokens) == (trigger, least)
    assert truncate.trigger_tokens == trigger
    assert trigger < window - reserved
    assert found["tool_result_eviction"] is not None
    assert found["dedupe_reads"] is not None


@pytest.mark.req("AS-COMPACT-11")
def test_without_a_known_window_and_where_something_was_chosen_nothing_is_scaled() -> None:
    unknown = with_recommended({}, {}, None)
    assert (unknown["compaction"], unknown["clear_results"]) == (CompactionConfig.classic(), ClearResultsConfig())
    assert unknown["truncate_args"] == TruncateArgsConfig()
    mine = Reductions(compaction=CompactionConfig.dynamic(), clear_results=ClearResultsConfig(keep_results=1))
    found = with_recommended(mine, {}, 24_000)
    assert (found["compaction"], found["clear_results"]) == (mine["compaction"], mine["clear_results"])


def test_what_the_settings_switch_off_stays_off_and_a_summary_that_truncates_does_so_alone() -> None:
    mine = Reductions(compaction=CompactionConfig(truncate_args=TruncateArgsConfig()))
    found = with_recommended(mine, {"clear_results": None, "truncate_args": TruncateArgsConfig(kept_chars=7)}, None)
    assert (found["clear_results"], found["truncate_args"]) == (None, None)
    assert found["dedupe_reads"] is not None
