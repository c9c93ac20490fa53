"""What recommended reductions start at follows the model's window, and what was chosen stays as it was chosen."""

from pathlib import Path

import pytest

from ricordo.agent.options import ReductionOptions
from ricordo.context import ClearResultsConfig, CompactionConfig, TruncateArgsConfig
from ricordo.runtime import Settings

PLAIN = Settings(root=None, user="me", data=Path("data"), cache=Path("cache"))


@pytest.mark.req("AS-BUG-10")
@pytest.mark.parametrize(
    ("window", "reserved", "trigger", "least"),
    [(8_000, 2_000, 4_000, 500), (24_000, 6_000, 12_000, 1_500), (200_000, 20_000, 40_000, 5_000)],
)
def test_each_step_starts_before_the_one_after_it_in_a_window_of_any_size(
    window: int, reserved: int, trigger: int, least: int
) -> None:
    found = ReductionOptions().with_defaults(PLAIN, window)
    assert found.compaction is not None
    assert found.clear_results is not None
    assert found.truncate_args is not None
    assert (found.compaction.trigger_tokens, found.compaction.reserved) == (None, reserved)
    assert (found.clear_results.trigger_tokens, found.clear_results.min_tokens) == (trigger, least)
    assert found.truncate_args.trigger_tokens == trigger
    assert trigger < window - reserved
    assert found.tool_result_eviction is not None
    assert found.dedupe_reads is not None


@pytest.mark.req("AS-COMPACT-11")
def test_without_a_known_window_and_where_something_was_chosen_nothing_is_scaled() -> None:
    unknown = ReductionOptions().with_defaults(PLAIN, None)
    assert (unknown.compaction, unknown.clear_results) == (CompactionConfig.classic(), ClearResultsConfig())
    assert unknown.truncate_args == TruncateArgsConfig()
    mine = ReductionOptions(compaction=CompactionConfig.dynamic(), clear_results=ClearResultsConfig(keep_results=1))
    found = mine.with_defaults(PLAIN, 24_000)
    assert (found.compaction, found.clear_results) == (mine.compaction, mine.clear_results)
