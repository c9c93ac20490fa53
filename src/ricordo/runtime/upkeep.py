"""Upkeep: what keeps a root in order in the background, put together: consolidation, the cycle of maintenance, tidying.

Without consolidation no ledger expires, as nothing of it was consolidated.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from ricordo.compaction.collect import Collected, collect
from ricordo.consolidation.consolidate import Consolidator
from ricordo.events import Emitter
from ricordo.maintenance.curation import Curation
from ricordo.maintenance.cycle import Cycle, CycleStep
from ricordo.maintenance.expire import expire
from ricordo.maintenance.plan import ConsolidationDue, not_within
from ricordo.maintenance.prune import prune
from ricordo.maintenance.retain import retain
from ricordo.runtime.settings import Settings
from ricordo.scopes import Scope
from ricordo.stores.place import Place
from ricordo.tasks import FileTasks
from ricordo.workspace.layout import ROOT_TASKS

__all__ = ["Upkeep", "kept_up"]


@dataclass(frozen=True, kw_only=True)
class Upkeep:
    """How one root is kept up; `curation` and `due` are None where consolidation is switched off."""

    cycle: Cycle
    interval: timedelta
    tidy: Callable[[], Awaitable[Collected]]
    curation: Curation | None = None
    due: ConsolidationDue | None = None


def kept_up(place: Place, scope: Scope, settings: Settings, emitter: Emitter) -> Upkeep:
    """Return how `place` is kept up as the settings say."""
    eviction, config = settings.tool_result_eviction, settings.consolidation
    path = eviction.eviction_path if eviction else None
    tidy = partial(collect, place.files, place.clock, eviction_path=path)
    curation = _curation(place, scope, settings, emitter)
    return Upkeep(
        cycle=Cycle(steps=_steps(place, settings, curation, tidy), emitter=emitter, scope=scope),
        interval=timedelta(hours=settings.maintenance.interval_hours),
        tidy=tidy,
        curation=curation,
        due=not_within(timedelta(seconds=config.min_gap)) if config else None,
    )


def _steps(
    place: Place, settings: Settings, curation: Curation | None, tidy: Callable[[], Awaitable[Collected]]
) -> list[CycleStep]:
    config, clock = settings.maintenance, place.clock

    async def expiring() -> Mapping[str, int]:
        days = config.daily_file_retention_days
        return {"files": len(await expire(place.files, place.changes, today=clock.today(), days=days))}

    async def pruning() -> Mapping[str, int]:
        pruned = await prune(place.files, place.changes, now=clock.now(), config=config)
        rules = settings.retention.read
        gone = await retain(place.files, place.changes, rules, now=clock.now(), key=place.key)
        by_rule = {"memories": len(gone.memories), "transcripts": len(gone.sessions)}
        return {**pruned.counts, **by_rule, "evicted": (await tidy()).count}

    async def reindexing() -> Mapping[str, int]:
        await place.index.refresh()
        return {}

    return [
        CycleStep(name="expire", stage="expire", act=expiring),
        *([CycleStep(name="consolidate", act=curation)] if curation else []),
        CycleStep(name="prune", stage="prune", act=pruning),
        CycleStep(name="reindex", stage="index", act=reindexing),
    ]


def _curation(place: Place, scope: Scope, settings: Settings, emitter: Emitter) -> Curation | None:
    config = settings.consolidation
    if config is None:
        return None
    consolidator = Consolidator(
        files=place.files,
        changes=place.changes,
        redactor=place.redactor,
        clock=place.clock,
        key=place.key,
        config=config,
    )
    return Curation(
        consolidator=consolidator,
        refresh=place.index.refresh,
        tasks=FileTasks(place.files, ROOT_TASKS, place.redactor),
        clock=place.clock,
        ids=place.ids,
        emitter=emitter,
        scope=scope,
    )
