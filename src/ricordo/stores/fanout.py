"""Fanout: several stores at once. What is saved goes to all of them; what is read comes from the first that answers.

The first store is the primary: the entry as it keeps it is what the others are given, so all know it by the same id.
When one can't save, the others do nevertheless, and then the save raises: some have the entry, and it is not yet as
safe as was asked for. To save the same entry again, with its id, would give it to those that have it a second time.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Protocol, TypeVar, cast

from ricordo.errors import EntryNotFound, InvalidSetting, StorageError, StorageFailed
from ricordo.index.contract import Query
from ricordo.recall.hits import Hit
from ricordo.scopes import Scope
from ricordo.stores.capabilities import Closes, Forgets, KeepsSessions, Lists, SessionNotes
from ricordo.stores.contract import Backend, Driver, Store, StoreParts
from ricordo.stores.opening import Opening, several
from ricordo.stores.plain import options
from ricordo.tokens import Tokens
from ricordo.workspace.entry import Entry

__all__ = ["FanoutStore", "open_fanout"]

_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class _Named:
    """One of the stores, with the name that errors call it by."""

    name: str
    store: Store


class FanoutStore(Backend):
    """Several backends, by the names that errors call them by; the first is the primary."""

    def __init__(self, parts: StoreParts, backends: Sequence[tuple[str, Backend]]) -> None:
        """Save to all of `backends`, of which there is one at least."""
        super().__init__(parts)
        self._backends = tuple(backends)

    def _driver(self, scope: Scope) -> Driver:
        stores = tuple(_Named(name=name, store=backend.bind(scope)) for name, backend in self._backends)
        offered = [part for part, needs in _PARTS.items() if any(_offers(each, needs) for each in stores)]
        # what is offered is found by type, and depends on what these stores offer
        kind = type("FanoutDriver", (*offered, _Fanout), {})
        return cast("Driver", kind(stores))


class _Fanout:
    def __init__(self, stores: Sequence[_Named]) -> None:
        self.stores = stores

    async def write(self, entry: Entry) -> Entry:
        kept: list[Entry] = []

        async def save(store: Store) -> None:
            kept.append(await store.save(kept[0] if kept else entry))

        await _at_all(self.stores, save)
        return kept[0]

    async def find(self, query: Query, limit: int) -> list[Hit]:
        return await _first(self.stores, lambda store: store.recall(query, limit))

    async def preface(self, budget: Tokens | None) -> str:
        return await _first(self.stores, lambda store: store.preamble(budget))


class _Whole(Protocol):
    """What the parts below are a part of."""

    stores: Sequence[_Named]


class _Listing:
    async def entries(self: _Whole) -> list[Entry]:
        return await _first(_those(self, Lists), lambda store: _asked(store, Lists).entries())

    async def get(self: _Whole, entry_id: str) -> Entry:
        return await _first(_those(self, Lists), lambda store: _asked(store, Lists).get(entry_id))


class _Forgetting:
    async def forget(self: _Whole, entry_id: str, *, who: str, why: str = "") -> Entry:
        gone: list[Entry] = []
        missing: list[EntryNotFound] = []

        async def forget(store: Store) -> None:
            try:
                # whatever part of the id was given, all forget the same entry
                wanted = gone[0].id if gone else entry_id
                gone.append(await _asked(store, Forgets).forget(wanted, who=who, why=why))
            except EntryNotFound as error:
                missing.append(error)

        await _at_all(_those(self, Forgets), forget)
        if not gone:
            raise missing[0]
        return gone[0]


class _Closing:
    async def close(self: _Whole) -> None:
        await _at_all(_those(self, Closes), lambda store: _asked(store, Closes).close())


class _KeepingSessions:
    async def close_session(self: _Whole, notes: SessionNotes) -> str:
        paths: list[str] = []

        async def close(store: Store) -> None:
            paths.append(await _asked(store, KeepsSessions).close_session(notes))

        await _at_all(_those(self, KeepsSessions), close)
        return next(filter(None, paths), "")

    async def pending_sessions(self: _Whole) -> tuple[str, ...]:
        stores = _those(self, KeepsSessions)
        return await _first(stores, lambda store: _asked(store, KeepsSessions).pending_sessions())


_PARTS: dict[type, type] = {
    _Listing: Lists,
    _Forgetting: Forgets,
    _Closing: Closes,
    _KeepingSessions: KeepsSessions,
}


@asynccontextmanager
async def open_fanout(opening: Opening) -> AsyncIterator[Backend]:
    """Open all that an address names: `fanout:jsonl:./notes,kv:./copy`."""
    options(opening.address)
    if not opening.address.place:
        raise InvalidSetting("A fanout names the stores that it saves to: fanout:jsonl:./notes,kv:./copy.")
    addresses = several(opening.address.place)
    async with AsyncExitStack() as stack:
        backends = [(address, await stack.enter_async_context(opening.another(address))) for address in addresses]
        yield FanoutStore(opening.parts, backends)


def _offers(named: _Named, capability: type) -> bool:
    return named.store.offers(capability) is not None


def _those(whole: _Whole, capability: type) -> list[_Named]:
    return [named for named in whole.stores if _offers(named, capability)]


def _asked(store: Store, capability: type[_T]) -> _T:
    offered = store.offers(capability)
    if offered is None:
        raise StorageFailed("A store does not offer any more what it did.")
    return offered


async def _first(stores: Sequence[_Named], ask: Callable[[Store], Awaitable[_T]]) -> _T:
    """Return what the first store answers that does. Raises: the first error when none does."""
    errors: list[StorageError] = []
    for named in stores:
        try:
            return await ask(named.store)
        except StorageError as error:
            errors.append(error)
    raise errors[0]


async def _at_all(stores: Sequence[_Named], act: Callable[[Store], Awaitable[None]]) -> None:
    """Let all stores do it, also when one can't. Raises: StorageFailed, which names it; its own error when all fail."""
    failed: list[tuple[str, StorageError]] = []
    for named in stores:
        try:
            await act(named.store)
        except StorageError as error:
            failed.append((named.name, error))
    if not failed:
        return
    if len(failed) == len(stores):
        raise failed[0][1]
    done = [named.name for named in stores if named.name not in dict(failed)]
    trouble = "; ".join(f"{name}: {error}" for name, error in failed)
    raise StorageFailed(f"Done by {', '.join(done)}, but not by all. {trouble}") from failed[0][1]
