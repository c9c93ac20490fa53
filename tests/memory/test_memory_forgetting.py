"""What is forgotten is gone from answers too, an id can be named by its end, and what is closed says so."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from concepts import Concepts
from places import place_of
from ricordo import Memory, Message, Scope
from ricordo.errors import EntryNotFound, InvalidEntry, InvalidMessage, InvalidSetting, MemoryClosed
from ricordo.messages import Text
from ricordo.search import Query
from ricordo.workspace import AgentState, Todo, WorkState
from ricordo.workspace.agent_state import encode_state

pytestmark = [pytest.mark.anyio, pytest.mark.req("HE-O-audit-forget")]
Opened = Callable[..., AbstractAsyncContextManager[Memory]]
NADIA = "The staging database runs on port 5433, and Nadia owns it."


def said(text: str, role: str = "user") -> Message:
    time = datetime(2026, 11, 2, 9, tzinfo=UTC)
    return Message(role=role, parts=(Text(text=text),), time=time)  # type: ignore[arg-type]


async def test_a_forgotten_statement_is_not_quoted_from_its_transcript_until_it_is_restored(opened: Opened) -> None:
    async with opened() as memory:
        await memory.ingest([said(NADIA), said("We deploy only from main.")], session="s1")
        assert "Nadia" in (await memory.answer("Who owns the staging database?")).text
        entry = next(entry for entry in await memory.entries() if "Nadia" in entry.content)
        await memory.forget(entry.id)
        assert not (await memory.answer("Who owns the staging database?")).found
        assert not [hit for hit in await memory.search("Nadia staging database") if "Nadia" in hit.entry.content]
        assert "main" in (await memory.answer("What do we deploy from?")).text
        transcript = await memory.session("s1")
        assert transcript.messages[0].text == NADIA
    async with opened() as memory:
        assert not (await memory.answer("Who owns the staging database?")).found
        await memory.undo()
        assert "Nadia" in (await memory.answer("Who owns the staging database?")).text


def rows_in(database: Path) -> list[tuple[object, ...]]:
    """Return every row of a database that can be read as it stands."""
    with closing(sqlite3.connect(database)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return [row for table in tables for row in connection.execute(f'SELECT * FROM "{table}"')]


def count_of(table: str, databases: list[Path]) -> int:
    """Return the number of rows of the table that one of these databases has."""
    for database in databases:
        with closing(sqlite3.connect(database)) as connection:
            if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (table,)).fetchone():
                return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
    raise AssertionError(f"no database has the table {table}")


def telling(root: Path, text: bytes) -> list[Path]:
    """Return the files of the workspace that hold a text."""
    files = [path for path in (place_of(root) / "workspace").rglob("*") if path.is_file()]
    return [path for path in files if text in path.read_bytes()]


@pytest.mark.req("HE-O-audit-forget", "GO-I10")
async def test_what_is_forgotten_leaves_files_index_vectors_and_preamble_at_once_and_all_else_stays(
    tmp_path: Path,
) -> None:
    root = tmp_path / "root"
    async with Memory.open(root, scope=Scope(user="me", project="shop"), embedder=Concepts()) as memory:
        gone = await memory.remember("The puppy sleeps in the kitchen.")
        kept = await memory.remember("We sail on Sundays.")
        await memory.embed()
        assert next(hit.entry.id for hit in await memory.recall("hound")) == gone.id
        indexes = [*place_of(root).glob("memory_index*.db")]
        assert len(indexes) == 2
        assert b"puppy" in repr([rows_in(path) for path in indexes]).encode()
        await memory.forget(gone.id)
        # at once, and not by the next search
        left = [rows_in(path) for path in indexes]
        assert "puppy" not in repr(left)
        assert (count_of("chunk", indexes), count_of("words", indexes), count_of("vector", indexes)) == (1, 1, 1)
        for query in ("hound", "puppy kitchen", ""):
            assert gone.id not in {hit.entry.id for hit in await memory.recall(query)}
        assert "puppy" not in await memory.preamble()
        assert await memory.entries() == [kept]
        assert telling(root, b"puppy") == []
        stones = (place_of(root) / "workspace" / "memory" / ".tombstones.jsonl").read_bytes()
        [stone] = [json.loads(line) for line in stones.splitlines()]
        assert stone.keys() == {"id", "digest", "at", "by"}
        assert (stone["id"], stone["by"]) == (gone.id, "user")
        # one that is too long for its line has a file of its own
        long = await memory.remember("The puppy barks. " + "It is loud at night. " * 300)
        assert len(telling(root, b"puppy")) == 2
        await memory.forget(long.id)
        assert telling(root, b"puppy") == []


async def test_a_forgotten_statement_is_gone_from_curated_memory_too_and_comes_back_to_it(
    opened: Opened, root: Path
) -> None:
    async with opened() as memory:
        await memory.ingest([said(NADIA), said("We deploy only from main.")], session="s1")
    curated = place_of(root) / "workspace" / "MEMORY.md"
    before = curated.read_bytes()
    assert b"Nadia" in before
    async with opened() as memory:
        assert (await memory.answer("Who owns the staging database?")).path == "workspace/MEMORY.md"
        entry = next(entry for entry in await memory.entries() if "Nadia" in entry.content)
        await memory.forget(entry.id)
        assert not (await memory.answer("Who owns the staging database?")).found
        assert b"Nadia" not in curated.read_bytes()
        assert "Nadia" not in await memory.preamble()
    async with opened() as memory:
        await memory.undo()
    assert curated.read_bytes() == before


async def test_the_heading_of_what_was_forgotten_goes_with_it_and_a_person_s_own_stays(
    opened: Opened, root: Path
) -> None:
    async with opened() as memory:
        await memory.ingest([said(NADIA), said("We decided to deploy only from main.")], session="s1")
    curated = place_of(root) / "workspace" / "MEMORY.md"
    curated.write_text(f"{curated.read_text()}\n## Mine\n\n- Coffee is in the kitchen.\n\n## Empty\n")
    before = curated.read_bytes()
    assert b"## Facts" in before
    async with opened() as memory:
        for words in ("Nadia", "Coffee"):
            await memory.forget(next(each.id for each in await memory.entries() if words in each.content))
        left = curated.read_text()
        assert "## Facts" not in left
        assert all(heading in left for heading in ("## Decisions", "## Mine", "## Empty"))
        assert "## Facts" not in await memory.preamble()
        await memory.undo()
        await memory.undo()
    assert curated.read_bytes() == before


async def test_the_end_of_an_id_names_one_of_many_that_were_saved_together(opened: Opened) -> None:
    async with opened() as memory:
        await memory.ingest([said(f"We decided to use tool {name} for builds.") for name in "xyz"], session="s1")
        first, second, third = [entry.id for entry in await memory.entries()]
        assert (await memory.entry(first[-8:])).id == first
        with pytest.raises(EntryNotFound, match="3 memories have ids that begin or end"):
            await memory.entry(second[:6])
        with pytest.raises(EntryNotFound, match="No memory has the id"):
            await memory.entry(third[-3:])
        await memory.forget(second[-8:])
        assert {entry.id for entry in await memory.entries()} == {first, third}


async def test_a_memory_that_is_closed_says_so_and_writes_nothing(opened: Opened) -> None:
    async with opened() as memory:
        await memory.remember("We deploy only from main.")
    with pytest.raises(MemoryClosed, match="async with"):
        await memory.remember("too late")
    with pytest.raises(MemoryClosed):
        await memory.recall("main")
    async with opened() as memory:
        assert len(await memory.entries()) == 1


async def test_values_of_another_type_are_refused_with_what_to_give(opened: Opened) -> None:
    async with opened() as memory:
        with pytest.raises(InvalidMessage, match="from_openai"):
            await memory.ingest([{"role": "user", "content": "hi"}], session="s1")  # type: ignore[list-item]
        with pytest.raises(InvalidSetting, match="Tokens"):
            await memory.preamble(500)  # type: ignore[arg-type]
        with pytest.raises(InvalidEntry, match="texts"):
            await memory.remember(42)  # type: ignore[arg-type]
        assert await memory.entries() == []
        assert await memory.sessions() == []


async def test_the_same_words_that_an_agent_saved_go_too_and_nothing_that_only_sounds_alike(opened: Opened) -> None:
    async with opened() as memory:
        first = await memory.remember("We keep the staging database on port 5433.")
        await memory.remember("we keep the staging database on port 5433", by="agent")
        others = [
            await memory.remember(text)
            for text in ("We keep the staging database on port 6000.", "We keep the staging database on a machine.")
        ]
        await memory.ingest([said("We keep the staging database on port 6000.")], session="s1")
        await memory.forget(first.id)
        left = await memory.entries()
        assert {entry.id for entry in others} <= {entry.id for entry in left}
        assert not [entry for entry in left if "5433" in entry.content]
        assert "6000" in (await memory.answer("Which port has the staging database?")).text
        found = await memory.search(Query(text="staging database port", document_types=("transcript",)))
        assert ["6000" in hit.entry.content for hit in found] == [True]


async def test_a_conversation_of_one_place_tells_nothing_of_what_was_forgotten_in_another(opened: Opened) -> None:
    statement = "I am off to leave the harbour key in the lighthouse today."  # nothing that extraction keeps
    async with opened() as memory:
        await memory.ingest([said("Where is it?"), said(statement), said("We deploy only from main.")], session="s1")
        everywhere = await memory.remember(statement, scope=Scope(user="me"), reason="It is for all projects.")
        assert "lighthouse" in (await memory.answer("Where is the harbour key?")).text
        await memory.forget(everywhere.id)
        assert "lighthouse" not in (await memory.answer("Where is the harbour key?")).text
        assert not [hit for hit in await memory.search("harbour key", limit=20) if "lighthouse" in repr(hit)]
        assert "main" in (await memory.answer("What do we deploy from?")).text


PLAN = "The blue whale plan starts on Monday."
LONGER = "The blue whale plan starts on Monday in Lisbon and everybody from the harbour team takes part."


@pytest.mark.req("HE-O-audit-forget")
async def test_what_still_says_a_forgotten_memory_is_named_with_its_place_and_without_secrets(
    opened: Opened, root: Path
) -> None:
    async with opened() as memory:
        place = place_of(root) / "workspace"
        gone = await memory.remember(PLAN)
        longer = await memory.remember(LONGER)
        for other in ("The whale watching starts on Monday.", "A plan for Monday.", "Whales are blue."):
            await memory.remember(other)
        shared = await memory.remember(f"{PLAN} Ask Nadia.", scope=Scope(project="shop"))
        (place / "plans").mkdir()
        (place / "plans/whale.md").write_text(
            f"# Whale\n\n- [ ] Invite all: the blue whale plan, Monday!\n- {PLAN} Key: sk-ant-api03-{'aB3x' * 24}\n"
        )
        todos = (Todo(id="1", content="Start the blue whale plan."),)
        (place / "agents/main/state").mkdir(parents=True)
        (place / "agents/main/state/s1.json").write_bytes(
            encode_state(AgentState(agent="main", session="s1", work_state=WorkState(todos=todos)))
        )
        (place / "MEMORY.md").write_text(f"## Facts\n\n- {PLAN} All of the harbour know it by now, and so do we.\n")
        done = await memory.forget(gone.id)
        assert done.entry.id == gone.id
        told = [(each.kind, each.id, each.text) for each in done.remaining]
        assert ("memory", longer.id, LONGER) in told
        assert ("memory", shared.id, shared.content) in told
        assert ("file", "workspace/plans/whale.md", PLAN) in told
        assert ("file", "workspace/plans/whale.md", "Invite all: the blue whale plan, Monday!") in told
        [curated] = [each for each in done.remaining if "by now" in each.text]
        assert ("todo", "s1", "Start the blue whale plan.") in told
        assert len(told) == 6
        assert "aB3x" not in repr(done)
        for each in (longer, shared, curated):
            done = await memory.forget(each.id)
        assert "memory" not in {each.kind for each in done.remaining}
        assert "whale plan starts on Monday" not in await memory.preamble()


async def test_what_says_one_sentence_of_a_forgotten_memory_is_named(opened: Opened) -> None:
    async with opened() as memory:
        gone = await memory.remember("Nadia owns the staging database. It runs on port 5433 in Ulm.")
        other = await memory.remember("Since May it runs on port 5433 in Ulm.")
        await memory.remember("It runs on port 6000 in Ulm.")
        assert [each.id for each in (await memory.forget(gone.id)).remaining] == [other.id]


async def test_what_writes_the_number_or_the_code_of_a_forgotten_memory_otherwise_is_named_too(opened: Opened) -> None:
    async with opened() as memory:
        gone = await memory.remember("The gate `hall_7` of the depot opens with code 4711.")
        others = [
            await memory.remember(content)
            for content in (
                "The gate HALL_7 of the depot opens with code 4711, says Nadia.",
                "Gate hall_7, depot: it opens with the code \uff14\uff17\uff11\uff11.",
            )
        ]
        await memory.remember("The gate hall_8 of the depot opens with code 4712.")
        assert {each.id for each in (await memory.forget(gone.id)).remaining} == {each.id for each in others}
