"""What was extracted is in memory once, whatever happened between the append and the cursor."""

import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from ricordo.clock import MonotonicIds, SystemClock
from ricordo.extraction import Finding, Flusher, extract
from ricordo.extraction.cursor import load_cursor
from ricordo.guard import Redactor
from ricordo.messages import Message, Text
from ricordo.storage import FileStore
from ricordo.storage.local import LocalFiles
from ricordo.testing import InMemoryFiles
from ricordo.workspace import ChangeSets, Edit, Transcript, cursor_path, ledger_path, read_all_entries, transcript_path
from watched_files import WatchedFiles

pytestmark = [pytest.mark.anyio, pytest.mark.req("DF-B24", "DF-C22")]

CURSOR = cursor_path("main", "s")
REDACTOR = Redactor(bytes(32))
CLOCK = SystemClock()
LEDGER = ledger_path(CLOCK.today())
FACTS = ("We deploy only from main.", "I prefer tea over coffee.", "My sister Ana lives in Porto.")
LEARNED = ["User prefers tea over coffee.", "User's sister Ana lives in Porto.", FACTS[0]]


class Killed(BaseException):
    """The process ends here."""


async def say(files: FileStore, *texts: str, session: str = "s") -> None:
    transcript = Transcript(files, transcript_path("main", session), session=session, redactor=REDACTOR)
    await transcript.append([Message(role="user", parts=(Text(text=text),)) for text in texts])


def flusher(files: FileStore) -> Flusher:
    return Flusher(files=files, redactor=REDACTOR, key=bytes(32), clock=CLOCK, ids=MonotonicIds(CLOCK))


async def remembered(files: FileStore) -> list[str]:
    return sorted(located.entry.content for located in await read_all_entries(files))


async def put(files: FileStore, path: str, data: bytes) -> None:
    if await files.info(path):
        await files.delete(path)
    await files.create(path, data)


async def killed_flush(files: FileStore, verb: str, path: str, at: int = 1) -> None:
    """Flush, and die before the call number `at` of `verb` on `path`."""
    calls = 0

    async def kill(called: str, where: str) -> None:
        nonlocal calls
        calls += (called, where) == (verb, path)
        if calls == at:
            raise Killed

    with pytest.raises(Killed):
        await flusher(WatchedFiles(files, kill)).flush("main", "s")


async def appended_but_not_settled() -> InMemoryFiles:
    files = InMemoryFiles()
    await say(files, *FACTS)
    await killed_flush(files, "replace", CURSOR, at=2)
    assert await remembered(files) == LEARNED
    return files


@pytest.mark.req("AS-BUG-13")
async def test_a_block_that_was_not_appended_is_written_by_the_next_flush() -> None:
    files = InMemoryFiles()
    await say(files, *FACTS)
    await killed_flush(files, "append", LEDGER)
    await flusher(files).flush("main", "s")
    assert await remembered(files) == LEARNED


@pytest.mark.req("AS-BUG-13", "AS-LEDGER-01")
@pytest.mark.parametrize("killed_at", [("append", 0), ("append", 1), ("append", 2), ("replace", 0), None])
async def test_what_was_said_on_several_days_is_in_the_ledgers_of_its_days_and_once_after_a_kill(
    killed_at: tuple[str, int] | None,
) -> None:
    files = InMemoryFiles()
    transcript = Transcript(files, transcript_path("main", "s"), session="s", redactor=REDACTOR)
    days = [datetime(2026, 3, day, 9, tzinfo=UTC) for day in (2, 5, 9)]
    said = zip(FACTS, days, strict=True)
    await transcript.append([Message(role="user", parts=(Text(text=text),), time=day) for text, day in said])
    paths = [ledger_path(day.date()) for day in days]
    if killed_at is not None:
        verb, number = killed_at
        await killed_flush(files, verb, paths[number] if verb == "append" else CURSOR, at=1 if verb == "append" else 2)
    result = await flusher(files).flush("main", "s")
    assert await remembered(files) == LEARNED
    if killed_at is None:
        assert [block.path for block in result.blocks] == paths
        assert [entry.content for entry in result.entries] == [FACTS[0], *LEARNED[:2]]
    assert (await flusher(files).flush("main", "s")).entries == ()


@pytest.mark.req("AS-BUG-13")
async def test_what_was_undone_before_the_cursor_was_settled_stays_away() -> None:
    files = await appended_but_not_settled()
    stored = await files.read(LEDGER)
    await ChangeSets(files, clock=CLOCK, ids=MonotonicIds(CLOCK)).apply(
        [Edit(path=LEDGER, expected_hash=stored.version, data=None)], act="undo", who="me"
    )
    await say(files, "ok")
    await flusher(files).flush("main", "s")
    assert await remembered(files) == []


async def test_what_was_archived_before_the_cursor_was_settled_is_not_doubled() -> None:
    files = await appended_but_not_settled()
    data = (await files.read(LEDGER)).data
    await files.delete(LEDGER)
    await files.create(LEDGER.replace("/memory/", "/memory/archive/"), data)
    await flusher(files).flush("main", "s")
    assert await remembered(files) == LEARNED


async def test_a_bullet_that_a_person_removed_from_the_block_stays_away() -> None:
    files = await appended_but_not_settled()
    lines = (await files.read(LEDGER)).data.splitlines(keepends=True)
    await put(files, LEDGER, b"".join(line for line in lines if b"main" not in line))
    await flusher(files).flush("main", "s")
    assert await remembered(files) == LEARNED[:2]


