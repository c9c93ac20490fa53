"""Consolidation as a job: run it as a task that can be seen and stopped, and let the index take in what it wrote."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from ricordo.clock import Clock, IdSource
from ricordo.consolidation.consolidate import CONSOLIDATION_AUTHOR, ConsolidationResult, Consolidator
from ricordo.errors import TaskCancelled
from ricordo.events import Emitter
from ricordo.maintenance.turns import TurnActivity
from ricordo.scopes import Scope
from ricordo.tasks import ReportProgress, Task, TaskStore
from ricordo.tasks.keeping import track_task

__all__ = ["TASK_STOPPED", "ConsolidationJob"]

TASK_STOPPED = "it was stopped"
_TASK_TITLE = "consolidating what was learned"


@dataclass(kw_only=True)
class ConsolidationJob:
    """Carries out consolidations of one workspace, each of them a task of type `dream` in `tasks`.

    `refresh` lets the index of the workspace look at what changed, `turns` tells when somebody is at work. With
    `holds_proposals` what nobody asked for waits until somebody approves of it. `author` is whose act a job is.
    """

    consolidator: Consolidator
    refresh: Callable[[], Awaitable[object]]
    tasks: TaskStore
    clock: Clock
    ids: IdSource
    emitter: Emitter
    scope: Scope
    turns: TurnActivity = field(default_factory=TurnActivity)
    holds_proposals: bool = False
    author: str = CONSOLIDATION_AUTHOR
    _uses_rules_only: bool = field(default=False, init=False)

    def use_rules_only(self) -> None:
        """Ask no model and begin no dream from now on: what is to be done is done by the rules, at once."""
        self._uses_rules_only = True

    async def __call__(self) -> Mapping[str, int]:
        """Consolidate, as whoever put the job has decided that it is time, and return what was counted.

        All curated memory is read anew when it is time for that too.
        """
        # a job does not begin while a turn runs
        await self.turns.yield_policy().pause()
        quiet, sessions = self.turns.quiet_seconds, self.turns.sessions
        deep = not self._uses_rules_only and not await self.consolidator.find_reason_against_dream(
            quiet=quiet, without=sessions
        )
        return _job_counts(await self.run(force=True, deep=deep, hold=self.holds_proposals, who=self.author))

    async def run(
        self, *, force: bool, deep: bool = False, hold: bool = False, who: str = CONSOLIDATION_AUTHOR
    ) -> ConsolidationResult:
        """Consolidate, with `force` however recent the last run is; skipped when its task was stopped.

        With `deep` all curated memory is read anew, with `hold` what is proposed waits until it is approved of. `who`
        asked for it, as history is to say.

        Raises as `Consolidator.consolidate`, and `StorageError` when the task can't be recorded.
        """
        done = ConsolidationResult(skipped=TASK_STOPPED)

        async def work(report: ReportProgress) -> str:
            nonlocal done
            done = await self._consolidate(report, force=force, deep=deep, hold=hold, who=who)
            return done.skipped or f"{done.kept} kept, {done.merged} merged, {done.superseded} superseded"

        now = self.clock.now()
        task = Task(id=self.ids.new(), type="dream", title=_TASK_TITLE, created=now, seen=now)
        try:
            await track_task(self.tasks, task, work, clock=self.clock, emitter=self.emitter, scope=self.scope)
        except TaskCancelled:
            # a person's wish, which is met: whoever put the job need not try again
            return done
        return done

    async def approve(self, *, who: str = CONSOLIDATION_AUTHOR) -> ConsolidationResult:
        """Carry out the proposal that waits, which `who` approves of. Raises as `Consolidator.approve`."""
        done = await self.consolidator.approve(who=who)
        if done.change_id:
            await self.refresh()
        return done

    async def _consolidate(
        self, report: ReportProgress, *, force: bool, deep: bool, hold: bool, who: str
    ) -> ConsolidationResult:
        asks = not self._uses_rules_only
        done = await self.consolidator.consolidate(force=force, deep=deep, asks=asks, hold=hold, who=who, report=report)
        if done.change_id:
            await self.refresh()
        return done


def _job_counts(done: ConsolidationResult) -> dict[str, int]:
    return {
        "entries": done.read,
        "kept": done.kept,
        "merged": done.merged,
        "superseded": done.superseded,
        "left": done.left,
        "retired": done.retired,
    }
