"""The floors of recall: the project's own labelled set, asked through the public API, with words alone.

What is measured today stands in docs/benchmarks/retrieval.md. A floor lies a little below it, so that a change which
loses answers is seen and one that moves a tie is not. Whoever makes recall better raises the floors.
"""

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest
from anyio.from_thread import start_blocking_portal

from hand_clock import HandClock
from retrieval import run, scores
from retrieval_adapter import Recalled, as_items, factory, ids_of, take_in
from retrieval_sets import NEVER, Haystack, Question, evidence_of, load, load_own, parsed_time
from ricordo import Memory, Scope
from ricordo.search import Query

FLOORS: Mapping[str, Mapping[str, float]] = {
    "all": {"R@1": 0.41, "R@10": 0.69, "NDCG@10": 0.57},
    "dev": {"R@1": 0.37, "R@10": 0.68, "NDCG@10": 0.54},
    "held out": {"R@1": 0.44, "R@10": 0.69, "NDCG@10": 0.60},
    "Latin": {"R@1": 0.30, "R@10": 0.59, "NDCG@10": 0.46},
    "Han": {"R@1": 0.56, "R@10": 0.79, "NDCG@10": 0.70},
    "Cyrillic": {"R@1": 0.54, "R@10": 0.73, "NDCG@10": 0.66},
    "Devanagari": {"R@1": 0.60, "R@10": 0.91, "NDCG@10": 0.75},
    "multi": {"R@10": 0.61, "all@10": 0.41},
    "path": {"R@1": 0.78, "R@10": 0.91},
}
"""What each group of questions must reach, over memories and transcripts."""

SESSIONS_FLOORS = {"R@10": 0.66, "NDCG@10": 0.52}
"""The same for a search of the transcripts alone, on the half that is held out."""

MEMORIES_FLOORS = {"R@10": 0.37, "NDCG@10": 0.35}
"""The same for `recall`, which knows only what was learned from the messages."""

MOST_ANSWERED_THAT_NOBODY_SAID = 5
"""Of thirty questions about what nobody said."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A question of a split, and the scores of what was found over everything."""

    split: str
    question: Question
    found: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Measured:
    """All that is measured: `sessions` and `memories` of one half, and what was answered though nobody said it."""

    rows: list[Row]
    sessions: list[Mapping[str, float]]
    memories: list[Mapping[str, float]]
    answered: list[str]


def test_each_label_of_the_set_holds_what_is_asked_for() -> None:
    halves = load_own()
    for haystack in halves:
        assert len({turn.id for turn in haystack.items}) == len(haystack.items)
        for question in haystack.questions:
            turns = evidence_of(haystack, question)
            assert len(turns) == len(question.evidence) == len(question.has), question.query
            assert bool(turns) == (question.category != NEVER), question.query
            assert all(text in turn.text for text, turn in zip(question.has, turns, strict=True)), question.query


def test_the_set_is_as_broad_as_it_says() -> None:
    halves = load_own()
    labelled = [question for half in halves for question in half.questions if question.evidence]
    assert [half.split for half in halves] == ["dev", "held out"]
    assert len({turn.session for half in halves for turn in half.items}) >= 30
    assert len(labelled) >= 150
    for half in halves:
        asked = [question for question in half.questions if question.evidence]
        assert {question.script for question in asked} == {"Latin", "Han", "Cyrillic", "Devanagari"}
        assert {turn.speaker for turn in half.items} >= {"user", "assistant", "call", "tool"}
        assert sum(len({label.partition(".")[0] for label in question.evidence}) > 1 for question in asked) >= 8


def test_recall_finds_no_less_than_its_floors(tmp_path: Path) -> None:
    found = anyio.run(measured, tmp_path)
    low = [
        *(fall for group, floors in FLOORS.items() for fall in falls(group, floors, of(found.rows, group))),
        *falls("sessions", SESSIONS_FLOORS, found.sessions),
        *falls("memories", MEMORIES_FLOORS, found.memories),
    ]
    assert not low, "\n".join(low)
    assert len(found.answered) <= MOST_ANSWERED_THAT_NOBODY_SAID, found.answered


