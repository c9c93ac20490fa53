"""What keeping the window small saves, and what it loses: `python benchmarks/window.py [PATH] [--quick]`.

One conversation of many turns is held with an agent again and again, each time with another way to keep its window
small. What a person says is taken from PATH, a history in any form that Ricordo imports, else it is made up; tool
traffic and facts, each with an answer that stands nowhere else, are mixed in by a seed. The model is scripted, has a
window of 32,000 tokens, and takes whatever it is sent. Summaries are written by rules, by a model that takes the first
sentence of each message, or by a careful one that takes each sentence and each line with a name and a number.

The first table has for each way the requests and their tokens as the model received them, the largest request, those
larger than the window, the summaries that a model was asked for, and how often each reduction did something. The second
has the share of the facts whose answer stands word for word in the last window, by who said it and in all; in it or the
first five hits of `memory.search`; in it or what `session_search` finds; in it or what `expand` and `read_file`
open of the handles and paths in it, and behind those.

The third is the time of a turn in sessions of different length, turn by turn in each, with summaries by rules. With
`--print-window` a window is shown before and after a summary instead. Nothing of the data is kept.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from random import Random

import anyio

from long_talk.desk import Desk
from long_talk.facts import Fact, planted
from long_talk.lookup import Found, looked_up, told
from long_talk.talk import Turn, remarks, talk
from long_talk.watch import Watch, watched
from long_talk.ways import LADDER, Way, agent, ways
from ricordo import HarnessAgent
from ricordo.importers import read_history
from ricordo.messages import Message, get_mark
from ricordo.messages.tokens import estimate_message

__all__ = ["main"]

SEED = 7
FLAT = 1.5
KINDS = ("user", "tool", "assistant")
MOST_FACTS = 84


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of one way."""

    way: Way
    desk: Desk
    watch: Watch
    found: Sequence[Found]
    seconds: float


def main(given: Sequence[str] | None = None) -> None:
    """Print the tables, or the windows around a summary."""
    asked = options(given)
    facts = planted(asked.facts, Random(SEED))
    turns = talk(texts(asked.path, asked.turns), facts, seed=SEED)
    if asked.print_window:
        anyio.run(show_windows, turns, asked.window)
        return
    chosen = [way for way in ways(asked.window) if not asked.only or way.name in asked.only]
    print(f"{len(turns)} turns, {len(facts)} facts, a window of {asked.window:,} tokens")
    outcomes = [anyio.run(partial(held, way, turns, facts, asked.window)) for way in chosen]
    print_traffic(outcomes)
    print_facts(outcomes)
    if asked.sizes:
        anyio.run(partial(time_turns, turns, asked))


