"""Kill a process at a statement or a commit of its index, and tell what the next one answers.

Run as a script: `index_crash_driver.py <scenario> <folder> [<step>...]`. Every case gets a copy of the prepared root; a
forked child works on the index and dies by a signal before one of its steps, a second one opens what is left, asks,
brings the index up to date and asks again, and asks an index that is made anew. Each case is one line of JSON; the
first one was not disturbed.
"""

import json
import os
import shutil
import signal
import sqlite3
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import closing
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

from forking import Emit, drive, in_child
from ricordo.search import Query, segments
from ricordo.search.index import WorkspaceIndex
from ricordo.storage.local import LocalFiles
from ricordo.storage.sqlite import ExclusiveAccess
from ricordo.workspace import INDEX_FILE

_T = TypeVar("_T")

ANIMALS = ("wombat", "quokka", "numbat", "bilby", "dingo")
ASKED = (*ANIMALS, "animal wombat", "lives in b", "17", "")
LEDGER = "workspace/memory/2026-11-21.md"
# what was written a moment ago would be looked at again in any case
LONG_AGO = 1_795_000_000


def topic(root: Path, name: str, lines: range) -> None:
    target = root / "workspace" / "memory" / "topics" / f"{name}.md"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("".join(f"- Animal {number} is a {ANIMALS[number % 5]} in {name}.\n" for number in lines))
    os.utime(target, (LONG_AGO, LONG_AGO))


async def opened(root: Path, name: str = INDEX_FILE) -> WorkspaceIndex:
    return await WorkspaceIndex.open(root / name, LocalFiles(root))


async def refreshed(root: Path) -> None:
    index = await opened(root)
    await index.refresh()
    await index.close()


async def files_alone(root: Path) -> None:
    for name in "abcdef":
        topic(root, name, range(6))


async def files_and_index(root: Path) -> None:
    await files_alone(root)
    await refreshed(root)


async def rebuild(root: Path) -> None:
    await refreshed(root)


async def merge(root: Path) -> None:
    """Add enough to what is in segments that they become one."""
    index = await opened(root)
    block = "".join(f"- Animal {n} is a {ANIMALS[n % 5]}. ^01jd{n:022d}\n" for n in range(30)).encode()
    await index.append(LEDGER, block)
    await index.refresh()
    await index.close()


async def follow(root: Path) -> None:
    """Take in what somebody edited, renamed, deleted and restored."""
    folder = root / "workspace" / "memory" / "topics"
    topic(root, "a", range(3, 9))
    (folder / "b.md").rename(folder / "z.md")
    (folder / "c.md").unlink()
    await refreshed(root)
    topic(root, "c", range(6))
    await refreshed(root)


Act = Callable[[Path], Awaitable[None]]
SCENARIOS: dict[str, tuple[Act, Act]] = {
    "rebuild": (files_alone, rebuild),
    "merge": (files_and_index, merge),
    "follow": (files_and_index, follow),
}


async def answers(index: WorkspaceIndex) -> list[object]:
    return [
        [
            (match.path, match.line_number, match.content, round(match.score, 6))
            for match in await index.search(query, 50)
        ]
        for query in (Query(text=text, neighbours=True) for text in ASKED)
    ]


def is_sound(path: Path) -> bool:
    """Tell whether the database and its full-text table are whole, and the segments hold each chunk at most once."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT INTO words (words) VALUES ('integrity-check')")
        ranges = connection.execute("SELECT first, last FROM segment ORDER BY first").fetchall()
        apart = all(before[1] < after[0] for before, after in pairwise(ranges))
        return apart and connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def killing(step: str, time: int, emit: Emit) -> None:
    """Let this process be killed before a statement of its writes, the one of this beginning that comes at `time`."""
    seen: Counter[str] = Counter()
    writing = ExclusiveAccess.write

    def reached(statement: str) -> None:
        if statement.startswith("--") or "'main'" in statement:
            # what a trigger or the full-text table does within a statement of ours
            return
        name = " ".join(statement.split()[:3])
        seen[name] += 1
        emit(f"step {name}")
        if (name, seen[name]) == (step, time):
            os.kill(os.getpid(), signal.SIGKILL)

    def watched(self: ExclusiveAccess, act: Callable[[sqlite3.Connection], _T]) -> _T:
        self._connection.set_trace_callback(reached)
        try:
            return writing(self, act)
        finally:
            self._connection.set_trace_callback(None)

    ExclusiveAccess.write = watched  # type: ignore[method-assign]


def case(act: Act, prepared: Path, folder: Path, step: str, time: int) -> tuple[list[str], dict[str, object]]:
    root = folder / ".ricordo"
    shutil.copytree(prepared / ".ricordo", root)

    async def killed(emit: Emit) -> None:
        killing(step, time, emit)
        await act(root)

    async def look(emit: Emit) -> None:
        index = await opened(root)
        left = await answers(index)
        report = await index.refresh()
        after, state = await answers(index), index.freshness().state
        await index.close()
        anew = await opened(root, "anew.db")
        told = {"left": left, "after": after, "anew": await answers(anew), "state": state, "aside": report.quarantined}
        await anew.close()
        emit(json.dumps(told | {"sound": is_sound(root / INDEX_FILE)}))

    lived, lines = in_child(killed)
    _, told = in_child(look)
    shutil.rmtree(folder)
    return [line[5:] for line in lines], {"at": f"{step} {time}", "killed": not lived, **json.loads(told[0])}


def main() -> None:
    prepare, act = SCENARIOS[sys.argv.pop(1)]
    # a few chunks are much, so that segments are made and merged
    segments._MIN_SEGMENT_ROWS, segments._FEW = 3, 5
    drive(prepare, partial(case, act))


if __name__ == "__main__":
    main()