def test_a_loss_of_answers_is_seen() -> None:
    assert falls("all", {"R@10": 0.6}, [{"R@10": 1.0}, {"R@10": 0.0}]) == ["all R@10 is 0.500, the floor is 0.600."]
    assert falls("all", {"R@10": 0.5}, [{"R@10": 1.0}, {"R@10": 0.0}]) == []


@pytest.mark.parametrize(
    ("ranked", "expected"),
    [
        ("ab", {"R@1": 0.5, "all@5": 1.0, "NDCG@10": 1.0, "MRR": 1.0}),
        ("xaxb", {"R@1": 0.0, "R@5": 1.0, "any@1": 0.0, "NDCG@10": 0.651, "MRR": 0.5}),
        ("xa", {"R@10": 0.5, "any@10": 1.0, "all@10": 0.0}),
        ("", {"R@20": 0.0, "any@20": 0.0, "NDCG@10": 0.0, "MRR": 0.0}),
    ],
)
def test_scores_are_what_their_names_say(ranked: str, expected: Mapping[str, float]) -> None:
    found = scores(list(ranked), "ab")
    assert {key: found[key] for key in expected} == pytest.approx(expected, abs=0.001)


def test_a_dialogue_of_two_people_is_read_with_the_slips_in_its_labels(tmp_path: Path) -> None:
    said = {
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [dialogue("D1:1", "Hi."), dialogue("D1:2", "A cat.")],
    }
    asked = [
        {"question": "Which pet?", "category": 4, "evidence": ["D:1:02; D9:17"]},
        {"question": "Whose dog?", "category": 5, "evidence": ["D1:1"]},
    ]
    (tmp_path / "talk.json").write_text(json.dumps([{"sample_id": "x", "conversation": said, "qa": asked}]))
    (read,) = load([tmp_path / "talk.json"])
    assert [(question.category, question.evidence) for question in read.questions] == [
        ("single-hop", ("D1:2",)), ("adversarial", ("D1:1",)),
    ]  # fmt: skip
    assert read.items[1].text == "A cat. [shared a photo: a cat]"
    assert parsed_time(read.items[1].time) == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)


def dialogue(label: str, text: str) -> dict[str, str]:
    caption = {"blip_caption": "a cat"} if "cat" in text else {}
    return {"dia_id": label, "speaker": "Ana", "text": text, **caption}


def test_a_question_with_its_sessions_and_a_question_about_nothing_are_read(tmp_path: Path) -> None:
    sessions = [
        [{"role": "user", "content": "It is blue.", "has_answer": True}, {"role": "assistant", "content": "Good."}]
    ]
    asked = {
        "question": "Which colour?", "question_type": "user", "question_date": "2023/05/30 (Tue) 23:40",
        "answer_session_ids": ["s1"], "haystack_dates": ["2023/05/20 (Sat) 02:21"], "haystack_session_ids": ["s1"],
        "haystack_sessions": sessions,
    }  # fmt: skip
    (tmp_path / "asked.json").write_text(json.dumps([asked | {"question_id": name} for name in ("q", "q_abs")]))
    read = load([tmp_path / "asked.json"])
    assert [haystack.questions[0].evidence for haystack in read] == [("s1#0", "s1"), ()]
    (row,) = run([read[0]], lambda: Echo(["s1#1", "s1#0"]))
    assert (row.turns["R@1"], row.turns["R@5"], row.sessions["R@1"]) == (0.0, 1.0, 1.0)


