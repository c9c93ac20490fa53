"""A compaction in a running conversation: its steps in order, what is sent and kept afterwards, and cancelled ones."""

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

import anyio
import pytest

from fake_models import FakeModel, Hanging, reply, say
from ricordo.agent import AgentLoop, CompactionMiddleware, SessionState
from ricordo.agent.session_state import TurnRunner
from ricordo.context import (
    Compact,
    CompactionConfig,
    CompactionSummary,
    DigestSummarizer,
    ExtractionLease,
    ModelSummarizer,
    Reduction,
    Window,
    plan,
)
from ricordo.context.strategies import summarize as compacting
from ricordo.context.summary.summarizers import find_flaw
from ricordo.context.summary_message import find_instructions
from ricordo.errors import ModelUnavailable, ReplyInvalid
from ricordo.extraction import Finding
from ricordo.guard import parse_fence
from ricordo.messages import Message, Text, find_cut_points, get_mark, with_ids, with_pin
from ricordo.models import ChatModel, Reply, ReplyEvent
from ricordo.scope import Scope
from ricordo.workspace import AgentState
from ricordo.workspace.agent_state import StoredState

pytestmark = pytest.mark.anyio

SCOPE = Scope(user="me", project="shop")
BODY = "## SESSION INTENT\nPort the shop.\n## SUMMARY\nDone.\n## ARTIFACTS\nNone\n## NEXT STEPS\nNone"


@dataclass
class States:
    """Keeps states in mind; notes each save."""

    told: list[str] = field(default_factory=list)
    kept: list[AgentState] = field(default_factory=list)

    async def load(self, agent: str, session: str) -> StoredState:
        return StoredState(state=AgentState(agent=agent, session=session), version="")

    async def save(self, state: AgentState, *, expected: str) -> str:
        self.told.append("state saved")
        self.kept.append(state)
        return expected + "+"


def talk(count: int) -> tuple[Message, ...]:
    spoken = [say(f"Message number {number} says something of its own, in a sentence.") for number in range(count)]
    return tuple(with_ids(spoken, session="s1"))


def conversation(
    model: ChatModel,
    steps: Sequence[CompactionMiddleware],
    *,
    window: Sequence[Message] = (),
    states: States | None = None,
    session: str = "s1",
) -> TurnRunner:
    keeper = SessionState(AgentState(agent="main", session=session, window=tuple(window)), states=states)
    harness = AgentLoop(model, steps=[*steps, keeper.observe_request], record=keeper.record)
    return TurnRunner(scope=SCOPE, run=harness.run, session_state=keeper)


@pytest.mark.req("AS-COMPACT-09", "AS-TRIG-01", "AS-COMPACT-06")
async def test_one_compaction_takes_its_steps_in_order_and_the_request_comes_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    order: list[str] = []

    def told(name: str, act: Callable[..., object]) -> Callable[..., object]:
        def telling(*given: object, **named: object) -> object:
            order.append(name)
            return act(*given, **named)

        return telling

    def hook(name: str) -> Callable[[Sequence[Message]], object]:
        async def telling(messages: Sequence[Message]) -> None:
            assert len(messages) == 31
            order.append(name)

        return telling

    class Learns:
        pending_ids: Collection[str] = ("m1",)

        async def __call__(self, messages: Sequence[Message]) -> ExtractionLease:
            assert len(messages) == 31
            order.append("hand-over")
            return self

        async def accept(self, lessons: Sequence[Finding]) -> None:
            order.append("lessons accepted")

        async def release(self) -> None:
            raise AssertionError

    async def summarize(messages: Sequence[Message], **_: object) -> CompactionSummary:
        assert len(messages) == 31
        order.append("summary request")
        return CompactionSummary(text=BODY, lessons=())

    async def noted(before: Window, reduction: Reduction) -> None:
        assert (len(before.messages), len(reduction.messages)) == (51, 21)
        order.append("rebuild")

    monkeypatch.setattr(plan, "_find_trigger", told("threshold check", plan._find_trigger))
    monkeypatch.setattr(plan, "find_cut_points", told("cutoff", find_cut_points))
    monkeypatch.setattr(compacting, "find_flaw", told("acceptance", find_flaw))
    compact = Compact(
        CompactionConfig(),
        summarize,
        hook("before-drop hook"),  # type: ignore[arg-type]
        offload=hook("offload acknowledged"),  # type: ignore[arg-type]
        handover=Learns(),
    )
    states = States(told=order)
    model = FakeModel(reply("Fine."))
    going = conversation(
        model, [CompactionMiddleware([compact], record_reduction=noted)], window=talk(50), states=states
    )
    monkeypatch.setattr(model, "complete", told("request", model.complete))
    await going.session_state.save()
    order.clear()
    await going.send([say("And now?")])
    assert order[:-1] == [
        "threshold check",
        "cutoff",
        "hand-over",
        "offload acknowledged",
        "summary request",
        "acceptance",
        "lessons accepted",
        "before-drop hook",
        "rebuild",
        "state saved",
        "request",
    ]


