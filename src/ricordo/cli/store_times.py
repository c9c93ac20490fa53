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

from ricordo.cli.context import Target, run_async
from ricordo.cli.render import bold, escape
from ricordo.cli.store_samples import measure_samples
from ricordo.errors import RicordoError

if TYPE_CHECKING:
    from ricordo.runtime import Settings
    from ricordo.stores.opening import Address

__all__ = ["StoreTimes", "default_addresses", "format_table", "measure_store"]

_TRIES = 5
_OPTIONS = {"vector": "?embedder=hashing"}
"""What a scheme needs to be measured on any machine."""

_COLUMNS = ("save", "recall", "preamble", "reopen")


@dataclass(frozen=True, kw_only=True)
class StoreTimes:
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


def default_addresses() -> "list[Address]":
    """Return an address for each of Ricordo's own stores that keeps something, `layered` first."""
    from ricordo.stores.opening import SCHEMES, parse_address

    kept = [scheme for scheme in SCHEMES if scheme not in {"none", "layered", "fanout"}]
    return [parse_address(f"{scheme}:{_OPTIONS.get(scheme, '')}") for scheme in ("layered", *kept)]


def measure_store(address: "Address", entries: int, target: Target) -> StoreTimes:
    """Measure one store with so many entries; one that can't be opened says why."""
    name = address.scheme if not address.place else str(address)
    with tempfile.TemporaryDirectory(prefix=".ricordo-bench-", dir=_nearest_folder(address)) as folder:
        settings = replace(target.settings, data=Path(folder) / "data", index=None, consolidation=None)
        there = str(_relocate_address(address, Path(folder)))
        try:
            return run_async(lambda: _measure_address(name, there, entries, settings))
        except RicordoError as error:
            return StoreTimes(name=name, trouble=str(error))


async def _measure_address(name: str, address: str, entries: int, settings: "Settings") -> StoreTimes:
    taken = await measure_samples(address, settings, entries=entries, saves=0, tries=_TRIES)
    return StoreTimes(
        name=name,
        save=statistics.fmean(taken.fill),
        recall=statistics.median(chain.from_iterable(taken.recalls.values())),
        preamble=statistics.median(taken.preambles),
        reopen=statistics.median(taken.reopenings),
    )


def format_table(measured: Sequence[StoreTimes], entries: int) -> list[str]:
    """Return the lines of a table: milliseconds, and how many times those of the first store that is."""
    width = max(len("store"), *(len(escape(each.name)) for each in measured))
    head = "  ".join(f"{name:>16}" for name in _COLUMNS)
    lines = [f"{entries:,} memories; milliseconds for one, and times the first", bold(f"{'store':<{width}}  {head}")]
    first = next((each for each in measured if not each.trouble), None)
    for each in measured:
        cells = escape(each.trouble)
        if first and not each.trouble:
            cells = "  ".join(_format_cell(getattr(each, name), getattr(first, name)) for name in _COLUMNS)
        lines.append(f"{escape(each.name):<{width}}  {cells}")
    return lines


def _format_cell(seconds: float, first: float) -> str:
    ratio = f"{seconds / first:.2f}x" if first else ""
    return f"{seconds * 1000:>9.2f} {ratio:>6}"


def _nearest_folder(address: "Address") -> Path | None:
    """Return the nearest folder that exists at or above the place that is named; None for the one of the system."""
    if not address.place or address.scheme == "fanout":
        return None
    from ricordo.runtime.store_folders import expand_home

    place = expand_home(address.place).absolute().parent
    return next((folder for folder in (place, *place.parents) if folder.is_dir()), None)


def _relocate_address(address: "Address", folder: Path) -> "Address":
    """Return the address with every place in it below `folder`."""
    from ricordo.stores.opening import join_addresses, parse_address, split_addresses

    if address.scheme == "fanout":
        inner = [parse_address(each) for each in split_addresses(address.place)]
        return replace(
            address,
            place=join_addresses(
                [str(_relocate_address(each, folder / str(number))) for number, each in enumerate(inner)]
            ),
        )
    return address if address.scheme in {"none", "ring", "mock"} else replace(address, place=str(folder / "store"))
