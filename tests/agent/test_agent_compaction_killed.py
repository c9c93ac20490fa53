"""An agent that is killed in the middle of a compaction: the next process finds the window of before or of after."""

import os
from pathlib import Path

import pytest

from compacting_agents import decided
from forking import Case, driven

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the driver forks")

_DRIVER = Path(__file__).with_name("compaction_kill_driver.py")
_SAID = [decided(number) for number in range(6)]
_STEPS = (
    "ask for a summary", "write ledger done 2", "half journal", "sync journal 2", "rename state done",
    "half evicted", "rename state done 3",
)  # fmt: skip
_ALL_STEPS = {
    f"{verb} {kind}"
    for kind in ("transcript", "cursor", "ledger", "journal", "state", "evicted")
    for verb in ("half", "sync", "write")
} | {f"commit {kind}{done}" for kind in ("inbox", "index") for done in ("", " done")}


@pytest.mark.req("AS-COMPACT-06")
def test_a_kill_between_any_two_acts_of_a_compaction_loses_nothing_and_learns_nothing_twice(tmp_path: Path) -> None:
    unharmed, *cases = driven(_DRIVER, tmp_path, *_STEPS)
    _look_at(unharmed)
    assert not unharmed["killed"]
    assert (unharmed["compactions"], unharmed["summaries"]) == (2, 1)
    for case in cases:
        assert case["killed"], case["step"]
        _look_at(case)
    # until the state is saved it is the window of before, whatever was noted
    assert [case["whole"] for case in cases] == [True] * 4 + [False] * 3
    assert [case["compactions"] for case in cases] == [1, 1, 1, 2, 1, 1, 2]


@pytest.mark.req("AS-STATE-01", "AS-BUG-11", "AS-COMPACT-09")
@pytest.mark.soak
def test_a_kill_at_any_step_of_a_compaction_loses_nothing_and_learns_nothing_twice(tmp_path: Path) -> None:
    unharmed, *cases = driven(_DRIVER, tmp_path, seconds=900)
    assert set(unharmed["steps"]) >= _ALL_STEPS
    assert len(cases) == len(unharmed["steps"])
    for case in [unharmed, *cases]:
        _look_at(case)
        assert case["killed"] or case is unharmed


def _look_at(case: Case) -> None:
    step = case["step"]
    assert case["valid"], step
    assert case["faults"] == 0, step
    assert case["held"], step
    assert case["summaries"] == (0 if case["whole"] else 1), step
    assert case["lost"] == [], step
    assert case["strange"] == [], step
    assert case["reply"] == "Noted.", step
    assert case["left over"] == 0, step
    # a line that a kill tore is told of, and nothing else is wrong
    assert set(case["unwell"]) <= {"lines"}, step
    assert case["doubled"] == [], step
    assert case["whole again"], step
    assert case["said"][-1] == "And now?", step
    said = case["said"][:-1]
    assert said[:5] == _SAID[:5], step
    assert said == _SAID[: len(said)], step
    assert case["learned"] == [int(number < len(said)) for number in range(6)], step
    assert all(size > 12_000 for size in case["files"]), step
