"""What can't be among the best is not even read, and nobody can tell that from the hits."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ricordo import Entry
from ricordo.search import Chunk, SearchSource, recall_memories
from ricordo.search.contract import Candidates, SearchIndex
from ricordo.search.index import WorkspaceIndex
from ricordo.search.tables import load_chunks
from ricordo.storage import Connection
from ricordo.testing import InMemoryFiles
from ricordo.workspace import Source as EntrySource
from ricordo.workspace import render_entry

pytestmark = pytest.mark.anyio

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
NAMES = ("harbour", "ships", "rope", "anchor", "gull", "tide", "pilot", "cargo", "crane", "ledger", "Ada", "deploy")
QUESTIONS = (
    "harbour ships", "When did the pilot deploy the cargo in March 2026?", "How many ships does Ada have?", "rope",
    "my anchor and my crane", "gull tide pilot cargo crane rope", "Who deployed with Ada?",
)  # fmt: skip


class Whole:
    """An index that can only be searched, so that all is read."""

    def __init__(self, index: SearchIndex) -> None:
        self.refresh, self.append, self.index_appended = index.refresh, index.append, index.index_appended
        self.freshness, self.close, self.search = index.freshness, index.close, index.search


def bullets(chance: Random, count: int, first: int, **more: object) -> list[str]:
    """Return entries of a few words, some of which take the place of others."""
    found = []
    for number in range(first, first + count):
        older = f"01jd{chance.randrange(first + count):022d}" if chance.random() < 0.1 else None
        entry = Entry(
            content=" ".join(chance.choices(NAMES, k=chance.randint(2, 9))) + f" {number}",
            kind=chance.choice(("fact", "decision", "preference")),
            id=f"01jd{number:022d}",
            time=NOW - timedelta(days=chance.randint(0, 400)),
            confidence=chance.choice((1.0, 1.0, 0.6)),
            tags=chance.choice(((), ("correction",), ("zoo",))),
            pinned=chance.random() < 0.05,
            supersedes=older,
        )
        found.append(render_entry(entry))
    return found


async def workspace(folder: Path, seed: int) -> WorkspaceIndex:
    """Return an index of a ledger, of curated memory that repeats some of it, and of a session and a note."""
    chance = Random(seed)
    files = InMemoryFiles()
    saved = bullets(chance, 140, 0)
    curated = [*chance.sample(saved, 15), *bullets(chance, 10, 500)]
    said = "\n\n".join(" ".join(chance.choices(NAMES, k=12)) for _ in range(6))
    await files.append("workspace/memory/2026-11-20.md", "".join(saved).encode(), header=b"# 2026-11-20\n\n")
    await files.append("workspace/memory/topics/port.md", "".join(curated).encode(), header=b"# Port\n\n")
    if seed % 2:
        await files.append("workspace/sessions/s1.md", said.encode(), header=b"# Session\n\n")
        await files.append("workspace/notes.md", said[::-1].encode())
    return await WorkspaceIndex.open(folder / "index.db", files)


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the list that how many rows are read is put into, statement by statement."""
    read: list[int] = []

    def reading(connection: Connection, numbers: Sequence[int]) -> dict[int, Chunk]:
        read.append(len(numbers))
        return load_chunks(connection, numbers)

    monkeypatch.setattr("ricordo.search.segments.load_chunks", reading)
    return read


@pytest.mark.parametrize("seed", range(6))
async def test_leaving_out_what_can_not_win_changes_no_hit(tmp_path: Path, seed: int) -> None:
    index = await workspace(tmp_path, seed)
    some, every = (SearchSource(label="project", index=each) for each in (index, Whole(index)))
    for question in QUESTIONS:
        for limit in (1, 4):
            hits = await recall_memories([some], question, limit=limit, now=NOW)
            assert hits == await recall_memories([every], question, limit=limit, now=NOW)
            assert hits


async def test_a_recall_reads_few_of_the_entries_that_hold_a_word_and_curated_memory_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = InMemoryFiles()
    told = [
        render_entry(Entry(content=f"harbour {'tide ' * (at % 50)}number {at}", id=f"01jd{at:022d}", time=NOW))
        for at in range(300)
    ]
    await files.append("workspace/memory/2026-11-20.md", "".join(told).encode(), header=b"# 2026-11-20\n\n")
    await files.append("workspace/MEMORY.md", "".join(bullets(Random(1), 40, 900)).encode(), header=b"# Memory\n\n")
    index = await WorkspaceIndex.open(tmp_path / "index.db", files)
    read = counted(monkeypatch)
    for question in ("harbour tide", "tide at the harbour", "harbour"):
        assert len(await recall_memories([SearchSource(label="project", index=index)], question, limit=5, now=NOW)) == 5
    found, curated, *later = read
    assert curated == 40
    # what an earlier question found is not read again
    assert len(later) == 1
    assert max(found, *later) < 40


