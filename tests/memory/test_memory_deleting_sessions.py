"""Deleting a session forgets what it alone supports, and no more; one undo brings all of it back."""

import zlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
from anyio.to_thread import run_sync
from hypothesis import HealthCheck, given
from hypothesis import settings as run_settings
from hypothesis import strategies as st

from agents_at_work import said
from command_line import ricordo
from ricordo import Entry, Memory, Scope
from ricordo.errors import EntryNotFound, SessionNotFound
from ricordo.messages import Message, Text

pytestmark = [pytest.mark.anyio, pytest.mark.req("CC-PROVENANCE"), pytest.mark.may_block("the test looks at files")]

SCOPE = Scope(user="me", project="shop")
HERON = "We decided that the staging server is called heron8123."
OTTER = "We decided that the release branch is called otter4567."
ROBIN = "We decided that the mail relay is called robin2345."


def answered(*texts: str) -> list[Message]:
    return [each for text in texts for each in (said(text), Message(role="assistant", parts=(Text(text="Noted."),)))]


def holding(root: Path, word: str) -> list[str]:
    """Return the files below `root` that hold the word, compressed ones opened."""
    paths = [path for path in root.rglob("*") if path.is_file()]
    return [str(path.relative_to(root)) for path in paths if word.encode() in opened(path.read_bytes())]


def opened(data: bytes) -> bytes:
    try:
        return zlib.decompress(data)
    except zlib.error:
        return data


async def told(memory: Memory, word: str) -> str:
    """Return all that a memory tells of a word."""
    parts = [await memory.entries(), await memory.recall(word, limit=20), await memory.search(word, limit=20)]
    parts += [await memory.preamble(), await memory.profile().render(), await memory.sessions()]
    return "\n".join(map(repr, parts))


def about(entries: Sequence[Entry], word: str) -> list[Entry]:
    return [entry for entry in entries if word in entry.content]


async def consolidate(root: Path) -> None:
    await run_sync(partial(ricordo, "consolidate", "--root", str(root), "--user", "me"))


@pytest.mark.parametrize("consolidates", [False, True])
async def test_a_cascade_forgets_what_one_session_alone_said_and_keeps_what_another_said_too(
    tmp_path: Path, *, consolidates: bool
) -> None:
    root = tmp_path / "r"
    async with Memory.open(root, scope=SCOPE) as memory:
        await memory.ingest(answered(HERON, OTTER), session="one")
        await memory.ingest(answered(OTTER, ROBIN), session="two")
    if consolidates:
        await consolidate(root)
    async with Memory.open(root, scope=SCOPE) as memory:
        before = await memory.entries()
        only, shared, other = (about(before, word) for word in ("heron8123", "otter4567", "robin2345"))
        result = await memory.delete_session("one", cascade=True, reason="it was a test")
        assert {entry.id for entry in result.entries} == {entry.id for entry in only}
        after = await memory.entries()
        assert not about(after, "heron8123")
        assert about(after, "robin2345") == other
        kept = about(after, "otter4567")
        assert kept
        assert {entry.id for entry in kept} <= {entry.id for entry in shared}
        assert {entry.source.session for entry in kept} == {"two"}
        for entry in kept:
            assert [message.id for message in (await memory.session("two")).messages if message.text == OTTER] == [
                *entry.source.messages
            ]
        assert "heron8123" not in await told(memory, "heron8123")
        assert [info.session for info in await memory.sessions()] == ["two"]
        with pytest.raises(SessionNotFound):
            await memory.session("one")
        (item,) = [each for each in await memory.history() if each.id == result.change_id]
        assert (item.actor, item.reason) == ("user", "it was a test")
    # nothing of the session is left in the workspace: history alone can bring it back
    assert holding(root / "users" / "me" / "workspace", "heron8123") == []
    assert not [path for path in (root / "users" / "me" / "workspace").rglob("one.*") if path.is_file()]
    async with Memory.open(root, scope=SCOPE) as memory:
        await memory.undo()
        assert {entry.id: entry for entry in await memory.entries()} == {entry.id: entry for entry in before}
        assert [message.text for message in (await memory.session("one")).messages][::2] == [HERON, OTTER]
        assert await memory.drain() == 0
        assert len(await memory.entries()) == len(before)


async def test_a_kept_memory_has_the_id_and_the_marks_that_it_had(tmp_path: Path) -> None:
    root = tmp_path / "r"
    async with Memory.open(root, scope=SCOPE) as memory:
        await memory.ingest(answered(OTTER), session="one")
    await consolidate(root)
    async with Memory.open(root, scope=SCOPE) as memory:
        # what curated memory holds is not extracted again: the transcript alone tells that it was said there too
        await memory.ingest(answered("Hello.", OTTER), session="two")
        (entry,) = about(await memory.entries(), "otter4567")
        assert entry.source.session == "one"
        await memory.pin(entry.id)
        await memory.delete_session("one", cascade=True)
        kept = await memory.entry(entry.id)
        assert (kept.content, kept.pinned, kept.source.session) == (entry.content, True, "two")
        assert (await memory.delete_session("two", cascade=True)).entries == (kept,)
        assert "otter4567" not in await told(memory, "otter4567")


