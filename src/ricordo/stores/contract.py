"""The contract of a store: three operations, bound to a scope before anything can be read or written.

`backend.bind(scope)` returns a `Store`. It is one class for all backends: it stamps scope, id and time, checks the
entry and redacts secrets, then calls the backend's driver. So no backend can skip that.

What else a backend can do is a capability, a protocol. `store.offers(Forgets)` returns an object with the methods of
that protocol and no others, so a driver's own `write` stays out of reach.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from functools import partial
from secrets import token_bytes
from typing import Protocol, TypeVar, cast, final, runtime_checkable

from anyio.to_thread import run_sync

from ricordo.clock import Clock, IdSource, truncate_to_milliseconds
from ricordo.concurrency import compute
from ricordo.context.preamble import DEFAULT_BUDGET, BuildsPreamble, Preamble
from ricordo.curation.marks import MarkAct
from ricordo.errors import InvalidEntry, InvalidQuery, ReasonRequired, ScopeMismatch, ScopeRequired
from ricordo.events import Emitter
from ricordo.guard import Redactor, has_secret
from ricordo.messages import Usage
from ricordo.messages.tokens import Tokens, estimate_text
from ricordo.scope import Scope
from ricordo.search.contract import MEMORY_SORTS, Query
from ricordo.search.memory_root import MemoryRoot
from ricordo.search.results import Hit
from ricordo.workspace.entry import Entry
from ricordo.workspace.history.log import HistoryItem
from ricordo.workspace.history.tombstones import Tombstone
from ricordo.workspace.history.usage import MemoryUsage, UsageAct
from ricordo.workspace.redaction import guarded_length, redact_entry_in_thread, redact_for_display

__all__ = [
    "Backend",
    "Closes",
    "Driver",
    "Forgets",
    "KeepsSessions",
    "KeepsTombstones",
    "LayeredMemory",
    "Lists",
    "Marks",
    "RecordsUsage",
    "SessionNotes",
    "Store",
    "StoreParts",
    "Undoes",
    "add_forget_hook",
    "entries_as_stored",
    "record_shown",
]


@runtime_checkable
class Lists(Protocol):
    """A backend that can show everything it keeps."""

    async def entries(self) -> list[Entry]:
        """Return all entries, newest first."""
        ...

    async def get(self, entry_id: str) -> Entry:
        """Return one entry. Raises `EntryNotFound`."""
        ...


@runtime_checkable
class Forgets(Protocol):
    """A backend that can take an entry out again."""

    async def forget(self, entry_id: str, *, who: str, why: str = "") -> Entry:
        """Remove an entry everywhere and return it. Raises `EntryNotFound`."""
        ...


@runtime_checkable
class KeepsTombstones(Protocol):
    """A backend that keeps a record without content of each entry that was forgotten; each that forgets has to.

    Such an entry is not taken in again: `Store.save` asks for it when an entry comes with an id or a time of its own.
    """

    async def tombstones(self) -> tuple[Tombstone, ...]:
        """Return the record of each entry that was forgotten, oldest first. Raises `StorageError`."""
        ...

    async def tombstone_of(self, entry: Entry) -> Tombstone | None:
        """Return the record by which an entry is known as forgotten: by its id, or by words that are older.

        None for an entry that was not forgotten. Raises `StorageError`.
        """
        ...


@runtime_checkable
class Marks(Protocol):
    """A backend in which a person can pin an entry, and confirm it."""

    async def mark_entry(self, entry_id: str, act: MarkAct, *, who: str) -> Entry:
        """Pin, unpin or confirm an entry and return it as it is now. Raises `EntryNotFound`."""
        ...


@runtime_checkable
class Undoes(Protocol):
    """A backend that knows what was written and can take it back."""

    async def history(self, *, limit: int | None = None) -> list[HistoryItem]:
        """Return at most `limit` writes (all when None), newest first. Raises: InvalidQuery if it is below 1."""
        ...

    async def undo(self, change_id: str | None, *, who: str) -> HistoryItem:
        """Take back one write, the newest act of a person when none is named.

        Raises `ChangeNotFound`, `UndoRefused`.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class SessionNotes:
    """What is known of a session when it ends, besides what was saved in it.

    `started` and `ended` are times in UTC. `turns` counts what a person said. `cost` is in US dollars, None where it is
    not known. `usage` and `cost` are what the session took since it was closed before, `closing_usage` and
    `closing_cost` what the requests that summed it up took since then: the file has the sums. `summary` is one
    paragraph, `tags` are
    single words in lower case. With `pending` the summary is a digest made by rules, until one is made. `open_threads`
    are what was left open, `files_read` what was read.
    """

    session: str
    started: datetime | None = None
    ended: datetime | None = None
    turns: int = 0
    usage: Usage = field(default_factory=Usage)
    cost: Decimal | None = None
    summary: str = ""
    tags: tuple[str, ...] = ()
    pending: bool = False
    decisions: tuple[str, ...] = ()
    open_threads: tuple[str, ...] = ()
    files_read: tuple[str, ...] = ()
    closing_usage: Usage = field(default_factory=Usage)
    closing_cost: Decimal | None = None


