"""Layered: the whole of Ricordo behind the three operations.

A read merges the visible places, narrowest first: what is the user's alone in the project, what the project shares,
then the user's own root. A write goes to the narrowest one unless the entry names a wider scope; the user's own root is
created by the first entry that does. Saved means: in the ledger, synced, and known to the index.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Protocol

from anyio.to_thread import run_sync

from ricordo.audit import (
    HistoryItem,
    MarkAct,
    MemoryUsage,
    UsageAct,
    chosen_item,
    forget,
    forget_copies,
    history,
    is_by_person,
    located_by_id,
    mark,
    undo,
)
from ricordo.audit.usage import ids_shown
from ricordo.clock import Clock, milliseconds
from ricordo.consolidation.config import ConsolidationConfig
from ricordo.errors import ChangeNotFound, FileMissing, ScopeMismatch, StorageError
from ricordo.index.contract import Query
from ricordo.recall.hits import Hit
from ricordo.recall.recall import recall
from ricordo.recall.reranking import Reranker
from ricordo.scopes import Scope
from ricordo.stores.capabilities import SessionNotes
from ricordo.stores.contract import Backend, Driver, StoreParts
from ricordo.stores.empty_places import EmptyPlaces
from ricordo.stores.layered_damage import DamageWatch
from ricordo.stores.layered_entries import each_once, ids_in, ids_placed, names_of, says_something
from ricordo.stores.layered_reading import PlaceReading, hits_outward, newest, outward
from ricordo.stores.layered_sessions import PlaceSessions
from ricordo.stores.place import Place
from ricordo.stores.preamble import DEFAULT_BUDGET, Preamble, Prefaces, preamble, said
from ricordo.stores.session_preamble import recent_sessions
from ricordo.stores.tombstones import PlaceTombstones
from ricordo.tokens import Tokens
from ricordo.uncut import uncut_in_thread
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import Located
from ricordo.workspace.layout import MEMORY
from ricordo.workspace.ledger import append_entries, read_memory

__all__ = ["Layered", "LayeredDriver", "SeenPlaces"]

_FEW = 32
_LAST_SESSIONS = 5
_SESSIONS_SHARE = 4
"""Which part of the preamble the last sessions take at most."""

_SEEING = ("tenant", "user", "team", "project")
"""The parts of a scope that say which places it sees."""


class SeenPlaces(Protocol):
    """The places that one scope sees, narrowest first; all but the narrowest are opened when they are needed."""

    @property
    def narrowest(self) -> Place:
        """The place that is written to unless something wider is named."""
        ...

    @property
    def opened(self) -> list[Place]:
        """The places that are open, narrowest first."""
        ...

    def is_missed(self) -> bool:
        """Tell whether there is a place that is not open yet. It blocks on the disk."""
        ...

    async def existing(self) -> list[Place]:
        """Return the places that exist, narrowest first."""
        ...

    async def of(self, scope: Scope) -> Place:
        """Return the place of what is saved for `scope`; it is made if it is not there. Raises `ScopeMismatch`."""
        ...


class Layered(Backend):
    """The store that `Memory.open` and the command line use."""

    def __init__(
        self,
        parts: StoreParts,
        seen: SeenPlaces,
        scope: Scope,
        *,
        reranker: Reranker | None = None,
        consolidation: ConsolidationConfig | None = None,
        saved: Callable[[Place], Awaitable[object]] | None = None,
    ) -> None:
        """Keep the memories of `scope` in the places that it has `seen`.

        `consolidation` has the bounds of MEMORY.md. `saved` is told where an entry was saved.
        """
        self._reranker = reranker
        self._consolidation = consolidation
        self._saved = saved
        super().__init__(parts)
        self._seen = seen
        self._scope = scope

    def _driver(self, scope: Scope) -> Driver:
        """Return the driver over the places that `scope` sees. Raises: ScopeMismatch if those are not open here."""
        mine, wanted = self._scope.parts(), scope.parts()
        beyond = [name for name in _SEEING if mine.get(name) != wanted.get(name)]
        if beyond or not self._seen.narrowest.scope.parts().items() <= wanted.items():
            raise ScopeMismatch(f"This memory is open for {self._scope}: it can't be read or written for {scope}.")
        return LayeredDriver(
            self._seen, self._parts.clock, scope=scope, reranker=self._reranker, consolidation=self._consolidation,
            saved=self._saved,
        )  # fmt: skip


class LayeredDriver(Prefaces, PlaceTombstones):
    """Reads and writes the visible places of one scope."""

    def __init__(
        self,
        seen: SeenPlaces,
        clock: Clock,
        *,
        scope: Scope,
        reranker: Reranker | None = None,
        consolidation: ConsolidationConfig | None = None,
        saved: Callable[[Place], Awaitable[object]] | None = None,
    ) -> None:
        """Use the places that are `seen`, for `scope`; `clock` says which ledger is written to.

        `consolidation` has the bounds of MEMORY.md. `saved` is told where an entry was saved.
        """
        self._config = consolidation or ConsolidationConfig()
        self._seen = seen
        self._place = place = seen.narrowest
        self._scope = scope
        self._clock = clock
        self._saved = saved
        self._sessions = PlaceSessions(place)
        self._reranker = reranker
        self._has_looked = False
        self._empty = EmptyPlaces()
        self._damage: dict[str, DamageWatch] = {}
        self._readings: dict[str, PlaceReading] = {}

    async def places(self) -> list[Place]:
        """Return the visible places that exist, narrowest first."""
        return await self._seen.existing()

    async def write(self, entry: Entry) -> Entry:
        """Append `entry` to today's ledger of its place, durably, and index it. Raises `ScopeMismatch`."""
        place = await self._seen.of(entry.scope or self._scope)
        day, told = self._clock.today(), [place.inward(entry)]
        block = await append_entries(place.files, day, told, place.redactor, through=place.index)
        saved = await place.outward_async(block.entries[0])
        await self._sign(place, saved)
        if self._saved:
            await self._saved(place)
        return saved

    async def _sign(self, place: Place, saved: Entry) -> None:
        """Note whose act a save was, where neither its line nor its place says so: what a project's users share."""
        if place.changes.user and not (saved.scope and saved.scope.user):
            await place.changes.apply([], act="save", who=saved.by, entries=[saved.id], why=saved.reason or "")

    async def find(self, query: Query, limit: int) -> list[Hit]:
        """Return ranked hits of all visible places."""
        looked = list[bool]()
        places = self._seen.opened if self._has_looked else await self.places()
        self._has_looked = True
        searched = self._empty.without(places)
        hits = await self._hits(searched, query, limit, lambda: looked.append(self._is_missed(places)))
        # whether there is another place to search by now was looked at where the first one was read
        if (any(looked) or not looked) and len(known := await self.places()) > len(searched):
            places = known
            hits = await self._hits(places, query, limit)
        by_label = {place.label: place for place in places}
        return await hits_outward(hits, by_label)

    def _is_missed(self, places: Sequence[Place]) -> bool:
        """Tell whether there is a place to search that was not, or was empty before. It blocks on the disk."""
        return self._empty.look(places) or self._seen.is_missed()

    async def _hits(
        self, places: Sequence[Place], query: Query, limit: int, look: Callable[[], object] | None = None
    ) -> list[Hit]:
        """Return what is found in these places; with the first one `look` is done, where that takes no trip more."""
        # what was forgotten hides messages, and nothing else
        said = "transcript" in query.sorts
        sources = [await place.source(self._scope, said=said) for place in places]
        first = replace(sources[0], beside=look)
        now = self._place.clock.now()
        return await recall([first, *sources[1:]], query, limit=limit, now=now, reranker=self._reranker)

    async def prefaced(self, budget: Tokens | None) -> Preamble:
        """Return curated memory, then what was explicitly saved and is not curated yet, newest first."""
        curated, holding, unread = list[bytes](), set[str](), 0
        saved, pinned = list[tuple[str, Entry]](), list[tuple[str, Entry]]()
        for place in await self.places():
            with suppress(FileMissing, StorageError):
                stored = await place.files.read(MEMORY)
                document = await uncut_in_thread(place.redactor.clean_bytes, stored.data)
                curated += [place.linked(document)] if says_something(document) else []
            await self._damage.setdefault(place.label, DamageWatch()).look(place.files)
            reading = self._readings.setdefault(place.label, PlaceReading(place.files, place.redactor))
            await reading.look()
            last, more = await reading.newest_saved()
            placed = ids_placed(standing := await reading.curated())
            holding |= {found.entry.id for found in standing if found.entry.state == "active"}
            stuck = await reading.pinned()
            pinned += [(place.shown(source), entry) for source, entry in stuck]
            placed |= {entry.id for _, entry in stuck}
            active = [row for row in last if row[1].state == "active"]
            shown = [(place.shown(source), entry) for source, entry in active if placed.isdisjoint(names_of(entry))]
            saved += shown
            # what is not read is mostly placed too
            unread += max(more - max(len(placed) - len(last) + len(shown), 0), 0)
        replaced = {entry.supersedes for _, entry in saved}
        saved = sorted(
            (row for row in saved if row[1].id not in replaced), key=lambda row: newest(row[1]), reverse=True
        )
        room = (budget or DEFAULT_BUDGET).count // _SESSIONS_SHARE
        recent = recent_sessions(await self._sessions.rows(), last=_LAST_SESSIONS, room=room)
        make = partial(preamble, curated, saved, budget, pinned=pinned, recent=recent, unread=unread)
        return await uncut_in_thread(partial(make, bounds=self._config.bounds, elsewhere=holding))

    async def close_session(self, notes: SessionNotes) -> str:
        """Write the file of a session in the narrowest place; return its path, or "".

        Raises: StorageError.
        """
        return await self._sessions.close(notes)

    async def pending_sessions(self) -> tuple[str, ...]:
        """Return the ids of the sessions that have no summary yet, oldest first."""
        return await self._sessions.waiting()

    async def entries(self) -> list[Entry]:
        """Return all entries of all visible places, newest first, each once: as curated memory has it, if it has."""
        read = [(place, await read_memory(place.files)) for place in await self.places()]
        return await run_sync(lambda: outward((place, each_once(located)) for place, located in read))

    async def get(self, entry_id: str) -> Entry:
        """Return one entry, as curated memory has it, if it has. Raises `EntryNotFound`."""
        standing = await self._standing(entry_id)
        place = standing[0][0]
        (entry,) = each_once([found for where, found in standing if where.label == place.label])
        return await place.outward_async(entry)

    async def forget(self, entry_id: str, *, who: str, why: str = "") -> Entry:
        """Remove an entry from every document of every place, a change set for each place. Raises `EntryNotFound`."""
        standing = await self._standing(entry_id)
        gone = await standing[0][0].outward_async(standing[0][1].entry)
        holding = {place.label: place for place, _ in standing}
        reason = self._place.redactor.clean(why)
        for place in await self.places():
            # a conversation of one place may tell of what stands in another, and who shares it is not told the reason
            if place.label not in holding:
                copied, told = standing[0][1].entry, reason if place.scope.user else ""
                if await forget_copies(place.files, place.changes, copied, key=place.key, who=who, why=told):
                    await self._refresh(place)
        for place in holding.values():
            await forget(place.files, place.changes, gone.id, key=place.key, who=who, why=reason, config=self._config)
            await self._refresh(place)
        return gone

    async def mark(self, entry_id: str, act: MarkAct, *, who: str) -> Entry:
        """Pin, unpin or confirm an entry wherever it stands, a change set for each place. Raises `EntryNotFound`."""
        standing = await self._standing(entry_id)
        place, found = standing[0]
        now = milliseconds(self._place.clock.now())
        for where in {each.label: each for each, _ in standing}.values():
            marked = await mark(where.files, where.changes, found.entry.id, act, at=now, who=who, config=self._config)
            await where.index.refresh()
            if where.label == place.label:
                found = replace(found, entry=marked.entry)
        if act == "confirm":
            self.note_use("confirmed", [found.entry.id], how=act, source=place.label)
        return await place.outward_async(found.entry)

    def note_use(self, act: UsageAct, ids: Iterable[str], *, how: str, source: str = "", session: str = "") -> None:
        """Note what happens now to memories of the place with the label `source`, else where each of them stands."""
        named, opened = tuple(ids), self._seen.opened
        for place in [each for each in opened if each.label == source] or opened:
            if place.usage:
                of_place = named if len(opened) == 1 or source else partial(self._standing_of, place, named)
                place.usage.note(act, of_place, how=how, session=session)

    def note_prompt(self, text: str, *, session: str = "") -> None:
        """Note that a prompt shows the memories in `text`; which ones is looked for beside."""
        for place in self._seen.opened:
            if place.usage:
                place.usage.note("shown", partial(self._shown_of, place, text), how="prompt", session=session)

    async def usage(self, entry_id: str) -> MemoryUsage:
        """Return what is known of one memory, in all visible places together."""
        found = MemoryUsage()
        for place in await self.places():
            known = (await place.usage.all()).get(entry_id) if place.usage else None
            found = found.joined(known) if known else found
        return found

    async def history(self, *, limit: int | None = None) -> list[HistoryItem]:
        """Return at most `limit` writes to the visible places, newest first, of other users those to what is shared."""
        return [item for _, item in await self._history(limit=limit, others=True)]

    async def undo(self, change_id: str | None, *, who: str) -> HistoryItem:
        """Take back one write, the newest act of the scope's own user when none is named.

        What an agent or the background did has to be named; what another user did can't be. Raises: ChangeNotFound;
        UndoRefused.
        """
        place, item = await self._chosen(change_id)
        await undo(place.files, place.changes, item, who=who, config=self._config)
        await self._refresh(place)
        return item

    async def _shown_of(self, place: Place, text: str) -> set[str]:
        """Return the ids of a place's memories that a prompt shows; what only its id names is the narrowest's."""
        named, shown = ids_shown(text), said(text)
        found: dict[str, set[str]] = {}
        for each in self._seen.opened:
            reading = self._readings.setdefault(each.label, PlaceReading(each.files, each.redactor))
            await reading.look()
            standing = [one.entry for one in await reading.curated()]
            standing += [entry for _, entry in [*await reading.pinned(), *(await reading.newest_saved())[0]]]
            found[each.label] = await run_sync(ids_in, standing, named, shown)
        if place.label == self._place.label:
            return found[place.label] | (named - set().union(*found.values()))
        return found[place.label]

    async def _standing_of(self, place: Place, ids: Collection[str]) -> list[str]:
        """Return which of these memories stand in a place; what stands in none is the narrowest's."""
        narrowest = place.label == self._place.label
        looked = [each for each in self._seen.opened if (each.label == place.label) != narrowest]
        found = [one for one in ids if any([await located_by_id(each.files, one) for each in looked])]
        return [one for one in ids if one not in found] if narrowest else found

    async def _refresh(self, place: Place) -> None:
        """Bring the caches of a place to what its files say."""
        await place.index.refresh()
        sessions = self._sessions if place.label == self._place.label else PlaceSessions(place)
        with suppress(StorageError):
            await sessions.rows()

    async def _history(
        self, *, limit: int | None = None, holding: str | None = None, others: bool = False
    ) -> list[tuple[Place, HistoryItem]]:
        """Return the writes with their places; with `others` also those of other users to what is shared."""
        found = [
            (place, replace(item, why=place.redactor.clean(item.why)) if item.why else item)
            for place in await self.places()
            for user in [None if others and place.scope.user is None else self._place.changes.user]
            for item in await history(place.files, place.changes, limit=limit, holding=holding, user=user)
        ]
        return sorted(found, key=lambda row: row[1].order, reverse=True)[:limit]

    async def _chosen(self, change_id: str | None) -> tuple[Place, HistoryItem]:
        """Return the write that is meant, and whose it is; the newest mostly is among a few."""
        if change_id is None:
            rows = await self._history(limit=_FEW)
            if not any(is_by_person(item) and not item.undone for _, item in rows):
                rows = await self._history()
            # of what a project shares nobody takes back unnamed what may be another's
            rows = [row for row in rows if row[0].scope.user == self._scope.user or row[1].user]
        else:
            rows = await self._history(holding=change_id, others=True)
        try:
            item = chosen_item([item for _, item in rows], change_id)
        except ChangeNotFound:
            if any(row.id == change_id for row in await self.tombstones()):
                raise ChangeNotFound(
                    f"The memory {change_id} was forgotten: undo that change first, `ricordo history` shows its id."
                ) from None
            raise
        if item.user not in {"", self._place.changes.user}:
            raise ChangeNotFound(f"{item.id} is an act of {item.user}, who alone can undo it.")
        return next(row for row in rows if row[1] is item)

    async def _standing(self, entry_id: str) -> list[tuple[Place, Located]]:
        """Return where the one entry stands that this id, or its beginning, names. Raises `EntryNotFound`."""
        rows = [(place, found) for place in await self.places() for found in await located_by_id(place.files, entry_id)]
        chosen = await self.known_id(entry_id, [found.entry.id for _, found in rows])
        return [row for row in rows if row[1].entry.id == chosen]
