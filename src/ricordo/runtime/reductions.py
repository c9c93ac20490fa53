"""Reductions of an agent: which are on, by whom, and the strategies that carry them out."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from anyio.to_thread import run_sync

from ricordo.compaction.compact import Compact, Hook
from ricordo.compaction.config import CompactionConfig, ToolResultEvictionConfig, TruncateArgsConfig
from ricordo.compaction.contract import Strategy, Summarize
from ricordo.compaction.evict import Evict
from ricordo.compaction.summary import DigestSummary, ModelSummary
from ricordo.compaction.truncate import Truncate
from ricordo.harness.offline import OFFLINE
from ricordo.models import ChatModel
from ricordo.models.provider import load_model
from ricordo.runtime.assembly import Workspace
from ricordo.runtime.settings import Settings

__all__ = ["Reductions", "evictions", "shrinkers"]

_LOG = logging.getLogger("ricordo.agent")


@dataclass(frozen=True, kw_only=True)
class Reductions:
    """The configuration of each reduction; None is off."""

    compaction: CompactionConfig | None = None
    tool_result_eviction: ToolResultEvictionConfig | None = None
    truncate_args: TruncateArgsConfig | None = None

    def recommended(self, settings: Settings, window: int | None) -> "Reductions":
        """Return these with all that is None taken from `settings`, and at its default where those say nothing.

        What the settings switch off stays off. `window` is the model's, in tokens: compaction follows it when known.
        """
        compaction, evict, truncate = self.compaction, self.tool_result_eviction, self.truncate_args
        if compaction is None and not _is_off(settings, "compaction"):
            compaction = settings.compaction or (
                CompactionConfig.classic() if window is None else CompactionConfig.dynamic()
            )
        if evict is None and not _is_off(settings, "tool_result_eviction"):
            evict = settings.tool_result_eviction or ToolResultEvictionConfig.defaults()
        within = compaction is not None and compaction.truncate_args is not None
        if truncate is None and not within and not _is_off(settings, "truncate_args"):
            truncate = settings.truncate_args or TruncateArgsConfig()
        return Reductions(compaction=compaction, tool_result_eviction=evict, truncate_args=truncate)


def evictions(config: ToolResultEvictionConfig | None, workspace: Workspace | None) -> list[Strategy]:
    """Return what moves wide results to files; nothing without files."""
    if config is None or workspace is None:
        return []
    return [Evict(config, workspace.place.files, workspace.place.redactor)]


async def shrinkers(
    on: Reductions, model: ChatModel, *, before_summary: Hook | None = None, base_url: str | None = None
) -> Sequence[Strategy]:
    """Return what makes the window smaller after eviction, in its order; `model` is the agent's."""
    config = on.compaction
    found: list[Strategy] = []
    truncate = on.truncate_args or (config.truncate_args if config else None)
    if truncate:
        found.append(Truncate(truncate))
    if config:
        summary = await _summary(config, model, base_url)
        found.append(Compact(config, summary, before_summary=before_summary))
    return found


async def _summary(config: CompactionConfig, model: ChatModel, base_url: str | None) -> Summarize:
    """Return who writes summaries: the model that is configured for it, else the agent's own, else the rules."""
    if config.model == OFFLINE or (config.model is None and model.name == OFFLINE):
        return DigestSummary()
    if isinstance(config.model, str):
        alike = config.model.partition(":")[0] == model.name.partition(":")[0]
        model = await run_sync(partial(load_model, config.model, base_url=base_url if alike else None))
    elif config.model is not None:
        model = config.model
    return ModelSummary(model, config, fell_back=_tell)


def _tell(why: str) -> None:
    _LOG.warning("A summary was made by rules, because the model wrote none: %s", why)


def _is_off(settings: Settings, name: str) -> bool:
    return getattr(settings, name) is None and name in settings.origins
