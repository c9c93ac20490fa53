"""A week and a year of memory: `python benchmarks/simulated_year.py [--days 7,365] [--sessions 14,400] [FILE...]`.

Five people live through it on one root with a clock that is turned by hand: sessions of the project's own set of
conversations, of FILEs in a form that `retrieval_sets.py` knows (such as LoCoMo's), and small talk where those do not
suffice. Facts are planted, changed and said again in other words. Every evening it is looked at what has to hold.

Numbers are kept in `year.json` in FOLDER (`--out`, docs/benchmarks), the page beside it is made of them, and the chart,
which needs matplotlib. No text of the FILEs is kept. With `--root FOLDER` the last memory stays there to be looked at.
The exit code is 1 when something did not hold.
"""

import argparse
import json
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import anyio

from retrieval_sets import Json, load, load_own
from simulated.calendar import OWN, SMALL, Calendar, made
from simulated.holding import Day, Watch
from simulated.living import Life
from simulated_page import draw, page

__all__ = ["kinds", "lived", "main"]


def main() -> None:
    """Live through each of the spans, write the page, and tell what did not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--days", default="7,365")
    parser.add_argument("--sessions", default="14,400")
    parser.add_argument("--root", type=Path)
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent.parent / "docs" / "benchmarks")
    given = parser.parse_args()
    haystacks = [*load_own(), *load(given.files)]
    spans: list[Json] = []
    failed = False
    for days, sessions in zip(map(int, given.days.split(",")), map(int, given.sessions.split(",")), strict=True):
        with tempfile.TemporaryDirectory() as folder:
            began, worked = time.perf_counter(), time.process_time()
            where = given.root / str(days) if given.root else Path(folder)
            where.mkdir(parents=True, exist_ok=True)
            calendar = made(haystacks, days=days, sessions=sessions)
            found = anyio.run(partial(lived, calendar, where))
        failed = failed or any(day.faults for day in found)
        took = {"seconds": time.perf_counter() - began, "processor": time.process_time() - worked}
        rows = [day.to_json() for day in found]
        talk = kinds(calendar)
        spans.append({"days": days, "sessions": sessions, "talk": talk, **took, "evenings": rows})
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "year.json").write_text(json.dumps({"spans": spans}, separators=(",", ":")) + "\n", "utf-8")
    (given.out / "year.md").write_text(page(spans), "utf-8")
    if not draw(spans[-1], given.out):
        print("The chart stays as it is: matplotlib is not there.", file=sys.stderr)
    sys.exit(failed)


def kinds(calendar: Calendar) -> dict[str, int]:
    """Return how many sessions are of each kind: had elsewhere, made up as small talk, and with what is planted."""
    names = [visit.session.partition("-")[0] for visits in calendar.visits.values() for visit in visits]
    made_up = {"small talk": names.count(SMALL), "planted": names.count(OWN)}
    return {"conversations": len(names) - sum(made_up.values()), **made_up}


async def lived(calendar: Calendar, folder: Path) -> list[Day]:
    """Return every evening of a life; what does not hold is told as soon as it is seen."""
    life = Life(calendar, folder)
    watch = Watch(life)
    found: list[Day] = []
    told: set[str] = set()
    async for day in life.days():
        found.append(await watch.look(day))
        new = [fault for fault in found[-1].faults if fault not in told]
        told.update(new)
        for fault in new:
            print(f"day {day}: {fault}", file=sys.stderr)
    for failure in life.failed:
        print(failure, file=sys.stderr)
    return found


if __name__ == "__main__":
    main()
