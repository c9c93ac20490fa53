"""What plain stores have in common: whose folder it is, what is found, and what the prompt is given."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from entry_strategies import ENTRIES
from ricordo import Entry
from ricordo.context import Preamble
from ricordo.errors import InvalidSetting
from ricordo.guard import parse_fence
from ricordo.messages import Tokens, estimate_text
from ricordo.scope import Scope
from ricordo.search import MEMORY_DOCUMENT_TYPES, Query
from ricordo.storage.contract import safe_path
from ricordo.stores import StoreFolder, compose_entries, match_entries
from ricordo.stores.addresses import parse_address
from ricordo.stores.base import assign_ids, read_options
from ricordo.testing import InMemoryFiles
from ricordo.workspace import Source

pytestmark = pytest.mark.req("GO-I2")

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
SHOP = Scope(user="me", project="shop")
PARTS = st.none() | st.sampled_from(["a", "b", "A", "tenants", "a/b", ".."])
SCOPES = st.builds(
    lambda *parts: Scope(**dict(zip(["tenant", "user", "team", "project", "agent", "session"], parts, strict=True))),
    *[PARTS] * 5,
    st.just("s"),
)


def folder(scope: Scope, home: Scope = SHOP) -> str:
    return StoreFolder(files=InMemoryFiles(), scope=home).folder_for(scope)


def texts(query: str, *contents: str) -> list[str]:
    hits = match_entries([Entry(content=content) for content in contents], Query(text=query), 50)
    return [hit.entry.content for hit in hits]


@pytest.mark.req("GO-I11")
def test_a_folder_is_a_projects_whoever_of_its_users_asks() -> None:
    assert folder(SHOP) == folder(Scope(user="you", project="shop", session="s")) == folder(Scope(project="shop")) == ""
    assert folder(Scope(user="me"), Scope(user="me", session="s")) == ""


@pytest.mark.req("GO-I11")
def test_others_have_a_folder_below_it() -> None:
    assert folder(Scope(tenant="t", user="u", project="p")) == "tenants/t/users/u/projects/p/"
    assert folder(Scope(user="me")) == "users/me/"
    assert folder(Scope(tenant="t", user="me", project="shop")) == "tenants/t/users/me/projects/shop/"
    assert folder(Scope(session="s")) == "of-session/s/"
    assert folder(Scope(team="x", agent="y", session="s")) == "teams/x/agents/y/"


@pytest.mark.req("GO-I11")
@given(SCOPES, SCOPES, SCOPES)
def test_two_tenants_two_projects_and_two_users_never_meet(home: Scope, one: Scope, other: Scope) -> None:
    first, second = folder(one, home), folder(other, home)
    for path in (first, second):
        assert safe_path(path) == path.rstrip("/")
    if first == second:
        assert (one.tenant, one.project) == (other.tenant, other.project)
        if one.project is None:
            assert one.user == other.user
            assert one.user or (one.team, one.agent) == (other.team, other.agent)


@pytest.mark.req("GO-I2")
def test_words_are_found_in_any_order_in_content_and_tags_whatever_their_case() -> None:
    deploy = Entry(content="We DEPLOY only from main.", tags=("Release", "ops"))
    for query in ("deploy", "main release", "only from", "OPS", "deploy?", "“main”"):
        assert [hit.entry for hit in match_entries([deploy], Query(text=query), 5)] == [deploy]
    for query in ("deploys", "main staging", "c++"):
        assert match_entries([deploy], Query(text=query), 5) == []


@pytest.mark.req("GO-I2")
@pytest.mark.parametrize(
    ("content", "query"),
    [
        ("Die STRASSE ist gesperrt.", "straße"),
        ("Die Straße ist gesperrt.", "STRASSE"),
        ("Der GROẞE Preis", "grosse"),
        ("İstanbul office", "istanbul"),
        ("istanbul office", "İSTANBUL"),
        ("ΣΊΣΥΦΟΣ", "σίσυφος"),
        ("Σίσυφος", "ΣΊΣΥΦΟΣ"),
        ("cafe\u0301", "CAFÉ"),
        ("ПРИВЕТ, мир", "привет"),
        ("测试数据在 testdata 里", "数据"),
        ("שלום עולם", "עולם"),
        ("مرحبا بالعالم", "بالعالم"),
        ("नमस्ते दुनिया", "दुनिया"),
        ("ﬁxtures", "FIXTURES"),
    ],
)
def test_case_is_folded_as_unicode_says(content: str, query: str) -> None:
    assert texts(query, content, "something else") == [content]


@pytest.mark.req("GO-I2")
def test_a_query_without_words_finds_all_in_their_order_up_to_the_limit() -> None:
    assert texts(" \n", "c", "b", "a") == ["c", "b", "a"]
    assert [hit.entry.content for hit in match_entries([Entry(content=x) for x in "cba"], Query(text=""), 2)] == [
        "c",
        "b",
    ]


@pytest.mark.req("HE-MEM-01")
def test_the_filters_of_a_query_count() -> None:
    entry = Entry(content="One.", kind="decision", tags=("a",), time=NOW, source=Source(session="s"), state="retired")
    day = timedelta(days=1)
    for passing in (
        Query(text="", kinds=("decision", "x")),
        Query(text="", tags=("b", "a")),
        Query(text="", session="s"),
        Query(text="", since=NOW, until=NOW + day),
        Query(text="", path="memory"),
        Query(text="", document_types=MEMORY_DOCUMENT_TYPES),
    ):
        assert match_entries([entry], passing, 5, path="memory.jsonl")
    for stopping in (
        Query(text="", kinds=("fact",)),
        Query(text="", tags=("b",)),
        Query(text="", session="t"),
        Query(text="", since=NOW + day),
        Query(text="", until=NOW),
        Query(text="", path="sessions"),
        Query(text="", document_types=("transcript",)),
    ):
        assert match_entries([entry], stopping, 5, path="memory.jsonl") == []


@pytest.mark.req("HE-O-conflict")
def test_what_was_superseded_is_left_out_or_names_what_took_its_place() -> None:
    new, old = Entry(content="Port 8443.", id="b", supersedes="a"), Entry(content="Port 8080.", id="a")
    gone = Entry(content="Port 80.", id="c", state="superseded")
    hits = match_entries([new, old, gone], Query(text="port"), 5)
    assert [(hit.entry.id, hit.superseded_by) for hit in hits] == [("b", ""), ("a", "b")]
    assert parse_fence(compose_entries([new, old, gone], None).text) == ("Port 8443.",)


def test_hits_say_where_they_stand() -> None:
    entries = [Entry(content="One.", id="b"), Entry(content="Two.", id="a")]
    hits = match_entries(entries, Query(text=""), 5, path="memory.jsonl", lines={"b": 7})
    assert [(hit.path, hit.line_number, hit.end_line) for hit in hits] == [
        ("memory.jsonl", 7, 7),
        ("memory.jsonl", 1, 1),
    ]


@pytest.mark.req("GO-G1")
def test_entries_without_an_id_get_different_ones_that_stay() -> None:
    one, two, three = assign_ids(
        [Entry(content="x"), Entry(content="x"), Entry(content="y", id="mine")], "memory.jsonl"
    )
    assert len({one.id, two.id}) == 2
    assert three.id == "mine"
    assert assign_ids([Entry(content="before"), Entry(content="x")], "memory.jsonl")[1].id == one.id


@pytest.mark.req("GO-G4-scale")
@given(st.lists(ENTRIES, max_size=6), st.integers(0, 400))
def test_the_preamble_never_exceeds_its_budget_and_is_the_same_again(entries: list[Entry], tokens: int) -> None:
    text = compose_entries(entries, Tokens(tokens)).text
    assert estimate_text(text) <= tokens
    assert text == compose_entries(entries, Tokens(tokens)).text
    assert text == "" or parse_fence(text) is not None or "`recall` finds them" in text


@pytest.mark.req("GO-G4-scale")
def test_what_does_not_fit_is_counted_and_the_next_is_tried() -> None:
    entries = [Entry(content="Short."), Entry(content="long " * 5_000), Entry(content="Also short.")]
    text = compose_entries(entries, Tokens(200), note="The file is long.", source="memory.jsonl", unread=7).text
    assert parse_fence(text) == ("Short.", "Also short.")
    assert "The file is long. 8 memories did not fit here: `recall` finds them." in text
    assert 'source="memory.jsonl" trust="user" kind="fact"' in text


def test_a_budget_below_one_entry_gives_the_notice_or_nothing() -> None:
    entry = Entry(content="We deploy only from main. " * 20)
    notice = "1 memory did not fit here: `recall` finds them."
    assert compose_entries([entry], Tokens(estimate_text(notice))) == Preamble(text=notice)
    assert compose_entries([entry], Tokens(3)) == Preamble()
    assert compose_entries([], None) == Preamble()


def test_what_is_pinned_comes_before_what_is_newer() -> None:
    entries = [Entry(content=f"Note {number}.") for number in range(300)]
    pinned = Entry(content="Always.", pinned=True, by="agent")
    text = compose_entries([*entries, pinned], Tokens(60_000)).text
    assert parse_fence(text) == ("Always.", *(f"Note {number}." for number in range(300)))
    assert 'trust="agent"' in text
    assert parse_fence(compose_entries([*entries, pinned], Tokens(90)).text) == ("Always.",)


def test_entries_are_shown_as_bullets_where_a_backend_wants_it() -> None:
    entry = Entry(content="We deploy\nonly from main.", tags=("ops", "ci"))
    assert parse_fence(compose_entries([entry], None, bullets=True).text) == (
        "- We deploy\n  only from main. #ops #ci",
    )


def test_an_option_that_a_backend_does_not_know_is_refused() -> None:
    address = parse_address("ring:?capacity=5")
    assert read_options(address, "capacity") == {"capacity": "5"}
    with pytest.raises(InvalidSetting, match="has no option capacity: it has size"):
        read_options(address, "size")
