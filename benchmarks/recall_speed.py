"""Speed of a warm recall through the public API, beside the bare index and bare SQLite, in one run.

    python benchmarks/recall_speed.py [--sizes 1000,10000,100000] [--queries 100] [--embedder none] [--bulk 10000]
        [--memory] [--out speed.json]

Entries and questions are those of `index_speed.py`. `recall` is `Memory.recall`, `preamble` is `Memory.preamble`, both
warm; `index` is the search of the index below it, `FTS5` SQLite's own ranking of the same texts. `hops` are the trips
to a thread of one recall, `rows` the entries it reads. `asked first` are the same questions when nobody had asked
them before. With `--bulk` so many entries and messages are added, too. Times are medians in milliseconds, of the wall
clock and of this process alone (`cpu`). With `--memory` nothing is timed: what a process that recalls takes above one
with a memory of one entry is compared with the vectors and postings that it holds.
"""

import argparse
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from unittest import mock

import anyio
import anyio.to_thread

from index_speed import SCOPE, Figures, bare_search, begin, entries, questions, timed, write_ledgers
from ricordo import Memory
from ricordo.messages.types import Message, Text
from ricordo.search import tables as index_queries
from ricordo.search.contract import MEMORY_DOCUMENT_TYPES, Query
from ricordo.search.index import WorkspaceIndex
from ricordo.search.postings import Segment
from ricordo.search.segments import decode_segment
from ricordo.storage.local import LocalFiles
from ricordo.workspace.layout import INDEX_FILE

__all__ = ["main"]

LIMIT = 10


def main() -> None:
    """Print the figures of each size and write them where `--out` says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--embedder", default="none", help="a name as in the settings, such as static")
    parser.add_argument("--bulk", type=int, default=0)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--resident", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    if given.resident:
        print(anyio.run(resident, given.resident, given.embedder))
        return
    results: dict[str, Figures] = {}
    for size in map(int, given.sizes.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            results[f"{size:,} entries"] = (
                taken(Path(folder), size, given.embedder)
                if given.memory
                else anyio.run(measured, Path(folder), size, given.queries, given.embedder)
            )
    if given.bulk:
        with tempfile.TemporaryDirectory() as folder:
            results[f"{given.bulk:,} added"] = anyio.run(added, Path(folder), given.bulk)
    for name, figures in results.items():
        print(name)
        for figure, value in figures.items():
            print(f"  {figure:24} {value:12.3f}")
    if given.out:
        given.out.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


async def measured(root: Path, size: int, count: int, embedder: str) -> Figures:
    """Return the figures of a memory of so many entries."""
    texts = entries(size)
    asked = questions(texts, count)
    folder = await begin(root)
    write_ledgers(folder, texts)
    figures: Figures = {}
    async with Memory.open(root, scope=SCOPE, embedder=embedder) as memory:
        figures["first recall ms"], figures["first recall cpu ms"] = await timed(
            partial(memory.recall, asked[0], limit=LIMIT), scale=1e3
        )
        await embedded(memory)
        figures |= await medians("asked first", [partial(memory.recall, question, limit=LIMIT) for question in asked])
        figures |= await medians("recall", [partial(memory.recall, question, limit=LIMIT) for question in asked])
        figures |= await counts([partial(memory.recall, question, limit=LIMIT) for question in asked])
        await memory.preamble()
        figures |= await medians("preamble", [memory.preamble] * 5)
    index = await WorkspaceIndex.open(folder / "bare_index.db", LocalFiles(folder))
    await index.refresh()
    for neighbours, limit in ((False, LIMIT), (True, 200)):
        searches = [
            partial(
                index.search, Query(text=question, document_types=MEMORY_DOCUMENT_TYPES, neighbours=neighbours), limit
            )
            for question in asked
        ]
        await searches[0]()
        figures |= await medians(f"index {limit}", searches)
    await index.close()
    figures[f"FTS5 {LIMIT} ms"] = bare_search(root / "bare.db", texts, asked)
    return figures


async def embedded(memory: Memory) -> None:
    """Wait until everything has its vector, where there is an embedder."""
    checks = await memory.doctor()
    while any("no vector yet" in check.detail for check in checks):
        checks = await memory.doctor()


def taken(root: Path, size: int, embedder: str) -> Figures:
    """Return the megabytes that so many entries take in a process, and what their vectors and postings alone take."""
    full, empty = root / "full", root / "empty"
    folder = anyio.run(begin, full)
    write_ledgers(folder, entries(size))
    write_ledgers(anyio.run(begin, empty), entries(1))
    # the first process makes the index, which takes more for a while
    alone(full, embedder)
    alone(empty, embedder)
    full_mb, empty_mb = alone(full, embedder), alone(empty, embedder)
    vectors, postings = held(folder)
    return {
        "process of one entry MB": empty_mb, "process MB": full_mb, "vectors MB": vectors, "postings MB": postings,
        "times what is held": (full_mb - empty_mb) / (vectors + postings),
    }  # fmt: skip


def alone(root: Path, embedder: str) -> float:
    """Return the megabytes of a process of its own that has recalled from this root."""
    command = [sys.executable, __file__, "--resident", str(root), "--embedder", embedder]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


async def resident(root: Path, embedder: str) -> float:
    """Return the megabytes of this process after a hundred recalls."""
    async with Memory.open(root, scope=SCOPE, embedder=embedder) as memory:
        await memory.recall("the first", limit=LIMIT)
        await embedded(memory)
        for question in questions(entries(1_000), 100):
            await memory.recall(question, limit=LIMIT)
        return await anyio.to_thread.run_sync(resident_bytes) / 1e6


def resident_bytes() -> int:
    """Return the bytes of this process that are in memory; Linux tells them."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def held(folder: Path) -> tuple[float, float]:
    """Return the megabytes of the vectors and of the postings of a memory."""
    index = folder / INDEX_FILE
    with closing(sqlite3.connect(index)) as connection:
        blocks = [decode_segment(row[0]) for row in connection.execute("SELECT data FROM segment")]
    vectors = index.with_name(f"{index.stem}_vectors.db")
    numbers = 0
    if vectors.exists():
        with closing(sqlite3.connect(vectors)) as connection:
            numbers = connection.execute("SELECT coalesce(sum(length(numbers)), 0) FROM vector").fetchone()[0]
    return numbers / 1e6, sum(map(size_of, blocks)) / 1e6


