"""Speed of the search index: rebuilding, reopening, searching and adding, as ratios to bare SQLite in one run.

    python benchmarks/index_speed.py [--sizes 1000,10000,100000] [--queries 100] [--adds 10000] [--embedder static]
        [--out speed.json]

Entries are 80 to 400 characters of words whose commonness falls as in language, with names, dates and paths, 1,000 a
day; a query is five to eight words of one entry. The peer of a search is SQLite's own full-text ranking of the same
texts, the peer of an add is an append with fsync and one SQLite commit. Times are medians in milliseconds, of the wall
clock and of this process alone (`cpu`), which a busy machine does not change. With an embedder the same searches are
made by meaning too, and the product of all vectors with a query's is compared with reading them once.
"""

import argparse
import json
import os
import random
import sqlite3
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import TypeAlias

import anyio
import numpy as np

from ricordo import Memory, Scope
from ricordo.models import Embedder
from ricordo.models.embedders import load_embedder
from ricordo.runtime import Settings
from ricordo.search.contract import Query
from ricordo.search.index import WorkspaceIndex
from ricordo.search.vector_cache import VectorCache
from ricordo.search.vector_search import cosines
from ricordo.storage.local import LocalFiles
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import render_entry

__all__ = ["main"]

Figures: TypeAlias = "dict[str, float]"
FUNCTION_WORDS = [
    *("the", "of", "and", "to", "a", "in", "is", "that", "it", "was", "for", "on", "with", "as", "at", "be", "this"),
    *("by", "from", "or", "are", "not", "have", "had", "but", "an", "they", "which", "you", "we"),
]
NAMES = ["Ana", "Ben", "Chloe", "Dmitri", "Elena", "Farid", "Grace", "Hiro", "Lisbon", "Osaka", "Nairobi", "Denver"]
PER_DAY = 1_000
SCOPE = Scope(user="me", project="benchmark")
BEGIN = datetime(2020, 1, 1, tzinfo=UTC)


