"""Retraction: what taking back an append means for every document that holds its entries, or rests on them.

The lines go from ledgers and curated memory alike. What a consolidation had let them stand for, entries that say the
same and entries whose place they took, is decided about again by the rules of consolidation, without them.
Invariant: nothing that a person wrote is changed; what a person did to one of the lines refuses the whole.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from anyio.to_thread import run_sync

from ricordo.consolidation.check import find_faults
from ricordo.consolidation.config import ConsolidationConfig
from ricordo.consolidation.own_words import find_dependent_lines, restore_own_words
from ricordo.consolidation.placing import SECTIONS, fits_bounds, is_movable
from ricordo.consolidation.plan import ConsolidationInput, propose
from ricordo.consolidation.sheet import parse_memory_document
from ricordo.consolidation.topics import update_description
from ricordo.consolidation.types import CandidateEntry
from ricordo.consolidation.wording import is_reworded
from ricordo.consolidation.worth import MERGED_FIELD, REPLACED_FIELD, field_ids
from ricordo.errors import FileMissing, StorageError, UndoRefused
from ricordo.files import ABSENT, FileStore, StoredFile
from ricordo.guard import has_secret
from ricordo.workspace.changes import Edit, iter_replaced_memory
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import LocatedEntry, parse_entries, render_entry, remove_entries
from ricordo.workspace.layout import LEDGERS, MEMORY_PATH, WORKSPACE, is_memory, ledger_date
from ricordo.workspace.ledger import is_curated

__all__ = ["retract_append", "without_curated"]

_SUCCESSOR_FIELD = "successor"
_UNBOUNDED = 1_000_000_000
_OWN_SECTIONS = (*SECTIONS.values(), "Notes")


@dataclass(frozen=True, kw_only=True)
class _Retraction:
    """The documents as they are to be, by path, and the entries that are decided about again."""

    documents: Mapping[str, bytes]
    reopened: Sequence[CandidateEntry] = ()
    touched: frozenset[str] = field(default_factory=frozenset)

    def select_documents(self, *, curated: bool) -> dict[str, bytes]:
        """Return the documents of curated memory, or the ledgers."""
        if curated:
            return {path: data for path, data in self.documents.items() if is_curated(path)}
        return {path: data for path, data in self.documents.items() if ledger_date(path) is not None}


async def retract_append(files: FileStore, block: Sequence[LocatedEntry], *, last_run: str) -> list[Edit]:
    """Return the edits that take the entries of one append out of memory, wherever they stand.

    Raises: UndoRefused if a person gave one of them other words in curated memory, or pinned it there, or if the rules
    of consolidation refuse what would be left; then the consolidation `last_run` is to be undone first.
    """
    stored = await _read_documents(files)
    old = {path: one.data for path, one in stored.items()}
    gone = {found.entry.id: found for found in block}
    standing = await run_sync(_locate_entries, old, gone)
    _check_untouched(standing, gone)
    desk = await run_sync(_retract_entries, old, gone, standing)
    desk = replace(desk, reopened=[await _restore_curated(files, one) for one in desk.reopened])
    after = await run_sync(_reconsolidate, desk, last_run)
    hollow = {
        path for path, data in after.items() if path in standing and not is_curated(path) and _is_empty_ledger(data)
    }
    after |= dict.fromkeys(hollow)
    versions = {path: one.version for path, one in stored.items()}
    edits = [
        Edit(path=path, expected=versions.get(path, ABSENT), data=data)
        for path, data in after.items()
        if data != old.get(path)
    ]
    longs = {f"{WORKSPACE}/{found.long_path}" for rows in standing.values() for found in rows if found.long_path}
    kept = [(path, await files.read(path)) for path in sorted(longs) if await files.info(path)]
    return [*edits, *(Edit(path=path, expected=long.version, data=None) for path, long in kept)]


async def _read_documents(files: FileStore) -> dict[str, StoredFile]:
    """Return the memory documents by path, without those that can't be read."""
    listed = [info.path for info in await files.list(LEDGERS) if is_memory(info.path)]
    found = {}
    for path in [MEMORY_PATH, *(path for path in listed if not path.startswith(f"{LEDGERS}/long/"))]:
        try:
            found[path] = await files.read(path)
        except FileMissing:
            continue
        except StorageError:
            if is_curated(path):
                raise
    return found


