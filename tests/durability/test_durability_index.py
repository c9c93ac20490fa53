"""A process that is killed while it works on the index: the next one answers as an index made anew, at once."""

import os
from pathlib import Path

import pytest

from forking import Case, driven

pytestmark = [pytest.mark.skipif(not hasattr(os, "fork"), reason="the driver forks"), pytest.mark.req("FC-STALE")]

DRIVER = Path(__file__).with_name("index_crash_driver.py")
CHOSEN = {
    "rebuild": ("INSERT INTO chunk 20", "INSERT INTO segment", "COMMIT 7"),
    "merge": ("INSERT INTO chunk 9", "DELETE FROM segment", "INSERT INTO segment"),
    "follow": ("DELETE FROM document", "UPDATE chunk SET 2"),
}


def check(told: list[Case]) -> None:
    whole, *cut = told
    assert not whole["killed"]
    assert cut
    for case in told:
        where = case["at"]
        assert case is whole or case["killed"], where
        assert all(case["left"][:5]), where
        assert case["left"] == case["after"] == case["anew"], where
        assert (case["state"], case["aside"]) == ("fresh", ""), where
        assert case["sound"], where


@pytest.mark.req("AS-BUG-26")
@pytest.mark.parametrize("scenario", CHOSEN)
def test_a_kill_in_a_rebuild_or_a_merge_of_segments_costs_no_answer(scenario: str, tmp_path: Path) -> None:
    check(driven(DRIVER, scenario, tmp_path, *CHOSEN[scenario]))


@pytest.mark.soak
@pytest.mark.parametrize("scenario", CHOSEN)
def test_a_kill_at_any_statement_of_the_index_costs_no_answer(scenario: str, tmp_path: Path) -> None:
    told = driven(DRIVER, scenario, tmp_path, seconds=1_000)
    assert len(told) > 40
    check(told)
