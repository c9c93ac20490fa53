"""Assembly: the one place that names concrete backends and puts a root together."""

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
from anyio.to_thread import run_sync

from ricordo.audit.doctor import Check, inspect
from ricordo.audit.ledgers import follow_written
from ricordo.audit.usage import UsageLog
from ricordo.beside import beside
from ricordo.clock import Clock, Ids, MonotonicIds, SystemClock
from ricordo.errors import StorageError
from ricordo.events import Emitter, Sink, telemetry_sink
from ricordo.files import FileStore
from ricordo.files.disk import Disk
from ricordo.files.in_memory import InMemoryFiles
from ricordo.files.local import LocalFiles
from ricordo.flush.backlog import backlog
from ricordo.guard import Redactor
from ricordo.index.keyword import KeywordIndex
from ricordo.maintenance.curation import Curation
from ricordo.maintenance.session_flush import SessionFlush
from ricordo.maintenance.worker import Worker
from ricordo.models import ChatModel, Embedder
from ricordo.profile.storage import Profiles
from ricordo.queue import Job, Queue
from ricordo.queue.inbox import Inbox
from ricordo.recall.reranking import Reranker
from ricordo.runtime.claiming import claimed_root, root_identity
from ricordo.runtime.learning import learning_from
from ricordo.runtime.marker import read_marker
from ricordo.runtime.profile_section import profile_sections
from ricordo.runtime.rerankers import chosen_reranker
from ricordo.runtime.roots import cache_folder, user_root
from ricordo.runtime.serving import Serving, chosen_embedder
from ricordo.runtime.settings import Settings
from ricordo.runtime.trust import LIST
from ricordo.runtime.upkeep import Upkeep, kept_up
from ricordo.scopes import Scope
from ricordo.spending import Meter
from ricordo.state import StateStore
from ricordo.state.files import FileStates
from ricordo.state.grants import Grants
from ricordo.stores.contract import Backend, Store, StoreParts
from ricordo.stores.layered import Layered
from ricordo.stores.place import Place
from ricordo.stores.saving_clock import SavingClock
from ricordo.workspace.changes import ChangeSets
from ricordo.workspace.layout import INDEX, PROJECT, QUEUE

__all__ = [
    "Parts",
    "Workspace",
    "files_of",
    "inspect_root",
    "look_into",
    "open_workspace",
    "trusted_files",
    "working_files",
]


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What can be exchanged under a workspace: time, ids, the disk and who listens to events.

    `model` is asked for what memory does on its own, where the settings name no other one; None for the rules.
    """

    settings: Settings
    clock: Clock
    ids: Ids
    disk: Disk
    emitter: Emitter
    embedder: Embedder | str | None = None
    model: ChatModel | None = None
    reranker: Reranker | str | None = None

    @classmethod
    def standard(
        cls,
        *,
        settings: Settings | None = None,
        clock: Clock | None = None,
        disk: Disk | None = None,
        sink: Sink | None = None,
        embedder: Embedder | str | None = None,
        reranker: Reranker | str | None = None,
    ) -> "Parts":
        """Return the parts of this machine, but for those given.

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
        )


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """An open root with its store, and what works on its sessions; `backend` is what `store` was bound from.

    `flush` does a flush job without asking the inbox; `worker` does what waits in it. `curation` makes curated memory
    of ledgers; None when it is switched off. `meter` counts what memory asks models for.
    `profiles` keeps what is known of each user. `reranker` has a say in what is found.
    """

    scope: Scope
    place: Place
    backend: Backend
    store: Store
    flush: SessionFlush
    curation: Curation | None
    inbox: Queue
    worker: Worker
    states: StateStore
    meter: Meter
    profiles: Profiles
    emitter: Emitter
    reranker: Reranker | None = None


