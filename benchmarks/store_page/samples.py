"""Measures what a store takes to save, recall, show its preamble and open again.

Invariant: every save goes through the public `Store.save`, and is durable when its time is taken, except those that
fill the store through a disk that does not wait.
"""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from ricordo.runtime import Settings
    from ricordo.storage.disk import Disk
    from ricordo.stores import Store
    from ricordo.workspace.entry import Entry

__all__ = [
    "SAMPLE_QUERIES",
    "Samples",
    "make_sample_entry",
    "measure_samples",
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
