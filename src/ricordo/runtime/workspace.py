"""The workspace: an open root assembled from concrete backends, which nothing else names.

A running session keeps forgotten text in its window until its next request.

Invariant: the stored state of a session holds no forgotten text, except in the newest request of the user.
"""

from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import field, replace
from datetime import timedelta
from functools import cached_property, partial
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING

from anyio.to_thread import run_sync

from ricordo.clock import SystemClock
from ricordo.concurrency import background_task, run_even_if_cancelled, run_in_thread
from ricordo.errors import InvalidScope, StorageError, StorageReadOnly
from ricordo.events import Emitter
from ricordo.extraction.worker import JobWorker
from ricordo.guard import Redactor, has_secret
from ricordo.jobs import Job, JobQueue
from ricordo.jobs.turn_activity import TurnActivity, get_turn_activity
from ricordo.lazy import dataclass
from ricordo.runtime.claiming import claim_trusted_root, read_root_identity
from ricordo.runtime.models import BackgroundServices, choose_embedder, choose_reranker
from ricordo.runtime.roots import (
    LAYOUT_VERSION,
    SESSION_LABEL,
    TEAM_LABEL,
    USER_LABEL,
    RootLayer,
    VisibleRoots,
    cache_folder,
    claim_folder,
    default_root,
    find_ended_sessions,
    list_root_layers,
    read_version,
    session_layer,
    upgrade_version,
)
from ricordo.runtime.services import Dependencies, RootServices, create_inbox, writable_folder
from ricordo.runtime.settings import Settings
from ricordo.runtime.trust import TRUST_LIST, check_links, is_vouched_for
from ricordo.runtime.validation import check_scope, check_type
from ricordo.scope import Scope
from ricordo.search.config import RecallConfig
from ricordo.search.contract import Reranker
from ricordo.search.index import WorkspaceIndex
from ricordo.search.memory_root import SHARED_LABEL, MemoryRoot, MonotonicClock
from ricordo.storage import FileStore
from ricordo.storage.contract import SupportsFolderCheck
from ricordo.storage.folders import AttachedFolder, FolderHandle, FolderUse, find_folder_use
from ricordo.storage.local import LocalFiles
from ricordo.stores.contract import Backend, Store, StoreParts
from ricordo.stores.layered import LayeredStore
from ricordo.workspace.history.audit import AUDIT_FOLDER, AuditLog
from ricordo.workspace.history.change_sets import ChangeSets
from ricordo.workspace.history.log import advance_ids
from ricordo.workspace.history.tombstones import ForgottenStatements
from ricordo.workspace.history.usage import UsageLog
from ricordo.workspace.layout import AGENTS_FOLDER, INDEX_FILE, LOCAL, USERS, rename_records

if TYPE_CHECKING:
    from ricordo.curation.consolidator import ConsolidationJob
    from ricordo.curation.profile.storage import ProfileStores
    from ricordo.extraction.session_extraction import SessionExtraction
    from ricordo.models import Embedder, SpendingMeter
    from ricordo.workspace.agent_state import StateStore
    from ricordo.workspace.history.checks import Check

__all__ = [
    "Dependencies",
    "Workspace",
    "inspect_root",
    "open_for_inspection",
    "open_workspace",
    "root_files",
    "trust_list_files",
    "working_directory_files",
]


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """An open root with its store and services; `store` was bound from `backend`.

    `memory_root` is the narrowest place that the scope sees and holds its sessions. `shared` are the files of the
    root's shared place, None if it is the narrowest. `running_turns` are the active turns in `root`. `services` belong
    to `memory_root`. `open_states` opens the store of session states. `reranker` reorders search results. With
    `embeds_new`, the embedder is fast enough to embed new passages right before a search. `end_session` removes what is
    remembered for the session alone.
    """

    root: Path
    scope: Scope
    memory_root: MemoryRoot
    backend: Backend
    store: Store
    services: RootServices
    open_states: "Callable[[], StateStore]"
    running_turns: TurnActivity
    emitter: Emitter
    end_session: Callable[[], Coroutine[object, object, None]]
    reranker: Reranker | None = None
    shared: FileStore | None = None
    embeds_new: bool = False

    @property
    def folder(self) -> Path:
        """The folder of the narrowest place."""
        return Path(self.memory_root.folder)

    @cached_property
    def state_store(self) -> "StateStore":
        """The stored states of sessions, with forgotten text masked."""
        return self.open_states()

    @property
    def flush(self) -> "SessionExtraction":
        """Runs a flush job without the inbox."""
        return self.services.flush

    @property
    def curation(self) -> "ConsolidationJob | None":
        """Consolidates ledgers into curated memory; None if disabled."""
        return self.services.curation

    @property
    def inbox(self) -> JobQueue:
        """The inbox."""
        return self.services.inbox

    @property
    def worker(self) -> JobWorker:
        """Runs the jobs of the inbox."""
        return self.services.worker

    @property
    def meter(self) -> "SpendingMeter":
        """Counts the cost of the requests that memory makes."""
        return self.services.meter

    @property
    def profiles(self) -> "ProfileStores":
        """The user profiles."""
        return self.services.profiles