@pytest.mark.req("AS-LEDGER-01")
@pytest.mark.parametrize("hand", [b"- We deploy\n", b"- We deploy\n- other\n", b"- W\n"])
@pytest.mark.parametrize("before", [b"", b"# x\n\n- Something old\n"])
async def test_a_persons_own_bullet_that_begins_like_the_block_is_kept(hand: bytes, before: bytes) -> None:
    files = InMemoryFiles()
    await say(files, FACTS[0])
    if before:
        await files.create(LEDGER, before)
    await killed_flush(files, "append", LEDGER)
    await put(files, LEDGER, before + hand)
    await flusher(files).flush("main", "s")
    assert (await files.read(LEDGER)).data.startswith(before + hand)
    assert FACTS[0] in await remembered(files)


async def test_a_torn_bullet_is_taken_out_and_what_stood_before_the_append_is_not() -> None:
    files = InMemoryFiles()
    old = b"# x\n\n- We deploy"
    await say(files, *FACTS)
    await files.create(LEDGER, old)
    await killed_flush(files, "append", LEDGER)
    block = (await load_cursor(files, CURSOR)).block.encode()
    for cut in range(1, len(block)):
        copy = InMemoryFiles()
        for info in await files.list():
            await copy.create(info.path, (await files.read(info.path)).data)
        await put(copy, LEDGER, old + b"\n" + block[:cut])
        await flusher(copy).flush("main", "s")
        assert await remembered(copy) == [*LEARNED[:2], "We deploy", LEARNED[2]], cut


@pytest.mark.req("AS-BUG-13")
@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b"null", b'{"done": "x"}', b"\xff"])
async def test_a_damaged_cursor_is_set_aside_and_doubles_nothing(damage: bytes) -> None:
    files = InMemoryFiles()
    await say(files, *FACTS, "Thank you.")
    await flusher(files).flush("main", "s")
    for number in (1, 2):
        await put(files, CURSOR, damage)
        await say(files, f"We decided to use PostgreSQL {number} for the orders.")
        await flusher(files).flush("main", "s")
        assert (await files.read(f"{CURSOR}.broken-{number}")).data == damage
    found = await remembered(files)
    assert len(found) == len(set(found)) == len(FACTS) + 2
    assert not (await load_cursor(files, CURSOR)).damaged


async def test_what_was_undone_stays_away_when_the_cursor_is_damaged_too() -> None:
    files = InMemoryFiles()
    await say(files, *FACTS)
    await flusher(files).flush("main", "s")
    stored = await files.read(LEDGER)
    await ChangeSets(files, clock=CLOCK, ids=MonotonicIds(CLOCK)).apply(
        [Edit(path=LEDGER, expected_hash=stored.version, data=None)], act="undo", who="me"
    )
    await put(files, CURSOR, b"")
    await flusher(files).flush("main", "s")
    assert await remembered(files) == []


@pytest.mark.req("AS-FLUSH-03", "AS-BUG-13")
async def test_an_extraction_that_takes_long_keeps_no_other_session_waiting(tmp_path: Path) -> None:
    sessions = [f"s{number}" for number in range(40)]
    for session in sessions:
        await say(LocalFiles(tmp_path), FACTS[0], session=session)
    release, begun = threading.Event(), threading.Event()

    def slow(messages: Sequence[Message]) -> Sequence[Finding]:
        begun.set()
        assert release.wait(20)
        return extract(messages)

    impatient = LocalFiles(tmp_path, busy_seconds=0.5)
    patient = flusher(LocalFiles(tmp_path))
    waiting = Flusher(
        files=impatient, redactor=REDACTOR, key=bytes(32), clock=CLOCK, ids=MonotonicIds(CLOCK), extract=slow
    )
    async with anyio.create_task_group() as group:
        group.start_soon(waiting.flush, "main", sessions[0])
        await anyio.to_thread.run_sync(begun.wait, 20)
        for session in sessions[1:]:
            assert (await flusher(impatient).flush("main", session)).messages == 1
        assert (await patient.flush("main", sessions[0])).messages == 1
        release.set()
    assert await remembered(impatient) == [FACTS[0]] * len(sessions)


@pytest.mark.req("AS-FLUSH-04", "AS-BUG-13")
async def test_a_flush_reads_no_more_of_a_long_log_than_of_a_short_one() -> None:
    files = InMemoryFiles()
    await say(files, *(f"This is message {number:05}." for number in range(2000)))
    await flusher(files).flush("main", "s")
    await say(files, FACTS[0])
    watched = WatchedFiles(files)
    assert (await flusher(watched).flush("main", "s")).messages == 1
    assert watched.bytes_read < 20_000 < len((await files.read(transcript_path("main", "s"))).data)
    assert await remembered(files) == [FACTS[0]]


@pytest.mark.req("AS-BUG-13")
@pytest.mark.parametrize("kept", [0, 1, 5, 30])
async def test_a_log_that_was_cut_or_edited_is_read_from_its_beginning(kept: int) -> None:
    files = InMemoryFiles()
    path = transcript_path("main", "s")
    await say(files, *(f"This is message {number:05}." for number in range(40)))
    await flusher(files).flush("main", "s")
    lines = (await files.read(path)).data.splitlines(keepends=True)
    await put(files, path, b"".join(lines[40 - kept :]))
    await say(files, FACTS[0])
    assert (await flusher(files).flush("main", "s")).messages == 1
    assert await remembered(files) == [FACTS[0]]


@pytest.mark.req("AS-BUG-13")
async def test_the_cursor_is_found_again_where_the_last_messages_that_were_read_are_erased() -> None:
    files = InMemoryFiles()
    path = transcript_path("main", "s")
    await say(files, *(f"This is message {number:05}." for number in range(40)))
    await flusher(files).flush("main", "s")
    lines = (await files.read(path)).data.splitlines(keepends=True)
    await put(files, path, b"".join(lines[:-9]))
    await say(files, FACTS[0])
    assert (await flusher(files).flush("main", "s")).messages == 1
