"""Entries of another system come in: each once, with low trust, and as one change.

An imported entry is known again by its id, a keyed digest of the other system's name, its id there and its words; the
words alone count where it has no id there. So the same export adds nothing the second time, whatever it is called. When
the other system has changed a memory, its new words take the place of the imported ones, and never of what a person
said, confirmed or pinned; where that person trusts the import, of confirmed ones as well.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from hashlib import blake2b
from typing import TypeAlias

from ricordo import curation
from ricordo.clock import encode_id
from ricordo.concurrency import run_in_thread
from ricordo.errors import InvalidEntry, InvalidScope
from ricordo.lazy import dataclass
from ricordo.runtime import Workspace
from ricordo.search.memory_root import MemoryRoot
from ricordo.stores.contract import KeepsTombstones, LayeredMemory
from ricordo.workspace.entry import Entry
from ricordo.workspace.history.change_sets import IMPORT_ACT
from ricordo.workspace.history.log import PERSON
from ricordo.workspace.history.tombstones import content_digest
from ricordo.workspace.ledger import read_all_entries
from ricordo.workspace.redaction import redact_entry

__all__ = ["IMPORT_ID_FIELD", "EntryImport", "EntryImporter", "ImportRefusal"]


_ForeignKey: TypeAlias = tuple[str, str]
IMPORT_ID_FIELD = "import-id"
"""The extra field with the id that an entry has in the system that it comes from."""
_IMPORTED = b"[by:: import]"
_ID_START = "i"
"""The first character of the id of an imported entry, which no other id has."""
_ID_BYTES = 16
_BATCH = 200
"""So many entries are checked and written in some tens of milliseconds."""


@dataclass(frozen=True, kw_only=True)
class ImportRefusal:
    """An entry that can't be saved, by its position among the given ones from 0, and the reason."""

    position: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class EntryImport:
    """The result of an import of entries.

    `entries` are the new ones as stored, in the order given; those in quarantine have the state `quarantined`.
    `replaced` are earlier imports whose place a new one took. `known_count` were there already; no person confirmed
    those with `external_ids` yet. `forgotten_count` were forgotten here and are not taken in again. `change_id` undoes
    all of it, empty if nothing is new.
    """

    entries: tuple[Entry, ...] = ()
    replaced: tuple[Entry, ...] = ()
    external_ids: tuple[str, ...] = ()
    known_count: int = 0
    forgotten_count: int = 0
    refused: tuple[ImportRefusal, ...] = ()
    change_id: str = ""


@dataclass(frozen=True, kw_only=True)
class _Stored:
    """The imported entries that are there.

    `ids` are those of all visible places. Of the place that is written to, `external_ids` are those that no person
    confirmed yet, and `current` those that may be replaced, by system and id there.
    """

    ids: set[str] = field(default_factory=set)
    external_ids: set[str] = field(default_factory=set)
    current: defaultdict[_ForeignKey, dict[str, Entry]] = field(default_factory=lambda: defaultdict(dict))

    def add(self, entries: Iterable[Entry], *, trusted: bool) -> None:
        """Add stored entries of the place. With `trusted`, confirmed ones may be replaced too, but not pinned ones."""
        for entry in entries:
            self.ids.add(entry.id)
            if entry.is_external and entry.state in {"active", "quarantined"}:
                self.external_ids.add(entry.id)
            is_open = entry.is_external or (trusted and not entry.pinned)
            if entry.state == "active" and is_open and (key := _foreign_key(entry)):
                self.current[key][entry.id] = entry

    def remove(self, entries: Iterable[Entry]) -> None:
        """Remove entries whose place was taken; their ids stay known."""
        for entry in entries:
            self.external_ids.discard(entry.id)
            if key := _foreign_key(entry):
                self.current[key].pop(entry.id, None)


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """The entries to save, with ids, and the stored entries whose place one takes, each with the id of that one.

    `known` are the ids of those that are there already.
    """

    fresh: Sequence[Entry]
    replaced: Sequence[tuple[Entry, str]]
    known: Sequence[str]
    refused: Sequence[ImportRefusal]