def _locate_entries(documents: Mapping[str, bytes], gone: Mapping[str, LocatedEntry]) -> dict[str, list[LocatedEntry]]:
    """Return where the entries stand, by document."""
    marks = [f"^{name}".encode() for name in gone]
    rows = {
        path: [found for found in parse_entries(data, path) if found.entry.id in gone]
        for path, data in documents.items()
        if any(mark in data for mark in marks)
    }
    return {path: found for path, found in rows.items() if found}


def _check_untouched(standing: Mapping[str, Sequence[LocatedEntry]], gone: Mapping[str, LocatedEntry]) -> None:
    written = {found.entry.id: found.entry for path, rows in standing.items() if not is_curated(path) for found in rows}
    for path, rows in standing.items():
        for found in rows:
            name = found.entry.id
            mine = written.get(name, gone[name].entry)
            # words that a run gave a line are nobody's edit
            shown = replace(found.entry, content=mine.content) if is_reworded(found.entry) else found.entry
            if is_curated(path) and _person_fields(shown) != _person_fields(mine):
                raise UndoRefused(
                    f"The memory {name} was edited in {path} or in its ledger: `ricordo forget {name}` takes it out of"
                    " everything."
                )


def _person_fields(entry: Entry) -> tuple[str, bool, str | None]:
    return entry.content, entry.pinned, entry.rule


def _retract_entries(
    old: Mapping[str, bytes], gone: Mapping[str, LocatedEntry], standing: Mapping[str, Sequence[LocatedEntry]]
) -> _Retraction:
    """Return the documents without the entries, with what had lost its place to them active again."""
    cut = {
        path: without_curated(data, path, gone) if is_curated(path) else remove_entries(data, path, gone)
        for path, data in old.items()
        if path in standing
    }
    documents = _restore_own_words({**old, **cut}, gone)
    left = [found.entry for path, data in documents.items() if is_curated(path) for found in parse_entries(data, path)]
    spoken_for = {name for entry in left for name in _cited_ids(entry)}
    back: dict[str, CandidateEntry] = {}
    for path, data in documents.items():
        if ledger_date(path) is not None or is_curated(path):
            documents[path], reopened = _reopen_superseded(data, path, gone, spoken_for)
            back |= reopened if ledger_date(path) is not None else {}
    said = {
        name
        for path, rows in standing.items()
        if is_curated(path)
        for found in rows
        for name in _cited_ids(found.entry)
    }
    same = said - gone.keys() - spoken_for - back.keys()
    back |= {one.entry.id: one for one in _iter_active(documents, same)}
    standing_still = {entry.id for entry in left}
    opened = [one for name, one in back.items() if name not in standing_still and not has_secret(one.entry.content)]
    return _Retraction(documents=documents, reopened=opened, touched=frozenset(cut))


def _restore_own_words(documents: dict[str, bytes], gone: Collection[str]) -> dict[str, bytes]:
    """Return the documents in which no line has words of the entries any more that a run had given it."""
    resting = {path: find_dependent_lines(data, path, gone) for path, data in documents.items() if is_curated(path)}
    names = frozenset[str]().union(*resting.values())
    if not names:
        return documents
    ledgers = {path: data for path, data in documents.items() if ledger_date(path) is not None}
    own = {
        found.entry.id: found.entry.content
        for path, data in ledgers.items()
        if any(f"^{name}".encode() in data for name in names)
        for found in parse_entries(data, path)
        if found.entry.id in names
    }
    told = {path: restore_own_words(documents[path], path, gone, own) for path, ids in resting.items() if ids}
    return {**documents, **told}


def without_curated(data: bytes, path: str, gone: Collection[str]) -> bytes:
    """Return a curated document without the entries, and without the sections of ours that they alone had filled."""
    sheet = parse_memory_document(data, path)
    emptied = {part.section for part in sheet.parts if part.entry and part.entry.id in gone}
    sheet = sheet.without(gone)
    for title in emptied.intersection(_OWN_SECTIONS) if path == MEMORY_PATH else ():
        sheet = sheet.without_section(title)
    return sheet.data if path == MEMORY_PATH else update_description(path, data, sheet.data)


