"""Run the crash driver and hand its cases to the tests."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ricordo

_HERE = Path(__file__).parent
_SUPPORT = _HERE.parent / "support"
Case = dict[str, Any]


@pytest.fixture
def crashes(tmp_path: Path) -> Callable[..., list[Case]]:
    """Return a function that gives one case for each step, or each of so many, at which a scenario's act was killed."""

    def run(scenario: str, *, every: int = 1) -> list[Case]:
        folder = tmp_path / scenario
        folder.mkdir()
        done = subprocess.run(
            [sys.executable, str(_HERE / "crash_driver.py"), scenario, str(folder), str(every)],
            env=os.environ
            | {"PYTHONPATH": os.pathsep.join(filter(None, (str(_SUPPORT), os.environ.get("PYTHONPATH"))))},
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        driven, *told = [json.loads(line) for line in done.stdout.splitlines()]
        assert driven == ricordo.__file__, "the driver runs another package than the tests"
        return told

    return run