async def test_a_recall_reads_as_few_entries_of_a_memory_a_hundred_times_as_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance, reads = Random(5), counted(monkeypatch)
    most: dict[int, int] = {}
    for count in (40, 400, 4_000):
        files = InMemoryFiles()
        told = "".join(
            render_entry(
                Entry(
                    content=f"{' '.join(chance.choices(NAMES, k=chance.randint(2, 30)))} {at}",
                    id=f"01jd{at:022d}",
                    time=NOW,
                )
            )
            for at in range(count)
        )
        await files.append("workspace/memory/2026-11-20.md", told.encode(), header=b"# 2026-11-20\n\n")
        index = await WorkspaceIndex.open(tmp_path / f"{count}.db", files)
        source = SearchSource(label="project", index=index)
        for question in ("harbour tide", "the pilot of a crane", "gull 7", "ships with a rope"):
            reads.clear()
            assert len(await recall_memories([source], question, limit=3, now=NOW)) == 3
            most[count] = max(most.get(count, 0), sum(reads))
        await index.close()
    assert most[4_000] <= 2 * most[40]


async def test_what_has_to_do_with_others_is_read_however_little_it_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, far = InMemoryFiles(), " and so on and on with many other words" * 4

    def written(number: int, content: str, **more: object) -> str:
        return render_entry(Entry(content=content, id=f"01jd{number:022d}", time=NOW, **more))  # type: ignore[arg-type]

    twice = written(11, f"The tide twice{far}.")
    told = [
        *(written(100 + at, f"tide harbour {at}") for at in range(12)),
        twice,
        written(12, f"The tide alone{far}."),
        written(13, f"The tide anew{far}.", supersedes=f"01jd{40:022d}"),
        written(14, f"The tide of the session{far}.", source=EntrySource(session="s1")),
    ]
    await files.append("workspace/memory/2026-11-20.md", "".join(told).encode(), header=b"# 2026-11-20\n\n")
    await files.append("workspace/memory/topics/port.md", twice.encode(), header=b"# Port\n\n")
    await files.append("workspace/sessions/s1.md", f"The tide was told{far}.\n".encode(), header=b"# Session\n\n")
    index = await WorkspaceIndex.open(tmp_path / "index.db", files)
    found = list[Candidates]()
    find = index.find_candidates

    async def watched(*given: Any, **named: Any) -> list[Candidates]:
        candidates = await find(*given, **named)
        found.extend(candidates)
        return candidates

    monkeypatch.setattr(index, "find_candidates", watched)
    source = SearchSource(label="project", index=index)
    await recall_memories([source], "tide harbour", limit=1, now=NOW)
    weak = sorted(" ".join(match.content.split()[2:5]) for match in found[0].matches if far in match.content)
    assert weak == ["anew and so", "twice and so", "twice and so"]
    hits = await recall_memories([source], "tide harbour", limit=20, now=NOW)
    assert found[0].unseen is not None
    assert 0 < found[0].unseen < min(hit.score for hit in hits if far not in hit.entry.content)


async def test_where_the_nearest_are_the_least_certain_all_are_read(tmp_path: Path) -> None:
    files = InMemoryFiles()
    told = [
        render_entry(
            Entry(
                content=f"The tide and the harbour{' of this port' * (at % 2)}, number {at}.",
                id=f"01jd{at:022d}",
                time=NOW,
                confidence=float(at % 2),
            )
        )
        for at in range(60)
    ]
    await files.append("workspace/memory/2026-11-20.md", "".join(told).encode(), header=b"# 2026-11-20\n\n")
    index = await WorkspaceIndex.open(tmp_path / "index.db", files)
    some, every = (SearchSource(label="project", index=each) for each in (index, Whole(index)))
    hits = await recall_memories([some], "tide harbour", limit=1, now=NOW)
    assert hits == await recall_memories([every], "tide harbour", limit=1, now=NOW)
    assert hits[0].entry.confidence == 1
