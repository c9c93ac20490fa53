"""Transcripts: every message once, in order, whatever is torn, repeated, or written at the same time."""

import json
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from piped_processes import start_code
from ricordo.guard import Redactor
from ricordo.messages import Message, Text
from ricordo.storage import FileStore
from ricordo.storage.local import LocalFiles
from ricordo.testing import InMemoryFiles
from ricordo.workspace import Transcript, read_transcript, transcript_path
from watched_files import WatchedFiles

pytestmark = [pytest.mark.anyio, pytest.mark.req("HE-T1")]

PATH = transcript_path("main", "s1")
REDACTOR = Redactor(bytes(32))


def said(text: str, *, name: str = "") -> Message:
    return Message(role="user", parts=(Text(text=text),), id=name)


def opened(files: FileStore) -> Transcript:
    return Transcript(files, PATH, session="s1", redactor=REDACTOR)


async def texts(files: FileStore) -> list[str]:
    return [message.text for message in (await read_transcript(files, PATH)).messages]


@pytest.mark.req("AS-TRANS-02")
async def test_what_was_appended_is_read_in_order_with_its_chain() -> None:
    files = InMemoryFiles()
    transcript = opened(files)
    await transcript.append([said("one"), said("two")])
    await transcript.append([said("three")])
    logged = await transcript.read()
    assert [message.text for message in logged.messages] == ["one", "two", "three"]
    assert logged.lines == (1, 2, 3)
    assert [message.parent for message in logged.messages] == [None, *(found.id for found in logged.messages[:2])]


@pytest.mark.req("AS-BUG-28")
async def test_a_session_without_a_log_is_empty_and_not_an_error() -> None:
    assert (await opened(InMemoryFiles()).read()).messages == ()


@pytest.mark.req("AS-TRANS-01", "AS-BUG-log-duplicates")
async def test_a_stored_message_is_not_written_again_and_an_append_costs_the_same_in_a_long_log(tmp_path: Path) -> None:
    files = WatchedFiles(LocalFiles(tmp_path / "root"))
    transcript = opened(files)
    given = [said("given", name="mine"), said("no id"), said("no id")]
    first = await transcript.append([given[0], *given])
    assert len(first.added) == 3
    ids = [message.id for message in first.messages[1:]]
    assert ids[0] == "mine"
    assert all(ids)
    assert len(set(ids)) == 3
    before = (tmp_path / "root" / PATH).read_bytes()
    for again in (transcript, opened(files)):
        repeated = await again.append([*first.messages, said("something else", name="mine")])
        assert repeated.added == ()
    looked_at = opened(files)
    assert len((await looked_at.read()).messages) == 3
    assert (await looked_at.append(first.messages)).added == (), "also when all of it was read before"
    replayed = await opened(files).append([said("given", name="mine"), said("no id"), said("no id")], known={})
    assert [message.id for message in replayed.messages] == ids
    assert (tmp_path / "root" / PATH).read_bytes() == before

    costs = []
    for number in range(60):
        files.bytes_read = files.bytes_written = 0
        await transcript.append([said(f"message {number:04}")])
        costs.append((files.bytes_read, files.bytes_written))
    assert len(set(costs[1:])) == 1
    assert max(costs[-1]) < 1000 < (tmp_path / "root" / PATH).stat().st_size


@pytest.mark.req("AS-TRANS-01")
async def test_the_same_conversation_read_twice_or_in_batches_has_the_same_ids() -> None:
    conversation = [said(text) for text in ("hello", "yes", "yes", "hello", "bye")]
    whole = await opened(InMemoryFiles()).append(conversation)
    files = InMemoryFiles()
    parts = [await opened(files).append(conversation[start : start + 2]) for start in (0, 2, 4)]
    assert [message.id for part in parts for message in part.messages] == [message.id for message in whole.messages]


@pytest.mark.req("AS-TRANS-01")
async def test_equal_messages_said_at_different_moments_are_both_kept() -> None:
    files = InMemoryFiles()
    first, second = opened(files), opened(files)
    await first.append([said("yes")])
    await second.append([said("yes")])
    await first.append([said("yes")])
    assert await texts(files) == ["yes", "yes", "yes"]


GARBAGE = st.sampled_from([b"\xff\xfe", b"{}", b"null", b"[1]", b"[" * 5000, b'{"id": 5}', b"\x00", b'"text"'])


@pytest.mark.req("AS-TRANS-02")
@given(
    count=st.integers(2, 6),
    place=st.integers(0, 5),
    cut=st.integers(1, 60),
    garbage=st.none() | GARBAGE,
    torn=st.booleans(),
)
@example(count=3, place=1, cut=10, garbage=None, torn=False)
async def test_a_broken_line_is_reported_and_hides_no_other(
    count: int, place: int, cut: int, garbage: bytes | None, torn: bool
) -> None:
    files, at = InMemoryFiles(), place % count
    await opened(files).append([said(f"message {number} ünï", name=f"id-{number}") for number in range(count)])
    stored = await files.read(PATH)
    lines = stored.data.splitlines(keepends=True)
    lines[at] = (lines[at][:cut] if garbage is None else garbage) + b"\n"
    lines.insert(at, b"{torn\n")
    broken = b"".join(lines)
    await files.replace(PATH, broken.rstrip(b"\n") if torn else broken, expected=stored.version)

    logged = await read_transcript(files, PATH)
    kept = [f"id-{number}" for number in range(count) if number != at]
    assert [message.id for message in logged.messages] == kept
    assert [(found.line, bool(found.reason)) for found in logged.broken] == [(at + 1, True), (at + 2, True)]
    assert [message.parent for message in logged.messages] == [None, *kept[:-1]]

    await opened(files).append([said("afterwards", name="last")])
    after = await read_transcript(files, PATH)
    assert [message.id for message in after.messages] == [*kept, "last"]
    assert after.messages[-1].parent == kept[-1]


