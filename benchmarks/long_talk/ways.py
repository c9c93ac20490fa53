"""Ways to keep a window small, and an agent that goes one of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from long_talk.desk import Desk
from long_talk.writer import writer
from ricordo import CompactionConfig, FlushConfig, HarnessAgent, Scope
from ricordo.context import (
    ClearResultsConfig,
    DedupeReadsConfig,
    SlidingWindow,
    ToolResultEvictionConfig,
    TruncateArgsConfig,
)
from ricordo.messages.tokens import Share
from ricordo.runtime import Settings
from ricordo.testing import ScriptedModel

__all__ = ["BY_RULES", "LADDER", "USER", "Way", "agent", "ways"]

LADDER = "ladder/rules"
USER = "me"
BY_RULES = FlushConfig(model="offline")
"""What is said is learned by rules: the models of this benchmark only talk and sum up."""


@dataclass(frozen=True, kw_only=True)
class Way:
    """One way: the options of the agent, and who writes its summaries, None where nobody or rules do."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    recommended: bool = False
    writer: ScriptedModel | None = None


def ways(window: int) -> Sequence[Way]:
    """Return what is compared, for a model with a window of so many tokens; `recommended` has its defaults."""
    summary, lossless = _summary(window), _lossless(window)
    rules = {"compaction": replace(summary, model="offline")}
    return [
        Way(name="nothing"),
        Way(name="sliding", options={"strategies": [SlidingWindow(keep_tokens=window // 2)]}),
        Way(name="summary/rules", options=rules),
        _written("summary/first", summary, {}, careful=False),
        _written("summary/careful", summary, {}, careful=True),
        Way(name=LADDER, options={**lossless, **rules}),
        _written("ladder/first", summary, lossless, careful=False),
        _written("ladder/careful", summary, lossless, careful=True),
        Way(
            name="recommended/rules",
            options={"compaction": replace(_recommended(window), model="offline")},
            recommended=True,
        ),
    ]


def agent(folder: Path, desk: Desk, way: Way) -> HarnessAgent:
    """Describe an agent that goes this way, with a root below `folder`."""
    make = HarnessAgent.with_recommended_settings if way.recommended else HarnessAgent
    return make(
        desk.model(),
        memory=folder / ".ricordo",
        scope=Scope(user=USER, project="shop"),
        session="s",
        tools=desk.tools(),
        settings=Settings(root=None, user=USER, data=folder / "data", cache=folder / "cache", flush=BY_RULES),
        **way.options,
    )


def _summary(window: int) -> CompactionConfig:
    return CompactionConfig(
        trigger_messages=0,
        trigger_tokens=0,
        trigger_share=0.7,
        keep_tokens=Share(0.2),
        reserved=window // 4,
        combined=False,
    )


def _lossless(window: int) -> Mapping[str, Any]:
    return {
        "tool_result_eviction": ToolResultEvictionConfig(max_result_chars=20_000),
        "clear_results": ClearResultsConfig(trigger_tokens=window // 2, min_tokens=window // 16),
        "dedupe_reads": DedupeReadsConfig(),
        "truncate_args": TruncateArgsConfig(trigger_messages=0, trigger_tokens=window // 2),
    }


def _recommended(window: int) -> CompactionConfig:
    return CompactionConfig.recommended(window)


def _written(name: str, summary: CompactionConfig, options: Mapping[str, Any], *, careful: bool) -> Way:
    model = writer(careful=careful)
    return Way(name=name, options={**options, "compaction": replace(summary, model=model)}, writer=model)
