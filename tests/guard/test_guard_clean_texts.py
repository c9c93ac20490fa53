"""What is known to be clean is not searched again, and nothing that holds a secret is ever taken for it."""

from datetime import UTC, datetime
from unittest.mock import patch

import pytest

from ricordo import Entry
from ricordo.guard import Redactor
from ricordo.guard import scanner as rules
from ricordo.guard.scanner import find_secrets
from ricordo.scope import Scope
from ricordo.workspace import Source
from ricordo.workspace.redaction import redact_entry

pytestmark = pytest.mark.req("FC-SECRET")

SECRET = "The password is hunter2-and-more."
REDACTOR = Redactor(b"k" * 32)


@pytest.fixture(autouse=True)
def _as_at_first() -> None:
    rules._CLEAN_TEXTS.clear()


def test_a_clean_text_is_searched_once() -> None:
    with patch.object(rules, "_find_spans", wraps=rules._find_spans) as searched:
        assert [find_secrets("We deploy only from main.") for _ in range(3)] == [[], [], []]
        assert searched.call_count == 1


def test_a_secret_is_found_as_often_as_it_is_asked_for_and_kept_nowhere() -> None:
    found = find_secrets(SECRET)
    assert found
    assert find_secrets(SECRET) == found
    assert REDACTOR.clean(SECRET) == REDACTOR.clean(SECRET) != SECRET
    assert not any("hunter2" in text for text in rules._CLEAN_TEXTS)


def test_what_is_known_is_little_whatever_was_searched() -> None:
    find_secrets("long " * 1_000)
    assert not rules._CLEAN_TEXTS
    for number in range(5_000):
        find_secrets(f"text {number}")
    assert 0 < len(rules._CLEAN_TEXTS) <= 4_096
    assert find_secrets(SECRET)


def test_an_entry_without_secrets_comes_back_as_it_is() -> None:
    entry = Entry(
        content="We deploy only from main.",
        id="01jd0000000000000000000000",
        time=datetime(2026, 11, 21, tzinfo=UTC),
        tags=("ci",),
        scope=Scope(user="me"),
        source=Source(session="s1", messages=("m1",), quote="from main"),
        extra=(("mood", "calm"),),
    )
    assert redact_entry(entry, REDACTOR) is entry
