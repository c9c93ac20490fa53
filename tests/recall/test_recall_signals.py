"""What each signal does to the order, why a hit is one, and that measuring only what can win changes nothing."""

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ricordo import Entry
from ricordo.messages import Tokens, estimate_text
from ricordo.search import Chunk, Hit, Match, RecallConfig
from ricordo.search.contract import Explanation, Passage
from ricordo.search.query_context import ExpectedAnswer, build_query_context, parse_question
from ricordo.search.ranking import explain, rank
from ricordo.search.signals import iter_best_first, score_passage, sort_key
from ricordo.workspace import render_entry

pytestmark = pytest.mark.req("HE-C7-keep")

NOW = datetime(2026, 11, 22, tzinfo=UTC)
SPECIFIC = "Why did the nightly deploy of the shop fail in staging?"
BROAD = "Which tournaments?"


def said(
    content: str, near: float, *, speaker: str = "Ada", session: str = "s1", line: int = 1, days: float = 10,
    words: tuple[str, ...] = ("deploy",), **signals: float,
) -> Passage:  # fmt: skip
    """Return a line of a transcript that was found with this nearness."""
    path = f"workspace/agents/main/sessions/{session}.log.jsonl"
    chunk = Chunk(
        path=path, line_number=line, end_line=line, content=content, document_type="transcript", kind="message",
        session=session, message=f"{session}-{line}", speaker=speaker, time=NOW - timedelta(days=days),
    )  # fmt: skip
    return found(chunk, near, words, signals)


def kept(content: str, near: float, *, number: int = 0, days: float = 10, **fields: object) -> Passage:
    """Return an entry of a ledger that was found with this nearness."""
    entry = Entry(content=content, id=f"01jd{number:022d}", time=NOW - timedelta(days=days))
    entry = replace(entry, **fields)  # type: ignore[arg-type]
    chunk = Chunk(
        path="workspace/memory/2026-11-21.md", line_number=number + 3, end_line=number + 3, content=content,
        document_type="ledger", markup=render_entry(entry), entry_id=entry.id, kind=entry.kind, time=entry.time,
    )  # fmt: skip
    return found(chunk, near, ("deploy",), {})


def found(chunk: Chunk, near: float, words: tuple[str, ...], signals: dict[str, float]) -> Passage:
    match = Match(
        path=chunk.path, line_number=chunk.line_number, end_line=chunk.end_line, content=chunk.content, rank=1,
        score=near, chunk=chunk, matched_words=words, signals={"bm25": near, "context": near, **signals},
    )  # fmt: skip
    return Passage(label="project", source_rank=0, match=match)


def ranked(
    *passages: Passage, question: str = SPECIFIC, limit: int = 10, config: RecallConfig | None = None
) -> list[Hit]:
    return rank(passages, parse_question(question), limit=limit, now=NOW, config=config or RecallConfig())


def told(*passages: Passage, question: str = SPECIFIC, limit: int = 10, budget: int | None = None) -> Explanation:
    room = None if budget is None else Tokens(budget)
    return explain(
        passages, parse_question(question), limit=limit, now=NOW, config=RecallConfig(), budget=room
    )  # fmt: skip


def contents(hits: list[Hit]) -> list[str]:
    return [hit.entry.content for hit in hits]


def test_the_reply_to_a_question_like_the_one_asked_is_raised_and_its_own_speaker_does_not_reply() -> None:
    asks = said("Why did the deploy fail?", 0.6, line=1)
    reply = said("A full disk.", 0.1, line=2, speaker="Bo")
    other = said("A full moon.", 0.1, line=7, speaker="Bo")
    assert contents(ranked(asks, other, reply))[1] == "A full disk."
    monologue = replace(reply, match=replace(reply.match, chunk=replace(reply.match.chunk, speaker="Ada")))
    assert "reply" not in ranked(asks, monologue)[1].score_parts


def test_a_reply_that_holds_no_word_is_found_and_what_only_stands_beside_is_not() -> None:
    asks = said("Why did the deploy fail?", 0.6, line=1)
    reply = said("A full disk.", 0.0, line=2, speaker="Bo", words=(), context=0.2)
    beside = said("Fine.", 0.0, line=9, speaker="Bo", words=(), context=0.2)
    assert contents(ranked(asks, beside, reply)) == ["Why did the deploy fail?", "A full disk."]


def test_of_messages_that_fit_equally_the_longer_statement_is_first_and_mere_questions_and_tool_calls_are_last() -> (
    None
):
    statement = "The deploy runs on Thursdays at nine, after the backup of the shop."
    plain = "Deploy at nine."
    asked = "Who runs the deploy of the shop on Thursdays at nine, after the backup?"
    call = 'shell {"cmd": "run the deploy of the shop after the backup"}'
    rows = [
        said(call, 0.4, line=1, session="s1", speaker="assistant"), said(asked, 0.4, line=3, session="s2"),
        said(plain, 0.4, line=5, session="s3"), said(statement, 0.4, line=7, session="s4"),
    ]  # fmt: skip
    hits = ranked(*rows)
    assert contents(hits) == [statement, plain, asked, call]
    assert (
        hits[0].score_parts["form"]
        > hits[1].score_parts["form"]
        > hits[2].score_parts["form"]
        > hits[3].score_parts["form"]
    )
    assert "form" not in ranked(kept(plain, 0.4))[0].score_parts


