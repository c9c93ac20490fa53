"""Ids follow the order of saving, whatever the clock does."""

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo.clock import MonotonicIds, SystemClock, encode_id, format_rfc3339, truncate_to_milliseconds


class Jumping:
    """A clock that gives these times, one after the other."""

    def __init__(self, times: list[datetime]) -> None:
        self._times = iter(times)

    def now(self) -> datetime:
        """Return the next time."""
        return next(self._times)

    def today(self) -> date:
        """Return any day."""
        return date(2026, 11, 21)


@pytest.mark.req("GO-I12")
@given(st.lists(st.datetimes(datetime(1971, 1, 1), datetime(9000, 1, 1), timezones=st.just(UTC)), min_size=2))
def test_ids_strictly_increase_whatever_the_clock_does(times: list[datetime]) -> None:
    """A clock that stands still or runs backwards reorders nothing."""
    ids = MonotonicIds(Jumping(times))
    given_ids = [ids.new() for _ in times]
    assert given_ids == sorted(set(given_ids))
    assert all(len(one) == 26 for one in given_ids)


@given(st.integers(0, 2**128 - 1), st.integers(0, 2**128 - 1))
def test_the_text_of_an_id_sorts_as_its_number(first: int, second: int) -> None:
    """Order of bytes is order of time."""
    assert (encode_id(first) < encode_id(second)) == (first < second)


def test_times_are_kept_in_utc_milliseconds() -> None:
    """Whatever zone they come in."""
    time = datetime(2026, 11, 21, 9, 3, 11, 482_999, tzinfo=timezone(timedelta(hours=1)))
    assert truncate_to_milliseconds(time) == datetime(2026, 11, 21, 8, 3, 11, 482_000, tzinfo=UTC)
    assert format_rfc3339(time) == "2026-11-21T08:03:11.482Z"
    assert SystemClock().now().tzinfo is UTC
    assert SystemClock().now().microsecond % 1000 == 0
