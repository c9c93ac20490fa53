"""The store interface: save, recall and preamble, all bound to a scope.

`backend.bind(scope)` returns a `Store`, one class for all backends. A `Store` sets scope, id and time, checks the entry
and redacts secrets before it calls the driver of the backend, so no backend can skip these steps.

Optional features of a backend are capabilities, which are protocols. `store.offers(Forgets)` returns an object with
only the methods of that protocol, so callers never reach the driver's own `write`.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from decimal import Decimal
from functools import partial
from secrets import token_bytes
from typing import TYPE_CHECKING, Protocol, TypeVar, cast, final, runtime_checkable

from anyio.to_thread import run_sync

from ricordo import messages
from ricordo.clock import Clock, IdSource, truncate_to_milliseconds
from ricordo.concurrency import compute
from ricordo.context.config import PREAMBLE_BUDGET
from ricordo.context.preamble import Preamble
from ricordo.errors import InvalidEntry, InvalidQuery, ReasonRequired, ScopeMismatch, ScopeRequired
from ricordo.guard import Redactor, has_secret
from ricordo.lazy import dataclass
from ricordo.messages.tokens import Tokens, estimate_text
from ricordo.scope import Scope, without_session
from ricordo.search.contract import MEMORY_DOCUMENT_TYPES, Hit, Query
from ricordo.workspace.entry import Entry, EntryFilter
from ricordo.workspace.history.log import HistoryItem
from ricordo.workspace.history.usage import MemoryUsage, Shown, UsageAct
from ricordo.workspace.redaction import guarded_length, redact_entry_in_thread, redact_for_display, screen_entry

if TYPE_CHECKING:
    from ricordo.curation.marks import EntryUpdate, MarkAct
    from ricordo.events import Emitter
    from ricordo.messages import Usage
    from ricordo.search.memory_root import MemoryRoot
    from ricordo.workspace.history.repetition import Remaining
    from ricordo.workspace.history.tombstones import Tombstone
    from ricordo.workspace.history.versions import ChangeDiff

__all__ = [
    "Backend",
    "Closes",
    "DeleteResult",
    "Driver",
    "EntryPage",
    "ForgetResult",
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
    "WritesMany",
    "add_forget_hook",
    "build_preamble",
    "entries_as_stored",
    "record_shown",
]


@runtime_checkable
class Lists(Protocol):
    """A backend that can list all its entries."""

    async def entries(self) -> list[Entry]:
        """Return all entries, newest first."""
        ...

    async def get(self, entry_id: str) -> Entry:
        """Return one entry. Raises `EntryNotFound`."""
        ...


@runtime_checkable
class Forgets(Protocol):
    """A backend that can remove entries."""

    async def forget(self, entry_id: str, *, who: str, why: str = "") -> Entry:
        """Remove an entry everywhere and return it. Raises `EntryNotFound`."""
        ...


@runtime_checkable
class KeepsTombstones(Protocol):
    """A backend that keeps a record without content of each forgotten entry. Every backend that forgets must do this.

    `Store.save` checks these records when an entry arrives with its own id or time, and refuses a forgotten entry.
    """

    async def tombstones(self) -> "tuple[Tombstone, ...]":
        """Return the records of all forgotten entries, oldest first. Raises `StorageError`."""
        ...

    async def tombstone_of(self, entry: Entry) -> "Tombstone | None":
        """Return the record that shows that an entry was forgotten; None if it was not.

        A record matches by id, or by the same words if the entry is not newer than the record. Raises `StorageError`.
        """
        ...


@runtime_checkable
class Marks(Protocol):
    """A backend in which a person can pin and confirm entries."""

    async def mark_entry(self, entry_id: str, act: "MarkAct", *, who: str) -> Entry:
        """Pin, unpin or confirm an entry and return the changed entry. Raises `EntryNotFound`."""
        ...


@runtime_checkable
class Undoes(Protocol):
    """A backend that records its writes and can undo them."""

    async def history(self, *, limit: int | None = None) -> "list[HistoryItem]":
        """Return at most `limit` writes (all when None), newest first. Raises: InvalidQuery if `limit` is below 1."""
        ...

    async def undo(self, change_id: str | None, *, who: str) -> "HistoryItem":
        """Undo one write. `change_id` None means the newest write by a person.

        Raises `ChangeNotFound`, `UndoRefused`.
        """
        ...


def _no_usage() -> "Usage":
    # the types of messages are loaded at their first use
    return messages.Usage()


@dataclass(frozen=True, kw_only=True)
class SessionNotes:
    """Facts about a session at its end, apart from the entries saved in it.

    `started` and `ended` are times in UTC. `turns` counts the messages of the user. `cost` is in US dollars, or None if
    unknown. `usage` and `cost` cover the session since it was last closed; `closing_usage` and `closing_cost` cover the
    summary requests since then. The session file holds the sums. `summary` is one paragraph, `tags` are single words in
    lower case. `pending` means that the summary is a digest made by rules, until a model writes one. `open_threads`
    lists unfinished topics, `files_read` the files that were read.
    """

    session: str
    started: datetime | None = None
    ended: datetime | None = None
    turns: int = 0
    usage: "Usage" = field(default_factory=_no_usage)
    cost: Decimal | None = None
    summary: str = ""
    tags: tuple[str, ...] = ()
    pending: bool = False
    decisions: tuple[str, ...] = ()
    open_threads: tuple[str, ...] = ()
    files_read: tuple[str, ...] = ()
    closing_usage: "Usage" = field(default_factory=_no_usage)
    closing_cost: Decimal | None = None


@runtime_checkable
class KeepsSessions(Protocol):
    """A backend that keeps a file for each session, with a summary and the entries saved in the session."""

    async def close_session(self, notes: SessionNotes) -> str:
        """Write the file of a session with its saved entries and return the path; empty if there is nothing to write.

        A second call replaces the earlier content, except usage and cost, which are added up. Raises `StorageError`;
        the session's saved entries are then kept.
        """
        ...

    async def pending_sessions(self) -> tuple[str, ...]:
        """Return the ids of the sessions that have no summary yet, oldest first."""
        ...


@runtime_checkable
class RecordsUsage(Protocol):
    """A backend that records when a memory was shown, used or confirmed, separately from the content of the memory.

    Recording does not block and does not write immediately. No ranking depends on it.
    """

    def record_use(
        self, act: UsageAct, ids: Iterable[str], *,
        how: str, source: str = "", session: str = "", shown: Shown | None = None,
    ) -> None:  # fmt: skip
        """Record an act on the memories with these ids, at the current time; `how` is one word, such as `recall`.

        `source` is the label of the memory's place, as in a hit. `shown` has what was shown of each, as far as known.
        """
        ...

    async def usage(self, entry_id: str) -> MemoryUsage:
        """Return the usage of one memory by its full id. Raises `StorageError`."""
        ...


@runtime_checkable
class Closes(Protocol):
    """A backend that buffers writes until it is closed."""

    async def close(self) -> None:
        """Write everything that is buffered, durably; a second call does nothing. Raises `StorageError`."""
        ...


@dataclass(frozen=True, kw_only=True)
class ForgetResult:
    """The forgotten entry, and the places that still contain its words, nearest place first.

    `remaining` holds longer entries that contain these words, facts of the profile, and plans, notes, rules and todos
    in nearly the same words. They are not forgotten with it.
    """

    entry: Entry
    remaining: "tuple[Remaining, ...]" = ()


@dataclass(frozen=True, kw_only=True)
class DeleteResult:
    """The entries forgotten together, newest first, and the id of the change, empty if there were none."""

    entries: tuple[Entry, ...] = ()
    change_id: str = ""


@dataclass(frozen=True, kw_only=True)
class EntryPage:
    """Some entries, newest first; `ids` are those of all entries, and `contradictions` are by id."""

    entries: tuple[Entry, ...] = ()
    ids: tuple[str, ...] = ()
    contradictions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@runtime_checkable
class WritesMany(Protocol):
    """A backend that stores several entries in one durable write."""

    async def write_many(self, entries: Sequence[Entry], *, part_of: str = "") -> list[Entry]:
        """Store `entries`, with the change `part_of` if one is given, and return them as stored, in the same order.

        A driver gets them as for `Driver.write`. Through `Store.offers` each is checked and completed as by
        `Store.save`, all before the first one is written. Raises what `Store.save` raises.
        """
        ...


@runtime_checkable
class LayeredMemory(Lists, Forgets, Marks, Undoes, WritesMany, Protocol):
    """A backend over the visible workspaces that lists, forgets, marks, updates, moves and undoes."""

    async def update_entry(self, entry_id: str, update: "EntryUpdate", *, who: str) -> Entry:
        """Give an entry new values and return it. Raises: EntryNotFound; InvalidEntry."""
        ...

    async def merge_entries(self, old_id: str, new_id: str, *, who: str) -> None:
        """Let one entry or fact take the place of another. Raises `EntryNotFound`."""
        ...

    async def move_entry(self, entry_id: str, scope: Scope, *, act: str, who: str, why: str) -> Entry:
        """Move an entry to the place of `scope`. Raises: EntryNotFound; ScopeError; InvalidEntry."""
        ...

    async def forget_matching(self, wanted: EntryFilter, *, scope: Scope | None, who: str, why: str) -> DeleteResult:
        """Remove the matching entries of one place, by default the narrowest. Raises: ScopeMismatch."""
        ...

    async def entry_history(self, entry_id: str, *, limit: int | None = None) -> list[HistoryItem]:
        """Return at most `limit` writes (all when None) that concern one entry, by its full id, newest first."""
        ...

    async def places(self) -> "list[MemoryRoot]":
        """Return the visible places that exist, narrowest first."""
        ...

    async def known_places(self) -> "list[MemoryRoot]":
        """Return the visible places that the last search saw, narrowest first; before the first one, `places`."""
        ...

    async def entry_page(self, limit: int, after: Entry | str | None = None) -> EntryPage:
        """Return the first `limit` of `entries`, or those after the entry `after`. Raises: EntryNotFound."""
        ...

    async def entries_as_of(self, moment: datetime) -> list[Entry]:
        """Return the entries as of `moment`, newest first. Raises `ChangeNotFound`."""
        ...

    async def diff(self, change_id: str | None = None) -> "ChangeDiff":
        """Return what one write did to each of its files; the newest write of the scope's own user without an id.

        Raises `ChangeNotFound`.
        """
        ...


_C = TypeVar("_C")
_AT_ONCE, _SCREENED = 20_000, 2_000  # characters that are redacted on the event loop, in a few milliseconds
_RETURNING_ENTRIES = frozenset({"entries", "get", "mark_entry"})


class Driver(Protocol):
    """The backend's side of a store for one scope. Entries arrive checked, redacted and with scope, id and time."""

    async def write(self, entry: Entry) -> Entry:
        """Store `entry` and return it as stored. The write is durable when this returns."""
        ...

    async def find(self, query: Query, limit: int) -> list[Hit]:
        """Return at most `limit` hits, best first; for a query without words, the newest entries."""
        ...

    async def preamble(self, budget: Tokens | None) -> Preamble | str:
        """Return the memory for the system prompt, within the budget; empty if there is nothing to show.

        A text stands for a preamble of one item of unknown entries.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class StoreParts:
    """What every bound store needs apart from its backend.

    `key` is 32 secret bytes for digests. Pass the same key each time the store is opened; without one, digests are
    valid only in this process. `catch_up` advances `ids` past the ids that other processes wrote.
    """

    redactor: Redactor
    clock: Clock
    ids: IdSource
    emitter: "Emitter"
    key: bytes = field(default_factory=lambda: token_bytes(32), repr=False)
    catch_up: Callable[[], Awaitable[object]] | None = None


class Backend(ABC):
    """A place to keep memories. It must be bound to a scope before reads and writes."""

    def __init__(self, parts: StoreParts) -> None:
        """Use the same redactor, clock, ids and emitter for every store bound from this backend."""
        self._parts = parts

    @final
    def bind(self, scope: Scope | None) -> "Store":
        """Return the store of `scope`. Raises: ScopeRequired if `scope` is None."""
        if scope is None:
            raise ScopeRequired
        return Store(self._driver(scope), scope, self._parts)

    @abstractmethod
    def _driver(self, scope: Scope) -> Driver:
        """Return the driver that reads and writes for `scope`."""


@final
class Store:
    """Save, recall and preamble for one scope."""

    def __init__(self, driver: Driver, scope: Scope, parts: StoreParts) -> None:
        """Use `Backend.bind` instead."""
        self._driver = driver
        self._parts, self._views = parts, dict[type, object]()
        self._forget_hooks: list[Callable[[Entry, str], Awaitable[object]]] = []
        self.scope = scope

    async def save(self, entry: Entry) -> Entry:
        """Save `entry` durably and return it with its id, time and scope.

        An entry without a scope gets the scope of the store, without its session, which is stored as `source.session`.
        One whose scope has a session is visible in that session alone, and gone when it ends. An entry that arrives
        with an id or a time is refused if it was forgotten here. Raises: InvalidEntry; ScopeMismatch if the entry's
        scope lies outside the store's; ReasonRequired if the entry is visible beyond the project and has no reason;
        StorageFull and its siblings.
        """
        with self._parts.emitter.stage("save", self.scope) as progress:
            ready = await self._prepare(entry)
            progress.counts["entries"] = 1
            return await self._driver.write(ready)

    async def _prepare(self, entry: Entry) -> Entry:
        """Return the checked entry with scope, id and time, without secrets. Raises as `save` does."""
        scope = self._resolve_scope(entry.validate())
        if entry.rule and has_secret(entry.rule):
            raise InvalidEntry("A rule holds no secrets: with a mark in its place it would match other calls.")
        if scope.team and not (scope.project or scope.user) and has_secret("\n".join((entry.content, *entry.tags))):
            raise InvalidEntry("It holds a secret: nothing with one is shared with a team.")
        if self._parts.catch_up and self._parts.ids.may_lag():
            await self._parts.catch_up()
        stamped = replace(
            entry,
            id=entry.id or self._parts.ids.new(),
            time=truncate_to_milliseconds(entry.time) if entry.time else self._parts.clock.now(),
            since=truncate_to_milliseconds(entry.since) if entry.since else None,
            scope=scope,
            source=replace(entry.source, session=entry.source.session or scope.session or self.scope.session),
        )
        if entry.id:
            self._parts.ids.follow(entry.id)
        screened = await compute(partial(screen_entry, stamped), size=guarded_length([stamped]), at_once=_SCREENED)
        clean = await redact_entry_in_thread(screened, self._parts.redactor)
        if entry.id or entry.time:
            await self._refuse_forgotten(replace(clean, time=entry.time))
        return clean

    async def recall(self, query: str | Query, limit: int = 5) -> list[Hit]:
        """Return at most `limit` hits, best first; the newest for an empty query; empty when nothing matches.

        A string searches memories; a `Query` names the sorts of documents to search. Raises: InvalidQuery if `limit` is
        below 1.
        """
        if limit < 1:
            raise InvalidQuery(f"A recall returns at least one hit: the limit can't be {limit}.")
        with self._parts.emitter.stage("recall", self.scope) as progress:
            full_query = Query(text=query, document_types=MEMORY_DOCUMENT_TYPES) if isinstance(query, str) else query
            found = await self._driver.find(full_query, limit)
            matches = [hit for hit in found if hit.entry.state != "quarantined"][:limit]
            # files that people edit may hold secrets
            size, redactor = guarded_length(hit.entry for hit in matches), self._parts.redactor
            hits = await compute(lambda: [_redact_hit(hit, redactor) for hit in matches], size=size, at_once=_AT_ONCE)
            progress.counts["entries"] = len(hits)
            return hits

    async def preamble(self, budget: Tokens | None = None) -> str:
        """Return the fenced text for the system prompt, within `budget` (the backend's default when None)."""
        return (await self._build_preamble(budget)).text

    async def _build_preamble(self, budget: Tokens | None) -> Preamble:
        with self._parts.emitter.stage("preamble", self.scope) as progress:
            max_tokens = remaining = budget or PREAMBLE_BUDGET
            preamble = await self._read_preamble(budget)
            while (clean := _redact_preamble(preamble, self._parts.redactor)) is not preamble and clean.text:
                excess = estimate_text(clean.text) - max_tokens.count
                if excess <= 0:
                    break
                # the mark of a secret that a person wrote into a file can be longer than the secret
                remaining = Tokens(max(remaining.count - excess, remaining.count // 2, 1) if remaining.count > 1 else 0)
                preamble = await self._read_preamble(remaining) if remaining.count else Preamble()
            if preamble.cut:
                progress.counts.update(
                    lines=preamble.cut.lines, memories=preamble.cut.memories, topics=preamble.cut.topics
                )
                progress.reason = f"of MEMORY.md no more is shown than its {preamble.cut.cap} allow"
            return clean

    async def _read_preamble(self, budget: Tokens | None) -> Preamble:
        preamble = await self._driver.preamble(budget)
        return Preamble.from_text(preamble) if isinstance(preamble, str) else preamble

    def offers(self, capability: type[_C]) -> _C | None:
        """Return an optional capability, as an object with only the methods it names; None if the backend lacks it.

        `capability` is a runtime-checkable protocol. A protocol that names a method of `Driver` is never offered.
        """
        if capability not in self._views:
            names = _public_methods(capability)
            if not names or names & _public_methods(Driver) or not isinstance(self._driver, capability):
                return None
            view = {name: _forward(self._driver_method(name)) for name in names}
            self._views[capability] = type(capability.__name__, (), {**view, "__slots__": ()})()
        return cast("_C", self._views[capability])

    def _driver_method(self, name: str) -> Callable[..., object]:
        """Return a method of the backend that redacts the entries it returns; `forget` also calls the forget hooks."""
        method: Callable[..., object] = getattr(self._driver, name)
        if name == "forget" and isinstance(self._driver, Forgets):
            return partial(self._forget_and_notify, self._driver)
        if name == "write_many" and isinstance(self._driver, WritesMany):
            return partial(self._write_many, self._driver)
        if name == "forget_matching" and isinstance(self._driver, LayeredMemory):
            return partial(self._forget_many_and_notify, self._driver)
        if name in _RETURNING_ENTRIES and isinstance(self._driver, Lists):
            return partial(self._returning, cast("Callable[..., Awaitable[Entry | list[Entry]]]", method))
        return method

    async def _returning(
        self, method: Callable[..., Awaitable[Entry | list[Entry]]], *given: object, **named: object
    ) -> Entry | list[Entry]:
        result = await method(*given, **named)
        return await self._shown(result) if isinstance(result, list) else (await self._shown([result]))[0]

    async def _shown(self, found: list[Entry]) -> list[Entry]:
        """Return entries without the secrets that their files may hold."""
        # a layered memory redacts its own entries, with the key of each place
        if isinstance(self._driver, LayeredMemory):
            return found
        redactor = self._parts.redactor
        return await run_sync(lambda: [redact_for_display(entry, redactor) for entry in found])

    async def _write_many(self, bound: WritesMany, entries: Sequence[Entry], *, part_of: str = "") -> list[Entry]:
        with self._parts.emitter.stage("save", self.scope) as progress:
            ready = [await self._prepare(entry) for entry in entries]
            progress.counts["entries"] = len(ready)
            return await bound.write_many(ready, part_of=part_of) if ready else []

    async def _forget_and_notify(self, bound: Forgets, entry_id: str, *, who: str, why: str = "") -> Entry:
        (removed,) = await self._shown([await bound.forget(entry_id, who=who, why=why)])
        for act in self._forget_hooks:
            await act(removed, who)
        return removed

    async def _forget_many_and_notify(
        self, bound: LayeredMemory, wanted: EntryFilter, *, scope: Scope | None, who: str, why: str
    ) -> DeleteResult:
        result = await bound.forget_matching(wanted, scope=scope, who=who, why=why)
        for removed in result.entries:
            for act in self._forget_hooks:
                await act(removed, who)
        return result

    async def _refuse_forgotten(self, entry: Entry) -> None:
        if isinstance(self._driver, KeepsTombstones) and (tombstone := await self._driver.tombstone_of(entry)):
            raise InvalidEntry(
                f"The memory {tombstone.id} was forgotten{tombstone.origin} and is not taken in again: save its words "
                "without an id and a time, as a new memory."
            )

    def _resolve_scope(self, entry: Entry) -> Scope:
        if entry.scope is None:
            return without_session(self.scope)
        own, requested = self.scope.parts(), entry.scope.parts()
        foreign = [name for name, value in requested.items() if own.get(name) not in {None, value}]
        if foreign:
            raise ScopeMismatch(f"This store is bound to {self.scope}: it can't save for {entry.scope}.")
        if "session" in requested:
            if not isinstance(self._driver, LayeredMemory):
                raise ScopeMismatch("This store keeps nothing for one session alone: save it without a session.")
            return Scope(**own | requested)
        if "project" in own and "project" not in requested and not (entry.reason or "").strip():
            raise ReasonRequired
        return entry.scope


def _redact_hit(hit: Hit, redactor: Redactor) -> Hit:
    """Return a hit without the secrets that its file may hold; the same object if it has none."""
    entry, heading = redact_for_display(hit.entry, redactor), hit.heading and redactor.clean(hit.heading)
    before, after = (each and replace(each, text=redactor.clean(each.text)) for each in (hit.before, hit.after))
    is_same = entry is hit.entry and heading is hit.heading and (before, after) == (hit.before, hit.after)
    return hit if is_same else replace(hit, entry=entry, heading=heading, before=before, after=after)


def _redact_preamble(preamble: Preamble, redactor: Redactor) -> Preamble:
    """Return a preamble without secrets; the same object if it has none."""
    text = redactor.clean(preamble.text)
    if text is preamble.text:
        return preamble
    items = tuple(replace(item, text=redactor.clean(item.text)) for item in preamble.items)
    return replace(preamble, text=text, items=items)


async def build_preamble(store: Store, budget: Tokens | None = None) -> Preamble:
    """Return what `Store.preamble` returns as a text, with its items and the omitted part of MEMORY.md."""
    return await store._build_preamble(budget)


def add_forget_hook(store: Store, act: Callable[[Entry, str], Awaitable[object]]) -> None:
    """Call `act` with each entry that is forgotten through `store` from now on, and with who forgot it."""
    store._forget_hooks.append(act)


async def entries_as_stored(store: Store) -> list[Entry] | None:
    """Return all entries of a store, newest first, including secrets that people wrote into its files.

    Use it to count entries, or to save them elsewhere, which redacts them. Return None if the store can't list.
    """
    return await store._driver.entries() if isinstance(store._driver, Lists) else None


def _public_methods(capability: type) -> frozenset[str]:
    """Return the public methods that a protocol and its bases name; empty for a class that is not a protocol."""
    if not getattr(capability, "_is_protocol", False):
        return frozenset()
    protocols = (cls for cls in capability.__mro__ if getattr(cls, "_is_protocol", False))
    return frozenset(name for cls in protocols for name in vars(cls) if not name.startswith("_"))


def _forward(method: Callable[..., object]) -> Callable[..., object]:
    def call(_view: object, *args: object, **kwargs: object) -> object:
        return method(*args, **kwargs)

    return call


def record_shown(store: Store, hits: Sequence[Hit], *, how: str, session: str = "", act: UsageAct = "shown") -> None:
    """Record that the memories among `hits` were shown, or had another `act`; `how` is one word, such as `recall`."""
    if recorder := store.offers(RecordsUsage) if hits else None:
        for source in dict.fromkeys(hit.source for hit in hits):
            shown = {hit.entry.id: (hit.entry.content, hit.score) for hit in hits if hit.source == source}
            recorder.record_use(act, shown, how=how, source=source, session=session, shown=shown)
