"""The parts of a fanout: each is one store, and one that can't be opened is tried again at the next save.

Invariant: a part that was away is given what was saved meanwhile, in that order, before anything else reaches it.
"""

import logging
from collections.abc import Awaitable, Callable

import anyio

from ricordo.errors import InvalidInput, RicordoError, ScopeError, StorageFailed
from ricordo.scopes import Scope
from ricordo.stores.contract import Backend, Store
from ricordo.workspace.entry import Entry

__all__ = ["BoundMember", "FanoutMember"]

_LOG = logging.getLogger("ricordo.stores")


class FanoutMember:
    """One backend, by the `name` that errors call it by; `error` says why it is closed, None while it is open."""

    def __init__(self, name: str, enter: Callable[[], Awaitable[Backend]]) -> None:
        """Open nothing yet; `enter` opens it."""
        self.name = name
        self.backend: Backend | None = None
        self.error: RicordoError | None = None
        self._enter: Callable[[], Awaitable[Backend]] | None = enter
        self._open_lock = anyio.Lock()

    async def open(self) -> Backend | None:
        """Return the backend, opened where it was not; None while it can't be, which is told to the log once.

        Raises: ScopeError and InvalidInput, which no further try would mend.
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
        """Open it no more."""
        self._enter = None

    def _record_error(self, error: RicordoError | OSError) -> None:
        if self.error is None:
            _LOG.warning("The store %s can't be opened, so the others keep what is saved: %s", self.name, error)
        self.error = error if isinstance(error, RicordoError) else StorageFailed(str(error))


class BoundMember:
    """A part for one scope; `store` is None while it is closed, or has not got yet what it missed."""

    def __init__(self, part: FanoutMember, scope: Scope) -> None:
        """Bind what is open."""
        self.name = part.name
        self.store = part.backend.bind(scope) if part.backend else None
        self.error = part.error
        self._member = part
        self._scope = scope
        self._missed_entries: list[Entry] = []
        self._catch_up_lock = anyio.Lock()

    async def catch_up(self) -> None:
        """Open it if it can be, and give it what it missed; what keeps it from that is its `error`."""
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
        """Save in it what the others have, now or when it is open. Raises `StorageError`."""
        if self.store is None:
            self._missed_entries.append(entry)
        else:
            await self.store.save(entry)

    def discard_missed(self, entry_id: str) -> bool:
        """Take out of what it missed what was forgotten, and tell whether it was there."""
        kept = [entry for entry in self._missed_entries if entry.id != entry_id]
        found = len(kept) < len(self._missed_entries)
        self._missed_entries[:] = kept
        return found

    def require_store(self) -> Store:
        """Return the store of one that is open. Raises: StorageFailed for one that is not."""
        if self.store is None:
            raise StorageFailed(f"The store {self.name} is closed.")
        return self.store
