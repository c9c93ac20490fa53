"""How fast a memory is through its public API, as a page: `python benchmarks/speed.py [--sizes N,N] [--out FOLDER]`.

Entries and questions are those of `index_speed.py`: 80 to 400 characters a piece, 1,000 a day. Numbers are kept in
`speed.json` in FOLDER (docs/benchmarks), the page beside it is made of them; the chart needs matplotlib (the dependency
group `bench`). Where the extra `embed` is installed, the same is measured with the static embedder. A million
entries take some minutes and 3 GB: `--sizes 1000000`.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import anyio

from index_speed import SCOPE, Figures, bare_add, bare_search, begin, entries, questions, timed, write_ledgers
from recall_speed import LIMIT, medians
from ricordo import Memory
from speed_page import draw, page

__all__ = ["main"]

_EMBEDDERS = ("none", "static") if find_spec("wordllama") is not None else ("none",)


def main() -> None:
    """Measure every size, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--adds", type=int, default=100)
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent.parent / "docs" / "benchmarks")
    given = parser.parse_args()
    sizes = {}
    for size in map(int, given.sizes.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            sizes[str(size)] = anyio.run(measured, Path(folder), size, given.queries, given.adds)
        print(f"{size:,} entries", file=sys.stderr)
        for name, value in sizes[str(size)].items():
            print(f"  {name:32} {value:12.3f}", file=sys.stderr)
    found = {"cores": os.cpu_count(), "load": round(os.getloadavg()[0], 2), "sizes": sizes}
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "speed.json").write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    (given.out / "speed.md").write_text(page(found), "utf-8")
    if not draw(found, given.out):
        print("The chart stays as it is: matplotlib is not there.", file=sys.stderr)


async def measured(folder: Path, size: int, count: int, adds: int) -> Figures:
    """Return the figures of a memory of so many entries, by words and with the static embedder."""
    texts = entries(size)
    asked = questions(texts, count)
    figures: Figures = {}
    for embedder in _EMBEDDERS:
        figures |= await _with(folder / embedder, texts, asked, adds, embedder)
    figures["FTS5 ms"] = bare_search(folder / "bare.db", texts, asked)
    return figures


async def _with(root: Path, texts: list[str], asked: list[str], adds: int, embedder: str) -> Figures:
    write_ledgers(await begin(root), texts)
    kind = "words" if embedder == "none" else "both"
    figures: Figures = {}
    async with Memory.open(root, scope=SCOPE, embedder=embedder) as memory:
        # the doctor waits until everything is taken in and has its vector; what it looks at besides is taken off
        making, looking = await timed(memory.doctor), await timed(memory.doctor)
        figures |= {f"{kind}, rebuild s": making[0] - looking[0], f"{kind}, rebuild cpu s": making[1] - looking[1]}
    wall, cpu = time.perf_counter(), time.process_time()
    async with Memory.open(root, scope=SCOPE, embedder=embedder) as memory:
        await memory.recall(asked[0], limit=LIMIT)
        figures[f"{kind}, reopen ms"] = (time.perf_counter() - wall) * 1e3
        figures[f"{kind}, reopen cpu ms"] = (time.process_time() - cpu) * 1e3
        for question in asked:
            await memory.recall(question, limit=LIMIT)
        recalls = [partial(memory.recall, question, limit=LIMIT) for question in asked]
        figures |= await medians(f"{kind}, recall", recalls)
        bare, whole = list[float](), list[float]()
        with bare_add(root) as add_bare:
            for text in entries(len(texts) + adds)[-adds:]:
                begun = time.perf_counter()
                add_bare(text.encode())
                bare.append((time.perf_counter() - begun) * 1e3)
                whole.append((await timed(partial(memory.remember, text), scale=1e3))[0])
    figures[f"{kind}, add ms"], figures["bare add ms"] = statistics.median(whole), statistics.median(bare)
    return figures


if __name__ == "__main__":
    main()
