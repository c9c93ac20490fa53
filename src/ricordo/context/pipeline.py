"""The compaction pipeline: the strategies of a session, and what runs them in order and logs them.

If a summary saves too little, dropping follows. After an overflow, texts that are still too long are truncated.

Invariants: strategies run in the given order, each once. A reduction that cannot be recorded is discarded, unless the
provider rejected the window. Logs contain numbers and never content.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, field, replace
from functools import partial
from typing import TypeAlias

from anyio.to_thread import run_sync

from ricordo.clock import Clock, SystemClock
from ricordo.concurrency import unwrap_cancellation
from ricordo.context.config import CompactionConfig
from ricordo.context.contract import (
    Act,
    ExtractionHandover,
    Reduction,
    Strategy,
    StrategyContext,
    StrategyReport,
    Summarizer,
    Window,
)
from ricordo.context.strategies import Reductions, create_strategies
from ricordo.context.strategies.drop import DropGroups
from ricordo.context.strategies.summarize import Compact, FindOriginal, Hook, RereadFile
from ricordo.context.strategies.truncate import shorten_messages
from ricordo.context.summary.summarizers import DigestSummarizer, ModelSummarizer
from ricordo.errors import RicordoError
from ricordo.lazy import dataclass
from ricordo.models import ChatModel
from ricordo.models.config import OFFLINE
from ricordo.models.provider import load_model
from ricordo.storage import FileStore

__all__ = [
    "CompactionContext",
    "CompactionPipelines",
    "LoggingStrategy",
    "RecordReduction",
    "RunStrategy",
    "run_pipeline",
    "run_silently",
]


RunStrategy: TypeAlias = Callable[[Strategy, Window], Awaitable[Reduction]]
"""Runs a strategy and may notify observers."""
RecordReduction: TypeAlias = Callable[[Window, Reduction], Awaitable[None]]
"""Durably records what restores the window as it was before a reduction with a handle. May raise `StorageError`; then
the window is not changed, unless the provider rejected it."""
_MAX_REMAINING_SHARE = 0.8
_MIN_ESCALATION_TOKENS = 2_000
"""If a summary was triggered by the number of messages and there are fewer tokens than this, dropping never follows:
the tokens it would save are worth less than the messages it would remove."""


async def run_silently(strategy: Strategy, window: Window) -> Reduction:
    """Run a strategy without notifying anyone."""
    return await strategy.reduce(window)


async def run_pipeline(
    window: Window,
    strategies: Sequence[Strategy],
    *,
    run: RunStrategy = run_silently,
    record_reduction: RecordReduction | None = None,
) -> tuple[Window, tuple[StrategyReport, ...]]:
    """Return the window after all strategies, and the report of each.

    If a summary leaves more than 80 % of the tokens, whatever triggered it, dropping follows down to that level
    regardless of its own thresholds. It truncates texts only where there were too many tokens. After an overflow, texts
    that are too long for the target are truncated at the end.
    """
    reports: list[StrategyReport] = []
    escalation_target: int | None = None
    trigger = "tokens"
    for strategy in strategies:
        step = strategy if record_reduction is None else _RecordingStrategy(strategy, record_reduction)
        escalates = strategy.action == "drop" and escalation_target is not None and not window.forced
        step_window = (
            replace(window, forced="progress", target=escalation_target, may_truncate=trigger == "tokens")
            if escalates
            else window
        )
        reduction = await run(step, step_window)
        reports.append(reduction.report)
        window = replace(window, messages=reduction.messages)
        if strategy.action == "compact":
            escalation_target, trigger = _escalation_target(reduction.report), reduction.report.trigger
    if window.forced == "overflow" and window.target is not None:
        messages = shorten_messages(window.messages, window.target, ratio=window.ratio)
        window = replace(window, messages=messages)
    return window, tuple(reports)


@dataclass(frozen=True)
class _RecordingStrategy:
    """A strategy whose reductions are recorded before they are returned."""

    strategy: Strategy
    record: RecordReduction

    @property
    def action(self) -> Act:
        return self.strategy.action

    async def reduce(self, window: Window) -> Reduction:
        reduction = await self.strategy.reduce(window)
        report = reduction.report
        if not report.handle or report.status != "done":
            return reduction
        try:
            with unwrap_cancellation():
                await self.record(window, reduction)
        except RicordoError as error:
            reason = f"it could not be noted: {type(error).__name__}"
            if window.forced == "overflow":
                note = "; ".join(filter(None, (report.note, f"{reason}, so it can't be undone")))
                return replace(reduction, report=replace(report, note=note))
            return Reduction(messages=window.messages, report=_failure_report(report, reason))
        return reduction


def _failure_report(report: StrategyReport, reason: str) -> StrategyReport:
    return replace(
        report,
        status="failed",
        reason=reason,
        messages_after=report.messages_before,
        tokens_after=report.tokens_before,
        handle="",
    )


def _escalation_target(report: StrategyReport) -> int | None:
    """Return the maximum number of tokens for the messages if the summary left more; else None."""
    if report.status != "done" or (report.trigger == "messages" and report.tokens_before < _MIN_ESCALATION_TOKENS):
        return None
    max_tokens = int(report.tokens_before * _MAX_REMAINING_SHARE)
    return max_tokens if report.tokens_after > max_tokens else None


_LEVELS = {"done": logging.INFO, "skipped": logging.DEBUG, "failed": logging.WARNING}


class LoggingStrategy:
    """Logs the reports of another strategy. See the module docstring."""

    def __init__(self, strategy: Strategy, *, log: logging.Logger | None = None) -> None:
        """Log to `log`, by default the logger `ricordo.compaction`.

        Finished steps are logged as info, failed steps as warnings, skipped steps as debug messages.
        """
        self._strategy = strategy
        self._log = log or logging.getLogger("ricordo.compaction")

    @property
    def action(self) -> Act:
        """The action of the strategy."""
        return self._strategy.action

    async def reduce(self, window: Window) -> Reduction:
        """Return the reduction of the strategy, and log its report."""
        try:
            reduction = await self._strategy.reduce(window)
        except Exception as error:
            self._log.warning("%s: failed with %s", self.action, type(error).__name__)
            raise
        report = reduction.report
        self._log.log(
            _LEVELS[report.status],
            "%s: %s, %s; %d to %d messages, %d to %d tokens",
            report.action,
            report.status,
            report.reason or "no reason given",
            report.messages_before,
            report.messages_after,
            report.tokens_before,
            report.tokens_after,
        )
        return reduction


_COMPACTION_LOG = logging.getLogger("ricordo.agent")
_DEFAULT_COMPACTION = CompactionConfig()
"""The configuration for a compaction on a person's request when compaction is off."""


