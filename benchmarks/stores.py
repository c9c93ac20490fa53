"""What every store takes at 10,000 and 100,000 memories: `python benchmarks/stores.py [--quick] [--write]`.

Each store is filled through its public `save`, in a process and a folder of its own, on a disk that does not wait for
the medium, and then opened and measured on the real one: a save that is durable when it returns, a recall of five sorts
of questions, a recall right after a save, the preamble, and opening it anew up to the first answer. Beside that
stand what the disk itself takes in the same run: to append a line of the same length and sync it, and to read the
files of the store.

Stores that declare 100,000 memories in `StoreSubject.scale` are measured at that size too. `--write` renders the tables
of docs/benchmarks/stores.md and puts all numbers beside it.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import anyio

from ricordo.messages.json_text import dumps
from ricordo.runtime import Settings
from ricordo.storage.disk import Disk
from ricordo.testing import BUILT_IN_STORES
from ricordo.workspace.entry_json import entry_to_json
from store_page.numbers import Row, row_of
from store_page.page import printed, written
from store_page.samples import make_sample_entry, measure_samples

__all__ = ["main"]

QUICK = 1_000
SIZES = (10_000, 100_000)
ADDRESSES = {
    "none": "none:",
    "ring": "ring:?capacity={capacity}",
    "mock": "mock:",
    "vector": "vector:{folder}?embedder=hashing",
    "fanout": "fanout:jsonl:{folder}/one,kv:{folder}/two",
}


PLACELESS = frozenset({"none", "ring", "mock"})


class QuickDisk(Disk):
    """A disk that does not wait for the medium."""

    def sync(self, descriptor: int) -> None:
        """Do not wait."""

    def sync_folder(self, path: str) -> None:
        """Do not wait."""


def main(given: Sequence[str] | None = None) -> None:
    """Measure the stores and print the tables."""
    asked = options(given)
    if asked.child:
        print(json.dumps(measured(asked.child, asked.entries[0], asked.saves, asked.tries, asked.folder)))
        return
    rows = []
    for entries in asked.entries:
        for scheme in asked.only or BUILT_IN_STORES:
            if asked.only or asked.quick or BUILT_IN_STORES[scheme].scale >= entries:
                began = time.perf_counter()
                rows.append(in_a_process(scheme, entries, asked))
                print(f"{scheme} {entries:,}: {time.perf_counter() - began:.0f} s", file=sys.stderr)
                if asked.write:
                    written(rows[-1])
    print(printed(rows))


def options(given: Sequence[str] | None) -> argparse.Namespace:
    """Return what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"every store at {QUICK:,} memories, few tries")
    parser.add_argument("--only", nargs="*", choices=[*BUILT_IN_STORES], help="these stores, whatever they declare")
    parser.add_argument("--entries", type=int, nargs="*", help="how many memories")
    parser.add_argument("--saves", type=int, help="how many saves are timed at that size")
    parser.add_argument("--tries", type=int, help="how often everything else is timed")
    parser.add_argument("--folder", type=Path, help="where the stores are made and removed again: the disk to measure")
    parser.add_argument("--write", action="store_true", help="render docs/benchmarks/stores.md")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    asked = parser.parse_args(given)
    asked.entries = asked.entries or ([QUICK] if asked.quick else [*SIZES])
    asked.saves = asked.saves or (20 if asked.quick else 100)
    asked.tries = asked.tries or (5 if asked.quick else 20)
    return asked


def in_a_process(scheme: str, entries: int, asked: argparse.Namespace) -> Row:
    """Measure one store in a process of its own, so that its memory is nobody else's."""
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        command = [sys.executable, __file__, "--child", scheme, "--entries", str(entries), "--folder", folder]
        command += ["--saves", str(asked.saves), "--tries", str(asked.tries)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    row: Row = json.loads(done.stdout)
    return row


def measured(scheme: str, entries: int, saves: int, tries: int, folder: Path) -> Row:
    """Measure one store in this process."""
    place = folder / "store"
    address = ADDRESSES.get(scheme, f"{scheme}:{{folder}}").format(folder=place, capacity=entries + saves)
    settings = Settings(root=None, user="bench", data=folder / "data", cache=folder / "cache")
    line = dumps(entry_to_json(make_sample_entry(entries))).encode() + b"\n"
    descriptor = os.open(folder / "bare", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    aside = partial(append_bare, descriptor, line)
    # what lives in this process would be gone with the store that was filled
    filling = None if scheme in PLACELESS else QuickDisk()
    measure = partial(measure_samples, entries=entries, saves=saves, tries=tries, aside=aside, filling=filling)
    taken = anyio.run(measure, address, settings)
    os.close(descriptor)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    files = [path for path in place.rglob("*") if path.is_file()]
    reading = [read_bare(files) for _ in range(tries)]
    size = sum(path.stat().st_blocks * 512 for path in files)
    return row_of(scheme, entries, taken, reading=reading, size=size, files=len(files), memory=memory)


def append_bare(descriptor: int, line: bytes) -> None:
    """Append a line and wait until the disk has it."""
    os.write(descriptor, line)
    os.fsync(descriptor)


def read_bare(files: Sequence[Path]) -> float:
    """Return the seconds that reading all of these files takes."""
    start = time.perf_counter()
    for path in files:
        path.read_bytes()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
