"""An agent that is killed while it changes what stands: each change is there or not, and no result is told twice."""

import os
from pathlib import Path

import pytest

from forking import Case, driven

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the driver forks")

_DRIVER = Path(__file__).with_name("standing_kill_driver.py")
_PLAN = "# Move\n\n1. Export every table.\n2. Load them in one transaction.\n"
_OLD = [["Look around", "in_progress"], ["Ask", "pending"]]
_NEW = [["Look around", "completed"], ["Export", "in_progress"], ["Load", "pending"]]
_RULES = ["ask write_file(src/*)", "deny shell(git push*)"]
_RESULT = "There are 12 tables."
_STEPS = (
    "rename state", "rename tasks done", "half state 2", "rename plan done", "rename state done 3", "half plan 2",
    "rename tasks done 2", "half transcript 10", "sync transcript 10", "rename state 6",
)  # fmt: skip
_ALL_STEPS = {
    *(f"{verb} {kind}" for kind in ("transcript", "journal", "state", "tasks", "plan") for verb in ("half", "sync")),
    *(f"rename {kind}{done}" for kind in ("state", "tasks", "plan") for done in ("", " done")),
    "ask",
    "ask for a summary",
}


@pytest.mark.req("AS-STATE-05")
def test_a_kill_between_two_changes_of_what_stands_loses_none_and_tells_each_result_once(tmp_path: Path) -> None:
    unharmed, *cases = driven(_DRIVER, tmp_path, *_STEPS)
    _look_at(unharmed)
    assert not unharmed["killed"]
    for case in cases:
        assert case["killed"], case["step"]
        _look_at(case)
    # old or new, by what was the last to be durable
    assert [case["rules"] == _RULES for case in cases] == [False] + [True] * 9
    assert [case["todos"] == _NEW for case in cases] == [False] * 3 + [True] * 7
    assert [case["plan"][0] for case in cases] == [False] * 4 + [True] * 6
    assert [case["text"] == _PLAN for case in cases] == [False] * 6 + [True] * 4
    assert [case["tasks"] for case in cases] == [[]] + [["running"]] * 5 + [["completed"]] * 4
    assert [case["results"][0] for case in cases] == [0] * 6 + [1, 1, 0, 0]
    assert [case["tells"] for case in cases] == [0] * 7 + [1, 1, 1]


@pytest.mark.req("AS-STATE-05", "AS-STATE-06", "AS-STATE-07")
@pytest.mark.soak
def test_a_kill_at_any_step_of_changes_of_what_stands_loses_none_and_tells_each_result_once(tmp_path: Path) -> None:
    unharmed, *cases = driven(_DRIVER, tmp_path, seconds=900)
    assert set(unharmed["steps"]) >= _ALL_STEPS
    assert len(cases) == len(unharmed["steps"])
    for case in [unharmed, *cases]:
        _look_at(case)
        assert case["killed"] or case is unharmed


def _look_at(case: Case) -> None:
    step, has = case["step"], case["has"]
    assert case["valid"], step
    assert case["faults"] == 0, step
    # a line that a kill tore is told of, and nothing else is wrong
    assert set(case["unwell"]) <= {"lines"}, step
    assert case["todos"] in ([_NEW] if "todos" in has else [_OLD, _NEW]), step
    assert case["rules"] in ([_RULES] if "rule" in has else [_RULES[:1], _RULES]), step
    assert case["plan"] in ([[True, True]] if "plan" in has else [[False, False], [True, True]]), step
    assert case["plans"] in ([[_PLAN]] if "text" in has else [[], ["# Move\n"], [_PLAN]]), step
    # what was written and not yet recorded as a change is taken back
    assert case["text"] in ([None] if not case["plan"][0] else [_PLAN] if "text" in has else ["# Move\n", _PLAN]), step
    assert case["kept"], step
    _look_at_tasks(case)
    begun = next(content for content, status in case["todos"] if status == "in_progress")
    for items in case["reminded"]:
        assert any(f"[>] {begun}" in item for item in items), step
        assert (_PLAN in items) <= (case["text"] == _PLAN), step


def _look_at_tasks(case: Case) -> None:
    step, has = case["step"], case["has"]
    assert len(case["tasks"]) <= 1, step
    assert len(case["tasks"]) >= ("task" in has), step
    ended = case["tasks"] == ["completed"]
    assert ended >= ("end" in has), step
    assert case["later"] == ([["completed", _RESULT]] if ended else [["orphaned", ""]] * len(case["tasks"])), step
    was_told = any(case["told"])
    assert was_told <= (case["tells"] > 0), step
    assert was_told >= ("told" in has), step
    assert case["results"] == [int(ended and not was_told), 0], step
    assert case["orphans"] == [int(case["tasks"] == ["running"]), 0], step