def options(given: Sequence[str] | None) -> argparse.Namespace:
    """Return what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path, nargs="?", help="a history; without one what is said is made up")
    parser.add_argument("--quick", action="store_true", help="50 turns, 20 facts, four ways, short sessions")
    parser.add_argument("--turns", type=int)
    parser.add_argument("--facts", type=int, help=f"how many are planted, at most {MOST_FACTS}")
    parser.add_argument("--window", type=int, default=32_000, help="the model's window in tokens")
    parser.add_argument("--only", nargs="*", help="the ways to compare, by their names")
    parser.add_argument("--sizes", type=int, nargs="*", help="the messages of the sessions that are timed")
    parser.add_argument("--timed", type=int, help="how many turns of each session are timed")
    parser.add_argument("--print-window", action="store_true", help="show a window before and after a summary")
    asked = parser.parse_args(given)
    quick = {"turns": 50, "facts": 20, "sizes": [50, 200], "timed": 10}
    quick |= {"only": ["nothing", "sliding", "summary/rules", "ladder/rules"]}
    whole = {"turns": 500, "facts": 40, "sizes": [100, 1_000, 10_000], "timed": 40, "only": None}
    for name, value in (quick if asked.quick else whole).items():
        if getattr(asked, name) is None:
            setattr(asked, name, value)
    return asked


def texts(path: Path | None, count: int) -> list[str]:
    """Return what a person says in so many turns, from the start again where the history has fewer."""
    if path is None:
        return remarks(count, seed=SEED)
    said = (row.message.text for row in read_history(path, on_problem=lambda *_: None))
    return list(islice(cycle([text for text in said if text.strip()]), count))


async def held(way: Way, turns: Sequence[Turn], facts: Sequence[Fact], window: int) -> Outcome:
    """Hold the conversation in one way, and look the facts up at its end."""
    desk = Desk(window=window)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, watched() as watch:
        async with agent(Path(folder), desk, way) as one:
            for turn in turns:
                await say(one, desk, turn)
            seconds = time.perf_counter() - began
            while await one.drain(seconds=60):
                pass
            found = await looked_up(one, Path(folder, ".ricordo"), facts)
    print(f"{way.name}: {seconds:.0f} s", file=sys.stderr)
    return Outcome(way=way, desk=desk, watch=watch, found=found, seconds=seconds)


async def say(one: HarnessAgent, desk: Desk, turn: Turn) -> None:
    """Carry one turn out."""
    desk.begin(turn)
    await one.send(turn.text)


def print_traffic(outcomes: Sequence[Outcome]) -> None:
    """Print what was sent, and what was done to send less."""
    print(f"\n{'way':18} {'requests':>8} {'tokens sent':>13} {'largest':>9} {'over':>5} {'asked':>5}  reductions")
    for each in outcomes:
        desk, acts = each.desk, each.watch.acts
        asked = len(each.way.writer.requests) if each.way.writer else 0
        done = ", ".join(f"{act} {count}" for act, count in acts.items()) or "-"
        failed = "".join(f", {act} failed {count}" for act, count in each.watch.failed.items())
        print(
            f"{each.way.name:18} {desk.requests:8,} {desk.tokens:13,} {desk.largest:9,} {desk.over:5,} {asked:5}"
            f"  {done}{failed} ({each.seconds:.0f} s)"
        )


def print_facts(outcomes: Sequence[Outcome]) -> None:
    """Print where the answers are found."""
    print(
        f"\n{'way':18} {'user':>6} {'tool':>6} {'assist':>6} {'window':>7} {'+memory':>8} {'+search':>8} {'+expand':>8}"
    )
    for each in outcomes:
        kinds = [share([row for row in each.found if row.fact.where == kind], lambda row: row.window) for kind in KINDS]
        sums = [
            share(each.found, lambda row: row.window),
            share(each.found, lambda row: row.window or row.memory),
            share(each.found, lambda row: row.window or row.search),
            share(each.found, lambda row: row.window or row.expand),
        ]
        told_by = " ".join(f"{value:6.0%}" for value in kinds)
        print(f"{each.way.name:18} {told_by} {' '.join(f'{value:8.0%}' for value in sums)}")


def share(found: Sequence[Found], holds: Callable[[Found], bool]) -> float:
    """Return the share of `found` of which something holds; 0 for none."""
    return statistics.fmean(map(holds, found)) if found else 0.0


async def time_turns(turns: Sequence[Turn], asked: argparse.Namespace) -> None:
    """Print the time of a turn in sessions that have so many messages, one turn in each in turn."""
    sizes, window = asked.sizes, asked.window
    (way,) = (way for way in ways(window) if way.name == LADDER)
    turns = [turn for turn in turns if all(len(call.output) < 100_000 for call in turn.calls)]
    whole: dict[int, list[float]] = {size: [] for size in sizes}
    ladder: dict[int, list[float]] = {size: [] for size in sizes}
    with tempfile.TemporaryDirectory() as folder, watched() as watch:
        async with AsyncExitStack() as stack:
            sessions = {}
            for size in sizes:
                desk = Desk(window=window)
                sessions[size] = await stack.enter_async_context(agent(Path(folder, str(size)), desk, way)), desk
                await grown(*sessions[size], turns, size)
            for turn in islice(cycle(turns), asked.timed):
                for size, (one, desk) in sessions.items():
                    watch.took()
                    began = time.perf_counter()
                    await say(one, desk, turn)
                    whole[size].append(time.perf_counter() - began)
                    ladder[size].append(watch.took())
    print_times(whole, ladder)


async def grown(one: HarnessAgent, desk: Desk, turns: Sequence[Turn], size: int) -> None:
    """Hold the conversation until so many messages were exchanged, and let memory catch up."""
    messages = 0
    for turn in cycle(turns):
        if messages >= size:
            break
        await say(one, desk, turn)
        messages += 2 + 2 * len(turn.calls)
    while await one.drain(seconds=60):
        pass


def print_times(whole: Mapping[int, Sequence[float]], ladder: Mapping[int, Sequence[float]]) -> None:
    """Print what a turn takes by the length of its session, and whether that grows."""
    print(f"\n{'messages':>8} {'ladder mean':>12} {'median':>9} {'turn median':>12} {'ratio':>6} {'of the ladder':>13}")
    least = min(whole)
    for size, seconds in whole.items():
        turn, rungs = statistics.median(seconds), statistics.fmean(ladder[size])
        ratio, own = turn / statistics.median(whole[least]), rungs / statistics.fmean(ladder[least])
        middle = statistics.median(ladder[size])
        print(f"{size:8,} {rungs * 1e3:9.2f} ms {middle * 1e3:6.2f} ms {turn * 1e3:9.2f} ms {ratio:6.2f} {own:13.2f}")
    ratio = statistics.median(whole[max(whole)]) / statistics.median(whole[least])
    print(f"flat, at most {FLAT} times: {'yes' if ratio <= FLAT else 'NO'} ({ratio:.2f})")


async def show_windows(turns: Sequence[Turn], size: int) -> None:
    """Hold the conversation up to the second summary, and print the window before and after it."""
    (way,) = (way for way in ways(size) if way.name == LADDER)
    desk = Desk(window=size)
    with tempfile.TemporaryDirectory() as folder, watched() as watch:
        async with agent(Path(folder), desk, way) as one:
            for turn in turns:
                await say(one, desk, turn)
                if watch.acts["compact"] >= 2:
                    break
    if watch.summed is None:
        print("No summary was made.")
        return
    for name, window in zip(("before", "after"), watch.summed, strict=True):
        print_window(name, window)


def print_window(name: str, window: Sequence[Message]) -> None:
    """Print each message of a window: its tokens, its role, what marks it, and its first line."""
    print(f"\n{name}: {len(window)} messages, {sum(map(estimate_message, window)):,} tokens")
    for message in window:
        records = [key.removeprefix("ricordo.") for key in message.metadata if key.startswith("ricordo.")]
        marks = ",".join(filter(None, (get_mark(message), *records)))
        calls = "".join(f"[{call.name}] " for call in message.tool_calls)
        line = " ".join(f"{calls}{told(message)}".split())
        print(f"{estimate_message(message):7,} {message.role:9} {marks:20.20} {line:.80}")


if __name__ == "__main__":
    main()
