"""Segments: what is loaded at once, followed as it changes, merged without being missed, and never the only copy."""

import os
import random
import sqlite3
import statistics
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import anyio
import anyio.from_thread
import pytest

from ricordo import Message
from ricordo.messages import Text, encode_message
from ricordo.search import Match, Query, segments
from ricordo.search import tables as queries
from ricordo.search.index import WorkspaceIndex
from ricordo.search.postings import SegmentBuilder
from ricordo.storage import Connection, Disk
from ricordo.storage.local import LocalFiles
from ricordo.workspace import INDEX_FILE

pytestmark = [pytest.mark.anyio, pytest.mark.may_block("the check reads the database itself")]

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
LEDGER = "workspace/memory/2026-11-21.md"
LOG = "workspace/agents/main/sessions/s1.log.jsonl"
ANIMALS = ("wombat", "quokka", "numbat", "bilby", "dingo")


def place(root: Path, path: str, content: str) -> None:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(content)


def entry(number: int, text: str) -> bytes:
    return f"- {text} ^01jd{number:022d}\n".encode()


def said(number: int, text: str) -> bytes:
    return encode_message(Message(role="user", id=f"m{number}", time=NOON, parts=(Text(text=text),)))


def zoo(root: Path, lines: int = 60) -> None:
    for name in ("a", "b", "c"):
        place(
            root,
            f"workspace/memory/topics/{name}.md",
            "".join(f"- Animal {n} is a {ANIMALS[n % 5]} in {name}.\n" for n in range(lines)),
        )


async def opened(root: Path, **more: object) -> WorkspaceIndex:
    return await WorkspaceIndex.open(root / INDEX_FILE, LocalFiles(root), **more)  # type: ignore[arg-type]


async def same_as_the_files(index: WorkspaceIndex, root: Path) -> None:
    """Hold that an index answers as the files do."""
    scan = await WorkspaceIndex.open(Path("/dev/null/none.db"), LocalFiles(root))
    for text in (*ANIMALS, "animal wombat", "17", ""):
        query = Query(text=text, neighbours=True)
        assert told(await index.search(query, 50)) == told(await scan.search(query, 50)), text
    await scan.close()


def told(matches: list[Match]) -> list[tuple[object, ...]]:
    return [
        (match.path, match.line_number, match.content, round(match.score, 6), match.matched_words) for match in matches
    ]


