"""What is read back of a log is what stands in it, wherever lines are long, torn, or broken."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ricordo.errors import InvalidQuery, SessionNotFound, StorageFailed
from ricordo.messages import Message, Text, encode_message, with_mark
from ricordo.testing import InMemoryFiles
from ricordo.workspace import read_transcript, transcript_path
from ricordo.workspace.session_search import PastSessions, list_sessions
from watched_files import WatchedFiles

pytestmark = pytest.mark.anyio

START = datetime(2026, 11, 21, 8, tzinfo=UTC)
BROKEN = [b"", b"{", b"{torn", b'{"v":1}', b"\xff\xfe", b"not json", b"[]", b"{}"]


def line(number: int, size: int) -> bytes:
    time = START + timedelta(minutes=number)
    return encode_message(
        Message(role="user", id=f"m{number}", time=time, parts=(Text(text=f"{number} {'é' * size}"),))
    )


@pytest.mark.req("AS-SESS-03")
@settings(max_examples=40)
@given(
    st.lists(st.one_of(st.sampled_from([1, 100, 6_000, 50_000]), st.sampled_from(BROKEN)), min_size=1, max_size=12),
    st.sampled_from([b"\n", b"", b"\n{torn"]),
    st.integers(1, 5),
)
async def test_the_newest_messages_are_those_at_the_end_of_the_log(
    made: list[int | bytes], end: bytes, count: int
) -> None:
    files = InMemoryFiles()
    lines = [line(number, each)[:-1] if isinstance(each, int) else each for number, each in enumerate(made)]
    await files.create(transcript_path("main", "s"), b"\n".join(lines) + end)
    logged = (await read_transcript(files, transcript_path("main", "s"))).messages
    past = PastSessions(files)
    (glance,) = await past.list_sessions("main")
    shown = await past.read_newest(glance, count)
    assert [message.id for message in shown.messages] == [message.id for message in logged][-count:]
    assert shown.has_older == (len(logged) > count)
    for at, message in enumerate(logged):
        earlier = await past.read_newest(glance, count, before=message.id)
        assert [each.id for each in earlier.messages] == [each.id for each in logged[:at]][-count:]
    with pytest.raises(SessionNotFound):
        await past.read_newest(glance, count, before="unknown")
    if logged:
        assert (glance.started_at, glance.last) == (logged[0].time, logged[-1].time)


@pytest.mark.req("AS-SESS-03")
async def test_as_many_of_the_newest_messages_are_read_as_are_asked_for() -> None:
    files = InMemoryFiles()
    await files.create(transcript_path("main", "s"), b"".join(line(number, 600) for number in range(200)))
    past = PastSessions(files)
    (glance,) = await past.list_sessions("main")
    for count in (60, 150, 200):
        shown = await past.read_newest(glance, count)
        assert [message.id for message in shown.messages] == [f"m{number}" for number in range(200 - count, 200)]


@pytest.mark.req("AS-SESS-03")
async def test_notices_at_the_end_of_a_log_take_the_place_of_no_message() -> None:
    notices = b"".join(
        encode_message(with_mark(Message(role="user", id=f"n{number}", parts=(Text(text="x" * 900),)), "notice"))
        for number in range(200)
    )
    files = InMemoryFiles()
    await files.create(transcript_path("main", "s"), b"".join(line(number, 1) for number in range(30)) + notices)
    past = PastSessions(files)
    (glance,) = await past.list_sessions("main")
    shown = await past.read_newest(glance, 20)
    assert [message.id for message in shown.messages] == [f"m{number}" for number in range(10, 30)]


@pytest.mark.req("AS-SESS-04")
async def test_a_search_passes_over_a_log_that_can_not_be_read_and_over_broken_lines() -> None:
    inner = InMemoryFiles()
    await inner.create(transcript_path("main", "good"), b"\n".join([b"{broken", line(1, 1), b'{"v":1}', line(2, 2)]))
    await inner.create(transcript_path("main", "bad"), line(3, 3))
    reading = 0

    async def fail(verb: str, path: str) -> None:
        nonlocal reading
        reading += "bad" in path
        if "bad" in path and reading > 2:
            raise StorageFailed("The disk can't read this.")

    past = PastSessions(WatchedFiles(inner, fail))
    found = await past.search("é", limit=5)
    assert [(each.session, each.message, each.line) for each in found.findings] == [
        ("good", "m2", 5),
        ("good", "m1", 2),
    ]
    assert (found.total, found.is_complete) == (2, True)
    for query in ("", "  \n"):
        with pytest.raises(InvalidQuery):
            await past.search(query, limit=5)
    assert [info.session for info in await list_sessions(inner)] == ["bad", "good"]


@pytest.mark.req("AS-SESS-04")
async def test_a_search_stops_once_older_sessions_can_hold_nothing_newer() -> None:
    inner = InMemoryFiles()
    for session in range(3):
        lines = [line(10_000 * session + number, 1) for number in range(1_100)]
        await inner.create(transcript_path("main", f"s{session}"), b"".join(lines))
    files = WatchedFiles(inner)
    past = PastSessions(files)
    found = await past.search("é", limit=3)
    assert [each.message for each in found.findings] == ["m21099", "m21098", "m21097"]
    assert (found.total, found.is_complete) == (1_100, False)
    assert (await past.search("é", limit=2_000)).total == 2_200
