"""An agent that is killed in any phase of a turn: the next process goes on with the session, and nothing is lost."""

import os
from pathlib import Path

import pytest

from forking import Case, driven

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the driver forks")

_DRIVER = Path(__file__).with_name("kill_driver.py")
_SAID = ["We deploy only from main.", "Our fixtures live in tests/data."]
_PHASES = (
    "record finished", "tool finished", "compact finished", "turn finished", "extract finished", "consolidate finished",
)  # fmt: skip
_ALL_PHASES = {
    *_PHASES, "record started", "model started", "evict finished", "drain started", "turn started", "model finished",
    "tool started", "extract started", "drain finished", "consolidate started",
}  # fmt: skip


@pytest.mark.req("DF-B24")
def test_a_session_goes_on_when_its_agent_was_killed_in_a_phase(tmp_path: Path) -> None:
    assert _killed_in(driven(_DRIVER, tmp_path, *_PHASES)) == set(_PHASES)


@pytest.mark.req("AS-BUG-12", "AS-STATE-01")
@pytest.mark.soak
def test_a_session_goes_on_whenever_its_agent_was_killed(tmp_path: Path) -> None:
    assert _killed_in(driven(_DRIVER, tmp_path, seconds=600)) >= _ALL_PHASES


def _killed_in(told: list[Case]) -> set[str]:
    """Check what each process after a kill found; return the kinds of events at which there was one."""
    unharmed, *cases = told
    assert not unharmed["killed"]
    assert unharmed["acked"] == _SAID
    for case in told:
        _look_at(case)
    return {case["event"] for case in cases if case["killed"]}


def _look_at(case: Case) -> None:
    killed = case["event"]
    assert case["unwell"] == [], killed
    assert case["valid"], killed
    assert case["reply"] == "Done after tool.", killed
    assert case["left over"] == 0, killed
    assert case["doubled"] == [], killed
    # what was acknowledged is there once, and so is what had been recorded of the turn that was cut off
    assert case["said"][-1] == "And now?", killed
    said = case["said"][:-1]
    assert said[: len(case["acked"])] == case["acked"], killed
    assert said == _SAID[: len(said)], killed
    assert sorted(case["entries"]) == sorted(said), killed
    assert case["ledger"] == [int(text in said) for text in _SAID], killed
    assert case["widest"] < 4_000, killed
    assert all(size > 12_000 for size in case["files"]), killed
