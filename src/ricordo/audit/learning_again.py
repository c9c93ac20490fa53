"""Learning again: what was taken in once, undone, and is given again is learned from again.

A cursor says how far a session was extracted, and an undo leaves it, so that nothing in the background learns again
what a person took back. Who gives the same messages again asks for just that.
"""

from collections.abc import AsyncIterator
from contextlib import suppress

from anyio.to_thread import run_sync

from ricordo.audit.history import undone_ids
from ricordo.errors import DocumentInvalid, FileMissing
from ricordo.files import FileStore
from ricordo.workspace.changes import ChangeSets
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import parse_entries
from ricordo.workspace.layout import ledger_date
from ricordo.workspace.ledger import read_memory

__all__ = ["messages_unlearned"]


async def messages_unlearned(files: FileStore, changes: ChangeSets, session: str) -> set[str]:
    """Return the ids of the messages of a session whose extraction is undone, as far as history keeps it.

    A message on which something rests that memory holds now is none of them.
    """
    undone = {name async for entry in _taken_back(changes) if _is_of(entry, session) for name in entry.source.messages}
    if not undone:
        return set()
    standing = [found.entry for found in await read_memory(files) if _is_of(found.entry, session)]
    return undone.difference(name for entry in standing for name in entry.source.messages)


async def _taken_back(changes: ChangeSets) -> AsyncIterator[Entry]:
    """Yield the entries that an undo took out of ledgers."""
    records = await changes.records()
    undone = undone_ids(records)
    for change in records:
        if change.undoes is None or change.id in undone:
            continue
        for changed in change.files:
            if ledger_date(changed.path) is None:
                continue
            with suppress(FileMissing, DocumentInvalid):
                before, after = await changes.content(changed.before), await changes.content(changed.after)
                left = {found.entry.id for found in await run_sync(parse_entries, after or b"", changed.path)}
                for found in await run_sync(parse_entries, before or b"", changed.path):
                    if found.entry.id not in left:
                        yield found.entry


def _is_of(entry: Entry, session: str) -> bool:
    return entry.by == "flush" and entry.source.session == session
