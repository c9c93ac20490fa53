"""Learning again: find the messages whose extraction was undone, so that ingesting them again extracts them again.

A cursor says how far a session was extracted. An undo does not move it back, so background work does not extract again
what a person undid. Ingesting the same messages again is a request to do so.
"""

from collections.abc import AsyncIterator
from contextlib import suppress

from anyio.to_thread import run_sync

from ricordo.audit.history import find_undone_ids
from ricordo.errors import DocumentInvalid, FileMissing
from ricordo.files import FileStore
from ricordo.workspace.changes import ChangeSets
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import parse_entries
from ricordo.workspace.layout import ledger_date
from ricordo.workspace.ledger import read_all_entries

__all__ = ["find_undone_messages"]


async def find_undone_messages(files: FileStore, changes: ChangeSets, session: str) -> set[str]:
    """Return the ids of the messages of a session whose extraction was undone, as far as history says.

    A message from which a current entry was extracted is not one of them.
    """
    undone = {
        name
        async for entry in _iter_undone_entries(changes)
        if _is_extracted_from(entry, session)
        for name in entry.source.messages
    }
    if not undone:
        return set()
    standing = [found.entry for found in await read_all_entries(files) if _is_extracted_from(found.entry, session)]
    return undone.difference(name for entry in standing for name in entry.source.messages)


async def _iter_undone_entries(changes: ChangeSets) -> AsyncIterator[Entry]:
    """Yield the entries that undone changes had added to ledgers."""
    records = await changes.list_changes()
    undone = find_undone_ids(records)
    for change in records:
        if change.undoes is None or change.id in undone:
            continue
        for changed in change.files:
            if ledger_date(changed.path) is None:
                continue
            with suppress(FileMissing, DocumentInvalid):
                before, after = await changes.read_content(changed.before), await changes.read_content(changed.after)
                left = {found.entry.id for found in await run_sync(parse_entries, after or b"", changed.path)}
                for found in await run_sync(parse_entries, before or b"", changed.path):
                    if found.entry.id not in left:
                        yield found.entry


def _is_extracted_from(entry: Entry, session: str) -> bool:
    return entry.by == "flush" and entry.source.session == session