@asynccontextmanager
async def open_workspace(root: Path, scope: Scope, parts: Parts) -> AsyncIterator[Workspace]:
    """Open the root for `scope`, create it when there is none, and close it at the end.

    What waits in the inbox is worked off meanwhile, and for two seconds at the end unless that is cancelled.
    Raises: RootNotTrusted; ScopeMismatch; StorageReadOnly if it has to be created and can't be; what `load_embedder`
    raises, and `load_reranker`.
    """
    serving = Serving()
    parts = replace(parts, embedder=await run_sync(chosen_embedder, parts.embedder, parts.settings, parts.model))
    reranker = await run_sync(chosen_reranker, parts.reranker) if isinstance(parts.reranker, str) else parts.reranker
    with parts.emitter.stage("open", scope):
        place = await _open_place(root, scope, "project" if scope.project else "own", parts)
    serving.begin(place)
    wider = _Wider(scope, parts, serving)
    await wider.follow_written()
    inbox = _inbox(root, place.files, parts)
    try:
        clock = SavingClock(parts.clock)
        await clock.catch_up(place.files)
        backend = Layered(
            StoreParts(redactor=place.redactor, clock=clock, ids=parts.ids, emitter=parts.emitter), place, wider,
            scope, reranker=reranker, consolidation=parts.settings.consolidation,
        )  # fmt: skip
        meter = Meter(place.files, parts.settings.spending, parts.clock)
        profiles = _profiles(place)
        flush = learning_from(
            place, scope, parts.settings, model=parts.model, meter=meter, inbox=inbox, ids=parts.ids,
            emitter=parts.emitter, sections=profile_sections(place, profiles, parts.settings, parts.embedder),
        )  # fmt: skip
        upkeep = kept_up(place, scope, parts.settings, parts.emitter, model=parts.model, meter=meter)
        worker = _worker(inbox, flush, upkeep, parts, scope)
        async with (
            beside(serving.serve),
            worker.at_work(closing_seconds=flush.config.closing_seconds),
            upkeep.hurrying(),
        ):
            yield Workspace(
                scope=scope,
                place=place,
                backend=backend,
                store=backend.bind(scope),
                flush=flush,
                curation=upkeep.curation,
                inbox=inbox,
                worker=worker,
                states=FileStates(place.files, place.redactor, await _grants(place, parts)),
                profiles=profiles,
                meter=meter,
                emitter=parts.emitter,
                reranker=reranker,
            )
    finally:
        await inbox.close()
        await _close_place(place)
        await wider.close()


