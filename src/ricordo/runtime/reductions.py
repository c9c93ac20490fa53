"""Reductions of an agent: which are on, by whom, and the strategies that carry them out, in their order."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from types import NoneType

from anyio.to_thread import run_sync

from ricordo.clock import Clock, SystemClock
from ricordo.compaction.clear import ClearResults
from ricordo.compaction.compact import Compact, Hook, FindOriginal, RereadFile
from ricordo.compaction.config import (
    ClearResultsConfig,
    CompactionConfig,
    DedupeReadsConfig,
    ToolResultEvictionConfig,
    TruncateArgsConfig,
)
from ricordo.compaction.contract import ExtractionHandover, Strategy, Summarizer
from ricordo.compaction.dedupe import DedupeReads
from ricordo.compaction.drop import DropGroups
from ricordo.compaction.evict import READ_TOOL, EvictResults
from ricordo.compaction.summary import DigestSummarizer, ModelSummarizer
from ricordo.compaction.truncate import TruncateArgs
from ricordo.files import FileStore
from ricordo.guard import Redactor
from ricordo.harness.offline import OFFLINE
from ricordo.models import ChatModel
from ricordo.models.provider import load_model
from ricordo.runtime.given import check_type
from ricordo.runtime.settings import Settings

__all__ = ["CompactionPipelines", "ReductionOptions", "CompactionContext"]

_LOG = logging.getLogger("ricordo.agent")
_DEFAULT_COMPACTION = CompactionConfig()
"""What a person's wish for a smaller window sets going where compaction is off."""


