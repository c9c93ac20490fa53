"""The cycle of maintenance: expire, consolidate, prune, reindex, always in this order.

Invariant: a step that fails is recorded, and the others run.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ricordo.events import Emitter, Stage
from ricordo.scopes import Scope

__all__ = ["MaintenanceCycle", "CycleStep", "StepResult"]


@dataclass(frozen=True, kw_only=True)
class CycleStep:
    """One step: its name, and what it does, which returns what it counted.

    `stage` is that of its events; None for one that reports itself.
    """

    name: str
    act: Callable[[], Awaitable[Mapping[str, int]]]
    stage: Stage | None = None


@dataclass(frozen=True, kw_only=True)
class StepResult:
    """How a step ended: what it counted, and the type of the error of one that failed."""

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
        """Run, and return how many steps were done, how many failed, and what they counted."""
        done = await self.run()
        failed = sum(bool(each.error) for each in done)
        counts = {f"{each.name}.{name}": count for each in done for name, count in each.counts.items()}
        return {"steps": len(done) - failed, "failed": failed, **counts}

    async def run(self) -> list[StepResult]:
        """Run every step and return how each ended."""
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
