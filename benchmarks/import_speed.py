"""How long an import takes, what it costs, and how much memory it needs, on a history that is made with a seed.

    python benchmarks/import_speed.py [--sizes 2000,20000] [--kilobytes 5] [--steps plan,import] [--write]
    python benchmarks/import_speed.py --make DIR --sizes 200000

The history is that of a coding agent: sessions of about a hundred messages, with tool calls and their results, of which
most of the bytes are, and people who decide, correct and prefer something now and then. Each step is a process of its
own through the public API; its processor time and its highest memory are those that the system counts. `--write` writes
`docs/benchmarks/import.md` from these sizes and from those that were measured before, `--make` only makes the history.
"""

import argparse
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "import.md"
NUMBERS = PAGE.with_suffix(".json")
SESSION_MESSAGES = 100
STEPS = ("plan", "import", "again", "question", "undo")
_PEOPLE = """
Nadia Paul Ines Tomas Wei Aisha Lena Marco Yuki Omar Clara Jonas Priya Mateo Sofia Ravi
"""
_THINGS = """
staging database, billing service, search index, export job, login page, mobile app, invoice template,
warehouse feed, mail queue, price list, image cache, payment gateway, audit log, release script, test
fixtures, feature flags, translation files, backup server
"""
_WORDS = """
build cache branch client column commit config cursor deploy draft engine entry error event field file filter
frame graph handler header index input item job key label layer limit line list lock log map merge method
model module name node object offset option order output page parser path plan pool port query queue range
record region report request result role root route row rule run schema scope script search server session
shard sheet signal size slot source stack state step store stream table task test thread time token topic
trace tree type unit user value vector version view widget window worker write zone
"""
PEOPLE, WORDS = _PEOPLE.split(), _WORDS.split()
THINGS = [" ".join(thing.split()) for thing in _THINGS.split(",")]
STATEMENTS = (
    "We decided to keep the {thing} on port {number}.",
    "{name} owns the {thing}.",
    "I prefer {word} over {other} for the {thing}.",
    "The {thing} runs in region {number}, please remember that.",
    "No, the {thing} has a limit of {number} rows, not {less}.",
    "Always ask {name} before the {thing} is changed.",
    "From now on the {thing} is deployed on day {day} of the month.",
    "The password rotation of the {thing} is done by {name}.",
)
REQUESTS = (
    "Fix the {word} in the {thing}.", "Why does the {word} of the {thing} fail?",
    "Add a test for the {word} {other}.", "Can you look at the {thing} again?",
    "Rename {word} to {other}, and run the tests.", "Go on.", "Thanks, that works.",
)  # fmt: skip
REPLIES = (
    "I changed the {word} and the {other}; all tests pass.", "The {thing} fails since its {word} is missing.",
    "I will look at the {word} first.", "Done: the {thing} has its {word} now, and {other} is gone.",
)  # fmt: skip
QUESTION = "Who owns the staging database?"