@asynccontextmanager
async def open_workspace(root: Path, scope: Scope, parts: Dependencies) -> AsyncIterator[Workspace]:
    """Open the root for `scope`, creating it if needed, and close it at the end.

    Jobs in the inbox are processed meanwhile, and for two seconds at the end unless that is cancelled. The inbox of the
    shared place is processed too, as soon as that place is opened. Without `parts.background` they wait. Raises:
    RootNotTrusted; ScopeMismatch; StorageReadOnly if the root has to be created and can't be; what `load_embedder` and
    `load_reranker` raise.
    """
    background, turns = BackgroundServices(), get_turn_activity(str(root))
    embedder = await run_in_thread(choose_embedder, parts.embedder, parts.settings, parts.model)
    parts, reranker_option = replace(parts, embedder=embedder), parts.reranker
    raw_reranker = (
        await run_in_thread(choose_reranker, reranker_option) if isinstance(reranker_option, str) else reranker_option
    )
    opener = _WorkspaceOpener(root=root, scope=scope, parts=parts, serving=background, turns=turns)
    try:
        with parts.emitter.stage("open", scope):
            layers = await run_in_thread(list_root_layers, root, scope, parts.settings.data, parts.settings.team)
            has_team = any(layer.label == TEAM_LABEL for layer in layers)
            opener.scope = replace(scope, team=None) if has_team else scope
            await opener.claim()
            place = await opener.open_memory_root(layers[0])
            await opener.advance_ids([layer for layer in layers[1:] if layer.label != TEAM_LABEL])
            session = session_layer(layers[0], scope)
            await opener.remove_ended_sessions(place, session)
        reranker = _guard_reranker(raw_reranker, place.redactor) if raw_reranker is not None else None
        visible_roots = VisibleRoots(
            (session, *layers) if session else layers, place, opener.open_memory_root, opener.close_session_root
        )
        if has_team:
            # who is no member is told at once
            await visible_roots.open_existing()
        clock = MonotonicClock(parts.clock)
        await clock.catch_up(place.files)
        backend = LayeredStore(
            StoreParts(
                redactor=place.redactor, clock=clock, ids=parts.ids, emitter=parts.emitter, key=place.key,
                catch_up=partial(opener.advance_ids, layers),
            ), visible_roots, scope,
            reranker=reranker, consolidation=parts.settings.consolidation, saved=opener.schedule_consolidation,
        )  # fmt: skip
        services, grants = opener.services_for(place), await opener.find_grants(layers[0])
        async with AsyncExitStack() as stack:
            if parts.background:
                await stack.enter_async_context(background_task(background.serve))
                await stack.enter_async_context(services.worker.lifespan(closing_seconds=services.closing_seconds))
                await stack.enter_async_context(opener.drain_at_exit())
                await stack.enter_async_context(services.hurry_at_exit())
            yield Workspace(
                root=root,
                scope=scope,
                memory_root=place,
                backend=backend,
                store=backend.bind(scope),
                services=services,
                open_states=partial(opener.open_states, place, grants, visible_roots),
                running_turns=turns,
                emitter=parts.emitter,
                reranker=reranker,
                shared=opener.files if len(layers) > 1 else None,
                # one that computes the vector of a query without waiting is local and fast
                embeds_new=hasattr(embedder, "query_vector"),
                end_session=partial(opener.end_session, place, session, visible_roots),
            )
    finally:
        await run_even_if_cancelled(opener.close)


