"""Run the crash driver and hand its cases to the tests."""

from collections.abc import Callable
from pathlib import Path

import pytest

from forking import Case, driven


@pytest.fixture
def crashes(tmp_path: Path) -> Callable[..., list[Case]]:
    """Return a function that gives one case for each step, or each of so many, at which a scenario's act was killed."""

    def run(scenario: str, *, every: int = 1) -> list[Case]:
        folder = tmp_path / scenario
        folder.mkdir()
        return driven(Path(__file__).with_name("crash_driver.py"), scenario, folder, every)

    return run
