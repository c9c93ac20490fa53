"""The ladder: who acts when, what a step that took off too little sets going, and what is not taken unless noted."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import anyio
import pytest

from conversation_strategies import call, result, said
from fake_models import FakeModel, reply
from ricordo.context import (
    Act,
    Compact,
    CompactionConfig,
    CompactionSummary,
    DigestSummarizer,
    DropGroups,
    ModelSummarizer,
    Reduction,
    Strategy,
    StrategyReport,
    Window,
    count_message_tokens,
    run_pipeline,
)
from ricordo.errors import ModelUnavailable, StorageFull
from ricordo.messages import Message, get_mark, with_ids
from scripted_summaries import SUMMARY

pytestmark = [pytest.mark.anyio, pytest.mark.req("CC-PROGRESS")]


@dataclass
class Step:
    """Keeps the last `keep` messages of `each` tokens; notes what it was given."""

    action: Act = "compact"
    keep: int = 10
    each: int = 10
    report: StrategyReport = field(default_factory=lambda: StrategyReport(action="compact", status="done", handle="c1"))
    seen: list[Window] = field(default_factory=list)

    async def reduce(self, window: Window) -> Reduction:
        self.seen.append(window)
        kept = window.messages[-self.keep :]
        report = replace(
            self.report,
            action=self.action,
            messages_before=len(window.messages),
            messages_after=len(kept),
            tokens_before=self.each * len(window.messages),
            tokens_after=self.each * len(kept),
        )
        return Reduction(messages=kept, report=report, dropped=window.messages[: -self.keep])


def talk(count: int, *, words: str = "says something of its own.") -> tuple[Message, ...]:
    roles = ("user", "assistant")
    return tuple(with_ids([said(f"Message {n} {words}", role=roles[n % 2]) for n in range(count)], session="s1"))


def window(count: int = 10, **values: object) -> Window:
    return replace(Window(messages=talk(count), agent="main", session="s1"), **values)  # type: ignore[arg-type]


def tokens(messages: Sequence[Message]) -> int:
    return sum(count_message_tokens(messages, 1.0))


@pytest.mark.req("AS-TRUNC-04", "AS-BUG-10", "AS-BUG-32", "HE-C3-kinds")
async def test_each_step_acts_on_what_the_one_before_left_and_every_one_reports() -> None:
    steps = [Step(action="truncate", keep=8), Step(action="compact", keep=4), Step(action="drop", keep=3)]
    left, reports = await run_pipeline(window(), steps)
    assert [len(step.seen[0].messages) for step in steps] == [10, 8, 4]
    assert [(report.action, report.messages_after) for report in reports] == [
        ("truncate", 8),
        ("compact", 4),
        ("drop", 3),
    ]
    assert left.messages == window().messages[-3:]


@pytest.mark.parametrize(
    ("keep", "report", "forced", "expected"),
    [
        (9, StrategyReport(action="compact", status="done"), "", ("progress", 80)),
        (9, StrategyReport(action="compact", status="done", trigger="messages"), "", ("", None)),
        (8, StrategyReport(action="compact", status="done"), "", ("", None)),
        (8, StrategyReport(action="compact", status="done", trigger="messages"), "", ("", None)),
        (10, StrategyReport(action="compact", status="skipped"), "", ("", None)),
        (10, StrategyReport(action="compact", status="failed"), "", ("", None)),
        (9, StrategyReport(action="compact", status="done"), "asked", ("asked", None)),
    ],
    ids=["too little", "too few tokens for that", "a fifth", "a fifth for messages", "skipped", "failed", "a person's"],
)
async def test_a_summary_that_takes_off_less_than_a_fifth_lets_dropping_act_and_no_other_does(
    keep: int, report: StrategyReport, forced: str, expected: tuple[str, int | None]
) -> None:
    drop = Step(action="drop")
    await run_pipeline(window(forced=forced), [Step(keep=keep, report=report), drop])
    assert (drop.seen[0].forced, drop.seen[0].target) == expected


async def test_after_a_summary_for_too_many_messages_that_freed_too_little_whole_messages_are_dropped() -> None:
    drop = Step(action="drop")
    report = StrategyReport(action="compact", status="done", trigger="messages")
    await run_pipeline(window(), [Step(keep=9, each=200, report=report), drop])
    assert (drop.seen[0].forced, drop.seen[0].target, drop.seen[0].may_truncate) == ("progress", 1_600, False)


@pytest.mark.req("AS-COMPACT-09")
async def test_a_reduction_that_can_not_be_noted_is_not_taken_unless_the_provider_refused_the_window() -> None:
    async def noted(before: Window, reduction: Reduction) -> None:
        assert (len(before.messages), len(reduction.messages), len(reduction.dropped)) == (10, 4, 6)
        raise StorageFull

    left, (report,) = await run_pipeline(window(), [Step(keep=4)], record_reduction=noted)
    assert left.messages == window().messages
    assert (report.status, report.messages_after, report.tokens_after, report.handle) == ("failed", 10, 100, "")
    assert "StorageFull" in report.reason
    left, (report,) = await run_pipeline(window(forced="overflow"), [Step(keep=4)], record_reduction=noted)
    assert left.messages == window().messages[-4:]
    assert report.status == "done"
    assert "can't be undone" in report.note


@pytest.mark.req("AS-COMPACT-09")
async def test_only_what_takes_something_away_is_noted_and_before_the_next_step() -> None:
    heard: list[str] = []

    class Telling(Step):
        async def reduce(self, window: Window) -> Reduction:
            heard.append(self.action)
            return await super().reduce(window)

    async def noted(_before: Window, reduction: Reduction) -> None:
        heard.append(f"noted {reduction.report.action}")

    only_shorter = StrategyReport(action="truncate", status="done")
    not_done = StrategyReport(action="drop", status="skipped", handle="c2")
    steps = [Telling(action="truncate", report=only_shorter), Telling(keep=2), Telling(action="drop", report=not_done)]
    await run_pipeline(window(), steps, record_reduction=noted)
    assert heard == ["truncate", "compact", "noted compact", "drop"]


@pytest.mark.req("AS-BUG-10")
async def test_a_summary_and_dropping_do_nothing_when_the_steps_before_them_were_enough() -> None:
    asked: list[Sequence[Message]] = []

    async def summarize(messages: Sequence[Message], **_: object) -> CompactionSummary:
        asked.append(messages)
        return CompactionSummary(text="Enough was said.")

    config = CompactionConfig(trigger_messages=1)
    steps: list[Strategy] = [Compact(config, summarize), DropGroups(config)]
    enough = window(60, forced="overflow", target=tokens(talk(60)))
    left, reports = await run_pipeline(enough, steps)
    assert (left.messages, asked) == (enough.messages, [])
    assert [report.status for report in reports] == ["skipped", "skipped"]
    assert "before were enough" in reports[0].reason
    less = replace(enough, target=tokens(talk(60)) - 1)
    _, (report, _) = await run_pipeline(less, steps)
    assert (report.status, len(asked)) == ("done", 1)


def oversized() -> dict[str, tuple[Message, ...]]:
    giant = "".join(f"paragraph {number} of the long text. " for number in range(1_000))
    loop = [*talk(4), call("a"), result("a", giant)]
    shapes = {
        "a giant first message": [said(giant), *talk(4)],
        "only one message": [said(giant)],
        "a giant result in the tail": loop,
        "fewer messages than stay": [said(giant), said("Go on.", role="assistant"), *loop],
    }
    return {name: tuple(with_ids(messages, session="s1")) for name, messages in shapes.items()}


@pytest.mark.req("AS-MEM-02", "AS-BUG-04", "AS-BUG-06")
@pytest.mark.parametrize("compacts", [True, False], ids=["with a summary", "with dropping alone"])
@pytest.mark.parametrize("shape", oversized())
async def test_a_refused_window_of_any_shape_comes_to_fit_its_target(shape: str, compacts: bool) -> None:
    messages = oversized()[shape]
    config = CompactionConfig()
    steps: list[Strategy] = [*([Compact(config, DigestSummarizer())] if compacts else []), DropGroups(config)]
    refused = Window(messages=messages, agent="main", session="s1", forced="overflow", target=3_000)
    assert tokens(messages) > 8_000
    left, _ = await run_pipeline(refused, steps)
    assert tokens(left.messages) <= 3_000
    assert left.messages[-1].id == messages[-1].id
    # with nobody to sum up or drop, texts are cut all the same
    left, reports = await run_pipeline(refused, [])
    assert (tokens(left.messages) <= 3_000, len(left.messages), reports) == (True, len(messages), ())


@pytest.mark.req("AS-BUG-04")
async def test_what_is_not_refused_is_not_cut() -> None:
    messages = oversized()["only one message"]
    left, _ = await run_pipeline(Window(messages=messages, forced="asked", target=10), [])
    assert left.messages == messages


@pytest.mark.req("CC-PROGRESS", "AS-BUG-01", "AS-BUG-32")
async def test_too_little_progress_escalates_once_and_three_failures_open_the_breaker_with_its_reason() -> None:
    asked: list[int] = []
    share = 1

    async def wordy(messages: Sequence[Message], *, most_tokens: int | None = None, **_: object) -> CompactionSummary:
        asked.append(len(messages))
        return CompactionSummary(text="much was said " * ((most_tokens or 0) // 4 // share))

    messages = talk(40, words="wide " * 80)
    config = CompactionConfig(trigger_messages=0, trigger_tokens=tokens(messages), carry_tokens=0)
    steps: list[Strategy] = [Compact(config, wordy), DropGroups(config)]
    left, (compact, drop) = await run_pipeline(window(messages=messages), steps)
    assert compact.status == drop.status == "done"
    assert compact.tokens_after > 0.8 * compact.tokens_before
    assert tokens(left.messages) <= 0.8 * tokens(messages)
    again, reports = await run_pipeline(left, steps)
    assert (again.messages, len(asked)) == (left.messages, 1)
    assert [report.status for report in reports] == ["skipped", "skipped"]

    share = 2
    _, (compact, drop) = await run_pipeline(window(messages=messages), steps)
    assert (compact.status, drop.status) == ("done", "skipped")
    assert 0.6 * compact.tokens_before < compact.tokens_after <= 0.8 * compact.tokens_before

    down = [ModelUnavailable() for _ in range(3)]
    model = FakeModel(*down[:2], reply(SUMMARY), *down)
    failing = Compact(CompactionConfig(), ModelSummarizer(model, CompactionConfig(combined=False)))
    requests: list[int] = []
    notes: list[str] = []
    for _ in range(8):
        left, (report,) = await run_pipeline(window(60), [failing])
        assert (report.status, get_mark(left.messages[0])) == ("done", "summary")
        requests.append(len(model.asked))
        notes.append(report.note)
    assert requests == [1, 2, 3, 4, 5, 6, 6, 6], "the third try worked, and those before it count no more"
    assert not any("in a row" in note for note in notes[:6])
    assert all("3 failures in a row" in note for note in notes[6:])


@pytest.mark.req("AS-CHAIN-03")
async def test_a_cancellation_while_noting_is_raised_as_such_however_it_is_wrapped() -> None:
    reached = anyio.Event()

    async def noted(_before: Window, _reduction: Reduction) -> None:
        try:
            reached.set()
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class() as error:
            raise StorageFull from error

    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: run_pipeline(window(), [Step(keep=4)], record_reduction=noted))
            await reached.wait()
            scope.cancel()
    assert scope.cancelled_caught
