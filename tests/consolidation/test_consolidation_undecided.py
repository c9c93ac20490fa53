"""Two memories that can't both hold and of which no rule says which: both stay, and say so until it is decided."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo import Entry
from ricordo.curation import CandidateEntry, ConsolidationConfig, ConsolidationInput, propose
from ricordo.curation.conflicts import contradict, is_opposed, stance
from ricordo.curation.contradictions import move_together
from ricordo.curation.memory_document import parse_memory_document
from ricordo.curation.types import Advice, Proposal, Supersession
from ricordo.scope import Scope
from ricordo.workspace import MEMORY_PATH, Author, parse_entries, parse_entry, render_entry
from ricordo.workspace.entry import CONTRADICTS_FIELD, contradicted_ids, find_contradictions, replace_fields
from ricordo.workspace.entry_codec import inline_fields

pytestmark = pytest.mark.req("FC-CONFLICT")

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
LEDGER = "workspace/memory/2026-11-21.md"
CONFIG = ConsolidationConfig()

NEVER, ALWAYS = "We never deploy on Fridays.", "We always deploy on Fridays."
CONTRADICTING = [
    (NEVER, ALWAYS),
    ("The staging API listens on port 8080.", "The staging API listens on port 9090."),
    ("Our database is MySQL.", "Our database is PostgreSQL."),
    ("User works at Siemens.", "User works at Bosch."),
    ("User likes cilantro.", "User dislikes cilantro."),
    ("The cache is enabled.", "The cache is disabled."),
    ("Commit messages must be signed.", "Commit messages must not be signed."),
    ("Wir deployen freitags.", "Wir deployen freitags nicht."),
    ("The user can swim.", "The user can't swim."),
    ("Deploy with Docker.", "Deploy without Docker."),
]
BOTH_MAY_HOLD = [
    ("We use PostgreSQL for orders.", "We use MySQL for billing."),
    ("The staging API listens on port 8080.", "The admin API listens on port 9090."),
    ("User works at Siemens.", "User's wife works at Bosch."),
    ("We did not deploy on Friday.", "We deployed on Friday."),
    ("The user can't swim.", "The user's son can swim."),
    ("We deploy on Fridays.", "We don't only deploy on Fridays."),
    ("No, we deploy on Fridays.", "We deploy on Fridays."),
    ("Is the cache enabled?", "The cache is disabled."),
    ("We don't use Redux yet.", "We use Redux."),
    ("Peter joined Bosch in 2019.", "Peter joined Siemens in 2023."),
    ("Ana likes Bo.", "Bo dislikes Ana."),
    ("Use tabs in Makefiles.", "Use spaces in Python files."),
    ("We use npm.", "We use pip."),
    (NEVER, NEVER),
]


def entry(number: int, content: str, by: Author = "flush", *, minutes: int | None = None, **more: object) -> Entry:
    moment = NOW + timedelta(minutes=number if minutes is None else minutes)
    return Entry(content=content, id=f"{number:026}", by=by, time=moment, confidence=0.9, **more)  # type: ignore[arg-type]


def material(*entries: Entry, documents: dict[str, bytes] | None = None, **more: object) -> ConsolidationInput:
    ledger = "".join(map(render_entry, entries)).encode("utf-8", "surrogatepass")
    fresh = [CandidateEntry(entry=one) for one in entries]
    return ConsolidationInput(documents=documents or {}, ledgers={LEDGER: ledger}, fresh=fresh, **more)  # type: ignore[arg-type]


def after(made: Proposal, before: dict[str, bytes] | None = None) -> dict[str, bytes]:
    changed = {path: data for path, data in made.documents.items() if path != LEDGER}
    return {path: data for path, data in {**(before or {}), **changed}.items() if data is not None}


def memory(documents: dict[str, bytes]) -> list[Entry]:
    return [found.entry for found in parse_entries(documents.get(MEMORY_PATH, b""), MEMORY_PATH)]


def links(documents: dict[str, bytes]) -> dict[str, tuple[str, ...]]:
    return {one.id: contradicted_ids(one) for one in memory(documents) if contradicted_ids(one)}


def ids(*entries: Entry) -> tuple[str, ...]:
    return tuple(one.id for one in entries)


@pytest.mark.parametrize(("one", "other"), CONTRADICTING)
def test_one_attribute_of_one_subject_with_two_values_is_a_contradiction_from_either_side(one: str, other: str) -> None:
    assert contradict(entry(2, other), entry(1, one)) or contradict(entry(2, one), entry(1, other))


@pytest.mark.req("FC-CONFLICT")
@pytest.mark.parametrize(("one", "other"), BOTH_MAY_HOLD)
def test_another_subject_part_or_time_is_no_contradiction(one: str, other: str) -> None:
    assert not contradict(entry(2, other), entry(1, one))
    assert not contradict(entry(2, one), entry(1, other))


@given(st.sampled_from([text for pair in (*CONTRADICTING, *BOTH_MAY_HOLD) for text in pair]), st.text(max_size=30))
def test_being_opposed_is_mutual_and_no_text_is_opposed_to_itself(text: str, noise: str) -> None:
    other = f"{text} {noise}"
    assert is_opposed(text, other) == is_opposed(other, text)
    assert not is_opposed(other, other)
    assert stance(other) is None or stance(other) == stance(other.upper()) or not other.isascii()


@pytest.mark.req("FC-CONFLICT")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(entry(1, NEVER), entry(2, ALWAYS), id="yes after no, without a word of a change"),
        pytest.param(
            entry(1, "The deadline is 3 May.", minutes=5),
            entry(2, "The deadline is 10 May.", minutes=5),
            id="one moment",
        ),
        pytest.param(
            entry(1, "The deadline is 3 May.", "user", scope=Scope(user="ana")),
            entry(2, "The deadline is 10 May.", "user", scope=Scope(user="bo")),
            id="two people",
        ),
        pytest.param(
            entry(1, "The deadline is 3 May.", "user"),
            entry(2, "The deadline is 10 May."),
            id="saved, then only inferred",
        ),
        pytest.param(
            entry(1, "The deadline is 3 May.", "hand"),
            entry(2, "The deadline is 10 May.", "user"),
            id="by a person's hand",
        ),
    ],
)
def test_what_no_rule_decides_stays_and_both_lines_name_each_other_side_by_side(old: Entry, new: Entry) -> None:
    between = [entry(number, f"Ana likes {tea} tea.") for number, tea in ((7, "green"), (8, "black"))]
    made = propose(material(old, *between, new), CONFIG)
    assert made.superseded == ()
    assert made.undecided == (ids(old, new),)
    documents = after(made)
    assert links(documents) == {old.id: (new.id,), new.id: (old.id,)}
    order = [one.id for one in memory(documents)]
    assert abs(order.index(old.id) - order.index(new.id)) == 1
    assert propose(ConsolidationInput(documents=documents, ledgers={LEDGER: b""}), CONFIG).documents == {}


@pytest.mark.req("FC-CONFLICT")
@pytest.mark.parametrize(
    ("movable", "order"),
    [("1", "23456718"), ("8", "18234567"), ("18", "18234567"), ("234567", "12345678"), ("", "12345678")],
)
def test_of_two_that_contradict_each_other_the_one_that_may_move_moves_to_the_other(movable: str, order: str) -> None:
    rows = {name: entry(int(name), f"Row {name}.") for name in "12345678"}
    sheet = parse_memory_document("".join(render_entry(row) for row in rows.values()).encode(), MEMORY_PATH)
    links = {rows["1"].id: (rows["8"].id,), rows["8"].id: (rows["1"].id,)}
    moved = move_together(sheet, links, {rows[name].id for name in movable})
    assert [one.content for one in moved.entries] == [f"Row {name}." for name in order]


def test_of_three_that_contradict_each_other_all_stand_side_by_side() -> None:
    rows = [entry(number, f"Row {number}.") for number in range(1, 9)]
    sheet = parse_memory_document("".join(map(render_entry, rows)).encode(), MEMORY_PATH)
    three = [rows[0].id, rows[4].id, rows[7].id]
    links = {name: tuple(other for other in three if other != name) for name in three}
    order = [one.id for one in move_together(sheet, links, set(ids(*rows))).entries]
    places = sorted(order.index(name) for name in three)
    assert places == [*range(places[0], places[0] + 3)]


@pytest.mark.req("FC-CONFLICT")
@pytest.mark.parametrize(("one", "other"), BOTH_MAY_HOLD[:12])
def test_what_is_about_something_else_is_neither_replaced_nor_marked(one: str, other: str) -> None:
    rows = (entry(1, one, "user", minutes=5), entry(2, other, "user", minutes=5))
    made = propose(material(*rows), CONFIG)
    assert (made.superseded, made.undecided, links(after(made))) == ((), (), {})


@pytest.mark.req("FC-CONFLICT")
@pytest.mark.parametrize("told", ["We moved the deadline from 3 May to 10 May.", "The deadline is now 10 May."])
def test_an_announced_change_is_decided_by_whom_and_when_it_is_said(told: str) -> None:
    old = entry(1, "The deadline is 3 May.", "user", scope=Scope(user="ana"))
    made = propose(material(old, entry(2, told, "user", scope=Scope(user="bo"))), CONFIG)
    assert ([one.old for one in made.superseded], made.undecided) == ([old.id], ())


@pytest.mark.req("FC-CONFLICT", "HE-O-conflict", "HE-C3")
def test_a_newer_statement_of_the_same_person_still_wins() -> None:
    old, new = entry(1, "The deadline is 3 May.", "user"), entry(2, "The deadline is 10 May.", "user")
    made = propose(material(old, new), CONFIG)
    assert (made.superseded, made.undecided) == ((Supersession(old=old.id, new=new.id),), ())


@pytest.mark.req("FC-CONFLICT")
@pytest.mark.parametrize(
    "old",
    [
        replace(entry(1, NEVER, "user"), pinned=True),
        entry(1, NEVER, "hand"),
        replace(entry(1, NEVER, "user"), rule="deny shell(deploy*)"),
    ],
    ids=["pinned", "by hand", "a rule"],
)
def test_what_a_person_keeps_is_not_replaced_by_what_somebody_confirms(old: Entry) -> None:
    new = replace(entry(2, ALWAYS, "user"), confirmed=NOW + timedelta(hours=1))
    made = propose(material(old, new), CONFIG)
    assert (made.superseded, made.undecided) == ((), (ids(old, new),))


def _standing(*rows: Entry) -> dict[str, bytes]:
    return after(propose(material(*rows), CONFIG))


def _edited(documents: dict[str, bytes], old: str, new: str) -> dict[str, bytes]:
    return {**documents, MEMORY_PATH: documents[MEMORY_PATH].replace(old.encode(), new.encode())}


def test_the_marker_goes_with_its_reason() -> None:
    one, other = entry(1, NEVER), entry(2, ALWAYS)
    both = _standing(one, other)
    line = next(line for line in both[MEMORY_PATH].split(b"\n") if f"^{other.id}".encode() in line)
    without = {**both, MEMORY_PATH: both[MEMORY_PATH].replace(line + b"\n", b"")}
    for documents in (without, _edited(both, ALWAYS, "We deploy whenever we like.")):
        made = propose(ConsolidationInput(documents=documents), CONFIG)
        assert links(after(made, documents)) == {}
        assert made.undecided == ()
    gone = propose(ConsolidationInput(documents=both, forgotten={one.id}), CONFIG)
    assert ids(*memory(after(gone, both))) == (other.id,)
    assert links(after(gone, both)) == {}


def test_what_a_person_confirms_takes_the_place_of_the_other() -> None:
    one, other = entry(1, NEVER), entry(2, ALWAYS)
    for right, wrong in ((one, other), (other, one)):
        both = _standing(one, other)
        holding = replace(right, confirmed=NOW + timedelta(hours=1), extra=(("contradicts", wrong.id),))
        document = b"# Memory\n\n## Facts\n\n" + "".join(map(render_entry, (holding, wrong))).encode()
        ledger = {LEDGER: "".join(map(render_entry, (one, other))).encode()}
        made = propose(ConsolidationInput(documents={**both, MEMORY_PATH: document}, ledgers=ledger), CONFIG)
        assert made.superseded == (Supersession(old=wrong.id, new=right.id),)
        assert (ids(*memory(after(made))), links(after(made)), made.undecided) == ((right.id,), {}, ())
        assert b"[successor:: " + right.id.encode() in (made.documents[LEDGER] or b"")


def test_where_a_person_confirms_both_both_hold() -> None:
    rows = [
        replace(entry(number, text), confirmed=NOW + timedelta(hours=1)) for number, text in ((1, NEVER), (2, ALWAYS))
    ]
    linked = [replace(one, extra=(("contradicts", other.id),)) for one, other in zip(rows, rows[::-1], strict=True)]
    document = {MEMORY_PATH: b"# Memory\n\n## Facts\n\n" + "".join(map(render_entry, linked)).encode()}
    made = propose(ConsolidationInput(documents=document), CONFIG)
    assert (made.superseded, made.undecided) == ((), ())
    assert ids(*memory(after(made))) == ids(*rows)
    assert links(after(made)) == {}


def test_a_confirmation_from_before_the_other_was_said_decides_nothing() -> None:
    one = replace(entry(1, NEVER), confirmed=NOW + timedelta(minutes=1, seconds=1))
    made = propose(material(one, entry(2, ALWAYS)), CONFIG)
    assert (made.superseded, len(made.undecided)) == ((), 1)


def test_a_persons_own_line_is_not_touched_where_the_other_line_can_tell() -> None:
    pinned = render_entry(entry(1, NEVER, "user", pinned=True)).encode()
    by_hand = b"- The deadline is 3 May.\n"
    document = {MEMORY_PATH: b"# Memory\n\n## Facts\n\n" + pinned + by_hand}
    said = [entry(2, ALWAYS, "user"), entry(3, "The deadline is 10 May.", "user")]
    made = propose(material(*said, documents=document), CONFIG)
    lines = inline_fields(after(made)[MEMORY_PATH])
    assert pinned in lines
    assert by_hand in lines
    assert len(made.undecided) == 2
    assert {one: len(others) for one, others in links(after(made)).items()} == {said[0].id: 1, said[1].id: 1}
    assert len(find_contradictions(memory(after(made)))) == 4


def test_of_two_pinned_lines_each_names_the_other_and_keeps_every_other_byte() -> None:
    rows = [entry(1, NEVER, "user", pinned=True), entry(2, ALWAYS, "user", pinned=True)]
    plain = ["".join(render_entry(one)) for one in rows]
    document = {MEMORY_PATH: ("# Memory\n\n## Facts\n\n" + "".join(plain)).encode()}
    made = propose(ConsolidationInput(documents=document, deep=True), CONFIG)
    assert links(after(made)) == {rows[0].id: (rows[1].id,), rows[1].id: (rows[0].id,)}
    bare = inline_fields(after(made)[MEMORY_PATH]).decode().replace(f"[contradicts:: {rows[1].id}] ", "")
    assert bare.replace(f"[contradicts:: {rows[0].id}] ", "").encode() == document[MEMORY_PATH]


def test_a_model_may_decide_what_the_rules_left_open() -> None:
    one, other = entry(1, NEVER), entry(2, ALWAYS)
    both = _standing(one, other)
    ledger = {LEDGER: "".join(map(render_entry, (one, other))).encode()}
    advice = Advice(superseded=(Supersession(old=one.id, new=other.id),))
    made = propose(ConsolidationInput(documents=both, ledgers=ledger), CONFIG, advice)
    assert made.superseded == advice.superseded
    assert (links(after(made)), made.undecided) == ({}, ())


@given(
    st.lists(
        st.tuples(
            st.sampled_from([text for pair in CONTRADICTING for text in pair] + ["Ana likes tea.", "word " * 40]),
            st.sampled_from(["user", "flush", "hand"]),
            st.booleans(),
            st.integers(0, 2),
            st.sampled_from(["ana", "bo"]),
        ),
        max_size=10,
    )
)
def test_every_link_has_its_other_end_and_nothing_is_lost_by_it(
    rows: Sequence[tuple[str, Author, bool, int, str]],
) -> None:
    said = [
        entry(number, text, by, minutes=minute, pinned=pinned, scope=Scope(user=user))
        for number, (text, by, pinned, minute, user) in enumerate(rows)
    ]
    made = propose(material(*said), CONFIG)
    found = {one.entry.id: one.entry for path, data in after(made).items() for one in parse_entries(data, path)}
    ends = {(name, other) for name, one in found.items() for other in contradicted_ids(one)}
    assert {other for _, other in ends} <= found.keys()
    pairs = {frozenset(pair) for pair in made.undecided}
    assert {frozenset(pair) for pair in ends} == pairs
    replaced = {one.old for one in made.superseded}
    assert not replaced & {name for pair in pairs for name in pair}
    assert {one.id for one in said} <= found.keys() | replaced | set(made.merged) | set(made.left)


IDS = st.lists(st.integers(0, 99).map(lambda number: f"{number:026}"), max_size=3, unique=True)


@given(st.text(min_size=1, max_size=60).filter(str.strip), IDS, IDS, st.booleans())
def test_relinking_changes_the_names_and_no_other_byte(
    text: str, one: list[str], other: list[str], pinned: bool
) -> None:
    bare = Entry(content=text, id="0" * 26, pinned=pinned, extra=(("merged", "x"),))
    bullet = render_entry(bare).encode("utf-8", "surrogatepass")
    linked = replace_fields(bullet, bare, [CONTRADICTS_FIELD], [(CONTRADICTS_FIELD, ",".join(one))] if one else [])
    read = parse_entry(linked.decode("utf-8", "surrogatepass"))
    assert (contradicted_ids(read), read.content) == (tuple(one), bare.content)
    fields = [(CONTRADICTS_FIELD, ",".join(other))] if other else []
    again = replace_fields(linked, read, [CONTRADICTS_FIELD], fields)
    assert again == replace_fields(bullet, bare, [CONTRADICTS_FIELD], fields)
    assert replace_fields(again, parse_entry(again.decode("utf-8", "surrogatepass")), [CONTRADICTS_FIELD], ()) == bullet
