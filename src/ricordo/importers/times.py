"""Times as histories write them: ISO 8601, seconds or finer units since 1970, and the spoken form of dialogues.

A time without a zone is taken as UTC. What can't be read is None, never an error: a message without a time is still a
message.
"""

import re
from datetime import UTC, datetime, timedelta

from ricordo.messages.types import JsonValue

__all__ = ["parse_time"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBER = re.compile(r"[+-]?\d{1,19}(\.\d+)?", re.ASCII)
_SPOKEN_PATTERN = re.compile(
    r"(\d{1,2}):(\d\d)\s*([ap])m on (\d{1,2}) ([a-z]{3})[a-z]*,? (\d{4})", re.ASCII | re.IGNORECASE
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
# seconds stay below 1e11 until the year 5138, so each finer unit is told by its size
_UNITS = ((1e11, 1.0), (1e14, 1e3), (1e17, 1e6), (float("inf"), 1e9))


def parse_time(value: JsonValue) -> datetime | None:
    """Read `value` as an aware time in UTC; None when it is no time.

    Numbers (also as text) are seconds, milliseconds, microseconds or nanoseconds since 1970, told apart by their size.
    """
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return _parse_timestamp(value)
    if not isinstance(value, str):
        return None
    text = value.strip()
    if _NUMBER.fullmatch(text):
        return _parse_timestamp(float(text)) if len(text) > 8 else None
    return _parse_spoken(text) or _parse_iso(text)


def _parse_timestamp(number: float) -> datetime | None:
    try:
        unit = next(unit for limit, unit in _UNITS if abs(number) < limit)
        return _EPOCH + timedelta(seconds=number / unit)
    except (OverflowError, StopIteration, ValueError):
        return None


def _parse_iso(text: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(text.removesuffix(" UTC"))
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _parse_spoken(text: str) -> datetime | None:
    match = _SPOKEN_PATTERN.fullmatch(text)
    if match is None or match[5].lower() not in _MONTHS:
        return None
    hour = int(match[1]) % 12 + (12 if match[3].lower() == "p" else 0)
    try:
        return datetime(
            int(match[6]), _MONTHS.index(match[5].lower()) + 1, int(match[4]), hour, int(match[2]), tzinfo=UTC
        )
    except ValueError:
        return None