def stored(root: Path) -> list[tuple[int, int, int]]:
    """Return first, last and number of chunks of each segment."""
    with closing(sqlite3.connect(root / INDEX_FILE)) as connection:
        return connection.execute("SELECT first, last, chunks FROM segment ORDER BY first").fetchall()


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fold three chunks, and load anew what is in two pieces."""
    monkeypatch.setattr(segments, "_MIN_SEGMENT_ROWS", 3)
    monkeypatch.setattr(segments, "_FEW", 5)
    monkeypatch.setattr("ricordo.search.corpus._MOST_PARTS", 2)
    monkeypatch.setattr("ricordo.search.corpus._LONGEST_TAIL", 7)


@pytest.mark.usefixtures("eager")
async def test_reopening_loads_the_segments_and_reads_no_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zoo(tmp_path)
    index = await opened(tmp_path)
    await index.refresh()
    await index.close()
    assert [chunks for _, _, chunks in stored(tmp_path)] == [180]
    monkeypatch.setattr(segments, "_build_row", None)
    index = await opened(tmp_path)
    await index.search("wombat")
    monkeypatch.undo()
    await same_as_the_files(index, tmp_path)
    await index.close()


@pytest.mark.req("GO-I6")
@pytest.mark.usefixtures("eager")
async def test_whatever_two_processes_do_to_the_files_both_find_what_stands_in_them(tmp_path: Path) -> None:
    chance = random.Random(5)
    zoo(tmp_path, 12)
    first, second = await opened(tmp_path), await opened(tmp_path)
    files = LocalFiles(tmp_path)
    for step in range(45):
        index, other = (first, second) if step % 2 else (second, first)
        topic = f"workspace/memory/topics/{chance.choice('abcd')}.md"
        match chance.randrange(6):
            case 0:
                lines = [
                    f"- Animal {chance.randrange(30)} is a {chance.choice(ANIMALS)}.\n"
                    for _ in range(chance.randrange(1, 20))
                ]
                place(tmp_path, topic, "".join(lines))
            case 1 if (tmp_path / topic).exists():
                place(tmp_path, topic, "# Moved\n\nBy a line.\n\n" + (tmp_path / topic).read_text())
            case 2 if (tmp_path / topic).exists():
                os.unlink(tmp_path / topic)
            case 3:
                block = entry(step, f"Animal {step} was a {chance.choice(ANIMALS)}.")
                await index.index_appended(LEDGER, (await files.append(LEDGER, block)).offset, block)
            case 4:
                block = said(step, f"I saw the {chance.choice(ANIMALS)} " * chance.choice((1, 60)))
                await index.index_appended(LOG, (await files.append(LOG, block)).offset, block)
            case _:
                await index.refresh()
        await same_as_the_files(other if step % 3 else index, tmp_path)
    assert len(stored(tmp_path)) <= 5
    third = await opened(tmp_path)
    for index in (first, second, third):
        await same_as_the_files(index, tmp_path)
        await index.close()


@pytest.mark.usefixtures("eager")
async def test_segments_are_few_and_what_is_written_down_of_changes_ends(tmp_path: Path) -> None:
    index, files = await opened(tmp_path), LocalFiles(tmp_path)
    for number in range(90):
        block = entry(number, f"Animal {number} is a {ANIMALS[number % 5]}.")
        await index.index_appended(LEDGER, (await files.append(LEDGER, block)).offset, block)
        place(tmp_path, "workspace/notes.md", f"Prose {number} on the {ANIMALS[number % 5]}.\n")
        if number % 4 == 3:
            await index.refresh()
    sizes = [chunks for _, _, chunks in stored(tmp_path)]
    assert sum(sizes) >= 90
    assert len(sizes) <= 4
    with closing(sqlite3.connect(tmp_path / INDEX_FILE)) as connection:
        assert connection.execute("SELECT count(*) FROM change").fetchone()[0] < 60
    await same_as_the_files(index, tmp_path)
    await index.close()


@pytest.mark.req("AS-INDEX-04")
@pytest.mark.usefixtures("eager")
async def test_lines_that_change_places_are_found_in_their_new_order(tmp_path: Path) -> None:
    lines = [f"- The wombat {name}.\n" for name in ("one", "two", "three", "four")]
    place(tmp_path, LEDGER, "".join(lines))
    first, second = await opened(tmp_path), await opened(tmp_path)
    for index in (first, second):
        await same_as_the_files(index, tmp_path)
    place(tmp_path, LEDGER, "".join(lines[::-1]))
    for index in (first, second, late := await opened(tmp_path)):
        found = [match.content for match in await index.search("wombat")]
        assert found == ["The wombat four.", "The wombat three.", "The wombat two.", "The wombat one."]
    for index in (first, second, late):
        await index.close()


@pytest.mark.usefixtures("eager")
async def test_a_process_that_missed_what_was_written_down_of_changes_loads_anew(tmp_path: Path) -> None:
    zoo(tmp_path, 12)
    first, second = await opened(tmp_path), await opened(tmp_path)
    await first.refresh()
    await same_as_the_files(second, tmp_path)
    os.unlink(tmp_path / "workspace/memory/topics/a.md")
    await first.refresh()
    with closing(sqlite3.connect(tmp_path / INDEX_FILE)) as connection:
        assert connection.execute("SELECT count(*) FROM change").fetchone() == (0,)
    os.unlink(tmp_path / "workspace/memory/topics/b.md")
    await first.search("wombat")
    for index in (first, second):
        await same_as_the_files(index, tmp_path)
    await first.close()
    await second.close()


@pytest.mark.usefixtures("eager")
async def test_a_removal_is_written_down_until_every_segment_knows_of_it(tmp_path: Path) -> None:
    zoo(tmp_path, 30)
    place(tmp_path, "workspace/notes.md", "A wombat.\n")
    index = await opened(tmp_path)
    await index.refresh()
    os.unlink(tmp_path / "workspace/notes.md")
    place(tmp_path, "workspace/memory/topics/d.md", "".join(f"- Animal {n} is in d.\n" for n in range(9)))
    await index.refresh()
    await index.close()
    assert [chunks for _, _, chunks in stored(tmp_path)] == [91, 9]
    late = await opened(tmp_path)
    await same_as_the_files(late, tmp_path)
    await late.close()


@pytest.mark.req("FC-STALE")
@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("damage", ["data = x'00'", "data = substr(data, 1, 40)", "checksum = 0"])
async def test_a_damaged_segment_is_made_up_for_by_its_rows(tmp_path: Path, damage: str) -> None:
    zoo(tmp_path)
    index = await opened(tmp_path)
    await index.refresh()
    await index.close()
    with closing(sqlite3.connect(tmp_path / INDEX_FILE)) as connection:
        connection.execute(f"UPDATE segment SET {damage}")
        connection.commit()
    index = await opened(tmp_path)
    await same_as_the_files(index, tmp_path)
    assert index.freshness().state == "fresh"
    await index.close()


class Stopped(Exception):
    """Where the test stops a merge, as a kill would."""


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("at", ["_read_rows", "_build_segment", "_store_segment", "commit"])
async def test_a_merge_that_is_stopped_anywhere_leaves_what_was_there(
    at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopping = False

    def commit(connection: Connection) -> None:
        if stopping:
            raise Stopped
        connection.execute("COMMIT")

    def stop(*_: object, **__: object) -> None:
        raise Stopped

    zoo(tmp_path, 12)
    index = await opened(tmp_path, commit=commit)
    await index.refresh()
    before = stored(tmp_path)
    files, block = LocalFiles(tmp_path), b"".join(entry(n, f"Animal {n} is a {ANIMALS[n % 5]}.") for n in range(20))
    await index.index_appended(LEDGER, (await files.append(LEDGER, block)).offset, block)
    await index.search("wombat")
    with monkeypatch.context() as broken:
        if at == "commit":
            stopping = True
        else:
            broken.setattr(segments, at, stop)
        with pytest.raises(Stopped):
            await index.refresh()
    stopping = False
    assert stored(tmp_path) == before
    late = await opened(tmp_path)
    for one in (index, late):
        await same_as_the_files(one, tmp_path)
    await index.refresh()
    assert sum(chunks for _, _, chunks in stored(tmp_path)) == 56
    await same_as_the_files(late, tmp_path)
    await index.close()
    await late.close()


@pytest.mark.usefixtures("eager")
async def test_readers_writers_and_another_merge_in_the_middle_of_a_merge_are_all_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zoo(tmp_path, 12)
    index, other, files = await opened(tmp_path), await opened(tmp_path), LocalFiles(tmp_path)
    written, merges = segments._build_segment, 0

    async def meanwhile() -> None:
        block = entry(1, "Animal 99 is a wombat.")
        await index.index_appended(LEDGER, (await files.append(LEDGER, block)).offset, block)
        place(tmp_path, "workspace/memory/topics/a.md", "# Now\n\n- Animal 3 is a bilby in a.\n")
        await same_as_the_files(index, tmp_path)
        await other.refresh()

    def slow(builder: SegmentBuilder) -> tuple[bytes, int]:
        nonlocal merges
        merges += 1
        if merges == 1:
            anyio.from_thread.run(meanwhile)
        return written(builder)

    monkeypatch.setattr(segments, "_build_segment", slow)
    await index.refresh()
    assert merges == 2
    ranges = stored(tmp_path)
    assert all(before[1] < after[0] for before, after in pairwise(ranges))
    for one in (index, other):
        await same_as_the_files(one, tmp_path)
        await one.close()


@pytest.mark.req("AS-INDEX-04")
async def test_a_search_reads_as_many_rows_as_it_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zoo(tmp_path)
    index = await opened(tmp_path)
    await index.refresh()
    read = 0
    made = queries._chunk_from_row

    def counted(row: tuple[str | int | None, ...]) -> object:
        nonlocal read
        read += 1
        return made(row)

    monkeypatch.setattr(queries, "_chunk_from_row", counted)
    assert len(await index.search(Query(text="animal", neighbours=True), 10)) == 10
    assert len(await index.search("", 7)) == 7
    assert read == 17
    await index.close()


class Counting(Disk):
    """A disk that counts how often a file is synced."""

    syncs = 0

    def sync(self, descriptor: int) -> None:
        self.syncs += 1
        super().sync(descriptor)


async def test_an_add_costs_one_sync_and_one_commit_however_long_the_day(tmp_path: Path) -> None:
    commits, seen = 0, Counter[int]()

    def commit(connection: Connection) -> None:
        nonlocal commits
        commits += 1
        connection.set_trace_callback(lambda _: seen.update([commits]))
        connection.execute("COMMIT")

    disk = Counting()
    files = LocalFiles(tmp_path, disk=disk)
    index = await WorkspaceIndex.open(tmp_path / INDEX_FILE, files, commit=commit)
    await files.append(LEDGER, entry(0, "The first."), header=b"# 2026-11-21\n\n")
    await index.search("first")
    before, synced = commits, disk.syncs
    for number in range(1, 301):
        block = entry(number, f"Animal {number} is a {ANIMALS[number % 5]}.")
        await index.index_appended(LEDGER, (await files.append(LEDGER, block)).offset, block)
        if number % 50 == 0:
            assert (await index.search(f"{number}"))[0].content == f"Animal {number} is a {ANIMALS[number % 5]}."
    assert commits - before == disk.syncs - synced == 300
    usual = [seen[at] for at in range(before + 2, before + 300) if (at - before) % 50]
    # now and then the full-text table merges a little of itself
    assert statistics.median(usual[-100:]) == statistics.median(usual[:100])
    assert sum(usual[-100:]) < 1.5 * sum(usual[:100])
    await index.close()
