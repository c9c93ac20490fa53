"""Events that report what happened, without any content.

Every stage reports that it started, finished, was skipped or failed, with names, counts and durations, so an event can
go to any log. If the OpenTelemetry API is installed, stages with a name in the GenAI conventions become spans. The
names are constants here because the published package lacks them.

Invariants: an event holds no content. A sink that fails does not fail the work it observes.
"""

import logging
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from datetime import datetime
from typing import TYPE_CHECKING, Literal, TypeAlias

from ricordo.clock import Clock
from ricordo.lazy import dataclass
from ricordo.scope import Scope

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

__all__ = [
    "GENAI_OPERATIONS",
    "Emitter",
    "Event",
    "EventSink",
    "Stage",
    "StageProgress",
    "Status",
    "count_refusals",
    "current_trace_id",
    "record_span",
]


Stage = Literal[
    "open",
    "ingest",
    "record",
    "extract",
    "save",
    "index",
    "scan",
    "select",
    "inject",
    "recall",
    "answer",
    "preamble",
    "forget",
    "undo",
    "recover",
    "turn",
    "model",
    "tool",
    "evict",
    "clear",
    "dedupe",
    "truncate",
    "compact",
    "drop",
    "slide",
    "none",
    "remove",
    "edit",
    "overflow",
    "expand",
    "orient",
    "gather",
    "consolidate",
    "drain",
    "maintain",
    "expire",
    "prune",
    "summarize",
    "task",
]
Status = Literal["started", "finished", "skipped", "failed"]


@dataclass(frozen=True, kw_only=True)
class Event:
    """One event at the time `at`; `seconds` is the duration of the stage, `counts` the numbers of items it handled.

    `stage` is one of `Stage`, or the act of a strategy that is not part of this package.
    """

    stage: str
    status: Status
    at: datetime
    scope: Scope | None = None
    seconds: float | None = None
    reason: str | None = None
    error: str | None = None
    counts: Mapping[str, int] = field(default_factory=dict)


EventSink: TypeAlias = Callable[[Event], None]


_CANCELLATIONS = frozenset({"CancelledError", "Cancelled"})
"""The names of the exceptions with which asyncio and trio cancel; this module imports neither library."""
_LOG = logging.getLogger("ricordo.events")


@dataclass
class StageProgress:
    """The counts of a running stage, and the reason for its outcome.

    `skipped` is the reason why the stage did nothing, `failed` the reason why it failed without an exception; `reason`
    explains any other outcome. All are texts of the program and never contain user content.
    """

    counts: dict[str, int] = field(default_factory=dict)
    skipped: str | None = None
    failed: str | None = None
    reason: str | None = None


class Emitter:
    """Sends events to every sink, in the order of the sinks."""

    def __init__(self, clock: Clock, sinks: tuple[EventSink, ...] = ()) -> None:
        """Set the time of events from `clock` and send them to `sinks`."""
        self._clock = clock
        self._sinks = sinks

    @contextmanager
    def stage(self, stage: Stage, scope: Scope | None = None) -> Iterator[StageProgress]:
        """Report the start of `stage` and its outcome: finished, skipped with the reason, or failed with the reason.

        A cancelled stage has failed with the reason `cancelled`.
        """
        progress = StageProgress()
        began = time.perf_counter()
        self._emit(stage, "started", scope)
        error: BaseException | None = None
        try:
            yield progress
        except BaseException as raised:
            error = raised
            raise
        finally:
            self._report_end(stage, scope, progress, time.perf_counter() - began, error)

    def report_failure(self, stage: Stage, scope: Scope | None, error: BaseException, reason: str) -> None:
        """Report that `stage` failed before it began."""
        self._emit(stage, "failed", scope, error=type(error).__name__, reason=reason)

    def _report_end(
        self, stage: Stage, scope: Scope | None, progress: StageProgress, seconds: float, error: BaseException | None
    ) -> None:
        status, reason = _stage_outcome(progress, error)
        self._emit(
            stage,
            status,
            scope,
            seconds=seconds,
            reason=reason,
            error=type(error).__name__ if error else None,
            counts=progress.counts,
        )

    def _emit(
        self,
        stage: Stage,
        status: Status,
        scope: Scope | None,
        *,
        seconds: float | None = None,
        reason: str | None = None,
        error: str | None = None,
        counts: Mapping[str, int] | None = None,
    ) -> None:
        event = Event(
            stage=stage,
            status=status,
            at=self._clock.now(),
            scope=scope,
            seconds=seconds,
            reason=reason,
            error=error,
            counts=dict(counts or {}),
        )
        for sink in self._sinks:
            _deliver(sink, event)


def _stage_outcome(progress: StageProgress, error: BaseException | None) -> tuple[Status, str | None]:
    if error is not None:
        return "failed", "cancelled" if type(error).__name__ in _CANCELLATIONS else progress.reason
    if progress.failed:
        return "failed", progress.failed
    return ("skipped", progress.skipped) if progress.skipped else ("finished", progress.reason)


def _deliver(sink: EventSink, event: Event) -> None:
    try:
        sink(event)
    except Exception as error:  # noqa: BLE001  (a listener's error is not the work's error)
        _LOG.warning("An event sink failed on %s %s: %s", event.stage, event.status, type(error).__name__)


GENAI_OPERATIONS: Mapping[str, str] = {
    "save": "create_memory",
    "recall": "search_memory",
    "answer": "search_memory",
    "forget": "delete_memory",
    "undo": "update_memory",
    "extract": "upsert_memory",
    "open": "create_memory_store",
}
"""The `gen_ai.operation.name` of each stage that becomes a span."""


def current_trace_id() -> str:
    """Return the id of the current trace, 32 hex digits; empty if no trace is recorded or the API is missing."""
    # code that records a trace has imported the API
    api = sys.modules.get("opentelemetry.trace")
    context = api.get_current_span().get_span_context() if api else None
    return f"{context.trace_id:032x}" if context and context.is_valid else ""


def record_span(event: Event) -> None:
    """Turn the end of a stage in `GENAI_OPERATIONS` into a span, in a process that has imported the API."""
    # code that records spans has imported the API; most processes do not, and importing it takes time
    api = sys.modules.get("opentelemetry.trace")
    operation = GENAI_OPERATIONS.get(event.stage)
    if api is None or operation is None or event.status == "started":
        return
    tracer: Tracer = api.get_tracer("ricordo")
    end = int(event.at.timestamp() * 1e9)
    span = tracer.start_span(operation, start_time=end - int((event.seconds or 0.0) * 1e9))
    span.set_attribute("gen_ai.operation.name", operation)
    span.set_attribute("ricordo.status", event.status)
    if event.error:
        span.set_attribute("error.type", event.error)
    if event.scope and event.scope.session:
        span.set_attribute("gen_ai.conversation.id", event.scope.session)
    for name, count in event.counts.items():
        key = "gen_ai.memory.record.count" if name == "entries" else f"ricordo.{name}"
        span.set_attribute(key, count)
    span.end(end_time=end)


def count_refusals(reasons: Sequence[str]) -> dict[str, int]:
    """Return how many proposals of a model were refused, and how many for each reason; empty if none was."""
    by_reason = {f"refused: {reason}": count for reason, count in sorted(Counter(reasons).items())}
    return {"refused": len(reasons), **by_reason} if reasons else {}