def test_what_is_hardly_near_in_meaning_is_no_hit_when_the_better_ones_of_its_session_take_all_of_its_score() -> None:
    named = [said(f"Walrus number {number} eats.", 0.6, line=number, words=("walrus",)) for number in range(9)]
    far = [said(f"filler line {number}", 0.0, line=20 + number, words=(), dense=0.02) for number in range(3)]
    hits = ranked(*named, *far, question="walrus", limit=12)
    assert contents(hits) == contents(ranked(*named, question="walrus", limit=12))
    assert all(hit.score > 0 for hit in hits)
    assert contents(ranked(far[0], question="walrus")) == ["filler line 0"]


def test_a_time_that_is_named_is_looked_for_and_what_was_said_soon_after() -> None:
    rows = [said(f"Deployed it, {day}.", 0.3, line=day, days=day, session=f"s{day}") for day in (1, 60, 165, 300)]
    hits = ranked(*rows, question="What did we deploy in June and why?")
    assert contents(hits)[0] == "Deployed it, 165."
    assert hits[0].score_parts["dates"] > 0
    assert "of that time" in hits[0].explanation


def test_the_time_of_a_question_alone_is_no_match_unless_a_text_names_it_itself() -> None:
    chatter = said("Ate a plum.", 0.3, line=1, days=165, session="a", words=("june",))
    deployed = said("Deployed it.", 0.3, line=3, days=100, session="b", words=("deploy",))
    feast = said("June is the month of the feast.", 0.3, line=5, days=165, session="c", words=("june",))
    asked = ranked(chatter, deployed, feast, question="What did we deploy in June and why?")
    assert {hit.entry.content for hit in asked if "dates" in hit.score_parts} == {feast.match.content}
    nothing_else = ranked(chatter, deployed, question="What happened in June?")
    assert contents(nothing_else)[0] == "Ate a plum."
    assert "dates" in nothing_else[0].score_parts


def test_a_question_of_few_words_is_answered_from_many_sessions_and_a_narrow_one_from_the_best() -> None:
    near = {"a": 0.5, "b": 0.49}
    rows = [
        said(f"Won tournament {session}{line}.", near[session], session=session, line=3 * line, words=("tournaments",))
        for session in near
        for line in range(1, 4)
    ]
    broad, narrow = ranked(*rows, question=BROAD), ranked(*rows)
    assert {hit.entry.source.session for hit in broad[:2]} == {"a", "b"}
    assert {hit.entry.source.session for hit in narrow[:3]} == {"a"}
    assert sum(hit.score_parts.get("breadth", 0.0) < 0 for hit in broad) == 4
    assert [hit.score for hit in broad] == sorted((hit.score for hit in broad), reverse=True)


@pytest.mark.req("HE-C7", "CC-AGE", "CC-HALFLIFE")
def test_a_pinned_and_a_confirmed_memory_count_as_new_and_kinds_age_by_their_half_life() -> None:
    hits = ranked(
        kept("Alder deploys.", 0.4, days=900), kept("Birch deploys.", 0.4, number=1, days=900, pinned=True),
        kept("Cedar deploys.", 0.4, number=2, days=900, confirmed=NOW - timedelta(days=30)),
        kept("Dogwood deploys.", 0.4, number=3, days=100, kind="goal"),
        kept("Elder deploys.", 0.4, number=4, days=100, kind="preference"),
    )  # fmt: skip
    assert [text.split()[0] for text in contents(hits)] == ["Birch", "Cedar", "Elder", "Dogwood", "Alder"]
    copied = ranked(
        kept("We use jquery.", 0.4, days=1, since=NOW - timedelta(days=730)),
        kept("We use react.", 0.4, number=1, days=14),
    )
    assert contents(copied) == ["We use react.", "We use jquery."], "an age counts from when it was said"


@pytest.mark.req("HE-C7-keep", "CC-HALFLIFE")
@given(st.integers(1, 700_000))
def test_a_memory_of_any_age_is_found_and_only_scores_less_for_its_age(days: int) -> None:
    old, new = (ranked(kept("We deploy from main.", 0.4, days=age))[0] for age in (days, 0))
    assert old.entry.content == new.entry.content
    assert 0 < old.score <= new.score
    assert contents(ranked(kept("We deploy from main.", 0.4, days=days), question="")) == ["We deploy from main."]


def test_meaning_counts_beside_words_and_a_score_means_the_same_with_and_without_it() -> None:
    lexical = said("Deploys fail.", 0.4, line=1)
    both = said("Deploys died.", 0.4, line=9, dense=0.4, dense_context=0.4)
    scores = [ranked(row)[0].score for row in (lexical, both)]
    assert scores[0] == pytest.approx(scores[1])
    unworded = said("The rollout broke.", 0.0, line=20, words=(), dense=0.8, dense_context=0.7)
    hits = ranked(said("Deploy notes.", 0.1, line=5, dense=0.1, dense_context=0.1), unworded)
    assert contents(hits)[0] == "The rollout broke."


