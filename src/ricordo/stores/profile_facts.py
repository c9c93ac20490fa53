"""Facts of profiles as entries of a layered store: found by their ids, listed, and changed like other entries.

A fact stands for the entries of ledgers that were learned as the same statement: they are not listed beside it, and
what changes or removes it changes or removes them.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from anyio.to_thread import run_sync

from ricordo.errors import FileMissing, StorageError
from ricordo.lazy import dataclass, lazy_compile
from ricordo.scope import Scope
from ricordo.search.memory_root import MemoryRoot
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import LocatedEntry
from ricordo.workspace.layout import ledger_date, profile_path_for
from ricordo.workspace.ledger import is_curated, matches_id, read_all_entries

if TYPE_CHECKING:
    from ricordo.storage import FileStore

__all__ = ["FactView", "find_facts", "find_ledger_copies", "profile_of", "read_fact_view", "read_facts"]


_FIRST_MESSAGE = lazy_compile(rb"\[from:: [^\]#]*#([^\],]+)")


def profile_of(place: MemoryRoot, scope: Scope) -> str:
    """Return the path of the profile that `scope` has in a place; empty without one."""
    return profile_path_for(place.scope, scope) if place.finds_profile else ""


async def read_facts(place: MemoryRoot, scope: Scope) -> list[LocatedEntry]:
    """Return the facts of the profile that `scope` has in a place; none if it can't be read, which `doctor` reports."""
    path = profile_of(place, scope)
    with suppress(FileMissing, StorageError):
        if path:
            from ricordo.workspace.profile import locate_facts

            return await run_sync(locate_facts, (await place.files.read(path)).data, path)
    return []


async def find_facts(place: MemoryRoot, scope: Scope, entry_id: str) -> list[LocatedEntry]:
    """Return the facts with this id, or whose id begins or ends with these six or more characters."""
    facts = await read_facts(place, scope)
    return [located for located in facts if entry_id and matches_id(entry_id, located.entry.id)]


@dataclass(frozen=True, kw_only=True)
class FactView:
    """The visible facts, with their places, and the ids of the entries for which they stand, by place."""

    facts: Sequence[tuple[MemoryRoot, Entry]]
    copies: Mapping[str, Collection[str]]

    def without_copies(self, place: MemoryRoot, entries: Iterable[Entry]) -> list[Entry]:
        """Return the entries of a place for which no fact stands."""
        return [entry for entry in entries if entry.id not in self.copies.get(place.label, ())]


async def read_fact_view(places: Sequence[MemoryRoot], scope: Scope) -> FactView:
    """Return the facts of all places, and the entries for which they stand."""
    rows: list[tuple[MemoryRoot, Entry]] = []
    copies: dict[str, Collection[str]] = {}
    for place in places:
        facts = [located.entry for located in await read_facts(place, scope)]
        rows += [(place, fact) for fact in facts]
        if facts:
            copies[place.label] = frozenset(await find_ledger_copies(place.files, facts))
    return FactView(facts=rows, copies=copies)


async def find_ledger_copies(files: "FileStore", facts: Sequence[Entry]) -> dict[str, str]:
    """Return the ids of the entries that only ledgers hold and for which one of the `facts` stands, with its id."""
    from ricordo.workspace.profile import find_fact_copies

    messages = {fact.source.messages[0].encode() for fact in facts if fact.source.messages}
    texts = [fact.content.strip(" .!?…。").encode() for fact in facts if not fact.source.messages]

    def may_be_copy(bullet: bytes) -> bool:
        first = _FIRST_MESSAGE.search(bullet)
        return (first is not None and first[1] in messages) or any(text in bullet for text in texts)

    candidates = await read_all_entries(files, only=may_be_copy)
    learned = [one.entry for one in candidates if ledger_date(one.path) is not None]
    copies = find_fact_copies(facts, learned)
    if not copies:
        return {}
    marks = {f"^{name}".encode(): name for name in copies}
    curated = await read_all_entries(files, only=lambda bullet: any(mark in bullet for mark in marks))
    for name in {one.entry.id for one in curated if is_curated(one.path)} & copies.keys():
        del copies[name]
    return copies
