"""Stores by scheme: built in, registered by a program, or offered as an entry point of `ricordo.stores`.

No backend is imported before it is opened. Without a configured default store, nothing is stored.

Invariant: a folder is claimed for its owner, and hidden from git, before a backend sees it. No folder with other things
in it becomes a store.
"""

import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from hashlib import blake2b
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from types import NoneType

from anyio.to_thread import run_sync

from ricordo.clock import Clock, IdSource
from ricordo.concurrency import run_even_if_cancelled
from ricordo.errors import ExtraMissing, InvalidInput, InvalidScope, InvalidSetting, install_command
from ricordo.events import EventSink
from ricordo.guard import Redactor, has_secret
from ricordo.lazy import dataclass, lazy_compile
from ricordo.models import Embedder
from ricordo.runtime.claiming import claim_trusted_root
from ricordo.runtime.guarded_models import guard_embedder
from ricordo.runtime.models import load_named_embedder
from ricordo.runtime.roots import create_key, default_root, digest_key, find_workspace, load_guard_key
from ricordo.runtime.settings import Settings
from ricordo.runtime.validation import check_scope, check_type
from ricordo.runtime.workspace import Dependencies, open_workspace, trust_list_files
from ricordo.scope import Scope
from ricordo.search.index import WorkspaceIndex
from ricordo.storage import FileStore
from ricordo.storage.disk import Disk, translate_os_error
from ricordo.storage.folders import RequiredFolder
from ricordo.storage.local import LocalFiles
from ricordo.stores.addresses import (
    BUILT_IN_STORES,
    SCHEMES,
    Address,
    BuiltInStore,
    OpenRequest,
    StoreFactory,
    parse_address,
)
from ricordo.stores.contract import Backend, Closes, Store, StoreParts
from ricordo.workspace.layout import PROJECT_FILE, WORKSPACE

__all__ = [
    "BUILT_IN_STORES",
    "STORE_GROUP",
    "BuiltInStore",
    "StoreOpener",
    "StoreScheme",
    "check_memory_folder",
    "check_no_foreign_files",
    "check_not_file",
    "close_store",
    "expand_home",
    "get_default_store",
    "import_store",
    "list_schemes",
    "open_backend",
    "open_store",
    "register_store",
    "set_default_store",
]


_STORE_FILES = lazy_compile(
    r"\.gitignore|\.~.+|guard\.key|locks|sessions|memory|topics|tenants|users|teams|projects|agents|\.DS_Store|Thumbs\.db"
    r"|.*\.(md|json|jsonl)|(memory|index)[^/]*\.(db|mdb|idx|npy|npz|f32|vec).*",
    re.IGNORECASE,
)
"""Names that may occur in a store folder, including files of another process that is claiming it.

Anything else in an unclaimed folder means that it is not a store.
"""


def expand_home(place: str) -> Path:
    """Return the path of an address, expanding `~`. Raises: InvalidSetting for the home of an unknown user."""
    try:
        return Path(place).expanduser()
    except RuntimeError as error:
        raise InvalidSetting(
            f"{place!r} is in the home folder of nobody here: a folder of this name is ./~…."
        ) from error


def check_not_file(folder: Path) -> None:
    """Raise `InvalidInput` if the path is a file or lies below one."""
    try:
        existing = next(path for path in (folder, *folder.parents) if path.exists())
        is_file = not existing.is_dir()
    except OSError as error:
        raise translate_os_error(error, str(folder)) from error
    if is_file:
        raise InvalidInput(f"{existing} is a file: name a folder for the store.")


def check_no_foreign_files(folder: Path) -> None:
    """Raise `InvalidInput` for a file, or for a folder with anything that is not part of a store."""
    check_not_file(folder)
    try:
        foreign = _find_foreign(folder)
    except OSError as error:
        raise translate_os_error(error, str(folder)) from error
    if foreign is not None:
        raise InvalidInput(
            f"{folder} holds other things, such as {foreign}, and a store hides its folder from git: name a folder "
            f"that is new or empty, such as {folder / '.harness'}."
        )


