"""What writing costs, as ratios to what can't be less, in one run.

    python benchmarks/writes.py [--lines 20000] [--messages 20000] [--window 2000] [--adds 300] [--bulk 2000]
        [--roots 100] [--write]

A day of so many entries is changed by `forget`, `pin` and `undo`; the peer reads, compresses and durably replaces that
one file. A session of so many messages is opened and continued, in processes of its own. Adds have an append with
fsync and a commit as their peer. Messages are ingested in sessions of 20. So many roots with a user each are open and
idle. Times are medians of the processor time of all threads, which a busy machine lengthens little, and of the wall
clock. `--write` writes `docs/benchmarks/writes.md` and its numbers.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import anyio

from index_speed import SCOPE, Figures, bare_add, bullet, entries, timed
from ricordo import HarnessAgent, Memory, MemoryConfig, Scope
from ricordo.messages import Message, Text
from ricordo.runtime import Settings
from ricordo.storage.contract import compute_version
from ricordo.storage.disk import Disk, replace_version, temporary_path
from ricordo.testing import Say, ScriptedModel

__all__ = ["main"]

DAY = datetime(2025, 3, 1, tzinfo=UTC)
PER_SESSION = 20
ROUNDS = 5


def main() -> None:
    """Measure everything, or one part in this process, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=20_000)
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--window", type=int, default=2_000)
    parser.add_argument("--adds", type=int, default=300)
    parser.add_argument("--bulk", type=int, default=2_000)
    parser.add_argument("--roots", type=int, default=100)
    parser.add_argument("--part", choices=[*PARTS], help="measure only this part, and print its figures")
    parser.add_argument("--write", action="store_true", help="write the page and its numbers")
    given = parser.parse_args()
    if given.part:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(anyio.run(PARTS[given.part], Path(folder), given)))
        return
    figures: Figures = {}
    options = [f"--{name}={getattr(given, name)}" for name in SIZES]
    for part in PARTS:
        command = [sys.executable, __file__, *options, f"--part={part}"]
        figures |= json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    for name, value in figures.items():
        print(f"{name:40} {value:12.3f}")
    if given.write:
        sizes = {name: getattr(given, name) for name in SIZES}
        load = f"at a load of {os.getloadavg()[1]:.0f}"
        machine = f"Linux with Python {platform.python_version()} and {os.cpu_count()} cores, {load}"
        numbers = {"sizes": sizes, "machine": machine, "figures": figures}
        PAGE.with_suffix(".json").write_text(json.dumps(numbers, indent=1) + "\n", "utf-8")
        PAGE.write_text(render_page(sizes, figures, machine), "utf-8")


def render_page(sizes: Mapping[str, int], figures: Figures, machine: str) -> str:
    """Return the page: what each act costs, what the same change costs without Ricordo, and the aim."""
    rows = []
    for act, name, limit, aim in ROWS:
        cost, bare = figures[f"{name} cpu ms"], figures.get(f"{limit} cpu ms")
        beside = f"{bare:.2f} | {cost / bare:.1f}" if bare else " | "
        rows.append(f"| {act.format(**sizes)} | {cost:.2f} | {figures[f'{name} ms']:.2f} | {beside} | {aim} |")
    return "\n".join([
        "# What writing costs", "",
        "Rendered by `python benchmarks/writes.py --write` from the numbers in `writes.json` beside it.", "",
        f"Measured in one run on {machine}. Processor time",
        "is that of all threads; a busy machine lengthens it too, so read the ratios first. The bare limit of a change",
        "reads the day's file, compresses it, durably replaces it, and keeps the compressed one; that of an add",
        "appends to a file with a sync, and commits",
        "to a database. Where an aim is a ratio, it is one to that limit.", "",
        "| act | processor ms | on the clock, ms | bare limit, processor ms | ratio | aim |",
        "| --- | --- | --- | --- | --- | --- |",
        *rows, "",
        f"{sizes['roots']} memories of a user each that are open in one process and idle take "
        f"{figures['idle descriptors']:.0f} descriptors (aim: 150)",
        f"and {figures['idle MB']:.0f} MB (aim: 60).", "",
        "The first turn of a long session makes its window smaller. Its model answers, but writes no usable summary,",
        "so that rules write it: with a summary by the model this turn takes about a third less.", "",
    ])  # fmt: skip


