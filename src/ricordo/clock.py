"""Time and identity, injected: who needs the time or a new id is given a source, so tests decide both.

An id has 26 characters of Crockford's base 32: 48 bits of milliseconds, then 80 random bits that count up within one
millisecond (the ULID layout).

Invariant: ids of one source strictly increase, also when its clock stands still or runs backwards. A source can follow
the ids of others, so sorting by id is the order of writing.
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
    """Where the time comes from."""

    def now(self) -> datetime:
        """Return the current time, aware, in UTC."""
        ...

    def today(self) -> date:
        """Return the current date where the user lives, which names the ledger."""
        ...


class IdSource(Protocol):
    """Where ids come from."""

    def new(self) -> str:
        """Return an id of 26 characters that sorts after every id given before."""
        ...

    def follow(self, known: str) -> None:
        """Make every id from now on sort after `known`, an id that another source gave."""
        ...

    def may_lag(self) -> bool:
        """Tell whether another source may have given an id that sorts after the next one, as the clock was set back."""
        ...


class SystemClock:
    """The clock of this machine, in milliseconds, which is what an entry keeps."""

    def now(self) -> datetime:
        """Return the current time in UTC, cut to milliseconds."""
        return truncate_to_milliseconds(datetime.now(UTC))

    def today(self) -> date:
        """Return the local date."""
        return datetime.now().astimezone().date()


class MonotonicIds:
    """Strictly increasing ids from a clock and a source of randomness."""

    def __init__(self, clock: Clock, random_bits: Callable[[int], int] = secrets.randbits) -> None:
        """Use `clock` for the first 48 bits and `random_bits(80)` for the rest."""
        self._clock = clock
        self._random_bits = random_bits
        self._last = 0
        self._lock = threading.Lock()
        self._seen: tuple[float, float] | None = None

    def new(self) -> str:
        """Return an id that sorts after every id this source gave before."""
        stamp = int(self._clock.now().timestamp() * 1000) << _RANDOM_BITS
        with self._lock:
            # half the random range leaves room to count up within a millisecond
            self._last = max(stamp | self._random_bits(_RANDOM_BITS - 1), self._last + 1)
            return encode_id(self._last)

    def follow(self, known: str) -> None:
        """Make every id from now on sort after `known`; what is no id, or is decades ahead, changes nothing."""
        value, now = decode_id(known), self._clock.now().timestamp()
        self._seen = self._seen or (now, time.monotonic())
        latest = int(now * 1000) + _MAX_LEAD_MS
        if value is None or value >> _RANDOM_BITS > latest:
            return
        with self._lock:
            if value >= self._last:
                # two sources that follow the same id part at random, or they would give the same ones
                self._last = value | self._random_bits(_SPREAD_BITS)

    def may_lag(self) -> bool:
        """Tell whether the clock was set back since the last look, or the ids of this source are ahead of it."""
        wall, ticks = self._clock.now().timestamp(), time.monotonic()
        with self._lock:
            before, self._seen = self._seen or (wall, ticks), (wall, ticks)
            is_set_back = (ticks - before[1]) - (wall - before[0]) > _CLOCK_STEP_SECONDS
            return is_set_back or self._last >> _RANDOM_BITS > int(wall * 1000)


def encode_id(value: int) -> str:
    """Write the 128-bit `value` as 26 characters of Crockford's base 32, lower case; order is kept."""
    return "".join(_ALPHABET[(value >> shift) & 31] for shift in range(125, -1, -5))


def decode_id(text: str) -> int | None:
    """Return the value that `encode_id` wrote as this text; None for a text that it does not write."""
    if len(text) != _LENGTH or not _VALUES.keys() >= set(text):
        return None
    value = 0
    for character in text:
        value = value << 5 | _VALUES[character]
    return value if value >> 128 == 0 else None


def truncate_to_milliseconds(time: datetime) -> datetime:
    """Cut `time` to whole milliseconds in UTC; a naive time is taken as UTC."""
    aware = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    return aware.replace(microsecond=aware.microsecond // 1000 * 1000)


def format_rfc3339(time: datetime) -> str:
    """Write `time` as RFC 3339 in UTC with milliseconds and a Z."""
    return truncate_to_milliseconds(time).isoformat(timespec="milliseconds").replace("+00:00", "Z")
