"""Which reductions a sub-agent has: its parent's, but for those that it is given."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from agents_at_work import SCOPE
from ricordo import (
    ClearResultsConfig,
    CompactionConfig,
    DedupeReadsConfig,
    SubAgent,
    ToolResultEvictionConfig,
    TruncateArgsConfig,
)
from ricordo.agent.options import AgentOptions
from ricordo.agent.session_factory import choose_reductions
from ricordo.agent.sub_agent_workers import LocalWorker
from ricordo.context import NoCompaction, Reductions
from ricordo.runtime import Settings

KINDS: dict[str, Callable[[], object]] = {
    "compaction": CompactionConfig,
    "tool_result_eviction": ToolResultEvictionConfig,
    "clear_results": ClearResultsConfig,
    "dedupe_reads": DedupeReadsConfig,
    "truncate_args": TruncateArgsConfig,
}
ON = cast("Reductions", {name: make() for name, make in KINDS.items()})
OFF = Reductions()
PLAIN = Settings(root=None, user="me", data=Path("data"), cache=Path("cache"))


def described(parent: Reductions, own: dict[str, Any]) -> AgentOptions:
    """Return the options of a sub-agent that has reductions of its own."""
    nobody = cast("Any", None)
    options = AgentOptions(model="offline", scope=SCOPE, reductions=parent, strategies=(NoCompaction(),))
    spec = SubAgent(name="researcher", description="Looks things up.", reductions=cast("Reductions", own))
    worker = LocalWorker(
        spec=spec, parent=options, session="s", session_state=nobody, ids=nobody, create_session=nobody
    )
    return worker.build_options("s-1", lambda progress: None)


def reduced(parent: Reductions, **own: Any) -> Reductions:
    return choose_reductions(described(parent, own), PLAIN, None)


@pytest.mark.req("AS-BUG-30")
@pytest.mark.parametrize("kind", KINDS)
def test_each_reduction_is_the_parents_until_it_is_given_and_none_is_off(kind: str) -> None:
    assert (reduced(ON), reduced(OFF)) == (ON, OFF)
    off, own = {kind: None}, {kind: KINDS[kind]()}
    assert reduced(ON, **off) == {**ON, **off}
    assert reduced(OFF, **own) == {**OFF, **own}


@pytest.mark.req("AS-BUG-30")
def test_strategies_of_the_parent_are_used_until_a_reduction_is_given() -> None:
    assert described(ON, {}).strategies
    assert described(ON, {"compaction": None}).strategies is None
