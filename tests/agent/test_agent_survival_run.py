"""An agent with a plan, todos, rules and tasks is compacted, overflows and is killed: what stands stays."""

import importlib.util
import os
from pathlib import Path
from types import ModuleType

import pytest

from source_tree import ROOT

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="it is killed as POSIX systems kill")


def _script() -> ModuleType:
    found = importlib.util.spec_from_file_location("survival_run", ROOT / "scripts" / "survival_run.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.mark.req("AS-STATE-03", "AS-STATE-06", "AS-STATE-07", "AS-STATE-08", "CC-PIN")
def test_five_compactions_an_overflow_and_two_kills_change_nothing_that_stands(tmp_path: Path) -> None:
    script = _script()
    run = script.run_through(tmp_path)
    assert (run.compactions, run.overflows, run.ended) == (5, 1, (-9, -9, 0))
    rows = {name: (before, after) for name, before, after in run.rows()}
    changed = {name for name, (before, after) in rows.items() if before != after}
    assert changed == {"delivered", "task lost", "task patient"}
    assert rows["plan file"][0] == script.PLAN
    assert [(each["content"], each["status"]) for each in rows["todos"][1]] == list(script.TODOS)
    assert rows["permissions"][1] == list(script.RULES)
    before, after = rows["delivered"]
    # on a busy machine the counter is done before the look at what stands
    assert before in ([], ["counter"])
    assert after == ["counter", "lost:orphaned", "patient"]
    ended = {name: rows[f"task {name}"][1] for name in ("counter", "lost", "patient")}
    assert [each["state"] for each in ended.values()] == ["completed", "orphaned", "completed"]
    assert ended["patient"]["result"] == script.EXPORTED
    for name in ("lost", "patient"):
        before, after = rows[f"task {name}"]
        assert {key for key in before if before[key] != after[key]} <= {"state", "result", "error"}
    for words in (script.COUNTED, script.EXPORTED, script.LOST):
        assert sum(words in each for each in run.told) == 1, words
    assert script.PLAN in run.told[-1]
    assert "[>] Load them" in run.told[-1]
