"""What a store takes: saving, recalling, showing its preamble and opening again, in seconds, and as a table.

Invariant: what is measured lies in a folder of its own, which is gone afterwards.
"""

import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ricordo.cli.context import Target, run
from ricordo.cli.render import bold, shown
from ricordo.errors import RicordoError

if TYPE_CHECKING:
    from ricordo.runtime import Settings
    from ricordo.stores import Store
    from ricordo.stores.opening import Address
    from ricordo.workspace.entry import Entry

__all__ = ["Times", "own_addresses", "table", "times_of"]

_TRIES = 5
_OPTIONS = {"vector": "?embedder=hashing"}
"""What a scheme needs to be measured on any machine."""

_SUBJECTS = ("the staging database", "deployments", "test fixtures", "the release notes", "code review", "billing")
_SAID = ("is owned by Nadia", "comes from main only", "lives in tests/data", "waits for Friday", "needs two people")
_QUESTIONS = ("staging database", "Friday", "tag7")
_COLUMNS = ("save", "recall", "preamble", "reopen")


@dataclass(frozen=True, kw_only=True)
class Times:
    """Seconds that one memory takes to save, one question, one preamble and one opening; the middle of several tries.

    `trouble` says why a store could not be measured, and is empty else.
    """

    name: str
    save: float = 0.0
    recall: float = 0.0
    preamble: float = 0.0
    reopen: float = 0.0
    trouble: str = ""


def own_addresses() -> "list[Address]":
    """Return an address for each of Ricordo's own stores that keeps something, `layered` first."""
    from ricordo.stores.opening import SCHEMES, parse_address

    kept = [scheme for scheme in SCHEMES if scheme not in {"none", "layered", "fanout"}]
    return [parse_address(f"{scheme}:{_OPTIONS.get(scheme, '')}") for scheme in ("layered", *kept)]


def times_of(address: "Address", entries: int, target: Target) -> Times:
    """Measure one store with so many entries; one that can't be opened says why."""
    name = address.scheme if not address.place else str(address)
    with tempfile.TemporaryDirectory(prefix=".ricordo-bench-", dir=_beside(address)) as folder:
        settings = replace(target.settings, data=Path(folder) / "data", index=None, consolidation=None)
        there = str(_moved(address, Path(folder)))
        try:
            return run(lambda: _measured(name, there, entries, settings))
        except RicordoError as error:
            return Times(name=name, trouble=str(error))


async def _measured(name: str, address: str, entries: int, settings: "Settings") -> Times:
    from ricordo.runtime.stores import open_store
    from ricordo.scopes import Scope

    scope = Scope(user="bench", project="bench")
    async with open_store(address, scope=scope, settings=settings) as store:
        start = time.perf_counter()
        for number in range(entries):
            await store.save(_entry(number))
        save = (time.perf_counter() - start) / entries
    reopen = []
    for _ in range(_TRIES):
        start = time.perf_counter()
        async with open_store(address, scope=scope, settings=settings) as store:
            reopen.append(time.perf_counter() - start)
            recall = await _middle(lambda: _asked(store)) / len(_QUESTIONS)
            preamble = await _middle(store.preamble)
    return Times(name=name, save=save, recall=recall, preamble=preamble, reopen=statistics.median(reopen))


def table(measured: Sequence[Times], entries: int) -> list[str]:
    """Return the lines of a table: milliseconds, and how many times those of the first store that is."""
    width = max(len("store"), *(len(shown(each.name)) for each in measured))
    head = "  ".join(f"{name:>16}" for name in _COLUMNS)
    lines = [f"{entries:,} memories; milliseconds for one, and times the first", bold(f"{'store':<{width}}  {head}")]
    first = next((each for each in measured if not each.trouble), None)
    for each in measured:
        cells = shown(each.trouble)
        if first and not each.trouble:
            cells = "  ".join(_cell(getattr(each, name), getattr(first, name)) for name in _COLUMNS)
        lines.append(f"{shown(each.name):<{width}}  {cells}")
    return lines


def _cell(seconds: float, first: float) -> str:
    ratio = f"{seconds / first:.2f}x" if first else ""
    return f"{seconds * 1000:>9.2f} {ratio:>6}"


def _beside(address: "Address") -> Path | None:
    """Return the nearest folder that exists at or above the place that is named; None for the one of the system."""
    if not address.place or address.scheme == "fanout":
        return None
    place = Path(address.place).expanduser().absolute().parent
    return next((folder for folder in (place, *place.parents) if folder.is_dir()), None)


def _moved(address: "Address", folder: Path) -> "Address":
    """Return the address with every place in it below `folder`."""
    from ricordo.stores.opening import joined, parse_address, several

    if address.scheme == "fanout":
        inner = [parse_address(each) for each in several(address.place)]
        return replace(
            address, place=joined([str(_moved(each, folder / str(number))) for number, each in enumerate(inner)])
        )
    return address if address.scheme in {"none", "ring", "mock"} else replace(address, place=str(folder / "store"))


def _entry(number: int) -> "Entry":
    from ricordo.workspace.entry import Entry

    subject, said = _SUBJECTS[number % len(_SUBJECTS)], _SAID[number // len(_SUBJECTS) % len(_SAID)]
    kind = ("fact", "decision", "preference")[number % 3]
    return Entry(content=f"Number {number}: {subject} {said}.", kind=kind, tags=(f"tag{number % 50}",))


async def _asked(store: "Store") -> object:
    return [await store.recall(query, 5) for query in _QUESTIONS]


async def _middle(work: Callable[[], Awaitable[object]]) -> float:
    """Return the middle of the seconds that several runs took."""
    seconds = []
    for _ in range(_TRIES):
        start = time.perf_counter()
        await work()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)
