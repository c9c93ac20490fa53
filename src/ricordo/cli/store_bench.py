"""Measures what a store takes to save, recall, show its preamble and open again; `store bench` prints it as a table.

Invariants: every save goes through the public `Store.save`, and is durable when its time is taken, but for those of a
filling through a disk that does not wait. The command measures in a folder of its own, which is gone afterwards.
"""

import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, cycle
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ricordo.cli.render import bold, escape
from ricordo.cli.target import Target, run_async
from ricordo.errors import RicordoError

if TYPE_CHECKING:
    from ricordo.runtime import Settings
    from ricordo.storage.disk import Disk
    from ricordo.stores import Store
    from ricordo.stores.addresses import Address
    from ricordo.workspace.entry import Entry

__all__ = [
    "SAMPLE_QUERIES",
    "Samples",
    "StoreTimes",
    "default_addresses",
    "format_table",
    "make_sample_entry",
    "measure_samples",
    "measure_store",
]


_T = TypeVar("_T")
SAMPLE_QUERIES: Mapping[str, str] = {
    "common word": "friday",
    "rare word": "zanzibar",
    "two words": "staging nadia",
    "no hit": "quicksilver",
    "empty": "",
}
"""What is asked, by the sort of question."""
_SUBJECTS = ("the staging database", "deployments", "test fixtures", "the release notes", "code review", "billing")
_PREDICATES = (
    "is owned by Nadia",
    "comes from main only",
    "lives in tests/data",
    "waits for Friday",
    "needs two people",
)
_KINDS = ("fact", "decision", "preference")
_SESSION = 100
_RARE_EVERY = 997
_RECALL_LIMIT = 5


@dataclass(frozen=True, kw_only=True)
class Samples:
    """Seconds of each try.

    `fill` has each save from an empty store on, `closings` each session that a store of sessions was given the end of.
    `saves` are those after that, `later` a question right after each of them, and `aside` what was done besides.
    `recalls` has the tries of each sort of question, `preambles` those of the preamble, both in the store that saved,
    and `reopenings` those of opening it anew and asking the first question.
    """

    fill: Sequence[float] = ()
    closings: Sequence[float] = ()
    saves: Sequence[float] = ()
    later: Sequence[float] = ()
    aside: Sequence[float] = ()
    recalls: Mapping[str, Sequence[float]] = field(default_factory=dict)
    preambles: Sequence[float] = ()
    reopenings: Sequence[float] = ()


def make_sample_entry(number: int) -> "Entry":
    """Return a made-up memory; a hundred in a row are of one session, and about one in a thousand has the rare word."""
    from ricordo.workspace.entry import Entry, Source

    subject, said = _SUBJECTS[number % len(_SUBJECTS)], _PREDICATES[number // len(_SUBJECTS) % len(_PREDICATES)]
    rare = " It was moved to Zanzibar." if number % _RARE_EVERY == 1 else ""
    return Entry(
        content=f"Number {number}: {subject} {said}, as was agreed in the meeting of week {number % 52}.{rare}",
        kind=_KINDS[number % len(_KINDS)],
        tags=(f"tag{number % 50}",),
        source=Source(session=f"s{number // _SESSION:05}"),
    )


async def measure_samples(
    address: str,
    settings: "Settings",
    *,
    entries: int,
    saves: int,
    tries: int,
    aside: Callable[[], None] | None = None,
    filling: "Disk | None" = None,
) -> Samples:
    """Fill an empty store with so many memories, then time `saves` more, and `tries` of everything else.

    `aside` is called after each of those saves. `filling` is the disk that is filled through, such as one that does not
    wait for the medium; what is saved later always waits. Raises what `open_store` and the store do.
    """
    from ricordo.runtime.stores import open_store
    from ricordo.scope import Scope

    scope = Scope(user="bench", project="bench")
    async with AsyncExitStack() as stack:
        opened = partial(open_store, address, scope=scope, settings=settings)
        store = await stack.enter_async_context(opened(disk=filling))
        fill, closings = await _fill_store(store, entries)
        if filling:
            await stack.aclose()
            store = await stack.enter_async_context(opened())
            await store.recall("")
        saved = [await _time_save(store, number, aside) for number in range(entries, entries + saves)]
        recalls = {
            sort: [(await _time_call(store.recall(query, _RECALL_LIMIT)))[0] for _ in range(tries)]
            for sort, query in SAMPLE_QUERIES.items()
        }
        preambles = [(await _time_call(store.preamble()))[0] for _ in range(tries)]
    reopenings = []
    for _, query in zip(range(tries), cycle(SAMPLE_QUERIES.values()), strict=False):
        start = time.perf_counter()
        async with opened() as store:
            await store.recall(query, _RECALL_LIMIT)
            reopenings.append(time.perf_counter() - start)
    saving, later, besides = zip(*saved, strict=True) if saved else ((), (), ())
    return Samples(
        fill=fill, closings=closings, saves=saving, later=later, aside=besides, recalls=recalls, preambles=preambles,
        reopenings=reopenings,
    )  # fmt: skip


async def _fill_store(store: "Store", entries: int) -> tuple[list[float], list[float]]:
    """Return the seconds of each save, and of each closing of a session where the store keeps sessions."""
    from ricordo.stores.contract import KeepsSessions, SessionNotes

    keeps, fill, closings = store.offers(KeepsSessions), [], []
    for number in range(entries):
        entry = make_sample_entry(number)
        fill.append((await _time_call(store.save(entry)))[0])
        if keeps and (number + 1) % _SESSION == 0:
            notes = SessionNotes(session=entry.source.session or "", summary=f"Session of number {number}.")
            closings.append((await _time_call(keeps.close_session(notes)))[0])
    return fill, closings


async def _time_save(store: "Store", number: int, aside: Callable[[], None] | None) -> tuple[float, float, float]:
    """Return the seconds of a save, of a question right after it, and of what is done besides."""
    query = [*SAMPLE_QUERIES.values()][number % len(SAMPLE_QUERIES)]
    save, _ = await _time_call(store.save(make_sample_entry(number)))
    later, _ = await _time_call(store.recall(query, _RECALL_LIMIT))
    start = time.perf_counter()
    if aside:
        aside()
    return save, later, time.perf_counter() - start


async def _time_call(work: Awaitable[_T]) -> tuple[float, _T]:
    start = time.perf_counter()
    result = await work
    return time.perf_counter() - start, result


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
    from ricordo.stores.addresses import SCHEMES, parse_address

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
    from ricordo.stores.addresses import join_addresses, parse_address, split_addresses

    if address.scheme == "fanout":
        inner = [parse_address(each) for each in split_addresses(address.place)]
        return replace(
            address,
            place=join_addresses(
                [str(_relocate_address(each, folder / str(number))) for number, each in enumerate(inner)]
            ),
        )
    return address if address.scheme in {"none", "ring", "mock"} else replace(address, place=str(folder / "store"))
