"""Entries of another system come in: each once, with low trust, and as one change.

An imported entry is known again by its id, a keyed digest of the other system's name, its id there and its words; the
words alone count where it has no id there. So the same export adds nothing the second time, whatever it is called. When
the other system has changed a memory, its new words take the place of the imported ones, and never of what a person
said, confirmed or pinned.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from hashlib import blake2b

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

__all__ = ["IMPORT_ID_FIELD", "EntryImport", "ImportRefusal", "import_entries"]


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
    `replaced` are earlier imports whose place a new one took. `known_count` were there already, `forgotten_count` were
    forgotten here and are not taken in again. `change_id` undoes all of it, empty if nothing is new.
    """

    entries: tuple[Entry, ...] = ()
    replaced: tuple[Entry, ...] = ()
    known_count: int = 0
    forgotten_count: int = 0
    refused: tuple[ImportRefusal, ...] = ()
    change_id: str = ""


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """The entries to save, with ids, and the stored entries whose place one takes, each with the id of that one."""

    fresh: Sequence[Entry]
    replaced: Sequence[tuple[Entry, str]]
    known_count: int
    refused: Sequence[ImportRefusal]


async def import_entries(
    workspace: Workspace, layers: LayeredMemory, entries: Sequence[Entry], *, part_of: str, is_confirmed: bool = False
) -> EntryImport:
    """Save the entries that are new in the narrowest place, as a part of the change `part_of` or a change of their own.

    With `is_confirmed` they count as confirmed by the person who imports them. Raises: StorageError; what was saved
    before is then kept, and is known the next time.
    """
    place = workspace.memory_root
    stored = await _read_imported(place)
    plan = await run_in_thread(partial(_plan_import, entries, stored, place))
    fresh = await _without_forgotten(plan.fresh, workspace)
    skipped = {entry.id for entry in plan.fresh}.difference(entry.id for entry in fresh)
    replaced = {old.id: new_id for old, new_id in plan.replaced if new_id not in skipped}
    result = EntryImport(known_count=plan.known_count, forgotten_count=len(skipped), refused=tuple(plan.refused))
    if not fresh and not replaced:
        return result
    # the change comes first, so that an import that is interrupted can be undone too
    change_id = part_of or (await place.changes.apply([], act=IMPORT_ACT, who=PERSON)).id
    saved: list[Entry] = []
    for start in range(0, len(fresh), _BATCH):
        now = place.clock.now()
        confirmed = now if is_confirmed else None
        batch = [replace(entry, time=now, confirmed=confirmed) for entry in fresh[start : start + _BATCH]]
        saved += await layers.write_many(batch, part_of=change_id)
    if replaced:
        await curation.supersede_entries(
            place.files, place.changes, replaced, now=place.clock.now(), who=IMPORT_ACT, part_of=change_id
        )
        await place.index.refresh()
    return replace(
        result,
        entries=tuple(saved),
        replaced=tuple(old for old, _ in plan.replaced if old.id in replaced),
        change_id=change_id,
    )


async def _read_imported(place: MemoryRoot) -> list[Entry]:
    """Return the entries of a place that were imported, in any state, the newest last."""
    located = await read_all_entries(place.files, only=lambda bullet: _IMPORTED in bullet)
    return [one.entry for one in located if one.entry.by == "import"]


def _plan_import(entries: Sequence[Entry], stored: Iterable[Entry], place: MemoryRoot) -> _Plan:
    """Decide which entries are new, and whose place they take; of a memory that comes twice the last one counts."""
    known_ids = set[str]()
    current: defaultdict[tuple[str, str], dict[str, Entry]] = defaultdict(dict)
    for entry in stored:
        known_ids.add(entry.id)
        if entry.state == "active" and entry.is_external and (key := _foreign_key(entry)):
            current[key][entry.id] = entry
    prepared, refused = list[Entry](), list[ImportRefusal]()
    for position, entry in enumerate(entries):
        try:
            prepared.append(_prepare(entry, place))
        except (InvalidEntry, InvalidScope) as error:
            refused.append(ImportRefusal(position=position, reason=str(error)))
    last = {key: entry.id for entry in prepared if (key := _foreign_key(entry))}
    fresh: dict[str, Entry] = {}
    replaced = dict[str, tuple[Entry, str]]()
    for entry in prepared:
        key = _foreign_key(entry)
        if key is not None and last[key] != entry.id:
            continue
        if entry.id not in known_ids:
            fresh[entry.id] = entry
        if key is not None and (entry.id in fresh or entry.id in current[key]):
            # an import that was interrupted may have left several
            replaced |= {old.id: (old, entry.id) for old in current[key].values() if old.id != entry.id}
    return _Plan(
        fresh=[*fresh.values()],
        replaced=[*replaced.values()],
        known_count=len(prepared) - len(fresh),
        refused=refused,
    )


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


def _foreign_key(entry: Entry) -> tuple[str, str] | None:
    """Return the system that an entry comes from and its id there; None if it has none."""
    foreign_id = dict(entry.extra).get(IMPORT_ID_FIELD, "")
    return (_system_name(entry), foreign_id) if foreign_id else None


def _system_name(entry: Entry) -> str:
    """Return the name of the system that an entry comes from: its origin up to the first colon."""
    return (entry.source.origin or "").partition(":")[0]


async def _without_forgotten(entries: Sequence[Entry], workspace: Workspace) -> list[Entry]:
    keeps = workspace.store.offers(KeepsTombstones)
    if keeps is None or not await keeps.tombstones():
        return [*entries]
    return [entry for entry in entries if await keeps.tombstone_of(entry) is None]
