"""A compaction learns from what it takes away, or a worker does: each message once, whoever fails or dies when."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from forking import driven
from hand_clock import HandClock
from ricordo import FlushConfig
from ricordo.clock import MonotonicIds
from ricordo.context import ExtractionLease
from ricordo.context.compaction_extraction import CompactionExtraction
from ricordo.errors import StorageFull
from ricordo.events import Emitter, Event
from ricordo.extraction import Finding, Flusher, JobWorker, extract
from ricordo.extraction.session_extraction import SessionExtraction
from ricordo.guard import Redactor
from ricordo.jobs import Inbox, Job, JobOutcome, JobRecord, Lease
from ricordo.messages import Message, Text
from ricordo.scope import Scope
from ricordo.search.index import WorkspaceIndex
from ricordo.search.memory_root import MemoryRoot
from ricordo.testing import InMemoryFiles
from ricordo.workspace import ChangeSets, Transcript, read_all_entries, transcript_path
from watched_files import WatchedFiles

pytestmark = [pytest.mark.anyio, pytest.mark.req("HE-C4")]

HERE = Path(__file__).parent
SCOPE = Scope(user="me", project="shop")
FACTS = ("We deploy only from main.", "I prefer tea over coffee.", "My sister Ana lives in Porto.")
RULES = ["User prefers tea over coffee.", "User's sister Ana lives in Porto.", FACTS[0]]
LESSON = "Ana lives where the tea comes from."
SECONDS = 240.0


class FullInbox(Inbox):
    """An inbox that can be full, and waits where a test says so."""

    full = False
    begun: Callable[[], Any] | None = None

    async def begin(self, job: Job, *, seconds: float) -> Lease | None:
        if self.full:
            raise StorageFull
        lease = await super().begin(job, seconds=seconds)
        if self.begun:
            await self.begun()
        return lease

    async def complete(self, lease: Lease, outcome: JobOutcome) -> None:
        if self.full:
            raise StorageFull
        await super().complete(lease, outcome)

    async def release(self, lease: Lease, *, error: str | None = None, after: datetime | None = None) -> None:
        if self.full:
            raise StorageFull
        await super().release(lease, error=error, after=after)


@dataclass
class Bench:
    """A root in memory with an inbox and a worker that works when it is told to; `before` is told of each call."""

    inbox: FullInbox
    index: WorkspaceIndex
    files: InMemoryFiles
    clock: HandClock
    events: list[Event] = field(default_factory=list)
    read: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    before: Callable[[str, str], Any] | None = None

    def __post_init__(self) -> None:
        """Put the parts together."""
        emitter, names = Emitter(self.clock, (self.events.append,)), MonotonicIds(self.clock)
        watched, redactor = WatchedFiles(self.files, self._before), Redactor(bytes(32))
        flusher = Flusher(
            files=watched, redactor=redactor, key=bytes(32), clock=self.clock, ids=names, extract=self._extract
        )
        place = MemoryRoot(
            label="own",
            scope=Scope(project="shop"),
            folder="",
            files=watched,
            index=self.index,
            changes=ChangeSets(self.files, clock=self.clock, ids=names),
            redactor=redactor,
            key=bytes(32),
            clock=self.clock,
            ids=names,
        )
        self.flush = SessionExtraction(place=place, flusher=flusher, emitter=emitter, scope=SCOPE)
        self.worker = JobWorker(
            self.inbox,
            flush=self.flush,
            consolidate=self._consolidate,
            due=lambda _: True,
            emitter=emitter,
            clock=self.clock,
        )
        self.handover = CompactionExtraction(
            self.inbox, flush=self.flush, worker=self.worker, agent="main", session="s", user="me", seconds=SECONDS
        )

    async def _before(self, verb: str, path: str) -> None:
        if self.before:
            await self.before(verb, path)

    def _extract(self, messages: Sequence[Message]) -> Sequence[Finding]:
        self.read += [message.id for message in messages]
        return extract(messages)

    async def _consolidate(self) -> Mapping[str, int]:
        return {}

    async def say(self, *texts: str) -> tuple[Message, ...]:
        redactor = self.flush.place.redactor
        transcript = Transcript(self.files, transcript_path("main", "s"), session="s", redactor=redactor)
        said = [Message(role="user", parts=(Text(text=text),)) for text in texts]
        return (await transcript.append(said)).messages

    async def taken(self, *texts: str) -> ExtractionLease:
        messages = await self.say(*(texts or FACTS))
        self.ids = [message.id for message in messages]
        taken = await self.handover(messages)
        assert taken is not None
        assert list(taken.pending_ids) == self.ids
        return taken

    def lesson(self, **given: Any) -> Finding:
        lesson = Finding(content=LESSON, kind="lesson", confidence=0.7, message_ids=(self.ids[0],), quote="main")
        return replace(lesson, **given)

    async def remembered(self) -> list[str]:
        return sorted(located.entry.content for located in await read_all_entries(self.files))

    async def jobs(self, kind: str = "flush") -> list[JobRecord]:
        return await self.inbox.jobs(kinds={kind})

    async def states(self) -> list[str]:
        return [record.state for record in await self.jobs()]

    def ended(self, stage: str) -> list[tuple[str, str | None, Mapping[str, int]]]:
        found = (event for event in self.events if event.stage == stage and event.status != "started")
        return [(event.status, event.error, event.counts) for event in found]


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    clock, files = HandClock(), InMemoryFiles()
    index = await WorkspaceIndex.open(tmp_path / "index.db", files)
    inbox = FullInbox(tmp_path / "queue.db", clock=clock, ids=MonotonicIds(clock))
    yield Bench(inbox, index, files, clock)
    await inbox.close()
    await index.close()


@pytest.mark.req("AS-FLUSH-06")
async def test_each_agent_and_each_user_has_a_slot_whoever_works_their_jobs_off(bench: Bench) -> None:
    config = FlushConfig(model="offline", flush_trigger="throttled(600)")
    flush = replace(bench.flush, scope=Scope(project="shop"), config=config)
    found: list[bool] = []
    for agent, user in (("main", "me"), ("main", "me"), ("coder", "me"), ("main", "you")):
        transcript = Transcript(
            bench.files, transcript_path(agent, "s"), session="s", redactor=bench.flush.place.redactor
        )
        await transcript.append([Message(role="user", parts=(Text(text=f"We deploy {len(found)} times a day."),))])
        done = await flush(Job(kind="flush", session="s", agent=agent, user=user))
        found.append(bool(done.messages))
    assert found == [True, False, True, True]


@pytest.mark.req("AS-FLUSH-03", "AS-INDEX-02", "AS-COMPACT-05", "AS-COMPACT-09")
async def test_accepted_lessons_are_in_ledger_and_index_and_leave_the_workers_nothing(bench: Bench) -> None:
    taken = await bench.taken()
    [leased] = await bench.jobs()
    assert (leased.state, leased.job.first_id, leased.job.last_id) == ("running", bench.ids[0], bench.ids[-1])
    assert (await bench.worker.drain(seconds=5)).done == 0
    await taken.accept([bench.lesson()])
    [ended] = await bench.jobs()
    assert (ended.state, ended.outcome) == ("done", JobOutcome(state="done", counts={"messages": 3, "entries": 1}))
    assert await bench.remembered() == [LESSON]
    assert (await read_all_entries(bench.files))[0].entry.scope == Scope(user="me")
    assert bench.ended("extract") == [("finished", None, {"messages": 3, "entries": 1})]
    assert bench.ended("index") == [("finished", None, {"entries": 1})]
    assert [record.state for record in await bench.jobs("consolidate")] == ["waiting"]
    await bench.inbox.put(Job(kind="flush", agent="main", session="s", user="me"))
    await bench.worker.drain(seconds=5)
    assert bench.read == []
    assert await bench.remembered() == [LESSON]


@pytest.mark.req("AS-COMPACT-09", "AS-COMPACT-05")
async def test_what_is_released_is_extracted_by_a_worker_and_lessons_come_too_late(bench: Bench) -> None:
    taken = await bench.taken()
    await taken.release()
    assert await bench.states() == ["waiting"]
    await taken.accept([bench.lesson()])
    await taken.release()
    await bench.worker.drain(seconds=5)
    assert await bench.states() == ["done"]
    assert bench.read == bench.ids
    assert await bench.remembered() == RULES


@pytest.mark.req("AS-BUG-13")
async def test_where_all_was_learned_nobody_is_asked(bench: Bench) -> None:
    messages = await bench.say(*FACTS)
    await bench.flush.flusher.flush("main", "s")
    assert await bench.handover(messages) is None
    assert await bench.handover([]) is None
    assert await bench.jobs() == []


@pytest.mark.req("DF-B1")
async def test_while_another_works_on_the_session_the_messages_wait_for_the_workers(bench: Bench) -> None:
    messages = await bench.say(*FACTS)
    other = await bench.inbox.begin(Job(kind="flush", agent="main", session="s", user="me"), seconds=60)
    assert other is not None
    assert await bench.handover(messages) is None
    assert await bench.states() == ["waiting", "running"]
    await bench.inbox.complete(other, JobOutcome(state="done"))
    await bench.worker.drain(seconds=5)
    assert await bench.remembered() == RULES


@pytest.mark.req("AS-COMPACT-05", "DF-B1")
async def test_an_inbox_that_is_full_stops_no_compaction_and_is_told(bench: Bench) -> None:
    messages = await bench.say(*FACTS)
    bench.inbox.full = True
    assert await bench.handover(messages) is None
    assert bench.ended("extract") == [("failed", "StorageFull", {})]


@pytest.mark.parametrize("act", ["accept", "release"])
async def test_an_inbox_that_fills_up_meanwhile_costs_nothing_but_a_second_look(bench: Bench, act: str) -> None:
    taken = await bench.taken()
    bench.inbox.full = True
    await (taken.accept([bench.lesson()]) if act == "accept" else taken.release())
    assert bench.ended("extract")[-1] == ("failed", "StorageFull", {})
    bench.inbox.full = False
    bench.clock.turn(SECONDS + 1)
    await bench.worker.drain(seconds=5)
    assert await bench.states() == ["done"]
    assert await bench.remembered() == ([LESSON] if act == "accept" else RULES)


@pytest.mark.req("DF-B1")
async def test_a_job_for_more_that_was_taken_along_is_asked_for_again(bench: Bench) -> None:
    await bench.say("ok")
    await bench.inbox.put(Job(kind="flush", agent="main", session="s", user="me"))
    taken = await bench.taken(*FACTS[:1])
    await bench.say(FACTS[1])
    [leased] = await bench.jobs()
    assert (leased.state, leased.job.last_id) == ("running", None)
    await taken.accept([bench.lesson()])
    assert await bench.states() == ["waiting", "done"]
    await bench.worker.drain(seconds=5)
    assert await bench.states() == ["done", "done"]
    assert await bench.remembered() == [LESSON, RULES[0]]


async def test_lessons_after_the_lease_ran_out_add_nothing_to_what_a_worker_found(bench: Bench) -> None:
    taken = await bench.taken()
    bench.clock.turn(SECONDS + 1)
    await bench.worker.drain(seconds=5)
    await taken.accept([bench.lesson()])
    assert await bench.states() == ["done"]
    assert await bench.remembered() == RULES


@pytest.mark.parametrize("wrong", [{"content": " "}, {"confidence": 7.0}, {"kind": ""}])
async def test_lessons_that_are_no_entries_are_left_to_the_workers_at_once(bench: Bench, wrong: Any) -> None:
    taken = await bench.taken()
    await taken.accept([bench.lesson(), bench.lesson(**wrong)])
    assert await bench.states() == ["waiting"]
    assert bench.ended("extract")[-1] == ("failed", "InvalidEntry", {})
    await bench.worker.drain(seconds=5)
    assert await bench.remembered() == RULES


async def test_a_full_disk_leaves_the_lessons_for_a_later_flush_to_write(bench: Bench) -> None:
    taken = await bench.taken()

    async def full(verb: str, path: str) -> None:
        del path
        if verb == "append":
            raise StorageFull

    bench.before = full
    await taken.accept([bench.lesson()])
    bench.before = None
    [waiting] = await bench.jobs()
    assert (waiting.state, waiting.job.not_before) == ("waiting", bench.clock.now() + timedelta(seconds=30))
    bench.clock.turn(31)
    await bench.worker.drain(seconds=5)
    assert await bench.states() == ["done"]
    assert await bench.remembered() == [LESSON]
    assert bench.read == []


@pytest.mark.req("AS-CHAIN-03")
async def test_a_cancellation_between_ledger_and_inbox_waits_for_both(bench: Bench) -> None:
    taken = await bench.taken()
    task = asyncio.ensure_future(taken.accept([bench.lesson()]))

    async def cancel(verb: str, path: str) -> None:
        del path
        if verb == "append":
            task.cancel()

    bench.before = cancel
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await bench.states() == ["done"]
    assert await bench.remembered() == [LESSON]


@pytest.mark.req("AS-CHAIN-03")
async def test_a_cancellation_that_meets_the_handover_leaves_no_lease_behind(bench: Bench) -> None:
    messages = await bench.say(*FACTS)
    task = asyncio.ensure_future(bench.handover(messages))

    async def cancel() -> None:
        task.cancel()
        await anyio.lowlevel.checkpoint()

    bench.inbox.begun = cancel
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await bench.states() == ["waiting"]


def check_killed(told: list[dict[str, Any]]) -> None:
    lessons, rules = ["Deployments come from main."], sorted([FACTS[0], "User prefers tea over coffee."])
    for case in told:
        assert case["entries"] in (lessons, rules), case
        assert case["states"] == ["done"], case
    assert told[0]["entries"] == rules
    assert (told[-1]["step"], told[-1]["entries"]) == ("accepted", lessons)
    # the last step of all is the inbox, which ends the job; a kill there comes after the ledger was written
    assert [case["entries"] for case in told].count(lessons) > 1


@pytest.mark.req("DF-B24")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the driver forks")
def test_a_kill_between_ledger_and_inbox_adds_nothing_twice(tmp_path: Path) -> None:
    check_killed(driven(HERE / "handover_driver.py", tmp_path, 11))


@pytest.mark.req("DF-B24")
@pytest.mark.soak
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the driver forks")
def test_a_kill_at_any_step_of_accepting_adds_nothing_twice(tmp_path: Path) -> None:
    check_killed(driven(HERE / "handover_driver.py", tmp_path, 1))
