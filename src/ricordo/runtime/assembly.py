"""Assembly: the one place that names concrete backends and puts a root together."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from pathlib import Path

from ricordo.audit.doctor import Check, inspect
from ricordo.audit.ledgers import follow_written
from ricordo.audit.usage import UsageLog
from ricordo.beside import beside
from ricordo.clock import SystemClock
from ricordo.errors import StorageError, StorageReadOnly
from ricordo.events import Emitter
from ricordo.files import FileStore
from ricordo.files.contract import Held
from ricordo.files.in_memory import InMemoryFiles
from ricordo.files.local import LocalFiles
from ricordo.files.opened_folder import HeldFolder, OpenedFolder
from ricordo.guard import Redactor
from ricordo.index.keyword import KeywordIndex
from ricordo.maintenance.bring_over import move_to_users
from ricordo.maintenance.curation import Curation
from ricordo.maintenance.session_flush import SessionFlush
from ricordo.maintenance.turns import TurnsAtWork, turns_in
from ricordo.maintenance.worker import Worker
from ricordo.profile.storage import Profiles
from ricordo.queue import Job, Queue
from ricordo.recall.reranking import Reranker
from ricordo.runtime.claiming import claimed_root, root_identity
from ricordo.runtime.guarded_models import GuardedReranker, guarded_embedder
from ricordo.runtime.hiding_states import HidingStates
from ricordo.runtime.marker import VERSION, claim_place, raise_version, read_version
from ricordo.runtime.parts import Parts
from ricordo.runtime.place_work import Work, inbox_of, work_in, writable
from ricordo.runtime.rerankers import chosen_reranker
from ricordo.runtime.roots import cache_folder
from ricordo.runtime.serving import Serving, chosen_embedder
from ricordo.runtime.trust import LIST, check_links, vouches_for
from ricordo.runtime.visible_places import USER_LABEL, Layer, VisiblePlaces, layers_of
from ricordo.scopes import Scope
from ricordo.spending import Meter
from ricordo.state import StateStore
from ricordo.state.files import FileStates
from ricordo.state.grants import Grants
from ricordo.stores.contract import Backend, Store, StoreParts
from ricordo.stores.layered import Layered
from ricordo.stores.place import SHARED_LABEL, Place
from ricordo.stores.saving_clock import SavingClock
from ricordo.uncut import uncut_in_thread
from ricordo.workspace.changes import ChangeSets
from ricordo.workspace.forgotten import Forgotten
from ricordo.workspace.layout import INDEX, USERS
from ricordo.workspace.renaming import AGENTS, rename_records

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
class Workspace:
    """An open root with its store, and what works on its sessions; `backend` is what `store` was bound from.

    `place` is the narrowest of the places that the scope sees, in which its sessions are. `shared` are the files of the
    one that the root shares, None where it is the narrowest itself. `turns` are those at work in
    `root`. `flush` does a flush job without asking the inbox; `worker` does what waits in it. `curation` makes curated
    memory of ledgers; None when it is switched off. `meter` counts what memory asks models for. `profiles` keeps what
    is known of each user. `reranker` has a say in what is found.
    """

    root: Path
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
    turns: TurnsAtWork
    emitter: Emitter
    reranker: Reranker | None = None
    shared: FileStore | None = None

    @property
    def folder(self) -> Path:
        """Where the narrowest place lies."""
        return Path(self.place.folder)


@asynccontextmanager
async def open_workspace(root: Path, scope: Scope, parts: Parts) -> AsyncIterator[Workspace]:
    """Open the root for `scope`, create it when there is none, and close it at the end.

    What waits in the inbox is worked off meanwhile, and for two seconds at the end unless that is cancelled. So is what
    waits in that of the place which the root shares, as soon as that is looked into.
    Raises: RootNotTrusted; ScopeMismatch; StorageReadOnly if it has to be created and can't be; what `load_embedder`
    raises, and `load_reranker`.
    """
    serving, turns = Serving(), turns_in(str(root))
    embedder = await uncut_in_thread(chosen_embedder, parts.embedder, parts.settings, parts.model)
    parts, given = replace(parts, embedder=embedder), parts.reranker
    chosen = await uncut_in_thread(chosen_reranker, given) if isinstance(given, str) else given
    opening = _Opening(root=root, scope=scope, parts=parts, serving=serving, turns=turns)
    with parts.emitter.stage("open", scope):
        layers = await uncut_in_thread(layers_of, root, scope, parts.settings.data)
        await opening.claim()
        place = await opening.place(layers[0])
        await opening.follow_written(layers[1:])
    reranker = GuardedReranker(reranker=chosen, redactor=place.redactor) if chosen is not None else None
    seen = VisiblePlaces(layers, place, opening.place)
    try:
        clock = SavingClock(parts.clock)
        await clock.catch_up(place.files)
        backend = Layered(
            StoreParts(
                redactor=place.redactor, clock=clock, ids=parts.ids, emitter=parts.emitter, key=place.key,
                catch_up=partial(opening.follow_written, layers),
            ), seen, scope,
            reranker=reranker, consolidation=parts.settings.consolidation, saved=opening.saved,
        )  # fmt: skip
        work = opening.work_of(place)
        states = FileStates(place.files, place.redactor, await opening.grants(layers[0]))
        async with (
            beside(serving.serve),
            work.worker.at_work(closing_seconds=work.flush.config.closing_seconds),
            opening.finishing(),
            work.upkeep.hurrying(),
        ):
            yield Workspace(
                root=root,
                scope=scope,
                place=place,
                backend=backend,
                store=backend.bind(scope),
                flush=work.flush,
                curation=work.upkeep.curation,
                inbox=work.inbox,
                worker=work.worker,
                states=HidingStates(states, partial(_forgotten, seen)),
                profiles=work.profiles,
                meter=work.meter,
                turns=turns,
                emitter=parts.emitter,
                reranker=reranker,
                shared=opening.files if len(layers) > 1 else None,
            )
    finally:
        await opening.close()


@dataclass(kw_only=True)
class _Opening:
    """Opens the places of one scope, and lets what has to be done in them be done beside whoever opened the root.

    What users share is worked on by whoever looks into it, as nobody else does.
    """

    root: Path
    scope: Scope
    parts: Parts
    serving: Serving
    turns: TurnsAtWork
    shared: Serving = field(default_factory=Serving)
    _key: bytes = b""
    _held: list[HeldFolder] = field(default_factory=list)
    _places: list[Place] = field(default_factory=list)
    _works: dict[str, Work] = field(default_factory=dict)

    @property
    def files(self) -> FileStore:
        """The files of the root."""
        files = OpenedFolder(self.root, disk=self.parts.disk)
        if self._held:
            files.hold(self._held[0])
        return files

    async def claim(self) -> None:
        """Give the root to the scope if it is nobody's, and read its secret, which holds for all places in it."""
        owner, self._key = await self._claimed(self.root, self.scope)
        self._held.append(await uncut_in_thread(HeldFolder, self.root))
        if (owner.project or owner.team) and await read_version(self.files) < VERSION:
            try:
                await self._bring_over()
            except StorageReadOnly as error:
                raise StorageReadOnly(
                    f"{self.root} is from before users had places of their own, so what is private in it would be "
                    "shown to all, and it can't be written to: open a copy of it where it can be written to."
                ) from error

    async def grants(self, layer: Layer) -> Grants | None:
        """Return what keeps the permissions of a place's sessions; None where nothing of the root is kept."""
        identity = await root_identity(self.files)
        own = f"/{layer.folder.name}" if layer.folder != self.root else ""
        return Grants(trusted_files(self.parts), f"permissions/{identity}{own}") if identity else None

    async def _claimed(self, root: Path, scope: Scope) -> tuple[Scope, bytes]:
        return await claimed_root(
            root, LocalFiles(root, disk=self.parts.disk), scope, settings=self.parts.settings,
            listed=trusted_files(self.parts), clock=self.parts.clock, ids=self.parts.ids,
        )  # fmt: skip

    async def _bring_over(self) -> None:
        """Give what an older layout kept for all users together to each of them; who is cut off, or late, goes on."""
        files, disk = self.files, self.parts.disk
        async with files.lock(USERS):
            if await read_version(files) == VERSION:
                return
            await ChangeSets(files, clock=self.parts.clock, ids=self.parts.ids).recover()
            with self.parts.emitter.stage("recover", self.scope) as progress:
                async with self._inboxes() as inbox:
                    done = await move_to_users(
                        files, lambda user: LocalFiles(self.root / USERS / user, disk=disk), inbox=inbox,
                        config=self.parts.settings.consolidation,
                    )  # fmt: skip
                progress.counts.update(users=len(done.users), entries=sum(done.memories.values()))
            # what is moved, or was never there, can be read without it
            with suppress(StorageReadOnly):
                await raise_version(files)

    @asynccontextmanager
    async def _inboxes(self) -> AsyncIterator[Callable[[str], Queue]]:
        """Give what opens the inbox of a user's folder, and for the empty name that of the root; all are closed."""
        opened: dict[str, Queue] = {}

        def inbox(user: str) -> Queue:
            folder = self.root / USERS / user if user else self.root
            if user not in opened:
                opened[user] = inbox_of(folder, LocalFiles(folder, disk=self.parts.disk), self.parts)
            return opened[user]

        try:
            yield inbox
        finally:
            for each in opened.values():
                await each.close()

    async def place(self, layer: Layer) -> Place:
        """Open a place."""
        key = self._key
        await uncut_in_thread(self._held[0].check)
        if layer.label == USER_LABEL:
            _, key = await self._claimed(layer.folder, layer.scope)
        elif not await uncut_in_thread(vouches_for, self.parts.settings.trust, self.root):
            await uncut_in_thread(check_links, layer.folder)
        place = await _open_place(layer, key, self.scope, self.parts, self._held)
        self._places.append(place)
        self.serving.begin(place)
        if layer.label == SHARED_LABEL:
            self.shared.run(self.work_of(place).worker.serve)
        return place

    async def follow_written(self, layers: Sequence[Layer]) -> None:
        """Let new ids sort after what was written in these, as those of one user's acts in all places are compared."""
        for layer in layers:
            await follow_written(LocalFiles(layer.folder, disk=self.parts.disk), self.parts.ids)

    def work_of(self, place: Place) -> Work:
        """Return what works in a place, which is made once."""
        if place.label not in self._works:
            self._works[place.label] = work_in(place, self.scope, self.parts, self.turns, self._places)
        return self._works[place.label]

    async def saved(self, place: Place) -> None:
        """Let what was saved for all be consolidated in time: no session is learned from where it lies."""
        config = self.parts.settings.consolidation
        if place.label != SHARED_LABEL or config is None:
            return
        work, later = self.work_of(place), self.parts.clock.now() + timedelta(seconds=config.min_gap)
        # the entry is saved; an inbox that can't be used is told by whoever works on it
        with suppress(StorageError):
            if not await work.inbox.jobs(states={"waiting", "running"}, kinds={"consolidate"}, limit=1):
                await work.inbox.put(Job(kind="consolidate", after=later))
                work.worker.wake()

    @asynccontextmanager
    async def finishing(self) -> AsyncIterator[None]:
        """Work for the shared place while the block runs, and work off what is due there once it has ended."""
        # work that its end cuts off is due again
        async with beside(self.shared.serve):
            yield
        if shared := self._works.get(SHARED_LABEL):
            shared.upkeep.hurry()
            await shared.worker.drain(seconds=shared.flush.config.closing_seconds)

    async def close(self) -> None:
        """Close all that was opened."""
        for work in self._works.values():
            await work.inbox.close()
        for place in self._places:
            if place.usage:
                await place.usage.close()
            await place.index.close()
        for folder in self._held:
            folder.close()


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
    inbox = inbox_of(root, files, parts)
    try:
        yield inbox, files
    finally:
        await inbox.close()


