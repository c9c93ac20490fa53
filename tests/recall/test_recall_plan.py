"""Ranking and quoting, from values alone."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ricordo import Entry
from ricordo.search import Chunk, Hit, Match, RecallConfig
from ricordo.search import ranking as folding
from ricordo.search.answer import choose_quote
from ricordo.search.contract import Explanation, Passage
from ricordo.search.query_context import holds_expected, parse_question
from ricordo.search.ranking import explain, rank
from ricordo.workspace import Source as Origin
from ricordo.workspace import render_entry
from ricordo.workspace.entry import EntryState

if TYPE_CHECKING:
    from ricordo.search.contract import DocumentType

NOW = datetime(2026, 11, 22, tzinfo=UTC)


def memory(
    content: str, near: float, *, kind: str = "fact", days: int = 10, number: int = 0, state: EntryState = "active",
    pinned: bool = False, nearness: int = 0, messages: tuple[str, ...] = (),
) -> Passage:  # fmt: skip
    """Return an entry of a ledger that was found with this nearness."""
    entry = Entry(
        content=content, kind=kind, id=f"01jd{number:022d}", time=NOW - timedelta(days=days), state=state,
        pinned=pinned, source=Origin(session="s1" if messages else None, messages=messages),
    )  # fmt: skip
    chunk = Chunk(
        path="workspace/memory/2026-11-21.md", line_number=number + 3, end_line=number + 3, content=content,
        document_type="ledger", markup=render_entry(entry), entry_id=entry.id, kind=kind, time=entry.time,
    )  # fmt: skip
    return passage(chunk, near, nearness=nearness)


def message(
    content: str, near: float, *, speaker: str = "user", session: str = "s1", line: int = 1, days: int = 10
) -> Passage:
    """Return a line of a transcript that was found with this nearness."""
    sort: DocumentType = "transcript"
    chunk = Chunk(
        path=f"workspace/agents/main/sessions/{session}.log.jsonl", line_number=line, end_line=line, content=content,
        document_type=sort, kind="message", session=session, message=f"{session}-{line}", speaker=speaker,
        time=NOW - timedelta(days=days),
    )  # fmt: skip
    return passage(chunk, near)


def passage(chunk: Chunk, near: float, *, nearness: int = 0) -> Passage:
    match = Match(
        path=chunk.path, line_number=chunk.line_number, end_line=chunk.end_line, content=chunk.content, rank=1,
        score=near, chunk=chunk, matched_words=("deploy",), signals={"bm25": near, "context": near, "coverage": near},
    )  # fmt: skip
    return Passage(label="project" if not nearness else "user", source_rank=nearness, match=match)


def ranked(*passages: Passage, question: str = "deploy", limit: int = 10) -> list[Hit]:
    return rank(passages, parse_question(question), limit=limit, now=NOW, config=RecallConfig())


def contents(hits: list[Hit]) -> list[str]:
    return [hit.entry.content for hit in hits]


def test_the_nearer_passage_comes_first_and_the_limit_is_kept() -> None:
    hits = ranked(memory("Far.", 0.2), memory("Near.", 0.6, number=1), memory("Between.", 0.4, number=2), limit=2)
    assert contents(hits) == ["Near.", "Between."]
    assert 1 >= hits[0].score > hits[1].score > 0


@pytest.mark.req("HE-C7-ties")
def test_of_equals_the_newer_comes_first_then_the_narrower_source() -> None:
    hits = ranked(
        memory("Old one.", 0.5, days=100), memory("Fresh two.", 0.5, days=1, number=1),
        memory("Wide three.", 0.5, days=100, number=2, nearness=1),
    )  # fmt: skip
    assert contents(hits) == ["Fresh two.", "Old one.", "Wide three."]


@pytest.mark.req("HE-C7-ties")
def test_of_equal_scores_the_newer_comes_first_in_whatever_order_they_were_found() -> None:
    # what is pinned does not age, so these differ in nothing but their time
    ages = {"Alder.": 3, "Birch.": 900, "Cedar.": 1, "Dogwood.": 40}
    rows = [
        memory(text, 0.5, days=days, pinned=True, number=at, nearness=at % 3)
        for at, (text, days) in enumerate(ages.items())
    ]
    for found in (rows, rows[::-1], rows[2:] + rows[:2]):
        hits = ranked(*found)
        assert len({hit.score for hit in hits}) == 1
        assert contents(hits) == ["Cedar.", "Alder.", "Dogwood.", "Birch."]


def test_a_memory_goes_before_a_message_that_is_as_near() -> None:
    assert contents(ranked(message("We deploy from main.", 0.5), memory("Deploys go from main.", 0.5)))[0].startswith(
        "Deploys"
    )


@pytest.mark.req("HE-O-conflict")
def test_the_newer_of_two_decisions_on_one_subject_wins_though_the_older_is_a_little_nearer() -> None:
    old = memory("We deploy the shop from branch main on Monday.", 0.50, kind="decision", days=30)
    new = memory("We deploy the shop from branch release on Monday.", 0.45, kind="decision", days=2, number=1)
    assert contents(ranked(old, new))[0] == new.match.content
    assert contents(ranked(new, old))[0] == new.match.content


@pytest.mark.req("HE-C7")
def test_a_newer_memory_on_something_else_does_not_jump_ahead() -> None:
    old = memory("We deploy the shop from branch main.", 0.50, kind="decision", days=30)
    other = memory("Deploy notes are written by Priya.", 0.48, kind="decision", days=2, number=1)
    assert contents(ranked(old, other))[0] == old.match.content


@pytest.mark.req("HE-O-conflict")
def test_superseded_memories_are_left_out_and_retired_ones_are_not() -> None:
    hits = ranked(memory("Gone.", 0.9, state="superseded"), memory("Retired.", 0.5, state="retired", number=1))
    assert contents(hits) == ["Retired."]


@pytest.mark.req("HE-O-conflict")
@given(
    st.lists(st.tuples(st.floats(0.05, 1), st.none() | st.integers(0, 6)), min_size=1, max_size=7),
    st.lists(st.booleans(), min_size=7, max_size=7),
)
def test_whatever_supersedes_what_nothing_ranks_above_its_successor_and_what_is_quoted_holds(
    rows: list[tuple[float, int | None]], found: list[bool]
) -> None:
    ids = [f"01jd{number:022d}" for number in range(7)]
    passages = []
    for number, (near, older) in enumerate(rows):
        stored = memory(f"Fact number{number} stands alone.", near, days=20 - number, number=number)
        entry = Entry(
            content=stored.match.content, id=ids[number], time=NOW - timedelta(days=20 - number),
            supersedes=None if older is None else ids[older],
        )  # fmt: skip
        passages.append(passage(replace(stored.match.chunk, document_type="curated", markup=render_entry(entry)), near))
    searched = [each for each, is_found in zip(passages, found, strict=False) if is_found]
    hits = rank(searched, parse_question("deploy"), limit=20, now=NOW, config=RecallConfig(), curated=passages)
    at = {hit.entry.id: number for number, hit in enumerate(hits)}
    assert len(at) == len(hits) >= len(searched)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert all(at[hit.superseded_by] < number for number, hit in enumerate(hits) if hit.superseded_by in at)
    chosen = choose_quote(hits, "deploy", RecallConfig())
    assert (chosen is None) == (not searched)
    assert chosen is None or not chosen[0].superseded_by


def test_repetitions_and_pieces_of_one_message_are_one_hit() -> None:
    hits = ranked(
        memory("Deploys go out from main only.", 0.5), message("Deploys go out from main only!", 0.5, line=4),
        message("A long message, first piece.", 0.4, line=5),
        message("A long message, another part of it.", 0.39, line=5),
    )  # fmt: skip
    assert contents(hits) == ["Deploys go out from main only.", "A long message, first piece."]


_WORDS = ["number", "of", "one", "two", "gull", "crane", "1", "2", "3", "4"]
_SAYING = st.tuples(
    st.lists(st.sampled_from(_WORDS), min_size=1, max_size=5).map(" ".join),
    st.sampled_from([".", "?"]),
    st.booleans(),
    st.integers(0, 3),
    st.sampled_from(["fact", "decision"]),
)


@given(st.lists(_SAYING, min_size=10, max_size=40))
@settings(max_examples=8)
def test_of_many_the_same_are_folded_as_when_every_pair_is_compared(
    sayings: list[tuple[str, str, bool, int, str]],
) -> None:
    found = [
        memory(f"{text}{end}", 0.8, kind=kind, days=days, number=number)
        if is_memory
        else message(f"{text}{end}", 0.8, line=number, days=days)
        for number, (text, end, is_memory, days, kind) in enumerate(sayings)
    ]

    def ranking(few: int) -> Explanation:
        with mock.patch.object(folding, "_FEW", few):
            return explain(
                found, parse_question("deploy"), limit=100, now=NOW, config=RecallConfig(), rejected=len(found)
            )

    assert ranking(few=1) == ranking(few=len(found))


@pytest.mark.req("HE-C7", "CC-HALFLIFE")
def test_a_pinned_memory_does_not_age() -> None:
    hits = ranked(memory("Aged.", 0.5, days=4000), memory("Pinned.", 0.5, days=4000, pinned=True, number=1))
    assert contents(hits) == ["Pinned.", "Aged."]
    assert hits[0].signals["recency"] == 1.0


@pytest.mark.req("HE-C7", "CC-AGE", "CC-HALFLIFE")
@pytest.mark.parametrize(
    ("kind", "days"),
    [
        ("preference", 365), ("convention", 180), ("lesson", 180), ("fact", 120), ("decision", 120), ("recipe", 120),
        ("goal", 45),
    ],
)  # fmt: skip
def test_a_memory_counts_half_after_the_half_life_of_its_kind(kind: str, days: int) -> None:
    assert ranked(memory("Something.", 0.5, kind=kind, days=days))[0].signals["recency"] == pytest.approx(0.5)


def test_what_the_one_who_is_asked_about_said_goes_first() -> None:
    passages = (
        message("I like tea.", 0.5, speaker="Ines", line=1),
        message("I like beer.", 0.5, speaker="Priya", line=9),
    )
    assert contents(ranked(*passages, question="What does Priya like?"))[0] == "I like beer."
    assert contents(ranked(*passages, question="What does Ines like?"))[0] == "I like tea."
    both = ranked(*passages, question="What do Ines and Priya like?")
    assert [hit.signals["speaker"] for hit in both] == [0.0, 0.0]


@pytest.mark.parametrize(
    ("question", "about"),
    [
        ("What did Priya say to Ines about beer?", "Priya"),
        ("What does Ines think of Priya's tea?", "Ines"),
        ("Which tool did Priya take?", "Priya"),
        ("Which tool was it?", "tool"),
        ("What do Ines & Priya drink?", ""),
        ("Was trinken Ines und Priya?", ""),
    ],
)
def test_of_several_who_are_named_the_first_is_asked_about_unless_they_are_as_one(question: str, about: str) -> None:
    said = [message("Tea or beer.", 0.5, speaker=who, line=at) for at, who in enumerate(("Ines", "Priya", "tool"), 1)]
    found = {hit.speaker for hit in ranked(*said, question=question) if hit.signals["speaker"]}
    assert found == ({about} if about else set())


def test_good_company_in_a_session_lifts_a_passage() -> None:
    alone = message("Lonely.", 0.4, session="s1")
    company = [message(f"Company {number}.", 0.4, session="s2", line=number) for number in range(1, 4)]
    asked = "Why did the nightly deploy of the shop fail in staging?"
    assert contents(ranked(alone, *company, question=asked))[-1] == "Lonely."


@pytest.mark.req("FC-WHY")
def test_a_passage_is_shown_as_an_entry_that_says_where_it_comes_from() -> None:
    hit = ranked(message("We deploy on Monday.", 0.5, speaker="assistant", line=7))[0]
    assert (hit.entry.kind, hit.entry.by, hit.entry.source.session, hit.entry.source.messages) == (
        "message", "agent", "s1", ("s1-7",),
    )  # fmt: skip
    assert (hit.path, hit.line_number, hit.source) == ("workspace/agents/main/sessions/s1.log.jsonl", 7, "project")
    assert "has deploy" in hit.explanation
    assert "10 days ago" in hit.explanation


def test_an_entry_comes_back_whole() -> None:
    assert ranked(memory("Exactly this.", 0.5, kind="lesson", number=5))[0].entry == Entry(
        content="Exactly this.", kind="lesson", id=f"01jd{5:022d}", time=NOW - timedelta(days=10)
    )


@pytest.mark.req("HE-C7-ties")
@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 400), st.booleans()), max_size=12), st.randoms())
def test_the_order_does_not_depend_on_the_order_of_the_passages(
    rows: list[tuple[float, int, bool]], random: object
) -> None:
    import random as chance

    passages = [
        memory(f"Fact number{at} stands alone.", near, days=days, number=at)
        if stored
        else message(f"Word number{at} was said.", near, days=days, line=at + 1)
        for at, (near, days, stored) in enumerate(rows)
    ]
    before = contents(ranked(*passages))
    assert isinstance(random, chance.Random)
    random.shuffle(passages)
    assert contents(ranked(*passages)) == before
    assert all(0 <= hit.score <= 1 for hit in ranked(*passages))


@pytest.mark.parametrize(
    ("question", "expected", "answer", "other"),
    [
        ("When did we move?", "time", "We moved on 2026-10-05.", "We moved house."),
        ("Wann war der Umzug?", "time", "Am 5. Oct 2026.", "Er war gut."),
        ("How many days is the window?", "number", "It is 45 days.", "It is open."),
        ("Where do the fixtures live?", "place", "In tests/fixtures/orders.", "They are fine."),
        ("Who owns the service?", "person", "It is owned by Priya.", "It is owned by us."),
        ("谁负责这个服务?", "person", "The owner is Priya.", "nobody"),
        ("Why is the sky blue?", "", "", "Because."),
    ],
)
def test_a_question_word_says_what_the_answer_holds(question: str, expected: str, answer: str, other: str) -> None:
    asked = parse_question(question)
    assert asked.expected == expected
    assert holds_expected(answer, asked.expected) == bool(expected)
    assert not holds_expected(other, asked.expected)


def quoted(*hits: Hit, question: str = "Which database do we use?") -> str:
    chosen = choose_quote(hits, question, RecallConfig())
    return chosen[0].entry.content if chosen else ""


def hit(
    content: str, score: float, *, days: int, kind: str = "message", words: tuple[str, ...] = ("database", "use")
) -> Hit:
    return Hit(
        entry=Entry(content=content, kind=kind, time=NOW - timedelta(days=days)), score=score, explanation="", path="p",
        line_number=1, end_line=1, matched_words=words, signals={"coverage": score, "memory": float(kind != "message")},
    )  # fmt: skip


def test_what_only_stands_beside_the_words_of_a_question_is_not_quoted() -> None:
    assert quoted(hit("Certainly.", 0.9, days=1, words=())) == ""
    assert (
        quoted(hit("Certainly.", 0.9, days=1, words=()), hit("The database is SQLite.", 0.4, days=1))
        == "The database is SQLite."
    )


def test_a_question_is_not_quoted_as_the_answer_to_itself_where_an_answer_is_near() -> None:
    assert quoted(hit("Which database do we use?", 0.52, days=5), hit("The database is SQLite.", 0.5, days=5)) == (
        "The database is SQLite."
    )


@pytest.mark.req("HE-O-conflict")
def test_a_change_takes_the_place_of_what_it_changed_unless_the_question_is_about_the_change() -> None:
    old = hit("We use MySQL as our database.", 0.7, days=40)
    new = hit("We are moving the database we use from MySQL to PostgreSQL.", 0.5, days=4)
    assert quoted(old, new) == new.entry.content
    assert quoted(old, new, question="Why did we change the database?") == old.entry.content
    unrelated = hit("We are moving the database we use from Oracle to PostgreSQL.", 0.5, days=4)
    assert quoted(old, unrelated) == old.entry.content


@pytest.mark.req("HE-O-conflict")
def test_a_later_decision_to_change_takes_the_place_of_an_earlier_one() -> None:
    old = hit("We use Postgres for billing.", 0.7, days=40, kind="decision", words=("billing", "database", "use"))
    new = hit("We migrated to MongoDB for billing.", 0.4, days=4, kind="decision", words=("billing", "database"))
    assert quoted(old, new, question="Which database does billing use?") == new.entry.content


@pytest.mark.parametrize(
    ("later", "is_news"),
    [
        ("I see the database listens on port 5433.", False),
        ("The database listens on port 6000, not 5433.", True),
        ("The database is moving from port 5433 to a socket.", True),
        ("We decided: the database listens on port 5433 of the new host only.", True),
    ],
)
def test_a_later_message_is_quoted_before_curated_memory_only_where_it_says_otherwise(
    later: str, is_news: bool
) -> None:
    stored = hit("The database listens on port 5433.", 0.55, days=40, kind="fact")
    curated = replace(stored, signals={**stored.signals, "curated": 1.0})
    said = hit(later, 0.6, days=4)
    assert quoted(said, curated) == (said if is_news else curated).entry.content
    assert quoted(said, stored) == said.entry.content


def test_a_memory_stands_for_the_message_below_it_that_it_says_most_of() -> None:
    said = message("We deploy from main on Mondays, as you know.", 0.5, line=4)
    brief = message("We deploy from main, and the tram to the office was late again.", 0.5, line=5)
    learned = memory("Deploy from main on Mondays.", 0.9, messages=("s1-4",))
    short = memory("They deploy from main.", 0.9, messages=("s1-5",), number=1)
    assert contents(ranked(learned, said)) == ["Deploy from main on Mondays."]
    assert (
        len(ranked(learned, replace(said, match=replace(said.match, chunk=replace(said.match.chunk, message=""))))) == 2
    )
    assert len(ranked(short, brief)) == 2
    # where the message is the better one both are shown
    assert len(ranked(replace(learned, match=replace(learned.match, signals={}, score=0.1)), said)) == 2
    told = explain([learned, said], parse_question("deploy"), limit=5, now=NOW, config=RecallConfig())
    ((reason, instead),) = [(each.reason, each.replacement) for each in told.rejected]
    assert (reason, instead) == ("duplicate", f"{learned.match.path}:{learned.match.line_number}")


@pytest.mark.req("HE-O-conflict")
def test_a_later_correction_goes_first_at_any_distance_and_of_any_kind() -> None:
    old = memory("We deploy from the main branch.", 0.9, days=30)
    new = memory("We deploy from the release branch.", 0.2, kind="decision", days=1, number=1)
    tagged = replace(new, match=replace(new.match, chunk=replace(new.match.chunk, tags=("correction",))))
    assert contents(ranked(old, new)) == [old.match.content, new.match.content]
    assert contents(ranked(old, tagged)) == [new.match.content, old.match.content]


def test_an_entry_that_only_a_ledger_gave_is_shown_where_curated_memory_holds_it() -> None:
    found = memory("We deploy from main.", 0.5)
    at = replace(found.match.chunk, path="workspace/MEMORY.md", line_number=7, end_line=7, document_type="curated")
    (hit,) = rank(
        [found], parse_question("deploy"), limit=3, now=NOW, config=RecallConfig(), curated=[passage(at, 0.0)]
    )  # fmt: skip
    assert (hit.path, hit.line_number) == ("workspace/MEMORY.md", 7)
