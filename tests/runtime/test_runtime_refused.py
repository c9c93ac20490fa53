"""A configuration that could not work is refused where it is made, by the name of its field, and is never changed."""

from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields, is_dataclass, replace
from datetime import timedelta
from typing import Any, get_args, get_type_hints

import pytest

from ricordo import (
    ClearResultsConfig,
    CompactionConfig,
    DedupeReadsConfig,
    FlushConfig,
    ToolResultEvictionConfig,
    TruncateArgsConfig,
)
from ricordo.curation import ConsolidationConfig, ProfileConfig
from ricordo.curation.config import MaintenanceConfig
from ricordo.errors import InvalidSetting
from ricordo.models import RetryConfig
from ricordo.runtime import Settings
from ricordo.workspace.history.retention import HistoryConfig


def _configurations() -> list[object]:
    """Return the settings and every table in them, at their defaults."""
    settings = Settings.from_environment({})
    found: list[object] = [settings]
    for name, hint in get_type_hints(Settings).items():
        types = [each for each in (hint, *get_args(hint)) if isinstance(each, type)]
        kinds = [each for each in types if each.__name__.endswith("Config")]
        held = getattr(settings, name)
        found += [held] if is_dataclass(held) else [kind() for kind in kinds]
    return found


CONFIGURATIONS = [
    *_configurations(),
    *(CompactionConfig(), TruncateArgsConfig(), ClearResultsConfig(), DedupeReadsConfig(), ToolResultEvictionConfig()),
    RetryConfig(),
]


@pytest.mark.req("AS-CFG-01")
@pytest.mark.parametrize("made", CONFIGURATIONS, ids=lambda made: type(made).__name__)
def test_no_number_or_time_below_zero_is_taken(made: Any) -> None:
    for each in fields(made):
        held = getattr(made, each.name)
        below = timedelta(seconds=-1) if isinstance(held, timedelta) else -1
        if isinstance(held, int | float | timedelta) and not isinstance(held, bool):
            with pytest.raises(InvalidSetting, match=rf"\b{each.name}\b"):
                replace(made, **{each.name: below})


@pytest.mark.req("AS-CFG-01")
@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: CompactionConfig(window=-1), "window"),
        (lambda: ToolResultEvictionConfig(max_result_chars=100, preview_chars=101), "preview_chars"),
        (lambda: ConsolidationConfig(consolidation_prompt="At most {max_memory_tokens}."), "consolidation_prompt"),
        (lambda: ConsolidationConfig(consolidation_prompt="{max_memory_characters}."), "consolidation_prompt"),
        (lambda: MaintenanceConfig(daily_file_retention_days=0), "daily_file_retention_days"),
        (lambda: MaintenanceConfig(session_retention_days=0), "session_retention_days"),
        (lambda: MaintenanceConfig(trash_days=0), "trash_days"),
        (lambda: MaintenanceConfig(interval=timedelta(0)), "interval"),
        (lambda: HistoryConfig(days=0), "days"),
        (lambda: FlushConfig(flush_prompt="Tell me."), "flush_prompt"),
    ],
)
def test_what_could_not_work_is_refused_by_the_name_of_its_field(make: Callable[[], object], field: str) -> None:
    with pytest.raises(InvalidSetting, match=rf"\b{field}\b"):
        make()


@pytest.mark.req("AS-CFG-01")
def test_a_preview_may_be_as_large_as_the_limit_and_a_day_is_kept() -> None:
    ToolResultEvictionConfig(max_result_chars=100, preview_chars=100)
    MaintenanceConfig(daily_file_retention_days=1, session_retention_days=1, trash_days=1)
    ConsolidationConfig(consolidation_prompt="{max_memory_tokens} {max_memory_characters}")


@pytest.mark.req("AS-CFG-01")
@pytest.mark.parametrize("made", CONFIGURATIONS, ids=lambda made: type(made).__name__)
def test_no_configuration_can_be_changed_once_it_is_made(made: Any) -> None:
    for each in fields(made):
        with pytest.raises(FrozenInstanceError):
            setattr(made, each.name, None)
        assert not isinstance(getattr(made, each.name), list | set | bytearray | dict) or each.name == "origins"


@pytest.mark.req("AS-CFG-01")
def test_a_configuration_does_not_follow_what_it_was_made_from() -> None:
    names, characters = {"wide"}, {"topOfMind": 20}
    eviction = ToolResultEvictionConfig(excluded_tool_names=names)  # type: ignore[arg-type]
    profile = ProfileConfig(summary_characters=characters)
    names.clear()
    characters["topOfMind"] = 30
    assert eviction.excluded_tool_names == {"wide"}
    assert profile.summary_characters == {"topOfMind": 20}
