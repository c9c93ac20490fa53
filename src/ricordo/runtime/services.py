"""The services of one memory root: inbox, extraction, maintenance; and the dependencies they are built from."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ricordo.clock import Clock, IdSource, MonotonicIds, SystemClock
from ricordo.curation.profile.storage import ProfileStores
from ricordo.events import Emitter, EventSink, telemetry_sink
from ricordo.extraction.cursor import find_unextracted_sessions
from ricordo.extraction.session_extraction import SessionExtraction
from ricordo.extraction.worker import JobWorker
from ricordo.jobs import Job
from ricordo.jobs.inbox import Inbox
from ricordo.jobs.turn_activity import TurnActivity
from ricordo.models import ChatModel, Embedder
from ricordo.models.spending import SpendingMeter
from ricordo.runtime.extraction import create_profile_sections, create_session_flush
from ricordo.runtime.guarded_models import guard_embedder
from ricordo.runtime.maintenance import MaintenanceServices, create_maintenance
from ricordo.runtime.roots import cache_folder
from ricordo.runtime.settings import Settings
from ricordo.scope import Scope
from ricordo.search.contract import MEMORY_SORTS, Query
from ricordo.search.memory_root import MemoryRoot
from ricordo.search.recall import Reranker
from ricordo.storage import FileStore
from ricordo.storage.contract import SupportsFolderCheck
from ricordo.storage.disk import Disk
from ricordo.workspace.layout import QUEUE_FILE

__all__ = ["Dependencies", "RootServices", "create_inbox", "create_root_services", "writable_folder"]


@dataclass(frozen=True, kw_only=True)
class Dependencies:
    """The replaceable dependencies of a workspace: clock, ids, disk, and the event emitter.

    `actor` is the user recorded for changes if the scope names none. `model` is used for memory's own requests if the
    settings name no other; None leaves them to the rules.
    """

    settings: Settings
    clock: Clock
    ids: IdSource
    disk: Disk
    emitter: Emitter
    embedder: Embedder | str | None = None
    model: ChatModel | None = None
    reranker: Reranker | str | None = None
    actor: str = ""

    @classmethod
    def create(
        cls,
        *,
        settings: Settings | None = None,
        clock: Clock | None = None,
        disk: Disk | None = None,
        sink: EventSink | None = None,
        embedder: Embedder | str | None = None,
        reranker: Reranker | str | None = None,
        actor: str = "",
    ) -> "Dependencies":
        """Create the dependencies of this machine, except those given.

        An `embedder` and a `reranker` may be names, as in the settings.
        """
        ticking = clock or SystemClock()
        held = settings or Settings.from_environment()
        sinks = tuple(found for found in (sink, telemetry_sink()) if found is not None)
        return cls(
            settings=held,
            embedder=held.embedder if embedder is None else embedder,
            reranker=held.reranker if reranker is None else reranker,
            clock=ticking,
            ids=MonotonicIds(ticking),
            disk=disk or Disk(),
            emitter=Emitter(ticking, sinks),
            actor=actor,
        )


_NEAREST_MEMORIES = 5


@dataclass(frozen=True, kw_only=True)
class RootServices:
    """The services of one root."""

    inbox: Inbox
    meter: SpendingMeter
    profiles: ProfileStores
    flush: SessionExtraction
    maintenance: MaintenanceServices
    worker: JobWorker


def create_root_services(
    place: MemoryRoot, scope: Scope, parts: Dependencies, turns: TurnActivity, opened: Sequence[MemoryRoot]
) -> RootServices:
    """Create the services of `place` for `scope`, which pause while `turns` are running.

    `opened` are the places whose entries may be shown, including those added to the list later.
    """
    inbox = create_inbox(Path(place.folder), place.files, parts)
    embedder = None if isinstance(parts.embedder, str | None) else guard_embedder(parts.embedder, place.redactor)
    meter = SpendingMeter(place.files, parts.settings.spending, parts.clock)
    profiles = _create_profiles(place)
    flush = create_session_flush(
        place, scope, parts.settings, model=parts.model, meter=meter, inbox=inbox, ids=parts.ids,
        emitter=parts.emitter, sections=create_profile_sections(place, profiles, parts.settings, embedder),
        remembered=partial(_find_nearest, opened),
    )  # fmt: skip
    upkeep = create_maintenance(
        place, scope, parts.settings, parts.emitter, turns=turns, model=parts.model, meter=meter
    )
    worker = _create_worker(inbox, flush, upkeep, parts, scope)
    return RootServices(inbox=inbox, meter=meter, profiles=profiles, flush=flush, maintenance=upkeep, worker=worker)


async def _find_nearest(places: Sequence[MemoryRoot], text: str) -> list[str]:
    """Return the entries of `places` nearest to a text."""
    query = Query(text=text, sorts=MEMORY_SORTS)
    found = [await place.index.search(query, limit=_NEAREST_MEMORIES) for place in [*places]]
    return [match.content for matches in found for match in matches]


def _create_worker(
    inbox: Inbox, flush: SessionExtraction, upkeep: MaintenanceServices, parts: Dependencies, scope: Scope
) -> JobWorker:
    return JobWorker(
        inbox,
        flush=flush,
        consolidate=upkeep.curation,
        maintain=upkeep.cycle,
        interval=upkeep.interval,
        tidy=upkeep.tidy,
        due=upkeep.due,
        emitter=parts.emitter,
        clock=parts.clock,
        scope=scope,
        workers=parts.settings.inbox.workers,
    )


def _create_profiles(place: MemoryRoot) -> ProfileStores:
    return ProfileStores(
        place.files, place.changes, owner=place.scope, redactor=place.redactor, key=place.key, clock=place.clock
    )


def create_inbox(root: Path, files: FileStore, parts: Dependencies) -> Inbox:
    """Return the inbox of a root; for a read-only root it is in the cache."""

    async def recover_jobs() -> Sequence[Job]:
        return [
            Job(kind="flush", agent=agent, session=session) for agent, session in await find_unextracted_sessions(files)
        ]

    path = writable_folder(root, parts) / QUEUE_FILE
    check = files.check if isinstance(files, SupportsFolderCheck) else None
    return Inbox(path, clock=parts.clock, ids=parts.ids, commit=parts.disk.commit, lost=recover_jobs, check=check)


def writable_folder(root: Path, parts: Dependencies) -> Path:
    """Return the root, or its folder in the cache if it can't be written to."""
    return root if os.access(root, os.W_OK) else cache_folder(parts.settings.cache, root)
