"""What is looked up instead of compared: nothing that a comparison with everything would find is missed."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo import Entry
from ricordo.curation import CandidateEntry, ConsolidationConfig, ConsolidationInput, propose
from ricordo.curation.claims import ParsedStatement, claimed_attributes, parse_statement, statement_words
from ricordo.curation.conflicts import replaces, says_the_same
from ricordo.curation.contradictions import RelatedEntryIndex
from ricordo.curation.importance import CORRECTION_TAG
from ricordo.curation.memory_document import DocumentPart, MemoryDocument, parse_memory_document
from ricordo.language.duplicates import StatementIndex

BEGAN = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)
DUPLICATE = 0.8
SENTENCES = (
    "We use {a} for the {b} of the {c}.",
    "We migrated the {b} from {a} to {d}.",
    "The {b} of the {c} listens on port {n}.",
    "The {b} of the {c} now listens on port {n}, not {m}.",
    "We no longer use {a} for the {b}.",
    "Never deploy the {c} on {a}.",
    "Ben lives in {a}.",
    "Ben moved to {a}.",
    "The {b} is due on the {n}th, sorry, not the {m}th.",
    "The {b} of the {c} is {a} and the {b}s are {d}.",
    "{a} {b} {c}",
    "不要用{a}，改用{d}",
    "注文の担当は{a}です。",
)
WORDS = ("PostgreSQL", "MySQL", "Tuesday", "Friday", "parcel", "parcels", "gateway", "gateways", "ledger", "Hamburg")


def entry(number: int, text: str, *, corrects: bool = False) -> Entry:
    return Entry(
        content=text,
        id=f"{number:026d}",
        time=BEGAN + timedelta(minutes=number),
        tags=(CORRECTION_TAG,) if corrects else (),
    )


@st.composite
def memories(draw: st.DrawFn) -> list[Entry]:
    picked = random.Random(draw(st.integers(0, 10**6)))
    found = []
    for number in range(draw(st.integers(2, 25))):
        text = picked.choice(SENTENCES).format(
            **{key: picked.choice(WORDS) for key in "abcd"}, n=picked.randint(1, 3), m=picked.randint(1, 3)
        )
        found.append(entry(number, text, corrects=picked.random() < 0.2))
    return found


@pytest.mark.req("HE-C3")
@given(known=memories())
def test_no_memory_that_says_the_same_or_is_set_aside_is_missed(known: Sequence[Entry]) -> None:
    *held, new = known
    nearby = RelatedEntryIndex(DUPLICATE)
    for each in held:
        nearby.add(each)
    same = {each.id for each in held if says_the_same(new, each, duplicate=DUPLICATE)}
    rivals = {each.id for each in held if replaces(new, each)}
    assert same <= nearby.find_same(new)
    assert rivals <= nearby.find_rivals(new)


@given(known=memories())
def test_an_older_memory_finds_what_took_its_place_before_it_came(known: Sequence[Entry]) -> None:
    old, *held = known
    nearby = RelatedEntryIndex(DUPLICATE)
    for each in held:
        nearby.add(each)
    assert {each.id for each in held if replaces(each, old)} <= nearby.find_rivals(old)


@given(known=memories())
def test_what_comes_after_a_question_is_found_by_the_next_one(known: Sequence[Entry]) -> None:
    nearby = RelatedEntryIndex(DUPLICATE)
    held: list[Entry] = []
    for new in known:
        for about in (new, known[0]):
            others = [each for each in held if each.id != about.id]
            later = {each.id for each in others if replaces(each, about) and each.id > about.id}
            assert {each.id for each in others if says_the_same(about, each, duplicate=DUPLICATE)} <= nearby.find_same(
                about
            )
            assert {each.id for each in others if replaces(about, each)} | later <= nearby.find_rivals(about)
        nearby.add(new)
        held.append(new)


def test_a_word_that_comes_later_is_found_by_one_that_was_asked_about_before() -> None:
    index = StatementIndex(DUPLICATE)
    index.add("1", "Write every commit message in the imperative.")
    assert index.find_candidates("Write every commit message in the imperative.") == {"1"}
    index.add("2", "Write every comit mesage in the imperativ.")
    assert index.find_candidates("Write every commit message in the imperative.") == {"1", "2"}


@given(known=memories())
def test_attributes_and_words_that_are_told_alone_are_those_of_the_whole_reading(known: Sequence[Entry]) -> None:
    for each in known:
        reading = parse_statement(each.content)
        assert claimed_attributes(each.content) >= {claim.attribute for claim in reading.claims if claim.attribute}
        assert statement_words(each.content) == reading.words | reading.numbers


def test_a_few_new_memories_do_not_have_all_the_others_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def counted(text: str) -> ParsedStatement:
        read.append(text)
        return parse_statement(text)

    for module in ("contradictions", "claims"):
        monkeypatch.setattr(f"ricordo.curation.{module}.parse_statement", counted)
    nearby = RelatedEntryIndex(DUPLICATE)
    for number in range(200):
        nearby.add(entry(number, f"The service called s{number} belongs to team {number % 7} of the company."))
    for number in range(300, 305):
        nearby.find_same(entry(number, f"The parcel {number} is in Hamburg."))
        nearby.find_rivals(entry(number, f"The parcel {number} is in Hamburg."))
    assert len(read) < 50


def test_the_same_words_in_other_forms_are_found() -> None:
    nearby = RelatedEntryIndex(DUPLICATE)
    nearby.add(entry(1, "Please always write commit messages in the imperative."))
    nearby.add(entry(2, "The retro is on Fridays."))
    assert nearby.find_same(entry(3, "Always write the commit mesages in the imperative.")) == {entry(1, "x").id}


def test_few_of_many_memories_are_compared() -> None:
    nearby = RelatedEntryIndex(DUPLICATE)
    for number in range(500):
        nearby.add(entry(number, f"The service called s{number} belongs to team {number % 7} of the company."))
    new = entry(501, "The service called s77 belongs to team 0 of the company.")
    assert len(nearby.find_same(new)) <= 500 // 7 + 1
    assert len(nearby.find_rivals(new)) < 20


@pytest.mark.parametrize("count", [400])
def test_a_first_run_over_many_memories_asks_about_few_pairs(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0

    def counted(left: Entry, right: Entry, *, duplicate: float) -> bool:
        nonlocal asked
        asked += 1
        return says_the_same(left, right, duplicate=duplicate)

    monkeypatch.setattr("ricordo.curation.reconciliation.says_the_same", counted)
    picked = random.Random(1)
    words = ["".join(picked.choices("abcdefghijklmnop", k=6)) for _ in range(count)]
    fresh = [
        CandidateEntry(
            entry=entry(number, f"The {picked.choice(words)} of the {words[number]} keeps the {picked.choice(words)}.")
        )
        for number in range(count)
    ]
    proposal = propose(ConsolidationInput(fresh=fresh), ConsolidationConfig())
    assert len(proposal.kept) == count
    assert asked < 2 * count


@given(ranks=st.lists(st.integers(0, 50), unique=True, max_size=12), there=st.lists(st.integers(0, 50), max_size=12))
def test_a_sheet_that_grows_at_once_is_as_if_each_part_were_inserted(ranks: list[int], there: list[int]) -> None:
    document = "# Memory\n\n## Facts\n\n" + "".join(f"- fact {rank}\n" for rank in there) + "\n## Notes\n\n- other\n"
    sheet = parse_memory_document(document.encode(), "MEMORY.md")
    new = [DocumentPart(data=f"- fact {rank}\n".encode(), section="Facts") for rank in sorted(ranks, reverse=True)]
    one_by_one = sheet
    for part in new:
        one_by_one = one_by_one.insert(part, lambda old, part=part: is_before(part, old))  # type: ignore[misc]
    assert sheet.insert_all(new, is_before) == one_by_one


def test_parts_that_go_behind_a_last_line_without_its_end_have_lines_of_their_own() -> None:
    sheet = MemoryDocument(parse_memory_document(b"## Facts\n\n- fact 9", "MEMORY.md").parts)
    new = [DocumentPart(data=f"- fact {rank}\n".encode(), section="Facts") for rank in (3, 2)]
    assert sheet.insert_all(new, is_before).data == b"## Facts\n\n- fact 9\n- fact 3\n- fact 2\n"


def is_before(new: DocumentPart, old: DocumentPart) -> bool:
    return old.data.startswith(b"- fact ") and int(old.data[7:]) < int(new.data[7:])
