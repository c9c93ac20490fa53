"""An agent that is killed in any phase of a turn: the next process goes on with the session, and nothing is lost."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ricordo

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the driver forks")

_HERE = Path(__file__).parent
_SAID = ["We deploy only from main.", "Our fixtures live in tests/data."]
_PHASES = (
    "turn started", "record started", "record finished", "model started", "model finished", "tool started",
    "tool finished", "evict finished", "compact finished", "turn finished", "extract started", "extract finished",
    "drain started", "drain finished", "consolidate started", "consolidate finished",
)  # fmt: skip


@pytest.mark.timeout(300)
def test_a_session_goes_on_whenever_its_agent_was_killed(tmp_path: Path) -> None:
    source = str(Path(ricordo.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, str(_HERE / "kill_driver.py"), str(tmp_path)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(_HERE.parent / "support"), source])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    unharmed, *cases = (json.loads(line) for line in done.stdout.splitlines())
    assert not unharmed["killed"]
    assert unharmed["acked"] == _SAID
    assert {case["event"] for case in cases if case["killed"]} >= set(_PHASES)
    for case in (unharmed, *cases):
        _look_at(case)


def _look_at(case: dict[str, Any]) -> None:
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
