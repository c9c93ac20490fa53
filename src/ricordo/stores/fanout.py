"""The fanout store, which writes to several stores. A save goes to all; a read comes from the first one that answers.

The first store is the primary: the others receive the entry as the primary stored it, so all have the same id. If one
store can't save, the others do, and then the save raises. A store that can't be opened is tried again at every save.

Invariant: a store that was unavailable receives the entries it missed, in order, before anything else.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Protocol, TypeVar, cast

import anyio

from ricordo.context.preamble import Preamble
from ricordo.errors import (
    EntryNotFound,
    InvalidInput,
    InvalidSetting,
    RicordoError,
    ScopeError,
    StorageError,
    StorageFailed,
)
from ricordo.messages.tokens import Tokens
from ricordo.scope import Scope
from ricordo.search.contract import Hit, Query
from ricordo.stores.addresses import OpenRequest, split_addresses
from ricordo.stores.base import read_options
from ricordo.stores.contract import (
    Backend,
    Closes,
    Driver,
    Forgets,
    KeepsSessions,
    KeepsTombstones,
    Lists,
    SessionNotes,
    Store,
    StoreParts,
    build_preamble,
)
from ricordo.workspace.entry import Entry
from ricordo.workspace.history.tombstones import Tombstone

__all__ = ["BoundMember", "FanoutMember", "FanoutStore", "open_fanout"]


_LOG = logging.getLogger("ricordo.stores")


class FanoutMember:
    """One backend with the `name` that errors use; `error` says why it is closed, None while it is open."""

    def __init__(self, name: str, enter: Callable[[], Awaitable[Backend]]) -> None:
        """Create the member without opening it; `enter` opens it."""
        self.name = name
        self.backend: Backend | None = None
        self.error: RicordoError | None = None
        self._enter: Callable[[], Awaitable[Backend]] | None = enter
        self._open_lock = anyio.Lock()

    async def open(self) -> Backend | None:
        """Return the backend, opened if necessary; None if it can't be opened, which is logged once.

        Raises: ScopeError and InvalidInput, since trying again would not help.
        """
        async with self._open_lock:
            if self.backend is None and self._enter is not None:
                try:
                    self.backend = await self._enter()
                except (ScopeError, InvalidInput):
                    raise
                except (RicordoError, OSError) as error:
                    self._record_error(error)
                else:
                    self.error = None
            return self.backend

    def stop_opening(self) -> None:
        """Stop trying to open it."""
        self._enter = None

    def _record_error(self, error: RicordoError | OSError) -> None:
        if self.error is None:
            _LOG.warning("The store %s can't be opened, so the others keep what is saved: %s", self.name, error)
        self.error = error if isinstance(error, RicordoError) else StorageFailed(str(error))


class BoundMember:
    """A member for one scope; `store` is None while it is closed, or has not received the entries it missed."""

    def __init__(self, part: FanoutMember, scope: Scope) -> None:
        """Bind the backend if it is open."""
        self.name = part.name
        self.store = part.backend.bind(scope) if part.backend else None
        self.error = part.error
        self._member = part
        self._scope = scope
        self._missed_entries: list[Entry] = []
        self._catch_up_lock = anyio.Lock()

    async def catch_up(self) -> None:
        """Open it if possible and save the entries it missed; a failure is stored in `error`."""
        async with self._catch_up_lock:
            if self.store is not None:
                return
            try:
                backend = await self._member.open()
                store = backend.bind(self._scope) if backend else None
                while store and self._missed_entries:
                    await store.save(self._missed_entries[0])
                    self._missed_entries.pop(0)
                self.store, self.error = store, self._member.error
            except RicordoError as error:
                self.error = error

    async def save_or_queue(self, entry: Entry) -> None:
        """Save the entry now, or when the store is open. Raises `StorageError`."""
        if self.store is None:
            self._missed_entries.append(entry)
        else:
            await self.store.save(entry)

    def discard_missed(self, entry_id: str) -> bool:
        """Remove a forgotten entry from the missed entries; return whether it was there."""
        remaining = [entry for entry in self._missed_entries if entry.id != entry_id]
        was_missed = len(remaining) < len(self._missed_entries)
        self._missed_entries[:] = remaining
        return was_missed

    def require_store(self) -> Store:
        """Return the store. Raises: StorageFailed if it is not open."""
        if self.store is None:
            raise StorageFailed(f"The store {self.name} is closed.")
        return self.store


_T = TypeVar("_T")


class FanoutStore(Backend):
    """Several backends, the first of which is the primary."""

    def __init__(self, parts: StoreParts, backends: Sequence[FanoutMember]) -> None:
        """Save to all of `backends`; at least one of them is open."""
        super().__init__(parts)
        self._members = tuple(backends)

    @property
    def unavailable(self) -> dict[str, str]:
        """The reasons why stores could not be opened, by name; empty when all are open."""
        return {part.name: str(part.error) for part in self._members if part.error}

    def _driver(self, scope: Scope) -> Driver:
        stores = tuple(BoundMember(part, scope) for part in self._members)
        offered = [part for part, needs in _CAPABILITY_MIXINS.items() if any(_offers(each, needs) for each in stores)]
        # capabilities are found by type and depend on those of the members
        kind = type("FanoutDriver", (*offered, _FanoutDriver), {})
        return cast("Driver", kind(stores))


class _FanoutDriver:
    def __init__(self, parts: Sequence[BoundMember]) -> None:
        self.parts = parts

    async def write(self, entry: Entry) -> Entry:
        saved: list[Entry] = []

        async def save(store: Store) -> None:
            saved.append(await store.save(saved[0] if saved else entry))

        unavailable = await _reopen_members(self.parts)
        try:
            await _apply_to_all([part for part in self.parts if part not in unavailable], save)
        finally:
            for part in unavailable if saved else ():
                await part.save_or_queue(saved[0])
        return saved[0]

    async def find(self, query: Query, limit: int) -> list[Hit]:
        return await _ask_first(_open_members(self.parts), lambda store: store.recall(query, limit))

    async def preamble(self, budget: Tokens | None) -> Preamble:
        return await _ask_first(_open_members(self.parts), lambda store: build_preamble(store, budget))


class _HasMembers(Protocol):
    """What the mixins below need from the driver."""

    parts: Sequence[BoundMember]


class _ListMixin:
    async def entries(self: _HasMembers) -> list[Entry]:
        return await _ask_first(
            _members_offering(self, Lists), lambda store: _require_capability(store, Lists).entries()
        )

    async def get(self: _HasMembers, entry_id: str) -> Entry:
        return await _ask_first(
            _members_offering(self, Lists), lambda store: _require_capability(store, Lists).get(entry_id)
        )


class _ForgetMixin:
    async def forget(self: _HasMembers, entry_id: str, *, who: str, why: str = "") -> Entry:
        removed: list[Entry] = []
        missing: list[EntryNotFound] = []

        async def forget(store: Store) -> None:
            try:
                # all members forget the same entry, whatever part of the id was given
                requested_id = removed[0].id if removed else entry_id
                removed.append(await _require_capability(store, Forgets).forget(requested_id, who=who, why=why))
            except EntryNotFound as error:
                missing.append(error)

        unavailable = await _reopen_members(self.parts)
        await _apply_to_all(_members_offering(self, Forgets), forget)
        if not removed:
            raise missing[0]
        holding = [part for part in unavailable if not part.discard_missed(removed[0].id)]
        if holding:
            raise _partial_failure(_members_offering(self, Forgets), [(part.name, part.error) for part in holding])
        return removed[0]


class _TombstoneMixin:
    async def tombstones(self: _HasMembers) -> tuple[Tombstone, ...]:
        return await _ask_first(
            _members_offering(self, KeepsTombstones),
            lambda store: _require_capability(store, KeepsTombstones).tombstones(),
        )

    async def tombstone_of(self: _HasMembers, entry: Entry) -> Tombstone | None:
        for part in _members_offering(self, KeepsTombstones):
            if tombstone := await _require_capability(part.require_store(), KeepsTombstones).tombstone_of(entry):
                return tombstone
        return None


class _CloseMixin:
    async def close(self: _HasMembers) -> None:
        await _apply_to_all(_members_offering(self, Closes), lambda store: _require_capability(store, Closes).close())


class _SessionMixin:
    async def close_session(self: _HasMembers, notes: SessionNotes) -> str:
        paths: list[str] = []

        async def close(store: Store) -> None:
            paths.append(await _require_capability(store, KeepsSessions).close_session(notes))

        await _apply_to_all(_members_offering(self, KeepsSessions), close)
        return next(filter(None, paths), "")

    async def pending_sessions(self: _HasMembers) -> tuple[str, ...]:
        stores = _members_offering(self, KeepsSessions)
        return await _ask_first(stores, lambda store: _require_capability(store, KeepsSessions).pending_sessions())


_CAPABILITY_MIXINS: dict[type, type] = {
    _ListMixin: Lists,
    _ForgetMixin: Forgets,
    _TombstoneMixin: KeepsTombstones,
    _CloseMixin: Closes,
    _SessionMixin: KeepsSessions,
}


@asynccontextmanager
async def open_fanout(request: OpenRequest) -> AsyncIterator[Backend]:
    """Open all stores of an address: `fanout:jsonl:./notes,kv:./copy`.

    A store that can't be opened is left out until it can be. Raises: the error of the first store if none can be
    opened.
    """
    read_options(request.address)
    if not request.address.location:
        raise InvalidSetting("A fanout names the stores that it saves to: fanout:jsonl:./notes,kv:./copy.")
    addresses = split_addresses(request.address.location)
    async with AsyncExitStack() as stack:

        async def enter(address: str) -> Backend:
            return await stack.enter_async_context(request.open_another(address))

        parts = [FanoutMember(address, partial(enter, address)) for address in addresses]
        for part in parts:
            await part.open()
        trouble = [part.error for part in parts if part.error]
        if len(trouble) == len(parts):
            raise trouble[0]
        try:
            yield FanoutStore(request.parts, parts)
        finally:
            for part in parts:
                part.stop_opening()


def _offers(part: BoundMember, capability: type) -> bool:
    return part.store is not None and part.store.offers(capability) is not None


def _members_offering(driver: _HasMembers, capability: type) -> list[BoundMember]:
    return [part for part in driver.parts if _offers(part, capability)]


def _open_members(parts: Sequence[BoundMember]) -> list[BoundMember]:
    return [part for part in parts if part.store is not None]


async def _reopen_members(parts: Sequence[BoundMember]) -> list[BoundMember]:
    """Try again to open the closed stores, and return those that stay closed."""
    for part in parts:
        await part.catch_up()
    return [part for part in parts if part.store is None]


def _require_capability(store: Store, capability: type[_T]) -> _T:
    offered = store.offers(capability)
    if offered is None:
        raise StorageFailed("A store does not offer any more what it did.")
    return offered


async def _ask_first(stores: Sequence[BoundMember], ask: Callable[[Store], Awaitable[_T]]) -> _T:
    """Return the result of the first store that answers. Raises: the first error if none does."""
    errors: list[StorageError] = []
    for part in stores:
        try:
            return await ask(part.require_store())
        except StorageError as error:
            errors.append(error)
    raise errors[0]


async def _apply_to_all(stores: Sequence[BoundMember], act: Callable[[Store], Awaitable[None]]) -> None:
    """Apply `act` to all stores, even if one fails.

    Raises: StorageFailed, which names it; its own error if all fail.
    """
    failed: list[tuple[str, StorageError]] = []
    for part in stores:
        try:
            await act(part.require_store())
        except StorageError as error:
            failed.append((part.name, error))
    if not failed:
        return
    if len(failed) == len(stores):
        raise failed[0][1]
    raise _partial_failure(stores, failed) from failed[0][1]


def _partial_failure(stores: Sequence[BoundMember], failed: Sequence[tuple[str, RicordoError | None]]) -> StorageFailed:
    succeeded = [part.name for part in stores if part.name not in dict(failed)]
    errors = "; ".join(f"{name}: {error}" for name, error in failed)
    return StorageFailed(f"Done by {', '.join(succeeded)}, but not by all. {errors}")
