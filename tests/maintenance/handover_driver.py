"""A compaction that is killed while it writes its lessons, at every step of the disk or each of so many.

`handover_driver.py <folder> <every>` prints one JSON line for each case: what the next process finds.
"""

import gc
import json
import sys
from pathlib import Path

import anyio

import ricordo
from disks import KillingDisk
from forking import Emit, in_child
from ricordo.context.compaction_extraction import CompactionExtraction
from ricordo.extraction import Finding, extract
from ricordo.guard import Redactor
from ricordo.messages import Message, Text
from ricordo.runtime import Dependencies, Settings, Workspace, open_workspace
from ricordo.scope import Scope
from ricordo.storage import Disk
from ricordo.workspace import Transcript, read_all_entries, transcript_path

SCOPE = Scope(user="me", project="shop")
FACTS = ("We deploy only from main.", "I prefer tea over coffee.")
LESSON = "Deployments come from main."


class ArmedDisk(KillingDisk):
    """A disk that counts its steps only while it is armed, and tells them."""

    armed = False

    def __init__(self, at: int, tell: Emit) -> None:
        super().__init__(at)
        self._tell = tell

    def _step(self, name: str) -> None:
        if self.armed:
            self._tell(name)
            super()._step(name)


def parts(root: Path, disk: Disk) -> Dependencies:
    settings = Settings(
        root=None, user="me", data=root.parent / "data", cache=root.parent / "cache", consolidation=None
    )
    return Dependencies.create(settings=settings, disk=disk)


async def said(workspace: Workspace) -> tuple[Message, ...]:
    place = workspace.memory_root
    transcript = Transcript(place.files, transcript_path("main", "s"), session="s", redactor=place.redactor)
    return (await transcript.append([Message(role="user", parts=(Text(text=text),)) for text in FACTS])).messages


async def compact(root: Path, at: int, tell: Emit) -> None:
    disk = ArmedDisk(at, tell)
    async with open_workspace(root, SCOPE, parts(root, disk)) as workspace:
        messages = await said(workspace)
        handover = CompactionExtraction(
            workspace.inbox, flush=workspace.flush, worker=workspace.worker, agent="main", session="s", user="me"
        )
        taken = await handover(messages)
        assert taken is not None
        first = messages[0].id
        lesson = Finding(content=LESSON, kind="lesson", confidence=0.7, message_ids=(first,), quote=FACTS[0])
        disk.armed = True
        await taken.accept([lesson])
        disk.armed = False
        tell("accepted")


async def look(root: Path, tell: Emit) -> None:
    async with open_workspace(root, SCOPE, parts(root, Disk())) as workspace:
        while await workspace.inbox.jobs(states={"waiting", "running"}):
            await workspace.worker.drain(seconds=20)
        found = [located.entry.content for located in await read_all_entries(workspace.memory_root.files)]
        states = [record.state for record in await workspace.inbox.jobs()]
        tell(json.dumps({"entries": sorted(found), "states": states}))


def case(root: Path, at: int) -> dict[str, object]:
    async def act(tell: Emit) -> None:
        await compact(root, at, tell)

    async def again(tell: Emit) -> None:
        await look(root, tell)

    _, steps = in_child(act)
    _, [told] = in_child(again)
    return {"at": at, "step": steps[-1], **json.loads(told)}


def main() -> None:
    folder, every = Path(sys.argv[1]), int(sys.argv[2])
    anyio.run(anyio.sleep, 0)
    extract([Message(role="user", id=text, parts=(Text(text=Redactor(bytes(32)).clean(text)),)) for text in FACTS])
    gc.freeze()
    at, step = 1, ""
    print(json.dumps(ricordo.__file__), flush=True)
    while step != "accepted":
        root = folder / str(at) / "root"
        root.parent.mkdir()
        told = case(root, at)
        step = str(told["step"])
        print(json.dumps(told), flush=True)
        at += every


if __name__ == "__main__":
    main()