def make_history(folder: Path, messages: int, *, kilobytes: int, seed: int) -> int:
    """Write transcripts of Claude Code with so many messages below `folder`, and return their bytes."""
    chance, written, size = random.Random(seed), 0, 0
    folder.mkdir(parents=True, exist_ok=True)
    while written < messages:
        session = f"{chance.getrandbits(64):016x}"
        count = min(chance.randint(SESSION_MESSAGES // 2, SESSION_MESSAGES * 3 // 2), messages - written)
        start = datetime(2025, 1, 6, 9, tzinfo=UTC) + timedelta(minutes=3 * written)
        with (folder / f"{session}.jsonl").open("w", encoding="utf-8") as file:
            for row in _iterate_rows(chance, session, start, count, kilobytes):
                size += file.write(json.dumps(row, separators=(",", ":")) + "\n")
        written += count
    return size


def _iterate_rows(
    chance: random.Random, session: str, start: datetime, count: int, kilobytes: int
) -> Iterator[dict[str, Any]]:
    for number in range(count):
        role, content = _make_message(chance, number, kilobytes)
        yield {
            "type": role, "uuid": f"{session}-{number}", "parentUuid": f"{session}-{number - 1}" if number else None,
            "sessionId": session, "cwd": "/home/me/shop", "isSidechain": False, "version": "2.1.330",
            "timestamp": (start + timedelta(seconds=20 * number)).isoformat().replace("+00:00", "Z"),
            "message": {"role": role, "content": content, "id": f"msg_{session}_{number}"},
        }  # fmt: skip


def _make_message(chance: random.Random, number: int, kilobytes: int) -> tuple[str, Any]:
    """Return the message at a place: a person asks, the assistant calls a tool, it answers, the assistant tells."""
    place = number % 6
    if place == 0:
        return "user", _fill(chance, chance.choice(STATEMENTS if chance.random() < 0.3 else REQUESTS))
    if place in {1, 3}:
        call = {"type": "tool_use", "id": f"call_{number}", "name": "Bash", "input": {"command": _prose(chance, 12)}}
        return "assistant", [{"type": "text", "text": _fill(chance, REPLIES[2])}, call]
    if place in {2, 4}:
        lines = "\n".join(_prose(chance, 12) for _ in range(chance.randint(1, 2 * 3 * kilobytes * 1024 // 80)))
        return "user", [{"type": "tool_result", "tool_use_id": f"call_{number - 1}", "content": lines}]
    return "assistant", [{"type": "text", "text": " ".join(_fill(chance, each) for each in chance.sample(REPLIES, 2))}]


def _fill(chance: random.Random, text: str) -> str:
    number = chance.randint(1_000, 9_999)
    word, other = chance.sample(WORDS, 2)
    return text.format(
        thing=chance.choice(THINGS), name=chance.choice(PEOPLE), number=number, less=number - 7, word=word,
        other=other, day=chance.randint(1, 28),
    )  # fmt: skip


def _prose(chance: random.Random, count: int) -> str:
    return " ".join(chance.choices(WORDS, k=count))


def run_step(step: str, folder: Path) -> dict[str, Any]:
    """Do one step of an import in this process, and return what it did."""
    import asyncio

    from ricordo import Memory, Scope
    from ricordo.importers import ImportReport, ImportSource, find_sources, import_sources, plan_import

    found = list(find_sources(ImportSource(folder / "history")))
    if step == "plan":
        plan = plan_import(found)
        return {"messages": sum(each.messages for each in plan.formats.values())}

    def open_memory(user: str | None) -> AbstractAsyncContextManager[Memory]:
        return Memory.open(folder / "memory", scope=Scope(user=user or "me", project="shop"))

    async def act() -> dict[str, Any]:
        if step in {"import", "again"}:
            report = ImportReport()
            await import_sources(open_memory, found, report)
            return {"messages": report.read, "new": report.new, "entries": report.learned.total()}
        async with open_memory(None) as memory:
            if step == "undo":
                change = next(each for each in await memory.history() if each.action == "import")
                await memory.undo(change.id)
                return {"left": len(await memory.entries()), "sessions": len(await memory.sessions())}
            return {"answer": (await memory.answer(QUESTION)).text}

    return asyncio.run(act())


def measure_step(step: str, folder: Path) -> dict[str, Any]:
    """Do one step in a process of its own, and return what it did, its seconds, and its highest memory."""
    command = [sys.executable, __file__, "--step", step, "--make", str(folder)]
    environment = {**os.environ, "RICORDO_EMBEDDER": "none", "RICORDO_DATA": str(folder / "data")}
    before = os.times()
    begun = before.elapsed
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as process:
        assert process.stdout is not None
        printed = process.stdout.read()
        process.wait()
    after = os.times()
    if process.returncode:
        raise SystemExit(f"{step} ended with {process.returncode}")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    result: dict[str, Any] = json.loads(printed.splitlines()[-1])
    return {**result, "cpu": round(cpu, 2), "seconds": round(after.elapsed - begun, 2)}


def measure(size: int, *, kilobytes: int, seed: int, steps: Sequence[str]) -> dict[str, Any]:
    """Make a history of `size` messages, and measure the steps on it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        written = make_history(folder / "history", size, kilobytes=kilobytes, seed=seed)
        row: dict[str, Any] = {"messages": size, "megabytes": round(written / 1e6, 1), "steps": {}}
        for step in steps:
            row["steps"][step] = measure_step(step, folder)
            print(f"{size:,} messages, {step}: {row['steps'][step]}", file=sys.stderr)
        kept = sum(path.stat().st_size for path in (folder / "memory").rglob("*") if path.is_file())
        return {**row, "kept_megabytes": round(kept / 1e6, 1)}


def render(rows: list[dict[str, Any]], machine: str) -> str:
    """Return the page."""
    lines = [
        "# Importing a history", "",
        "Rendered by `python benchmarks/import_speed.py --write` from the numbers in `import.json` beside it.", "",
        "The history is made with a seed: sessions of a coding agent of about a hundred messages. A third are calls of",
        "tools, a third what they answered, which is most of the bytes, and a third what a person and the assistant",
        "say.",
        f"Each step is a process of its own, without a model and without an embedder; measured on {machine}.", "",
        "| messages | MB | step | processor ms a message | seconds | highest memory, MB | |",
        "|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    labels = {
        "plan": "`--dry-run`", "import": "import with learning", "again": "the same again",
        "question": "a first question", "undo": "undo",
    }  # fmt: skip
    for row in rows:
        for step, values in row["steps"].items():
            told = ", ".join(
                f"{values[key]:,} {key}" for key in ("new", "entries", "left", "sessions") if key in values
            )
            cost = "" if step == "question" else f"{1_000 * values['cpu'] / row['messages']:.2f}"
            lines.append(
                f"| {row['messages']:,} | {row['megabytes']:,} | {labels[step]} | {cost} | {values['seconds']:,} "
                f"| {values['memory']:,} | {told} |"
            )
    lines += [
        "", "The aims are 2.5 ms of processor time a message with learning, ten minutes for a gigabyte of 200,000",
        f"messages, and 300 MB of memory. The largest history above has {rows[-1]['megabytes']:,} MB.", "",
    ]  # fmt: skip
    return "\n".join(lines)


def main() -> None:
    """Measure, or make a history, or do one step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="2000,20000")
    parser.add_argument("--kilobytes", type=int, default=5, help="about so many for each message")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--make", type=Path)
    parser.add_argument("--steps", default=",".join(STEPS), help="the steps to measure, in this order")
    parser.add_argument("--step", choices=STEPS, help="do one step in this process")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    sizes = [int(each) for each in options.sizes.split(",")]
    if options.step:
        import resource

        result = run_step(options.step, options.make)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1024)
        print(json.dumps({**result, "memory": round(peak)}))
    elif options.make:
        print(make_history(options.make, sizes[0], kilobytes=options.kilobytes, seed=options.seed))
    else:
        steps = options.steps.split(",")
        rows = [measure(size, kilobytes=options.kilobytes, seed=options.seed, steps=steps) for size in sizes]
        machine = (
            f"{platform.system()} with Python {platform.python_version()} and {os.cpu_count()} cores, "
            f"at a load of {os.getloadavg()[0]:.0f}"
        )
        if options.write:
            before = json.loads(NUMBERS.read_text(encoding="utf-8"))["rows"] if NUMBERS.exists() else []
            rows = sorted(
                [*rows, *(row for row in before if row["messages"] not in sizes)], key=lambda row: row["messages"]
            )
            NUMBERS.write_text(json.dumps({"machine": machine, "rows": rows}, indent=1) + "\n", encoding="utf-8")
            PAGE.write_text(render(rows, machine), encoding="utf-8")
        else:
            print(render(rows, machine))


if __name__ == "__main__":
    main()