@runtime_checkable
class KeepsSessions(Protocol):
    """A backend that keeps a file for each session: what it was about, and what was saved in it."""

    async def close_session(self, notes: SessionNotes) -> str:
        """Write the file of a session, with what was saved in it, and return its path; empty where there is nothing.

        A second time replaces what was written before, but for usage and cost, which are added up. Raises
        `StorageError`, and then what was saved is kept.
        """
        ...

    async def pending_sessions(self) -> tuple[str, ...]:
        """Return the ids of the sessions that have no summary yet, oldest first."""
        ...


@runtime_checkable
class RecordsUsage(Protocol):
    """A backend that notes when a memory was shown, used and confirmed, apart from what the memory says.

    Noting waits for nothing and writes nothing at once; no ranking goes by it.
    """

    def record_use(self, act: UsageAct, ids: Iterable[str], *, how: str, source: str = "", session: str = "") -> None:
        """Note what happens now to the memories with these ids.

        `how` is one word, such as `recall`; `source` is the label of their place, as a hit has it.
        """
        ...

    def record_prompt(self, text: str, *, session: str = "") -> None:
        """Note that a prompt shows the memories in `text`."""
        ...

    async def usage(self, entry_id: str) -> MemoryUsage:
        """Return what is known of one memory, by its whole id. Raises `StorageError`."""
        ...


@runtime_checkable
class Closes(Protocol):
    """A backend that holds something back until it is closed."""

    async def close(self) -> None:
        """Write what is held back, durably; a second time does nothing. Raises `StorageError`."""
        ...


@runtime_checkable
class LayeredMemory(Lists, Forgets, Marks, Undoes, Protocol):
    """A backend over visible workspaces, with everything that people do to what is remembered there."""

    async def places(self) -> list[MemoryRoot]:
        """Return the visible places that exist, narrowest first."""
        ...


_C = TypeVar("_C")
_AT_ONCE = 20_000
"""Characters of hits in which the guard finds the secrets in some milliseconds."""
_RETURNING_ENTRIES = frozenset({"entries", "get", "mark"})


class Driver(Protocol):
    """What a backend does for one scope; entries arrive checked, redacted and stamped."""

    async def write(self, entry: Entry) -> Entry:
        """Keep `entry`, durably when this returns, and return it as kept."""
        ...

    async def find(self, query: Query, limit: int) -> list[Hit]:
        """Return at most `limit` hits, best first; the newest for a query without words."""
        ...

    async def preamble(self, budget: Tokens | None) -> str:
        """Return what belongs into the system prompt, within the budget; empty when there is nothing."""
        ...


@dataclass(frozen=True, kw_only=True)
class StoreParts:
    """What every bound store needs besides its backend.

    `key` is 32 secret bytes for digests, the same each time that the store is opened; without one they hold for this
    process. `catch_up` lets `ids` follow what others wrote meanwhile.
    """

    redactor: Redactor
    clock: Clock
    ids: IdSource
    emitter: Emitter
    key: bytes = field(default_factory=lambda: token_bytes(32), repr=False)
    catch_up: Callable[[], Awaitable[object]] | None = None


class Backend(ABC):
    """A place to keep memories; nothing can be read or written before it is bound to a scope."""

    def __init__(self, parts: StoreParts) -> None:
        """Give every store that is bound from here the same guard, clock, ids and events."""
        self._parts = parts

    @final
    def bind(self, scope: Scope | None) -> "Store":
        """Return the store of `scope`. Raises `ScopeRequired` without one."""
        if scope is None:
            raise ScopeRequired
        return Store(self._driver(scope), scope, self._parts)

    @abstractmethod
    def _driver(self, scope: Scope) -> Driver:
        """Return what reads and writes for `scope`."""


