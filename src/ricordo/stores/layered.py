"""The layered store: all of Ricordo behind save, recall and preamble.

A read merges the visible roots, narrowest first: the user's own in the project, the project's, then the user's own
everywhere. A write goes to the narrowest root unless the entry names a wider scope. A saved entry is in the ledger,
synced, and in the index. Each write of a session file is a change set, like every other write of a root.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from anyio.to_thread import run_sync

from ricordo import curation, search, stores, workspace
from ricordo.clock import Clock, truncate_to_milliseconds
from ricordo.concurrency import run_in_thread
from ricordo.context.config import PREAMBLE_BUDGET
from ricordo.context.preamble import Preamble, SavedEntry, compose_preamble, recent_session_items
from ricordo.curation.config import ConsolidationConfig
from ricordo.errors import ChangeNotFound, FileMissing, ScopeMismatch, StorageError
from ricordo.messages.tokens import Tokens
from ricordo.scope import Scope, without_session
from ricordo.search.contract import Hit, Query, Reranker
from ricordo.search.memory_root import MemoryRoot, hits_outward
from ricordo.stores.base import RootSet, RootTombstones
from ricordo.stores.contract import Backend, DeleteResult, Driver, EntryPage, SessionNotes, StoreParts
from ricordo.stores.root_reader import (
    EmptyRoots,
    RootReader,
    RootSessions,
    curated_keys,
    entry_keys,
    find_facts,
    has_content,
    merge_duplicates,
    newest_key,
    profile_of,
    read_entry_page,
    read_fact_view,
    read_facts,
    skip_to,
    visible_entries,
)
from ricordo.workspace.entry import Entry, EntryFilter, find_contradictions
from ricordo.workspace.entry_codec import LocatedEntry
from ricordo.workspace.history.log import HistoryItem, is_by_person, list_history
from ricordo.workspace.history.usage import Shown, UsageAct
from ricordo.workspace.layout import MEMORY_PATH, is_profile
from ricordo.workspace.ledger import append_entries, find_entries, find_ledger_copies, read_all_entries

if TYPE_CHECKING:
    from ricordo.curation.marks import EntryUpdate, MarkAct
    from ricordo.storage import FileInfo, FileStore
    from ricordo.workspace.history.change_sets import Change
    from ricordo.workspace.history.versions import ChangeDiff

__all__ = ["LayeredDriver", "LayeredStore"]


def _saved_entry(place: MemoryRoot, source: str, entry: Entry) -> SavedEntry:
    return SavedEntry(entry=entry, source=place.display_path(source), path=place.label)


_RECENT_CHANGES = (1, 32, None)
"""How many changes are listed to find the newest act of a person: ever more, at last all."""
_LAST_SESSIONS = 5
_SESSIONS_SHARE = 4
"""The preamble spends at most one part in this many on the last sessions."""
_VISIBILITY_PARTS = ("tenant", "user", "team", "project")
"""The parts of a scope that determine which places it sees."""


class LayeredStore(Backend):
    """The store behind `Memory.open` and the command line."""

    def __init__(
        self,
        parts: StoreParts,
        seen: RootSet,
        scope: Scope,
        *,
        reranker: Reranker | None = None,
        consolidation: ConsolidationConfig | None = None,
        saved: Callable[[MemoryRoot], Awaitable[object]] | None = None,
    ) -> None:
        """Store the memories of `scope` in the places of `seen`.

        `consolidation` has the limits of MEMORY.md. `saved` is called with the place of each saved entry.
        """
        self._reranker = reranker
        self._consolidation = consolidation
        self._on_saved = saved
        super().__init__(parts)
        self._roots = seen
        self._scope = scope

    def _driver(self, scope: Scope) -> Driver:
        """Return the driver over the places that `scope` sees. Raises: ScopeMismatch if they are not open here."""
        own, requested = self._scope.parts(), scope.parts()
        mismatched = [name for name in _VISIBILITY_PARTS if own.get(name) != requested.get(name)]
        if mismatched or not self._roots.narrowest.scope.parts().items() <= requested.items():
            raise ScopeMismatch(f"This memory is open for {self._scope}: it can't be read or written for {scope}.")
        return LayeredDriver(
            self._roots, self._parts.clock, scope=scope, reranker=self._reranker, consolidation=self._consolidation,
            saved=self._on_saved,
        )  # fmt: skip


class LayeredDriver(RootTombstones):
    """Reads and writes the visible places of one scope."""

    def __init__(
        self,
        seen: RootSet,
        clock: Clock,
        *,
        scope: Scope,
        reranker: Reranker | None = None,
        consolidation: ConsolidationConfig | None = None,
        saved: Callable[[MemoryRoot], Awaitable[object]] | None = None,
    ) -> None:
        """Use the places of `seen` for `scope`; `clock` determines the ledger for writes.

        `consolidation` has the limits of MEMORY.md. `saved` is called with the place of each saved entry.
        """
        self._config = consolidation or ConsolidationConfig()
        self._roots = seen
        self._root = place = seen.narrowest
        self._scope = scope
        self._clock = clock
        self._on_saved = saved
        self._sessions = RootSessions(place)
        self._reranker = reranker
        self._has_searched = False
        self._empty_roots = EmptyRoots()
        self._readers: dict[FileStore, RootReader] = {}
        self._healed: dict[FileStore, Sequence[FileInfo]] = {}

    async def places(self) -> list[MemoryRoot]:
        """Return the visible places that exist, narrowest first. Raises: MembershipRequired."""
        places = await self._roots.open_existing()
        for place in places:
            if place.team:
                self._healed[place.files] = await place.team.heal(self._healed.get(place.files, ()))
        return places

    async def known_places(self) -> list[MemoryRoot]:
        """Return the visible places that the last search saw, narrowest first; before the first one, `places`."""
        is_settled = self._has_searched and not self._roots.may_change
        return self._roots.open_roots if is_settled else await self.places()

    async def write(self, entry: Entry) -> Entry:
        """Append `entry` durably to today's ledger of its place, and index it. Raises `ScopeMismatch`."""
        return (await self.write_many([entry]))[0]

    async def write_many(self, entries: Sequence[Entry], *, part_of: str = "") -> list[Entry]:
        """Append `entries` durably, in one write and one change for each of their places. Raises `ScopeMismatch`."""
        places = [await self._roots.root_for(entry.scope or self._scope) for entry in entries]
        for place in places:
            if place.team:
                await place.team.require_save_of(entries)
        saved: dict[str, Entry] = {}
        for place in {place.label: place for place in places}.values():
            stored_entries = [
                place.to_stored_entry(entry) for entry, own in zip(entries, places, strict=True) if own is place
            ]
            if part_of:
                # first, so that an act of many writes that is cut off can be undone as a whole
                await self._record_authors(place, stored_entries, part_of)
            block = await append_entries(
                place.files, self._clock.today(), stored_entries, place.redactor, through=place.index
            )
            written = [await place.outward_async(entry) for entry in block.entries]
            if not part_of:
                await self._record_authors(place, written, part_of)
            if place.audit and place.audit.records_changes:
                await place.audit.record("save", [entry.id for entry in written], by=written[0].by)
            saved |= {entry.id: entry for entry in written}
            if self._on_saved:
                await self._on_saved(place)
        return [saved[entry.id] for entry in entries]

    async def _record_authors(self, place: MemoryRoot, saved: Sequence[Entry], part_of: str) -> None:
        """Record several entries as one change, and who saved to a shared place if neither line nor place says so."""
        is_unsigned = bool(place.changes.user) and not (saved[0].scope and saved[0].scope.user)
        if len(saved) > 1 or is_unsigned or part_of:
            ids, who, why = [entry.id for entry in saved], saved[0].by, saved[0].reason or ""
            await place.changes.apply([], act="save", who=who, entries=ids, why=why, part_of=part_of)

    async def find(self, query: Query, limit: int) -> list[Hit]:
        """Return ranked hits from all visible places."""
        checks = list[bool]()
        places = await self.known_places()
        self._has_searched = True
        searched = self._empty_roots.exclude_empty(places)
        hits = await self._recall(searched, query, limit, lambda: checks.append(self._has_unsearched_root(places)))
        # reading the first place also checked whether there is another place to search by now
        if (any(checks) or not checks) and len(all_places := await self.places()) > len(searched):
            places = searched = all_places
            hits = await self._recall(places, query, limit)
        if any(place.has_forgotten_more for place in searched):
            for place in searched:
                await place.read_forgotten()
            hits = await self._recall(searched, query, limit)
        return await hits_outward(hits, {place.label: place for place in places})

    def _has_unsearched_root(self, places: Sequence[MemoryRoot]) -> bool:
        """Return whether a place to search is new, or was empty before. It blocks on the disk."""
        return self._empty_roots.refresh(places) or self._roots.has_unopened()

    async def _recall(
        self, places: Sequence[MemoryRoot], query: Query, limit: int, look: Callable[[], object] | None = None
    ) -> list[Hit]:
        """Return the hits of these places; `look` runs together with the first one, to save a switch to a thread."""
        sources = [await place.quick_source(self._scope) for place in places]
        sources[0], now, config = replace(sources[0], beside=look), self._root.clock.now(), self._root.recall
        return await search.recall_all(sources, query, limit=limit, now=now, config=config, reranker=self._reranker)

    async def preamble(self, budget: Tokens | None) -> Preamble:
        """Return curated memory, then explicitly saved entries that are not curated yet, newest first."""
        curated, labels, active_ids, unread = list[bytes](), list[str](), set[str](), 0
        saved, pinned = list[SavedEntry](), list[SavedEntry]()
        for place in await self.places():
            with suppress(FileMissing, StorageError):
                stored = await place.files.read(MEMORY_PATH)
                document = await run_in_thread(place.redactor.clean_bytes, stored.data)
                if has_content(document):
                    curated.append(place.rewrite_links(document))
                    labels.append(place.label)
            reader = self._readers.setdefault(place.files, RootReader(place))
            await reader.refresh()
            last, more = await reader.recent_entries()
            known_keys = curated_keys(curated_entries := await reader.curated_entries())
            active_ids |= {located.entry.id for located in curated_entries if located.entry.state == "active"}
            pinned_rows = await reader.pinned_entries()
            pinned += [_saved_entry(place, source, entry) for source, entry in pinned_rows]
            known_keys |= {entry.id for _, entry in pinned_rows}
            active = [row for row in last if row[1].state == "active" and not row[1].is_external]
            uncurated = [
                _saved_entry(place, source, entry)
                for source, entry in active
                if known_keys.isdisjoint(entry_keys(entry))
            ]
            saved += uncurated
            # most entries that were not read have a place in curated memory too
            unread += max(more - max(len(known_keys) - len(last) + len(uncurated), 0), 0)
        replaced = {row.entry.supersedes for row in saved}
        saved = sorted(
            (row for row in saved if row.entry.id not in replaced), key=lambda row: newest_key(row.entry), reverse=True
        )
        session_tokens = (budget or PREAMBLE_BUDGET).count // _SESSIONS_SHARE
        recent = recent_session_items(
            await self._sessions.rows(), max_sessions=_LAST_SESSIONS, max_tokens=session_tokens
        )
        make = partial(compose_preamble, curated, saved, budget, places=labels, pinned=pinned, recent=recent)
        return await run_in_thread(partial(make, unread=unread, bounds=self._config.bounds, elsewhere=active_ids))

    async def close_session(self, notes: SessionNotes) -> str:
        """Write the file of a session in the narrowest place; return its path, or "". Raises: StorageError."""
        return await self._sessions.close(notes)

    async def pending_sessions(self) -> tuple[str, ...]:
        """Return the ids of the sessions that have no summary yet, oldest first."""
        return await self._sessions.pending_ids()

    async def entries(self) -> list[Entry]:
        """Return all entries of all visible places, and the facts of the profiles, newest first, each once.

        An entry that is in curated memory is returned in that version; a fact stands for the entries of ledgers that
        were learned as the same statement.
        """
        places = await self.places()
        view = await read_fact_view(places, self._scope)
        read = [(place, await read_all_entries(place.files)) for place in places]
        return await run_sync(
            lambda: visible_entries(
                [(place, view.without_copies(place, merge_duplicates(located))) for place, located in read]
                + [(place, [fact]) for place, fact in view.facts]
            )
        )

    async def entry_page(self, limit: int, after: Entry | str | None = None) -> EntryPage:
        """Return the newest `limit` entries of all visible places, after the entry `after` or the one with this id.

        They are those of `entries`. Raises: EntryNotFound if none has the id.
        """
        places = await self.places()
        view = await read_fact_view(places, self._scope)
        page = await read_entry_page(places, limit, after) if not view.facts else None
        if page is not None:
            return page
        entries = await self.entries()
        rest = entries if after is None else skip_to(entries, after)
        ids = tuple(entry.id for entry in entries)
        return EntryPage(entries=tuple(rest[:limit]), ids=ids, contradictions=find_contradictions(entries))

    async def entries_as_of(self, moment: datetime) -> list[Entry]:
        """Return the entries of all visible places as of `moment`, newest first."""
        places = await self.places()
        then = [
            (place, await workspace.read_entries_as_of(
                place.files, place.changes, moment, profile=profile_of(place, self._scope)
            ))
            for place in places
        ]  # fmt: skip
        return await run_sync(visible_entries, then)

    async def get(self, entry_id: str) -> Entry:
        """Return one entry, in the version of curated memory if it has one, or a fact. Raises `EntryNotFound`."""
        rows = await self._locate(entry_id)
        place = rows[0][0]
        (entry,) = merge_duplicates([located for root, located in rows if root.label == place.label])
        return await place.outward_async(entry)

    async def forget(self, entry_id: str, *, who: str, why: str = "") -> Entry:
        """Remove an entry or a fact from every document of every place, with a change set for each place.

        Raises `EntryNotFound`.
        """
        rows = await self._locate_own(entry_id)
        removed = await rows[0][0].outward_async(rows[0][1].entry)
        await self._forget_everywhere(rows, who=who, why=why)
        return removed

    async def forget_matching(self, wanted: EntryFilter, *, scope: Scope | None, who: str, why: str) -> DeleteResult:
        """Remove the matching entries and facts of one place, by default the narrowest, in one change set.

        A filter that matches all clears the place: its backups are removed too. Raises: ScopeMismatch; ReasonRequired.
        """
        place = await self._roots.root_for(scope or without_session(self._scope))
        located = [*await read_all_entries(place.files), *await read_facts(place, self._scope)]
        entries = [entry for entry in visible_entries([(place, merge_duplicates(located))]) if wanted.matches(entry)]
        clears = wanted == EntryFilter() and await curation.has_backups(place.files)
        if not entries:
            if not clears:
                return DeleteResult()
            change = await curation.forget_entries(
                place.files, place.changes, (), key=place.key, who=who, why=self._root.redactor.clean(why), backups=True
            )
            return DeleteResult(change_id=change.id)
        ids = {entry.id for entry in entries}
        change_id = await self._forget_everywhere(
            [(place, one) for one in located if one.entry.id in ids], who=who, why=why, backups=clears
        )
        return DeleteResult(entries=tuple(entries), change_id=change_id)

    async def _forget_everywhere(
        self, rows: Sequence[tuple[MemoryRoot, LocatedEntry]], *, who: str, why: str, backups: bool = False
    ) -> str:
        """Remove these entries and facts from their places, and before that what says the same from the others.

        With `backups` those of their places are removed too. Returns the id of the last change; the others are undone
        together with it.
        """
        from ricordo.curation.forget import forget_copies, forget_entries

        for place, one in rows:
            stores.require_free(place, [one.entry])
        entries = [*{one.entry.id: one.entry for _, one in rows}.values()]
        reason, first, last = self._root.redactor.clean(why), "", ""
        places = await self.places()
        holding = {place.label: place for place, _ in rows}
        for place in [*(each for each in places if each.label not in holding), *holding.values()]:
            held = [one for root, one in rows if root.label == place.label]
            if place.team and not await place.team.may_change(one.entry for one in held):
                continue
            if held:
                ids = {one.entry.id for one in held if not is_profile(one.path)}
                change: Change | None = await forget_entries(
                    place.files, place.changes, ids, key=place.key, who=who, why=reason, config=self._config,
                    facts=[one for one in held if is_profile(one.path)], part_of=first, backups=backups,
                )  # fmt: skip
            else:
                # users who share the place do not see the reason; in the narrowest place it must not be learned again
                change = await forget_copies(
                    place.files, place.changes, entries, key=place.key, who=who,
                    why=reason if place.scope.user else "", user=self._scope.user or "",
                    always=place.label == self._root.label, part_of=first, config=self._config,
                )  # fmt: skip
            if change:
                first, last = first or change.id, change.id
                await self._refresh(place)
        return last

    async def update_entry(self, entry_id: str, update: "EntryUpdate", *, who: str) -> Entry:
        """Give an entry new values in every place that has it, a change set for each."""
        rows = await self._locate_own(entry_id)
        place, located = rows[0]
        now, updated = truncate_to_milliseconds(self._root.clock.now()), located.entry
        if is_profile(located.path):
            fact = await curation.update_fact(
                place.files, place.changes, located, update, await find_ledger_copies(place.files, [located.entry]),
                redactor=place.redactor, now=now, who=who,
            )  # fmt: skip
            await place.index.refresh()
            return await place.outward_async(fact)
        for root in reversed([*{each.label: each for each, _ in rows}.values()]):
            result = await curation.update_entry(
                root.files, root.changes, located.entry.id, update, noted=root.key if root.team else b"",
                redactor=root.redactor, now=now, who=who, config=self._config,
            )  # fmt: skip
            updated = result.entry
            await root.index.refresh()
        return await place.outward_async(updated)

    async def merge_entries(self, old_id: str, new_id: str, *, who: str) -> None:
        """Let one entry or fact take the place of another in its place. Raises `EntryNotFound`."""
        (place, old), new = (await self._locate_own(old_id))[0], await self.get(new_id)
        await curation.merge_into(place.files, place.changes, old, new.id, now=place.clock.now(), who=who)
        await self._refresh(place)

    async def mark_entry(self, entry_id: str, act: "MarkAct", *, who: str) -> Entry:
        """Pin, unpin or confirm an entry in every place that has it, a change set for each. Raises `EntryNotFound`."""
        rows = await self._locate_own(entry_id)
        place, located = rows[0]
        now = truncate_to_milliseconds(self._root.clock.now())
        if is_profile(located.path):
            fact = await curation.mark_fact(place.files, place.changes, located, act, now=now, who=who)
            await place.index.refresh()
            rows, located = [], replace(located, entry=fact)
        for root in {each.label: each for each, _ in rows}.values():
            marked = await curation.mark_entry(
                root.files, root.changes, located.entry.id, act, now=now, who=who, config=self._config
            )
            await root.index.refresh()
            if root.label == place.label:
                located = replace(located, entry=marked.entry)
        if act == "confirm":
            self.record_use("confirmed", [located.entry.id], how=act, source=place.label)
        return await place.outward_async(located.entry)

    def record_use(
        self, act: UsageAct, ids: Iterable[str], *,
        how: str, source: str = "", session: str = "", shown: Shown | None = None,
    ) -> None:  # fmt: skip
        """Record an act on memories of the place with the label `source`; without it, in the place of each memory."""
        entry_ids, roots = tuple(ids), self._roots.open_roots
        for place in [each for each in roots if each.label == source] or roots:
            if place.usage:
                of_place = entry_ids if len(roots) == 1 or source else partial(self._ids_stored_in, place, entry_ids)
                place.usage.record(act, of_place, how=how, session=session)
            if place.audit and place.audit.records_reads and (source or place is self._root):
                stores.note_read(place, entry_ids, shown or {}, how=how, session=session)

    def record_read(self, read: Preamble | Iterable[Entry], *, how: str) -> None:
        """Record that these entries, or those of a preamble, were read, each in the log of its place."""
        stores.note_read_entries(self._roots.open_roots, self._root, read, how=how)

    async def history(self, *, limit: int | None = None) -> list[HistoryItem]:
        """Return at most `limit` writes, newest first; of other users, only writes to shared data."""
        return [item for _, item in await self._collect_history(limit=limit, others=True)]

    async def undo(self, change_id: str | None, *, who: str) -> HistoryItem:
        """Undo one write, with its parts in other places, by default the newest act of the scope's own user.

        Acts of an agent or the background must be named, others' can't be undone. Raises: ChangeNotFound; UndoRefused.
        """
        place, item = await self._select_change(change_id)
        first = ""
        for root, part in [(place, item), *await self._find_parts(place, item)]:
            if root.team:
                rows = [one.entry for name in part.entries for one in await find_entries(root.files, name)]
                await root.team.require_change_of(() if part.user else rows)
            change = await curation.undo_change(
                root.files, root.changes, part, who=who, config=self._config, part_of=first
            )
            first = first or change.id
            await self._refresh(root)
        return item

    async def _find_parts(self, place: MemoryRoot, item: HistoryItem) -> list[tuple[MemoryRoot, HistoryItem]]:
        """Return the changes of other places that belong to the same act as `item`, and are not undone."""
        with suppress(ChangeNotFound):
            change = await place.changes.get_change(item.id)
            group = change.part_of or change.id
            others = [each for each in await self.places() if each.label != place.label]
            return [
                (root, part)
                for root in others
                for ids in [{each.id for each in await root.changes.list_changes() if group in {each.id, each.part_of}}]
                for part in (await list_history(root.files, root.changes) if ids else ())
                if part.id in ids and not part.is_undone
            ]
        return []

    async def diff(self, change_id: str | None = None) -> "ChangeDiff":
        """Return what one write did to each of its files; the newest write of the scope's own user without an id."""
        rows = await self._collect_history(others=change_id is not None)
        if not rows:
            raise ChangeNotFound("Nothing was written yet.")
        item = rows[0][1]
        if change_id is not None:
            item = curation.resolve_history_item([item for _, item in rows], change_id)
        place = next(place for place, each in rows if each is item)
        return await workspace.diff_change(place.files, place.changes, item, redactor=place.redactor)

    async def entry_history(self, entry_id: str, *, limit: int | None = None) -> list[HistoryItem]:
        """Return at most `limit` writes that concern one entry, by its full id, newest first."""
        rows = await self._collect_history(others=True)
        change_ids: set[str] = set()
        for place in await self.places():
            change_ids |= await workspace.find_entry_changes(place.changes, entry_id)
        return [item for _, item in rows if item.id in change_ids or entry_id in item.entries][:limit]

    async def _ids_stored_in(self, place: MemoryRoot, ids: Collection[str]) -> list[str]:
        """Return the ids of memories in a place; memories in no place count for the narrowest place."""
        narrowest = place.label == self._root.label
        searched_places = [each for each in self._roots.open_roots if (each.label == place.label) != narrowest]
        stored_ids = [one for one in ids if any([await find_entries(each.files, one) for each in searched_places])]
        return [one for one in ids if one not in stored_ids] if narrowest else stored_ids

    async def _refresh(self, place: MemoryRoot) -> None:
        """Update the caches of a place from its files."""
        await place.index.refresh()
        sessions = self._sessions if place.label == self._root.label else RootSessions(place)
        with suppress(StorageError):
            await sessions.rows()

    async def _collect_history(
        self, *, limit: int | None = None, holding: str | None = None, others: bool = False
    ) -> list[tuple[MemoryRoot, HistoryItem]]:
        """Return the writes with their places; with `others` also those of other users to shared data."""
        rows = [
            (place, replace(item, reason=place.redactor.clean(item.reason)) if item.reason else item)
            for place in await self.places()
            for user in [None if others and place.scope.user is None else self._root.changes.user]
            for item in await list_history(place.files, place.changes, limit=limit, holding=holding, user=user)
        ]
        return sorted(rows, key=lambda row: row[1].order, reverse=True)[:limit]

    async def _select_change(self, change_id: str | None) -> tuple[MemoryRoot, HistoryItem]:
        """Return the selected write with its place; the newest one is usually among the first few."""
        if change_id is None:
            for limit in _RECENT_CHANGES:
                rows = await self._collect_history(limit=limit)
                if any(is_by_person(item) and not item.is_undone for _, item in rows):
                    break
            # in shared data an unnamed undo must not take the write of another user
            rows = [row for row in rows if row[0].scope.user == self._scope.user or row[1].user]
        else:
            change_id = await self._find_change_of_fact(change_id) or change_id
            rows = await self._collect_history(holding=change_id, others=True)
        try:
            item = curation.resolve_history_item([item for _, item in rows], change_id)
        except ChangeNotFound:
            if any(row.id == change_id for row in await self.tombstones()):
                raise ChangeNotFound(
                    f"The memory {change_id} was forgotten: undo that change first, `ricordo history` shows its id."
                ) from None
            raise
        if item.user not in {"", self._root.changes.user}:
            raise ChangeNotFound(f"{item.id} is an act of {item.user}, who alone can undo it.")
        return next(row for row in rows if row[1] is item)

    async def _find_change_of_fact(self, fact_id: str) -> str:
        """Return the id with which the learning of a fact is undone, else its newest change; empty for no fact."""
        for place in await self.places():
            facts = await find_facts(place, self._scope, fact_id)
            if len(facts) == 1:
                copies = await find_ledger_copies(place.files, [facts[0].entry])
                changes = [item for item in await self.entry_history(facts[0].entry.id) if not item.is_undone]
                return next(iter(copies), changes[0].id if changes else "")
        return ""

    async def move_entry(self, entry_id: str, scope: Scope, *, act: str, who: str, why: str) -> Entry:
        """Move an entry to the place of `scope`, in one act. Raises as `Memory.move`."""
        rows = await self._locate_own(entry_id)
        target = await self._roots.root_for(scope)
        (source, first), located = rows[0], [one for root, one in rows if root.label == rows[0][0].label]
        if target.team:
            await target.team.require_save_of([first.entry])
        moved = await curation.move_entry(
            located, source, target, act=act, who=who, why=why, day=self._clock.today(), config=self._config
        )
        for place in (target, source):
            await self._refresh(place)
        return await target.outward_async(moved)

    async def _locate_own(self, entry_id: str) -> list[tuple[MemoryRoot, LocatedEntry]]:
        """Return what `_locate` does for an entry that the user may change. Raises: MembershipRequired."""
        rows = await self._locate(entry_id)
        for place, located in rows:
            if place.team:
                await place.team.require_change_of([located.entry])
        return rows

    async def _locate(self, entry_id: str) -> list[tuple[MemoryRoot, LocatedEntry]]:
        """Return all positions of the entry or fact with this id or part of an id. Raises `EntryNotFound`."""
        rows = [
            (place, located)
            for place in await self.places()
            for located in (
                *await find_entries(place.files, entry_id), *await find_facts(place, self._scope, entry_id)
            )
        ]  # fmt: skip
        full_id = await self.resolve_id(entry_id, [located.entry.id for _, located in rows])
        return [row for row in rows if row[1].entry.id == full_id]
