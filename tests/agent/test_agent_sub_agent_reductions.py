"""Which reductions a sub-agent has: its parent's, but for those that it is given."""

from collections.abc import Callable
from dataclasses import replace
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
from ricordo.agent.options import AgentOptions, ReductionOptions
from ricordo.agent.sub_agent_workers import LocalWorker

KINDS: dict[str, Callable[[], object]] = {
    "compaction": CompactionConfig,
    "tool_result_eviction": ToolResultEvictionConfig,
    "clear_results": ClearResultsConfig,
    "dedupe_reads": DedupeReadsConfig,
    "truncate_args": TruncateArgsConfig,
}
ON = ReductionOptions(**{name: make() for name, make in KINDS.items()})  # type: ignore[arg-type]
OFF = ReductionOptions()


def reduced(parent: ReductionOptions, **own: Any) -> ReductionOptions:
    described = SubAgent(name="researcher", description="Looks things up.", **own)
    nobody = cast("Any", None)
    options = AgentOptions(model="offline", scope=SCOPE)
    worker = LocalWorker(
        spec=described, parent=options, session="s", session_state=nobody, ids=nobody, create_session=nobody
    )
    parentage = worker.build_options("s-1", lambda progress: None).parent
    assert parentage is not None
    return parentage.inherit_reductions(parent)


@pytest.mark.req("AS-BUG-30")
@pytest.mark.parametrize("kind", KINDS)
def test_each_reduction_is_the_parents_until_it_is_given_and_none_is_off(kind: str) -> None:
    assert (reduced(ON), reduced(OFF)) == (ON, OFF)
    off, own = {kind: None}, {kind: KINDS[kind]()}
    assert reduced(ON, **off) == replace(ON, **off)
    assert reduced(OFF, **own) == replace(OFF, **own)  # type: ignore[arg-type]