async def test_what_was_saved_outside_of_the_session_stays(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "r", scope=SCOPE) as memory:
        await memory.ingest(answered(HERON), session="one")
        (learned,) = about(await memory.entries(), "heron8123")
        saved = await memory.remember(learned.content)
        result = await memory.delete_session("one", cascade=True)
        assert result.entries == ()
        assert await memory.entries() == [saved]
        assert [hit.entry.id for hit in await memory.recall("heron8123") if hit.entry] == [saved.id]


async def test_what_an_agent_repeats_elsewhere_is_no_support(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "r", scope=SCOPE) as memory:
        await memory.ingest(answered(HERON), session="one")
        echo = Message(role="assistant", parts=(Text(text=HERON),))
        await memory.ingest([said("What is staging called?"), echo], session="two")
        await memory.delete_session("one", cascade=True)
        assert "heron8123" not in await told(memory, "heron8123")
        assert not about(await memory.entries(), "heron8123")


async def test_without_a_cascade_what_was_learned_stays_and_the_conversation_goes(tmp_path: Path) -> None:
    root = tmp_path / "r"
    async with Memory.open(root, scope=SCOPE) as memory:
        await memory.ingest(answered(HERON, "Thanks! What does raven9999 mean?"), session="one")
        before = await memory.entries()
        assert about(before, "heron8123")
        result = await memory.delete_session("one")
        assert result.entries == ()
        assert await memory.entries() == before
        assert await memory.sessions() == []
        assert holding(root / "users" / "me" / "workspace", "raven9999") == []


async def test_a_forgotten_statement_is_not_learned_from_the_same_messages_again(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "r", scope=SCOPE) as memory:
        messages = (await memory.ingest(answered(HERON), session="one")).messages
        await memory.delete_session("one", cascade=True)
        await memory.ingest(messages, session="one")
        await memory.drain()
        assert not about(await memory.entries(), "heron8123")


async def test_no_other_session_or_user_is_touched(tmp_path: Path) -> None:
    root = tmp_path / "r"
    async with Memory.open(root, scope=Scope(user="ben", project="shop")) as theirs:
        await theirs.ingest(answered(HERON), session="one")
        held = await theirs.entries(), [message.text for message in (await theirs.session("one")).messages]
        async with Memory.open(root, scope=SCOPE) as memory:
            await memory.ingest(answered(HERON), session="one")
            await memory.ingest(answered(ROBIN), session="one-more")
            await memory.delete_session("one", cascade=True)
            assert [info.session for info in await memory.sessions()] == ["one-more"]
            assert about(await memory.entries(), "robin2345")
        assert held == (await theirs.entries(), [message.text for message in (await theirs.session("one")).messages])


async def test_an_unknown_session_is_an_error_and_changes_nothing(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "r", scope=SCOPE) as memory:
        await memory.ingest(answered(HERON), session="one")
        before = await memory.entries(), await memory.history()
        with pytest.raises(SessionNotFound, match="two"):
            await memory.delete_session("two", cascade=True)
        assert before == (await memory.entries(), await memory.history())


async def test_the_command_deletes_a_session_and_names_what_it_forgot(tmp_path: Path) -> None:
    root = tmp_path / "r"
    async with Memory.open(root, scope=SCOPE) as memory:
        await memory.ingest(answered(HERON), session="one-long-name")
        (entry,) = about(await memory.entries(), "heron8123")
    where = ("--root", str(root), "--user", "me")
    done = await run_sync(partial(ricordo, "session", "delete", "one", "--cascade", *where))
    assert entry.id in done.out
    assert "heron8123" in done.out
    again = await run_sync(partial(ricordo, "session", "delete", "one", *where))
    assert again.code != 0
    assert "No session" in again.err
    async with Memory.open(root, scope=SCOPE) as memory:
        with pytest.raises(EntryNotFound):
            await memory.entry(entry.id)
    await run_sync(partial(ricordo, "undo", *where))
    async with Memory.open(root, scope=SCOPE) as memory:
        assert await memory.entry(entry.id) == entry


STATEMENTS = [f"We decided that the {name} is called {name}{number}." for number, name in enumerate(
    ["gateway", "ledger", "printer", "archive", "compiler", "beacon"], start=1100
)]  # fmt: skip


@run_settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lives=st.lists(st.sets(st.sampled_from(range(6)), min_size=1, max_size=3), min_size=2, max_size=4),
    consolidates=st.booleans(),
)
async def test_of_any_sessions_exactly_what_only_the_deleted_one_said_is_forgotten(
    tmp_path_factory: pytest.TempPathFactory, lives: list[set[int]], *, consolidates: bool
) -> None:
    root = tmp_path_factory.mktemp("root") / "r"
    async with Memory.open(root, scope=SCOPE) as memory:
        for number, life in enumerate(lives):
            await memory.ingest(answered(*(STATEMENTS[each] for each in sorted(life))), session=f"s{number}")
    if consolidates:
        await consolidate(root)
    async with Memory.open(root, scope=SCOPE) as memory:
        for number in range(len(lives)):
            await memory.delete_session(f"s{number}", cascade=True)
            expected = set[int]().union(*lives[number + 1 :])
            entries = await memory.entries()
            assert {each for each in range(6) if about(entries, str(1100 + each))} == expected
            sessions = {f"s{later}" for later in range(number + 1, len(lives))}
            assert {entry.source.session for entry in entries} <= sessions
