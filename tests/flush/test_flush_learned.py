"""What a model learned from messages is written like what the rules find: once, and never beside it."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import count

import pytest

from ricordo.clock import MonotonicIds, SystemClock
from ricordo.errors import InvalidEntry
from ricordo.extraction import Finding, Flusher, FlushResult, extract
from ricordo.guard import Redactor
from ricordo.messages import Message, Text, ToolCall, with_mark
from ricordo.storage import FileStore
from ricordo.testing import InMemoryFiles
from ricordo.workspace import (
    TOMBSTONES,
    Source,
    Tombstone,
    Transcript,
    content_digest,
    cursor_path,
    read_all_entries,
    transcript_path,
)
from ricordo.workspace.history.tombstones import Tombstones
from watched_files import WatchedFiles

pytestmark = [pytest.mark.anyio, pytest.mark.req("HE-C4")]

KEY = bytes(32)
KEY_ID = "AKIA" + "Q7ZK3MFJ2XWPRT5L"
REDACTOR = Redactor(KEY)
CLOCK = SystemClock()
FACTS = ("We deploy only from main.", "I prefer tea over coffee.", "My sister Ana lives in Porto.")
RULES = sorted(["User prefers tea over coffee.", "User's sister Ana lives in Porto.", FACTS[0]])


class Killed(BaseException):
    """The process ends here."""


class Reader:
    """The rules, with a note of the messages they read."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def __call__(self, messages: Sequence[Message]) -> Sequence[Finding]:
        self.read += [message.id for message in messages]
        return extract(messages)


async def say(files: FileStore, *messages: Message | str) -> list[str]:
    """Record what was said and return the ids."""
    transcript = Transcript(files, transcript_path("main", "s"), session="s", redactor=REDACTOR)
    said = [Message(role="user", parts=(Text(text=each),)) if isinstance(each, str) else each for each in messages]
    return [message.id for message in (await transcript.append(said)).messages]


def flusher(files: FileStore, reader: Reader | None = None) -> Flusher:
    ids = MonotonicIds(CLOCK)
    return Flusher(files=files, redactor=REDACTOR, key=KEY, clock=CLOCK, ids=ids, extract=reader or extract)


def lesson(number: int, *ids: str) -> Finding:
    content = f"Lesson number {number}."
    return Finding(content=content, kind="lesson", confidence=0.8, message_ids=ids, quote="We deploy")


async def learned(files: FileStore, findings: Sequence[Finding], pending: Sequence[str]) -> FlushResult:
    return await flusher(files).record_findings("main", "s", findings, pending=pending)


async def remembered(files: FileStore) -> list[str]:
    return sorted(located.entry.content for located in await read_all_entries(files))


@pytest.mark.req("AS-FLUSH-03", "AS-BUG-13", "AS-COMPACT-05", "DF-B22")
async def test_lessons_are_entries_with_their_source_and_the_rest_of_the_log_is_left_to_the_next_flush() -> None:
    files = InMemoryFiles()
    ids = await say(files, *FACTS)
    assert await flusher(files).filter_pending("main", "s", ids[:2]) == tuple(ids[:2])
    flushed = await learned(files, [lesson(1, ids[1], ids[0])], ids[:2])
    assert flushed.counts == {"messages": 2, "entries": 1}
    [located] = await read_all_entries(files)
    assert located.entry.source == Source(session="s", messages=(ids[1], ids[0]), quote="We deploy")
    assert (located.entry.kind, located.entry.by, located.entry.confidence) == ("lesson", "flush", 0.8)
    assert await flusher(files).filter_pending("main", "s", ids) == (ids[2],)
    assert (await flusher(files).flush("main", "s")).messages == 1
    assert await remembered(files) == ["Lesson number 1.", "User's sister Ana lives in Porto."]
    assert await flusher(files).filter_pending("main", "s", ids) == ()


@pytest.mark.req("AS-BUG-13", "DF-C22")
async def test_no_lessons_at_all_move_the_cursor_too() -> None:
    files = InMemoryFiles()
    ids = await say(files, *FACTS)
    assert (await learned(files, [], ids)).counts == {"messages": 3, "entries": 0}
    assert (await flusher(files).flush("main", "s")).messages == 0
    assert await remembered(files) == []


@pytest.mark.req("AS-BUG-13", "DF-C22")
async def test_what_was_extracted_meanwhile_is_left_out_and_the_cursor_never_goes_back() -> None:
    files = InMemoryFiles()
    ids = await say(files, *FACTS[:2])
    await flusher(files).flush("main", "s")
    more = await say(files, FACTS[2])
    lessons = [lesson(1, ids[1], ids[0]), lesson(2, more[0], ids[1])]
    assert (await learned(files, lessons, [*ids, *more])).counts == {"messages": 1, "entries": 1}
    assert await remembered(files) == ["Lesson number 2.", "User prefers tea over coffee.", FACTS[0]]
    await say(files, "ok")
    await flusher(files).flush("main", "s")
    assert (await learned(files, lessons, [*ids, *more])).counts == {"messages": 0, "entries": 0}
    assert await flusher(files).filter_pending("main", "s", [*ids, *more]) == ()


