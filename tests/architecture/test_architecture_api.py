"""The public names are a promise: adding or removing one is a decision, made here and told in the documentation."""

import inspect
import subprocess
import sys
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import pytest

import ricordo
from ricordo.context import Reductions
from source_tree import ROOT

PUBLIC = [
    "BuiltinTools",
    "ClearResultsConfig",
    "CompactionConfig",
    "DedupeReadsConfig",
    "Entry",
    "FlushConfig",
    "HarnessAgent",
    "Memory",
    "MemoryConfig",
    "MemoryPool",
    "Message",
    "RemoteAgent",
    "RicordoError",
    "Scope",
    "SubAgent",
    "ToolResultEvictionConfig",
    "TruncateArgsConfig",
    "TurnLimits",
    "__version__",
    "read_history",
]


def test_the_public_names_are_the_ones_that_were_decided() -> None:
    assert ricordo.__all__ == PUBLIC
    assert dir(ricordo) == PUBLIC


def test_every_public_name_is_documented() -> None:
    page = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    assert [name for name in PUBLIC if not name.startswith("__") and f"\n## {name}\n" not in page] == []


def test_the_version_is_the_installed_one() -> None:
    done = subprocess.run([sys.executable, "-m", "ricordo", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"ricordo {ricordo.__version__}"


ARGUMENTS = {
    ricordo.HarnessAgent: (
        "model tools scope memory instructions session builtin_tools approve permissions sub_agents limits strategies"
        " model_settings settings on_event clock disk reductions"
    ),
    ricordo.MemoryConfig: (
        "root store required trusted hooks flush refresh closing_summary states incognito keeps_session"
    ),
    ricordo.BuiltinTools: "memory opt_in sessions files shell planning working_directory",
    ricordo.TurnLimits: "max_iters tokens cost",
    ricordo.SubAgent: (
        "name description instructions model model_settings tools memory_tools memory_hooks reductions max_iters"
        " seconds"
    ),
}
"""What an agent takes, and the values that hold the rest of it: each option has one name, in one of them."""


@pytest.mark.parametrize("made", ARGUMENTS, ids=lambda made: made.__name__)
def test_the_arguments_of_an_agent_are_the_ones_that_were_decided(made: type) -> None:
    found = inspect.signature(made).parameters
    assert " ".join(found) == ARGUMENTS[made]
    by_place = [name for name, each in found.items() if each.kind is each.POSITIONAL_OR_KEYWORD]
    assert by_place == (["model", "tools"] if made is ricordo.HarnessAgent else [])
    needed = [name for name, each in found.items() if each.default is each.empty and each.kind is not each.VAR_KEYWORD]
    assert len(needed) <= 2
    if is_dataclass(made):
        assert made.__dataclass_params__.frozen  # type: ignore[attr-defined]


def test_reductions_are_arguments_of_an_agent_by_their_own_names() -> None:
    assert list(Reductions.__annotations__) == [
        "tool_result_eviction", "clear_results", "dedupe_reads", "truncate_args", "compaction"
    ]  # fmt: skip
    scope = ricordo.Scope(user="me")
    for name in Reductions.__annotations__:
        given: Any = {name: None}
        ricordo.HarnessAgent("offline", scope=scope, **given)
    with pytest.raises(TypeError, match=r"no argument 'compacting'\. The reductions are"):
        ricordo.HarnessAgent("offline", scope=scope, compacting=None)  # type: ignore[call-arg]


def test_a_first_agent_needs_a_model_a_scope_and_a_folder_at_most(tmp_path: Path) -> None:
    scope = ricordo.Scope(user="me")
    ricordo.HarnessAgent("offline", scope=scope)
    ricordo.HarnessAgent("offline", scope=scope, memory=tmp_path)
    with pytest.raises(ricordo.RicordoError, match=r"MemoryConfig\(store='jsonl:./notes'\)"):
        ricordo.HarnessAgent("offline", scope=scope, memory="jsonl:./notes")
