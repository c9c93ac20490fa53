"""Kill a process at every step it takes on the disk, and tell what is left each time.

Run as a script: `crash_driver.py <scenario> <folder>`. Every case gets a copy of the prepared
root; a forked child does the act and dies before one step (or in the middle of a write), a second one looks at what is
left and does the act again. Each case is one line of JSON; the last one was not disturbed. Forking is what makes this
fast: the package is imported once.
"""

import gc
import json
import os
import shutil
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from pathlib import Path

import anyio

import ricordo
from disks import KillingDisk
from forking import Emit, in_child
from ricordo import Entry, Memory, Message, Scope
from ricordo.errors import UndoRefused
from ricordo.importers import ImportReport, ImportSource, find_sources, import_sources
from ricordo.messages import Text
from ricordo.runtime import Settings
from ricordo.storage import Disk
from ricordo.storage.local import LocalFiles
from ricordo.workspace import Source

Act = Callable[[Path, Disk, Emit], Awaitable[None]]
Look = Callable[[Path], Awaitable[dict[str, object]]]

SCOPE = Scope(user="me", project="shop")
SESSIONS = {
    "s1": ("We deploy only from main.", "Noted.", "I prefer tea over coffee."),
    "s2": ("We decided to use PostgreSQL for the orders.", "My sister Ana lives in Porto."),
}
OLD, NEW = b"the old content\n" * 20, b"the new content, which is longer\n" * 30


@dataclass(frozen=True, kw_only=True)
class Scenario:
    prepare: Act
    act: Act
    look: Look
    end: Look | None = None


def settings(root: Path) -> Settings:
    return Settings(root=None, user="me", data=Settings.from_environment().data, cache=root.parent / "cache")


def open_memory(root: Path, disk: Disk | None = None) -> AbstractAsyncContextManager[Memory]:
    return Memory.open(root, scope=SCOPE, disk=disk, settings=settings(root))


async def nothing(root: Path, disk: Disk, emit: Emit) -> None:
    os.mkdir(root)


async def claimed(root: Path, disk: Disk, emit: Emit) -> None:
    async with open_memory(root, disk):
        pass


async def ingest(root: Path, disk: Disk, emit: Emit) -> None:
    async with open_memory(root, disk) as memory:
        for session, texts in SESSIONS.items():
            spoken = [Message(role="user", parts=(Text(text=text),)) for text in texts]
            await memory.ingest(spoken, session=session, known={})
            emit(f"ack {session}")


async def contents(root: Path) -> dict[str, object]:
    async with open_memory(root) as memory:
        sessions: dict[str, object] = {}
        for info in await memory.sessions():
            sessions[info.session] = [message.text for message in (await memory.session(info.session)).messages]
        entries = await memory.entries()
        return {
            "sessions": sessions,
            "entries": sorted(
                json.dumps([entry.content, entry.kind, entry.source.session, entry.source.messages])
                for entry in entries
            ),
            "doubled ids": [name for name, count in Counter(entry.id for entry in entries).items() if count > 1],
            "found": [hit.entry.content for hit in await memory.recall("PostgreSQL orders", limit=1)],
            "unwell": [check.name for check in await memory.doctor() if not check.ok],
            "history": len(await memory.history()),
        }


async def remember_two(root: Path, disk: Disk, emit: Emit) -> None:
    async with open_memory(root, disk) as memory:
        await memory.remember("A first memory.")
        await memory.remember("The long one. " * 400)
        await memory.remember("A last memory.")


async def forget_long(root: Path, disk: Disk, emit: Emit) -> None:
    async with open_memory(root, disk) as memory:
        long = [entry for entry in await memory.entries() if entry.content.startswith("The long")]
        if long:
            await memory.forget(long[0].id)
        emit("ack forgotten")


async def memories(root: Path) -> dict[str, object]:
    async with open_memory(root) as memory:
        entries = await memory.entries()
        return {
            "memories": sorted(entry.content[:40] for entry in entries),
            "whole": all(len(entry.content) == 5600 for entry in entries if "long" in entry.content),
            "acts": [item.action for item in await memory.history() if not item.is_undone],
            "unwell": [check.name for check in await memory.doctor() if not check.ok],
            "found": [hit.entry.content for hit in await memory.recall("memory told by the user", limit=1)],
        }


async def undo_last(root: Path, disk: Disk, emit: Emit) -> None:
    async with open_memory(root, disk) as memory:
        if any(entry.content == "A last memory." for entry in await memory.entries()):
            await memory.undo()
        emit("ack undone")


async def remember_some(root: Path, disk: Disk, emit: Emit) -> None:
    async with open_memory(root, disk) as memory:
        for text in ("The long one. " * 400, "One more memory, told by the user."):
            await memory.remember(text)
            emit(f"ack {text[:40]}")


async def old_file(root: Path, disk: Disk, emit: Emit) -> None:
    await LocalFiles(root, disk=disk).create("workspace/MEMORY.md", OLD)


async def replace_file(root: Path, disk: Disk, emit: Emit) -> None:
    files = LocalFiles(root, disk=disk)
    await files.replace("workspace/MEMORY.md", NEW, expected=(await files.read("workspace/MEMORY.md")).version)
    emit("ack replaced")


