"""Wiring of maintenance: consolidation, the maintenance cycle, and cleanup.

Without consolidation no ledger expires, because none has been consolidated.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, field
from functools import partial

from anyio.to_thread import run_sync

from ricordo.curation.adviser import Adviser, ModelAdviser, rules_only_note
from ricordo.curation.config import PREVIEW_MODE
from ricordo.curation.consolidator import ConsolidationJob, Consolidator
from ricordo.curation.proposal import ConsolidationInput
from ricordo.curation.retention import (
    apply_retention,
    archive_expired_ledgers,
    archive_faded,
    prune_session_files,
)
from ricordo.curation.types import Advice
from ricordo.errors import ExtraMissing, ModelError, StorageError
from ricordo.events import Emitter
from ricordo.jobs.schedule import CycleStep, MaintenanceCycle
from ricordo.jobs.tasks import FileTaskStore
from ricordo.jobs.turn_activity import TurnActivity
from ricordo.lazy import dataclass
from ricordo.models import ChatModel
from ricordo.models.config import OFFLINE
from ricordo.models.provider import load_model
from ricordo.models.spending import SpendingMeter
from ricordo.runtime.guarded_models import prepare_memory_model
from ricordo.runtime.settings import Settings
from ricordo.scope import Scope
from ricordo.search.memory_root import MemoryRoot
from ricordo.workspace.evicted_files import CleanupResult
from ricordo.workspace.history.retention import trim_history
from ricordo.workspace.history.usage import UsageLog
from ricordo.workspace.layout import ROOT_TASKS

__all__ = ["MaintenanceServices", "create_maintenance"]


_CONFIRMED_WEIGHT, _OPENED_WEIGHT = 4, 2
_SHOWN_PER_POINT = 10
"""The number of times an entry is shown that counts once, because entries in the prompt are shown anyway."""


@dataclass(frozen=True, kw_only=True)
class MaintenanceServices:
    """The maintenance services of one root; `curation` is None if consolidation is disabled."""

    cycle: MaintenanceCycle
    curation: ConsolidationJob | None = None


def create_maintenance(
    place: MemoryRoot,
    scope: Scope,
    settings: Settings,
    emitter: Emitter,
    *,
    turns: TurnActivity,
    tidy: Callable[[], Awaitable[CleanupResult]],
    model: ChatModel | None = None,
    meter: SpendingMeter | None = None,
) -> MaintenanceServices:
    """Create the maintenance of `place` from the settings; it pauses while `turns` are running.

    `tidy` removes evicted results that nothing refers to. Consolidation asks the model in the settings, else the
    agent's `model`; `meter` counts the cost.
    """
    adviser = _choose_adviser(
        settings, scope, model, partial(prepare_memory_model, redactor=place.redactor, meter=meter)
    )
    curation = _create_curation(place, scope, settings, emitter, adviser=adviser, turns=turns)
    return MaintenanceServices(
        cycle=MaintenanceCycle(steps=_create_steps(place, settings, curation, tidy), emitter=emitter, scope=scope),
        curation=curation,
    )


def _eviction_path(settings: Settings) -> str | None:
    """Return the folder of evicted results from the settings, or None for the default."""
    eviction = settings.reductions.get("tool_result_eviction")
    return eviction.eviction_path if eviction else None


def _create_steps(
    place: MemoryRoot,
    settings: Settings,
    curation: ConsolidationJob | None,
    tidy: Callable[[], Awaitable[CleanupResult]],
) -> list[CycleStep]:
    config, clock = settings.maintenance, place.clock

    async def expire_ledgers() -> Mapping[str, int]:
        days = config.daily_file_retention_days
        return {"files": len(await archive_expired_ledgers(place.files, place.changes, today=clock.today(), days=days))}

    async def prune_files() -> Mapping[str, int]:
        holds = settings.retention.find_holds(place.scope)
        pruned = await prune_session_files(place.files, place.changes, now=clock.now(), config=config, holds=holds)
        rules = settings.retention.parsed_rules
        bounds = settings.consolidation
        removed = await apply_retention(
            place.files, place.changes, rules, now=clock.now(), key=place.key, config=bounds,
            eviction_path=_eviction_path(settings), scope=place.scope,
        )  # fmt: skip
        by_rule = {"memories": len(removed.memories), "transcripts": len(removed.sessions)}
        archived = await _archive_faded(place, settings)
        trimmed = await trim_history(place.files, place.changes, now=clock.now(), config=settings.history)
        return {**pruned.counts, **by_rule, **archived, **trimmed.counts, "evicted": (await tidy()).count}

    async def refresh_index() -> Mapping[str, int]:
        await place.index.refresh()
        return {}

    return [
        CycleStep(name="expire", stage="expire", act=expire_ledgers),
        *([CycleStep(name="consolidate", act=curation)] if curation else []),
        CycleStep(name="prune", stage="prune", act=prune_files),
        CycleStep(name="reindex", stage="index", act=refresh_index),
    ]


async def _archive_faded(place: MemoryRoot, settings: Settings) -> Mapping[str, int]:
    """Move what has faded between MEMORY.md and the archive; return the count if anything moved."""
    if settings.consolidation is None:
        return {}
    usage = await place.usage.read_all() if place.usage else {}
    count = await archive_faded(
        place.files, place.changes,
        usage=usage, decay=settings.decay, now=place.clock.now(), config=settings.consolidation,
    )  # fmt: skip
    return {"archived": count} if count else {}


def _choose_adviser(
    settings: Settings, scope: Scope, model: ChatModel | None, prepare: Callable[..., ChatModel]
) -> Adviser | None:
    """Return the adviser that asks a model; None if rules alone are used."""
    config = settings.consolidation
    if config is None:
        return None

    def make_adviser(chosen_model: ChatModel) -> Adviser:
        return ModelAdviser(model=prepare(chosen_model, "consolidation", scope=scope), config=config)

    if isinstance(config.model, str) and config.model != OFFLINE:
        address = settings.resolve_address(
            config.model, setting="consolidation.base_url", own=config.base_url, agent=model
        )
        load = partial(load_model, config.model, base_url=address, **asdict(config.model_settings))
        return _LazyAdviser(load=load, make=make_adviser)
    chosen_model = model if config.model is None else config.model
    return (
        make_adviser(chosen_model)
        if not isinstance(chosen_model, str | None) and chosen_model.name != OFFLINE
        else None
    )


@dataclass(kw_only=True)
class _LazyAdviser:
    """Advice from a model that is loaded at its first use, because most processes never use it."""

    load: Callable[[], ChatModel]
    make: Callable[[ChatModel], Adviser]
    _adviser: Adviser | None = field(default=None, init=False)

    async def __call__(self, material: ConsolidationInput, pause: Callable[[], Awaitable[object]]) -> Advice:
        """Return the model's advice; empty if it can't be loaded."""
        if self._adviser is None:
            try:
                self._adviser = self.make(await run_sync(self.load))
            except (ModelError, ExtraMissing) as error:
                return Advice(note=rules_only_note(type(error).__name__))
        return await self._adviser(material, pause)


async def _usage_scores(usage: UsageLog | None) -> Mapping[str, int]:
    """Return a usage score for each entry by id: confirmations weigh most, showings least."""
    if usage is None:
        return {}
    try:
        usage_by_id = await usage.read_all()
    except StorageError:
        return {}
    return {
        name: _CONFIRMED_WEIGHT * each.confirmed.count
        + _OPENED_WEIGHT * each.used.count
        + each.shown.count // _SHOWN_PER_POINT
        for name, each in usage_by_id.items()
    }


def _create_curation(
    place: MemoryRoot,
    scope: Scope,
    settings: Settings,
    emitter: Emitter,
    *,
    adviser: Adviser | None,
    turns: TurnActivity,
) -> ConsolidationJob | None:
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
        yield_policy=turns.yield_policy,
        read_use_counts=partial(_usage_scores, place.usage),
        emitter=emitter,
        scope=scope,
        uses_profile=settings.injection is not None,
    )
    return ConsolidationJob(
        consolidator=consolidator,
        turns=turns,
        holds_proposals=config.mode == PREVIEW_MODE,
        refresh=place.index.refresh,
        tasks=FileTaskStore(place.files, ROOT_TASKS, place.redactor),
        clock=place.clock,
        ids=place.ids,
        emitter=emitter,
        scope=scope,
    )
