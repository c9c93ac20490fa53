"""Sources of time and ids. Code that needs a time or a new id receives a source, so tests control both.

An id has 26 characters of Crockford's base 32: 48 bits of milliseconds, then 80 random bits that count up within one
millisecond (the ULID layout).

Invariant: ids of one source strictly increase, even when its clock stands still or runs backwards. A source can follow
the ids of other sources, so the order of ids is the order of writes.
"""

import secrets
import threading
import time
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Protocol

__all__ = [
    "Clock",
    "IdSource",
    "MonotonicIds",
    "SystemClock",
    "decode_id",
    "encode_id",
    "format_rfc3339",
    "truncate_to_milliseconds",
]


_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_VALUES = {character: value for value, character in enumerate(_ALPHABET)}
_LENGTH = 26
_RANDOM_BITS = 80
_SPREAD_BITS = 48
_CLOCK_STEP_SECONDS = 0.5
_MAX_LEAD_MS = 20 * 366 * 24 * 60 * 60 * 1000


class Clock(Protocol):
    """A source of the current time."""

    def now(self) -> datetime:
        """Return the current time in UTC, with a time zone."""
        ...

    def today(self) -> date:
        """Return the current local date of the user, which is the name of the ledger."""
        ...


class IdSource(Protocol):
    """A source of ids."""

    def new(self) -> str:
        """Return an id of 26 characters that sorts after every earlier id of this source."""
        ...

    def follow(self, known: str) -> None:
        """Make every later id sort after `known`, an id from another source."""
        ...

    def may_lag(self) -> bool:
        """Return whether the clock was set back, so another source may have issued a later id than the next one."""
        ...


class SystemClock:
    """The system clock, in milliseconds, the precision of entries."""

    def now(self) -> datetime:
        """Return the current time in UTC, cut to milliseconds."""
        return truncate_to_milliseconds(datetime.now(UTC))

    def today(self) -> date:
        """Return the local date."""
        return datetime.now().astimezone().date()


class MonotonicIds:
    """A source of strictly increasing ids, from a clock and a source of randomness."""

    def __init__(self, clock: Clock, random_bits: Callable[[int], int] = secrets.randbits) -> None:
        """Use `clock` for the first 48 bits and `random_bits(80)` for the rest."""
        self._clock = clock
        self._random_bits = random_bits
        self._last = 0
        self._lock = threading.Lock()
        self._seen: tuple[float, float] | None = None

    def new(self) -> str:
        """Return an id that sorts after every earlier id of this source."""
        stamp = int(self._clock.now().timestamp() * 1000) << _RANDOM_BITS
        with self._lock:
            # half the random range leaves room to count up within a millisecond
            self._last = max(stamp | self._random_bits(_RANDOM_BITS - 1), self._last + 1)
            return encode_id(self._last)

    def follow(self, known: str) -> None:
        """Make every later id sort after `known`; ignore a text that is not an id or is over 20 years ahead."""
        value, now = decode_id(known), self._clock.now().timestamp()
        self._seen = self._seen or (now, time.monotonic())
        latest = int(now * 1000) + _MAX_LEAD_MS
        if value is None or value >> _RANDOM_BITS > latest:
            return
        with self._lock:
            if value >= self._last:
                # sources that follow the same id add random bits, otherwise they would issue the same ids
                self._last = value | self._random_bits(_SPREAD_BITS)

    def may_lag(self) -> bool:
        """Return whether the clock was set back since the last call, or the ids of this source are ahead of it."""
        wall, ticks = self._clock.now().timestamp(), time.monotonic()
        with self._lock:
            before, self._seen = self._seen or (wall, ticks), (wall, ticks)
            is_set_back = (ticks - before[1]) - (wall - before[0]) > _CLOCK_STEP_SECONDS
            return is_set_back or self._last >> _RANDOM_BITS > int(wall * 1000)


def encode_id(value: int) -> str:
    """Encode the 128-bit `value` as 26 lower-case characters of Crockford's base 32; the order is preserved."""
    return "".join(_ALPHABET[(value >> shift) & 31] for shift in range(125, -1, -5))


def decode_id(text: str) -> int | None:
    """Return the value of an id from `encode_id`; None for any other text."""
    if len(text) != _LENGTH or not _VALUES.keys() >= set(text):
        return None
    value = 0
    for character in text:
        value = value << 5 | _VALUES[character]
    return value if value >> 128 == 0 else None


def truncate_to_milliseconds(time: datetime) -> datetime:
    """Truncate `time` to whole milliseconds in UTC; a naive time is taken as UTC."""
    aware = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    return aware.replace(microsecond=aware.microsecond // 1000 * 1000)


def format_rfc3339(time: datetime) -> str:
    """Format `time` as RFC 3339 in UTC with milliseconds and a Z."""
    return truncate_to_milliseconds(time).isoformat(timespec="milliseconds").replace("+00:00", "Z")
