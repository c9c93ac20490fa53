"""Session names and times: safe, stable, and never an error."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ricordo.importers.fields import parse_time
from ricordo.importers.sessions import safe_session_id
from ricordo.messages import JsonValue

NOON = datetime(2026, 10, 5, 12, 0, 0, 250_000, tzinfo=UTC)


@given(raw=st.text(st.characters(), min_size=1, max_size=150))
def test_a_session_name_is_safe_as_a_folder_name_and_stays_what_it_is(raw: str) -> None:
    name = safe_session_id(raw)
    assert name.isascii()
    assert 0 < len(name) <= 100
    assert all(character.isalnum() or character in "-_." for character in name)
    assert name[0] not in "-."
    assert name[-1] != "."
    assert safe_session_id(name) == name


@given(one=st.text(min_size=1, max_size=20), other=st.text(min_size=1, max_size=20))
def test_two_sessions_never_share_a_name(one: str, other: str) -> None:
    assume(one != other)
    assert safe_session_id(one) != safe_session_id(other)


@pytest.mark.parametrize("raw", ["monday", "2026-10-05T07.12", "5b0e3f6a-1111-4222-8333-444455556666", "A_b"])
def test_a_safe_name_is_kept(raw: str) -> None:
    assert safe_session_id(raw) == raw


@pytest.mark.parametrize(
    "written",
    [
        "2026-10-05T12:00:00.250Z",
        "2026-10-05T12:00:00.250",
        "2026-10-05 12:00:00.250 UTC",
        "2026-10-05T14:00:00.250+02:00",
        NOON.timestamp(),
        str(NOON.timestamp()),
        int(NOON.timestamp() * 1e3),
        int(NOON.timestamp() * 1e3) * 1_000,
        int(NOON.timestamp() * 1e3) * 1_000_000,
    ],
)
def test_every_way_to_write_a_time_is_the_same_time(written: str | float) -> None:
    assert parse_time(written) == NOON


@given(time=st.datetimes(datetime(1975, 1, 1), datetime(2200, 1, 1)), minutes=st.integers(-14 * 60, 14 * 60))
def test_a_time_with_a_zone_survives_being_written(time: datetime, minutes: int) -> None:
    aware = time.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    assert parse_time(aware.isoformat()) == aware
    assert parse_time(time.isoformat()) == time.replace(tzinfo=UTC)


@pytest.mark.parametrize(
    "written", [None, True, "", "soon", "7", [], {}, 1e999, -1e300, "12:70 pm on 8 May, 2023", 10**400]
)
def test_what_is_no_time_is_none(written: JsonValue) -> None:
    assert parse_time(written) is None


@given(written=st.text(max_size=30))
def test_no_text_makes_reading_a_time_fail(written: str) -> None:
    found = parse_time(written)
    assert found is None or found.tzinfo is not None