def main() -> None:
    """Print the figures of each size and write them where `--out` says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument(
        "--adds", type=int, default=10_000, help="how many are added to one day; not more than there are entries"
    )
    parser.add_argument("--embedder", help="a name as in the settings, such as static")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    results = {}
    for size in map(int, given.sizes.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            results[size] = anyio.run(measured, Path(folder), size, given.queries, given.adds, given.embedder)
        print(f"{size:,} entries")
        for name, value in results[size].items():
            print(f"  {name:32} {value:12.3f}")
    if given.out:
        given.out.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


async def measured(root: Path, size: int, queries: int, count: int, embedder: str | None) -> Figures:
    """Return the figures of an index over so many entries, to which at most `count` are added one by one."""
    texts = entries(size)
    asked = questions(texts, queries)
    write_ledgers(root, texts)
    files = LocalFiles(root)
    path = root / "memory_index.db"
    figures: Figures = {}
    index = await WorkspaceIndex.open(path, files)
    figures["rebuild s"], figures["rebuild cpu s"] = await timed(index.refresh)
    await index.close()
    figures["index bytes per entry"] = path.stat().st_size / size

    # numpy and the package are loaded already: what is measured is the index
    figures["reopen ms"], figures["reopen cpu ms"] = await timed(partial(reopen, path, files, asked[0]), scale=1e3)
    index = await WorkspaceIndex.open(path, files)
    tracemalloc.start()
    await index.search(asked[0])
    figures["memory MB"] = tracemalloc.get_traced_memory()[0] / 1e6
    tracemalloc.stop()
    figures |= await searches(index, asked, "search 10", limit=10)
    figures |= await searches(index, asked, "search 200, neighbours", limit=200, neighbours=True)
    figures["FTS5 bm25, top 10 ms"] = bare_search(root / "bare.db", texts, asked)
    figures |= await adds(root, index, min(size, count))
    await index.close()
    if embedder:
        figures |= await by_meaning(root, files, asked, embedder)
    return figures


async def by_meaning(root: Path, files: LocalFiles, asked: Sequence[str], embedder: str) -> Figures:
    """Return how long embedding everything takes, a search by words and meaning, and what of it reading vectors is."""
    figures: Figures = {}
    path, made = root / "memory_index.db", load_embedder(embedder)
    index = await WorkspaceIndex.open(path, files, embedder=made)
    figures["embed everything s"], figures["embed everything cpu s"] = await timed(index.refresh)
    figures["not embedded"] = index.freshness().not_embedded
    await index.close()
    figures["reopen with vectors ms"], _ = await timed(partial(reopen, path, files, asked[0], made), scale=1e3)
    index = await WorkspaceIndex.open(path, files, embedder=made)
    figures |= await searches(index, asked, "hybrid 10", limit=10)
    figures |= await searches(index, asked, "hybrid 200, neighbours", limit=200, neighbours=True)
    await index.close()
    cache = VectorCache(root / "memory_index_vectors.db", made.model_id)
    await cache.load()
    rows = cache.current.rows
    figures["product of all vectors ms"] = middle(partial(cosines, rows, rows[0]))
    figures["reading all vectors ms"] = middle(partial(np.bitwise_xor.reduce, rows.view(np.int64), axis=None))
    await cache.close()
    return figures


def middle(act: Callable[[], object], rounds: int = 15) -> float:
    """Return the median milliseconds of an act."""
    times = []
    for _ in range(rounds):
        begun = time.perf_counter()
        act()
        times.append((time.perf_counter() - begun) * 1e3)
    return statistics.median(times)


async def searches(
    index: WorkspaceIndex, asked: Sequence[str], name: str, *, limit: int, neighbours: bool = False
) -> Figures:
    """Return how long a search takes that finds at most so many."""
    walls, cpus = [], []
    for question in asked:
        query = Query(text=question, neighbours=neighbours)
        wall, cpu = await timed(partial(index.search, query, limit), scale=1e3)
        walls.append(wall)
        cpus.append(cpu)
    return {
        f"{name} ms": statistics.median(walls),
        f"{name} p95 ms": sorted(walls)[int(len(walls) * 0.95)],
        f"{name} cpu ms": statistics.median(cpus),
    }


async def reopen(path: Path, files: LocalFiles, question: str, embedder: Embedder | None = None) -> None:
    """Open, search once, close."""
    index = await WorkspaceIndex.open(path, files, embedder=embedder)
    await index.search(question)
    await index.close()


async def adds(root: Path, index: WorkspaceIndex, count: int) -> Figures:
    """Return how long adding takes, each found at once, from the first of a day to its last, and what can't be less.

    What can't be less is an append with fsync and a commit, both as ours are: what is durable is the file.
    """
    day = "workspace/memory/2030-01-01.md"
    settings = Settings(root=None, user="me", data=root / "data", cache=root / "cache")
    ways: dict[str, list[tuple[float, float]]] = {"add": [], "remember": []}
    bare: list[float] = []
    scope = Scope(project="speed")
    async with Memory.open(root / "whole", scope=scope, settings=settings) as memory:
        with bare_add(root) as add_bare:
            for number, text in enumerate(entries(count)):
                block = bullet(f"{text} anew", 10_000_000 + number, BEGIN)

                ways["add"].append(await timed(partial(index.append, day, block), scale=1e3))
                begun = time.perf_counter()
                add_bare(block)
                bare.append((time.perf_counter() - begun) * 1e3)
                ways["remember"].append(await timed(partial(memory.remember, text), scale=1e3))
    least = statistics.median(bare)
    return {
        "adds of one day": count,
        "bare append and commit ms": least,
        **added("add", ways["add"], least),
        **added("remember", ways["remember"], least),
    }


def added(name: str, moments: Sequence[tuple[float, float]], least: float) -> Figures:
    """Return the figures of a way to add: alone, as a multiple of the least, and whether it grows with the day.

    For that the first tenth of the day is compared with its last, by the clock and in this process.
    """
    walls, cpus = zip(*moments, strict=True)
    part = max(len(moments) // 10, 1)
    middle = statistics.median(walls)
    first, last = statistics.median(walls[:part]), statistics.median(walls[-part:])
    first_cpu, last_cpu = statistics.median(cpus[:part]), statistics.median(cpus[-part:])
    return {
        f"{name} ms": middle,
        f"{name} cpu ms": statistics.median(cpus),
        f"{name}, times the bare one": middle / least,
        f"{name}, first {part:,} ms": first,
        f"{name}, last {part:,} ms": last,
        f"{name}, last to first": last / first,
        f"{name}, last to first, cpu": last_cpu / first_cpu,
    }


@contextmanager
def bare_add(root: Path) -> Iterator[Callable[[bytes], None]]:
    """Yield what appends to a file with fsync and commits a row, with the settings of the index's database."""
    path = root / "plain.md"
    with closing(sqlite3.connect(root / "plain.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("CREATE TABLE entry (id INTEGER PRIMARY KEY, content TEXT)")

        def add(block: bytes) -> None:
            with path.open("ab") as file:
                file.write(block)
                file.flush()
                os.fsync(file.fileno())
            connection.execute("INSERT INTO entry (content) VALUES (?)", (block.decode(),))

        yield add


def bare_search(path: Path, texts: Sequence[str], asked: Sequence[str]) -> float:
    """Return the median milliseconds of SQLite's own ranking of the same texts, function words left out."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("CREATE VIRTUAL TABLE entry USING fts5 (content, tokenize = 'porter unicode61')")
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO entry (content) VALUES (?)", ((text,) for text in texts))
        connection.execute("COMMIT")
        times = []
        for question in asked:
            words = " OR ".join(f'"{word}"' for word in question.split() if word not in FUNCTION_WORDS)
            begun = time.perf_counter()
            connection.execute(
                "SELECT content FROM entry WHERE entry MATCH ? ORDER BY rank LIMIT 10", (words,)
            ).fetchall()
            times.append((time.perf_counter() - begun) * 1e3)
    return statistics.median(times)


async def timed(act: Callable[[], Awaitable[object]], *, scale: float = 1.0) -> tuple[float, float]:
    """Return how long an act takes, by the wall clock and in this process."""
    wall, cpu = time.perf_counter(), time.process_time()
    await act()
    return (time.perf_counter() - wall) * scale, (time.process_time() - cpu) * scale


def entries(size: int) -> list[str]:
    """Return texts, the same in every run."""
    chance = random.Random(7)
    rare = vocabulary(chance, 20_000)
    zipf = list(accumulate((rank + 2.7) ** -1.07 for rank in range(len(rare))))
    common = list(accumulate(1 / (rank + 1.5) for rank in range(len(FUNCTION_WORDS))))
    texts = []
    for number in range(size):
        words: list[str] = []
        length, wanted = 0, chance.randint(60, 380)
        while length < wanted:
            source, weights = (FUNCTION_WORDS, common) if chance.random() < 0.45 else (rare, zipf)
            words += chance.choices(source, cum_weights=weights)
            length += len(words[-1]) + 1
        words.insert(chance.randrange(len(words)), chance.choice(NAMES))
        words += [f"on 2025-{1 + number % 12:02d}-{1 + number % 28:02d}"] if number % 5 == 0 else []
        words += [f"in src/{chance.choice(rare)}/{chance.choice(rare)}.py"] if number % 7 == 0 else []
        texts.append(" ".join(words).capitalize() + ".")
    return texts


def vocabulary(chance: random.Random, size: int) -> list[str]:
    """Return invented words."""
    words: set[str] = set()
    while len(words) < size:
        syllables = chance.choice((1, 2, 2, 3))
        word = "".join(
            chance.choice(("b", "br", "k", "d", "f", "gl", "l", "m", "n", "st", "t", "v")) + chance.choice("aeiou")
            for _ in range(syllables)
        )
        words.add(word + chance.choice(("", "n", "r", "ck", "nt", "ing", "ed", "er", "ly", "s", "ness")))
    return sorted(sorted(words), key=lambda _: chance.random())


def questions(texts: Sequence[str], count: int) -> list[str]:
    """Return for each of some texts five to eight of its words in their order."""
    chance = random.Random(11)
    asked = []
    for _ in range(count):
        words = [word.strip(".") for word in chance.choice(texts).split() if "/" not in word]
        telling = [at for at, word in enumerate(words) if word not in FUNCTION_WORDS]
        kept = {*chance.sample(telling, min(4, len(telling))), *chance.sample(range(len(words)), min(3, len(words)))}
        asked.append(" ".join(words[at] for at in sorted(kept)))
    return asked


def write_ledgers(root: Path, texts: Sequence[str]) -> None:
    """Write the texts as entries, a thousand a day."""
    folder = root / "workspace" / "memory"
    folder.mkdir(parents=True)
    for first in range(0, len(texts), PER_DAY):
        day = BEGIN + timedelta(days=first // PER_DAY)
        some = texts[first : first + PER_DAY]
        blocks = [bullet(text, first + at, day + timedelta(seconds=at)) for at, text in enumerate(some)]
        (folder / f"{day:%Y-%m-%d}.md").write_bytes(f"# {day:%Y-%m-%d}\n\n".encode() + b"".join(blocks))


async def begin(root: Path) -> Path:
    """Begin a memory, and return the folder where the memories of its user lie."""
    async with Memory.open(root, scope=SCOPE, embedder="none") as memory:
        return memory.folder


def bullet(text: str, number: int, moment: datetime) -> bytes:
    """Return an entry as it stands in a ledger."""
    return render_entry(Entry(content=text, kind="fact", id=f"01jd{number:022d}", time=moment)).encode()


if __name__ == "__main__":
    main()