def check_memory_folder(folder: Path, mark: Path) -> None:
    """Raise `InvalidInput` for a non-empty folder without MEMORY.md, or one managed by Ricordo.

    `mark` is the owner record of the folder: a folder that was empty when claimed gets its MEMORY.md last.
    """
    try:
        is_file = folder.exists() and not folder.is_dir()
        own = (folder / PROJECT_FILE).exists() or (folder.name == WORKSPACE and (folder.parent / PROJECT_FILE).exists())
        names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
        # checked last: a process that writes into the folder has claimed it before
        claimed = mark.exists()
    except OSError as error:
        raise translate_os_error(error, str(folder)) from error
    if is_file:
        raise InvalidInput(f"{folder} is a file: name the folder that holds MEMORY.md.")
    if own:
        raise InvalidInput(f"{folder} is kept by Ricordo itself: open the root with layered:PATH.")
    if names and "MEMORY.md" not in names and not claimed:
        raise InvalidInput(f"{folder} is no memory folder: it holds {min(names)}, and no MEMORY.md.")


def _find_foreign(folder: Path) -> str | None:
    """Return the name of one item that is not part of a store, or None."""
    paths = folder.iterdir() if folder.is_dir() else ()
    return next((path.name for path in paths if not _belongs_to_store(path)), None)


def _belongs_to_store(path: Path) -> bool:
    if path.name == ".gitignore":
        return b"*" in path.read_bytes().splitlines()
    return _STORE_FILES.fullmatch(path.name) is not None


def import_store(scheme: str, built_in: BuiltInStore) -> StoreFactory:
    """Import a backend and return its factory. Raises: ExtraMissing if its package is not installed."""
    module, _, function = built_in.import_path.partition(":")
    try:
        factory: StoreFactory = getattr(import_module(f"ricordo.stores.{module}"), function)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("ricordo"):
            raise
        raise ExtraMissing(
            f"The store {scheme} needs {error.name}. Install it with {install_command(built_in.extra)}."
        ) from error
    return factory


STORE_GROUP = "ricordo.stores"
"""The entry point group under which packages offer stores; the name is the scheme."""
_SCHEME_NAME = lazy_compile(r"[a-z][a-z0-9_+-]+")


@dataclass(frozen=True, kw_only=True)
class StoreScheme:
    """A backend that an address can name: `description` says what it stores, `requires` which package it needs.

    `origin` is who offers it: Ricordo, the program, or the name of the entry point's package.
    """

    name: str
    description: str = ""
    requires: str = ""
    origin: str = "Ricordo"


_LEADING_SLASHES = lazy_compile(r"//(?!/)")
_LAYERED_SCHEME = StoreScheme(name="layered", description="everything that a Ricordo root does")


class _StoreRegistry:
    """Registrations of this process: factories by scheme, and the address of its default store."""

    def __init__(self) -> None:
        self.factories: dict[str, StoreFactory] = {}
        self.default: str | None = None


_REGISTRY = _StoreRegistry()


def register_store(scheme: str, factory: StoreFactory) -> None:
    """Register `factory` for addresses with `scheme`; it replaces an earlier registration.

    Raises: InvalidSetting for a built-in scheme, or an invalid one: a scheme has two or more characters, lower-case
    letters, digits, `_`, `+` and `-`, and begins with a letter.
    """
    if scheme in SCHEMES:
        raise InvalidSetting(f"The scheme {scheme} is Ricordo's own: name yours otherwise.")
    if not _SCHEME_NAME.fullmatch(scheme):
        raise InvalidSetting(f"{scheme!r} is no scheme: it has two or more lower-case letters, digits, _, + or -.")
    _REGISTRY.factories[scheme] = factory


def list_schemes() -> tuple[StoreScheme, ...]:
    """Return the schemes that an address can name: built-in ones, then registered ones, then installed ones."""
    built_in = [_describe_scheme(name) for name in SCHEMES]
    registered = [StoreScheme(name=name, origin="this program") for name in sorted(_REGISTRY.factories)]
    known_names = {*SCHEMES, *_REGISTRY.factories}
    installed = {
        point.name: StoreScheme(name=point.name, origin=point.dist.name if point.dist else point.value)
        for point in entry_points(group=STORE_GROUP)
        if point.name not in known_names
    }
    return (*built_in, *registered, *(installed[name] for name in sorted(installed)))