@pytest.mark.req("AS-BUG-13")
async def test_whoever_moves_the_cursor_first_learns_alone() -> None:
    files = InMemoryFiles()
    ids = await say(files, *FACTS)
    more: list[str] = []

    async def somebody_flushes(verb: str, path: str) -> None:
        if (verb, path) == ("read", transcript_path("main", "s")) and not more:
            await flusher(files).flush("main", "s")
            more.extend(await say(files, "We use tabs."))

    watched = WatchedFiles(files, somebody_flushes)
    lessons = [lesson(1, ids[0]), lesson(2, ids[2])]
    # the log that was read first does not hold what was said later, and the cursor stands behind all of it
    assert (await flusher(watched).record_findings("main", "s", lessons, pending=ids)).messages == 0
    assert more
    assert await remembered(files) == RULES
    assert await flusher(files).filter_pending("main", "s", [*ids, *more]) == tuple(more)


@pytest.mark.req("DF-C22")
async def test_what_stands_between_and_nobody_learned_from_is_extracted_by_the_rules_and_nothing_twice() -> None:
    files = InMemoryFiles()
    ids = await say(files, *FACTS)
    flushed = await learned(files, [lesson(1, ids[0]), lesson(2, ids[2]), lesson(3, ids[1])], [ids[0], ids[2]])
    assert flushed.messages == 3
    assert await remembered(files) == ["Lesson number 1.", "Lesson number 2.", "User prefers tea over coffee."]


async def test_the_rules_read_nothing_where_all_was_learned_from_but_what_nobody_said() -> None:
    files = InMemoryFiles()
    note = with_mark(Message(role="user", parts=(Text(text="We deploy only from release."),)), "memory")
    ids = await say(files, FACTS[0], note, FACTS[1])
    reader = Reader()
    await flusher(files, reader).record_findings("main", "s", [lesson(1, ids[0])], pending=[ids[0], ids[2]])
    assert reader.read == []
    assert await remembered(files) == ["Lesson number 1."]


@pytest.mark.req("FC-SECRET")
async def test_what_was_forgotten_or_saved_in_the_same_breath_is_no_lesson_and_secrets_are_replaced() -> None:
    files = InMemoryFiles()
    stones = Tombstones().render_with([Tombstone(id="x", digest=content_digest("lesson number 1", KEY))])
    await files.create(TOMBSTONES, stones)
    saving = ToolCall(id="c", name="remember", arguments='{"content": "Lesson number 2."}')
    ids = await say(files, FACTS[0], Message(role="assistant", parts=(saving,)))
    secret = replace(lesson(3, ids[0]), content=f"The key is {KEY_ID}.")
    await learned(files, [lesson(1, ids[0]), lesson(2, ids[0]), secret], ids)
    [kept] = await remembered(files)
    assert kept.startswith("The key is")
    assert KEY_ID not in kept


async def test_lessons_that_are_no_entries_write_nothing_and_leave_the_messages_to_the_rules() -> None:
    files = InMemoryFiles()
    ids = await say(files, *FACTS)
    with pytest.raises(InvalidEntry):
        await learned(files, [lesson(1, ids[0]), replace(lesson(2, ids[1]), confidence=7.0)], ids)
    assert (await flusher(files).flush("main", "s")).messages == 3
    assert await remembered(files) == RULES


@pytest.mark.req("DF-C22")
async def test_a_cursor_that_was_made_anew_trusts_the_rules_alone() -> None:
    files = InMemoryFiles()
    ids = await say(files, *FACTS)
    await flusher(files).flush("main", "s")
    stored = await files.read(cursor_path("main", "s"))
    await files.replace(cursor_path("main", "s"), b"{", expected=stored.version)
    ids += await say(files, "ok")
    pending = await flusher(files).filter_pending("main", "s", ids)
    assert pending[-1] == ids[-1]
    await learned(files, [lesson(number, name) for number, name in enumerate(ids)], pending)
    assert await remembered(files) == RULES


@pytest.mark.req("DF-B24")
async def test_a_kill_at_any_call_leaves_the_lessons_or_the_rules_finding_never_both() -> None:
    outcomes = []
    for at in count(1):
        files, calls = InMemoryFiles(), 0
        ids = await say(files, *FACTS)

        async def kill(verb: str, path: str, at: int = at) -> None:
            nonlocal calls
            calls += 1
            if calls == at:
                raise Killed(verb, path)

        lessons = [lesson(1, ids[0]), lesson(2, ids[2])]
        try:
            await flusher(WatchedFiles(files, kill)).record_findings("main", "s", lessons, pending=ids)
        except Killed:
            await flusher(files).flush("main", "s")
        await flusher(files).flush("main", "s")
        await learned(files, lessons, ids)
        outcomes.append(await remembered(files) == RULES)
        if not outcomes[-1]:
            assert await remembered(files) == ["Lesson number 1.", "Lesson number 2."]
        if calls < at:
            break
    # until the cursor names the block the rules learn, from then on the lessons are written, by whoever comes
    assert outcomes == sorted(outcomes, reverse=True)
    assert set(outcomes[:-1]) == {True, False}


async def test_learning_reads_no_more_of_a_long_log_than_of_a_short_one() -> None:
    files = InMemoryFiles()
    await say(files, *(f"This is message {number:05}." for number in range(600)))
    await flusher(files).flush("main", "s")
    ids = await say(files, *FACTS)
    watched = WatchedFiles(files)
    assert await flusher(watched).filter_pending("main", "s", ids) == tuple(ids)
    await flusher(watched).record_findings("main", "s", [lesson(1, ids[0])], pending=ids)
    assert watched.bytes_read < 20_000 < len((await files.read(transcript_path("main", "s"))).data)
