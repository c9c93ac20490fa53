"""Throttle: a minimum time between two flushes of one scope, across processes.

Invariant: a slot has one holder at a time, by one compare-and-swap; a damaged file throttles nothing.
"""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta

from ricordo.clock import Clock, format_rfc3339
from ricordo.errors import FileMissing, InvalidMessage, VersionConflict
from ricordo.lazy import dataclass
from ricordo.messages.json_text import loads
from ricordo.scope import Scope
from ricordo.storage import ABSENT, FileStore

__all__ = ["SLOTS_FILE", "Throttle"]


SLOTS_FILE = "flush_slots.json"
"""The file of the slots, in the root."""


@dataclass(frozen=True, kw_only=True)
class Throttle:
    """Keeps at least `min_gap` seconds between the flushes of each scope; 0 disables it and writes no file."""

    files: FileStore
    clock: Clock
    min_gap: float

    async def next_start(self, scope: Scope) -> datetime | None:
        """Return when the next flush of `scope` may begin; None if it may begin now."""
        if not self.min_gap:
            return None
        return self._gap_end((await self._load_slots())[0].get(_slot_key(scope)))

    async def acquire(self, scope: Scope) -> datetime | None:
        """Take the slot of `scope` and return None; if it is taken, return its end and change nothing.

        Raises: StorageError as a `FileStore` does.
        """
        while self.min_gap:
            slots, version = await self._load_slots()
            until = self._gap_end(slots.get(_slot_key(scope)))
            if until is not None:
                return until
            now = self.clock.now()
            active_slots = {key: time for key, time in slots.items() if self._gap_end(time) is not None}
            active_slots[_slot_key(scope)] = now
            try:
                await self._save(active_slots, version)
            except VersionConflict:
                continue
            return None
        return None

    async def release(self, scope: Scope) -> None:
        """Free the slot of `scope`, for example after its flush failed."""
        while self.min_gap:
            slots, version = await self._load_slots()
            if _slot_key(scope) not in slots:
                return
            try:
                await self._save({key: time for key, time in slots.items() if key != _slot_key(scope)}, version)
            except VersionConflict:
                continue
            return

    def _gap_end(self, last: datetime | None) -> datetime | None:
        """Return the end of the gap after `last`; None if it is over, or if `last` is in the future (a clock
        change).
        """
        now, gap = self.clock.now(), timedelta(seconds=self.min_gap)
        return last + gap if last is not None and last <= now < last + gap else None

    async def _load_slots(self) -> tuple[Mapping[str, datetime], str]:
        try:
            stored = await self.files.read(SLOTS_FILE)
        except FileMissing:
            return {}, ABSENT
        try:
            value = loads(stored.data)
            items = value.items() if isinstance(value, dict) else ()
            return {key: datetime.fromisoformat(str(time)) for key, time in items}, stored.version
        except (InvalidMessage, ValueError):
            return {}, stored.version

    async def _save(self, slots: Mapping[str, datetime], version: str) -> None:
        value = {key: format_rfc3339(time) for key, time in sorted(slots.items())}
        await self.files.replace(SLOTS_FILE, json.dumps(value).encode() + b"\n", expected=version)


def _slot_key(scope: Scope) -> str:
    """Return the key of a scope without its session: sessions of one user and agent share a slot."""
    return json.dumps({name: value for name, value in sorted(scope.parts().items()) if name != "session"})
