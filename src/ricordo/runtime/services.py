"""The services of one memory root: inbox, extraction, maintenance; and the dependencies they are built from."""

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from ricordo import models, workspace
from ricordo.clock import Clock, IdSource, MonotonicIds, SystemClock
from ricordo.concurrency import run_in_thread
from ricordo.errors import InvalidSetting
from ricordo.events import Emitter, EventSink, record_span
from ricordo.extraction.config import NEVER, FlushConfig
from ricordo.extraction.worker import JobWorker
from ricordo.jobs import Job
from ricordo.jobs.inbox import Inbox
from ricordo.jobs.schedule import at_most_every
from ricordo.jobs.turn_activity import TurnActivity
from ricordo.lazy import dataclass
from ricordo.models.config import OFFLINE
from ricordo.runtime.roots import cache_folder
from ricordo.runtime.settings import Settings
from ricordo.runtime.validation import short_repr
from ricordo.scope import Scope
from ricordo.search.contract import MEMORY_DOCUMENT_TYPES, Query, Reranker
from ricordo.search.memory_root import MemoryRoot
from ricordo.storage import FileStore
from ricordo.storage.contract import SupportsFolderCheck
from ricordo.storage.disk import Disk
from ricordo.workspace.layout import QUEUE_FILE

if TYPE_CHECKING:
    from ricordo.curation.consolidator import ConsolidationJob
    from ricordo.curation.profile.storage import ProfileStores
    from ricordo.extraction.flusher import FlushResult
    from ricordo.extraction.session_extraction import SessionExtraction
    from ricordo.models import ChatModel, Embedder, SpendingMeter
    from ricordo.runtime.maintenance import MaintenanceServices
    from ricordo.workspace.evicted_files import CleanupResult

__all__ = ["Dependencies", "RootServices", "create_inbox", "writable_folder"]


@dataclass(frozen=True, kw_only=True)
class Dependencies:
    """The replaceable dependencies of a workspace: clock, ids, disk, and the event emitter.

    `actor` is the user recorded for changes if the scope names none. `model` is used for memory's own requests if the
    settings name no other; None leaves them to the rules. Without `background`, no job runs while the workspace is
    open, and nothing is embedded but on request.
    """

    settings: Settings
    clock: Clock
    ids: IdSource
    disk: Disk
    emitter: Emitter
    embedder: "Embedder | str | None" = None
    model: "ChatModel | None" = None
    reranker: Reranker | str | None = None
    actor: str = ""
    background: bool = True

    @classmethod
    def create(
        cls,
        *,
        settings: Settings | None = None,
        clock: Clock | None = None,
        disk: Disk | None = None,
        sink: EventSink | None = None,
        embedder: "Embedder | str | None" = None,
        reranker: Reranker | str | None = None,
        actor: str = "",
        background: bool = True,
    ) -> "Dependencies":
        """Create the dependencies of this machine, except those given.

        An `embedder` and a `reranker` may be names, as in the settings. Raises: InvalidSetting for one that is neither.
        """
        for name, value, method in (("embedder", embedder, "embed"), ("reranker", reranker, "scores")):
            if value is not None and not isinstance(value, str) and not hasattr(value, method):
                raise InvalidSetting(
                    f"{name} is a name, None, or what has the method {method}, not {short_repr(value)}."
                )
        source_clock = clock or SystemClock()
        loaded = settings or Settings.from_environment()
        sinks = (record_span,) if sink is None else (sink, record_span)
        return cls(
            settings=loaded,
            embedder=loaded.embedder if embedder is None else embedder,
            reranker=loaded.reranker if reranker is None else reranker,
            clock=source_clock,
            ids=MonotonicIds(source_clock),
            disk=disk or Disk(),
            emitter=Emitter(source_clock, sinks),
            actor=actor,
            background=background,
        )


_NEAREST_MEMORIES = 5