_ROWS = st.lists(
    st.tuples(
        st.sampled_from(["entry", "message"]), st.floats(0, 1), st.integers(0, 3), st.integers(0, 400),
        st.sampled_from(["We deploy.", "Did it fail?", "On 2026-06-03 two failed.", "Ada said so.", "In Berlin."]),
        st.sampled_from(["Ada", "Bo", "assistant", ""]), st.booleans(),
    ), max_size=24,
)  # fmt: skip


@settings(max_examples=40)
@given(
    _ROWS,
    st.sampled_from([SPECIFIC, BROAD, "When did Ada deploy in June?", "How many failed?", "Where?", "Who did I ask?"]),
)
def test_measuring_only_what_can_win_gives_the_order_of_measuring_everything(
    rows: list[tuple[str, float, int, int, str, str, bool]], question: str
) -> None:
    passages = [
        kept(f"{text} {at}", near, number=at, days=days, pinned=pinned)
        if sort == "entry"
        else said(f"{text} {at}", near, speaker=speaker, session=f"s{session}", line=at + 1, days=days)
        for at, (sort, near, session, days, text, speaker, pinned) in enumerate(rows)
    ]
    asked = build_query_context(parse_question(question), passages, now=NOW, config=RecallConfig())
    everything = sorted((score_passage(passage, asked) for passage in passages), key=sort_key)
    assert [row.passage for row in iter_best_first(passages, asked)] == [row.passage for row in everything]


def test_far_fewer_are_measured_than_were_found(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[str] = []

    def looks(text: str, expected: ExpectedAnswer) -> bool:
        looked_at.append(text)
        return expected != "time"

    monkeypatch.setattr("ricordo.search.signals.holds_expected", looks)
    rows = [said(f"Deploy number {at}.", 0.9 - at / 250, line=3 * at + 1, session=f"s{at}") for at in range(200)]
    assert len(ranked(*rows, question="When did the nightly deploy of the shop fail in staging?")) == 10
    assert 10 <= len(set(looked_at)) <= 60


@pytest.mark.req("FC-WHY")
@given(_ROWS, st.sampled_from([SPECIFIC, BROAD, ""]), st.integers(1, 6), st.none() | st.integers(1, 40))
@settings(max_examples=40)
def test_shares_sum_to_the_score_and_whatever_is_rejected_is_no_hit(
    rows: list[tuple[str, float, int, int, str, str, bool]], question: str, limit: int, budget: int | None
) -> None:
    passages = [
        kept(f"{text} {at // 2}", near, number=at, days=days)
        if sort == "entry"
        else said(f"{text} {at // 2}", near, speaker=speaker, session=f"s{session}", line=at + 1, days=days)
        for at, (sort, near, session, days, text, speaker, _) in enumerate(rows)
    ]
    outcome = told(*passages, question=question, limit=limit, budget=budget)
    for hit in (*outcome.hits, *(each.hit for each in outcome.rejected)):
        assert 0 <= hit.score <= 1
        assert math.isclose(sum(hit.score_parts.values()), hit.score, abs_tol=1e-6)
    assert len(outcome.hits) <= limit
    assert outcome.candidates == len(passages)
    if budget is not None:
        assert sum(estimate_text(hit.entry.content) for hit in outcome.hits) <= budget
    places = {(hit.path, hit.line_number) for hit in outcome.hits}
    assert all((each.hit.path, each.hit.line_number) not in places for each in outcome.rejected)


@pytest.mark.req("FC-WHY")
def test_explaining_gives_the_hits_of_ranking_and_says_why_others_are_none() -> None:
    gone = kept("We deployed from trunk.", 0.5, number=8, state="superseded")
    rows = [
        said("We deploy the shop from main at noon.", 0.8, line=1, session="a"),
        said("We deploy the shop from main, at noon.", 0.7, line=1, session="b"),
        said("Deploys of the shop fail when the disk is full.", 0.4, line=1, session="c"),
        said("Deploys are dull.", 0.2, line=1, session="d"),
        gone,
    ]
    outcome = told(*rows, limit=2)
    assert list(outcome.hits) == ranked(*rows, limit=2)
    reasons = {each.hit.entry.content: (each.reason, each.replacement) for each in outcome.rejected}
    assert reasons == {
        "We deploy the shop from main, at noon.": ("duplicate", f"{rows[0].match.path}:1"),
        "Deploys are dull.": ("limit", ""),
        "We deployed from trunk.": ("superseded", ""),
    }
    scores = [each.hit.score for each in outcome.rejected]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.req("FC-WHY")
def test_what_is_too_long_for_the_budget_is_passed_over_for_what_fits() -> None:
    long = said("We deploy. " * 60, 0.9, line=1, session="a")
    short = said("Deploys go from main.", 0.5, line=1, session="b")
    outcome = told(long, short, budget=20)
    assert contents(list(outcome.hits)) == ["Deploys go from main."]
    assert [each.reason for each in outcome.rejected] == ["budget"]
