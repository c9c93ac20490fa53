"""When a job is due again, and the maintenance cycle: expire, consolidate, prune, reindex, in this order.

Invariant: a step that fails is recorded, and the others run.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from datetime import datetime, timedelta
from typing import TypeAlias

from ricordo.events import Emitter, Stage
from ricordo.lazy import dataclass
from ricordo.scope import Scope

__all__ = ["ConsolidationDue", "CycleStep", "FlushSignal", "MaintenanceCycle", "StepResult", "at_most_every", "backoff"]


_FIRST, _LONGEST = timedelta(seconds=30), timedelta(hours=1)


@dataclass(frozen=True, kw_only=True)
class FlushSignal:
    """A flush wrote `entries` entries at `now`; `last` is when the last consolidation ended, None if unknown."""

    now: datetime
    last: datetime | None
    entries: int


ConsolidationDue: TypeAlias = Callable[[FlushSignal], bool]
"""Decides whether a flush that wrote entries requests a consolidation."""


def at_most_every(pause: timedelta) -> ConsolidationDue:
    """Return a decision that ignores signals earlier than `pause` after the last consolidation."""
    return lambda signal: signal.entries > 0 and (signal.last is None or signal.now - signal.last >= pause)


def backoff(attempts: int) -> timedelta:
    """Return the pause after a failed attempt: 30 seconds after the first, then doubled each time, at most an hour.

    `attempts` is at least 1.
    """
    return min(_FIRST * (1 << min(max(attempts, 1) - 1, 16)), _LONGEST)


@dataclass(frozen=True, kw_only=True)
class CycleStep:
    """One step: its name and its function, which returns its counts.

    `stage` is the stage of its events; None if it emits its own events.
    """

    name: str
    act: Callable[[], Awaitable[Mapping[str, int]]]
    stage: Stage | None = None


@dataclass(frozen=True, kw_only=True)
class StepResult:
    """How a step ended: its counts, and the type of the error if it failed."""

    name: str
    counts: Mapping[str, int] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class MaintenanceCycle:
    """The steps of one workspace, in order."""

    steps: Sequence[CycleStep]
    emitter: Emitter
    scope: Scope

    async def __call__(self) -> Mapping[str, int]:
        """Run all steps, and return how many succeeded and failed, and their counts."""
        done = await self.run()
        failed = sum(bool(each.error) for each in done)
        counts = {f"{each.name}.{name}": count for each in done for name, count in each.counts.items()}
        return {"steps": len(done) - failed, "failed": failed, **counts}

    async def run(self) -> list[StepResult]:
        """Run every step and return their results."""
        with self.emitter.stage("maintain", self.scope) as progress:
            done = [await self._run_step(step) for step in self.steps]
            failed = [each.name for each in done if each.error]
            progress.counts.update(steps=len(done), failed=len(failed))
            progress.failed = f"failed: {', '.join(failed)}" if failed else None
        return done

    async def _run_step(self, step: CycleStep) -> StepResult:
        try:
            if step.stage is None:
                return StepResult(name=step.name, counts=await step.act())
            with self.emitter.stage(step.stage, self.scope) as progress:
                counts = await step.act()
                progress.counts.update(counts)
        except Exception as error:  # noqa: BLE001  (what is wrong in one step keeps no other from running)
            return StepResult(name=step.name, error=type(error).__name__)
        return StepResult(name=step.name, counts=counts)