@asynccontextmanager
async def open_located_workspace(
    root: str | Path | None,
    scope: Scope | None,
    settings: Settings | None,
    make_parts: Callable[..., Dependencies],
    *,
    trusted: bool,
) -> AsyncIterator[tuple[Workspace, Settings]]:
    """Open the workspace of `Memory.open` with its arguments, and yield it with its settings."""
    folder, loaded_settings = await run_sync(partial(_locate_root, root, scope, settings, trusted=trusted))
    async with open_workspace(folder, check_scope(scope), make_parts(settings=loaded_settings)) as workspace:
        yield workspace, loaded_settings


def _locate_root(
    root: str | Path | None, scope: Scope | None, settings: Settings | None, *, trusted: bool
) -> tuple[Path, Settings]:
    """Check the arguments of `Memory.open`; return the folder of the root and its settings. It blocks on the disk."""
    check_type("root", root, str, Path, NoneType, words="a folder or None")
    check_type("settings", settings, Settings, NoneType, words="a value such as `Settings.load()` or None")
    if any(map(has_secret, check_scope(scope).parts().values())):
        raise InvalidScope("A part of the scope holds a secret: it would be written as the name of a folder.")
    machine = settings or Settings.from_environment()
    folder = (Path(root) if root is not None else machine.root) or default_root(machine.worktrees)
    if settings is None:
        return folder, Settings.load(folder, trusted=trusted).with_default_embedder()
    return folder, settings.with_trusted_root(folder) if trusted else settings