class EntryImporter:
    """Imports entries into the narrowest place of an open memory; what was imported before is read once."""

    def __init__(
        self, workspace: Workspace, layers: LayeredMemory, *, change_id: str = "", trusted: bool = False
    ) -> None:
        """Import as parts of the change `change_id`, or of one that begins with the first new entry.

        With `trusted` new entries count as confirmed by the person who imports them.
        """
        self._workspace, self._layers = workspace, layers
        self._change_id, self._trusted = change_id, trusted
        self._stored: _Stored | None = None

    async def save(self, entries: Sequence[Entry]) -> EntryImport:
        """Save the entries that are new. Raises: StorageError; what was saved before is then known the next time."""
        if self._stored is None:
            self._stored = await self._read_stored()
        stored, place = self._stored, self._workspace.memory_root
        plan = await run_in_thread(partial(_plan_import, entries, stored, place))
        fresh = await self._without_forgotten(plan.fresh)
        skipped = {entry.id for entry in plan.fresh}.difference(entry.id for entry in fresh)
        replaced = {old.id: new_id for old, new_id in plan.replaced if new_id not in skipped}
        external = dict.fromkeys(each for each in plan.known if each in stored.external_ids and each not in replaced)
        result = EntryImport(
            known_count=len(plan.known),
            external_ids=tuple(external),
            forgotten_count=len(skipped),
            refused=tuple(plan.refused),
        )
        if not fresh and not replaced:
            return result
        if not self._change_id:
            # the change comes first, so that an import that is interrupted can be undone too
            self._change_id = (await place.changes.apply([], act=IMPORT_ACT, who=PERSON)).id
        saved = await self._write(fresh)
        old_entries = [old for old, _ in plan.replaced if old.id in replaced]
        if replaced:
            await self._supersede(replaced)
        stored.remove(old_entries)
        stored.add(saved, trusted=self._trusted)
        return replace(result, entries=tuple(saved), replaced=tuple(old_entries), change_id=self._change_id)

    async def confirm(self, ids: Collection[str], why: str) -> str:
        """Confirm known entries in one change, and return its id, by which that is undone. Raises: StorageError."""
        place = self._workspace.memory_root
        change = await curation.confirm_entries(
            place.files, place.changes, ids, now=place.clock.now(), who=PERSON, why=why
        )
        await place.index.refresh()
        return change.id

    async def _read_stored(self) -> _Stored:
        own, stored = self._workspace.memory_root, _Stored()
        for place in await self._layers.places():
            located = await read_all_entries(place.files, only=lambda bullet: _IMPORTED in bullet)
            entries = [one.entry for one in located if one.entry.by == "import"]
            if place.label == own.label:
                stored.add(entries, trusted=self._trusted)
            else:
                stored.ids.update(entry.id for entry in entries)
        return stored

    async def _without_forgotten(self, entries: Sequence[Entry]) -> list[Entry]:
        keeps = self._workspace.store.offers(KeepsTombstones)
        if keeps is None or not await keeps.tombstones():
            return [*entries]
        return [entry for entry in entries if await keeps.tombstone_of(entry) is None]

    async def _write(self, entries: Sequence[Entry]) -> list[Entry]:
        saved: list[Entry] = []
        for start in range(0, len(entries), _BATCH):
            now = self._workspace.memory_root.clock.now()
            confirmed = now if self._trusted else None
            batch = [replace(entry, time=now, confirmed=confirmed) for entry in entries[start : start + _BATCH]]
            saved += await self._layers.write_many(batch, part_of=self._change_id)
        return saved

    async def _supersede(self, successors: Mapping[str, str]) -> None:
        place = self._workspace.memory_root
        await curation.supersede_entries(
            place.files, place.changes, successors, now=place.clock.now(), who=IMPORT_ACT, part_of=self._change_id
        )
        await place.index.refresh()


def _plan_import(entries: Sequence[Entry], stored: _Stored, place: MemoryRoot) -> _Plan:
    """Decide which entries are new, and whose place they take; of a memory that comes twice the last one counts."""
    prepared, refused = list[Entry](), list[ImportRefusal]()
    for position, entry in enumerate(entries):
        try:
            prepared.append(_prepare(entry, place))
        except (InvalidEntry, InvalidScope) as error:
            refused.append(ImportRefusal(position=position, reason=str(error)))
    last = {key: entry.id for entry in prepared if (key := _foreign_key(entry))}
    fresh: dict[str, Entry] = {}
    known = list[str]()
    replaced = dict[str, tuple[Entry, str]]()
    for entry in prepared:
        key = _foreign_key(entry)
        if entry.id in stored.ids or entry.id in fresh or (key is not None and last[key] != entry.id):
            known.append(entry.id)
        else:
            fresh[entry.id] = entry
        current = stored.current.get(key, {}) if key and last[key] == entry.id else {}
        if entry.id in fresh or entry.id in current:
            # an import that was interrupted may have left several
            replaced |= {old.id: (old, entry.id) for old in current.values() if old.id != entry.id}
    return _Plan(fresh=[*fresh.values()], replaced=[*replaced.values()], known=known, refused=refused)


def _prepare(entry: Entry, place: MemoryRoot) -> Entry:
    """Return an entry as an import: with its id, without secrets. Raises: InvalidEntry; InvalidScope."""
    imported = replace(entry, id="", time=None, by="import", supersedes=None, pinned=False, confirmed=None)
    imported.validate()
    return replace(redact_entry(imported, place.redactor), id=_derive_id(entry, place.key))


def _derive_id(entry: Entry, key: bytes) -> str:
    """Return the id of an entry: 125 bits of a digest that nobody without the key can test a guess with."""
    system, foreign_id = _foreign_key(entry) or (_system_name(entry), "")
    names = [system, foreign_id, "" if foreign_id else entry.kind, content_digest(entry.content, key)]
    text = "\0".join(names).encode("utf-8", "surrogatepass")
    digest = blake2b(text, key=key, digest_size=_ID_BYTES).digest()
    return f"{_ID_START}{encode_id(int.from_bytes(digest, 'big'))[1:]}"


def _foreign_key(entry: Entry) -> _ForeignKey | None:
    """Return the system that an entry comes from and its id there; None if it has none."""
    foreign_id = dict(entry.extra).get(IMPORT_ID_FIELD, "")
    return (_system_name(entry), foreign_id) if foreign_id else None


def _system_name(entry: Entry) -> str:
    """Return the name of the system that an entry comes from: its origin up to the first colon."""
    return (entry.source.origin or "").partition(":")[0]
