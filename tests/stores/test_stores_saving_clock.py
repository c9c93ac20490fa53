"""Clocks that are set back: what was saved last is the newest all the same, and stands in the newest ledger."""

from datetime import timedelta
from pathlib import Path

import pytest

from agents_at_work import SCOPE, settings
from hand_clock import HandClock
from ricordo import Entry, Memory
from ricordo.search.memory_root import MonotonicClock
from ricordo.workspace import render_entry

pytestmark = [pytest.mark.anyio, pytest.mark.req("GO-I12")]


def test_a_clock_that_is_set_back_goes_on_by_milliseconds_until_it_has_caught_up() -> None:
    hand = HandClock()
    start, clock = hand.time, MonotonicClock(hand)
    told = [clock.now(), clock.now()]
    hand.turn(minutes=-7)
    told += [clock.now(), clock.now()]
    hand.turn(minutes=7, seconds=1)
    told.append(clock.now())
    assert [(each - start) / timedelta(milliseconds=1) for each in told] == [0, 0, 1, 2, 1_000]
    hand.turn(days=-400)
    assert (clock.now(), clock.today()) == (hand.time, hand.today()), "it was wrong before"
    today = clock.today()
    hand.turn(hours=-12)
    assert clock.today() == today > hand.today()


def test_what_is_saved_after_a_document_was_read_is_later_than_all_of_it() -> None:
    hand = HandClock()
    start, clock = hand.time, MonotonicClock(hand)
    clock.advance_past(render_entry(Entry(content="Walnut.", id="01", time=start)).encode())
    assert [(clock.now() - start) / timedelta(milliseconds=1) for _ in range(2)] == [1, 2]
    clock.advance_past(b"# Nothing is saved here\n")
    hand.turn(seconds=1)
    assert clock.now() == hand.time
    clock.advance_past(render_entry(Entry(content="Pear.", id="02", time=start + timedelta(days=9))).encode())
    assert clock.now() == hand.time, "it was wrong before"


async def test_what_the_next_process_saves_is_the_newest_though_its_clock_is_behind(tmp_path: Path) -> None:
    hand = HandClock()
    for number in range(4):
        async with Memory.open(tmp_path / "r", scope=SCOPE, settings=settings(tmp_path / "r"), clock=hand) as memory:
            await memory.remember(f"Walnut {number}.")
            hand.turn(hours=-5)
    async with Memory.open(tmp_path / "r", scope=SCOPE, settings=settings(tmp_path / "r"), clock=hand) as memory:
        wanted = [f"Walnut {number}." for number in (3, 2, 1, 0)]
        assert [entry.content for entry in await memory.entries()] == wanted
        assert [hit.entry.content for hit in await memory.recall("")] == wanted
        shown = await memory.preamble()
        assert sorted(wanted, key=shown.index) == wanted
        await memory.undo()
        assert wanted[0] not in await memory.preamble()
