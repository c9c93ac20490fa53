"""Tasks of many processes, and of processes that were killed."""

import os
from pathlib import Path

import pytest

from forking import driven

DRIVER = Path(__file__).with_name("task_driver.py")

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the driver forks")


@pytest.mark.req("AS-STATE-04", "AS-TASK-01")
def test_tasks_that_many_processes_add_at_once_are_all_there(tmp_path: Path) -> None:
    (case,) = driven(DRIVER, "added", tmp_path, 4, 10)
    assert case["failed"] == 0
    assert case["ids"] == sorted(f"{process}-{number}" for process in range(4) for number in range(10))


@pytest.mark.req("AS-TASK-01")
def test_a_killed_process_leaves_its_task_running_and_ten_minutes_later_it_is_orphaned(tmp_path: Path) -> None:
    at_work, *cases = driven(DRIVER, "killed", tmp_path)
    assert at_work["told"][-1] == "begun"
    assert (at_work["at once"], at_work["before"]) == (["running"], ["running"])
    assert at_work["later"] == at_work["swept"] == at_work["written"] == ["orphaned"]
    assert cases[-1]["lived"]
    assert cases[-1]["later"] == ["completed"]
    for case in cases:
        assert case["at once"] in ([], ["running"], ["completed"]), case
        assert "begun" not in case["told"] or case["at once"], case
        assert "ended" not in case["told"] or case["at once"] == ["completed"], case
        assert case["later"] == (["orphaned"] if case["at once"] == ["running"] else case["at once"])