async def file_left(root: Path) -> dict[str, object]:
    files = LocalFiles(root)
    data = (await files.read("workspace/MEMORY.md")).data
    return {
        "content": {OLD: "old", NEW: "new"}.get(data, "partial"),
        "listed": [info.path for info in await files.list("workspace")],
    }


def exported(*texts: str) -> list[Entry]:
    source = Source(origin="notes:export.json")
    return [
        Entry(content=text, source=source, extra=(("import-id", str(number)),)) for number, text in enumerate(texts)
    ]


async def import_once(root: Path, disk: Disk, emit: Emit) -> None:
    async with open_memory(root, disk) as memory:
        await memory.import_entries(exported("The door is red.", "The lock is old."))


async def import_later(root: Path, disk: Disk, emit: Emit) -> None:
    async with open_memory(root, disk) as memory:
        await memory.import_entries(exported("The door is green.", "The lock is old.", "The key is lost. " * 300))
        emit("ack imported")


async def imports(root: Path) -> dict[str, object]:
    async with open_memory(root) as memory:
        entries = await memory.entries()
        return {
            "entries": sorted([entry.content[:20], entry.state, len(entry.content)] for entry in entries),
            "unwell": [check.name for check in await memory.doctor() if not check.ok],
        }


HISTORY = """[
{"role": "user", "content": "We deploy only from main.", "id": "a1", "session": "s1"},
{"role": "assistant", "content": "Noted.", "id": "a2", "session": "s1"},
{"role": "user", "content": "We decided to use PostgreSQL for the orders.", "session": "s2"},
{"role": "user", "content": "My sister Ana lives in Porto.", "session": "s2"}
]"""


def write_history(root: Path) -> Path:
    folder = root.parent / "history"
    folder.mkdir(exist_ok=True)
    (folder / "chat.json").write_text(HISTORY)
    (folder / "CLAUDE.md").write_text("- The lock is old.\n- The key is lost.\n")
    return folder


async def import_history(root: Path, disk: Disk, emit: Emit) -> None:
    found = list(find_sources(ImportSource(write_history(root))))
    await import_sources(lambda _: open_memory(root, disk), found, ImportReport())
    emit("ack imported")


async def undo_imports(root: Path) -> dict[str, object]:
    async with open_memory(root) as memory:
        for item in await memory.history():
            if item.action == "import" and not item.is_undone:
                # one that was cut off may have brought nothing
                with suppress(UndoRefused):
                    await memory.undo(item.id)
    return await contents(root)


SCENARIOS = {
    "history": Scenario(prepare=claimed, act=import_history, look=contents, end=undo_imports),
    "import": Scenario(prepare=import_once, act=import_later, look=imports),
    "ingest": Scenario(prepare=claimed, act=ingest, look=contents),
    "forget": Scenario(prepare=remember_two, act=forget_long, look=memories),
    "undo": Scenario(prepare=remember_two, act=undo_last, look=memories),
    "remember": Scenario(prepare=nothing, act=remember_some, look=memories),
    "replace": Scenario(prepare=old_file, act=replace_file, look=file_left),
}


class TellingDisk(KillingDisk):
    """A disk that emits each step before it takes it."""

    def __init__(self, at: int, emit: Emit, *, halves: bool) -> None:
        super().__init__(at, halves=halves)
        self._emit = emit

    def _step(self, name: str) -> None:
        self._emit(f"step {name}")
        super()._step(name)


def case(scenario: Scenario, prepared: Path, folder: Path, at: int, *, halves: bool) -> dict[str, object]:
    root = folder / f"{at}{'-half' if halves else ''}" / "root"
    shutil.copytree(prepared, root)

    async def act(emit: Emit) -> None:
        await scenario.act(root, TellingDisk(at, emit, halves=halves), emit)

    async def again(emit: Emit) -> None:
        emit(json.dumps(await scenario.look(root)))
        await scenario.act(root, Disk(), lambda _: None)
        emit(json.dumps(await scenario.look(root)))
        emit(json.dumps(await scenario.end(root) if scenario.end else None))

    lived, lines = in_child(act)
    steps = [line[5:] for line in lines if line.startswith("step ")]
    _, told = in_child(again)
    shutil.rmtree(root.parent)
    acked: list[str] = [line[4:] for line in lines if line.startswith("ack ")]
    return {
        "at": at,
        "step": steps[-1] if steps and not lived else "",
        "before": steps[-2] if len(steps) > 1 else "",
        "steps": len(steps),
        "half": halves,
        "killed": not lived,
        "acked": acked,
        "left": json.loads(told[0]),
        "again": json.loads(told[1]),
        "end": json.loads(told[2]),
    }


def main() -> None:
    scenario, folder, every = SCENARIOS[sys.argv[1]], Path(sys.argv[2]), int(sys.argv[3])
    prepared = folder / "prepared"

    async def prepare(emit: Emit) -> None:
        await scenario.prepare(prepared, Disk(), emit)

    print(json.dumps(ricordo.__file__), flush=True)
    in_child(prepare)
    anyio.run(anyio.sleep, 0)
    gc.freeze()
    at, killed = 1 - every, True
    while killed:
        at += every
        told = case(scenario, prepared, folder, at, halves=False)
        killed = bool(told["killed"])
        print(json.dumps(told), flush=True)
        if told["step"] == "write" and told["before"] != "make_file":  # half a temporary file is like none
            print(json.dumps(case(scenario, prepared, folder, at, halves=True)), flush=True)


if __name__ == "__main__":
    main()
