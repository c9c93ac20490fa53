"""The store of an agent: the memory of its root, another store, or none if neither can be opened.

Transcripts, state and the inbox are always in the root, and forgotten entries are hidden there too. Extraction and
consolidation write to the root's memory, so both are off with another store.
"""

import logging
import secrets
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import cached_property, partial
from pathlib import Path
from types import TracebackType
from typing import Literal, TypeAlias

from anyio.to_thread import run_sync

from ricordo.agent.options import AgentOptions
from ricordo.context.prompt import MEMORY_FILES
from ricordo.curation.forget import forget_copies
from ricordo.errors import InvalidInput, RicordoError, ScopeError, ScopeMismatch, StorageError, StorageFailed
from ricordo.guard import Redactor
from ricordo.lazy import dataclass
from ricordo.runtime.roots import create_key
from ricordo.runtime.settings import Settings
from ricordo.runtime.stores import StoreOpener, close_store, expand_home, get_default_store
from ricordo.runtime.workspace import Dependencies, Workspace
from ricordo.scope import Scope
from ricordo.search.memory_root import MemoryRoot
from ricordo.stores import NoMemory
from ricordo.stores.addresses import Address, parse_address
from ricordo.stores.base import refuse_place
from ricordo.stores.contract import Backend, Store, StoreParts, add_forget_hook
from ricordo.workspace.entry import Entry

__all__ = ["AgentResources", "AgentStore", "note_not_opened", "open_agent_store", "uses_root_memory"]


_LOG = logging.getLogger("ricordo.agent")
_FORGET_REASON = "forgotten in the store of the session"
StoreStatus: TypeAlias = Literal["own", "other", "off", "broken"]


@dataclass(frozen=True, kw_only=True)
class AgentStore:
    """The store of an agent: the root's `own`, `other`, or one that saves nothing.

    The status of the last is `off` if memory is not wanted, and `broken` if it could not be opened. `folder` holds the
    files of another store, None if unknown.
    """

    store: Store
    status: StoreStatus
    folder: Path | None = None

    @property
    def is_own(self) -> bool:
        """Whether this is the memory of the agent's root, which is used for extraction and consolidation."""
        return self.status == "own"

    @property
    def label(self) -> str:
        """The name of the store for people and models: the root's files, or the store."""
        return MEMORY_FILES if self.is_own else "the store"

    @property
    def is_active(self) -> bool:
        """Whether the agent has memory."""
        return self.status in {"own", "other"}

    @classmethod
    def from_root(cls, workspace: Workspace) -> "AgentStore":
        """Return the root's own store."""
        return cls(store=workspace.store, status="own")


@dataclass(frozen=True, kw_only=True)
class AgentResources:
    """What every session of an agent uses: the options with their defaults, the open root and the store.

    `root` is absolute, `workspace` is None if it is not open, and `is_writable` says whether sessions are recorded.
    `folder` is the working directory.
    """

    options: AgentOptions
    parts: Dependencies
    root: Path
    folder: Path
    workspace: Workspace | None
    memory: AgentStore
    is_writable: bool

    @property
    def place(self) -> MemoryRoot | None:
        """The documents of the open root; None without one."""
        return self.workspace.memory_root if self.workspace else None

    @cached_property
    def redactor(self) -> Redactor:
        """The redactor of the root; without one, another for this process."""
        return self.place.redactor if self.place else Redactor(secrets.token_bytes(32))

    @property
    def is_learning(self) -> bool:
        """Whether facts are extracted from messages, which requires the root's own memory."""
        flush = self.parts.settings.flush
        is_on = flush is not None and flush.is_enabled
        return self.options.memory.hooks and is_on and (self.memory.is_own or self.workspace is None)


def uses_root_memory(store: str | Store | None, settings: Settings, root: Path) -> bool:
    """Return whether an agent of `root` uses the root's own memory, so that it extracts and consolidates."""
    return not isinstance(store, Store) and _means_root(
        parse_address(store or get_default_store() or settings.store), root
    )


@asynccontextmanager
async def open_agent_store(
    store: str | Store | None,
    scope: Scope,
    parts: Dependencies,
    *,
    root: Path,
    workspace: Workspace | None,
    required: bool,
) -> AsyncIterator[AgentStore]:
    """Open the store of an agent of `root` and close it at the end, also a store that was passed open.

    If `store` is None, use the default of the process, or else of the settings. A store that can't be opened is
    logged once, and the agent has no memory, unless it is `required`. Raises: InvalidInput for an invalid address;
    ScopeError; with `required` the error from opening the store.
    """
    async with AsyncExitStack() as stack:
        if isinstance(store, Store):
            _check_scope(store, scope)
            agent_store = AgentStore(store=store, status="other")
        else:
            agent_store = await _open_address(
                stack, store, scope, parts, root=root, workspace=workspace, required=required
            )
        if agent_store.status == "other" and workspace:
            add_forget_hook(agent_store.store, partial(_hide_copies, workspace.memory_root))
        try:
            yield agent_store
        finally:
            if agent_store.status == "other":
                await _close(agent_store.store)


