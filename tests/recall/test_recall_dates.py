"""Which days a question means."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo.search.query_context import DateRange, date_closeness, find_date_ranges

TODAY = date(2026, 11, 22)


def days(text: str) -> list[tuple[str, str]]:
    return [(str(span.first), str(span.last)) for span in find_date_ranges(text, TODAY)]


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("What did we ship in May 2025?", "2025-05-01", "2025-05-31"),
        ("what did we ship in june", "2026-06-01", "2026-06-30"),
        ("And in December?", "2025-12-01", "2025-12-31"),
        ("What was planned last week?", "2026-11-09", "2026-11-15"),
        ("What changed on May 5?", "2026-05-05", "2026-05-05"),
        ("What is planned for December 5?", "2026-12-05", "2026-12-05"),
        ("What did we know before June?", "0001-01-01", "2026-05-31"),
        ("What has changed since March 2026?", "2026-03-01", "9999-12-31"),
        ("Was haben wir letzte Woche beschlossen?", "2026-11-09", "2026-11-15"),
        ("Was wurde seit März gesagt?", "2026-03-01", "9999-12-31"),
        ("Qu'avons-nous dit avant mars 2026 ?", "0001-01-01", "2026-02-28"),
        ("¿Qué dijimos en junio?", "2026-06-01", "2026-06-30"),
        ("6月に何を決めた？", "2026-06-01", "2026-06-30"),
        ("3月之前说了什么？", "0001-01-01", "2026-02-28"),
        ("三月份我们用的是什么数据库？", "2026-03-01", "2026-03-31"),
        ("2025年3月初谁负责支付？", "2025-03-01", "2025-03-10"),
        ("去年十二月底的版本是多少？", "2025-12-21", "2025-12-31"),
        ("十月二十三号谁值班？", "2026-10-23", "2026-10-23"),
        ("What was the tick rate at the beginning of March 2026?", "2026-03-01", "2026-03-10"),
        ("Wer war Ende Oktober zuständig?", "2026-10-21", "2026-10-31"),
    ],
)
def test_a_time_is_understood_as_the_latest_that_was(text: str, first: str, last: str) -> None:
    assert days(text) == [(first, last)]


@pytest.mark.parametrize("text", ["May I ask something?", "Who deploys?", "march on", "", "In 3 steps"])
def test_a_question_that_names_no_time_means_none(text: str) -> None:
    assert days(text) == []


def test_what_was_said_soon_after_a_time_counts_less_the_later_it_is() -> None:
    june = (DateRange(first=date(2026, 6, 1), last=date(2026, 6, 30)),)
    near = [
        date_closeness(date(2026, month, day), june)
        for month, day in ((6, 1), (6, 30), (7, 3), (7, 10), (7, 14), (5, 31))
    ]
    assert near[0] == near[1] == 1
    assert near[1] > near[2] > near[3] > near[4] == near[5] == 0


@given(st.text(max_size=60), st.dates())
def test_any_text_on_any_day_gives_spans_in_order(text: str, today: date) -> None:
    for span in find_date_ranges(text, today):
        assert span.first <= span.last or span.first == date.min
        assert 0 <= date_closeness(today, (span,)) <= 1