async def measure_changes(folder: Path, given: argparse.Namespace) -> Figures:
    """Return what a change of one entry costs in a day of many, and what can't be less."""
    figures: Figures = {}
    async with Memory.open(folder / "root", scope=SCOPE, settings=settings(folder), embedder="none") as memory:
        ledgers = memory.folder / "workspace" / "memory"
        ledgers.mkdir(parents=True, exist_ok=True)
        day = ledgers / f"{DAY:%Y-%m-%d}.md"
        texts = entries(given.lines)
        blocks = [bullet(text, at, DAY + timedelta(seconds=at)) for at, text in enumerate(texts)]
        day.write_bytes(f"# {DAY:%Y-%m-%d}\n\n".encode() + b"".join(blocks))
        await memory.index()
        await memory.recall("anything")
        ids = [f"01jd{number:022d}" for number in range(0, given.lines, given.lines // (ROUNDS * 2))]
        figures |= await repeat("bare change", [partial(replace_bare, day)] * ROUNDS)
        figures |= await repeat("forget", [partial(memory.forget, name) for name in ids[:ROUNDS]])
        figures |= await repeat("pin", [partial(memory.pin, name) for name in ids[ROUNDS : 2 * ROUNDS]])
        saves = [await memory.remember(f"The lamp {number} is green.") for number in range(ROUNDS)]
        with day.open("ab") as file:
            file.write(b"".join(bullet(save.content, 10**7 + at, DAY) for at, save in enumerate(saves)))
        await memory.index()
        undone = [f"01jd{10**7 + number:022d}" for number in range(ROUNDS)]
        figures |= await repeat("undo", [partial(memory.undo, name) for name in undone])
    return figures


async def replace_bare(path: Path) -> None:
    """Read, compress and durably replace a file, and keep the compressed version durably beside it."""
    disk, before = Disk(), path.read_bytes()  # noqa: ASYNC240 - nothing else runs
    for target, data, version in (
        (path.parent / f"{compute_version(before)}.z", zlib.compress(before), ""),
        (path, before + b"\n", compute_version(before)),
    ):
        temporary = temporary_path(str(target))
        descriptor = disk.make_file(temporary)
        disk.write(descriptor, data)
        disk.sync(descriptor)
        os.close(descriptor)
        replace_version(disk, temporary, str(target), version)
        disk.sync_folder(str(target.parent))


async def measure_long_session(folder: Path, given: argparse.Namespace) -> Figures:
    """Return what opening a long session and the first turns in it cost."""
    said = [conversation_line(number) for number in range(given.messages)]
    async with open_agent(folder) as agent:
        for first in range(0, len(said), 500):
            await agent.record(said[first : first + 500])
    figures: Figures = {}
    agent = open_agent(folder)
    began, cpu = time.perf_counter(), time.process_time()
    async with agent:
        figures["open long ms"] = (time.perf_counter() - began) * 1e3
        figures["open long cpu ms"] = (time.process_time() - cpu) * 1e3
        for name in ("first send", "second send"):
            figures |= await repeat(name, [partial(agent.send, f"And what about crate {name}?")])
    return figures


async def measure_window(folder: Path, given: argparse.Namespace) -> Figures:
    """Return what recording one message at a long window costs."""
    async with open_agent(folder) as agent:
        await agent.record([conversation_line(number) for number in range(given.window)])
        lines = [[conversation_line(given.window + number)] for number in range(50)]
        return await repeat("record", [partial(agent.record, line) for line in lines])


async def measure_adds(folder: Path, given: argparse.Namespace) -> Figures:
    """Return what one add costs beside a bare one, in turn."""
    texts, bare, adds = entries(given.adds), list[tuple[float, float]](), list[tuple[float, float]]()
    async with Memory.open(folder / "root", scope=SCOPE, settings=settings(folder), embedder="none") as memory:
        await memory.remember("The first one opens the files.")
        with bare_add(folder) as add_bare:

            async def add(text: str) -> None:
                add_bare(bullet(text, 1, DAY))

            for text in texts:
                bare.append(await timed(partial(add, text), scale=1e3))
                adds.append(await timed(partial(memory.remember, text), scale=1e3))
        began, cpu = time.perf_counter(), time.process_time()
        await memory.remember_many([f"{text} again" for text in texts])
        many = (time.perf_counter() - began) * 1e3, (time.process_time() - cpu) * 1e3
    return middle("bare add", bare) | middle("add", adds) | middle("add of many", [tuple(x / len(texts) for x in many)])


async def measure_ingest(folder: Path, given: argparse.Namespace) -> Figures:
    """Return what a message costs in bulk: recorded and searchable by words, and then with learning."""
    figures: Figures = {}
    sessions = [
        [conversation_line(number + at) for at in range(PER_SESSION)] for number in range(0, given.bulk, PER_SESSION)
    ]
    async with Memory.open(
        folder / "root", scope=SCOPE, settings=settings(folder), embedder="none", background=False
    ) as memory:
        began, cpu = time.perf_counter(), time.process_time()
        for number, messages in enumerate(sessions):
            await memory.ingest(messages, session=f"s{number}")
        await memory.index()
        figures["ingest ms"] = (time.perf_counter() - began) * 1e3 / given.bulk
        figures["ingest cpu ms"] = (time.process_time() - cpu) * 1e3 / given.bulk
        await memory.drain(seconds=3600)
        figures["ingest and learn ms"] = (time.perf_counter() - began) * 1e3 / given.bulk
        figures["ingest and learn cpu ms"] = (time.process_time() - cpu) * 1e3 / given.bulk
    return figures


async def measure_idle(folder: Path, given: argparse.Namespace) -> Figures:
    """Return the descriptors and the memory of many open roots that do nothing."""
    from contextlib import AsyncExitStack

    async def open_root(stack: AsyncExitStack, number: int) -> None:
        scope = Scope(user=f"u{number}", project="p")
        memory = await stack.enter_async_context(
            Memory.open(folder / f"r{number}", scope=scope, settings=settings(folder), embedder="none")
        )
        await memory.remember(f"The lamp of {number} is green.")
        await memory.recall("Which lamp is green?")

    async with AsyncExitStack() as stack:
        await open_root(stack, 0)
        before = usage()
        for number in range(1, given.roots + 1):
            await open_root(stack, number)
        await anyio.sleep(3)
        after = usage()
    return {"idle descriptors": after[0] - before[0], "idle MB": after[1] - before[1]}


def usage() -> tuple[float, float]:
    """Return the open descriptors and the resident memory of this process, in MB; Linux tells them."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return len(list(Path("/proc/self/fd").iterdir())), pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def open_agent(folder: Path) -> HarnessAgent:
    """Return an agent in the session that is measured, which learns nothing."""
    return HarnessAgent.with_recommended_settings(
        ScriptedModel(lambda _: Say("Noted.")),
        memory=MemoryConfig(root=folder / ".ricordo", hooks=False),
        scope=SCOPE,
        session="s",
        settings=settings(folder),
    )


def conversation_line(number: int) -> Message:
    """Return one message of a made-up conversation."""
    text = f"Crate {number} stands on shelf {number % 17} of hall {number % 5}, and Ben moved it on day {number % 28}."
    return Message(
        role="assistant" if number % 2 else "user", parts=(Text(text=text),), time=DAY + timedelta(seconds=number)
    )


async def repeat(name: str, acts: Sequence[Callable[[], Awaitable[object]]]) -> Figures:
    """Return the medians of some acts."""
    return middle(name, [await timed(act, scale=1e3) for act in acts])


def middle(name: str, moments: Sequence[tuple[float, ...]]) -> Figures:
    """Return the medians by the wall clock and in this process."""
    walls, cpus = zip(*moments, strict=True)
    return {f"{name} ms": statistics.median(walls), f"{name} cpu ms": statistics.median(cpus)}


def settings(folder: Path) -> Settings:
    """Return settings that share nothing with the machine's own."""
    return Settings(root=None, user="me", data=folder / "data", cache=folder / "cache")


PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "writes.md"
ROWS = (
    ("`forget` in a day of {lines:,} memories", "forget", "bare change", "3 ×"),
    ("`pin` there", "pin", "bare change", "3 ×"),
    ("`undo` of a save there", "undo", "bare change", "3 ×"),
    ("`remember`", "add", "bare add", "2 ×"),
    ("`remember_many`, a memory of {adds:,}", "add of many", "bare add", ""),
    ("opening a session of {messages:,} messages", "open long", "", ""),
    ("the first `send` there", "first send", "", "500 ms"),
    ("the second", "second send", "", ""),
    ("`record` of one message, at a window of {window:,}", "record", "", "5 ms"),
    ("`ingest` of {bulk:,} messages, with learning, a message", "ingest and learn", "", "2.5 ms"),
)
"""What an act is called, its figure, the figure of its limit, and the aim."""
SIZES = ("lines", "messages", "window", "adds", "bulk", "roots")
PARTS = {
    "changes": measure_changes,
    "session": measure_long_session,
    "window": measure_window,
    "adds": measure_adds,
    "ingest": measure_ingest,
    "idle": measure_idle,
}

if __name__ == "__main__":
    main()