def set_default_store(address: str | None) -> None:
    """Set the default store of this process, for `open_store` and for agents; None removes it.

    Raises: InvalidSetting for an invalid address. The scheme is looked up, and the store opened, at its first use.
    """
    if address is not None:
        parse_address(address)
    _REGISTRY.default = address


def get_default_store() -> str | None:
    """Return the address of the default store; None until one is set, and then nothing is stored."""
    return _REGISTRY.default


@asynccontextmanager
async def open_store(
    address: str | None = None,
    *,
    scope: Scope | None,
    settings: Settings | None = None,
    clock: Clock | None = None,
    ids: IdSource | None = None,
    disk: Disk | None = None,
    sink: EventSink | None = None,
    embedder: Embedder | None = None,
    trusted: bool = False,
) -> AsyncIterator[Store]:
    """Open the store at `address`, such as `jsonl:./notes`, bound to `scope`; without one, the default store.

    A folder is created if it does not exist. Buffered writes are completed at the end of the block. `layered:PATH` is
    the memory of the root PATH, or of the nearest root if PATH is empty. `embedder` is for stores with vectors.
    `trusted` allows a folder that was not created on this machine. Raises: ScopeRequired; RootNotTrusted;
    InvalidSetting for an address that names no store; ExtraMissing for a store whose package is not installed;
    ScopeMismatch for another owner's folder; InvalidInput for a folder with other things in it; StorageError.
    """
    async with open_backend(
        address, scope=scope, settings=settings, clock=clock, ids=ids, disk=disk, sink=sink, embedder=embedder,
        trusted=trusted,
    ) as backend:  # fmt: skip
        store = backend.bind(scope)
        try:
            yield store
        finally:
            await close_store(store)


@asynccontextmanager
async def open_backend(
    address: str | None = None,
    *,
    scope: Scope | None,
    settings: Settings | None = None,
    clock: Clock | None = None,
    ids: IdSource | None = None,
    disk: Disk | None = None,
    sink: EventSink | None = None,
    embedder: Embedder | None = None,
    trusted: bool = False,
) -> AsyncIterator[Backend]:
    """Open the backend at `address`, to bind it to several scopes; otherwise like `open_store`.

    `scope` is the owner of the folder. Close bound stores with `close_store`.
    """
    scope = check_scope(scope)
    check_type("settings", settings, Settings, NoneType, words="a value such as `Settings.load()` or None")
    parts = Dependencies.create(settings=settings, clock=clock, disk=disk, sink=sink)
    opener = StoreOpener(scope=scope, parts=replace(parts, ids=ids or parts.ids), embedder=embedder, trusted=trusted)
    async with opener.open_backend(address or get_default_store() or "none") as backend:
        yield backend


async def close_store(store: Store) -> None:
    """Write the store's buffered data, even if the task is being cancelled. Raises `StorageError`."""
    closable = store.offers(Closes)
    if closable:
        await run_even_if_cancelled(closable.close)


