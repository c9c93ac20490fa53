"""The preamble of session files: what is remembered, what is open, the last sessions, never more than was agreed."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hand_clock import HandClock
from kept_session_files import SHOP, keeps, notes, opened
from ricordo import Entry
from ricordo.context.preamble import SESSION_BUDGET, compose_session_preamble, shorten
from ricordo.guard import parse_fence
from ricordo.messages import Tokens, estimate_text
from ricordo.runtime import open_store
from ricordo.workspace.session_catalog import SessionRow

START = HandClock().now()
PARAGRAPH = "We moved the golden fixtures to testdata/golden and fixed the two tests that still read the old folder."
LONG = "The migration took most of the day because every table has its own exporter. " * 40

texts = st.text(max_size=80) | st.just(LONG) | st.just("漢字かな交じり文。" * 60) | st.just("x" * 3_000)
rows = st.lists(
    st.builds(
        SessionRow,
        path=st.just("sessions/x.md"),
        date=st.integers(0, 10**6).map(lambda second: START + timedelta(seconds=second)),
        summary=texts,
        tags=st.lists(st.text(max_size=12), max_size=4).map(tuple),
        threads=st.lists(texts, max_size=12).map(tuple),
    ),
    max_size=7,
)
entries = st.lists(
    st.builds(
        Entry,
        content=texts.filter(lambda text: bool(text.strip())),
        kind=st.sampled_from(["fact", "preference", "decision", "person"]),
        pinned=st.booleans(),
        id=st.integers(0, 99).map("{:026d}".format),
    ),
    max_size=12,
)


def row(number: int, summary: str, *, tags: tuple[str, ...] = (), threads: tuple[str, ...] = ()) -> SessionRow:
    date = START + timedelta(days=number)
    return SessionRow(path=f"sessions/{number}.md", date=date, summary=summary, tags=tags, threads=threads)


@pytest.mark.anyio
@pytest.mark.req("GO-G17", "GO-G17-size", "GO-G23", "GO-D10")
async def test_it_lists_the_last_sessions_newest_first(tmp_path: Path) -> None:
    clock = HandClock()
    async with opened(tmp_path, clock) as store:
        assert await store.preamble() == ""
        for number in range(7):
            # the last two begin in one minute
            clock.turn(seconds=1) if number == 6 else clock.turn(days=1)
            told = notes(f"s{number}", f"Talk {number}.", f"tag{number}", "misc", started=clock.now())
            await keeps(store).close_session(told)
        shown = parse_fence(await store.preamble())
    days = [(START + timedelta(days=min(number + 1, 6))).astimezone() for number in range(7)]
    lines = [f"- {days[number]:%Y-%m-%d %H:%M} (tag{number}, misc): Talk {number}." for number in range(6, -1, -1)]
    assert shown == ("\n".join(["Recent sessions, newest first:", *lines[:5]]),)
    async with opened(tmp_path, clock, last=2) as store:
        assert parse_fence(await store.preamble()) == ("\n".join(["Recent sessions, newest first:", *lines[:2]]),)


@pytest.mark.anyio
@pytest.mark.req("GO-G17", "GO-G23")
async def test_five_sessions_are_listed_unless_the_address_says_how_many(tmp_path: Path) -> None:
    counts = []
    for options in ("", "?last=2", "?last=6"):
        async with open_store(f"sessions:{tmp_path / 'kept'}{options}", scope=SHOP) as store:
            for number in range(0 if options else 7):
                told = notes(f"s{number}", f"Talk {number}.", started=START + timedelta(days=number))
                await keeps(store).close_session(told)
            counts.append([f"Talk {number}." in await store.preamble() for number in range(7)].count(True))
    assert counts == [5, 2, 6]


@pytest.mark.req("GO-G17-size")
def test_five_typical_paragraphs_stay_whole_below_a_kilobyte() -> None:
    shown = compose_session_preamble(
        [], [row(number, PARAGRAPH, tags=("fixtures", "tests")) for number in range(5)], max_sessions=5
    ).text
    assert shown.count(PARAGRAPH) == 5
    assert len(shown.encode()) < 1_024
    longer = compose_session_preamble([], [row(number, "word " * 80) for number in range(5)], max_sessions=5).text
    assert 900 < len(longer.encode()) < 1_024
    kept = [Entry(content=f"Fact {number}. {PARAGRAPH}", by="user") for number in range(40)]
    many = compose_session_preamble(kept, [row(number, PARAGRAPH) for number in range(5)], max_sessions=5).text
    assert 700 < estimate_text(many) <= 1_000, "unless another budget is named"


@pytest.mark.req("GO-G17-size", "GO-D11", "GO-G17")
def test_long_summaries_are_cut_one_by_one_with_a_mark() -> None:
    shown = compose_session_preamble(
        [], [row(number, LONG if number % 2 else "Short.") for number in range(5)], max_sessions=5
    ).text
    lines = (parse_fence(shown) or ("",))[0].splitlines()[1:]
    assert [line.endswith(" … (cut)") for line in lines] == [False, True, False, True, False]
    assert [line.endswith(": Short.") for line in lines] == [True, False, True, False, True]
    assert all("exporter. … (cut)" in line for line in lines if "cut" in line)
    assert len(shown.encode()) < 1_100


@pytest.mark.anyio
@pytest.mark.req("GO-G17-size", "GO-D11", "GO-G4-scale", "GO-G17")
@pytest.mark.parametrize(("budget", "count"), [(120, 1), (200, 4), (400, 5)])
async def test_a_small_budget_shows_the_newest_sessions_each_of_them_cut(
    tmp_path: Path, budget: int, count: int
) -> None:
    async with opened(tmp_path) as store:
        for number in range(5):
            await keeps(store).close_session(notes(f"s{number}", f"Talk {number}. {LONG}"))
        shown = await store.preamble(Tokens(budget))
    lines = (parse_fence(shown) or ("",))[0].splitlines()[1:]
    assert 0 < estimate_text(shown) <= budget
    assert [f"Talk {number}." in line for number, line in zip(range(4, -1, -1), lines, strict=False)] == [True] * count
    assert all(line.endswith(" … (cut)") for line in lines)


@pytest.mark.req("GO-G17-size", "GO-D11", "GO-G4-scale")
@given(entries, rows, st.integers(1, 1_500) | st.none())
def test_it_never_takes_more_than_its_budget(kept: list[Entry], listed: list[SessionRow], budget: int | None) -> None:
    tokens = None if budget is None else Tokens(budget)
    shown = compose_session_preamble(kept, listed, max_sessions=5, budget=tokens)
    assert estimate_text(shown.text) <= (tokens or SESSION_BUDGET).count
    assert compose_session_preamble(kept, listed, max_sessions=5, budget=tokens) == shown
    assert parse_fence(shown.text) == tuple(item.text for item in shown.items)


@pytest.mark.req("GO-AT2", "GO-D5", "GO-FRIC", "GO-G17", "GO-AT1")
def test_what_is_remembered_comes_first_then_open_threads_then_sessions() -> None:
    kept = [
        Entry(content="Newest fact.", id="4"),
        Entry(content="A person.", id="3", kind="person"),
        Entry(content="Concluded.", id="2", kind="decision", by="flush"),
        Entry(content="Pinned.", id="1", kind="preference", pinned=True),
        Entry(content="Old.", id="0", state="superseded"),
    ]
    shown = parse_fence(
        compose_session_preamble(
            kept, [row(2, "Two.", threads=("Fix it",)), row(1, "One.", threads=("Old",))], max_sessions=5
        ).text
    )
    assert shown is not None
    assert shown[:3] == ("Pinned.", "Newest fact.", "Left open in the last session:\n- Fix it")
    assert [line.rpartition(" ")[2] for line in shown[3].splitlines()] == ["first:", "Two.", "One."]
    assert len(shown) == 4


@pytest.mark.req("GO-D5", "GO-G17-size", "GO-G17")
def test_many_memories_leave_room_for_sessions_and_say_how_many_are_missing() -> None:
    kept = [Entry(content=f"Fact {number}: {PARAGRAPH}", id=f"{number}") for number in range(500)]
    shown = compose_session_preamble(kept, [row(number, PARAGRAPH) for number in range(5)], max_sessions=5).text
    inside = parse_fence(shown) or ()
    assert inside[-1].count(PARAGRAPH) == 5
    assert 5 < len(inside) < 30
    assert f"{500 - len(inside) + 1} memories did not fit here." in shown


@pytest.mark.req("GO-D10", "GO-G17", "GO-AT1")
@pytest.mark.anyio
async def test_a_pending_session_shows_its_digest(tmp_path: Path) -> None:
    async with opened(tmp_path, session="s") as store:
        await store.save(Entry(content="Fixtures live in testdata/golden/.", kind="person"))
    async with opened(tmp_path) as store:
        assert "Saved: Fixtures live in testdata/golden/." in await store.preamble()
        assert await keeps(store).pending_sessions() == ("s",)
        told = replace(notes("s", "Asked where fixtures live."), pending=True)
        await keeps(store).close_session(told)
        assert "Asked where fixtures live." in await store.preamble()
        assert await keeps(store).pending_sessions() == ("s",)


@pytest.mark.req("GO-G17-size")
def test_a_text_is_cut_after_a_sentence_or_a_word() -> None:
    assert shorten("Two  words.", 20) == "Two words."
    assert shorten("One is here. Two is long and goes on and on.", 30) == "One is here. … (cut)"
    assert shorten("A sentence that has no end before the limit at all", 30) == "A sentence that has no … (cut)"
    assert shorten("x" * 50, 20) == "x" * 12 + " … (cut)"