@dataclass(kw_only=True)
class _WorkspaceOpener:
    """Opens the places of one scope, and runs their background work.

    Whoever opens the shared place also processes its jobs, as nobody else does.
    """

    root: Path
    scope: Scope
    parts: Dependencies
    serving: BackgroundServices
    turns: TurnActivity
    shared: BackgroundServices = field(default_factory=BackgroundServices)
    _key: bytes = b""
    _held_folders: list[FolderHandle] = field(default_factory=list)
    _places: list[MemoryRoot] = field(default_factory=list)
    _services: dict[str, RootServices] = field(default_factory=dict)
    _session_use: FolderUse | None = None

    @property
    def files(self) -> FileStore:
        """The files of the root."""
        files = AttachedFolder(self.root, disk=self.parts.disk)
        if self._held_folders:
            files.attach(self._held_folders[0])
        return files

    async def claim(self) -> None:
        """Assign the root to the scope if it has no owner, and read its key, which is valid for all places in it."""
        owner, self._key = await self._claim_root(self.root, self.scope)
        self._held_folders.append(await run_in_thread(FolderHandle, self.root))
        if (owner.project or owner.team) and await read_version(self.files) < LAYOUT_VERSION:
            try:
                await self._migrate_to_users()
            except StorageReadOnly as error:
                raise StorageReadOnly(
                    f"{self.root} is from before users had places of their own, so what is private in it would be "
                    "shown to all, and it can't be written to: open a copy of it where it can be written to."
                ) from error

    async def find_grants(self, layer: RootLayer) -> str:
        """Return the folder of the grants for the sessions of a place; empty if the root has no identity."""
        identity = await read_root_identity(self.files)
        subfolder = f"/{layer.folder.name}" if layer.folder != self.root else ""
        return f"permissions/{identity}{subfolder}" if identity else ""

    def open_states(self, place: MemoryRoot, grants: str, visible_roots: VisibleRoots) -> "StateStore":
        """Return the store for the states of sessions of a place, with its `grants` folder."""
        from ricordo.context.plan import find_newest_request
        from ricordo.workspace.agent_state_store import FileStateStore, FilteredStateStore, PermissionGrants

        permission_grants = PermissionGrants(trust_list_files(self.parts), grants) if grants else None
        return FilteredStateStore(
            FileStateStore(place.files, place.redactor, permission_grants),
            partial(_list_forgotten, visible_roots),
            find_newest_request,
        )

    async def _claim_root(self, root: Path, scope: Scope) -> tuple[Scope, bytes]:
        return await claim_trusted_root(
            root, LocalFiles(root, disk=self.parts.disk), scope, settings=self.parts.settings,
            trust_list=trust_list_files(self.parts), clock=self.parts.clock, ids=self.parts.ids,
        )  # fmt: skip

    async def _migrate_to_users(self) -> None:
        """Move the data of each user from an older shared layout to that user; an interrupted migration continues."""
        files, disk = self.files, self.parts.disk
        from ricordo.runtime.user_migration import migrate_to_users

        async with files.lock(USERS):
            if await read_version(files) == LAYOUT_VERSION:
                return
            await ChangeSets(files, clock=self.parts.clock, ids=self.parts.ids).recover()
            with self.parts.emitter.stage("recover", self.scope) as progress:
                async with self._open_inboxes() as inbox:
                    report = await migrate_to_users(
                        files, lambda user: LocalFiles(self.root / USERS / user, disk=disk), inbox=inbox,
                        config=self.parts.settings.consolidation,
                    )  # fmt: skip
                progress.counts.update(users=len(report.users), entries=sum(report.memories.values()))
            # moved data and new roots can be read without it
            with suppress(StorageReadOnly):
                await upgrade_version(files)

    @asynccontextmanager
    async def _open_inboxes(self) -> AsyncIterator[Callable[[str], JobQueue]]:
        """Yield a function that opens the inbox of a user's folder (root: empty name); close all of them at the end."""
        inboxes: dict[str, JobQueue] = {}

        def open_inbox(user: str) -> JobQueue:
            folder = self.root / USERS / user if user else self.root
            if user not in inboxes:
                inboxes[user] = create_inbox(folder, LocalFiles(folder, disk=self.parts.disk), self.parts)
            return inboxes[user]

        try:
            yield open_inbox
        finally:
            for each in inboxes.values():
                await each.close()

    async def open_memory_root(self, layer: RootLayer) -> MemoryRoot:
        """Open a place."""
        if layer.label == SESSION_LABEL:
            return await self._open_session_root(layer)
        key = self._key
        await run_in_thread(self._held_folders[0].check)
        if layer.label in {USER_LABEL, TEAM_LABEL}:
            _, key = await self._claim_root(layer.folder, layer.scope)
        elif not await run_in_thread(is_vouched_for, self.parts.settings.trust, self.root):
            await run_in_thread(check_links, layer.folder)
        place = await _open_memory_root(layer, key, self.scope, self.parts, self._held_folders)
        self._places.append(place)
        self.serving.add_root(place)
        if layer.label == SHARED_LABEL:
            self.shared.add_task(self.services_for(place).worker.serve)
        return place

    async def _open_session_root(self, layer: RootLayer) -> MemoryRoot:
        """Open the place of a session, which this process uses from now on; nothing of it is recorded elsewhere."""
        async with LocalFiles(layer.folder.parent.parent, disk=self.parts.disk).lock(LOCAL):
            place = await _open_memory_root(layer, self._key, self.scope, self.parts, self._held_folders)
            with suppress(StorageReadOnly):
                self._session_use = await run_in_thread(FolderUse, layer.folder)
        self._places.append(place := replace(place, usage=None))
        return place

    async def close_session_root(self, place: MemoryRoot) -> None:
        """Close the place of a session; the session goes on."""
        self._places.remove(place)
        await place.index.close()
        # its folder may be removed now, and be another one when the session goes on
        for handle in [each for each in self._held_folders if str(each.path) == place.folder]:
            self._held_folders.remove(handle)
            handle.close()
        if self._session_use:
            await run_in_thread(self._session_use.end)

    async def end_session(self, place: MemoryRoot, layer: RootLayer | None, visible_roots: VisibleRoots) -> None:
        """Remove the place of the session, unless another process uses it, which then ends it."""
        if layer is None or not await run_in_thread(layer.folder.exists):
            return
        await visible_roots.close_session_root()
        async with place.files.lock(LOCAL):
            if await run_in_thread(find_folder_use, layer.folder) != "used":
                await self._remove_session(layer.folder, place)

    async def remove_ended_sessions(self, place: MemoryRoot, continued: RootLayer | None) -> None:
        """Remove the places of sessions that ended without having been ended, such as by a crash."""
        find_ended = partial(find_ended_sessions, Path(place.folder), continued, self.parts.clock.now())
        if not await run_in_thread(find_ended):
            return
        with suppress(StorageError):
            async with place.files.lock(LOCAL):
                for folder in await run_in_thread(find_ended):
                    await self._remove_session(folder, place)

    async def _remove_session(self, folder: Path, place: MemoryRoot) -> None:
        from ricordo.runtime.session_places import end_session_place

        index = _index_path(folder, self.parts).parent
        count = await end_session_place(folder, LocalFiles(folder, disk=self.parts.disk), place, index)
        if place.audit:
            await place.audit.record("end", by="session", count=count)

    async def advance_ids(self, layers: Sequence[RootLayer]) -> None:
        """Advance ids past those in these places, because ids of one user's changes are compared across places."""
        for layer in layers:
            await advance_ids(LocalFiles(layer.folder, disk=self.parts.disk), self.parts.ids)

    def services_for(self, place: MemoryRoot) -> RootServices:
        """Return the services of a place, created once."""
        if place.label not in self._services:
            self._services[place.label] = RootServices(place, self.scope, self.parts, self.turns, self._places)
        return self._services[place.label]

    async def schedule_consolidation(self, place: MemoryRoot) -> None:
        """Schedule the consolidation of entries saved for all users, as no session is flushed in their place."""
        config = self.parts.settings.consolidation
        if place.label != SHARED_LABEL or config is None:
            return
        services, due = self.services_for(place), self.parts.clock.now() + timedelta(seconds=config.min_gap)
        # the entry is saved; the worker reports an inbox that can't be used
        with suppress(StorageError):
            if not await services.inbox.jobs(states={"waiting", "running"}, kinds={"consolidate"}, limit=1):
                await services.inbox.put(Job(kind="consolidate", not_before=due))
                services.worker.wake()

    @asynccontextmanager
    async def drain_at_exit(self) -> AsyncIterator[None]:
        """Run the worker of the shared place during the block, then finish its due jobs."""
        # a job that is interrupted here becomes due again
        async with background_task(self.shared.serve):
            yield
        if shared := self._services.get(SHARED_LABEL):
            shared.hurry()
            await shared.worker.drain(seconds=shared.closing_seconds)

    async def close(self) -> None:
        """Close everything that was opened."""
        for services in self._services.values():
            await services.inbox.close()
        for place in self._places:
            if place.usage:
                await place.usage.close()
            if place.audit:
                await place.audit.close()
            await place.index.close()
        for folder in self._held_folders:
            folder.close()
        if self._session_use:
            await run_in_thread(self._session_use.end)