class RootServices:
    """The services of one root, each created at its first use: most processes learn and consolidate nothing.

    `place` is the root, opened for `scope`; the services pause while `turns` are running. `opened` are the places whose
    entries may be shown, including those added to the list later. Raises: InvalidSetting if it is not clear where a
    model is reached.
    """

    def __init__(
        self,
        place: MemoryRoot,
        scope: Scope,
        parts: Dependencies,
        turns: TurnActivity,
        open_places: Sequence[MemoryRoot],
    ) -> None:
        self._place = place
        self._scope = scope
        self._parts = parts
        self._turns = turns
        self._opened = open_places
        self._is_closing = False
        configs = [config for config in (parts.settings.flush, parts.settings.consolidation) if config]
        if parts.model is not None or any(config.model not in (None, OFFLINE) for config in configs):
            # the address of a model is checked when the root is opened
            _ = self.flush, self.curation

    @cached_property
    def inbox(self) -> Inbox:
        """The inbox."""
        return create_inbox(Path(self._place.folder), self._place.files, self._parts)

    @cached_property
    def meter(self) -> "SpendingMeter":
        """The meter of the requests that memory makes."""
        return models.SpendingMeter(self._place.files, self._parts.settings.spending, self._parts.clock)

    @cached_property
    def profiles(self) -> "ProfileStores":
        """The stored profiles."""
        from ricordo.curation.profile.storage import ProfileStores

        place = self._place
        return ProfileStores(
            place.files, place.changes, owner=place.scope, redactor=place.redactor, key=place.key, clock=place.clock
        )

    @cached_property
    def flush(self) -> "SessionExtraction":
        """The extraction from sessions."""
        from ricordo.runtime.extraction import create_profile_sections, create_session_flush
        from ricordo.runtime.guarded_models import guard_embedder

        place, parts = self._place, self._parts
        embedder = None if isinstance(parts.embedder, str | None) else guard_embedder(parts.embedder, place.redactor)
        return create_session_flush(
            place, self._scope, parts.settings, model=parts.model, meter=self.meter, inbox=self.inbox, ids=parts.ids,
            emitter=parts.emitter, sections=create_profile_sections(place, self.profiles, parts.settings, embedder),
            find_nearest=partial(_find_nearest, self._opened),
        )  # fmt: skip

    @property
    def curation(self) -> "ConsolidationJob | None":
        """The consolidation; None if it is disabled."""
        return self._maintenance.curation if self._parts.settings.consolidation else None

    @cached_property
    def _maintenance(self) -> "MaintenanceServices":
        from ricordo.runtime.maintenance import create_maintenance

        maintenance = create_maintenance(
            self._place, self._scope, self._parts.settings, self._parts.emitter,
            turns=self._turns, model=self._parts.model, meter=self.meter, tidy=self._tidy,
        )  # fmt: skip
        if self._is_closing and maintenance.curation:
            maintenance.curation.use_rules_only()
        return maintenance

    @cached_property
    def worker(self) -> JobWorker:
        """The worker of the inbox."""
        parts, config = self._parts, self._parts.settings.consolidation
        return JobWorker(
            self.inbox,
            flush=self._run_flush,
            consolidate=self._consolidate if config else None,
            maintain=self._maintain,
            interval=parts.settings.maintenance.interval,
            tidy=self._tidy,
            due=at_most_every(timedelta(seconds=config.min_gap)) if config else None,
            emitter=parts.emitter,
            clock=parts.clock,
            scope=self._scope,
            workers=parts.settings.inbox.workers,
        )

    @property
    def closing_seconds(self) -> float:
        """How long the worker drains the inbox at the end, in seconds."""
        return (self._parts.settings.flush or FlushConfig(flush_trigger=NEVER)).closing_seconds

    @asynccontextmanager
    async def hurry_at_exit(self) -> AsyncIterator[None]:
        """Call `hurry` when the block ends."""
        try:
            yield
        finally:
            self.hurry()

    def hurry(self) -> None:
        """Stop consolidation from asking a model, as a closing process can't wait."""
        self._is_closing = True
        if "_maintenance" in vars(self) and self.curation:
            self.curation.use_rules_only()

    async def _run_flush(self, job: Job) -> "FlushResult":
        return await (await run_in_thread(lambda: self.flush))(job)

    async def _consolidate(self) -> Mapping[str, int]:
        curation = (await run_in_thread(lambda: self._maintenance)).curation
        assert curation is not None
        return await curation()

    async def _maintain(self) -> Mapping[str, int]:
        return await (await run_in_thread(lambda: self._maintenance)).cycle()

    async def _tidy(self) -> "CleanupResult":
        eviction = self._parts.settings.reductions.get("tool_result_eviction")
        path = eviction.eviction_path if eviction else None
        return await workspace.remove_unreferenced(self._place.files, self._place.clock, eviction_path=path)


async def _find_nearest(places: Sequence[MemoryRoot], text: str) -> list[str]:
    """Return the entries of `places` nearest to a text."""
    query = Query(text=text, document_types=MEMORY_DOCUMENT_TYPES)
    results = [await place.index.search(query, limit=_NEAREST_MEMORIES) for place in [*places]]
    return [match.content for matches in results for match in matches]


def create_inbox(root: Path, files: FileStore, parts: Dependencies) -> Inbox:
    """Return the inbox of a root; for a read-only root it is in the cache."""

    async def recover_jobs() -> Sequence[Job]:
        from ricordo.extraction.cursor import find_unextracted_sessions

        return [
            Job(kind="flush", agent=agent, session=session) for agent, session in await find_unextracted_sessions(files)
        ]

    path = writable_folder(root, parts) / QUEUE_FILE
    check = files.check if isinstance(files, SupportsFolderCheck) else None
    return Inbox(path, clock=parts.clock, ids=parts.ids, commit=parts.disk.commit, lost=recover_jobs, check=check)


def writable_folder(root: Path, parts: Dependencies) -> Path:
    """Return the root, or its folder in the cache if it can't be written to."""
    return root if os.access(root, os.W_OK) else cache_folder(parts.settings.cache, root)
