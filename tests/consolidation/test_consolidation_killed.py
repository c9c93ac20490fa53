"""A dream whose process is killed in any of its phases: the next one comes to the same, and nothing is lost."""

import os
import re
from pathlib import Path

import pytest

from forking import Case, driven

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="the driver forks"),
    pytest.mark.req("CC-DREAMCOPY", "CC-GATES"),
]

_DRIVER = Path(__file__).with_name("dream_kill_driver.py")
_BEFORE = (
    "orient started", "gather started", "consolidate started", "asked", "prune started", "rename MEMORY.md done",
    "rename 2026-11-21.md",
)  # fmt: skip
_AFTER = ("rename .consolidation_state", "rename .dream_state", "prune finished")
_PHASES = {f"{phase} {status}" for phase in ("orient", "gather", "prune") for status in ("started", "finished")}
_PHASES |= {"consolidate started", "asked", "consolidate finished", "rename MEMORY.md", "rename .dream_state done"}
_ID = re.compile(r"\^(\w{26})$", re.MULTILINE)
LEDGER = "workspace/memory/2026-11-21.md"


@pytest.mark.req("AS-BUG-16")
def test_a_dream_that_is_killed_in_a_phase_is_dreamt_by_the_next_process_as_if_nothing_had_been(tmp_path: Path) -> None:
    unharmed, *cases = driven(_DRIVER, tmp_path, *_BEFORE, *_AFTER)
    assert not unharmed["killed"]
    _look_at(unharmed, unharmed)
    for case in cases:
        _look_at(case, unharmed)
    # until the last record of the change set stands, what was written is put back
    assert [case["found"] for case in cases] == ["before"] * len(_BEFORE) + ["after"] * len(_AFTER)


@pytest.mark.soak
def test_a_dream_that_is_killed_at_any_step_is_dreamt_by_the_next_process(tmp_path: Path) -> None:
    unharmed, *cases = driven(_DRIVER, tmp_path, seconds=600)
    assert set(unharmed["steps"]) >= _PHASES
    assert len(cases) == len(unharmed["steps"])
    for case in cases:
        _look_at(case, unharmed)


def _look_at(case: Case, unharmed: Case) -> None:
    step, documents = case["step"], case["documents"]
    assert case["killed"] or case is unharmed, step
    # the lock of the dead stands in nobody's way, and is given back in the end
    assert case["held"] == (case is not unharmed and step != "rename .dream_lock"), step
    assert (case["skipped"], case["lease"]) == ("", False), step
    assert documents == unharmed["documents"], step
    curated = documents["workspace/MEMORY.md"]
    assert curated.count("an allergy that makes Marta itch") == 1, step
    assert "[supersedes:: " in curated, step
    noted = _ID.findall(documents[LEDGER])
    assert len(noted) == len(set(noted)) == 7, step
    told = "".join(text for path, text in documents.items() if path != LEDGER)
    assert all(name in told for name in noted), step
    assert (case["found"] != "neither", case["cut off"]) == (True, 0), step
    assert case["states"] == {".consolidation_state": True, ".dream_state": True}, step
    assert (case["runs"], case["undone"]) == (2, True), step
