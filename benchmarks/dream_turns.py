"""What a dream costs the turns beside it: `python benchmarks/dream_turns.py [--entries 1000] [--rounds 6]`.

One process, one root with so many curated memories, a scripted model in this process. In each round some turns are
taken while nothing else runs, and then, with a pause between them as of somebody who types, as many as there is time
for while all of curated memory is decided about anew. Told is the latency of the latter over that of the former,
taken in turn so that noise hits them alike: as it is, and as it were if the dream gave no way to turns.
"""

import argparse
import random
import statistics
import tempfile
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import anyio

from ricordo import FlushConfig, HarnessAgent, Memory, Scope
from ricordo.concurrency import NoYield
from ricordo.curation.config import ConsolidationConfig
from ricordo.jobs import turn_activity as turns
from ricordo.runtime import Settings
from ricordo.testing import Say, ScriptedModel
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import render_entry

__all__ = ["main"]

SCOPE = Scope(project="shop")
STILL = 12
TYPING = 0.1
SYLLABLES = "bra kle mon tir vos pel gru dan sif har wek lom quin zor fey jab".split()  # noqa: SIM905
ENDINGS = "der nal tik mos rup lin gat ver sol pid".split()  # noqa: SIM905
WORDS = [begin + end for begin in SYLLABLES for end in ENDINGS]


def main() -> None:
    """Measure both ways and print them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--entries", type=int, default=1_000, help="how many memories are curated")
    parser.add_argument("--rounds", type=int, default=6, help="how many dreams there are, each way")
    given = parser.parse_args()
    courteous = turns.TurnActivity.yield_policy
    for name, courtesy in (("giving way", courteous), ("without", lambda _: NoYield())):
        turns.TurnActivity.yield_policy = courtesy  # type: ignore[assignment, method-assign]
        with tempfile.TemporaryDirectory() as folder:
            anyio.run(partial(measured, name, Path(folder), given.entries, given.rounds))


async def measured(name: str, folder: Path, entries: int, rounds: int) -> None:
    """Take the turns of all rounds and print what they took."""
    root = folder / ".ricordo"
    settings = Settings(
        root=None, user="me", data=folder / "data", cache=folder / "cache",
        flush=FlushConfig(model="offline"), consolidation=ConsolidationConfig(model="offline"),
    )  # fmt: skip
    async with Memory.open(root, scope=SCOPE, settings=settings) as memory:
        await memory.remember("We deploy only from main.")
    (root / "workspace/memory/2026-01-01.md").write_text(ledger(entries), encoding="utf-8")
    still: list[float] = []
    busy: list[float] = []
    dreams: list[float] = []
    agent = HarnessAgent(
        ScriptedModel(lambda _: Say("Noted.")), memory=root, scope=SCOPE, session="s", settings=settings
    )
    async with agent:
        await agent.consolidate()
        for number in range(5):
            await took(agent, number)
        for number in range(rounds):
            for each in range(STILL):
                still.append(await took(agent, each))
                await anyio.sleep(TYPING)
            dreams.append(await dreamt(agent, busy, number))
    print(f"{name}: {len(still)} turns alone, {len(busy)} beside {rounds} dreams of {statistics.median(dreams):.1f} s")
    figures = {
        "median": (statistics.median(still), statistics.median(busy)),
        "95th percentile": (at_95(still), at_95(busy)),
    }
    for told, (alone, beside) in figures.items():
        print(f"  {told}: {alone * 1000:.1f} ms alone, {beside * 1000:.1f} ms beside a dream: {beside / alone:.2f} x")


async def dreamt(agent: HarnessAgent, busy: list[float], number: int) -> float:
    """Dream once, take turns meanwhile, and return the seconds of the dream."""
    began = time.perf_counter()
    ended = anyio.Event()

    async def dream() -> None:
        await agent.consolidate(deep=True)
        ended.set()

    async with anyio.create_task_group() as group:
        group.start_soon(dream)
        await anyio.sleep(TYPING)
        while not ended.is_set():
            busy.append(await took(agent, number))
            await anyio.sleep(TYPING)
    return time.perf_counter() - began


async def took(agent: HarnessAgent, number: int) -> float:
    """Return the seconds of one turn."""
    began = time.perf_counter()
    await agent.send(f"Please look at order {number}.")
    return time.perf_counter() - began


def at_95(seconds: list[float]) -> float:
    """Return the time within which 95 of 100 turns end."""
    return sorted(seconds)[int(len(seconds) * 0.95)]


def ledger(entries: int) -> str:
    """Return a ledger of so many different memories."""
    picked, began = random.Random(1), datetime(2026, 1, 1, tzinfo=UTC)
    word = partial(picked.choice, WORDS)
    made = [
        Entry(
            content=f"The {word()} {word()} of {word().title()} {word()} the {word()} with {word()} {number}.",
            id=f"0{number:025d}",
            kind=picked.choice(["fact", "decision", "preference", "convention", "lesson", "goal"]),
            by="flush",
            confidence=0.9,
            time=began + timedelta(minutes=number),
        )
        for number in range(entries)
    ]
    return "# 2026-01-01\n\n" + "".join(map(render_entry, made))


if __name__ == "__main__":
    main()
