"""One of two processes that save into the same stores, in children that are killed as soon as the last save returned.

python simple_stores_driver.py FOLDER NAME COUNT ADDRESS...
"""

import json
import os
import signal
import sys
from pathlib import Path

import ricordo
from forking import Emit, in_child
from plain_stores import SHOP, Shelves
from ricordo import Entry


def saved(folder: Path, name: str, count: int, address: str) -> list[str]:
    """Save `count` entries in a child that never gets to close anything, and return the ids that it was given."""

    async def work(emit: Emit) -> None:
        async with Shelves(folder=folder).open(address) as backend:
            for number in range(count):
                entry = await backend.bind(SHOP).save(Entry(content=f"{name} {number}", kind="preamble"))
                emit(entry.id)
            os.kill(os.getpid(), signal.SIGKILL)

    lived, ids = in_child(work)
    assert not lived
    return ids


if __name__ == "__main__":
    print(json.dumps(ricordo.__file__), flush=True)
    for each in sys.argv[4:]:
        ids = saved(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), each)
        print(json.dumps({"address": each, "ids": ids}), flush=True)
