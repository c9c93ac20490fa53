"""A store under test as seen by the checks: how to open it, and what it declares about itself.

Invariant: a check knows nothing of a store except this module and the store contract.
"""

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import ClassVar, Literal, TypeAlias

from ricordo.clock import Clock
from ricordo.errors import InvalidSetting
from ricordo.lazy import dataclass
from ricordo.models import Embedder
from ricordo.runtime.settings import Settings
from ricordo.runtime.stores import close_store, open_backend
from ricordo.scope import Scope
from ricordo.storage.disk import Disk
from ricordo.stores.contract import Backend, Lists, Store
from ricordo.workspace.entry import Entry

__all__ = [
    "DEFAULT_SCOPE",
    "ManualClock",
    "StoreCheck",
    "StoreNeed",
    "StoreSubject",
    "list_entries",
    "recall_newest",
    "require",
    "store_check",
]


DEFAULT_SCOPE = Scope(user="me", project="shop")
"""The scope that most checks use."""
_MAX_ENTRIES = 1_000
StoreNeed: TypeAlias = Literal[
    "memory", "capacity", "keeping", "sharing", "disk", "own files", "forgetting", "sequence", "reporting"
]  # fmt: skip
"""What a check needs from a backend.

In order: it remembers anything at all, it is bounded, its entries survive reopening, several processes may open it, it
writes through the `Disk` it is given or on its own, it forgets, the order of saving defines the newest entry, it can
contain text that it can't read.
"""
_SKIP_REASONS: dict[StoreNeed, str] = {
    "memory": "it keeps nothing",
    "capacity": "it is not bounded",
    "keeping": "it keeps nothing beyond its process",
    "sharing": "it is for one process",
    "disk": "it writes its files itself",
    "own files": "it writes through the disk it is given",
    "forgetting": "it does not forget",
    "sequence": "the newest is what has the latest time",
    "reporting": "any text in its files is a person's",
}


class StoreSubject:
    """One backend under test. Set `address`, or override `open_backend`, and declare what differs from the defaults.

    `address` is an argument of `open_store`, with `{folder}` for the folder of the check. `is_durable`: entries survive
    reopening. `is_shared`: several processes may have it open. `uses_disk`: it writes through the `Disk` it is opened
    with. `capacity` is the largest number of entries, 0 for a store that keeps none, None for no limit. `order` is the
    order of a recall with words: newest first, or by relevance. A recall without words is always newest first.
    `newest_by` defines the newest entry: the one saved last, or the one with the latest time, and for equal times the
    one saved last. `recalls` says what a recall returns: whole entries, the matching passage of a long entry, or the
    metadata of a closed session. `free_text`: people may write into its files, and no text in them counts as damage.
    `forgets` says whether it forgets; None means that the type decides. `scale` is the number of entries it is made
    for: the benchmark of the stores measures up to it, and no check saves as many.

    `save_count` is how many entries each of two processes saves, `kill_count` is at about how many steps a process is
    killed, and `sessions` is how many sessions exist before the check of its preamble, each with `turns` entries.
    """

    address: ClassVar[str] = ""
    is_durable: ClassVar[bool] = True
    is_shared: ClassVar[bool] = True
    uses_disk: ClassVar[bool] = True
    capacity: ClassVar[int | None] = None
    order: ClassVar[Literal["newest", "relevance"]] = "newest"
    newest_by: ClassVar[Literal["saved", "timed"]] = "saved"
    recalls: ClassVar[Literal["entries", "passages", "sessions"]] = "entries"
    free_text: ClassVar[bool] = False
    forgets: ClassVar[bool | None] = None
    scale: ClassVar[int] = 10_000
    embedder: ClassVar[Embedder | None] = None
    save_count: int = 10
    kill_count: int = 3
    sessions: int = 6
    turns: int = 2

    @asynccontextmanager
    async def open_backend(
        self, folder: Path, scope: Scope, *, clock: Clock | None = None, disk: Disk | None = None
    ) -> AsyncIterator[Backend]:
        """Open the backend with its data below `folder`, which exists, and close it at the end."""
        if not self.address:
            raise InvalidSetting("A conformance suite needs an `address`, or an `open_backend` of its own.")
        settings = Settings(root=None, user="me", data=folder / "data", cache=folder / "cache")
        address = self.address.format(folder=folder / "store")
        async with open_backend(
            address, scope=scope, settings=settings, clock=clock, disk=disk, embedder=self.embedder
        ) as backend:
            yield backend

    @asynccontextmanager
    async def open_store(
        self, folder: Path, scope: Scope = DEFAULT_SCOPE, *, clock: Clock | None = None, disk: Disk | None = None
    ) -> AsyncIterator[Store]:
        """Open the backend and bind it; buffered data is written at the end."""
        async with self.open_backend(folder, scope, clock=clock, disk=disk) as backend:
            store = backend.bind(scope)
            try:
                yield store
            finally:
                await close_store(store)

    @asynccontextmanager
    async def open_with_entries(
        self, folder: Path, entries: Sequence[Entry], *, clock: Clock | None = None
    ) -> AsyncIterator[tuple[Store, list[Entry]]]:
        """Save `entries`, and yield the store and the saved entries; the store is reopened if it persists entries."""
        async with self.open_store(folder, clock=clock) as store:
            saved = [await store.save(entry) for entry in entries]
            if not self.is_durable:
                yield store, saved
        if self.is_durable:
            async with self.open_store(folder, clock=clock) as store:
                yield store, saved

    def skip_reason(self, needs: Sequence[StoreNeed]) -> str:
        """Return why a check with these needs does not apply; empty if it does."""
        fulfilled: dict[StoreNeed, bool] = {
            "memory": self.capacity != 0,
            "capacity": bool(self.capacity),
            "keeping": self.is_durable,
            "sharing": self.is_durable and self.is_shared and hasattr(os, "fork"),
            "disk": self.is_durable and self.uses_disk,
            "forgetting": self.forgets is not False,
            "own files": self.is_durable and not self.uses_disk and hasattr(os, "fork"),
            "reporting": not self.free_text,
            "sequence": self.newest_by == "saved",
        }
        return next((_SKIP_REASONS[need] for need in needs if not fulfilled[need]), "")


