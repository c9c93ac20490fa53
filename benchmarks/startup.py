"""Start-up: the processor time of whole processes, as ratios to what they can't avoid importing, in one run.

    python benchmarks/startup.py [--rounds 11] [--entries 10000] [--out FOLDER]

Each process is started anew, with compiled files, in turn with its peers, so that a busy machine hits all alike. What
counts is the time of the user and the system together. The peers are bare Python and Python that imports libraries. The
root holds so many entries; the library is also measured on one that holds none. Numbers are kept in `startup.json` in
FOLDER (docs/benchmarks), and the page beside it is made of them.
"""

import argparse
import compileall
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path

import anyio
from packaging.requirements import Requirement

import ricordo
from index_speed import SCOPE, begin, entries, write_ledgers
from retrieval_sets import Json
from ricordo import Memory

__all__ = ["main"]

_BARE, _LIBRARY, _COMMAND = "bare Python", "sqlite3, numpy, anyio", "sqlite3, numpy, anyio, typer"
_PEERS = {
    _BARE: "pass",
    _LIBRARY: "import sqlite3, numpy, anyio",
    _COMMAND: "import sqlite3, numpy, anyio, typer",
}
_LIBRARY_USE = """
import sys
from pathlib import Path
import anyio
from ricordo import Memory, Scope
async def main():
    scope = Scope(user="me", project="benchmark")
    async with Memory.open(Path(sys.argv[1]), scope=scope, embedder="none") as memory:
        await memory.remember("The service runs in Frankfurt.")
        await memory.recall("Where does the service run?")
        await memory.preamble()
anyio.run(main)
"""
# each process with its peer, and the most that it may take, as a multiple of it
_LIMITS = {
    "ricordo context": (_COMMAND, 1.5),
    "ricordo remember": (_COMMAND, 1.5),
    "ricordo memory list": (_COMMAND, 1.5),
    "ricordo recall": (_COMMAND, 2.25),
    "ricordo --version": (_COMMAND, None),
    "remember, recall, preamble in Python": (_LIBRARY, 2.0),
    "the same, in an empty root": (_LIBRARY, 2.0),
    "import ricordo": (_BARE, None),
}
_HEAD = """# How fast a process starts

Rendered by `python benchmarks/startup.py` from the numbers in `startup.json` beside it. A command of Ricordo is a
process of its own, and so is a hook of an editor, so what counts is the processor time of the whole process: user and
system together, from its start to its end, with everything that it imports. The peer of a command is Python that
imports the libraries a command needs and does nothing; the peer of the library is the same without typer.
Processes and peers run in turn, each {rounds} times, and the table holds medians. The root holds {entries:,} entries;
`recall` searches by words. A *limit* is the ratio that the project wants; where the ratio is above it, that is open.
"""