def test_a_folder_of_chats_and_lines_of_json_are_read_without_what_betrays_the_answer(tmp_path: Path) -> None:
    said = [[{"id": 4, "role": "user", "content": "Blue it is. ->-> 1,1", "time_anchor": "March-15-2024"}]]
    probes = {"facts": [{"question": "Which colour?", "source_chat_ids": {"first": [4, 99]}}]}
    (tmp_path / "1" / "probing_questions").mkdir(parents=True)
    (tmp_path / "1" / "chat.json").write_text(json.dumps([{"batch_number": 1, "turns": said}]))
    (tmp_path / "1" / "probing_questions" / "probing_questions.json").write_text(json.dumps(probes))
    (read,) = load([tmp_path])
    assert (read.items[0].text, read.items[0].session) == ("Blue it is.", "B1")
    assert read.questions[0].evidence == ("4",)
    (tmp_path / "lines.jsonl").write_text(json.dumps(read.to_json()) + "\n")
    assert load([tmp_path / "lines.jsonl"]) == [read]


class Echo:
    """A retriever that always finds the same."""

    def __init__(self, found: list[str]) -> None:
        self._found = found

    def index(self, items: Sequence[Mapping[str, str]]) -> None:
        del items

    def search(self, query: str, k: int, now: str | None = None) -> list[str]:
        del query, now
        return self._found[:k]


def test_a_scorer_gets_the_turns_that_ricordo_finds_by_their_ids_and_nothing_of_the_labels() -> None:
    said = {"a": "The kiln fires at 1230 degrees.", "b": "The dentist is on Thursday.", "c": "pytest -q kiln"}
    items = [
        {"id": label, "text": text, "speaker": "call" if label == "c" else "user", "time": "2026-03-01", "session": "s"}
        for label, text in said.items()
    ]
    with start_blocking_portal() as portal:
        retriever = Recalled(portal)
        retriever.index(items)
        assert retriever.search("how hot does the kiln fire", 1, "2026-03-02") == ["a"]
        assert set(retriever.search("kiln", 2)) == {"a", "c"}
        assert retriever.answer("When is the dentist?").found
        retriever.close()


@pytest.mark.parametrize("options", [{"embedder": "magic"}, {"over": "nothing"}])
def test_an_option_that_the_adapter_has_not_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(SystemExit, match="|".join(options.values())):
        factory(**options)


async def measured(folder: Path) -> Measured:
    """Ask both halves through a memory each."""
    found = Measured(rows=[], sessions=[], memories=[], answered=[])
    for number, half in enumerate(load_own()):
        clock = HandClock(datetime(2026, 5, 15, tzinfo=UTC))
        async with Memory.open(folder / str(number), scope=Scope(user="me", project="set"), clock=clock) as memory:
            await take_in(memory, as_items(half))
            for question in half.questions:
                clock.time = parsed_time(question.now) or clock.time
                await ask(memory, half, question, found)
    return found


async def ask(memory: Memory, half: Haystack, question: Question, found: Measured) -> None:
    """Note ten hits of each way; of what nobody said, whether it is answered."""
    if question.category == NEVER:
        found.answered.extend([question.query] if (await memory.answer(question.query)).found else [])
        return
    hits = await memory.search(question.query)
    found.rows.append(Row(split=half.split, question=question, found=scores(ids_of(hits), question.evidence)))
    if half.split == "held out":
        said = await memory.search(Query(text=question.query, document_types=("transcript",)))
        learned = await memory.recall(question.query, limit=10)
        found.sessions.append(scores(ids_of(said), question.evidence))
        found.memories.append(scores(ids_of(learned), question.evidence))


def of(rows: Sequence[Row], group: str) -> list[Mapping[str, float]]:
    """Return the scores of a split, a script or a category; all of them for `all`."""
    return [row.found for row in rows if group in {"all", row.split, row.question.script, row.question.category}]


def falls(group: str, floors: Mapping[str, float], found: Sequence[Mapping[str, float]]) -> list[str]:
    """Return a sentence for each floor that the mean does not reach."""
    reached = {key: statistics.fmean(row[key] for row in found) for key in floors}
    return [
        f"{group} {key} is {reached[key]:.3f}, the floor is {floor:.3f}."
        for key, floor in floors.items()
        if reached[key] < floor
    ]