@dataclass(frozen=True, kw_only=True)
class StoreOpener:
    """Opens backends for one scope; a relative path is below `base`, or the working directory if None.

    With `allowed_folder` no folder outside of it is opened, because the address may come from somebody else. With
    `trusted` every opened folder counts as trusted.
    """

    scope: Scope
    parts: Dependencies
    embedder: Embedder | None = None
    base: Path | None = None
    allowed_folder: Path | None = None
    trusted: bool = False

    @asynccontextmanager
    async def open_backend(self, text: str) -> AsyncIterator[Backend]:
        """Open the backend of an address and close it at the end. Raises as `open_store` does."""
        if any(map(has_secret, self.scope.parts().values())):
            raise InvalidScope("A part of the scope holds a secret: it would be written as the name of a folder.")
        address = parse_address(text)
        folder = await run_sync(self._resolve_folder, address)
        factory = await run_sync(self._find_factory, address.scheme)
        claimed = await run_sync(self._owner_folder, address.scheme, folder)
        key = await self._load_key(address.scheme, claimed)
        parts = StoreParts(
            redactor=Redactor(key), clock=self.parts.clock, ids=self.parts.ids, emitter=self.parts.emitter, key=key
        )
        embedder = guard_embedder(self.embedder, parts.redactor) if self.embedder else None
        opening = OpenRequest(
            address=address, scope=self.scope, parts=parts, open_another=self.open_backend, folder=folder,
            open_files=self._open_user_files if _is_user_folder(address.scheme) else self._open_files,
            embedder=embedder, open_index=partial(WorkspaceIndex.open, redactor=parts.redactor),
            embedder_by_name=partial(self._load_embedder, redactor=parts.redactor),
            record_files=self._metadata_files if _is_user_folder(address.scheme) else None,
        )  # fmt: skip
        async with factory(opening) as backend:
            yield backend

    def _load_embedder(self, name: str, redactor: Redactor) -> Embedder:
        return guard_embedder(load_named_embedder(name, self.parts.settings, self.parts.model), redactor)

    def _find_factory(self, scheme: str) -> StoreFactory:
        """Return the factory of a scheme; it imports, so call it in a thread. Raises: InvalidSetting, ExtraMissing."""
        if scheme == _LAYERED_SCHEME.name:
            return self._open_layered
        if scheme in _REGISTRY.factories:
            return _REGISTRY.factories[scheme]
        if scheme in BUILT_IN_STORES:
            return import_store(scheme, BUILT_IN_STORES[scheme])
        return _load_entry_point(scheme)

    def find_folder(self, address: Address) -> Path | None:
        """Return the folder of an address, for a Ricordo root its workspace; None if it has no folder."""
        folder = self._resolve_folder(address)
        return find_workspace(folder, self.scope) or folder if folder else None

    def _resolve_folder(self, address: Address) -> Path | None:
        """Return the folder of an address. Raises: InvalidSetting for one that may not be opened."""
        scheme, built_in = address.scheme, BUILT_IN_STORES.get(address.scheme)
        place = address.location or (built_in.default_folder if built_in else "")
        if self.allowed_folder and scheme not in SCHEMES:
            raise InvalidSetting(
                f"A config.toml can't name the store {address}, only Ricordo's own: set RICORDO_STORE."
            )
        has_place = built_in is None or built_in.has_folder
        if has_place and built_in and (not place or _LEADING_SLASHES.match(place)):
            raise InvalidSetting(f"{str(address)!r} names no folder: write one, such as {scheme}:./notes.")
        if not has_place or not place or _LEADING_SLASHES.match(place):
            return None
        folder = ((self.base or Path.cwd()) / expand_home(place)).absolute()
        if self.allowed_folder and not folder.resolve().is_relative_to(self.allowed_folder.resolve()):
            raise InvalidSetting(
                f"A config.toml can't name the store {address}: it may have come with a folder, so its store lies "
                f"below {self.allowed_folder}. Set RICORDO_STORE."
            )
        return folder

    async def _claim_folder(self, folder: Path) -> tuple[Scope, bytes]:
        """Return the owner and key of a folder; it is assigned to the scope if it has no owner."""
        files, settings = LocalFiles(folder, disk=self.parts.disk), self.parts.settings
        if not await run_sync((folder / PROJECT_FILE).is_file):
            await run_sync(check_no_foreign_files, folder)
        return await claim_trusted_root(
            folder, files, self.scope, settings=settings.with_trusted_root(folder) if self.trusted else settings,
            trust_list=trust_list_files(self.parts), clock=self.parts.clock, ids=self.parts.ids,
        )  # fmt: skip

    @asynccontextmanager
    async def _open_files(self, folder: Path) -> AsyncIterator[FileStore]:
        """Yield the files of a folder claimed for the scope; for a Ricordo root, those of its workspace."""
        await self._claim_folder(folder)
        yield await run_sync(self._known_folder_files, folder)

    def _known_folder_files(self, folder: Path) -> FileStore:
        """Return the files of a claimed folder, which contains its marker."""
        if workspace_folder := find_workspace(folder, self.scope):
            return RequiredFolder(workspace_folder, locks=workspace_folder.parent / "locks", disk=self.parts.disk)
        return RequiredFolder(folder, disk=self.parts.disk, is_never_empty=True)

    def _owner_folder(self, scheme: str, folder: Path | None) -> Path | None:
        """Return the folder with the owner record of a store; None if there is none. Raises: InvalidInput."""
        if folder is None or scheme not in SCHEMES:
            return None
        if _is_user_folder(scheme):
            metadata_folder = self._metadata_folder(folder)
            check_memory_folder(folder, metadata_folder / PROJECT_FILE)
            return metadata_folder
        check_not_file(folder)
        return folder if scheme in BUILT_IN_STORES else None

    async def _load_key(self, scheme: str, claimed: Path | None) -> bytes:
        """Return the secret for the digests of a store: that of its folder, or the user's for third-party stores."""
        if claimed:
            return (await self._claim_folder(claimed))[1]
        if scheme in SCHEMES:
            return create_key()
        return digest_key(await load_guard_key(LocalFiles(self.parts.settings.data / "stores", disk=self.parts.disk)))

    def _metadata_folder(self, folder: Path) -> Path:
        """Return the folder for the owner and locks of a user's own folder, which is not marked itself."""
        digest = blake2b(os.fsencode(os.path.realpath(folder)), digest_size=10).hexdigest()
        return self.parts.settings.data / "folders" / digest

    @asynccontextmanager
    async def _open_user_files(self, folder: Path) -> AsyncIterator[FileStore]:
        """Yield the files of a user's own folder, claimed for the scope without a marker in it."""
        metadata_folder = await run_sync(self._metadata_folder, folder)
        await self._claim_folder(metadata_folder)
        yield await run_sync(partial(RequiredFolder, folder, locks=metadata_folder / "locks", disk=self.parts.disk))

    def _metadata_files(self, folder: Path) -> FileStore:
        """Return the files for the metadata of a user's own folder."""
        return LocalFiles(self._metadata_folder(folder), disk=self.parts.disk)

    @asynccontextmanager
    async def _open_layered(self, opening: OpenRequest) -> AsyncIterator[Backend]:
        """Open the same backend as `Memory.open`."""
        root = opening.folder if opening.folder else await run_sync(default_root, self.parts.settings.worktrees)
        settings = self.parts.settings
        parts = replace(self.parts, settings=settings.with_trusted_root(root)) if self.trusted else self.parts
        async with open_workspace(root, self.scope, parts) as workspace:
            yield workspace.backend