def main() -> None:
    """Measure all processes, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=11, help="how often each process is started")
    parser.add_argument("--entries", type=int, default=10_000)
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent.parent / "docs" / "benchmarks")
    given = parser.parse_args()
    compileall.compile_dir(Path(ricordo.__file__).parent, quiet=1)
    with tempfile.TemporaryDirectory() as folder:
        medians = _measure(Path(folder), given.entries, given.rounds)
    direct, resolved = core_packages()
    found = {
        "entries": given.entries, "rounds": given.rounds, "cores": os.cpu_count(), "load": round(os.getloadavg()[0], 2),
        "python": platform.python_version(), "packages": [len(direct), len(resolved)], "seconds": medians,
    }  # fmt: skip
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "startup.json").write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    (given.out / "startup.md").write_text(_page(found), "utf-8")
    print("\n".join(_table(medians)))


def _measure(folder: Path, count: int, rounds: int) -> dict[str, float]:
    """Return the median of the processor time of each process, in seconds; the first round only warms up."""
    places = {"HOME": str(folder / "home"), "RICORDO_DATA": str(folder / "data"), "RICORDO_EMBEDDER": "none"}
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RICORDO_", "PYTHONDONT"))}
    environment = kept | places | {"RICORDO_USER": "me"}
    os.environ.update(places)
    full, empty = folder / "full" / ".ricordo", folder / "empty" / ".ricordo"
    for root, size in ((full, count), (empty, 0)):
        anyio.run(_create_root, root, size)
    times: dict[str, list[float]] = {}
    for number in range(rounds + 1):
        for name, arguments in _list_processes(full, empty, number).items():
            times.setdefault(name, []).append(_run(arguments, full.parent, environment))
    return {name: statistics.median(each[1:]) for name, each in times.items()}


async def _create_root(root: Path, count: int) -> None:
    root.parent.mkdir(parents=True)
    folder = await begin(root)
    if count:
        write_ledgers(folder, entries(count))
    async with Memory.open(root, scope=SCOPE, embedder="none") as memory:
        # the doctor waits until everything is indexed
        await memory.doctor()


def _list_processes(full: Path, empty: Path, number: int) -> dict[str, Sequence[str]]:
    """Return the arguments of each process; what is remembered differs by `number`."""
    command = ["-m", "ricordo"]
    return {
        **{name: ["-c", code] for name, code in _PEERS.items()},
        "ricordo context": [*command, "context"],
        "ricordo remember": [*command, "remember", f"The service number {number} runs in Frankfurt."],
        "ricordo memory list": [*command, "memory", "list"],
        "ricordo recall": [*command, "recall", "Where does the service run?"],
        "ricordo --version": [*command, "--version"],
        "remember, recall, preamble in Python": ["-c", _LIBRARY_USE, str(full)],
        "the same, in an empty root": ["-c", _LIBRARY_USE, str(empty)],
        "import ricordo": ["-c", "import ricordo"],
    }


def _run(arguments: Sequence[str], folder: Path, environment: Mapping[str, str]) -> float:
    """Return the processor time of a process, in seconds. Raises: CalledProcessError if it fails."""
    process = subprocess.Popen(
        [sys.executable, *arguments], cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, arguments)
    return used.ru_utime + used.ru_stime


def _page(found: Mapping[str, Json]) -> str:
    """Return the page as Markdown."""
    direct, resolved = found["packages"]
    busy = " It was busy with other work, so read the ratios." if found["load"] > found["cores"] / 2 else ""
    return "\n".join(
        [
            _HEAD.format(rounds=found["rounds"], entries=found["entries"]),
            f"The machine had {found['cores']} cores, Python {found['python']}, and a load of {found['load']:.2f} when "
            f"this ended.{busy}",
            "",
            *_table(found["seconds"]),
            "",
            f"The base install needs {direct} packages, {resolved} with what they need.",
            "",
            "```sh",
            "python benchmarks/startup.py",
            "```",
            "",
        ]
    )


def _table(medians: Mapping[str, float]) -> list[str]:
    lines = ["| process | ms | times | of | limit |", "|---|--:|--:|---|--:|"]
    lines += [f"| {name} | {medians[name] * 1e3:.0f} | | | |" for name in _PEERS]
    for name, (peer, limit) in _LIMITS.items():
        told = "" if limit is None else f"{limit:g}"
        lines.append(f"| {name} | {medians[name] * 1e3:.0f} | {medians[name] / medians[peer]:.2f} | {peer} | {told} |")
    return lines


def core_packages() -> tuple[set[str], set[str]]:
    """Return the names of the direct and of all packages that the core needs here, extras left out."""
    direct = needed("ricordo")
    resolved: set[str] = set()
    waiting = set(direct)
    while waiting:
        name = waiting.pop()
        resolved.add(name)
        waiting |= needed(name) - resolved
    return direct, resolved


def needed(name: str) -> set[str]:
    """Return what a package requires on this machine without any extra."""
    parsed = map(Requirement, metadata.requires(name) or [])
    return {one.name.lower() for one in parsed if one.marker is None or one.marker.evaluate({"extra": ""})}


if __name__ == "__main__":
    main()
