"""What a turn costs beside others: `python benchmarks/contention.py [--sends 40] [--writers 6]`.

Two agents, each in a process of its own, take turns in one session while writers, also processes, remember one fact
after the other in the same root. Told are the wall clock of a `send` of one agent alone, of the two agents, and of the
two beside the writers, as median, 95th percentile and longest, and the share of the sends that each agent got done
while both ran. The ratio of the medians is what waiting for each other and sharing the processors costs; `processors`
is the same number of sends beside writers that only compute, which is what sharing the processors costs alone.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from itertools import count
from pathlib import Path

import anyio

from ricordo import HarnessAgent, Memory, Scope
from ricordo.runtime import Settings
from ricordo.testing import Say, ScriptedModel

__all__ = ["main"]

SCOPE = Scope(user="me", project="shop")
WARM_UP_SENDS = 5
PERCENTILE = 0.95


def main() -> None:
    """Run the four situations, or one process of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sends", type=int, default=40, help="how many turns each agent takes")
    parser.add_argument("--writers", type=int, default=6, help="how many processes write meanwhile")
    parser.add_argument("--role", choices=["agent", "writer", "busy"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    match options.role:
        case "agent":
            anyio.run(partial(take_turns, options.folder, options.sends))
        case "writer":
            anyio.run(partial(write, options.folder))
        case "busy":
            for _ in count():
                pass
        case _:
            compare(options.sends, options.writers)


def compare(sends: int, writers: int) -> None:
    """Print the times of a turn in each situation."""
    alone = run(sends, agents=1, others=[])
    median = statistics.median(alone[0])
    for name, times in (
        ("one agent alone", alone),
        ("two agents", run(sends, agents=2, others=[])),
        (f"two agents, {writers} processors", run(sends, agents=2, others=["busy"] * writers)),
        (f"two agents, {writers} writers", run(sends, agents=2, others=["writer"] * writers)),
    ):
        print(f"{name:28}" + "  ".join(describe(each, median) for each in times), flush=True)


def describe(times: Sequence[float], median: float) -> str:
    """Return the figures of the turns of one agent."""
    ranked = sorted(times)
    late = ranked[int(len(ranked) * PERCENTILE)]
    middle = statistics.median(ranked)
    return f"p50 {middle * 1000:6.0f} p95 {late * 1000:6.0f} max {ranked[-1] * 1000:6.0f} ms ({middle / median:4.1f} x)"


def run(sends: int, *, agents: int, others: Sequence[str]) -> list[list[float]]:
    """Return the seconds of the turns of each agent beside the `others`."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--folder", folder, "--sends", str(sends), "--role"]
        beside = [subprocess.Popen([*command, role]) for role in others]
        try:
            if others:
                time.sleep(5)  # until each of them has begun
            running = [subprocess.Popen([*command, "agent"], stdout=subprocess.PIPE) for _ in range(agents)]
            return [json.loads(process.communicate()[0]) for process in running]
        finally:
            for process in beside:
                process.kill()
                process.wait()


async def take_turns(folder: Path, sends: int) -> None:
    """Print the seconds of each turn of one agent as JSON."""
    agent = HarnessAgent.with_recommended_settings(
        ScriptedModel(lambda _: Say("Noted.")),
        memory=folder / ".ricordo",
        scope=SCOPE,
        session="s",
        settings=settings(folder),
    )
    times = []
    async with agent:
        for number in range(sends + WARM_UP_SENDS):
            began = time.perf_counter()
            await agent.send(f"Service {number} is deployed on day {number % 28 + 1}.")
            times.append(time.perf_counter() - began)
    print(json.dumps(times[WARM_UP_SENDS:]))


async def write(folder: Path) -> None:
    """Remember one fact after the other until the process is killed."""
    async with Memory.open(folder / ".ricordo", scope=SCOPE, settings=settings(folder)) as memory:
        for number in count():
            await memory.remember(f"Machine {number} of writer {folder.name} has {number % 64 + 1} cores.")


def settings(folder: Path) -> Settings:
    """Return settings that share nothing with the machine's own."""
    return Settings(root=None, user="me", data=folder / "data", cache=folder / "cache")


if __name__ == "__main__":
    main()
