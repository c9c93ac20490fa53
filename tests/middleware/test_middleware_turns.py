"""What surrounds a turn: recording it, asking for its extraction, waking who works in the background."""

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import cast

import anyio
import pytest

from fake_models import FakeModel, Hanging, reply, say
from ricordo.agent import AgentLoop, Turn, TurnResult
from ricordo.agent.contract import TurnHandler
from ricordo.agent.turn_middleware import ExtractionMiddleware, MaintenanceMiddleware, TranscriptRecorder
from ricordo.clock import SystemClock
from ricordo.errors import ModelUnavailable, StorageBusy
from ricordo.events import Emitter, Event
from ricordo.guard import Redactor
from ricordo.jobs import InboxConfig, Job, JobQueue
from ricordo.messages import Message, Text, with_mark
from ricordo.scope import Scope
from ricordo.testing import InMemoryFiles
from ricordo.workspace import Transcript, read_transcript, transcript_path

pytestmark = [pytest.mark.anyio, pytest.mark.req("DF-MW")]

SCOPE = Scope(user="me", project="shop")
TURN = Turn(scope=SCOPE, agent="main", session="s1", messages=(say("hello"),))
RESULT = TurnResult(message=Message(role="assistant"))


class Noon:
    """A clock that stands still."""

    def now(self) -> datetime:
        return datetime(2026, 11, 21, 12, tzinfo=UTC)

    def today(self) -> date:
        return date(2026, 11, 21)


@dataclass
class Inbox:
    """A queue that only takes jobs, or refuses them; `held` makes it wait first."""

    refuses: Exception | None = None
    held: anyio.Event | None = None
    jobs_put: list[Job] = field(default_factory=list)
    reached: anyio.Event = field(default_factory=anyio.Event)

    async def put(self, job: Job) -> Job:
        self.reached.set()
        if self.held:
            await self.held.wait()
        if self.refuses:
            raise self.refuses
        self.jobs_put.append(job)
        return job


def flushing(inbox: Inbox, emitter: Emitter | None = None) -> ExtractionMiddleware:
    return ExtractionMiddleware(cast("JobQueue", inbox), config=InboxConfig(debounce_seconds=0), emitter=emitter)


async def answer(_turn: Turn) -> TurnResult:
    return RESULT


async def fail(_turn: Turn) -> TurnResult:
    raise ModelUnavailable("gone")


@pytest.mark.req("AS-TRIG-02", "AS-BUG-14", "AS-COMPACT-16", "DF-C16")
async def test_at_the_end_of_a_turn_a_job_names_its_session_and_user_and_no_content() -> None:
    inbox = Inbox()
    assert await flushing(inbox)(TURN, answer) is RESULT
    assert inbox.jobs_put == [Job(kind="flush", agent="main", session="s1", user="me")]


@pytest.mark.req("DF-B2", "DF-QUEUE")
@pytest.mark.req("AS-TRIG-02")
async def test_a_job_waits_for_a_pause_and_never_for_long_and_tells_who_watches_what_waits() -> None:
    inbox, told = Inbox(), list[Job]()
    flush = ExtractionMiddleware(
        cast("JobQueue", inbox), clock=Noon(), signals=lambda said: frozenset({said[0].role}), on_enqueue=told.append
    )
    await flush(TURN, answer)
    noon = Noon().now()
    assert [(job.not_before, job.deadline) for job in inbox.jobs_put] == [
        (noon + timedelta(seconds=30), noon + timedelta(seconds=120))
    ]
    assert inbox.jobs_put[0].signals == {"user"}
    assert told == inbox.jobs_put


@pytest.mark.req("AS-TRIG-02", "AS-BUG-12")
async def test_a_turn_that_failed_is_extracted_too_and_fails_as_it_did() -> None:
    inbox = Inbox()
    with pytest.raises(ModelUnavailable, match="gone"):
        await flushing(inbox)(TURN, fail)
    assert len(inbox.jobs_put) == 1