@pytest.mark.req("AS-TRANS-02")
async def test_a_line_torn_by_a_crash_is_closed_and_what_it_said_can_be_said_again() -> None:
    files = InMemoryFiles()
    transcript = opened(files)
    await transcript.append([said("one", name="1"), said("two", name="2")])
    whole = await files.read(PATH)
    await files.replace(PATH, whole.data[:-9], expected=whole.version)
    for again in (opened(files), transcript):
        await again.append([said("one", name="1"), said("two", name="2"), said("three", name="3")])
    assert await texts(files) == ["one", "two", "three"]


@pytest.mark.req("AS-TRANS-03", "AS-TRANS-01")
async def test_two_open_transcripts_of_one_session_lose_and_double_nothing(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path / "root")

    async def write(transcript: Transcript, names: range) -> None:
        for number in names:
            await transcript.append([said(f"{number}", name=f"id-{number}")])

    async with anyio.create_task_group() as group:
        group.start_soon(write, opened(files), range(20))
        group.start_soon(write, opened(LocalFiles(tmp_path / "root")), range(10, 30))
    logged = await read_transcript(files, PATH)
    assert sorted(message.id for message in logged.messages) == sorted(f"id-{number}" for number in range(30))
    assert [message.parent for message in logged.messages[1:]] == [message.id for message in logged.messages[:-1]]


_WRITER = """
import sys, anyio
from pathlib import Path
from ricordo.storage.local import LocalFiles
from ricordo.guard import Redactor
from ricordo.messages import Message, Text
from ricordo.workspace.transcript import Transcript

async def main():
    root, path, start, stop = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    transcript = Transcript(LocalFiles(root), path, session="s1", redactor=Redactor(bytes(32)))
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(start, stop):
        await transcript.append([Message(role="user", parts=(Text(text="word " * number),), id=f"id-{number}")])

anyio.run(main)
"""


@pytest.mark.req("AS-TRANS-03")
def test_two_processes_writing_one_session_lose_and_double_nothing(tmp_path: Path) -> None:
    spans = [(0, 60), (30, 90)]
    running = [start_code(_WRITER, tmp_path / "root", PATH, start, stop) for start, stop in spans]
    for process in running:
        assert process.stdout.readline() == "ready\n"
    for process in running:
        process.stdin.write("\n")
        process.stdin.flush()
    for process in running:
        process.communicate(timeout=60)
        assert process.returncode == 0
    rows = [json.loads(line) for line in (tmp_path / "root" / PATH).read_bytes().splitlines()]
    assert sorted(row["id"] for row in rows) == sorted(f"id-{number}" for number in range(90))


@pytest.mark.req("AS-TRANS-03")
async def test_a_log_that_was_removed_or_cut_while_open_is_written_anew() -> None:
    files = InMemoryFiles()
    transcript = opened(files)
    messages = [said(f"message {number}", name=f"id-{number}") for number in range(4)]
    await transcript.append(messages)
    await files.delete(PATH)
    await transcript.append(messages[:2])
    assert await texts(files) == ["message 0", "message 1"]
    stored = await files.read(PATH)
    await files.replace(PATH, stored.data[: stored.data.index(b"\n") + 1], expected=stored.version)
    await transcript.append(messages)
    assert await texts(files) == [message.text for message in messages]


@pytest.mark.req("AS-TRANS-01")
async def test_a_line_that_a_person_erased_while_open_makes_no_message_double() -> None:
    files = InMemoryFiles()
    transcript = opened(files)
    await transcript.append([said("a" * number, name=f"id-{number}") for number in range(1, 9)])
    stored = await files.read(PATH)
    lines = stored.data.splitlines(keepends=True)
    await files.replace(PATH, b"".join([lines[0], *lines[3:]]), expected=stored.version)
    for _ in range(3):
        await transcript.append([said("b" * 40, name="new"), said("a" * 8, name="id-8")])
    logged = await read_transcript(files, PATH)
    assert [message.id for message in logged.messages] == ["id-1", *(f"id-{number}" for number in range(4, 9)), "new"]


@pytest.mark.req("AS-BUG-11", "AS-TRANS-01")
async def test_what_a_message_says_is_kept_to_the_letter() -> None:
    files = InMemoryFiles()
    text = "line\r\nline\u2028sep\x85\x00\ud800 end\n\n"
    when = datetime(2026, 11, 21, 8, 3, 11, 482_123, tzinfo=UTC)
    await opened(files).append([Message(role="assistant", parts=(Text(text=text),), name="Ana", time=when)])
    message = (await read_transcript(files, PATH)).messages[0]
    assert (message.text, message.name, message.time, message.role) == (text, "Ana", when, "assistant")
