"""Emitter: how a room reports a stage, in one `with` statement.

A sink that fails must not fail the work it watches; its error goes to the `ricordo` logger by type, without content.
"""

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from ricordo.clock import Clock
from ricordo.events.types import Event, EventSink, Stage, Status
from ricordo.scopes import Scope

__all__ = ["Emitter", "StageProgress"]

_CANCELLATIONS = frozenset({"CancelledError", "Cancelled"})
"""The names of the exceptions by which asyncio and trio cancel; neither is needed to report one."""

_LOG = logging.getLogger("ricordo.events")


@dataclass
class StageProgress:
    """What a running stage has to tell: how many of what it handled, and why it ended as it did.

    `skipped` is the reason why it did nothing, `failed` the reason why it could not, though nothing was raised;
    `reason` explains any other end. All are words of the program, never what somebody said.
    """

    counts: dict[str, int] = field(default_factory=dict)
    skipped: str | None = None
    failed: str | None = None
    reason: str | None = None


class Emitter:
    """Hands events to every sink, in the order the sinks were given."""

    def __init__(self, clock: Clock, sinks: tuple[EventSink, ...] = ()) -> None:
        """Stamp events with `clock` and send them to `sinks`."""
        self._clock = clock
        self._sinks = sinks

    @contextmanager
    def stage(self, stage: Stage, scope: Scope | None = None) -> Iterator[StageProgress]:
        """Report that `stage` started, and how it ended: finished, skipped with the reason, or failed and why.

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
        """Report that `stage` could not even begin."""
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