async def _open_address(
    stack: AsyncExitStack,
    store_address: str | None,
    scope: Scope,
    parts: Dependencies,
    *,
    root: Path,
    workspace: Workspace | None,
    required: bool,
) -> AgentStore:
    chosen_address = store_address or get_default_store()
    text = chosen_address or parts.settings.store
    address = parse_address(text)
    if address.scheme == "none":
        refuse_place(address)
        return _null_store("off", scope, parts)
    if await run_sync(_means_root, address, root):
        return AgentStore.from_root(workspace) if workspace else _null_store("broken", scope, parts)
    opener = (
        _opener_from_settings(scope, parts, root) if chosen_address is None else StoreOpener(scope=scope, parts=parts)
    )
    try:
        backend = await _enter_backend(stack, opener.open_backend(text))
        folder = await run_sync(opener.find_folder, address)
        return AgentStore(store=backend.bind(scope), status="other", folder=folder)
    except (RicordoError, OSError) as error:
        note_not_opened(error, f"The store {text}", "nothing is remembered in this session", required=required)
        return _null_store("broken", scope, parts)


def note_not_opened(error: RicordoError | OSError, name: str, consequence: str, *, required: bool) -> None:
    """Log that `name` can't be opened, and the consequence, or raise `error` if the session can't do without it.

    An error in what the caller asked for is always raised. Raises: the error itself, or StorageFailed for an OSError.
    """
    if isinstance(error, ScopeError | InvalidInput) or (required and isinstance(error, RicordoError)):
        raise error
    if required:
        raise StorageFailed(f"{name} can't be opened: {error}") from error
    _LOG.warning("%s can't be opened, so %s: %s", name, consequence, error)


async def _enter_backend(stack: AsyncExitStack, opening: AbstractAsyncContextManager[Backend]) -> Backend:
    """Open a backend on the stack. An error from closing it is only logged."""

    async def close_backend(
        exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        try:
            return bool(await opening.__aexit__(exc_type, exc, traceback))
        except StorageError as error:
            if error is exc:
                raise
            _LOG.warning("The store of this session could not be closed: %s", error)
            return False

    backend = await opening.__aenter__()
    stack.push_async_exit(close_backend)
    return backend


def _opener_from_settings(scope: Scope, parts: Dependencies, root: Path) -> StoreOpener:
    """Return the opener for the store of the settings; a path in config.toml is relative to the root, within its
    parent.
    """
    origin = parts.settings.origins.get("store")
    if origin is None or origin.kind != "file":
        return StoreOpener(scope=scope, parts=parts)
    return StoreOpener(scope=scope, parts=parts, base=root, allowed_folder=root.parent)


def _means_root(address: Address, root: Path) -> bool:
    """Return whether an address names the memory of the root."""
    if address.scheme != "layered":
        return False
    return not address.location or expand_home(address.location).resolve() == root.resolve()


def _null_store(status: StoreStatus, scope: Scope, parts: Dependencies) -> AgentStore:
    store_parts = StoreParts(redactor=Redactor(create_key()), clock=parts.clock, ids=parts.ids, emitter=parts.emitter)
    return AgentStore(store=NoMemory(store_parts).bind(scope), status=status)


def _check_scope(store: Store, scope: Scope) -> None:
    own_parts = scope.parts()
    if any(name in own_parts and own_parts[name] != value for name, value in store.scope.parts().items()):
        raise ScopeMismatch(f"The store is bound to {store.scope}: an agent for {scope} can't use it.")


async def _hide_copies(place: MemoryRoot, entry: Entry, who: str) -> None:
    """Hide the copies of an entry in the agent's conversations after it was forgotten in another store."""
    if await forget_copies(place.files, place.changes, [entry], key=place.key, who=who, why=_FORGET_REASON):
        await place.index.refresh()


async def _close(store: Store) -> None:
    """Flush and close the store; a failure is logged, and entries saved before stay."""
    try:
        await close_store(store)
    except StorageError as error:
        _LOG.warning("The store of this session could not be closed: %s", error)