_CONFIG_TYPES: Mapping[str, type] = {
    "tool_result_eviction": ToolResultEvictionConfig, "clear_results": ClearResultsConfig,
    "dedupe_reads": DedupeReadsConfig, "truncate_args": TruncateArgsConfig, "compaction": CompactionConfig,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ReductionOptions:
    """The configuration of each reduction; None is off. `strategies` take the place of all of them, unless None."""

    tool_result_eviction: ToolResultEvictionConfig | None = None
    clear_results: ClearResultsConfig | None = None
    dedupe_reads: DedupeReadsConfig | None = None
    truncate_args: TruncateArgsConfig | None = None
    compaction: CompactionConfig | None = None
    strategies: tuple[Strategy, ...] | None = None

    def __post_init__(self) -> None:
        """Refuse what is no configuration of its reduction. Raises: InvalidSetting."""
        for name, kind in _CONFIG_TYPES.items():
            check_type(name, getattr(self, name), kind, NoneType, words=f"a {kind.__name__} or None")

    @property
    def overflow_retries(self) -> int:
        """How often a request that the provider refused for its size is made again; not at all without reductions."""
        if self.strategies is not None:
            return _DEFAULT_COMPACTION.overflow_retries
        return self.compaction.overflow_retries if self.compaction else 0

    @property
    def is_any_on(self) -> bool:
        """Whether any of them is on."""
        return any(getattr(self, each.name) for each in fields(self))

    def with_defaults(self, settings: Settings, window: int | None) -> "ReductionOptions":
        """Return these with all that is None taken from `settings`, and at its default where those say nothing.

        What the settings switch off stays off. `window` is the model's, in tokens: compaction follows it when known.
        """
        compaction, evict, truncate = self.compaction, self.tool_result_eviction, self.truncate_args
        clear, dedupe = self.clear_results, self.dedupe_reads
        if compaction is None and not _is_switched_off(settings, "compaction"):
            compaction = settings.compaction or _default_compaction(window)
        if evict is None and not _is_switched_off(settings, "tool_result_eviction"):
            evict = settings.tool_result_eviction or ToolResultEvictionConfig.defaults()
        if clear is None and not _is_switched_off(settings, "clear_results"):
            clear = settings.clear_results or _default_clear_results(window)
        if dedupe is None and not _is_switched_off(settings, "dedupe_reads"):
            dedupe = settings.dedupe_reads or DedupeReadsConfig()
        within = compaction is not None and compaction.truncate_args is not None
        if truncate is None and not within and not _is_switched_off(settings, "truncate_args"):
            truncate = settings.truncate_args or _default_truncate_args(window)
        return ReductionOptions(
            tool_result_eviction=evict,
            clear_results=clear,
            dedupe_reads=dedupe,
            truncate_args=truncate,
            compaction=compaction,
            strategies=self.strategies,
        )


@dataclass(frozen=True, kw_only=True)
class CompactionContext:
    """What the strategies of one session work with.

    Wide results go to `files`, none without them. What leaves the window is learned from by `handover`, in the request for
    its summary, or `before_drop`, from the inbox. `is_recorded` says that what is said is kept, and `find_original` gives a message
    back as it was, and `reread` reads a file again. `prepare_model` guards and counts what a model for summaries is asked
    for. `resolve_address` says where it is reached, as `Settings.resolve_address` does. `reader_tool` is the tool that reads what went to a
    file.
    """

    redactor: Redactor
    files: FileStore | None = None
    before_drop: Hook | None = None
    handover: ExtractionHandover | None = None
    is_recorded: bool = True
    find_original: FindOriginal | None = None
    reread: RereadFile | None = None
    prepare_model: Callable[[ChatModel], ChatModel] | None = None
    resolve_address: Callable[..., str | None]
    reader_tool: str = READ_TOOL
    clock: Clock = field(default_factory=SystemClock)


@dataclass(frozen=True, kw_only=True)
class CompactionPipelines:
    """The strategies of a session: for each request, for a person's wish, and for trying what that would do.

    `on_overflow` are for a request that the provider refused for its size. `dry_run` writes to no file, asks no model and
    tells nobody.
    """

    per_request: tuple[Strategy, ...]
    on_overflow: tuple[Strategy, ...]
    on_demand: tuple[Strategy, ...]
    dry_run: tuple[Strategy, ...]

    @classmethod
    async def create(
        cls, on: ReductionOptions, model: ChatModel, around: CompactionContext, scratch: FileStore
    ) -> "CompactionPipelines":
        """Return what `on` asks for, around `model`, the agent's; trials write to `scratch`."""
        if on.strategies is not None:
            own = on.strategies
            return cls(per_request=own, on_overflow=(*own, DropGroups(_DEFAULT_COMPACTION)), on_demand=own, dry_run=own)
        config = on.compaction or _DEFAULT_COMPACTION
        summary = await _choose_summary(config, model, around)
        written = isinstance(summary, ModelSummarizer)
        compact = Compact(
            config,
            summary,
            before_summary=around.before_drop,
            handover=around.handover if written else None,
            recorded=around.is_recorded,
            original=around.find_original,
            reread=around.reread,
        )
        rungs = [
            *_lossless_strategies(on, around.files, around.redactor, around.reader_tool),
            compact,
            DropGroups(config),
        ]
        plain = [
            *_lossless_strategies(on, scratch, around.redactor, around.reader_tool),
            Compact(config, DigestSummarizer(), reread=around.reread),
            DropGroups(config),
        ]
        each = tuple(rungs if on.compaction else rungs[:-2])
        return cls(per_request=each, on_overflow=each, on_demand=tuple(rungs), dry_run=tuple(plain))


def _default_compaction(window: int | None) -> CompactionConfig:
    """Return `dynamic`, with less kept free in a window of which its 20,000 tokens are more than a quarter."""
    if window is None:
        return CompactionConfig.classic()
    config = CompactionConfig.dynamic()
    return replace(config, reserved=min(config.reserved, max(1, window // 4)))


def _default_clear_results(window: int | None) -> ClearResultsConfig:
    """Return the defaults, which begin before a summary does: at half of a window that is small for them."""
    config = ClearResultsConfig()
    if window is None:
        return config
    return replace(
        config,
        trigger_tokens=min(config.trigger_tokens, max(1, window // 2)),
        min_tokens=min(config.min_tokens, window // 16),
    )


def _default_truncate_args(window: int | None) -> TruncateArgsConfig:
    config = TruncateArgsConfig()
    return config if window is None else replace(config, trigger_tokens=min(config.trigger_tokens, max(1, window // 2)))


def _lossless_strategies(
    on: ReductionOptions, files: FileStore | None, redactor: Redactor, reader: str
) -> Sequence[Strategy]:
    """Return what only shortens messages: each of them can be read whole again."""
    within = on.compaction.truncate_args if on.compaction else None
    truncate = on.truncate_args or within
    evict = on.tool_result_eviction
    return [
        *([EvictResults(evict, files, redactor, reader=reader)] if evict and files else []),
        *([ClearResults(on.clear_results)] if on.clear_results else []),
        *([DedupeReads(on.dedupe_reads)] if on.dedupe_reads else []),
        *([TruncateArgs(truncate)] if truncate else []),
    ]


async def _choose_summary(config: CompactionConfig, model: ChatModel, around: CompactionContext) -> Summarizer:
    """Return who writes summaries: the model that is configured for it, else the agent's own, else the rules."""
    if config.model == OFFLINE or (config.model is None and model.name == OFFLINE):
        return DigestSummarizer()
    if isinstance(config.model, str):
        address = around.resolve_address(config.model, setting="compaction.base_url", own=config.base_url)
        model = await run_sync(partial(load_model, config.model, base_url=address, **asdict(config.model_settings)))
    elif config.model is not None:
        model = config.model
    model = around.prepare_model(model) if around.prepare_model else model
    return ModelSummarizer(model, config, fell_back=_warn_of_fallback, clock=around.clock, redactor=around.redactor)


def _warn_of_fallback(why: str) -> None:
    _LOG.warning("A summary was made by rules, because the model wrote none: %s", why)


def _is_switched_off(settings: Settings, name: str) -> bool:
    return getattr(settings, name) is None and name in settings.origins