def _is_user_folder(scheme: str) -> bool:
    return scheme in BUILT_IN_STORES and BUILT_IN_STORES[scheme].is_user_folder


def _describe_scheme(name: str) -> StoreScheme:
    if name == _LAYERED_SCHEME.name:
        return _LAYERED_SCHEME
    built_in = BUILT_IN_STORES[name]
    return StoreScheme(
        name=name, description=built_in.description, requires=f"the extra {built_in.extra}" if built_in.extra else ""
    )


def _load_entry_point(scheme: str) -> StoreFactory:
    """Return the factory that an installed package offers under this name. Raises: InvalidSetting, ExtraMissing."""
    matches = [point for point in entry_points(group=STORE_GROUP) if point.name == scheme]
    if not matches:
        names = [each.name for each in list_schemes()]
        suggestions = get_close_matches(scheme, names, n=1, cutoff=0.6)
        hint = f"did you mean {suggestions[0]}? " if suggestions else ""
        raise InvalidSetting(
            f"No store has the scheme {scheme!r}: {hint}Known schemes: {', '.join(names)}. A path with a colon in it "
            "begins with ./ or /."
        )
    try:
        factory: StoreFactory = matches[0].load()
    except (ImportError, AttributeError) as error:
        raise ExtraMissing(f"The store {scheme} of {matches[0].value} can't be loaded: {error}.") from error
    return factory
