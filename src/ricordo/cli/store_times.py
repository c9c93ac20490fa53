"""What a store takes: saving, recalling, showing its preamble and opening again, in seconds, and as a table.

Invariant: what is measured lies in a folder of its own, which is gone afterwards.
"""

import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from ricordo.cli.context import Target, run
from ricordo.cli.render import bold, shown
from ricordo.cli.store_samples import samples_of
from ricordo.errors import RicordoError

if TYPE_CHECKING:
    from ricordo.runtime import Settings
    from ricordo.stores.opening import Address

__all__ = ["Times", "own_addresses", "table", "times_of"]

_TRIES = 5
_OPTIONS = {"vector": "?embedder=hashing"}
"""What a scheme needs to be measured on any machine."""

_COLUMNS = ("save", "recall", "preamble", "reopen")


@dataclass(frozen=True, kw_only=True)
class Times:
    """Seconds that one memory takes to save, the mean of all, and one question, one preamble and one opening with its
    first answer, each the middle of several tries.

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
    taken = await samples_of(address, settings, entries=entries, saves=0, tries=_TRIES)
    return Times(
        name=name,
        save=statistics.fmean(taken.fill),
        recall=statistics.median(chain.from_iterable(taken.recalls.values())),
        preamble=statistics.median(taken.preambles),
        reopen=statistics.median(taken.reopenings),
    )


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
    from ricordo.runtime.store_folders import at_home

    place = at_home(address.place).absolute().parent
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