def trust_list_files(parts: Dependencies) -> FileStore:
    """Return the files of the trusted-roots list."""
    return LocalFiles(parts.settings.data / TRUST_LIST, disk=parts.disk)


def root_files(root: Path, *, locks: Path | None = None) -> FileStore:
    """Return the files of a root or another folder, with their locks in `locks`; nothing is opened or repaired."""
    return LocalFiles(root, locks=locks)


@asynccontextmanager
async def open_for_inspection(root: Path, parts: Dependencies) -> AsyncIterator[tuple[JobQueue, FileStore]]:
    """Yield the inbox and the files of a root for inspection; no jobs are run."""
    files = LocalFiles(root, disk=parts.disk)
    inbox = create_inbox(root, files, parts)
    try:
        yield inbox, files
    finally:
        await inbox.close()


def working_directory_files(
    folder: Path, root: Path, parts: Dependencies, within: FileStore | None = None
) -> FileStore:
    """Return the files of a working directory; their locks are in `root`, whose files are `within`."""
    files = AttachedFolder(folder, locks=root / "locks", disk=parts.disk)
    if within is not None and isinstance(within, SupportsFolderCheck):
        files.attach(within)
    return files


def scratch_files() -> FileStore:
    """Return in-memory files, which are lost when the process ends."""
    from ricordo.storage.in_memory import InMemoryFiles

    return InMemoryFiles()


