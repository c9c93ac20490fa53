"""What may happen to an index and its files while nobody looks, and to a query: answers stay those of the files."""

import os
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest

from concepts import Concepts
from hand_clock import HandClock
from hand_made_roots import begun
from ricordo import Memory, Scope
from ricordo.search import Match, Query
from ricordo.search.index import WorkspaceIndex
from ricordo.storage.local import LocalFiles
from ricordo.workspace import INDEX_FILE

pytestmark = [pytest.mark.anyio, pytest.mark.may_block("the test acts behind the back of the index")]

SHOP = Scope(user="me", project="shop")
MEMORY = "workspace/MEMORY.md"
TOPICS = "workspace/memory/topics"
VECTORS = "memory_index_vectors.db"
ANIMALS = ("wombat", "quokka", "numbat", "bilby", "dingo")


def place(root: Path, path: str, content: str, *, age: float = 9_999.0) -> Path:
    """Write a file as if long ago: what was written just now is looked at again in any case."""
    target = begun(root) / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(content, encoding="utf-8")
    os.utime(target, (time.time() - age,) * 2)
    return target


def zoo(root: Path) -> None:
    for name in "abc":
        lines = (f"- Animal {number} is a {ANIMALS[number % 5]} in {name}.\n" for number in range(40))
        place(root, f"{TOPICS}/{name}.md", "".join(lines))


async def opened(root: Path, embedder: Concepts | None = None) -> WorkspaceIndex:
    return await WorkspaceIndex.open(root / INDEX_FILE, LocalFiles(root), embedder=embedder)


def told(matches: list[Match]) -> list[tuple[str, int, str]]:
    return [(match.path, match.line_number, match.content) for match in matches]


async def answers(index: WorkspaceIndex) -> list[list[tuple[str, int, str]]]:
    return [told(await index.search(text, 20)) for text in (*ANIMALS, "animal 17", "wombat in b", "")]


async def contents(index: WorkspaceIndex, query: str) -> list[str]:
    return [match.content for match in await index.search(query)]


def remove(folder: Path, name: str) -> None:
    """Remove a database and what lies beside it."""
    for path in folder.glob(f"{name}*"):
        path.unlink()


def settle(database: Path) -> int:
    """Bring all of a database into its one file, and return how long that is."""
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return database.stat().st_size


LENGTHS: dict[str, Callable[[int], int]] = {
    "nothing": lambda _: 0,
    "half a header": lambda _: 50,
    "the header": lambda _: 100,
    "one page": lambda _: 4_096,
    "half": lambda size: size // 2,
    "half a page less": lambda size: size - 2_048,
    "one byte less": lambda size: size - 1,
}


