"""Throttle: a minimal time between two flushes of one scope, across processes.

Invariant: a slot is taken by one at a time, in one compare-and-swap; a damaged file throttles nobody.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from ricordo.clock import Clock, format_rfc3339
from ricordo.errors import FileMissing, InvalidMessage, VersionConflict
from ricordo.messages.json_text import loads
from ricordo.scope import Scope
from ricordo.storage import ABSENT, FileStore

__all__ = ["SLOTS_FILE", "Throttle"]


SLOTS_FILE = "flush_slots.json"
"""The file of the slots, in the root."""


@dataclass(frozen=True, kw_only=True)
class Throttle:
    """Keeps `min_gap` seconds between the flushes of each scope; 0 keeps none, and no file."""

    files: FileStore
    clock: Clock
    min_gap: float

    async def next_start(self, scope: Scope) -> datetime | None:
        """Return when the next flush of `scope` may begin; None when it may now."""
        if not self.min_gap:
            return None
        return self._gap_end((await self._load_slots())[0].get(_slot_key(scope)))

    async def acquire(self, scope: Scope) -> datetime | None:
        """Take the slot of `scope` from now on and return None; where it is taken, return until when, and do nothing.

        Raises: StorageError as a `FileStore` does.
        """
        while self.min_gap:
            slots, version = await self._load_slots()
            until = self._gap_end(slots.get(_slot_key(scope)))
            if until is not None:
                return until
            now = self.clock.now()
            kept = {key: time for key, time in slots.items() if self._gap_end(time) is not None}
            kept[_slot_key(scope)] = now
            try:
                await self._save(kept, version)
            except VersionConflict:
                continue
            return None
        return None

    async def release(self, scope: Scope) -> None:
        """Free the slot of `scope`, as when the flush that took it has failed."""
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
        """A slot that was taken in the future, by a clock that jumped, is free."""
        now, gap = self.clock.now(), timedelta(seconds=self.min_gap)
        return last + gap if last is not None and last <= now < last + gap else None

    async def _load_slots(self) -> tuple[Mapping[str, datetime], str]:
        try:
            stored = await self.files.read(SLOTS_FILE)
        except FileMissing:
            return {}, ABSENT
        try:
            value = loads(stored.data)
            given = value.items() if isinstance(value, dict) else ()
            return {key: datetime.fromisoformat(str(time)) for key, time in given}, stored.version
        except (InvalidMessage, ValueError):
            return {}, stored.version

    async def _save(self, slots: Mapping[str, datetime], version: str) -> None:
        value = {key: format_rfc3339(time) for key, time in sorted(slots.items())}
        await self.files.replace(SLOTS_FILE, json.dumps(value).encode() + b"\n", expected=version)


def _slot_key(scope: Scope) -> str:
    """All of the scope but the session: sessions of one user and agent share a slot."""
    return json.dumps({name: value for name, value in sorted(scope.parts().items()) if name != "session"})
