"""Damage in a root: what is read for the prompt is looked at for what can't be read, and told to the log once.

`doctor` looks at all of it; here the documents that are written to count, so that a start of a session stays cheap.
"""

import re
from contextlib import suppress

from anyio.to_thread import run_sync

from ricordo.errors import FileMissing, StorageError
from ricordo.files import FileStore
from ricordo.stores.bullets import log_damage
from ricordo.workspace.damage import find_damage
from ricordo.workspace.entry_codec import parse_entries
from ricordo.workspace.layout import LEDGERS, MEMORY_PATH, is_ledger

__all__ = ["DamageMonitor"]

_LEDGER_COUNT = 3
_MAX_BULLETS = 1_000
_BULLET = re.compile(rb"^[-*+] +(?=\S)", re.MULTILINE)


class DamageMonitor:
    """The newest ledgers and MEMORY.md of one place, as far as they changed since the last look."""

    def __init__(self) -> None:
        """Have looked at nothing yet."""
        self._checked_versions: dict[str, tuple[int, int]] = {}

    async def check(self, files: FileStore) -> None:
        """Tell what is damaged now and was not before; a file that can't be read is told by others."""
        with suppress(FileMissing, StorageError):
            listed = [info for info in await files.list(LEDGERS) if is_ledger(info.path)]
            curated = await files.info(MEMORY_PATH)
            for info in [*listed[-_LEDGER_COUNT:], *([curated] if curated else [])]:
                if self._checked_versions.get(info.path) != (info.size, info.modified_ns):
                    data = (await files.read(info.path)).data
                    log_damage(info.path, await run_sync(_find_damage, data, info.path))
                    self._checked_versions[info.path] = (info.size, info.modified_ns)


def _find_damage(data: bytes, path: str) -> tuple[str, ...]:
    """Return what is damaged among the last bullets of a document; `doctor` looks at all of them."""
    earlier = len(_BULLET.findall(data)) - _MAX_BULLETS

    def is_recent(_bullet: bytes) -> bool:
        nonlocal earlier
        earlier -= 1
        return earlier < 0

    return find_damage(data, parse_entries(data, path, only=is_recent))
