"""Words to terms: what a query means is found in whatever form and language it was written down."""

from datetime import UTC, datetime

import pytest

from ricordo.search import Chunk
from ricordo.search.documents import own_terms, query_words


def chunk(content: str) -> Chunk:
    return Chunk(path="workspace/MEMORY.md", line_number=1, end_line=1, content=content, document_type="curated")


def finds(query: str, content: str) -> bool:
    held = set(own_terms(chunk(content)))
    words = query_words(query)
    return bool(words.groups) and all(group & held for group in words.groups)


@pytest.mark.req("AS-BUG-25")
@pytest.mark.parametrize(
    ("query", "content"),
    [
        ("deployments", "We deployed on Friday."),
        ("mice", "A mouse ran by."),
        ("live", "Bego lives in Santander."),
        ("leave", "The bus leaves at 7:30."),
        ("Datenbanken", "Wir haben die Datenbank gestern umgezogen und nicht gesichert."),
        ("getUserName", "Call getUserName() before login."),
        ("user", "Call getUserName() before login."),
        ("src/app/main.py", "See src/app/main.py for it."),
        ("main", "See src/app/main.py for it."),
        ("数据", "我们昨天讨论了数据库的迁移。"),
        ("회의", "내일 회의는 세 시에 시작합니다."),
        ("CAFÉ", "We met at the café."),
        ("5433", "The port is 5433."),
    ],
)
def test_a_word_is_found_in_its_other_forms_and_parts(query: str, content: str) -> None:
    assert finds(query, content)


def test_a_query_of_stop_words_has_no_words() -> None:
    assert query_words("what is it?").groups == ()


@pytest.mark.req("AS-BUG-25")
def test_a_huge_query_is_cut_to_what_can_be_looked_for() -> None:
    words = query_words(" ".join(f"word{number}" for number in range(100_000)))
    assert 0 < len(words.groups) <= 48


@pytest.mark.req("AS-BUG-25")
def test_no_term_holds_what_would_part_or_end_it_in_the_full_text_table() -> None:
    words = query_words("l'hôtel \"rock 'n' roll\" o'clock a\0b")
    assert words.terms
    assert not any(set(term) & set(" \t\n\"'\0") for term in words.terms)


@pytest.mark.req("AS-BUG-25")
def test_a_bare_day_of_the_month_is_no_term_of_a_date() -> None:
    dated = Chunk(
        path="workspace/memory/2026-11-21.md", line_number=17, end_line=19, content="Nothing.", document_type="ledger",
        heading="2026-11-21", time=datetime(2026, 11, 21, tzinfo=UTC),
    )  # fmt: skip
    assert not {"21", "11", "17", "19"} & set(own_terms(dated))
    assert {"2026", "2026-11-21"} <= set(own_terms(dated))
