"""The conversation that ships with the package: readable, real enough, and harmless."""

import json
import re
from typing import NamedTuple

import pytest

from importing import Taken, take
from make_demo_conversation import CONVERSATION, FAILED, LOG_CALL, run_log
from ricordo.messages import pair_calls

DATA = CONVERSATION.parent


class Question(NamedTuple):
    question: str
    expects: str | None


@pytest.fixture(name="taken", scope="module")
def _taken() -> Taken:
    return take(DATA / "conversation.jsonl")


@pytest.fixture(name="questions", scope="module")
def _questions() -> list[Question]:
    found = json.loads((DATA / "questions.json").read_text(encoding="utf-8"))
    assert all(set(each) == {"question", "expects", "about", "shown"} for each in found)
    return [Question(each["question"], each["expects"]) for each in found]


def said(taken: Taken) -> str:
    results = [result.text for each in taken.imported for result in each.message.tool_results]
    return "\n".join([*taken.texts, *results])


def test_the_conversation_is_read_without_a_problem(taken: Taken) -> None:
    assert taken.problems == []
    assert 120 <= len(taken.imported) <= 180
    assert 5 <= len(set(taken.sessions)) <= 6


def test_every_message_has_a_time_and_time_only_moves_on(taken: Taken) -> None:
    times = [each.message.time for each in taken.imported]
    known = [time for time in times if time is not None]
    assert len(known) == len(times)
    assert known == sorted(known)
    assert 28 <= (known[-1] - known[0]).days <= 42


def test_every_tool_call_has_its_result(taken: Taken) -> None:
    pairing = pair_calls([each.message for each in taken.imported])
    assert len(pairing.answered) > 30
    assert (pairing.orphans, pairing.abandoned, pairing.pending) == ((), (), ())


def test_one_tool_result_is_wide_and_holds_its_failure_deep_inside(taken: Taken) -> None:
    (log,) = [
        result.text for each in taken.imported for result in each.message.tool_results if result.call_id == LOG_CALL
    ]
    assert log == run_log()
    assert 200_000 < len(log.encode()) < 300_000
    assert log.count("not ok ") == 1
    assert 100_000 < log.index(f"not ok {FAILED} ") < len(log) - 10_000


def test_what_a_question_expects_was_said_and_what_was_never_said_is_marked(
    taken: Taken, questions: list[Question]
) -> None:
    text = said(taken)
    answerable = [each for each in questions if each.expects is not None]
    assert len(answerable) >= 8
    assert len(questions) - len(answerable) >= 3
    assert all(each.expects in text for each in answerable if each.expects is not None)
    assert not re.search(r"payment|phone number|cloud|region", text)


def test_the_secrets_in_it_have_the_shape_of_real_ones_and_could_never_be_real(taken: Taken) -> None:
    text = said(taken)
    (token,) = set(re.findall(r"ghp_[A-Za-z0-9]{36}", text))
    assert len(set(token)) < 10
    assert re.search(r"mysql://orders_app:[^@\s]+@[a-z.-]+\.example", text)


def test_the_data_stays_small_enough_to_ship() -> None:
    assert sum(path.stat().st_size for path in DATA.iterdir() if path.is_file()) <= 400_000
