"""As of: what was remembered at a moment, without a version control system.

Each memory document is taken as the first change set after that moment found it, or as it is now where none came, and
of its entries those that were said by then: what was taken in later from an older conversation counts from the day of
that. So what was forgotten, merged or superseded since is there as it was. What a person wrote into a file by hand
tells no time: it counts from the day of its ledger, or as long as the file has it.
"""

from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from anyio.to_thread import run_sync

from ricordo.errors import ChangeNotFound, DocumentInvalid, FileMissing
from ricordo.files import FileStore
from ricordo.workspace.changes import ChangeSets
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import LocatedEntry, parse_entries
from ricordo.workspace.layout import LEDGERS, MEMORY_PATH, WORKSPACE, is_memory, ledger_date
from ricordo.workspace.ledger import is_curated

__all__ = ["read_entries_as_of"]


async def read_entries_as_of(files: FileStore, changes: ChangeSets, moment: datetime) -> list[Entry]:
    """Return what was remembered at `moment`, newest first, each once: as curated memory had it, if it had.

    `moment` has an offset. Raises: ChangeNotFound when what was replaced since is not kept any more.
    """
    later = [change for change in await changes.list_changes() if change.at > moment]
    first: dict[str, str] = {}
    for change in sorted(later, key=lambda change: change.id, reverse=True):
        first |= {file.path: file.before for file in change.files}
    paths = {MEMORY_PATH, *(info.path for info in await files.list(LEDGERS)), *first}
    look = _PastFiles(files, changes, first, moment)
    found: dict[str, Entry] = {}
    # what comes last wins: curated memory
    for path in sorted(filter(_holds_entries, paths), key=lambda path: (is_curated(path), path)):
        data = await look.content(path)
        for located in await run_sync(_parse_until, data, path, moment):
            quote = located.entry.source.quote or (
                known.source.quote if (known := found.get(located.entry.id)) else None
            )
            entry = await look.load_entry(located)
            found[entry.id] = replace(entry, source=replace(entry.source, quote=quote))
    return sorted(
        found.values(), key=lambda entry: (entry.time.timestamp() if entry.time else 0.0, entry.id), reverse=True
    )


class _PastFiles:
    """The files as they were."""

    def __init__(self, files: FileStore, changes: ChangeSets, first: dict[str, str], moment: datetime) -> None:
        self._files = files
        self._changes = changes
        self._first = first
        self._moment = moment

    async def content(self, path: str) -> bytes:
        """Return a file as it was, and what was appended to it since; empty where there was none."""
        if path not in self._first:
            with suppress(FileMissing):
                return (await self._files.read(path)).data
            return b""
        try:
            return await self._changes.read_content(self._first[path]) or b""
        except (FileMissing, DocumentInvalid) as error:
            told = f"{self._moment:%Y-%m-%d %H:%M}"
            raise ChangeNotFound(
                f"What {path} was on {told} is not kept any more: history is kept for a while."
            ) from error

    async def load_entry(self, found: LocatedEntry) -> Entry:
        """Return an entry with its whole content."""
        data = await self.content(f"{WORKSPACE}/{found.long_path}") if found.long_path else b""
        return replace(found.entry, content=data.decode("utf-8", "replace")) if data else found.entry


def _holds_entries(path: str) -> bool:
    return is_memory(path) and not path.startswith(f"{LEDGERS}/long/")


def _parse_until(data: bytes, path: str, moment: datetime) -> list[LocatedEntry]:
    """Return the entries of a document that were said by then; a bullet without a time counts from its ledger's day."""
    day = ledger_date(path)
    is_later = day is not None and day > moment.astimezone().date()
    return [
        one
        for one in parse_entries(data, path)
        if (not is_later if one.entry.said_at is None else one.entry.said_at <= moment)
    ]
