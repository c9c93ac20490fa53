"""Consolidation as a job: run it, report it, and let the index take in what it wrote."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from ricordo.consolidation.consolidate import Consolidated, Consolidator
from ricordo.events import Emitter
from ricordo.scopes import Scope

__all__ = ["Curation"]


@dataclass(frozen=True, kw_only=True)
class Curation:
    """Carries out consolidations of one workspace; `refresh` lets its index look at what changed."""

    consolidator: Consolidator
    refresh: Callable[[], Awaitable[object]]
    emitter: Emitter
    scope: Scope

    async def __call__(self) -> Mapping[str, int]:
        """Consolidate, as whoever put the job has decided that it is time, and return what was counted."""
        return _counts(await self.run(force=True))

    async def run(self, *, force: bool) -> Consolidated:
        """Consolidate, with `force` however recent the last run is. Raises as `Consolidator.consolidate`."""
        with self.emitter.stage("consolidate", self.scope) as progress:
            done = await self.consolidator.consolidate(force=force)
            progress.counts.update(_counts(done))
            progress.skipped = done.skipped or None
            if done.change_id:
                await self.refresh()
            return done


def _counts(done: Consolidated) -> dict[str, int]:
    return {
        "entries": done.read,
        "kept": done.kept,
        "merged": done.merged,
        "superseded": done.superseded,
        "left": done.left,
    }
