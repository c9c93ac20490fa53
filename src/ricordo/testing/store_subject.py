"""A store under test as the checks see it: how it is opened, and what it declares of itself.

Invariant: a check knows of a store only what stands here and what the contract says.
"""

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import ClassVar, Literal, TypeAlias

from ricordo.clock import Clock
from ricordo.errors import InvalidSetting
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
"""Whose memory most checks use."""
_MAX_ENTRIES = 1_000
StoreNeed: TypeAlias = Literal[
    "memory", "capacity", "keeping", "sharing", "disk", "own files", "forgetting", "sequence", "reporting"
]  # fmt: skip
"""What a check needs of a backend: that it remembers at all, that it is bounded, that what it kept is there when it is
opened again, that several processes may open it, that it writes through the `Disk` it is given, or by itself, that it
forgets, that the order of saving says what is the newest, that there is text that it can't read."""
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
    """One backend under test: set `address`, or override `open_backend`, and declare what is not the default.

    `address` is what `open_store` takes, with `{folder}` for a folder of the check's own. `keeps`: what was saved is
    there when the folder is opened again. `shared`: several processes may have it open. `through_disk`: what it writes
    goes through the `Disk` that it is opened with. `capacity` is how many entries it keeps at most, 0 for none at all,
    None without a bound. `order` is that of a recall with words: the newest first, or by relevance; without words it is
    the newest first for all. `newest` says what that is: what was saved last, or what has the latest time, and of one
    time what was saved last. `recalls` says what a recall returns: the entries whole, of a long one the passage that
    was found, or of a closed session its metadata. With `free_text` its files are people's to write into, and no text
    in them is damage. `forgets` is whether it forgets; None finds out by type. `scale` is how many entries it is made
    for: the benchmark of the stores measures it up to there, and no check saves so many.

    `saves` is how many entries each of two processes saves, `kills` about how many of its steps it is killed at, and
    `sessions` how many sessions there are before its preamble is looked at, each with `turns` entries.
    """

    address: ClassVar[str] = ""
    keeps: ClassVar[bool] = True
    shared: ClassVar[bool] = True
    through_disk: ClassVar[bool] = True
    capacity: ClassVar[int | None] = None
    order: ClassVar[Literal["newest", "relevance"]] = "newest"
    newest: ClassVar[Literal["saved", "timed"]] = "saved"
    recalls: ClassVar[Literal["entries", "passages", "sessions"]] = "entries"
    free_text: ClassVar[bool] = False
    forgets: ClassVar[bool | None] = None
    scale: ClassVar[int] = 10_000
    embedder: ClassVar[Embedder | None] = None
    saves: int = 10
    kills: int = 3
    sessions: int = 6
    turns: int = 2

    @asynccontextmanager
    async def open_backend(
        self, folder: Path, scope: Scope, *, clock: Clock | None = None, disk: Disk | None = None
    ) -> AsyncIterator[Backend]:
        """Open the backend that keeps what it keeps below `folder`, which exists, and close it at the end."""
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
        """Open the backend and bind it; what it holds back is written at the end."""
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
        """Save `entries`, and give the store and what it returned; opened anew if it keeps what was saved."""
        async with self.open_store(folder, clock=clock) as store:
            saved = [await store.save(entry) for entry in entries]
            if not self.keeps:
                yield store, saved
        if self.keeps:
            async with self.open_store(folder, clock=clock) as store:
                yield store, saved

    def skip_reason(self, needs: Sequence[StoreNeed]) -> str:
        """Return why a check with these needs does not apply; empty if it does."""
        held: dict[StoreNeed, bool] = {
            "memory": self.capacity != 0,
            "capacity": bool(self.capacity),
            "keeping": self.keeps,
            "sharing": self.keeps and self.shared and hasattr(os, "fork"),
            "disk": self.keeps and self.through_disk,
            "forgetting": self.forgets is not False,
            "own files": self.keeps and not self.through_disk and hasattr(os, "fork"),
            "reporting": not self.free_text,
            "sequence": self.newest == "saved",
        }
        return next((_SKIP_REASONS[need] for need in needs if not held[need]), "")


@dataclass(frozen=True, kw_only=True)
class StoreCheck:
    """One outcome that a store is held to: `name` says it as a sentence, `invariant` is where the table has it."""

    name: str
    invariant: str
    needs: tuple[StoreNeed, ...]
    run: Callable[[StoreSubject, Path], Awaitable[None]]

    @property
    def sentence(self) -> str:
        """The name for people."""
        return self.name.replace("_", " ").capitalize() + "."

    async def __call__(self, subject: StoreSubject, folder: Path) -> None:
        """Check it in an empty folder. Raises: AssertionError, with a sentence, where the store does otherwise."""
        await self.run(subject, folder)


def store_check(
    invariant: str, *needs: StoreNeed
) -> Callable[[Callable[[StoreSubject, Path], Awaitable[None]]], StoreCheck]:
    """Make a check of a function: its name is the sentence."""

    def build_check(run: Callable[[StoreSubject, Path], Awaitable[None]]) -> StoreCheck:
        return StoreCheck(name=run.__name__.strip("_"), invariant=invariant, needs=needs, run=run)

    return build_check


class ManualClock:
    """A clock that stands still until it is turned."""

    def __init__(self) -> None:
        """Let it be noon of a day in November 2026."""
        self.time = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)

    def now(self) -> datetime:
        """Return the time that it shows."""
        return self.time

    def today(self) -> date:
        """Return its date."""
        return self.time.date()

    def advance(self, **amount: float) -> None:
        """Turn it, also backwards, by what `timedelta` takes."""
        self.time += timedelta(**amount)


async def recall_newest(store: Store, limit: int = _MAX_ENTRIES) -> list[Entry]:
    """Return what an empty query recalls."""
    return [hit.entry for hit in await store.recall("", limit=limit)]


async def list_entries(subject: StoreSubject, store: Store) -> list[Entry]:
    """Return every entry that the store has, newest first; where a recall gives sessions, from its list."""
    lists = store.offers(Lists)
    if lists is not None:
        return await lists.entries()
    require(subject.recalls != "sessions", "it recalls sessions, and does not list entries")
    return await recall_newest(store)


def require(holds: bool, otherwise: str) -> None:  # noqa: FBT001 - what is held comes first
    """Raise `AssertionError` with a sentence that says what is wrong, unless it holds."""
    if not holds:
        raise AssertionError(f"A store: {otherwise}.")
