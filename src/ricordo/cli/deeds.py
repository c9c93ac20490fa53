"""What a write did, in words: the memory that it was about, and whose root it lies in.

An append says it itself; of a change, the words are those of the entries that it took out or put in, as long as the
history keeps what it replaced.
"""

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ricordo.cli.context import Target, redactor_of
from ricordo.errors import ChangeNotFound, FileMissing, StorageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ricordo.audit import HistoryItem
    from ricordo.guard import Redactor
    from ricordo.workspace.changes import Change, ChangeSets
    from ricordo.workspace.entry import Entry

__all__ = ["Deed", "deeds_of"]

_LONGEST = 60


@dataclass(frozen=True, kw_only=True)
class Deed:
    """A write, with the first words of what it was about and the act that it took back; empty where not known.

    `label` is `user` for the user's own root, `shared` for what the project shares, else `project`. `ids` are the
    memories that it was about.
    """

    item: "HistoryItem"
    about: str = ""
    undid: str = ""
    label: str = "project"
    ids: tuple[str, ...] = ()

    @property
    def paths(self) -> str:
        """The files that were touched, and whose they are where they are not the user's alone in the project."""
        paths = ", ".join(self.item.paths)
        whose = {"user": " (in your own root)", "shared": " (shared by the project)"}
        return paths + whose.get(self.label, "")

    @property
    def told(self) -> str:
        """What was done to which memory, such as `undid forget "We use uv."`; empty when nothing is known."""
        quoted = f'"{self.about}"' if self.about else ""
        return " ".join(filter(None, [f"undid {self.undid}" if self.undid else "", quoted]))


async def deeds_of(target: Target, items: "Sequence[HistoryItem]") -> list[Deed]:
    """Return the deed of each item, in their order."""
    from ricordo.clock import MonotonicIds, SystemClock
    from ricordo.runtime.assembly import files_of
    from ricordo.workspace.changes import ChangeSets

    clock = SystemClock()
    places = {
        label: ChangeSets(files_of(folder), clock=clock, ids=MonotonicIds(clock))
        for label, folder in target.folders().items()
        if label != "own" and folder.is_dir()
    }
    redactor = await redactor_of(target)
    return [await _deed(target, places, item, redactor) for item in items]


async def _deed(target: Target, places: "Mapping[str, ChangeSets]", item: "HistoryItem", redactor: "Redactor") -> Deed:
    for label, changes in places.items():
        with suppress(ChangeNotFound, StorageError):
            change = await changes.record(item.id)
            entries = await _changed_entries(changes, change) or await _saved(target, label, item)
            undid = await _act_of(changes, change.undoes, entries) if change.undoes else ""
            return Deed(item=item, about=_words(entries, redactor), undid=undid, label=label, ids=_ids(entries))
    for label in places:
        entries = await _saved(target, label, item)
        if entries:
            return Deed(item=item, about=_words(entries, redactor), label=label, ids=_ids(entries))
    return Deed(item=item)


async def _saved(target: Target, label: str, item: "HistoryItem") -> "list[Entry]":
    from ricordo.runtime.assembly import files_of
    from ricordo.workspace.ledger import read_entries

    found: dict[str, Entry] = {}
    for path in item.paths if item.entries else ():
        with suppress(FileMissing, StorageError):
            located = await read_entries(files_of(target.folders()[label]), path)
            found.update((each.entry.id, each.entry) for each in located)
    return [found[entry_id] for entry_id in item.entries if entry_id in found]


async def _changed_entries(changes: "ChangeSets", change: "Change") -> "list[Entry]":
    """Return the entries that a change took out, else those that it put in, else those that it marked, each once."""
    marked: dict[str, Entry] = {}
    removed: dict[str, Entry] = {}
    added: dict[str, Entry] = {}
    for file in change.files:
        with suppress(FileMissing, StorageError):
            before = _entries(await changes.content(file.before), file.path)
            after = _entries(await changes.content(file.after), file.path)
            removed |= {entry_id: entry for entry_id, entry in before.items() if entry_id not in after}
            added |= {entry_id: entry for entry_id, entry in after.items() if entry_id not in before}
            marked |= {entry_id: entry for entry_id, entry in after.items() if before.get(entry_id) != entry}
    return list((removed or added or marked).values())


def _entries(document: bytes | None, path: str) -> "dict[str, Entry]":
    from ricordo.workspace.entry_codec import parse_entries

    if document is None or not path.endswith(".md"):
        return {}
    return {found.entry.id: found.entry for found in parse_entries(document, path)}


async def _act_of(changes: "ChangeSets", undone: str, entries: "Sequence[Entry]") -> str:
    """Return the act of the change that was undone; an append left no record, and its entries tell who made it."""
    with suppress(ChangeNotFound, StorageError):
        return (await changes.record(undone)).act
    by = {entry.by for entry in entries if entry.id == undone}
    return ("extract" if "flush" in by else "save") if by else "a write"


def _ids(entries: "Sequence[Entry]") -> tuple[str, ...]:
    return tuple(entry.id for entry in entries)


def _words(entries: "Sequence[Entry]", redactor: "Redactor") -> str:
    if not entries:
        return ""
    text = " ".join(redactor.clean(entries[0].content).split())
    first = text if len(text) <= _LONGEST else f"{text[:_LONGEST].rsplit(' ', 1)[0]}…"
    return first if len(entries) == 1 else f"{first} (and {len(entries) - 1:,} more)"