def _worker(inbox: Inbox, flush: SessionFlush, upkeep: Upkeep, parts: Parts, scope: Scope) -> Worker:
    return Worker(
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


async def _grants(place: Place, parts: Parts) -> Grants | None:
    """Return what keeps the permissions of a root's sessions; None where nothing of the root is kept."""
    identity = await root_identity(place.files)
    return Grants(trusted_files(parts), f"permissions/{identity}") if identity else None


def trusted_files(parts: Parts) -> FileStore:
    """Return the files of the list of trusted roots."""
    return LocalFiles(parts.settings.data / LIST, disk=parts.disk)


def files_of(root: Path) -> FileStore:
    """Return the files of a root as they are; nothing is opened, made or mended by this."""
    return LocalFiles(root)


@asynccontextmanager
async def look_into(root: Path, parts: Parts) -> AsyncIterator[tuple[Queue, FileStore]]:
    """Give the inbox and the files of a root to look at; nothing is worked off."""
    files = LocalFiles(root, disk=parts.disk)
    inbox = _inbox(root, files, parts)
    try:
        yield inbox, files
    finally:
        await inbox.close()


def working_files(folder: Path, root: Path, parts: Parts) -> FileStore:
    """Return the files of a working directory, whose locks are kept in the root `root`."""
    return LocalFiles(folder, locks=root / "locks", disk=parts.disk)


def scratch_files() -> FileStore:
    """Return files that are gone with the process."""
    return InMemoryFiles()


async def inspect_root(root: Path, scratch: Path) -> list[Check]:
    """Return what a look from outside finds in a root that can't be opened; an index is made in `scratch` for it."""
    files = LocalFiles(root)
    index = await KeywordIndex.open(scratch / INDEX, files)
    try:
        return await inspect(files, index, now=SystemClock().now())
    finally:
        await index.close()


class _Wider:
    """Opens the user's own root when a project's memory is open, at the first use."""

    def __init__(self, scope: Scope, parts: Parts, serving: Serving) -> None:
        self._scope = scope
        self._serving = serving
        self._parts = parts
        self._place: Place | None = None
        self._opening = anyio.Lock()
        self._marker: Path | None = None
        if scope.user is not None and scope.project is not None:
            self._marker = user_root(parts.settings.data, scope.user, scope.tenant) / PROJECT

    async def __call__(self, *, create: bool) -> Place | None:
        user = self._scope.user
        if self._place is None and user is not None and self._scope.project is not None:
            folder = user_root(self._parts.settings.data, user, self._scope.tenant)
            async with self._opening:
                if self._place is None and (create or await _is_root(folder, self._parts)):
                    scope = Scope(user=user, tenant=self._scope.tenant)
                    self._place = await _open_place(folder, scope, "user", self._parts)
                    self._serving.begin(self._place)
        return self._place

    @property
    def opened(self) -> Place | None:
        """The place, as far as it is open."""
        return self._place

    async def follow_written(self) -> None:
        """Let new ids sort after what was written there, as those of one user's acts in both roots are compared."""
        if self._marker is not None:
            await follow_written(LocalFiles(self._marker.parent, disk=self._parts.disk), self._parts.ids)

    def is_missed(self) -> bool:
        """Tell whether there is a place that is not open yet. It blocks on the disk."""
        return self._place is None and self._marker is not None and os.path.lexists(self._marker)

    async def close(self) -> None:
        if self._place is not None:
            await _close_place(self._place)


async def _open_place(root: Path, scope: Scope, label: str, parts: Parts) -> Place:
    files = LocalFiles(root, disk=parts.disk)
    owner, key = await claimed_root(
        root, files, scope, settings=parts.settings, listed=trusted_files(parts), clock=parts.clock, ids=parts.ids
    )
    changes = ChangeSets(files, clock=parts.clock, ids=parts.ids, user=scope.user or "")
    await follow_written(files, parts.ids)
    with parts.emitter.stage("recover", owner) as progress, suppress(StorageError):
        progress.counts["changes"] = await changes.recover()
        progress.counts["files"] = await files.sweep()
    embedder = None if isinstance(parts.embedder, str) else parts.embedder
    redactor = Redactor(key)
    index_path = _index_path(root, parts)
    index = await KeywordIndex.open(
        index_path, files, commit=parts.disk.commit, embedder=embedder,
        ann_vectors=parts.settings.ann_vectors, redactor=redactor,
    )  # fmt: skip
    return Place(
        label=label,
        scope=owner,
        folder=str(root),
        files=files,
        index=index,
        changes=changes,
        redactor=redactor,
        key=key,
        clock=parts.clock,
        ids=parts.ids,
        usage=UsageLog(files, parts.clock) if parts.settings.usage else None,
        finds_profile=parts.settings.profile is not None,
        index_path=str(index_path),
    )


async def _close_place(place: Place) -> None:
    if place.usage:
        await place.usage.close()
    await place.index.close()


def _profiles(place: Place) -> Profiles:
    return Profiles(
        place.files, place.changes, owner=place.scope, redactor=place.redactor, key=place.key, clock=place.clock
    )


def _inbox(root: Path, files: FileStore, parts: Parts) -> Inbox:
    async def lost() -> Sequence[Job]:
        return [Job(kind="flush", agent=agent, session=session) for agent, session in await backlog(files)]

    path = _writable(root, parts) / QUEUE
    return Inbox(path, clock=parts.clock, ids=parts.ids, commit=parts.disk.commit, lost=lost)


def _index_path(root: Path, parts: Parts) -> Path:
    """Return where the index goes: where the settings say, else the root, or the cache if that can't be written to."""
    elsewhere = parts.settings.index
    folder = _writable(root, parts) if elsewhere is None else cache_folder(elsewhere.absolute(), root)
    return folder / INDEX


def _writable(root: Path, parts: Parts) -> Path:
    """Return the root, or its folder in the cache if it can't be written to."""
    return root if os.access(root, os.W_OK) else cache_folder(parts.settings.cache, root)


async def _is_root(folder: Path, parts: Parts) -> bool:
    return await read_marker(LocalFiles(folder, disk=parts.disk)) is not None
