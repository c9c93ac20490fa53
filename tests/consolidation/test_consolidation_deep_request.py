"""A deep consolidation asks about everything, in whole lines, and its preview tells what it would do."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from ricordo import Entry
from ricordo.curation import CandidateEntry, ConsolidationConfig, ConsolidationInput
from ricordo.curation.adviser import CUT_NOTE, MORE_NOTE, AdviceRequest, build_requests
from ricordo.workspace import MEMORY_PATH, render_entry

SMALL = 2_500


def entries(count: int) -> list[Entry]:
    day = datetime(2026, 11, 1, tzinfo=UTC)
    return [
        Entry(
            content=f"The harbour {number} of Porto opens at {number} and has 1{number} cranes.",
            id=f"01m{number:023}",
            time=day + timedelta(minutes=number),
            by="flush",
        )
        for number in range(count)
    ]


def material(given: Sequence[Entry], *, deep: bool) -> ConsolidationInput:
    document = "# Memory\n\n## Facts\n\n" + "".join(render_entry(entry) for entry in given)
    return ConsolidationInput(documents={MEMORY_PATH: document.encode()}, ledgers={}, fresh=(), deep=deep)


def told(requests: Sequence[AdviceRequest]) -> list[str]:
    return [line for request in requests for line in request.text.splitlines() if "harbour" in line]


@pytest.mark.req("CC-GATES")
@pytest.mark.parametrize("window", [SMALL, 4_000, 8_000])
def test_every_memory_is_asked_about_in_whole_lines_however_small_the_window(window: int) -> None:
    given = entries(80)
    requests = build_requests(material(given, deep=True), ConsolidationConfig(), window=window)
    assert {name for request in requests for name in request.current_ids} == {entry.id for entry in given}
    bullets = {render_entry(entry).strip() for entry in given}
    for line in told(requests):
        assert line.strip() in bullets, "no line is cut"
    for request in requests:
        assert all(name in request.text for name in request.current_ids)
    assert (MORE_NOTE in requests[0].text) == (len(requests) > 1)


@pytest.mark.req("AS-CONS-01")
def test_what_has_no_room_where_only_news_are_asked_about_is_said_to_be_left_out() -> None:
    given, [new] = entries(80)[:79], entries(80)[79:]
    asked = replace(material(given, deep=False), fresh=[CandidateEntry(entry=new)])
    (request,) = build_requests(asked, ConsolidationConfig(), window=SMALL)
    assert CUT_NOTE in request.text
    bullets = {render_entry(entry).strip() for entry in [*given, new]}
    lines = told([request])
    assert 1 < len(lines) < 80
    assert all(line.strip() in bullets for line in lines)
