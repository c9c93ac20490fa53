"""Two agents in one session at once: what either makes of what stands is there in the end."""

import os
from pathlib import Path

import pytest

from forking import driven

_DRIVER = Path(__file__).with_name("standing_shared_driver.py")


@pytest.mark.req("AS-STATE-03", "AS-STATE-06", "AS-STATE-07")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the driver forks")
@pytest.mark.parametrize("rounds", [6, pytest.param(100, marks=pytest.mark.soak)])
def test_two_processes_that_change_what_stands_at_once_lose_nothing_of_each_other(tmp_path: Path, rounds: int) -> None:
    (case,) = driven(_DRIVER, tmp_path, rounds)
    assert case["failed"] == 0
    assert case["todos"] == [f"Step {at}" for at in range(rounds)]
    assert case["rules"] == sorted(f"deny shell(rm {number}*)" for number in range(rounds))
    assert case["plan"]
    assert case["tasks"] == [f"{name} completed The result of {name}." for name in ("planner", "warden")]
    assert case["delivered"] == ["planner", "warden"]
    # each was told to one of the two at least, and to none of them twice
    assert {result for told in case["told"] for result in told} == {
        f"The result of {each}." for each in case["delivered"]
    }
    assert all(len(set(told)) == len(told) for told in case["told"])
    assert case["told again"] == []
    assert case["rules told"] == 1
    assert case["valid"]
    assert case["doubled"] == 0
    assert case["unwell"] == []
