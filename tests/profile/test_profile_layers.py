"""The layers of the profile: each is built and tried with stubs beside it, and knows none of those above it."""

import json
from pathlib import Path

import pytest

import ricordo
from fake_models import FakeModel, reply
from hand_clock import HandClock
from ricordo.agent import Turn, TurnResult, compose
from ricordo.agent.contract import TurnHandler
from ricordo.agent.turn_middleware import ExtractionMiddleware
from ricordo.clock import MonotonicIds
from ricordo.curation import InMemoryProfileStore, ProfileUpdater
from ricordo.curation.profile.rendering import render_profile
from ricordo.curation.profile.storage import SavedProfile
from ricordo.errors import VersionConflict
from ricordo.events import Emitter
from ricordo.extraction import FlushResult, JobWorker, process_messages
from ricordo.jobs import Inbox, Job, JobOutcome, JobRecord, Lease
from ricordo.messages import JsonValue, Message, Text
from ricordo.scope import Scope
from ricordo.workspace import Fact, Profile

pytestmark = pytest.mark.anyio

SCOPE = Scope(user="me")
SAID = (
    Message(role="user", id="m1", parts=(Text(text="I live in Oslo."),)),
    Message(role="assistant", id="m2", parts=(Text(text="Noted."),)),
)
FACT: dict[str, JsonValue] = {
    "content": "Lives in Oslo", "category": "context", "confidence": 0.9, "quote": "I live in Oslo", "message": "m1",
    "scope": "user", "durability": "durable", "authority": "descriptive",
}  # fmt: skip


class StubQueue:
    """Takes jobs, and gives each of them away once."""

    def __init__(self) -> None:
        self.put_jobs: list[Job] = []

    async def put(self, job: Job) -> Job:
        self.put_jobs.append(job)
        return job

    async def lease(self, **_given: object) -> Lease | None:
        return Lease(job=self.put_jobs.pop(), token="t", expires_at=HandClock().now()) if self.put_jobs else None

    async def complete(self, lease: Lease, outcome: JobOutcome) -> None:
        assert (lease.token, outcome.state) == ("t", "done")

    async def jobs(self, **_given: object) -> list[JobRecord]:
        return []


class StubStore(InMemoryProfileStore):
    """A store that refuses the first save, as when another process was faster."""

    refused = 0

    async def save(
        self, profile: Profile, *, base: Profile, by: str, why: str = "", forget: bool = False
    ) -> SavedProfile:
        if not self.refused:
            self.refused += 1
            raise VersionConflict
        return await super().save(profile, base=base, by=by, why=why, forget=forget)


async def _answered(_: Turn) -> TurnResult:
    return TurnResult(message=SAID[1])


@pytest.mark.req("DF-LAYERS")
async def test_the_middleware_needs_no_more_than_something_that_takes_jobs_and_another_one_changes_nothing() -> None:
    class Taking:
        """Takes jobs, and no more."""

        def __init__(self) -> None:
            self.put_jobs: list[Job] = []

        async def put(self, job: Job) -> Job:
            self.put_jobs.append(job)
            return job

    queue, passed = Taking(), list[str]()

    async def added(turn: Turn, handler: TurnHandler) -> TurnResult:
        passed.append(turn.session)
        return await handler(turn)

    turn = Turn(scope=SCOPE, agent="main", session="s", messages=SAID[:1], window=())
    ask = ExtractionMiddleware(queue, clock=HandClock())  # type: ignore[arg-type]
    await compose([ask], _answered)(turn)
    await compose([added, ask], _answered)(turn)
    await compose([ask, added], _answered)(turn)
    assert passed == ["s", "s"]
    assert len({(job.kind, job.session, job.user) for job in queue.put_jobs}) == 1


@pytest.mark.req("DF-LAYERS")
async def test_the_queue_and_its_worker_need_no_more_of_each_other_than_jobs_and_a_function_for_them(
    tmp_path: Path,
) -> None:
    clock, done = HandClock(), list[str]()

    async def flush(job: Job) -> FlushResult:
        done.append(job.session)
        return FlushResult()

    inbox, stub = Inbox(tmp_path / "queue.db", clock=clock, ids=MonotonicIds(clock)), StubQueue()
    for queue in (inbox, stub):
        await queue.put(Job(kind="flush", session="s"))
        worker = JobWorker(queue, flush=flush, emitter=Emitter(clock), clock=clock)  # type: ignore[arg-type]
        assert (await worker.drain(seconds=30)).done == 1
    assert done == ["s", "s"]
    await inbox.close()


@pytest.mark.req("DF-LAYERS")
async def test_processing_updating_storing_and_rendering_each_work_beside_stubs() -> None:
    read = process_messages(SAID)
    assert [message.text for message in read.messages] == ["I live in Oslo.", "Noted."]
    clock = HandClock()
    model = FakeModel(reply(json.dumps({"user": {}, "history": {}, "newFacts": [FACT]})))
    store = StubStore(clock)
    done = await ProfileUpdater(store, model).update(read.messages, signals=read.signals)
    assert done is not None
    assert store.refused == 1
    assert [fact.content for fact in (await store.load()).facts] == ["Lives in Oslo"]
    # what is shown asks neither a store nor a model
    assert "Lives in Oslo" in render_profile(Profile(facts=(Fact(id="fact_00000001", content="Lives in Oslo"),))).text


@pytest.mark.req("DF-LAYERS")
@pytest.mark.parametrize(
    ("room", "above"),
    [
        ("profile", ("flush", "middleware", "queue", "harness", "runtime", "stores")),
        ("queue", ("flush", "profile", "middleware", "harness", "runtime", "workspace")),
        ("flush", ("middleware", "queue", "harness", "runtime", "stores")),
    ],
)
def test_a_layer_names_none_of_those_it_must_not_know(room: str, above: tuple[str, ...]) -> None:
    folder = Path(ricordo.__file__).parent / room
    sources = "\n".join(path.read_text(encoding="utf-8") for path in folder.glob("*.py"))
    assert [name for name in above if f"ricordo.{name}" in sources] == []
