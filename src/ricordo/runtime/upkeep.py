"""Upkeep: what keeps a root in order in the background, put together: consolidation, the cycle of maintenance, tidying.

Without consolidation no ledger expires, as nothing of it was consolidated.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from functools import partial

from anyio.to_thread import run_sync

from ricordo.audit.history_retention import retain_history
from ricordo.audit.usage import UsageLog
from ricordo.compaction.collect import Collected, collect
from ricordo.consolidation.asking import Adviser, ModelAdviser, rules_alone
from ricordo.consolidation.config import PREVIEW
from ricordo.consolidation.consolidate import Consolidator
from ricordo.consolidation.plan import Material
from ricordo.consolidation.types import Advice
from ricordo.errors import ExtraMissing, ModelError, StorageError
from ricordo.events import Emitter
from ricordo.harness.offline import OFFLINE
from ricordo.maintenance.curation import Curation
from ricordo.maintenance.cycle import Cycle, CycleStep
from ricordo.maintenance.expire import expire
from ricordo.maintenance.plan import ConsolidationDue, not_within
from ricordo.maintenance.prune import prune
from ricordo.maintenance.retain import retain
from ricordo.maintenance.turns import TurnsAtWork
from ricordo.models import ChatModel
from ricordo.models.provider import load_model
from ricordo.runtime.guarded_models import model_for_memory
from ricordo.runtime.settings import Settings
from ricordo.scopes import Scope
from ricordo.spending import Meter
from ricordo.stores.place import Place
from ricordo.tasks import FileTasks
from ricordo.workspace.layout import ROOT_TASKS

__all__ = ["Upkeep", "kept_up"]

_CONFIRMED, _OPENED = 4, 2
_SHOWN = 10
"""So many times is a memory shown until that counts once, as what stands in view is shown anyway."""


@dataclass(frozen=True, kw_only=True)
class Upkeep:
    """How one root is kept up; `curation` and `due` are None where consolidation is switched off."""

    cycle: Cycle
    interval: timedelta
    tidy: Callable[[], Awaitable[Collected]]
    curation: Curation | None = None
    due: ConsolidationDue | None = None

    @asynccontextmanager
    async def hurrying(self) -> AsyncIterator[None]:
        """Hurry once the block has ended."""
        try:
            yield
        finally:
            self.hurry()

    def hurry(self) -> None:
        """Let consolidation ask no model any more, as a process that closes can't wait."""
        if self.curation:
            self.curation.hurry()


def kept_up(
    place: Place,
    scope: Scope,
    settings: Settings,
    emitter: Emitter,
    *,
    turns: TurnsAtWork,
    model: ChatModel | None = None,
    meter: Meter | None = None,
) -> Upkeep:
    """Return how `place` is kept up as the settings say, giving way to `turns`.

    Consolidation asks the model that they name, else the agent's `model`; what it costs is counted by `meter`.
    """
    config = settings.consolidation
    tidy = partial(collect, place.files, place.clock, eviction_path=_eviction_path(settings))
    adviser = _adviser(settings, scope, model, partial(model_for_memory, redactor=place.redactor, meter=meter))
    curation = _curation(place, scope, settings, emitter, adviser=adviser, turns=turns)
    return Upkeep(
        cycle=Cycle(steps=_steps(place, settings, curation, tidy), emitter=emitter, scope=scope),
        interval=settings.maintenance.interval,
        tidy=tidy,
        curation=curation,
        due=not_within(timedelta(seconds=config.min_gap)) if config else None,
    )


def _eviction_path(settings: Settings) -> str | None:
    """Return the folder of evicted results that the settings name, None for its default."""
    return settings.tool_result_eviction.eviction_path if settings.tool_result_eviction else None


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
        bounds = settings.consolidation
        gone = await retain(
            place.files, place.changes, rules, now=clock.now(), key=place.key, config=bounds,
            eviction_path=_eviction_path(settings), scope=place.scope,
        )  # fmt: skip
        by_rule = {"memories": len(gone.memories), "transcripts": len(gone.sessions)}
        trimmed = await retain_history(place.files, place.changes, now=clock.now(), config=settings.history)
        return {**pruned.counts, **by_rule, **trimmed.counts, "evicted": (await tidy()).count}

    async def reindexing() -> Mapping[str, int]:
        await place.index.refresh()
        return {}

    return [
        CycleStep(name="expire", stage="expire", act=expiring),
        *([CycleStep(name="consolidate", act=curation)] if curation else []),
        CycleStep(name="prune", stage="prune", act=pruning),
        CycleStep(name="reindex", stage="index", act=reindexing),
    ]


def _adviser(
    settings: Settings, scope: Scope, model: ChatModel | None, for_memory: Callable[..., ChatModel]
) -> Adviser | None:
    """Return who asks a model; None where the rules do it all."""
    config = settings.consolidation
    if config is None:
        return None

    def made(asked: ChatModel) -> Adviser:
        return ModelAdviser(model=for_memory(asked, "consolidation", scope=scope), config=config)

    if isinstance(config.model, str) and config.model != OFFLINE:
        address = settings.address(config.model, setting="consolidation.base_url", own=config.base_url, agent=model)
        load = partial(load_model, config.model, base_url=address, **asdict(config.model_settings))
        return _Named(load=load, made=made)
    asked = model if config.model is None else config.model
    return made(asked) if not isinstance(asked, str | None) and asked.name != OFFLINE else None


@dataclass(kw_only=True)
class _Named:
    """Advice of a model that is loaded when it is first asked, as most of who opens a root never asks it."""

    load: Callable[[], ChatModel]
    made: Callable[[ChatModel], Adviser]
    _found: Adviser | None = field(default=None, init=False)

    async def __call__(self, material: Material, pause: Callable[[], Awaitable[object]]) -> Advice:
        """Return what the model advises; nothing while it can't be loaded."""
        if self._found is None:
            try:
                self._found = self.made(await run_sync(self.load))
            except (ModelError, ExtraMissing) as error:
                return Advice(note=rules_alone(type(error).__name__))
        return await self._found(material, pause)


async def _used(usage: UsageLog | None) -> Mapping[str, int]:
    """Return by id how much each memory was of use: confirming counts most, being shown least."""
    if usage is None:
        return {}
    try:
        known = await usage.all()
    except StorageError:
        return {}
    return {
        name: _CONFIRMED * each.confirmed.count + _OPENED * each.used.count + each.shown.count // _SHOWN
        for name, each in known.items()
    }


def _curation(
    place: Place, scope: Scope, settings: Settings, emitter: Emitter, *, adviser: Adviser | None, turns: TurnsAtWork
) -> Curation | None:
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
        adviser=adviser,
        courtesy=turns.patience,
        used=partial(_used, place.usage),
        emitter=emitter,
        scope=scope,
    )
    return Curation(
        consolidator=consolidator,
        turns=turns,
        holds=config.mode == PREVIEW,
        refresh=place.index.refresh,
        tasks=FileTasks(place.files, ROOT_TASKS, place.redactor),
        clock=place.clock,
        ids=place.ids,
        emitter=emitter,
        scope=scope,
    )
