"""Damage in a root: what is read for the prompt is looked at for what can't be read, and told to the log once.

`doctor` looks at all of it; here the documents that are written to count, so that a start of a session stays cheap.
"""

import re
from contextlib import suppress

from anyio.to_thread import run_sync

from ricordo.errors import FileMissing, StorageError
from ricordo.files import FileStore
from ricordo.stores.bullets import tell_damage
from ricordo.workspace.damage import damage_in
from ricordo.workspace.entry_codec import parse_entries
from ricordo.workspace.layout import LEDGERS, MEMORY, is_ledger

__all__ = ["DamageWatch"]

_NEWEST = 3
_MOST_BULLETS = 1_000
_BULLET = re.compile(rb"^[-*+] +(?=\S)", re.MULTILINE)


class DamageWatch:
    """The newest ledgers and MEMORY.md of one place, as far as they changed since the last look."""

    def __init__(self) -> None:
        """Have looked at nothing yet."""
        self._seen: dict[str, tuple[int, int]] = {}

    async def look(self, files: FileStore) -> None:
        """Tell what is damaged now and was not before; a file that can't be read is told by others."""
        with suppress(FileMissing, StorageError):
            listed = [info for info in await files.list(LEDGERS) if is_ledger(info.path)]
            curated = await files.info(MEMORY)
            for info in [*listed[-_NEWEST:], *([curated] if curated else [])]:
                if self._seen.get(info.path) != (info.size, info.modified_ns):
                    data = (await files.read(info.path)).data
                    tell_damage(info.path, await run_sync(_damage, data, info.path))
                    self._seen[info.path] = (info.size, info.modified_ns)


def _damage(data: bytes, path: str) -> tuple[str, ...]:
    """Return what is damaged among the last bullets of a document; `doctor` looks at all of them."""
    earlier = len(_BULLET.findall(data)) - _MOST_BULLETS

    def is_late(_bullet: bytes) -> bool:
        nonlocal earlier
        earlier -= 1
        return earlier < 0

    return damage_in(data, parse_entries(data, path, only=is_late))
