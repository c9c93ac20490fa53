"""Between two flushes of one scope lies the gap, whoever asks, and another scope never waits for it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from hand_clock import HandClock
from ricordo.extraction.throttle import SLOTS_FILE, Throttle
from ricordo.scope import Scope
from ricordo.testing import InMemoryFiles

pytestmark = pytest.mark.anyio

ANA = Scope(user="ana", project="shop", agent="main")
BO = Scope(user="bo", project="shop", agent="main")


@pytest.mark.req("AS-FLUSH-06", "AS-FLUSH-05")
async def test_the_first_takes_the_slot_and_the_others_hear_until_when() -> None:
    files, clock = InMemoryFiles(), HandClock()
    first, second = (Throttle(files=files, clock=clock, min_gap=600) for _ in range(2))
    began = clock.now()
    assert await first.acquire(ANA) is None
    clock.turn(599)
    assert await second.acquire(ANA) == await second.next_start(ANA) == began + timedelta(seconds=600)
    clock.turn(1)
    assert await second.next_start(ANA) is None
    assert await second.acquire(ANA) is None
    assert await first.acquire(ANA) == began + timedelta(seconds=1_200)


@pytest.mark.req("AS-FLUSH-06")
async def test_a_slot_is_of_the_whole_scope_but_of_all_its_sessions() -> None:
    throttle = Throttle(files=InMemoryFiles(), clock=HandClock(), min_gap=600)
    assert await throttle.acquire(ANA) is None
    assert await throttle.acquire(Scope(user="ana", project="shop", agent="main", session="x")) is not None
    others = [
        replace(ANA, **{name: value})
        for name, value in {"user": "bo", "agent": None, "project": "house", "team": "t", "tenant": "t"}.items()
    ]
    for other in others:
        assert await throttle.acquire(other) is None
    await throttle.release(ANA)
    assert await throttle.next_start(BO) is not None
    assert await throttle.acquire(ANA) is None


@pytest.mark.req("AS-FLUSH-05")
async def test_without_a_gap_nobody_waits_and_no_file_is_made() -> None:
    files = InMemoryFiles()
    throttle = Throttle(files=files, clock=HandClock(), min_gap=0)
    assert [await throttle.acquire(ANA) for _ in range(3)] == [None] * 3
    await throttle.release(ANA)
    assert await throttle.next_start(ANA) is None
    assert await files.info(SLOTS_FILE) is None


@pytest.mark.req("AS-FLUSH-06")
@pytest.mark.parametrize("data", [b"{", b"[]", b'{"x": 3}', b"\xff"])
async def test_a_damaged_file_and_a_clock_that_was_set_back_hold_nobody_up(data: bytes) -> None:
    files, clock = InMemoryFiles(), HandClock()
    await files.create(SLOTS_FILE, data)
    throttle = Throttle(files=files, clock=clock, min_gap=600)
    assert await throttle.acquire(ANA) is None
    clock.turn(days=-2)
    assert await throttle.next_start(ANA) is None
    assert await throttle.acquire(ANA) is None
    assert await throttle.acquire(ANA) is not None


@pytest.mark.req("AS-FLUSH-06")
async def test_slots_that_are_over_leave_the_file() -> None:
    files, clock = InMemoryFiles(), HandClock()
    throttle = Throttle(files=files, clock=clock, min_gap=600)
    for number in range(20):
        assert await throttle.acquire(Scope(user=f"user{number}")) is None
    clock.turn(600)
    assert await throttle.acquire(ANA) is None
    assert (await files.read(SLOTS_FILE)).data.count(b"user") == 1
