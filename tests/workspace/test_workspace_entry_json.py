"""Entries in JSON: what is written is what is read, and what others wrote beside it stays."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from entry_strategies import ENTRIES, TEXTS
from ricordo import Entry
from ricordo.errors import DocumentInvalid
from ricordo.messages import JsonValue, dumps, loads
from ricordo.scope import Scope
from ricordo.workspace import Source
from ricordo.workspace.entry_json import entry_from_json, entry_to_json

pytestmark = pytest.mark.req("GO-I1", "GO-I5")

NAMES = st.sampled_from(["due", "my field", "at", "from", "json", "extra", "$schema", "日本"]) | TEXTS
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
MARKED = st.sampled_from(["json:1", 'json:"a"', "json:{}", "json: 1", "json:", 'json:"json:1"', "json:[[]]"])
VALUES: st.SearchStrategy[JsonValue] = st.recursive(
    SCALARS | TEXTS | MARKED,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=4,
)
OWN = entry_to_json(
    Entry(
        content="-",
        id="a",
        time=datetime.now(UTC),
        since=datetime.now(UTC),
        confirmed=datetime.now(UTC),
        tags=("a",),
        scope=Scope(user="me"),
        source=Source(session="a", messages=("a",), quote="a", origin="a"),
        confidence=0.5,
        state="retired",
        supersedes="a",
        pinned=True,
        reason="a",
        rule="deny shell(*)",
    )
)
EXTRA_NAMES = st.sampled_from(["due", "time", "content", "tags", "scope", "extra", "json", "messages"])


@given(ENTRIES, st.lists(st.tuples(EXTRA_NAMES, TEXTS | MARKED), max_size=3).map(tuple))
@example(Entry(content="-"), (("due", 'json:"json:1"'), ("due", "json:1")))
@example(Entry(content="-"), (("json", 'json:{"due":1}'),))
@example(Entry(content="-"), (("json", 'json:{"my field":1,"at":"x"}'),))
def test_reading_a_written_object_gives_the_same_entry(entry: Entry, extra: tuple[tuple[str, str], ...]) -> None:
    given = Entry(**{**vars(entry), "extra": (*entry.extra, *extra)})
    line = dumps(entry_to_json(given))
    assert "\n" not in line
    assert entry_from_json(_object(line)) == given


@pytest.mark.req("GO-I5")
@given(st.dictionaries(NAMES.filter(lambda name: name not in {*OWN, "extra"}), VALUES, max_size=3))
@example({"due": "json:1", "my field": {"a": [1, None]}, "json": {"at": "x"}})
def test_fields_and_kinds_of_others_survive_a_rewrite(foreign: dict[str, JsonValue]) -> None:
    record: dict[str, JsonValue] = {"content": "We use pnpm.", "kind": "a kind of their own", "by": "hand", **foreign}
    entry = entry_from_json(record)
    assert entry_to_json(entry.validate()) == record
    assert json.loads(dumps(entry_to_json(entry))) == record


@pytest.mark.parametrize("theirs", ["free", [["due", 1]], [["my field", "x"]], {"a": 1}])
def test_a_field_that_has_the_name_of_our_list_survives_in_another_form(theirs: JsonValue) -> None:
    record: dict[str, JsonValue] = {"content": "-", "kind": "fact", "by": "hand", "extra": theirs}
    assert entry_to_json(entry_from_json(record)) == record


def test_an_entry_at_its_defaults_says_only_what_it_is() -> None:
    assert entry_to_json(Entry(content="One.")) == {"kind": "fact", "content": "One.", "by": "user"}


def test_an_object_that_a_person_wrote_is_an_entry_by_hand() -> None:
    assert entry_from_json({"content": "We use pnpm.", "tags": None}) == Entry(content="We use pnpm.", by="hand")


@pytest.mark.parametrize(
    "wrong",
    [
        {"content": None},
        {"content": "  "},
        {"content": ["-"]},
        {"kind": " "},
        {"kind": 1},
        {"tags": "deploy"},
        {"tags": ["deploy", 1]},
        {"time": "yesterday"},
        {"time": "2026-11-21T08:03:11"},
        {"time": 1.5},
        {"since": "9999-12-31T23:59:59-10:00"},
        {"scope": {}},
        {"scope": {"planet": "x"}},
        {"scope": {"user": 1}},
        {"scope": "user=me"},
        {"by": "somebody"},
        {"state": "forgotten"},
        {"confidence": 1.5},
        {"confidence": True},
        {"confidence": "1"},
        {"pinned": "yes"},
        {"messages": "m1"},
        {"messages": [None]},
        {"rule": "allow shell(*)"},
        {"rule": 1},
    ],
)
def test_a_field_of_ours_that_says_something_else_makes_it_no_entry(wrong: dict[str, JsonValue]) -> None:
    with pytest.raises(DocumentInvalid):
        entry_from_json({"content": "-"} | wrong)


def _object(line: str) -> dict[str, JsonValue]:
    value = loads(line)
    assert isinstance(value, dict)
    return value