@dataclass(frozen=True, kw_only=True)
class StoreCheck:
    """One requirement for a store: `name` is its sentence, `invariant` is its section in the table."""

    name: str
    invariant: str
    needs: tuple[StoreNeed, ...]
    run: Callable[[StoreSubject, Path], Awaitable[None]]

    @property
    def sentence(self) -> str:
        """The name for display."""
        return self.name.replace("_", " ").capitalize() + "."

    async def __call__(self, subject: StoreSubject, folder: Path) -> None:
        """Run the check in an empty folder. Raises: AssertionError, with a sentence, if the store does not pass."""
        await self.run(subject, folder)


def store_check(
    invariant: str, *needs: StoreNeed
) -> Callable[[Callable[[StoreSubject, Path], Awaitable[None]]], StoreCheck]:
    """Turn a function into a check; its name is the sentence."""

    def build_check(run: Callable[[StoreSubject, Path], Awaitable[None]]) -> StoreCheck:
        return StoreCheck(name=run.__name__.strip("_"), invariant=invariant, needs=needs, run=run)

    return build_check


class ManualClock:
    """A clock that stands still until it is advanced."""

    def __init__(self) -> None:
        """Start at noon of a day in November 2026."""
        self.time = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)

    def now(self) -> datetime:
        """Return the current time of this clock."""
        return self.time

    def today(self) -> date:
        """Return the current date of this clock."""
        return self.time.date()

    def advance(self, **amount: float) -> None:
        """Move the clock by the arguments of `timedelta`, also backwards."""
        self.time += timedelta(**amount)


async def recall_newest(store: Store, limit: int = _MAX_ENTRIES) -> list[Entry]:
    """Return the hits of an empty query as entries."""
    return [hit.entry for hit in await store.recall("", limit=limit)]


async def list_entries(subject: StoreSubject, store: Store) -> list[Entry]:
    """Return all entries of the store, newest first; from its list if a recall returns sessions."""
    lister = store.offers(Lists)
    if lister is not None:
        return await lister.entries()
    require(subject.recalls != "sessions", "it recalls sessions, and does not list entries")
    return await recall_newest(store)


def require(condition: bool, message: str) -> None:  # noqa: FBT001 - what is held comes first
    """Raise `AssertionError` with the sentence `message` unless `condition` is true."""
    if not condition:
        raise AssertionError(f"A store: {message}.")