def working_files(folder: Path, root: Path, parts: Parts, within: FileStore | None = None) -> FileStore:
    """Return the files of a working directory, whose locks are kept in the root `root`, that of the files `within`."""
    files = OpenedFolder(folder, locks=root / "locks", disk=parts.disk)
    if within is not None and isinstance(within, Held):
        files.hold(within)
    return files


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


async def _forgotten(seen: VisiblePlaces) -> list[Forgotten]:
    """Return what was forgotten in the places of a scope."""
    return [await place.forgotten() for place in await seen.existing()]


async def _open_place(layer: Layer, key: bytes, scope: Scope, parts: Parts, held: list[HeldFolder]) -> Place:
    """Open a place for who is in `scope`; `key` is the secret of its root for digests. Its folder joins `held`."""
    files = OpenedFolder(layer.folder, disk=parts.disk)
    owner = await claim_place(files, layer.scope, clock=parts.clock, ids=parts.ids)
    held.append(await uncut_in_thread(HeldFolder, layer.folder))
    files.hold(held[-1])
    changes = ChangeSets(files, clock=parts.clock, ids=parts.ids, user=scope.user or parts.actor)
    await follow_written(files, parts.ids)
    with parts.emitter.stage("recover", owner) as progress, suppress(StorageError):
        progress.counts["changes"] = await changes.recover()
        progress.counts["files"] = await files.sweep()
        await rename_records(files, await files.paths(AGENTS))
    redactor = Redactor(key)
    embedder = None if isinstance(parts.embedder, str | None) else guarded_embedder(parts.embedder, redactor)
    index_path = _index_path(layer.folder, parts)
    index = await KeywordIndex.open(
        index_path, files, commit=parts.disk.commit, embedder=embedder,
        ann_vectors=parts.settings.ann_vectors, redactor=redactor,
    )  # fmt: skip
    return Place(
        label=layer.label,
        scope=owner,
        folder=str(layer.folder),
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


def _index_path(root: Path, parts: Parts) -> Path:
    """Return where the index goes: where the settings say, else the root, or the cache if that can't be written to."""
    elsewhere = parts.settings.index
    folder = writable(root, parts) if elsewhere is None else cache_folder(elsewhere.absolute(), root)
    return folder / INDEX
