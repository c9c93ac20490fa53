"""A configuration that could not work is refused where it is made, by the name of its field, and is never changed."""

from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields, is_dataclass, replace
from datetime import timedelta
from typing import Any, get_args, get_type_hints

import pytest

from ricordo.compaction.config import CompactionConfig, ToolResultEvictionConfig
from ricordo.consolidation.config import ConsolidationConfig
from ricordo.errors import InvalidSetting
from ricordo.flush.config import FlushConfig
from ricordo.maintenance.config import MaintenanceConfig
from ricordo.profile.config import ProfileConfig
from ricordo.queue import InboxConfig
from ricordo.runtime import Settings


@pytest.mark.req("AS-CFG-01")
@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: CompactionConfig(trigger_messages=-1), "trigger_messages"),
        (lambda: ToolResultEvictionConfig(max_result_chars=-5), "max_result_chars"),
        (lambda: ToolResultEvictionConfig(max_result_chars=100, preview_chars=200), "preview_chars"),
        (lambda: ConsolidationConfig(max_lines=-1), "max_lines"),
        (lambda: ConsolidationConfig(consolidation_prompt="Merge it all."), "consolidation_prompt"),
        (lambda: MaintenanceConfig(daily_file_retention_days=0), "daily_file_retention_days"),
        (lambda: MaintenanceConfig(session_retention_days=0), "session_retention_days"),
        (lambda: MaintenanceConfig(interval=timedelta(0)), "interval"),
        (lambda: FlushConfig(max_input_tokens=-1), "max_input_tokens"),
        (lambda: FlushConfig(flush_prompt="Tell me."), "flush_prompt"),
        (lambda: ProfileConfig(max_facts=-1), "max_facts"),
        (lambda: InboxConfig(debounce_seconds=-1), "debounce_seconds"),
        (lambda: replace(Settings.from_environment({}), workspace_tokens=-1), "workspace_tokens"),
    ],
)
def test_what_could_not_work_is_refused_by_the_name_of_its_field(make: Callable[[], object], field: str) -> None:
    with pytest.raises(InvalidSetting, match=field):
        make()


def _configurations() -> list[object]:
    """Return the settings and every table in them, at their defaults."""
    settings = Settings.from_environment({})
    found: list[object] = [settings]
    for name, hint in get_type_hints(Settings).items():
        kinds = [each for each in (hint, *get_args(hint)) if isinstance(each, type) and is_dataclass(each)]
        held = getattr(settings, name)
        found += [held] if is_dataclass(held) else [kind() for kind in kinds]
    return found


@pytest.mark.req("AS-CFG-01")
@pytest.mark.parametrize("made", _configurations(), ids=lambda made: type(made).__name__)
def test_no_configuration_can_be_changed_once_it_is_made(made: Any) -> None:
    with pytest.raises(FrozenInstanceError):
        setattr(made, fields(made)[0].name, None)