@dataclass(frozen=True, kw_only=True)
class CompactionContext:
    """What a session offers its strategies and its summaries.

    Facts are extracted from messages that leave the window by `handover`, in the request for the summary, or by
    `before_drop`, from the inbox. `is_recorded` says whether messages are recorded, `find_original` returns a message
    in its original form, and `read_file_again` reads a file again. `prepare_model` guards and meters the model for
    summaries. `resolve_address` returns its URL, as `Settings.resolve_address` does.
    """

    strategies: StrategyContext
    before_drop: Hook | None = None
    handover: ExtractionHandover | None = None
    is_recorded: bool = True
    find_original: FindOriginal | None = None
    read_file_again: RereadFile | None = None
    prepare_model: Callable[[ChatModel], ChatModel] | None = None
    resolve_address: Callable[..., str | None]
    clock: Clock = field(default_factory=SystemClock)


@dataclass(frozen=True, kw_only=True)
class CompactionPipelines:
    """The strategies of a session: for each request, on a person's request, and for a dry run.

    `on_overflow` is for a request that the provider refused for its size; it is retried `overflow_retries` times, never
    without reductions. `dry_run` writes no file, calls no model and emits no event.
    """

    per_request: tuple[Strategy, ...]
    on_overflow: tuple[Strategy, ...]
    on_demand: tuple[Strategy, ...]
    dry_run: tuple[Strategy, ...]
    overflow_retries: int

    @classmethod
    def from_strategies(cls, strategies: Sequence[Strategy]) -> "CompactionPipelines":
        """Return pipelines of the program's own strategies, which replace all others."""
        config = _DEFAULT_COMPACTION
        return cls(
            per_request=(*strategies,),
            on_overflow=(*strategies, DropGroups(config)),
            on_demand=(*strategies,),
            dry_run=(*strategies,),
            overflow_retries=config.overflow_retries,
        )

    @classmethod
    async def create(
        cls, on: Reductions, model: ChatModel, context: CompactionContext, scratch: FileStore
    ) -> "CompactionPipelines":
        """Return the pipelines for the options `on` and the agent's `model`; dry runs write to `scratch`."""
        compaction = on.get("compaction")
        config = compaction or _DEFAULT_COMPACTION
        summary = await _choose_summary(config, model, context)
        uses_model = isinstance(summary, ModelSummarizer)
        compact = Compact(
            config,
            summary,
            before_summary=context.before_drop,
            handover=context.handover if uses_model else None,
            is_recorded=context.is_recorded,
            find_original=context.find_original,
            reread=context.read_file_again,
        )
        shortening = create_strategies(on, context.strategies)
        all_strategies = (*shortening, compact, DropGroups(config))
        dry_run = (
            *create_strategies(on, replace(context.strategies, files=scratch)),
            Compact(config, DigestSummarizer(), reread=context.read_file_again),
            DropGroups(config),
        )
        per_request = all_strategies if compaction else tuple(shortening)
        return cls(
            per_request=per_request,
            on_overflow=per_request,
            on_demand=all_strategies,
            dry_run=dry_run,
            overflow_retries=compaction.overflow_retries if compaction else 0,
        )


async def _choose_summary(config: CompactionConfig, model: ChatModel, context: CompactionContext) -> Summarizer:
    """Return the summarizer: the model configured for it, else the agent's own model, else the rules."""
    if config.model == OFFLINE or (config.model is None and model.name == OFFLINE):
        return DigestSummarizer()
    if isinstance(config.model, str):
        address = context.resolve_address(config.model, setting="compaction.base_url", own=config.base_url)
        model = await run_sync(partial(load_model, config.model, base_url=address, **asdict(config.model_settings)))
    elif config.model is not None:
        model = config.model
    model = context.prepare_model(model) if context.prepare_model else model
    redactor = context.strategies.redactor
    return ModelSummarizer(model, config, on_fallback=_warn_of_fallback, clock=context.clock, redactor=redactor)


def _warn_of_fallback(reason: str) -> None:
    _COMPACTION_LOG.warning("A summary was made by rules, because the model wrote none: %s", reason)
