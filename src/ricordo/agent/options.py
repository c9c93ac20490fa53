"""The options of an agent, its reductions, and the pipelines that run the reductions."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from types import NoneType
from typing import Literal, TypeAlias, get_args

from anyio.to_thread import run_sync

from ricordo.agent.contract import StepMiddleware
from ricordo.agent.loop import TurnLimits
from ricordo.agent.session_closing import ClosingMode
from ricordo.agent.sub_agents import RemoteAgent, SubAgent, check_max_iters
from ricordo.agent.tools import ApprovalHandler, Tool
from ricordo.clock import Clock, SystemClock
from ricordo.context.config import (
    ClearResultsConfig,
    CompactionConfig,
    DedupeReadsConfig,
    ToolResultEvictionConfig,
    TruncateArgsConfig,
)
from ricordo.context.contract import ExtractionHandover, Strategy, Summarizer
from ricordo.context.strategies.clear import ClearResults
from ricordo.context.strategies.dedupe import DedupeReads
from ricordo.context.strategies.drop import DropGroups
from ricordo.context.strategies.evict import READ_TOOL, EvictResults
from ricordo.context.strategies.summarize import Compact, FindOriginal, Hook, RereadFile
from ricordo.context.strategies.truncate import TruncateArgs
from ricordo.context.summary.summarizers import DigestSummarizer, ModelSummarizer
from ricordo.errors import InvalidScope, InvalidSetting
from ricordo.events import EventSink
from ricordo.extraction.config import FlushConfig
from ricordo.guard import Redactor, has_secret
from ricordo.guard.permissions import PermissionRule
from ricordo.models import ChatModel, ModelSettings
from ricordo.models.offline import OFFLINE
from ricordo.models.provider import load_model, validate_model_name
from ricordo.runtime.settings import Settings
from ricordo.runtime.validation import check_type, short_repr
from ricordo.scope import Scope
from ricordo.storage import FileStore
from ricordo.storage.disk import Disk
from ricordo.stores import Store
from ricordo.stores.addresses import parse_address
from ricordo.workspace.agent_state import StateStore, WorkState

__all__ = [
    "AgentOptions",
    "CompactionContext",
    "CompactionPipelines",
    "ParentLink",
    "PromptRefresh",
    "ReductionOptions",
]


_LOG = logging.getLogger("ricordo.agent")
_DEFAULT_COMPACTION = CompactionConfig()
"""The configuration for a compaction on a person's request when compaction is off."""


