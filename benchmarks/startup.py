"""Start-up: importing the package and asking for help, as ratios to what nobody can avoid, in one run.

    python benchmarks/startup.py [--rounds 15]

Bare Python is the peer of `import ricordo`, importing the command-line library the peer of `ricordo --help`, and
the parts of the standard library that any store needs (asyncio, sqlite3, json, re) the peer of loading `Memory`.
Medians of interleaved rounds.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from importlib import metadata

from packaging.requirements import Requirement

__all__ = ["main"]

COMMANDS = {
    "bare Python": ["-c", "pass"],
    "import ricordo": ["-c", "import ricordo"],
    "asyncio, sqlite3, json, re": ["-c", "import asyncio, sqlite3, json, re"],
    "from ricordo import Memory": ["-c", "from ricordo import Memory"],
    "import typer": ["-c", "import typer"],
    "ricordo --help": ["-m", "ricordo", "--help"],
}
PEERS = {
    "import ricordo": "bare Python",
    "from ricordo import Memory": "asyncio, sqlite3, json, re",
    "ricordo --help": "import typer",
}


def main() -> None:
    """Print the medians, the ratios, and how many packages the core needs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=15, help="how often each command is run")
    rounds = parser.parse_args().rounds
    medians = measured(rounds)
    for name, seconds in medians.items():
        peer = PEERS.get(name)
        ratio = f"  {seconds / medians[peer]:.2f} x {peer}" if peer else ""
        print(f"{name:28} {seconds * 1000:7.1f} ms{ratio}")
    direct, resolved = core_packages()
    print(f"core packages: {len(direct)} direct ({', '.join(sorted(direct))}), {len(resolved)} resolved")


def measured(rounds: int) -> dict[str, float]:
    """Return the median seconds of each command, all run in turn so that noise hits them alike."""
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": ""}
    for _ in range(rounds):
        for name, arguments in COMMANDS.items():
            began = time.perf_counter()
            subprocess.run([sys.executable, *arguments], check=True, capture_output=True, env=environment)
            times[name].append(time.perf_counter() - began)
    return {name: statistics.median(values) for name, values in times.items()}


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
