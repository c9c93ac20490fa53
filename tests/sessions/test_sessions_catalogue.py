"""Sessions and memories live apart: neither takes the other along, and one bad transcript hides no other."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from places import place_of
from ricordo import Memory, Message, Scope
from ricordo.errors import InvalidMessage, SessionNotFound, StorageFailed
from ricordo.guard import Redactor
from ricordo.messages import Text
from ricordo.testing import InMemoryFiles
from ricordo.workspace import Transcript, transcript_path
from ricordo.workspace.session_search import find_session, list_sessions
from watched_files import WatchedFiles

pytestmark = [pytest.mark.anyio, pytest.mark.req("HE-T1")]

SHOP = Scope(user="me", project="shop")
START = datetime(2026, 11, 21, 8, tzinfo=UTC)


def said(text: str, minutes: int | None = None) -> Message:
    time = None if minutes is None else START + timedelta(minutes=minutes)
    return Message(role="user", parts=(Text(text=text),), time=time)


async def recorded(files: InMemoryFiles, session: str, *minutes: int | None, agent: str = "main") -> None:
    transcript = Transcript(files, transcript_path(agent, session), session=session, redactor=Redactor(bytes(32)))
    await transcript.append([said(f"{session} {number}", minute) for number, minute in enumerate(minutes)])


@pytest.mark.req("AS-SESS-02")
async def test_sessions_are_listed_newest_first_with_their_times() -> None:
    files = InMemoryFiles()
    await recorded(files, "old", 0, 5)
    await recorded(files, "new", 1, 3, 9)
    await recorded(files, "middle", None, 7, agent="Other Agent")
    listed = await list_sessions(files)
    assert [(info.session, info.messages) for info in listed] == [("new", 3), ("middle", 2), ("old", 2)]
    assert listed[2].started_at == START
    assert listed[2].last == START + timedelta(minutes=5)
    assert [info.session for info in await list_sessions(files, agent="main")] == ["new", "old"]


@pytest.mark.req("AS-BUG-28")
async def test_a_session_is_found_by_the_beginning_of_its_id_when_that_is_enough() -> None:
    files = InMemoryFiles()
    for session in ("alpha-1", "alpha-2", "alpha", "beta"):
        await recorded(files, session, 0)
    assert (await find_session(files, "be")).session == "beta"
    assert (await find_session(files, "alpha")).session == "alpha"
    for wrong in ("alph", "alpha-", "gamma", "", "../alpha"):
        with pytest.raises(SessionNotFound):
            await find_session(files, wrong)


@pytest.mark.req("AS-BUG-28")
@pytest.mark.parametrize("session", ["../x", "a/b", "", ".hidden", "a" * 121, "a\x00", "ünï", "a b"])
def test_an_id_that_could_be_a_path_is_no_session(session: str) -> None:
    with pytest.raises(InvalidMessage):
        transcript_path("main", session)


@pytest.mark.req("AS-BUG-28")
async def test_a_session_that_can_not_be_is_invalid_to_write_and_not_found_to_read(tmp_path: Path) -> None:
    secret = "AKIA" + "Q7ZP4MX2WT6RB3KD"
    async with Memory.open(tmp_path / "root", scope=SHOP) as memory:
        for session in ("my session", secret):
            with pytest.raises(InvalidMessage):
                await memory.ingest([said("Hello.")], session=session)
            with pytest.raises(SessionNotFound):
                await memory.session(session)
    assert not [path for path in (tmp_path / "root").rglob("*") if secret in path.name]


@pytest.mark.req("AS-SESS-02")
async def test_a_transcript_that_can_not_be_read_hides_no_other_session() -> None:
    inner = InMemoryFiles()
    await recorded(inner, "good", 0)
    await recorded(inner, "bad", 1)

    async def fail(verb: str, path: str) -> None:
        if "bad" in path:
            raise StorageFailed("The disk can't read this.")

    assert [info.session for info in await list_sessions(WatchedFiles(inner, fail))] == ["good"]


def remove_files_of(root: Path, session: str) -> list[str]:
    """Delete every file that bears the session's name; return their names."""
    found = [path for path in (place_of(root) / "workspace").rglob(f"*{session}*") if path.is_file()]
    for path in found:
        path.unlink()
    return sorted(path.name for path in found)


def transcripts(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (place_of(root) / "workspace" / "agents").rglob("*.log.jsonl")}


Opening = Callable[[], AbstractAsyncContextManager[Memory]]


@pytest.mark.req("HE-T1", "AS-BUG-31")
async def test_deleting_a_session_removes_no_memory_and_forgetting_removes_no_line(tmp_path: Path) -> None:
    root = tmp_path / "root"
    async with Memory.open(root, scope=SHOP) as memory:
        first = await memory.ingest([said("We deploy only from main.")], session="session-one")
        second = await memory.ingest([said("I prefer tea over coffee.")], session="session-two")
        kept = await memory.remember("The door is red.")
        entries = {entry.id: entry.content for entry in await memory.entries()}
        assert first.entries
        assert second.entries
    assert {type(first.entries[0]), type(first.messages[0])} == {type(kept), Message}

    assert remove_files_of(root, "session-two") == ["session-two.cursor.json", "session-two.log.jsonl"]
    async with Memory.open(root, scope=SHOP) as memory:
        assert {entry.id: entry.content for entry in await memory.entries()} == entries
        assert [info.session for info in await memory.sessions()] == ["session-one"]
        assert second.entries[0].content in [hit.entry.content for hit in await memory.recall("tea or coffee")]
        before = transcripts(root)
        for name in entries:
            await memory.forget(name)
        assert await memory.entries() == []
        assert transcripts(root) == before
        assert [message.text for message in (await memory.session("session-one")).messages] == [
            "We deploy only from main."
        ]


async def test_a_line_that_a_person_erases_makes_nothing_be_learned_twice(tmp_path: Path) -> None:
    root = tmp_path / "root"
    log = place_of(root) / "workspace" / transcript_path("main", "s1").removeprefix("workspace/")
    told = ["We deploy only from main.", "I prefer tea over coffee.", "We decided to use PostgreSQL for the orders."]
    async with Memory.open(root, scope=SHOP) as memory:
        await memory.ingest([said(text) for text in told], session="s1")
        before = sorted(entry.content for entry in await memory.entries())
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:-1]))
    async with Memory.open(root, scope=SHOP) as memory:
        learned = await memory.ingest([said("My sister Ana lives in Porto.")], session="s1")
        assert len(learned.entries) == 1
        assert sorted(entry.content for entry in await memory.entries()) == sorted(
            [*before, learned.entries[0].content]
        )
