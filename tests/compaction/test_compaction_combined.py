"""One request yields the summary and the lessons, and neither part costs the other."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversation_strategies import conversations, said
from fake_models import FakeModel, Hanging, reply
from message_strategies import any_text
from ricordo.context import CompactionConfig, CompactionSummary, ModelSummarizer, build_digest
from ricordo.context.summary.request import REPLY_SCHEMA
from ricordo.context.summary.sections import parse_sections
from ricordo.errors import ModelError, ModelOverflow, ModelUnavailable, ReplyInvalid
from ricordo.messages import Message, dumps
from ricordo.models import Reply
from scripted_summaries import SUMMARY, Scripted, both, earlier, ids, noted, sections, talk

pytestmark = [pytest.mark.anyio, pytest.mark.req("HE-C4")]


@pytest.mark.req("AS-COMPACT-13", "AS-COMPACT-05")
async def test_one_request_yields_the_summary_and_the_lessons() -> None:
    messages = talk(4)
    model = Scripted(both(SUMMARY, noted("Message number 0 says"), noted("Message number 3 says", "Other.")))
    found = await ModelSummarizer(model)(messages, limit_tokens=400, pending={messages[0].id, messages[1].id})
    assert found.text == SUMMARY
    assert [each.message_ids for each in found.lessons or ()] == [(messages[0].id,)], "only what waits is learned"
    assert found.notes == ()
    assert (len(model.asked), model.asked[0].count('kind="new"')) == (1, 3), "two items, and what tells of them"
    assert model.schemas == [REPLY_SCHEMA]
    assert (
        await ModelSummarizer(Scripted(both(SUMMARY)))(messages, limit_tokens=400, pending=ids(messages))
    ).lessons == ()


@pytest.mark.parametrize("pending", [False, True])
async def test_lessons_are_asked_for_only_where_something_waits_and_both_parts_are_wanted(pending: bool) -> None:
    model = Scripted()
    config = CompactionConfig(combined=not pending)
    found = await ModelSummarizer(model, config)(talk(4), limit_tokens=400, pending=ids(talk(4)) if pending else ())
    assert found == CompactionSummary(text=SUMMARY)
    assert model.schemas == [None]
    assert "lessons" not in model.asked[0].replace("lessons learned", "")


@pytest.mark.req("AS-BUG-01", "AS-COMPACT-13")
@pytest.mark.parametrize(
    "answer",
    [
        SUMMARY,
        dumps({"summary": SUMMARY}),
        dumps({"summary": SUMMARY, "lessons": "none"}),
        both(SUMMARY, noted("never")),
    ],
)
async def test_malformed_lessons_do_not_cost_the_summary(answer: str) -> None:
    model = Scripted(answer)
    found = await ModelSummarizer(model)(talk(4), limit_tokens=400, pending=ids(talk(4)))
    assert (found.text, found.lessons) == (SUMMARY, None)
    assert found.notes == ("what the model noted to remember could not be used",)
    assert len(model.asked) == 1


@pytest.mark.req("AS-BUG-01")
@pytest.mark.parametrize("second", [SUMMARY, "Here you go!", ModelUnavailable("down"), ModelOverflow()])
async def test_a_malformed_summary_does_not_cost_the_lessons(second: str | Exception) -> None:
    model = Scripted(both("Here you go!", noted("Message number 0 says")), second)
    found = await ModelSummarizer(model)(talk(4), limit_tokens=400, pending=ids(talk(4)))
    assert [each.quote for each in found.lessons or ()] == ["Message number 0 says"]
    assert found.text == (SUMMARY if second == SUMMARY else build_digest(talk(4), limit_tokens=400))
    assert bool(found.notes) == (second != SUMMARY)
    assert len(model.asked) == 2
    assert model.schemas == [REPLY_SCHEMA, None], "lessons that are there are not asked for again"


@pytest.mark.req("AS-BUG-05")
async def test_each_part_is_asked_for_the_lessons_of_its_own_messages_and_one_failure_leaves_all_to_others() -> None:
    messages = talk(300, words="wide " * 100)

    class Noting(Scripted):
        async def complete(self, messages: Sequence[Message], **kwargs: object) -> Reply:
            reply = await super().complete(messages, **kwargs)  # type: ignore[arg-type]
            first = re.search(r"Message number \d+ wide", messages[0].text)
            assert first is not None
            lies = self._lies and len(self.asked) == 2
            note = noted("never" if lies else first[0], content=first[0])
            return replace(reply, message=said(both(SUMMARY, note), role="assistant"))

        _lies = False

    model = Noting(window=16_000)
    found = await ModelSummarizer(model)(messages, limit_tokens=1_000, pending=ids(messages))
    assert len(model.asked) > 2
    assert len(found.lessons or ()) == len(model.asked)
    assert found.text == SUMMARY
    one = {messages[0].id}
    few = Noting(window=16_000)
    assert len((await ModelSummarizer(few)(messages, limit_tokens=1_000, pending=one)).lessons or ()) == 1
    assert [schema is not None for schema in few.schemas] == [True] + [False] * (len(few.asked) - 1)
    lying = Noting(window=16_000)
    lying._lies = True
    assert (await ModelSummarizer(lying)(messages, limit_tokens=1_000, pending=ids(messages))).lessons is None


@pytest.mark.req("AS-BUG-05")
async def test_lessons_of_messages_that_were_left_out_are_left_to_others() -> None:
    messages = talk(900, words="wide " * 100)
    model = Scripted(both(SUMMARY), window=5_000)
    found = await ModelSummarizer(model)(messages, limit_tokens=300, pending=ids(messages))
    assert any("left out here" in prompt for prompt in model.asked)
    assert (found.text, found.lessons) == (SUMMARY, None)
    assert set(map(bool, model.schemas)) == {False}


_answers = st.one_of(
    any_text(60),
    st.sampled_from([SUMMARY, "Error: 500", f"{SUMMARY}\nOUTDATED: S1 I1 N1 A1", sections(steps="- x [m1]\n- [S1] y")]),
    st.sampled_from([ModelUnavailable("down"), ModelOverflow(window=3_000), ReplyInvalid(said=SUMMARY)]),
)


@pytest.mark.req("AS-BUG-01", "AS-COMPACT-07", "AS-COMPACT-10", "CC-QUOTE")
@given(messages=conversations(5), first=_answers, second=_answers, lessons=st.booleans(), at=st.integers(0, 9))
def test_whatever_a_model_answers_a_summary_comes_back_with_four_sections_or_the_digest(
    messages: tuple[Message, ...], first: str | Exception, second: str | Exception, lessons: bool, at: int
) -> None:
    answers = [
        both(each, noted("wide wide")) if lessons and isinstance(each, str) else each for each in (first, second)
    ]
    kept = [earlier(sections("- Keep me."))] if at % 2 else []
    model = Scripted(*answers, window=(3_000, 100_000)[at % 3 > 0])

    async def written() -> CompactionSummary:
        return await ModelSummarizer(model)([*kept, *messages], limit_tokens=200, pending=ids(messages))

    found = anyio.run(written)
    if parse_sections(found.text) is None or (found.notes[:1] and found.notes[0].startswith("rules")):
        assert found.text == build_digest([*kept, *messages], limit_tokens=200)
    elif kept:
        assert "- Keep me." in found.text or "OUTDATED" in f"{first}{second}"
    texts = {message.id: message.text for message in messages}
    assert all(each.quote in texts[each.message_ids[0]] for each in found.lessons or ())


class Moving:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.time = datetime(2026, 11, 21, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time

    def today(self) -> date:
        return self.time.date()


@pytest.mark.req("AS-BUG-01", "CC-PROGRESS")
async def test_after_three_failures_the_model_is_left_alone_until_it_is_time_for_one_trial() -> None:
    clock, told = Moving(), list[str]()
    model = Scripted("Here you go!", "no", ModelUnavailable("down"), "Error: 500", "", "", "", SUMMARY)
    summary = ModelSummarizer(model, on_fallback=told.append, clock=clock)
    for _ in range(3):
        await summary(talk(4), limit_tokens=400)
    assert len(model.asked) == 5
    closed = await summary(talk(4), limit_tokens=400, pending=ids(talk(4)))
    assert len(model.asked) == 5
    assert closed.text == build_digest(talk(4), limit_tokens=400)
    assert closed.lessons is None
    why = "the model is not asked for summaries: 3 failures in a row, the last: it is empty"
    assert told[3] == why
    assert closed.notes == (f"rules wrote the summary: {why}",)
    clock.time += timedelta(seconds=300)
    await summary(talk(4), limit_tokens=400)
    assert len(model.asked) == 7, "one trial, which failed"
    await summary(talk(4), limit_tokens=400)
    assert len(model.asked) == 7
    assert (await summary(talk(4), limit_tokens=400, focus="the port")).text == SUMMARY, (
        "a person who asks is tried for"
    )
    assert (await summary(talk(4), limit_tokens=400)).text == SUMMARY


class Hiding(FakeModel):
    """A model whose client makes an error of its own of whatever ends a request."""

    hides: ModelError = ModelUnavailable()

    async def complete(self, *given: Any, **named: Any) -> Reply:
        try:
            return await super().complete(*given, **named)
        except anyio.get_cancelled_exc_class() as error:
            raise self.hides from error


class Telling(Hiding):
    """One that hands on what was said before the end."""

    hides = ReplyInvalid("The reply broke off.", said=SUMMARY)


@pytest.mark.req("AS-CHAIN-03", "CC-PROGRESS")
@pytest.mark.parametrize("kind", [FakeModel, Hiding, Telling])
async def test_a_cancellation_is_no_failure_of_the_model(kind: type[FakeModel]) -> None:
    hanging = [Hanging() for _ in range(3)]
    summary = ModelSummarizer(kind(*hanging, reply(SUMMARY)), CompactionConfig(breaker=1))
    for each in hanging:
        async with anyio.create_task_group() as group:
            group.start_soon(partial(summary, talk(4), limit_tokens=400))
            await each.reached.wait()
            group.cancel_scope.cancel()
    assert (await summary(talk(4), limit_tokens=400)).text == SUMMARY


@pytest.mark.req("AS-CHAIN-03")
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("kind", [FakeModel, Hiding, Telling])
async def test_a_summary_in_a_cancelled_task_ends_with_it_and_not_in_a_digest(kind: type[FakeModel]) -> None:
    hanging = Hanging()
    model, told = kind(hanging), list[str]()
    task = asyncio.create_task(ModelSummarizer(model, on_fallback=told.append)(talk(4), limit_tokens=400))
    await hanging.reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (len(model.asked), told) == (1, [])
