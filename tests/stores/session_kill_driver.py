"""Sessions that are killed at a step on the disk, and what the next process finds.

`session_kill_driver.py <folder>` prints one JSON line for each case: a life without a kill, then one for each step that
it took.
"""

import gc
import json
import sys
from pathlib import Path

import anyio

import ricordo
from disks import KillingDisk
from forking import Case, Emit, in_child
from kept_session_files import SHOP, backend, keeps, lists, notes
from ricordo import Entry
from ricordo.storage import Disk
from ricordo.workspace import Source


class Quick:
    """Waits for no medium: what a killed process wrote is there all the same."""

    def sync(self, descriptor: int) -> None:
        del descriptor

    def sync_folder(self, path: str) -> None:
        del path


class QuickKilling(Quick, KillingDisk):
    """Kills at a step, a sync being none."""


class QuickDisk(Quick, Disk):
    """Kills nobody."""


async def live(root: Path, disk: KillingDisk, emit: Emit) -> None:
    """Save, close, go on, and leave the rest to the end of the store."""
    store = backend(root, disk=disk)
    bound = store.bind(SHOP)

    async def save(content: str, session: str) -> None:
        emit(f"try {content}")
        await bound.save(Entry(content=content, source=Source(session=session)))
        emit(f"ack {content}")

    await save("Apples.", "s")
    await save("Bears.", "s")
    await keeps(bound).close_session(notes("s", "Of fruit."))
    emit("ack Of fruit.")
    await save("Cranes.", "s")
    await save("Dogs.", "t")
    await store.close()
    emit(f"steps {len(disk.steps)}")


async def look(root: Path, emit: Emit) -> None:
    """Tell what the next process finds, and what the one after that finds in the files."""
    store = backend(root, disk=QuickDisk())
    bound = store.bind(SHOP)
    entries = [entry.content for entry in await lists(bound).entries()]
    recalled = [hit.entry.content for hit in await bound.recall("", 99)]
    preamble = await bound.preamble()
    await store.close()
    files = {path.name: path.read_text() for path in (root / "sessions").glob("*") if path.name[:2] != ".~"}
    index = json.loads((root / "index.json").read_text()) if (root / "index.json").exists() else {"sessions": []}
    listed = [row["path"].rpartition("/")[2] for row in index["sessions"]]
    told = {"entries": entries, "recalled": recalled, "preamble": preamble, "files": files, "listed": listed}
    emit(json.dumps(told))


def case(folder: Path, at: int) -> Case:
    root = folder / str(at)
    lived, lines = in_child(lambda emit: live(root, QuickKilling(at), emit))
    _, told = in_child(lambda emit: look(root, emit))
    words = {
        word: [line[len(word) + 1 :] for line in lines if line.startswith(word)] for word in ("try", "ack", "steps")
    }
    return {"at": at, "killed": not lived, **words, **json.loads(told[0])}


def main() -> None:
    folder = Path(sys.argv[1])
    print(json.dumps(ricordo.__file__), flush=True)
    anyio.run(anyio.sleep, 0)
    gc.freeze()
    first = case(folder, 0)
    print(json.dumps(first), flush=True)
    for at in range(1, int(first["steps"][0]) + 1):
        print(json.dumps(case(folder, at)), flush=True)


if __name__ == "__main__":
    main()