def _cited_ids(entry: Entry) -> set[str]:
    """Return the ids of the other entries that a curated one stands for."""
    taken = {entry.supersedes} if entry.supersedes else set()
    return {*field_ids(entry, MERGED_FIELD), *field_ids(entry, REPLACED_FIELD), *taken}


def _reopen_superseded(
    data: bytes, path: str, gone: Collection[str], spoken_for: Collection[str]
) -> tuple[bytes, dict[str, CandidateEntry]]:
    """Return the document in which what these entries had superseded is active again, and what that is."""
    if not any(f"[{_SUCCESSOR_FIELD}:: {name}]".encode() in data for name in gone):
        return data, {}
    reopened: dict[str, CandidateEntry] = {}
    for found in reversed(parse_entries(data, path)):
        entry = found.entry
        successors = field_ids(entry, _SUCCESSOR_FIELD)
        if entry.state != "superseded" or entry.id in spoken_for or not any(name in gone for name in successors):
            continue
        rest = tuple((key, value) for key, value in entry.extra if key != _SUCCESSOR_FIELD)
        active = replace(entry, state="active", extra=rest)
        bullet = render_entry(active, long=found.long_path).encode("utf-8", "surrogatepass")
        data = data[: found.offset] + bullet + data[found.offset + found.length :]
        reopened[entry.id] = CandidateEntry(entry=active, long=found.long_path)
    return data, reopened


def _iter_active(documents: Mapping[str, bytes], names: Collection[str]) -> Iterable[CandidateEntry]:
    """Yield what the ledgers hold of these ids and nothing has superseded."""
    for path, data in documents.items():
        if ledger_date(path) is not None and any(f"^{name}".encode() in data for name in names):
            for found in parse_entries(data, path):
                if found.entry.id in names and found.entry.state == "active":
                    yield CandidateEntry(entry=found.entry, long=found.long_path)


async def _restore_curated(files: FileStore, one: CandidateEntry) -> CandidateEntry:
    """Return an entry as curated memory had it when it stood there last, with what it stood for; else as it is."""
    async for path, data in iter_replaced_memory(files):
        if is_curated(path) and f"^{one.entry.id}".encode() in data:
            for found in await run_sync(parse_entries, data, path):
                if found.entry.id == one.entry.id and found.entry.state == "active":
                    source = replace(found.entry.source, quote=one.entry.source.quote)
                    return CandidateEntry(entry=replace(found.entry, source=source), long=found.long_path)
    return one


def _reconsolidate(desk: _Retraction, last_run: str) -> dict[str, bytes | None]:
    """Return all documents, the opened entries placed. Raises `UndoRefused`."""
    after: dict[str, bytes | None] = dict(desk.documents)
    if not desk.reopened and not any(map(is_curated, desk.touched)):
        return after
    material = ConsolidationInput(
        documents=desk.select_documents(curated=True), ledgers=desk.select_documents(curated=False), fresh=desk.reopened
    )
    memory = material.documents.get(MEMORY_PATH, b"")
    # what a root with wider bounds holds is not to be moved because something is taken back
    config = ConsolidationConfig()
    ours = [part.entry for part in parse_memory_document(memory, MEMORY_PATH).parts if part.entry and is_movable(part)]
    longest = max((len(entry.content) for entry in ours), default=0)
    config = replace(config, index_characters=max(config.index_characters, longest))
    if not fits_bounds(memory, config):
        config = replace(config, max_lines=_UNBOUNDED, max_bytes=_UNBOUNDED, max_memory_tokens=_UNBOUNDED)
    proposal = propose(material, config)
    wrong = find_faults(material, proposal, config)
    if wrong:
        raise UndoRefused(f"Curated memory rests on it, and {wrong[0]}: undo the consolidation {last_run} first.")
    return after | dict(proposal.documents)


def _is_empty_ledger(document: bytes | None) -> bool:
    """Tell whether nothing is left of a ledger but its heading."""
    left = (document or b"").strip()
    return left.startswith(b"# ") and b"\n" not in left