@pytest.mark.req("FC-STALE")
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("open_meanwhile", [False, True])
async def test_a_truncated_index_costs_no_answer(length: str, tmp_path: Path, *, open_meanwhile: bool) -> None:
    zoo(tmp_path)
    index = await opened(tmp_path)
    await index.refresh()
    before = await answers(index)
    if not open_meanwhile:
        await index.close()
    size = settle(tmp_path / INDEX_FILE)
    os.truncate(tmp_path / INDEX_FILE, LENGTHS[length](size))
    if not open_meanwhile:
        index = await opened(tmp_path)
    assert await answers(index) == before
    await index.refresh()
    assert await answers(index) == before
    assert index.freshness().state == "fresh"
    await index.close()
    again = await opened(tmp_path)
    assert await answers(again) == before
    await again.close()
    with closing(sqlite3.connect(tmp_path / INDEX_FILE)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.parametrize("length", LENGTHS)
async def test_a_truncated_file_of_vectors_costs_no_word_and_is_filled_again(length: str, tmp_path: Path) -> None:
    place(tmp_path, f"{TOPICS}/home.md", "- The dog sleeps in the kitchen.\n- We sail on Sundays.\n")
    index = await opened(tmp_path, Concepts())
    await index.refresh()
    await index.close()
    size = settle(tmp_path / VECTORS)
    os.truncate(tmp_path / VECTORS, LENGTHS[length](size))
    index = await opened(tmp_path, Concepts())
    assert await contents(index, "dog") == ["The dog sleeps in the kitchen."]
    await index.refresh()
    assert await contents(index, "puppy") == ["The dog sleeps in the kitchen."]
    assert (index.freshness().state, index.freshness().not_embedded) == ("fresh", 0)
    await index.close()


@pytest.mark.req("AS-BUG-26", "FC-STALE")
@pytest.mark.parametrize("open_meanwhile", [False, True])
async def test_what_is_edited_renamed_deleted_and_restored_is_found_as_it_stands(
    tmp_path: Path, *, open_meanwhile: bool
) -> None:
    zoo(tmp_path)
    index = await opened(tmp_path)
    await index.refresh()
    kept = tmp_path / "kept.md"
    topic = tmp_path / TOPICS / "a.md"
    shutil.copy2(topic, kept)

    async def look() -> None:
        """Hold that the index answers as one that is made anew, also after a rest."""
        nonlocal index
        if not open_meanwhile:
            await index.close()
            index = await opened(tmp_path)
        anew = await WorkspaceIndex.open(tmp_path / "anew.db", LocalFiles(tmp_path))
        assert await answers(index) == await answers(anew)
        await anew.close()
        remove(tmp_path, "anew.db")

    place(tmp_path, f"{TOPICS}/a.md", "- Animal 0 is a platypus in a.\n")
    await look()
    assert await contents(index, "platypus") == ["Animal 0 is a platypus in a."]
    topic.rename(topic.with_name("moved.md"))
    await look()
    [match] = await index.search("platypus")
    assert match.path == f"{TOPICS}/moved.md"
    topic.with_name("moved.md").unlink()
    await look()
    assert await contents(index, "platypus") == []
    shutil.copy2(kept, topic)
    await look()
    assert len(await contents(index, "wombat in a")) == 10
    # the folder away and back, with all of its times
    topic.parent.rename(tmp_path / "away")
    await look()
    assert await contents(index, "wombat") == []
    (tmp_path / "away").rename(topic.parent)
    await look()
    assert len(await contents(index, "wombat")) == 10
    await index.close()


@pytest.mark.req("AS-BUG-26")
async def test_an_edit_that_keeps_size_and_time_of_modification_is_found(tmp_path: Path) -> None:
    topic = place(tmp_path, f"{TOPICS}/a.md", "- The mascot is a wombat.\n")
    index = await opened(tmp_path)
    assert await contents(index, "wombat") == ["The mascot is a wombat."]
    before = topic.stat()
    await anyio.sleep(0.02)
    topic.write_text("- The mascot is a quokka.\n")
    os.utime(topic, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert await contents(index, "quokka") == ["The mascot is a quokka."]
    assert await contents(index, "wombat") == []
    # so are two files of one size and time that change places while no index is open
    for name, animal in (("b", "numbat"), ("c", "dingoo")):
        place(tmp_path, f"{TOPICS}/{name}.md", f"- The deputy is a {animal}.\n")
        os.utime(tmp_path / TOPICS / f"{name}.md", ns=(before.st_atime_ns, before.st_mtime_ns))
    await index.refresh()
    await index.close()
    await anyio.sleep(0.02)
    folder = tmp_path / TOPICS
    (folder / "b.md").rename(folder / "x.md")
    (folder / "c.md").rename(folder / "b.md")
    (folder / "x.md").rename(folder / "c.md")
    index = await opened(tmp_path)
    assert [match.path for match in await index.search("numbat")] == [f"{TOPICS}/c.md"]
    await index.close()


async def test_lines_of_a_megabyte_are_found_by_what_they_hold_and_hide_no_other(tmp_path: Path) -> None:
    filler = "".join(f"word{number % 977} " for number in range(120_000))
    long = f"Begins with a wombat {filler}holds a quokka {filler[:200_000]}ends with a numbat."
    assert len(long) > 1_000_000
    place(tmp_path, "workspace/memory/2026-11-20.md", f"- Before it, a bilby.\n- {long}\n- After it, a dingo.\n")
    place(tmp_path, f"{TOPICS}/glued.md", f"- A lemur beside {'x' * 1_000_000} and a tapir.\n")
    place(tmp_path, "workspace/large_tool_results/s1/run.txt", f"an okapi\n{'{' * 1_000_000}\na gecko\n")
    index = await opened(tmp_path)
    begun = time.process_time()
    for word in ("wombat", "quokka", "numbat", "lemur", "tapir", "okapi", "gecko"):
        assert any(word in match.content for match in await index.search(word)), word
    assert await contents(index, "bilby") == ["Before it, a bilby."]
    assert await contents(index, "dingo") == ["After it, a dingo."]
    # ten times what it takes: it must not grow with the square of the line
    assert time.process_time() - begun < 20
    await index.close()


LONG = " ".join(f"word{number}" for number in range(9_998))
QUERIES = {
    "ten thousand words": (f"wombat mascot {LONG}", True),
    "one word ten thousand times": ("wombat " * 10_000, True),
    "one word of ten thousand letters": ("wombat" * 10_000, False),
    "only stop words": ("the of and is it to was", False),
    "only punctuation": ("!?.,;:-–—\"'()[]{}*/\\|^~`<>@#$%&", False),
    "only NULs": ("\0" * 50, False),
    "a word between NULs": ("\0wombat\0", True),
    "a half of a pair": ("\ud83d wombat", True),
    "operators": ('wombat AND NOT (mascot OR "near" NEAR/3 x*) : ^', True),
    "white space": (" \t\n\u3000", None),
}


@pytest.mark.req("AS-BUG-25")
@pytest.mark.parametrize("kind", QUERIES)
@pytest.mark.parametrize("way", ["index", "files", "recall"])
async def test_no_query_is_too_long_or_too_strange(kind: str, way: str, tmp_path: Path) -> None:
    query, finds = QUERIES[kind]
    place(tmp_path, MEMORY, "- The mascot is a wombat.\n")
    begun = time.process_time()
    if way == "recall":
        async with Memory.open(tmp_path, scope=SHOP) as memory:
            found = [hit.entry.content for hit in await memory.recall(query)]
            assert [hit.entry.content for hit in await memory.search(query)] == found
    else:
        index = await WorkspaceIndex.open(
            tmp_path / (INDEX_FILE if way == "index" else f"{MEMORY}/{INDEX_FILE}"), LocalFiles(tmp_path)
        )
        found = await contents(index, query)
        await index.close()
    assert time.process_time() - begun < 5
    if finds is not None:
        assert found == (["The mascot is a wombat."] if finds else [])


@pytest.mark.req("HE-C7-keep")
async def test_entries_saved_by_a_clock_that_jumps_are_all_found_and_told_apart_by_their_dates(tmp_path: Path) -> None:
    start = datetime(2026, 11, 22, 12, tzinfo=UTC)
    doors = {"red": 0.0, "green": 7_300.0, "blue": -21_000.0, "yellow": 0.01}
    for colour, days in doors.items():
        async with Memory.open(tmp_path, scope=SHOP, clock=HandClock(start + timedelta(days=days))) as memory:
            await memory.remember(f"The {colour} door was painted.")
            hits = await memory.recall(f"{colour} door")
            assert hits[0].entry.content == f"The {colour} door was painted."
    everything = {f"The {colour} door was painted." for colour in doors}
    async with Memory.open(tmp_path, scope=SHOP, clock=HandClock(start + timedelta(hours=1))) as memory:
        for query in ("door", ""):
            hits = await memory.recall(query, limit=9)
            assert {hit.entry.content for hit in hits} == everything
            assert all(0 <= hit.score <= 1 for hit in hits)
        today = Query(text="door", since=start - timedelta(days=1), until=start + timedelta(days=1))
        found = {hit.entry.content for hit in await memory.search(today)}
        assert found == {"The red door was painted.", "The yellow door was painted."}
        assert [check.name for check in await memory.doctor() if not check.ok] == []


@pytest.mark.req("AS-BUG-26")
@pytest.mark.parametrize("moved", [-86_400 * 400, 86_400 * 400])
async def test_files_are_followed_whichever_way_the_clock_jumps(
    moved: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place(tmp_path, f"{TOPICS}/a.md", "- The mascot is a wombat.\n")
    index = await opened(tmp_path)
    assert await contents(index, "wombat") == ["The mascot is a wombat."]
    now = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now() + moved * 10**9)
    place(tmp_path, f"{TOPICS}/a.md", "- The mascot is a quokka.\n", age=-moved)
    assert await contents(index, "quokka") == ["The mascot is a quokka."]
    place(tmp_path, f"{TOPICS}/a.md", "- The mascot is a numbat.\n", age=moved)
    assert await contents(index, "numbat") == ["The mascot is a numbat."]
    assert await contents(index, "wombat") == []
    await index.refresh()
    assert (await index.refresh()).indexed == ()
    assert index.freshness().state == "fresh"
    await index.close()


@pytest.mark.parametrize("stamp", [0, -86_400 * 365 * 5, 2**33])
async def test_a_file_of_any_date_is_found_and_edits_to_it_too(stamp: int, tmp_path: Path) -> None:
    topic = place(tmp_path, f"{TOPICS}/a.md", "- The mascot is a wombat.\n")
    os.utime(topic, (stamp, stamp))
    index = await opened(tmp_path)
    assert await contents(index, "wombat") == ["The mascot is a wombat."]
    topic.write_text("- The mascot is a bilby.\n")
    os.utime(topic, (stamp, stamp))
    assert await contents(index, "bilby") == ["The mascot is a bilby."]
    await index.close()
