"""Erase an entry or a text from all visible roots, and find text that still repeats a forgotten memory.

Roots are erased from one after the other, each under its own locks. What is read of a memory goes into the audit logs
of its places, which are read as one.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Protocol, runtime_checkable

from anyio.to_thread import run_sync

from ricordo.concurrency import run_in_thread
from ricordo.context.preamble import Preamble
from ricordo.errors import EntryNotFound, EraseIncomplete, InvalidEntry
from ricordo.language.languages import joins_words
from ricordo.search.memory_root import MemoryRoot
from ricordo.stores.contract import LayeredMemory, Lists, Store
from ricordo.workspace.entry import Entry
from ricordo.workspace.history.audit import (
    AuditedEntry,
    AuditFilter,
    AuditRecord,
    new_request_id,
    version_digest,
)
from ricordo.workspace.history.erase import (
    EraseResult,
    EraseTarget,
    add_tombstones,
    begin_erasing,
    collect_erase_texts,
    erase_texts,
    find_entry_versions,
    finish_erasing,
    list_unfinished,
)
from ricordo.workspace.history.repetition import ErasePatterns, Remaining, remaining_entries, remaining_in
from ricordo.workspace.history.tombstones import content_digest, read_tombstones
from ricordo.workspace.history.usage import Shown
from ricordo.workspace.layout import AGENTS_FOLDER
from ricordo.workspace.ledger import read_all_entries, resolve_id

__all__ = [
    "Audits",
    "erase_everywhere",
    "find_versions",
    "note_read",
    "note_read_entries",
    "read_audit",
    "remaining",
    "remaining_in_layers",
    "require_free",
]


_MIN_LETTERS = 3
_MIN_JOINED_LETTERS = 2


async def find_versions(layers: LayeredMemory, entry_id: str) -> tuple[str, list[Entry]]:
    """Return the full id of the entry, and all its versions, even if it was forgotten before.

    Raises: EntryNotFound.
    """
    roots = [_to_erase_root(place) for place in await layers.places()]
    try:
        full_id = (await layers.get(entry_id)).id
    except EntryNotFound:
        known_ids: dict[str, None] = {}
        for root in roots:
            known_ids |= dict.fromkeys([*(await read_tombstones(root.files)).ids, *await list_unfinished(root.files)])
        full_id = resolve_id([*known_ids], entry_id)
    if any([(await list_unfinished(root.files)).get(full_id) for root in roots]):
        raise InvalidEntry(
            f"{full_id} is a text that was erased in part, and is not kept: give the same text once more."
        )
    return full_id, [entry for root in roots for entry in await find_entry_versions(root, full_id)]


async def erase_everywhere(
    layers: LayeredMemory, *, entry_id: str = "", text: str = "", inside_words: bool = False
) -> EraseResult:
    """Erase an entry, or all occurrences of a text, from every place, and return the result.

    A text is erased where it is whole words; with `inside_words` also inside longer words. Raises: EntryNotFound;
    InvalidEntry unless exactly one of the two is given, and for a text that is too short; EraseIncomplete.
    """
    if bool(entry_id.strip()) == bool(text.strip()):
        raise InvalidEntry("Name what is to be erased: the id of a memory, or a text.")
    if text and _is_short(text):
        raise InvalidEntry(
            f"{text.strip()!r} is too short to be erased wherever it stands: give three letters or digits at least, "
            "or the id of a memory."
        )
    places = await layers.places()
    if entry_id:
        full_id, entries = await find_versions(layers, entry_id)
        places = [place for place in places if await _may_erase(place, lambda entry: entry.id == full_id)]
    else:
        places = [
            place
            for place in places
            if await _may_erase(place, lambda entry: text.casefold() in entry.content.casefold())
        ]
        full_id = await _find_unfinished(places, text) or places[0].ids.new()
        entries = [Entry(content=text, id=full_id)]
    for place in places:
        await _require_erasable(place, entries, text)
    roots = [_to_erase_root(place) for place in places]
    for root in roots:
        await begin_erasing(root, full_id, text)
    ids, texts = [full_id], {text} if text else set[str]()
    if entry_id:
        # an entry is erased with its paraphrases, a text only literally
        ids = await _forget_entry(layers, roots, full_id)
        entries += [entry for name in ids for root in roots for entry in await find_entry_versions(root, name)]
        texts = {each for root in roots for name in ids for each in await collect_erase_texts(root, entries, name)}
    for root in roots:
        await add_tombstones(root, entries, full_id, with_copies=bool(entry_id))
    needles, result = ErasePatterns(texts, inside_words=inside_words), EraseResult(ids=tuple(ids))
    incomplete: list[EraseIncomplete] = []
    for place, root in zip(places, roots, strict=True):
        # what another place holds is named in the log of that place alone
        held = [name for name in ids if await find_entry_versions(root, name)] if place.audit else []
        try:
            result = result.merge(erased := await erase_texts(root, needles))
        except EraseIncomplete as error:
            # continue with the other places
            incomplete.append(error)
            continue
        await place.index.refresh()
        await finish_erasing(root, full_id)
        if place.audit and (erased.changed or erased.deleted or place is places[0]):
            await place.audit.record("erase", held)
    if incomplete:
        raise incomplete[0]
    return result


def require_free(place: MemoryRoot, entries: Iterable[Entry]) -> None:
    """Raise LegalHold if a hold covers one of these entries of a place."""
    if place.changes.guard:
        place.changes.guard.require_free(entries)


async def _require_erasable(place: MemoryRoot, entries: Sequence[Entry], text: str) -> None:
    """Raise LegalHold if these entries, an entry with the `text`, or a transcript with one of them, is held."""
    if place.changes.guard is None:
        return
    require_free(place, entries)
    if text:
        current = await read_all_entries(place.files)
        require_free(place, (one.entry for one in current if text.casefold() in one.entry.content.casefold()))
    needles = ErasePatterns({entry.content for entry in entries}, inside_words=True)
    for info in await place.files.list(AGENTS_FOLDER):
        data = (await place.files.read(info.path)).data
        if await run_in_thread(partial(needles.occur_anywhere_in, data)):
            place.changes.guard.check("forget", [(info.path, data, b"")])


async def _may_erase(place: MemoryRoot, is_meant: Callable[[Entry], bool]) -> bool:
    """Return whether to erase from a place: of a team's, where it holds what is meant, and the user may change that.

    Raises: MembershipRequired.
    """
    if place.team is None:
        return True
    return await place.team.may_change(one.entry for one in await read_all_entries(place.files) if is_meant(one.entry))


async def _find_unfinished(places: Sequence[MemoryRoot], text: str) -> str:
    """Return the id of an unfinished erase of a text; empty if there is none."""
    for place in places:
        for name, digest in (await list_unfinished(place.files)).items():
            if digest == content_digest(text, place.key):
                return name
    return ""


def _is_short(text: str) -> bool:
    letters = [char for char in text if char.isalnum()]
    return len(letters) < (_MIN_JOINED_LETTERS if any(map(joins_words, letters)) else _MIN_LETTERS)


async def _forget_entry(layers: LayeredMemory, roots: Sequence[EraseTarget], entry_id: str) -> list[str]:
    """Forget the entry if it exists; return its id and the ids of entries forgotten with it."""
    before = [(await read_tombstones(root.files)).ids for root in roots]
    with suppress(EntryNotFound):
        await layers.forget(entry_id, who="user", why="erased")
    after = [(await read_tombstones(root.files)).ids for root in roots]
    new = {name for old, now in zip(before, after, strict=True) for name in now - old}
    return [entry_id, *sorted(new - {entry_id})]


def _to_erase_root(place: MemoryRoot) -> EraseTarget:
    return EraseTarget(
        files=place.files, changes=place.changes, folder=Path(place.folder), index=Path(place.index_path),
        key=place.key, clock=place.clock,
    )  # fmt: skip


async def remaining(store: Store, forgotten: Entry) -> list[Remaining]:
    """Return the places in `store` that still contain forgotten text, with secrets replaced by marks.

    For a store without places only the entries are checked; the result is empty if it can't list them. Raises:
    StorageError.
    """
    if layers := store.offers(LayeredMemory):
        return await remaining_in_layers(layers, forgotten)
    lists = store.offers(Lists)
    return await run_sync(remaining_entries, await lists.entries(), forgotten) if lists else []


async def remaining_in_layers(layers: LayeredMemory, forgotten: Entry) -> list[Remaining]:
    """Return where the visible places still contain forgotten text, narrowest place first."""
    return [
        each for place in await layers.places() for each in await remaining_in(place.files, forgotten, place.redactor)
    ]


@runtime_checkable
class Audits(Protocol):
    """A backend that keeps audit logs. Recording a read does not block and does not write immediately."""

    def record_read(self, read: Preamble | Iterable[Entry], *, how: str) -> None:
        """Record that these entries, or those of a preamble, were read, each in the log of its place."""
        ...

    async def audit(self, wanted: AuditFilter) -> list[AuditRecord]:
        """Return the wanted records of all visible places, newest first. Raises `StorageError`."""
        ...


def note_read(
    place: MemoryRoot,
    ids: Iterable[str],
    shown: Shown,
    *,
    how: str,
    session: str = "",
    request: str = "",
) -> None:
    """Queue that these entries of a place were read; `shown` are their texts and scores, as far as they are known."""
    read = []
    for name in ids:
        content, score = shown.get(name, ("", None))
        version = version_digest(content, place.key) if content else ""
        read.append(AuditedEntry(id=name, version=version, score=None if score is None else round(score, 3)))
    if place.audit:
        place.audit.note_read(read, how=how, request=request or new_request_id(), session=session)


def note_read_entries(
    places: Sequence[MemoryRoot], narrowest: MemoryRoot, read: Preamble | Iterable[Entry], *, how: str
) -> None:
    """Queue that these entries were read, each for its place; one of no known place counts for the narrowest."""
    request, by_label = new_request_id(), dict[str, dict[str, tuple[str, float | None]]]()
    if isinstance(read, Preamble):
        texts = read.shown_texts
        for shown_entry in read.entries:
            by_label.setdefault(shown_entry.path or narrowest.label, {})[shown_entry.id] = texts[shown_entry.id]
    else:
        for entry in read:
            label = next((place.label for place in places if _holds(place, entry)), narrowest.label)
            by_label.setdefault(label, {})[entry.id] = (entry.content, None)
    for place in places:
        if shown := by_label.get(place.label):
            note_read(place, shown, shown, how=how, request=request)


def _holds(place: MemoryRoot, entry: Entry) -> bool:
    """Return whether an entry is of this place, by its scope."""
    parts = entry.scope.parts() if entry.scope else {}
    return {name: value for name, value in parts.items() if name != "agent"} == place.scope.parts()


async def read_audit(places: Sequence[MemoryRoot], wanted: AuditFilter) -> list[AuditRecord]:
    """Return the wanted records of these places, newest first. Raises `StorageError`."""
    records = [record for place in places if place.audit for record in await place.audit.read()]
    return sorted(filter(wanted.matches, records), key=lambda record: (record.at, record.number), reverse=True)
