"""The clock of what is saved: it never runs backwards, so what was saved last has the latest time.

A machine's clock is set back now and then, by seconds or by hours. Until it has caught up each entry is a millisecond
later than the one before, and the first of a process is later than what others had saved. A clock that is behind by
more than a day was wrong before, and is believed now.
"""

from contextlib import suppress
from datetime import UTC, date, datetime, timedelta

from ricordo.audit.ledgers import find_newest_time
from ricordo.clock import Clock, truncate_to_milliseconds
from ricordo.errors import FileMissing, StorageError
from ricordo.files import FileStore
from ricordo.workspace.layout import LEDGERS, is_ledger, ledger_date

__all__ = ["MonotonicClock"]

_STEP = timedelta(milliseconds=1)
_MAX_LEAD = timedelta(days=1)


class MonotonicClock:
    """Another clock, held at the latest time that it, or a document, has told."""

    def __init__(self, clock: Clock) -> None:
        """Know of no time yet."""
        self._clock = clock
        self._last = self._last_read = datetime.min.replace(tzinfo=UTC)
        self._day = date.min

    async def catch_up(self, files: FileStore) -> None:
        """Take up where the newest ledger of a workspace ends; one that can't be read tells nothing."""
        with suppress(FileMissing, StorageError):
            listed = {ledger_date(info.path): info.path for info in await files.list(LEDGERS) if is_ledger(info.path)}
            days = [day for day in listed if day and day <= self._clock.today() + _MAX_LEAD]
            if days:
                self._day = max(days)
                self.advance_past((await files.read(listed[self._day])).data)

    def advance_past(self, document: bytes) -> None:
        """Take up where a document with entries ends: what is saved from now on is later than each of them."""
        self._last_read = max(self._last_read, find_newest_time(document))
        self._last = max(self._last, self._last_read)

    def now(self) -> datetime:
        """Return the time, never one before the last that was told, unless that is more than a day ahead."""
        time = truncate_to_milliseconds(self._clock.now())
        if (time < self._last or time == self._last_read) and self._last <= time + _MAX_LEAD:
            time = self._last + _STEP
        self._last = time
        return time

    def today(self) -> date:
        """Return the local date, never one before the last that was told, unless that is more than a day ahead."""
        day = self._clock.today()
        self._day = self._day if day < self._day <= day + _MAX_LEAD else day
        return self._day