async def inspect_root(root: Path, scratch: Path) -> "list[Check]":
    """Check a root that can't be opened, from outside; its index is created in `scratch`."""
    from ricordo.runtime.doctor import check_root

    files = LocalFiles(root)
    index = await WorkspaceIndex.open(scratch / INDEX_FILE, files)
    try:
        return await check_root(files, index, now=SystemClock().now())
    finally:
        await index.close()


async def _list_forgotten(visible_roots: VisibleRoots) -> list[ForgottenStatements]:
    """Return the forgotten statements of all places of a scope."""
    return [await place.read_forgotten() for place in await visible_roots.open_existing()]


async def _open_memory_root(
    layer: RootLayer, key: bytes, scope: Scope, parts: Dependencies, handles: list[FolderHandle]
) -> MemoryRoot:
    """Open a place for the user of `scope`; `key` is the secret of its root. Its folder is among `handles` then."""
    files = AttachedFolder(layer.folder, disk=parts.disk)
    owner = await claim_folder(files, layer.scope, clock=parts.clock, ids=parts.ids)
    handle = next((each for each in handles if each.path == layer.folder), None)
    if handle is None:
        handles.append(handle := await run_in_thread(FolderHandle, layer.folder))
    files.attach(handle)
    audit = None if layer.label == SESSION_LABEL else _open_audit_log(layer, key, files, scope, parts)
    changes = ChangeSets(
        files, clock=parts.clock, ids=parts.ids, user=scope.user or parts.actor, audit=audit,
        guard=None if layer.label == SESSION_LABEL else parts.settings.retention.find_holds(owner),
    )  # fmt: skip
    await advance_ids(files, parts.ids)
    with parts.emitter.stage("recover", owner) as progress, suppress(StorageError):
        progress.counts["changes"] = await changes.recover()
        progress.counts["files"] = await files.sweep()
        await rename_records(files, await files.list_paths(AGENTS_FOLDER))
    team = None
    if owner.team and not (owner.project or owner.user):
        from ricordo.runtime.teams import open_team_access

        team = await open_team_access(files, changes, owner.team, is_required=layer.label == TEAM_LABEL)
        key = team.key if team else key
    redactor = Redactor(key)
    embedder = None if isinstance(parts.embedder, str | None) else _guard_embedder(parts.embedder, redactor)
    index_path = _index_path(layer.folder, parts)
    index = await WorkspaceIndex.open(
        index_path, files, commit=parts.disk.commit, embedder=embedder,
        ann_vectors=parts.settings.ann_vectors, redactor=redactor,
    )  # fmt: skip
    return MemoryRoot(
        label=layer.label, scope=owner, folder=str(layer.folder), files=files, index=index, changes=changes,
        redactor=redactor, key=key, clock=parts.clock, ids=parts.ids,
        usage=UsageLog(files, parts.clock) if parts.settings.usage else None, audit=audit,
        includes_profile=parts.settings.profile is not None, index_path=str(index_path),
        recall=RecallConfig(decay=parts.settings.decay), team=team,
    )  # fmt: skip


def _open_audit_log(
    layer: RootLayer, key: bytes, files: AttachedFolder, scope: Scope, parts: Dependencies
) -> AuditLog | None:
    """Return the audit log of a place, where `scope` acts; None if it is off. It opens no file."""
    config = parts.settings.audit
    if config.record == "off":
        return None
    who = scope if scope.user or not parts.actor else replace(scope, user=parts.actor)
    return AuditLog(
        layer.folder / AUDIT_FOLDER, key, parts.clock, config=config, who=who, scope=layer.scope, disk=parts.disk,
        check=files.check,
    )  # fmt: skip


def _guard_embedder(embedder: "Embedder", redactor: Redactor) -> "Embedder":
    from ricordo.runtime.guarded_models import guard_embedder

    return guard_embedder(embedder, redactor)


def _guard_reranker(reranker: Reranker, redactor: Redactor) -> Reranker:
    from ricordo.runtime.guarded_models import GuardedReranker

    return GuardedReranker(reranker=reranker, redactor=redactor)


def _index_path(root: Path, parts: Dependencies) -> Path:
    """Return the path of the index: in the folder from the settings, else in the root, or in the cache if read-only."""
    index_folder = parts.settings.index
    folder = writable_folder(root, parts) if index_folder is None else cache_folder(index_folder.absolute(), root)
    return folder / INDEX_FILE