@pytest.mark.req("AS-BUG-12")
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("native", [False, True])
async def test_a_turn_that_is_cancelled_is_extracted_too_and_stays_cancelled(native: bool) -> None:
    inbox, silence = Inbox(), Hanging()
    harness = AgentLoop(FakeModel(silence), turns=[flushing(inbox)])
    if native:
        task = asyncio.ensure_future(harness.run(TURN))
        await silence.reached.wait()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
    else:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(harness.run, TURN)
                await silence.reached.wait()
                scope.cancel()
        assert scope.cancelled_caught
    assert len(inbox.jobs_put) == 1


@pytest.mark.req("AS-BUG-12")
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_cancellation_waits_until_the_job_is_there() -> None:
    held = anyio.Event()
    inbox = Inbox(held=held)
    task = asyncio.ensure_future(flushing(inbox)(TURN, answer))
    await inbox.reached.wait()
    task.cancel()
    await asyncio.sleep(0)
    held.set()
    await asyncio.wait([task])
    assert task.cancelled()
    assert len(inbox.jobs_put) == 1


@pytest.mark.req("AS-BUG-14")
async def test_an_inbox_that_can_not_be_written_to_ends_no_turn_and_is_reported() -> None:
    heard: list[Event] = []
    flush = flushing(Inbox(refuses=StorageBusy()), Emitter(SystemClock(), (heard.append,)))
    assert await flush(TURN, answer) is RESULT
    assert [(event.stage, event.status, event.error) for event in heard] == [("extract", "failed", "StorageBusy")]
    with pytest.raises(ModelUnavailable):
        await flush(TURN, fail)


@pytest.mark.req("AS-COMPACT-09", "AS-COMPACT-05", "AS-CHAIN-01", "DF-B1", "DF-C70")
async def test_what_a_compaction_drops_is_named_from_the_first_to_the_last_that_somebody_said() -> None:
    inbox = Inbox()
    hook = partial(flushing(inbox).before_drop, SCOPE, "main", "s1")
    summary = with_mark(Message(role="user", parts=(Text(text="before"),), id="sum"), "summary")
    await hook([summary, Message(role="user", id="m1"), with_mark(Message(role="assistant", id="m2"), "cut"), summary])
    await hook([summary])
    await hook([Message(role="user")])
    assert inbox.jobs_put == [Job(kind="flush", agent="main", session="s1", user="me", first_id="m1", last_id="m2")]


@pytest.mark.req("AS-TRIG-02", "AS-BUG-14", "AS-CONS-06")
@pytest.mark.parametrize("handler", [answer, fail])
async def test_after_each_turn_whoever_works_in_the_background_is_woken(handler: TurnHandler) -> None:
    order: list[str] = []

    async def noted(turn: Turn) -> TurnResult:
        order.append("turn")
        return await handler(turn)

    try:
        await MaintenanceMiddleware(lambda: order.append("woken"))(TURN, noted)
    except ModelUnavailable:
        order.append("raised")
    assert order == (["turn", "woken"] if handler is answer else ["turn", "woken", "raised"])


@pytest.mark.req("AS-TRIG-02", "FC-SECRET")
async def test_a_loop_over_a_transcript_leaves_every_message_there_with_its_time_and_sends_no_secret() -> None:
    files, heard = InMemoryFiles(), list[Event]()
    path = transcript_path("main", "s1")
    transcript = Transcript(files, path, session="s1", redactor=Redactor(bytes(32)))
    emitter = Emitter(Noon(), (heard.append,))
    record = TranscriptRecorder(transcript, scope=SCOPE, clock=Noon(), emitter=emitter)
    model = FakeModel(reply("noted"), reply("noted"))
    harness = AgentLoop(model, record=record)
    secret = "sk-proj-" + "a1B2c3D4e5F6g7H8i9J0" * 3
    told = Turn(scope=SCOPE, agent="main", session="s1", messages=(say(f"my key is {secret}"),))
    first = await harness.run(told)
    second = await harness.run(
        Turn(scope=SCOPE, agent="main", session="s1", messages=(say("hi"),), window=first.window)
    )
    logged = (await read_transcript(files, path)).messages
    assert [message.id for message in logged] == [message.id for message in second.window]
    assert len({message.id for message in logged}) == 4
    assert all(message.time == Noon().now() for message in logged)
    assert secret not in repr(model.asked)
    assert secret not in repr(logged)
    assert [event.counts.get("messages") for event in heard if event.status == "finished"] == [1, 1, 1, 1]
