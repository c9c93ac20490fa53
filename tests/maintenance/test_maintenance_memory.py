"""Memory and its inbox: what one process could not finish is finished by the next, once, and never held up by."""

import asyncio
import errno
import os
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import UTC, date, datetime
from pathlib import Path

import anyio
import pytest

import ricordo.extraction.rules
from piped_processes import PipedProcess, start_script
from places import place_of
from ricordo import FlushConfig, Memory, Message, Scope
from ricordo.clock import MonotonicIds, SystemClock
from ricordo.events import Event
from ricordo.extraction import Finding, extract
from ricordo.extraction.cursor import find_unextracted_sessions
from ricordo.guard import Redactor
from ricordo.jobs import Inbox, Job, JobOutcome, JobRecord
from ricordo.messages import Text, with_mark
from ricordo.runtime import Settings
from ricordo.storage import ABSENT, Disk
from ricordo.storage.local import LocalFiles
from ricordo.testing import RecordedRequest, Say, ScriptedModel
from ricordo.workspace import Transcript, cursor_path, transcript_path
from ricordo.workspace.layout import cursor_path_for

KEEPER = Path(__file__).parent / "keeper.py"
SCOPE = Scope(user="me", project="shop")

pytestmark = pytest.mark.anyio


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


@pytest.fixture
def opened(
    root: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> Callable[..., AbstractAsyncContextManager[Memory]]:
    flush = FlushConfig(closing_seconds=0.05 if "blocked" in request.fixturenames else 2.0)
    settings = Settings(root=None, user="me", data=tmp_path / "data", cache=tmp_path / "cache", flush=flush)
    return lambda **given: Memory.open(root, scope=SCOPE, settings=settings, **given)


Opened = Callable[..., AbstractAsyncContextManager[Memory]]


def said(text: str, name: str = "") -> Message:
    return Message(role="user", id=name, parts=(Text(text=text),))


def start(root: Path, what: str) -> PipedProcess:
    return start_script(KEEPER, root, what, root.parent / "log")


def finished(*running: PipedProcess) -> list[int | None]:
    for process in running:
        assert process.stdout.readline() == "ready\n"
    for process in running:
        process.stdin.write("\n")
        process.stdin.flush()
    told = [process.communicate(timeout=60) for process in running]
    return [process.returncode for process, _ in zip(running, told, strict=True)]


async def inbox_jobs(root: Path) -> list[JobRecord]:
    """Return the flushes that were asked for."""
    clock = SystemClock()
    inbox = Inbox(place_of(root) / "queue.db", clock=clock, ids=MonotonicIds(clock))
    try:
        return await inbox.jobs(kinds={"flush"}, limit=1000)
    finally:
        await inbox.close()


async def version(root: Path, name: str) -> str:
    files = LocalFiles(place_of(root))
    return (await files.read(name)).version if await files.info(name) else ABSENT


async def remembered(opened: Opened) -> Counter[str]:
    async with opened() as memory:
        return Counter(entry.content for entry in await memory.entries())


async def record(root: Path, session: str, *texts: str) -> None:
    """Record messages as a process that was killed right after that would have."""
    transcript = Transcript(
        LocalFiles(place_of(root)), transcript_path("main", session), session=session, redactor=Redactor(bytes(32))
    )
    await transcript.append([said(text) for text in texts])


async def ask(root: Path, *sessions: str) -> None:
    clock = SystemClock()
    inbox = Inbox(place_of(root) / "queue.db", clock=clock, ids=MonotonicIds(clock))
    for session in sessions:
        await inbox.put(Job(kind="flush", agent="main", session=session, user="me"))
    await inbox.close()


@pytest.mark.req("AS-BUG-14", "DF-B24")
def test_a_kill_between_recording_and_extracting_is_healed_by_who_merely_opens_and_closes(
    root: Path, opened: Opened
) -> None:
    assert finished(start(root, "killed")) == [-9]
    assert [record.state for record in anyio.run(inbox_jobs, root)] == ["running"]
    assert finished(start(root, "visit")) == [0]
    assert (root.parent / "log").read_text() == "m1\nm1\n"
    [done] = anyio.run(inbox_jobs, root)
    assert (done.state, done.job.attempts) == ("done", 1)
    assert done.outcome is not None
    assert done.outcome.counts == {"messages": 1, "entries": 1}
    assert finished(start(root, "visit")) == [0]
    assert list(anyio.run(remembered, opened).values()) == [1]
    assert (root.parent / "log").read_text() == "m1\nm1\n"


@pytest.mark.req("DF-B24", "AS-BUG-14", "AS-BUG-13", "HE-C8-async")
def test_after_a_kill_all_that_waited_is_extracted_once_from_where_each_session_stood(
    root: Path, opened: Opened
) -> None:
    sessions = [f"a{number}" for number in range(4)]
    statements = [f"We decided to use {session.upper()}-DB for the orders." for session in sessions]
    later = "We decided to use LATER-DB for the invoices."
    anyio.run(remembered, opened)
    anyio.run(record, root, sessions[0], statements[0])
    anyio.run(ask, root, sessions[0])
    assert finished(start(root, "stay")) == [0]

    async def prepare() -> None:
        await record(root, sessions[0], later)
        for session, statement in zip(sessions[1:], statements[1:], strict=True):
            await record(root, session, statement)
        await ask(root, *sessions)

    anyio.run(prepare)
    assert finished(start(root, "killed")) == [-9]
    # it died in what waited or in its own, whichever it came to first, perhaps while the other was begun
    left = Counter(record.state for record in anyio.run(inbox_jobs, root) if record.job.session in sessions)
    assert left["done"] == 1
    assert left["waiting"] + left["running"] == len(sessions)
    assert Counter(record.state for record in anyio.run(inbox_jobs, root))["running"] >= 1
    assert finished(start(root, "stay")) == [0]
    assert {record.state for record in anyio.run(inbox_jobs, root)} == {"done"}
    found = anyio.run(remembered, opened)
    assert {text: found[text] for text in (*statements, later)} == dict.fromkeys((*statements, later), 1)
    # how far each session was read is on the disk: another look extracts nothing
    log = (root.parent / "log").read_text()
    assert len(log.splitlines()) >= 1 + 1 + len(sessions)
    anyio.run(ask, root, *sessions)
    assert finished(start(root, "stay")) == [0]
    assert (root.parent / "log").read_text() == log


@pytest.mark.req("AS-BUG-13", "DF-B24")
def test_processes_that_find_the_same_work_extract_each_session_once(root: Path, opened: Opened) -> None:
    sessions = [f"s{number}" for number in range(12)]
    anyio.run(remembered, opened)

    async def prepare() -> None:
        for session in sessions:
            await record(root, session, f"We decided to use {session.upper()}-DB for the orders.")
        await ask(root, *sessions)

    anyio.run(prepare)
    assert finished(*(start(root, "stay") for _ in range(4))) == [0] * 4
    assert len((root.parent / "log").read_text().splitlines()) == len(sessions)
    found = anyio.run(remembered, opened)
    assert len(found) == len(sessions)
    assert set(found.values()) == {1}
    assert Counter(record.state for record in anyio.run(inbox_jobs, root)) == {"done": len(sessions)}


async def test_opening_looking_and_closing_make_no_inbox(root: Path, opened: Opened) -> None:
    async with opened() as memory:
        await memory.remember("The door is red.")
        await memory.recall("door")
        await memory.doctor()
    assert not [name for name in os.listdir(root) if name.startswith("queue.db")]


@pytest.mark.req("DF-C18")
async def test_an_ingest_is_settled_when_it_returns(root: Path, opened: Opened) -> None:
    async with opened() as memory:
        ingested = await memory.ingest([said("We deploy only from main.")], session="s1")
        assert len(ingested.entries) == 1
        assert [record.state for record in await inbox_jobs(root)] == ["done"]
        await memory.ingest(ingested.messages, session="s1")
    assert len(await inbox_jobs(root)) == 1


@pytest.mark.req("DF-C18")
async def test_a_model_is_asked_about_an_ingest_at_once(root: Path, tmp_path: Path) -> None:
    asked = list[anyio.Event]()

    def answer(_: RecordedRequest) -> Say:
        asked[-1].set()
        return Say('{"lessons": []}')

    flush = FlushConfig(model=ScriptedModel(answer))
    settings = Settings(root=None, user="me", data=tmp_path / "data", cache=tmp_path / "cache", flush=flush)
    talk = [said("We deploy only from main."), Message(role="assistant", parts=(Text(text="Noted."),))]
    async with Memory.open(root, scope=SCOPE, settings=settings) as memory:
        for session in ("s1", "s2"):
            asked.append(anyio.Event())
            assert (await memory.ingest(talk, session=session)).is_queued
            with anyio.fail_after(20):
                await asked[-1].wait()
            await memory.drain(seconds=20)


class Blocked:
    """An extraction that does not end until it is told to."""

    def __init__(self) -> None:
        self.began, self.go = threading.Event(), threading.Event()

    def __call__(self, *_: object) -> Sequence[Finding]:
        self.began.set()
        self.go.wait(60)
        return ()


@pytest.fixture
def blocked(monkeypatch: pytest.MonkeyPatch) -> Iterator[Blocked]:
    blocked = Blocked()
    monkeypatch.setattr(ricordo.extraction.rules, "extract_from_utterances", blocked)
    yield blocked
    blocked.go.set()


@pytest.mark.req("AS-BUG-14", "HE-C8-async", "DF-B24", "DF-C21")
async def test_closing_waits_for_no_extraction_beyond_its_limit(root: Path, opened: Opened, blocked: Blocked) -> None:
    async with opened():
        pass
    await record(root, "s1", "We deploy only from main.")
    await ask(root, "s1")
    async with opened():
        await anyio.to_thread.run_sync(blocked.began.wait)
    assert not blocked.go.is_set()
    [job] = await inbox_jobs(root)
    assert (job.state, job.outcome) == ("waiting", None)


@pytest.mark.req("AS-BUG-14", "DF-B24")
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_an_ingest_that_is_cancelled_leaves_its_work_to_be_done(
    root: Path, opened: Opened, blocked: Blocked, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened() as memory:
        task = asyncio.ensure_future(memory.ingest([said("We deploy only from main.")], session="s1"))
        await anyio.to_thread.run_sync(blocked.began.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    [job] = await inbox_jobs(root)
    assert job.state == "waiting"
    monkeypatch.undo()
    while (await inbox_jobs(root))[0].state != "done":
        async with opened():
            pass
    assert len(await remembered(opened)) == 1


class ReadOnlyDisk(Disk):
    """A disk that is mounted for reading only."""

    def open(self, path: str, flags: int) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return super().open(path, flags)

    def make_file(self, path: str, flags: int = 0) -> int:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    def commit(self, connection: sqlite3.Connection) -> None:
        error = sqlite3.OperationalError("attempt to write a readonly database")
        error.sqlite_errorcode = sqlite3.SQLITE_READONLY
        raise error


@pytest.mark.req("GO-I9")
async def test_a_root_that_cannot_be_written_to_still_opens_recalls_and_keeps_its_work(
    root: Path, opened: Opened
) -> None:
    async with opened() as memory:
        await memory.remember("The door of the shop is red.")
    await record(root, "s1", "We deploy only from main.")
    await ask(root, "s1")
    async with opened(disk=ReadOnlyDisk()) as memory:
        assert [hit.entry.content for hit in await memory.recall("door")] == ["The door of the shop is red."]
    assert [record.state for record in await inbox_jobs(root)] == ["waiting"]
    async with opened():
        pass
    assert len(await remembered(opened)) == 2


@pytest.mark.req("AS-BUG-14", "AS-BUG-13", "DF-B24")
async def test_a_damaged_inbox_is_told_anew_what_was_not_extracted(root: Path, opened: Opened) -> None:
    async with opened() as memory:
        await memory.ingest([said("I prefer tea over coffee.")], session="done")
    await record(root, "open", "We deploy only from main.")
    assert await find_unextracted_sessions(LocalFiles(place_of(root))) == [("main", "open")]
    for name in ("queue.db", "queue.db-wal"):
        await LocalFiles(place_of(root)).replace(
            name, b"this is no database\n" * 500, expected=await version(root, name)
        )
    async with opened():
        pass
    assert len(await remembered(opened)) == 2
    assert [record.job.session for record in await inbox_jobs(root)] == ["open"]
    assert await find_unextracted_sessions(LocalFiles(place_of(root))) == []


@pytest.mark.req("DF-C16")
async def test_a_session_that_was_told_from_the_files_is_named_by_its_agent(root: Path) -> None:
    for agent, session in (("main", "a"), ("code reviewer", "b"), ("Großer", "c")):
        path = transcript_path(agent, session)
        assert cursor_path_for(path) == cursor_path(agent, session)
        await Transcript(LocalFiles(place_of(root)), path, session=session, redactor=Redactor(bytes(32))).append(
            [said("Hi.")]
        )
    assert await find_unextracted_sessions(LocalFiles(place_of(root))) == [("code reviewer", "b"), ("main", "a")]


@pytest.mark.req("DF-B1", "FC-DOCTOR")
async def test_doctor_shows_what_waits_and_what_failed_until_it_was_done(root: Path, opened: Opened) -> None:
    class Later:
        def now(self) -> datetime:
            return datetime(2031, 1, 1, tzinfo=UTC)

        def today(self) -> date:
            return self.now().date()

    async def checked() -> tuple[bool, int, str]:
        async with opened() as memory:
            [check] = [check for check in await memory.doctor() if check.name == "inbox"]
        return check.ok, check.count, check.detail

    assert await checked() == (True, 0, "jobs that wait in the inbox")
    inbox = Inbox(place_of(root) / "queue.db", clock=SystemClock(), ids=MonotonicIds(SystemClock()))
    await inbox.put(Job(kind="flush", agent="main", session="later", not_before=Later().now()))
    for outcome in (JobOutcome(state="failed", error="ModelRefused"), JobOutcome(state="done")):
        lease = await inbox.begin(Job(kind="flush", agent="main", session="s1"), seconds=60)
        assert lease is not None
        await inbox.complete(lease, outcome)
        ok, count, detail = await checked()
        assert count == 1
        assert ok == (outcome.state == "done")
        assert ("flush s1: ModelRefused" in detail) == (not ok)
    await inbox.close()


async def test_the_work_of_the_inbox_is_reported_without_content(root: Path, opened: Opened) -> None:
    async with opened():
        pass
    await record(root, "s1", "We deploy only from main.")
    await ask(root, "s1")
    events = list[Event]()
    async with opened(on_event=events.append):
        pass
    drained = next(event for event in events if event.stage == "drain" and event.status == "finished")
    assert drained.counts == {"messages": 1, "entries": 1}
    assert drained.scope == SCOPE


@pytest.mark.req("DF-C6")
@pytest.mark.parametrize("mark", ["summary", "memory", "notice"])
def test_what_nobody_said_is_not_learned(mark: str) -> None:
    message = said("We deploy only from main.", "m1")
    assert extract([message])
    assert extract([with_mark(message, "cut")]) == extract([message])
    assert extract([with_mark(message, mark)]) == ()  # type: ignore[arg-type]