@pytest.mark.req("AS-COMPACT-10")
async def test_what_is_sent_and_kept_is_one_summary_of_a_user_by_role_and_the_tail() -> None:
    rule = Message(role="system", parts=(Text(text="Answer in English."),), id="rule")
    pin = with_pin(replace(say("Never touch production."), id="p1"))
    spoken = talk(50)
    before = (*spoken[:20], rule, pin, *spoken[20:])
    states = States()
    written = ModelSummarizer(FakeModel(reply(BODY)), CompactionConfig(combined=False))
    model = FakeModel(reply("Fine."))
    compact = CompactionMiddleware([Compact(CompactionConfig(), written)])
    going = conversation(model, [compact], window=before, states=states)
    await going.send([say("And now?")])
    (sent,) = model.asked
    summary, *tail = sent
    assert (summary.role, get_mark(summary), len(sent)) == ("user", "summary", 21)
    assert tail == [*spoken[-19:], tail[-1]]
    assert tail[-1].text == "And now?"
    assert states.kept[-2].window == sent
    assert states.kept[-1].window[:-1] == sent
    body, first, *recent = (
        parse_fence(summary.text[summary.text.index("<summary") : summary.text.index("<instr")]) or ()
    )
    assert [line for line in body.splitlines() if line.startswith("## ")] == [
        line for line in BODY.splitlines() if line.startswith("## ")
    ]
    assert first == spoken[0].text
    assert recent == [message.text for message in spoken[31 - len(recent) : 31]]
    assert len(recent) >= 3
    assert [each.text for each in find_instructions([summary])] == ["Answer in English.", "Never touch production."]


class Wrapping:
    """A model whose failure hides the cancellation that caused it."""

    name = "wrapping"
    window = None

    def __init__(self, *, grouped: bool) -> None:
        self.reached = anyio.Event()
        self.asked = 0
        self._grouped = grouped

    async def complete(self, *_: object, **__: object) -> Reply:
        self.asked += 1
        try:
            self.reached.set()
            await anyio.sleep_forever()
            raise AssertionError
        except anyio.get_cancelled_exc_class() as error:
            if not self._grouped:
                raise ReplyInvalid("The reply broke off.", said=BODY) from error
            cause = RuntimeError("The connection broke.")
            cause.__cause__, error.__cause__ = error, cause
            raise ExceptionGroup("all of it", [ModelUnavailable("The model failed."), cause]) from cause

    def stream(self, *_: object, **__: object) -> AsyncIterator[ReplyEvent]:
        raise NotImplementedError


@pytest.mark.req("AS-CHAIN-03")
@pytest.mark.parametrize("where", ["hand-over", "offload", "summary", "summary, grouped", "summary, as a cause"])
async def test_a_cancelled_compaction_leaves_the_conversation_as_it_was_and_no_request_is_made(where: str) -> None:
    hanging, wrapping = Hanging(), Wrapping(grouped=where.endswith("grouped"))
    wraps = where.startswith("summary,")
    reached = wrapping.reached if wraps else hanging.reached
    summaries = FakeModel(hanging)

    async def hook(_messages: Sequence[Message]) -> None:
        reached.set()
        await anyio.sleep_forever()

    async def handover(messages: Sequence[Message]) -> None:
        await hook(messages)

    compact = Compact(
        CompactionConfig(),
        ModelSummarizer(wrapping if wraps else summaries),
        handover=handover if where == "hand-over" else None,
        offload=hook if where == "offload" else None,
    )
    states, model, other = States(), FakeModel(), FakeModel(reply("Of course."))
    going = conversation(model, [CompactionMiddleware([compact], retries=1)], window=talk(50), states=states)
    beside = conversation(
        other, [CompactionMiddleware([Compact(CompactionConfig(), DigestSummarizer())])], session="s2"
    )
    raised: list[BaseException] = []

    async def send() -> None:
        try:
            await going.send([say("And now?")])
        except BaseException as error:
            raised.append(error)
            raise

    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(send)
            await reached.wait()
            with anyio.CancelScope(shield=True):
                answer = await beside.send([say("Do you hear me?")])
            scope.cancel()
    assert [type(error) for error in raised] == [anyio.get_cancelled_exc_class()]
    assert str(answer) == "Of course."
    assert len(beside.session_state.state.window) == 2
    assert [message.text for message in going.session_state.state.window] == [*(m.text for m in talk(50)), "And now?"]
    assert states.kept[-1].window == going.session_state.state.window
    assert (model.asked, len(summaries.asked) <= 1, wrapping.asked <= 1) == ([], True, True)
