"""What a write did, in words: the memory that it was about, and whose root it lies in.

An append says it itself; of a change, the words are those of the entries that it took out or put in, as long as the
history keeps what it replaced.
"""

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ricordo.cli.context import Target, load_redactor
from ricordo.errors import ChangeNotFound, FileMissing, StorageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ricordo.audit import HistoryItem
    from ricordo.guard import Redactor
    from ricordo.workspace.changes import Change, ChangeSets
    from ricordo.workspace.entry import Entry

__all__ = ["ChangeSummary", "summarize_changes"]

_MAX_QUOTE_CHARS = 60


@dataclass(frozen=True, kw_only=True)
class ChangeSummary:
    """A write, with the first words of what it was about and the act that it took back; empty where not known.

    `label` is `user` for the user's own root, `shared` for what the project shares, else `project`. `ids` are the
    memories that it was about.
    """

    item: "HistoryItem"
    about: str = ""
    undone_act: str = ""
    label: str = "project"
    ids: tuple[str, ...] = ()

    @property
    def paths(self) -> str:
        """The files that were touched, and whose they are where they are not the user's alone in the project."""
        paths = ", ".join(self.item.paths)
        whose = {"user": " (in your own root)", "shared": " (shared by the project)"}
        return paths + whose.get(self.label, "")

    @property
    def description(self) -> str:
        """What was done to which memory, such as `undid forget "We use uv."`; empty when nothing is known."""
        quoted = f'"{self.about}"' if self.about else ""
        return " ".join(filter(None, [f"undid {self.undone_act}" if self.undone_act else "", quoted]))


async def summarize_changes(target: Target, items: "Sequence[HistoryItem]") -> list[ChangeSummary]:
    """Return the deed of each item, in their order."""
    from ricordo.clock import MonotonicIds, SystemClock
    from ricordo.runtime.assembly import root_files
    from ricordo.workspace.changes import ChangeSets

    clock = SystemClock()
    places = {
        label: ChangeSets(root_files(folder), clock=clock, ids=MonotonicIds(clock))
        for label, folder in target.folders().items()
        if label != "own" and folder.is_dir()
    }
    redactor = await load_redactor(target)
    return [await _summarize_change(target, places, item, redactor) for item in items]


async def _summarize_change(
    target: Target, places: "Mapping[str, ChangeSets]", item: "HistoryItem", redactor: "Redactor"
) -> ChangeSummary:
    for label, changes in places.items():
        with suppress(ChangeNotFound, StorageError):
            change = await changes.get_change(item.id)
            entries = await _changed_entries(changes, change) or await _load_saved_entries(target, label, item)
            undid = await _find_undone_act(changes, change.undoes, entries) if change.undoes else ""
            return ChangeSummary(
                item=item,
                about=_quote_entries(entries, redactor),
                undone_act=undid,
                label=label,
                ids=_entry_ids(entries),
            )
    for label in places:
        entries = await _load_saved_entries(target, label, item)
        if entries:
            return ChangeSummary(
                item=item, about=_quote_entries(entries, redactor), label=label, ids=_entry_ids(entries)
            )
    return ChangeSummary(item=item)


async def _load_saved_entries(target: Target, label: str, item: "HistoryItem") -> "list[Entry]":
    from ricordo.runtime.assembly import root_files
    from ricordo.workspace.ledger import read_entries

    found: dict[str, Entry] = {}
    for path in item.paths if item.entries else ():
        with suppress(FileMissing, StorageError):
            located = await read_entries(root_files(target.folders()[label]), path)
            found.update((each.entry.id, each.entry) for each in located)
    return [found[entry_id] for entry_id in item.entries if entry_id in found]


async def _changed_entries(changes: "ChangeSets", change: "Change") -> "list[Entry]":
    """Return the entries that a change took out, else those that it put in, else those that it marked, each once."""
    marked: dict[str, Entry] = {}
    removed: dict[str, Entry] = {}
    added: dict[str, Entry] = {}
    for file in change.files:
        with suppress(FileMissing, StorageError):
            before = _parse_entries(await changes.read_content(file.before), file.path)
            after = _parse_entries(await changes.read_content(file.after), file.path)
            removed |= {entry_id: entry for entry_id, entry in before.items() if entry_id not in after}
            added |= {entry_id: entry for entry_id, entry in after.items() if entry_id not in before}
            marked |= {entry_id: entry for entry_id, entry in after.items() if before.get(entry_id) != entry}
    return list((removed or added or marked).values())


def _parse_entries(document: bytes | None, path: str) -> "dict[str, Entry]":
    from ricordo.workspace.entry_codec import parse_entries

    if document is None or not path.endswith(".md"):
        return {}
    return {found.entry.id: found.entry for found in parse_entries(document, path)}


async def _find_undone_act(changes: "ChangeSets", undone: str, entries: "Sequence[Entry]") -> str:
    """Return the act of the change that was undone; an append left no record, and its entries tell who made it."""
    with suppress(ChangeNotFound, StorageError):
        return (await changes.get_change(undone)).act
    by = {entry.by for entry in entries if entry.id == undone}
    return ("extract" if "flush" in by else "save") if by else "a write"


def _entry_ids(entries: "Sequence[Entry]") -> tuple[str, ...]:
    return tuple(entry.id for entry in entries)


def _quote_entries(entries: "Sequence[Entry]", redactor: "Redactor") -> str:
    if not entries:
        return ""
    text = " ".join(redactor.clean(entries[0].content).split())
    first = text if len(text) <= _MAX_QUOTE_CHARS else f"{text[:_MAX_QUOTE_CHARS].rsplit(' ', 1)[0]}…"
    return first if len(entries) == 1 else f"{first} (and {len(entries) - 1:,} more)"