@final
class Store:
    """Save, recall and preamble of one scope."""

    def __init__(self, driver: Driver, scope: Scope, parts: StoreParts) -> None:
        """Use `Backend.bind` instead."""
        self._driver = driver
        self._parts = parts
        self._views: dict[type, object] = {}
        self._forget_hooks: list[Callable[[Entry, str], Awaitable[object]]] = []
        self.scope = scope

    async def save(self, entry: Entry) -> Entry:
        """Keep `entry` and return it with its id, time and scope; it is durable when this returns.

        Without a scope the entry gets the store's own. A session is no border: it is kept as where the entry comes
        from, `source.session`. An entry that comes with an id or a time was said before, and is refused if it was
        forgotten here. Raises: InvalidEntry; ScopeMismatch for a scope that is not the store's;
        ReasonRequired for one beyond the project without a reason; StorageFull and its siblings.
        """
        with self._parts.emitter.stage("save", self.scope) as progress:
            scope = self._resolve_scope(entry.validate())
            if entry.rule and has_secret(entry.rule):
                raise InvalidEntry("A rule holds no secrets: with a mark in its place it would match other calls.")
            if self._parts.catch_up and self._parts.ids.may_lag():
                await self._parts.catch_up()
            stamped = replace(
                entry,
                id=entry.id or self._parts.ids.new(),
                time=truncate_to_milliseconds(entry.time) if entry.time else self._parts.clock.now(),
                since=truncate_to_milliseconds(entry.since) if entry.since else None,
                scope=scope,
                source=replace(entry.source, session=entry.source.session or scope.session),
            )
            if entry.id:
                self._parts.ids.follow(entry.id)
            progress.counts["entries"] = 1
            clean = await redact_entry_in_thread(stamped, self._parts.redactor)
            if entry.id or entry.time:
                await self._refuse_forgotten(replace(clean, time=entry.time))
            return await self._driver.write(clean)

    async def recall(self, query: str | Query, limit: int = 5) -> list[Hit]:
        """Return at most `limit` hits, best first; the newest for an empty query; empty when nothing matches.

        A text is looked for in memories; a `Query` says itself which sorts of documents it means. Raises: InvalidQuery
        if `limit` is below 1.
        """
        if limit < 1:
            raise InvalidQuery(f"A recall returns at least one hit: the limit can't be {limit}.")
        with self._parts.emitter.stage("recall", self.scope) as progress:
            asked = Query(text=query, sorts=MEMORY_SORTS) if isinstance(query, str) else query
            found = (await self._driver.find(asked, limit))[:limit]
            # what people write into files by hand passes the guard on its way out
            guarding = partial(_all_guarded, found, self._parts.redactor)
            size = guarded_length(hit.entry for hit in found)
            hits = await compute(guarding, size=size, at_once=_AT_ONCE)
            progress.counts["entries"] = len(hits)
            return hits

    async def preamble(self, budget: Tokens | None = None) -> str:
        """Return what belongs into the system prompt, fenced, within `budget` (the backend's own when None)."""
        with self._parts.emitter.stage("preamble", self.scope) as progress:
            most = room = budget or DEFAULT_BUDGET
            shown = await self._build_preamble(budget)
            while (text := self._parts.redactor.clean(shown.text)) is not shown.text and text:
                over = estimate_text(text) - most.count
                if over <= 0:
                    break
                # a mark can be longer than the secret that a person wrote into a file by hand
                room = Tokens(max(room.count - over, room.count // 2, 1) if room.count > 1 else 0)
                shown = await self._build_preamble(room) if room.count else Preamble(text="")
            if shown.cut:
                progress.counts.update(lines=shown.cut.lines, memories=shown.cut.memories, topics=shown.cut.topics)
                progress.reason = f"of MEMORY.md no more is shown than its {shown.cut.cap} allow"
            return text

    async def _build_preamble(self, budget: Tokens | None) -> Preamble:
        if isinstance(self._driver, BuildsPreamble):
            return await self._driver.build_preamble(budget)
        return Preamble(text=await self._driver.preamble(budget))

    def offers(self, capability: type[_C]) -> _C | None:
        """Return one of the optional capabilities with the methods it names, or None when the backend has not got it.

        `capability` is a runtime-checkable protocol; one that names a method of `Driver` is never offered.
        """
        if capability not in self._views:
            names = _public_methods(capability)
            if not names or names & _public_methods(Driver) or not isinstance(self._driver, capability):
                return None
            view = {name: _forward(self._driver_method(name)) for name in names}
            self._views[capability] = type(capability.__name__, (), {**view, "__slots__": ()})()
        return cast("_C", self._views[capability])

    def _driver_method(self, name: str) -> Callable[..., object]:
        """Return a method of the backend, whose entries pass the guard; forgetting is told once it is done."""
        method: Callable[..., object] = getattr(self._driver, name)
        if name == "forget" and isinstance(self._driver, Forgets):
            return partial(self._forget_and_notify, self._driver)
        if name in _RETURNING_ENTRIES and isinstance(self._driver, Lists):
            return partial(self._returning, cast("Callable[..., Awaitable[Entry | list[Entry]]]", method))
        return method

    async def _returning(
        self, method: Callable[..., Awaitable[Entry | list[Entry]]], *given: object, **named: object
    ) -> Entry | list[Entry]:
        found = await method(*given, **named)
        return await self._shown(found) if isinstance(found, list) else (await self._shown([found]))[0]

    async def _shown(self, found: list[Entry]) -> list[Entry]:
        """Return what a backend found, without the secrets that its files may hold."""
        # each of its places has a key of its own, with which it does so itself
        if isinstance(self._driver, LayeredMemory):
            return found
        redactor = self._parts.redactor
        return await run_sync(lambda: [redact_for_display(entry, redactor) for entry in found])

    async def _forget_and_notify(self, bound: Forgets, entry_id: str, *, who: str, why: str = "") -> Entry:
        (gone,) = await self._shown([await bound.forget(entry_id, who=who, why=why)])
        for act in self._forget_hooks:
            await act(gone, who)
        return gone

    async def _refuse_forgotten(self, entry: Entry) -> None:
        if isinstance(self._driver, KeepsTombstones) and (stone := await self._driver.tombstone_of(entry)):
            raise InvalidEntry(
                f"The memory {stone.id} was forgotten{stone.origin} and is not taken in again: save its words "
                f"without an "
                "id and a time, as a new memory."
            )

    def _resolve_scope(self, entry: Entry) -> Scope:
        if entry.scope is None:
            return self.scope
        mine, wanted = self.scope.parts(), entry.scope.parts()
        foreign = [name for name, value in wanted.items() if mine.get(name) not in {None, value}]
        if foreign:
            raise ScopeMismatch(f"This store is bound to {self.scope}: it can't save for {entry.scope}.")
        if "session" in wanted:
            return Scope(**mine | wanted)
        if "project" in mine and "project" not in wanted and not (entry.reason or "").strip():
            raise ReasonRequired
        return entry.scope


def _all_guarded(hits: Iterable[Hit], redactor: Redactor) -> list[Hit]:
    return [_redact_hit(hit, redactor) for hit in hits]


def _redact_hit(hit: Hit, redactor: Redactor) -> Hit:
    """Return a hit without the secrets that its file may hold."""
    before, after = (each and replace(each, text=redactor.clean(each.text)) for each in (hit.before, hit.after))
    cleaned = replace(
        hit,
        entry=redact_for_display(hit.entry, redactor),
        heading=redactor.clean(hit.heading),
        before=before,
        after=after,
    )
    return hit if cleaned == hit else cleaned


def add_forget_hook(store: Store, act: Callable[[Entry, str], Awaitable[object]]) -> None:
    """Do `act` with each entry that is forgotten through `store` from now on, and with who forgets it."""
    store._forget_hooks.append(act)


async def entries_as_stored(store: Store) -> list[Entry] | None:
    """Return all entries of a store with the secrets that people wrote into its files, newest first.

    It is for counting them, and for saving them elsewhere, which replaces them. None where the store can't list.
    """
    return await store._driver.entries() if isinstance(store._driver, Lists) else None


def _public_methods(capability: type) -> frozenset[str]:
    """Return the public methods that a protocol and those it extends name; none for a class that is no protocol."""
    if not getattr(capability, "_is_protocol", False):
        return frozenset()
    protocols = (cls for cls in capability.__mro__ if getattr(cls, "_is_protocol", False))
    return frozenset(name for cls in protocols for name in vars(cls) if not name.startswith("_"))


def _forward(method: Callable[..., object]) -> Callable[..., object]:
    def call(_view: object, *given: object, **named: object) -> object:
        return method(*given, **named)

    return call


def record_shown(store: Store, hits: Sequence[Hit], *, how: str, session: str = "") -> None:
    """Note that the memories among `hits` are shown; `how` is one word, such as `recall`."""
    notes = store.offers(RecordsUsage) if hits else None
    if notes:
        for source in dict.fromkeys(hit.source for hit in hits):
            ids = [hit.entry.id for hit in hits if hit.source == source]
            notes.record_use("shown", ids, how=how, source=source, session=session)