_CONFIG_TYPES: Mapping[str, type] = {
    "tool_result_eviction": ToolResultEvictionConfig, "clear_results": ClearResultsConfig,
    "dedupe_reads": DedupeReadsConfig, "truncate_args": TruncateArgsConfig, "compaction": CompactionConfig,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ReductionOptions:
    """The configuration of each reduction; None is off. `strategies` replaces all of them, unless None."""

    tool_result_eviction: ToolResultEvictionConfig | None = None
    clear_results: ClearResultsConfig | None = None
    dedupe_reads: DedupeReadsConfig | None = None
    truncate_args: TruncateArgsConfig | None = None
    compaction: CompactionConfig | None = None
    strategies: tuple[Strategy, ...] | None = None

    def __post_init__(self) -> None:
        """Check the type of each configuration. Raises: InvalidSetting."""
        for name, kind in _CONFIG_TYPES.items():
            check_type(name, getattr(self, name), kind, NoneType, words=f"a {kind.__name__} or None")

    @property
    def overflow_retries(self) -> int:
        """How often to retry a request that the provider refused for its size; 0 without reductions."""
        if self.strategies is not None:
            return _DEFAULT_COMPACTION.overflow_retries
        return self.compaction.overflow_retries if self.compaction else 0

    @property
    def is_any_on(self) -> bool:
        """Whether any reduction is on."""
        return any(getattr(self, each.name) for each in fields(self))

    def with_defaults(self, settings: Settings, window: int | None) -> "ReductionOptions":
        """Return a copy with each None replaced from `settings`, or by its default if they do not set it.

        A reduction that the settings turn off stays off. `window` is the model's, in tokens; None if unknown.
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
    """The dependencies of a session's strategies.

    Large results are written to `files`; without it none are. Facts are extracted from messages that leave the window
    by `handover`, in the request for the summary, or by `before_drop`, from the inbox. `is_recorded` says whether
    messages are recorded, `find_original` returns a message in its original form, and `reread` reads a file again.
    `prepare_model` guards and meters the model for summaries. `resolve_address` returns its URL, as
    `Settings.resolve_address` does. `reader_tool` is the tool that reads results written to a file.
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
    """The strategies of a session: for each request, on a person's request, and for a dry run.

    `on_overflow` is for a request that the provider refused for its size. `dry_run` writes no file, calls no model and
    emits no event.
    """

    per_request: tuple[Strategy, ...]
    on_overflow: tuple[Strategy, ...]
    on_demand: tuple[Strategy, ...]
    dry_run: tuple[Strategy, ...]

    @classmethod
    async def create(
        cls, on: ReductionOptions, model: ChatModel, around: CompactionContext, scratch: FileStore
    ) -> "CompactionPipelines":
        """Return the pipelines for the options `on` and the agent's `model`; dry runs write to `scratch`."""
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
    """Return `dynamic`, with a smaller reserve if its 20,000 tokens exceed a quarter of the window."""
    if window is None:
        return CompactionConfig.classic()
    config = CompactionConfig.dynamic()
    return replace(config, reserved=min(config.reserved, max(1, window // 4)))


def _default_clear_results(window: int | None) -> ClearResultsConfig:
    """Return the defaults, which start before a summary does; in a small window they start at half of it."""
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
    """Return the strategies that only shorten messages; each message can be read in full again."""
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
    """Return the summarizer: the model configured for it, else the agent's own model, else the rules."""
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


PromptRefresh: TypeAlias = Literal["session", "step"]
"""When changed memory enters the system prompt: with the next session or compaction, or with the next request."""


_BOOLEAN_OPTIONS = (
    "memory_tools", "memory_hooks", "session_tools", "incognito", "require_memory", "file_tools", "shell", "planning",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ParentLink:
    """The values a sub-agent gets from its parent session.

    `get_state` returns the parent's state, which also applies to the sub-agent; `middleware` wraps its requests.
    `has_tool` says whether the sub-agent gets a tool, by name. `inherit_reductions` completes its reductions from the
    parent's, for the sub-agent's own model.
    """

    get_state: Callable[[], WorkState]
    has_tool: Callable[[str], bool]
    inherit_reductions: Callable[[ReductionOptions], ReductionOptions]
    middleware: StepMiddleware


@dataclass(frozen=True, kw_only=True)
class AgentOptions:
    """The options of an agent; see `HarnessAgent` for each. With `recommended`, every reduction that is None is on.

    `parent` is set for a sub-agent. `trusted` vouches for the root.
    """

    model: str | ChatModel
    model_settings: ModelSettings | None = None
    scope: Scope
    root: Path | None = None
    store: str | Store | None = None
    session: str | None = None
    instructions: str | None = None
    tools: tuple[Tool, ...] = ()
    reductions: ReductionOptions = field(default_factory=ReductionOptions)
    recommended: bool = False
    memory_tools: bool = True
    opt_in_tools: tuple[str, ...] | None = None
    memory_hooks: bool = True
    session_tools: bool = True
    incognito: bool = False
    refresh: PromptRefresh = "session"
    require_memory: bool = False
    file_tools: bool = False
    shell: bool = False
    working_directory: Path | None = None
    approve: ApprovalHandler | None = None
    planning: bool = False
    sub_agents: tuple[SubAgent | RemoteAgent, ...] = ()
    permissions: tuple[PermissionRule, ...] = ()
    states: StateStore | None = None
    parent: ParentLink | None = None
    closing_summary: ClosingMode | None = None
    flush: FlushConfig | None = None
    max_iters: int | None = None
    turn_limits: TurnLimits | None = None
    on_event: EventSink | None = None
    settings: Settings | None = None
    trusted: bool = False
    clock: Clock | None = None
    disk: Disk | None = None

    def __post_init__(self) -> None:
        """Check the options: limits, types, model name, refresh, the address of the store, and no secrets in file
        names.
        """
        check_max_iters(self.max_iters)
        self._check_types()
        validate_model_name(self.model, None, self.model_settings)
        if isinstance(self.store, str):
            parse_address(self.store)
        if self.closing_summary not in {None, *get_args(ClosingMode)}:
            modes = ", ".join(get_args(ClosingMode))
            raise InvalidSetting(f"closing_summary is one of {modes}, not {self.closing_summary!r}.")
        if self.refresh not in get_args(PromptRefresh):
            raise InvalidSetting(f"refresh is {' or '.join(get_args(PromptRefresh))}, not {self.refresh!r}.")
        if any(map(has_secret, (*self.scope.parts().values(), self.session or ""))):
            raise InvalidScope("A part of the scope, or the session, holds a secret: files would be named after it.")

    def _check_types(self) -> None:
        for name in ("session", "instructions"):
            check_type(name, getattr(self, name), str, NoneType, words="a text or None")
        for name in _BOOLEAN_OPTIONS:
            check_type(name, getattr(self, name), bool, words="True or False")
        check_type("flush", self.flush, FlushConfig, NoneType, words="a FlushConfig or None")
        check_type("settings", self.settings, Settings, NoneType, words="a value such as `Settings.load()` or None")
        if not isinstance(self.model, str) and not hasattr(self.model, "complete"):
            named = "a name such as anthropic:claude-sonnet-5, or a ChatModel"
            raise InvalidSetting(f"model is {named}, not {short_repr(self.model)}.")
        check_type(
            "store", self.store, str, Store, NoneType, words="an address such as jsonl:./notes, an open store or None"
        )
