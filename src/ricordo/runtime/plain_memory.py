"""Plain memory: what a store that is no root shows while a session runs.

It is asked for before every request, and costs as much as the store is large. So it is read again only where the files
of the store changed, which their names, sizes and times tell. Invariant: what was forgotten since it was shown is a
correction, which opens a new prompt, and no change that is told.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from anyio.to_thread import run_sync

from ricordo.middleware.update import MemoryLine, MemorySnapshot, parse_preamble
from ricordo.stores.capabilities import Lists
from ricordo.stores.contract import Store
from ricordo.stores.preamble import normalize_words
from ricordo.tokens import Tokens
from ricordo.workspace.entry import Entry

__all__ = ["StoreWatcher", "folder_fingerprint"]


class StoreWatcher:
    """What `store` shows within `budget`; `folder` holds all its files, and without one it is read each time."""

    def __init__(self, store: Store, budget: Tokens, folder: Path | None) -> None:
        self._store = store
        self._budget = budget
        self._folder = folder
        self._lists = store.offers(Lists)
        self._fingerprint: object = None
        self._snapshot = MemorySnapshot()
        self._shown_ids: frozenset[str] = frozenset()
        self._forgotten_ids: frozenset[str] = frozenset()

    async def load_snapshot(self) -> MemorySnapshot:
        """Return what the preamble shows now. Raises `StorageError`."""
        # before it is read: what is written meanwhile is seen the next time
        seen = await run_sync(folder_fingerprint, self._folder) if self._folder else None
        if seen is None or seen != self._fingerprint:
            found = parse_preamble(await self._store.preamble(self._budget))
            missing = self._shown_ids - self._forgotten_ids - {line.id for line in found.lines}
            if missing:
                self._forgotten_ids |= missing.difference(entry.id for entry in await self._list_entries())
            self._snapshot = MemorySnapshot(lines=found.lines, corrections=" ".join(sorted(self._forgotten_ids)))
            self._fingerprint = seen
        return self._snapshot

    async def mark_shown(self, text: str) -> None:
        """Note what the prompt shows of memory: an entry of it that is no longer there was forgotten."""
        lines = parse_preamble(text).lines
        entries = await self._list_entries() if lines else []
        self._shown_ids = await run_sync(_find_shown_ids, lines, entries)

    async def _list_entries(self) -> Sequence[Entry]:
        return await self._lists.entries() if self._lists else ()


def _find_shown_ids(lines: Sequence[MemoryLine], entries: Sequence[Entry]) -> frozenset[str]:
    """Return the ids of those entries that the lines show: by the id, or, as a file is shown, by the first line."""
    ids = {line.id for line in lines if line.id}
    words = {line.normalized_text for line in lines if not line.id}
    return frozenset(
        entry.id
        for entry in entries
        if entry.id in ids or (words and normalize_words(entry.content.partition("\n")[0]) in words)
    )


def folder_fingerprint(folder: Path) -> tuple[tuple[str, int, int, int], ...] | None:
    """Return what tells that a file below `folder` changed, without reading one; None where that can't be told."""
    found: list[tuple[str, int, int, int]] = []
    try:
        for place, _, names in os.walk(folder, onerror=_raise):
            for name in names:
                path = Path(place, name)
                info = path.stat()
                found.append((str(path), info.st_size, info.st_mtime_ns, info.st_ino))
    except OSError:
        return None
    return tuple(sorted(found))


def _raise(error: OSError) -> None:
    raise error
