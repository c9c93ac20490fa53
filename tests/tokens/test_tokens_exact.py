"""Exact counts, their replacement, and cutting."""

import html
import json
import socket
import sys
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from message_strategies import any_text
from ricordo.messages import estimate_text
from ricordo.messages.tokens import Estimator, VocabularyCounter, cut_text, load_token_counter, safe_boundary

pytestmark = pytest.mark.req("DF-C68")


class _Broken(ModuleType):
    """A tokenizer that is installed and does not load."""

    def __init__(self, error: Exception) -> None:
        super().__init__("quicktok")
        self.error = error

    def get_encoding(self, name: str) -> None:
        raise self.error


@pytest.mark.req("AS-BUG-20")
def test_the_extra_counts_exactly() -> None:
    pytest.importorskip("quicktok")
    counter = load_token_counter()
    assert isinstance(counter, VocabularyCounter)
    assert counter.count("We deploy only from main.") == 6
    assert counter.count("") == 0


def test_text_that_spells_a_control_token_or_holds_half_a_pair_is_counted() -> None:
    pytest.importorskip("quicktok")
    counter = load_token_counter()
    assert counter.count("<|endoftext|>") > 1
    assert counter.count("a \ud800 b") > 1


def _refuse(*_: object, **__: object) -> None:
    pytest.fail("a connection was tried")


@pytest.mark.req("DF-C68", "DF-B15")
def test_without_a_tokenizer_counting_goes_on_at_once_and_cuts_stay_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket.socket, "connect", _refuse)
    monkeypatch.setattr(socket, "getaddrinfo", _refuse)
    broken: list[ModuleType | None] = [None, *map(_Broken, (OSError("no file"), RuntimeError("x"), KeyError("x")))]
    for module in broken:
        monkeypatch.setitem(sys.modules, "quicktok", module)
        counter = load_token_counter()
        assert counter == Estimator()
        assert counter.count("We deploy only from main.") == estimate_text("We deploy only from main.")
        plain = "<a href='x'> & \"b\" </a>" * 20
        escaped = html.escape(plain)
        for limit in range(1, counter.count(escaped) + 2, 3):
            cut = cut_text(escaped, limit, counter=counter)
            assert plain.startswith(html.unescape(cut))
            assert html.escape(html.unescape(cut)) == cut


def test_an_unknown_vocabulary_is_replaced_by_the_estimate() -> None:
    assert load_token_counter("no-such-vocabulary") == Estimator()


@given(any_text(200), st.integers(-1, 60))
def test_a_cut_is_a_beginning_that_fits(text: str, limit: int) -> None:
    cut = cut_text(text, limit)
    assert text.startswith(cut)
    assert estimate_text(cut) <= max(limit, 0)
    if estimate_text(text) <= limit:
        assert cut == text


def test_a_cut_uses_what_it_was_given() -> None:
    text = "We deploy only from main, and never on Friday afternoon. " * 500
    for limit in (10, 100, 1_000):
        assert estimate_text(cut_text(text, limit)) >= limit - 1


@given(any_text(60), st.data())
def test_a_cut_of_a_json_string_never_breaks_an_escape(text: str, data: st.DataObject) -> None:
    escaped = json.dumps(text)[1:-1]
    at = safe_boundary(escaped, data.draw(st.integers(0, len(escaped))))
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    assert whole.startswith(json.loads(f'"{escaped[:at]}"'))


@given(any_text(60), st.data())
def test_a_cut_of_escaped_markup_never_breaks_an_entity(text: str, data: st.DataObject) -> None:
    escaped = html.escape(text)
    cut = escaped[: safe_boundary(escaped, data.draw(st.integers(0, len(escaped))))]
    assert html.escape(_unescape(cut)) == cut


def _unescape(text: str) -> str:
    for entity, char in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&#x27;", "'"), ("&amp;", "&")):
        text = text.replace(entity, char)
    return text


@pytest.mark.parametrize(
    "unit",
    [
        *("&lt;", "&#39;", "&#128512;", "&#x1F600;", "\\n", "\\\\", "\\u00e9", "\\ud83d\\ude00"),
        *("e\u0301", "\r\n", "\ud83d\ude00", "🇮🇹", "👍🏽", "👨\u200d👩\u200d👧", "❤\ufe0f", "\u1100\u1161\u11a8"),
    ],
)
@pytest.mark.req("DF-C68")
def test_what_belongs_together_is_never_split(unit: str) -> None:
    text = f"a{unit * 3}b"
    whole = {0, *(1 + i * len(unit) for i in range(4)), len(text)}
    assert {safe_boundary(text, at) for at in range(len(text) + 1)} == whole


def test_a_boundary_outside_the_text_is_its_nearest_end() -> None:
    assert safe_boundary("abc", -5) == 0
    assert safe_boundary("abc", 99) == 3


def test_an_ampersand_or_backslash_alone_holds_nothing_back() -> None:
    assert safe_boundary("salt & pepper; more", 9) == 9
    assert safe_boundary("AT&T is", 4) == 4
    assert safe_boundary("\\\\\\\\n", 4) == 4