def size_of(block: Segment) -> int:
    """Return the bytes of a block of postings with the columns of its rows."""
    postings = block.postings
    arrays = (postings.ends, postings.starts, postings.rows, postings.counts, *block.columns.values())
    return len(postings.vocabulary) + 8 * len(postings.heads) + sum(array.nbytes for array in arrays)


async def medians(name: str, acts: Sequence[Callable[[], Awaitable[object]]]) -> Figures:
    """Return how long these take."""
    times = [await timed(act, scale=1e3) for act in acts]
    walls, cpus = ([pair[at] for pair in times] for at in (0, 1))
    return {
        f"{name} ms": statistics.median(walls),
        f"{name} p95 ms": sorted(walls)[int(len(walls) * 0.95)],
        f"{name} cpu ms": statistics.median(cpus),
    }


async def counts(acts: Sequence[Callable[[], Awaitable[object]]]) -> Figures:
    """Return how many trips to a thread these take, and how many entries they read, each."""
    hops, rows = 0, 0
    to_thread, chunks = anyio.to_thread.run_sync, index_queries.load_chunks

    async def hopping(*given: object, **named: object) -> object:
        nonlocal hops
        hops += 1
        return await to_thread(*given, **named)  # type: ignore[arg-type]

    def reading(connection: object, numbers: Sequence[int]) -> object:
        nonlocal rows
        rows += len(numbers)
        return chunks(connection, numbers)  # type: ignore[arg-type]

    with mock.patch("anyio.to_thread.run_sync", hopping), mock.patch("ricordo.search.segments.load_chunks", reading):
        for act in acts:
            await act()
    return {"hops": hops / len(acts), "rows": rows / len(acts)}


async def added(root: Path, count: int) -> Figures:
    """Return how long so many entries take one by one, a tenth of them, and so many messages of ten sessions."""
    texts = entries(count)
    figures: Figures = {}
    async with Memory.open(root, scope=SCOPE) as memory:

        async def remember() -> None:
            for text in texts[: count // 10]:
                await memory.remember(text)

        async def ingest() -> None:
            for session in range(10):
                said = texts[session * count // 10 : (session + 1) * count // 10]
                messages = [Message(role="user", parts=(Text(text=text),)) for text in said]
                await memory.ingest(messages, session=f"s{session}")

        seconds, cpu = await timed(remember)
        figures |= {"remember each ms": 1e4 * seconds / count, "remember each cpu ms": 1e4 * cpu / count}
        seconds, cpu = await timed(ingest)
        figures |= {"ingest s": seconds, "ingest cpu s": cpu}
        figures["first recall ms"], _ = await timed(partial(memory.recall, texts[0]), scale=1e3)
    return figures


if __name__ == "__main__":
    main()
