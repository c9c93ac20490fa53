"""A dream whose process is killed, and what the next process finds, does and can take back.

`dream_kill_driver.py <folder> <step>...` prints one JSON line for each case: a dream without a kill, then one that is
killed at each of these steps; without steps, at every one that there was. A step is an event such as `gather started`,
`asked` in the middle of a request to the model, or an act on a file such as `rename MEMORY.md` and, when it is done,
`rename MEMORY.md done`.
"""

import json
import shutil
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from forking import Emit, Killing, drive, in_child
from hand_clock import HandClock
from ricordo import Entry
from ricordo.clock import MonotonicIds
from ricordo.curation import ConsolidationConfig, Consolidator, undo_change
from ricordo.curation.adviser import ModelAdviser
from ricordo.curation.run_state import LEASE_PATH
from ricordo.events import Emitter, Event
from ricordo.guard import Redactor
from ricordo.models import SpendingConfig, SpendingMeter
from ricordo.storage import Disk
from ricordo.storage.local import LocalFiles
from ricordo.testing import RecordedRequest, Say, ScriptedModel
from ricordo.workspace import MEMORY_PATH, ChangeSets, append_entries, list_history, parse_entries
from ricordo.workspace.history.change_sets import count_pending
from ricordo.workspace.layout import LEDGERS

KEY = b"k" * 32
DAY = date(2026, 11, 21)
CURATED = (
    "Marta is allergic to peanuts.",
    "The orders run on MySQL.",
    "The lighthouse of the harbour " + "keeps the old charts, " * 8 + "and nobody else does.",
    "The lighthouse keeper of the harbour " + "knows all the tides, " * 8 + "and tells them on Sundays.",
)
FRESH = (
    "Peanuts make Marta itch because of an allergy.",
    "We migrated the orders from MySQL to PostgreSQL.",
    "We deploy only from main.",
)
ONE_LINE = "Marta is allergic to peanuts, an allergy that makes Marta itch."


def unheard(_: str) -> None:
    """Do nothing at a step."""


class TellingDisk(Disk):
    """A disk that tells which file gets its new content, before and after; nothing waits for the medium."""

    def __init__(self, reached: Callable[[str], None]) -> None:
        self._reached = reached

    def sync(self, descriptor: int) -> None:
        """Wait for nothing."""

    def sync_folder(self, path: str) -> None:
        """Wait for nothing."""

    def exchange(self, source: str, target: str) -> bool:
        return self._placed(super().exchange, source, target)

    def rename_new(self, source: str, target: str) -> bool:
        return self._placed(super().rename_new, source, target)

    def _placed(self, act: Callable[[str, str], bool], source: str, target: str) -> bool:
        name = "a record" if "/history/" in target else Path(target).name
        self._reached(f"rename {name}")
        done = act(source, target)
        self._reached(f"rename {name} done")
        return done


class Process:
    """What one process has open of a root, so many minutes after the first."""

    def __init__(self, root: Path, minutes: int) -> None:
        self.reached: Callable[[str], None] = unheard
        self.files = LocalFiles(root, disk=TellingDisk(self.tell))
        self.clock = HandClock(datetime(2026, 11, 21, 8, minutes, tzinfo=UTC))
        self.changes = ChangeSets(self.files, clock=self.clock, ids=MonotonicIds(self.clock, lambda bits: 7))
        self.model = ScriptedModel(self.advice)
        meter = SpendingMeter(self.files, SpendingConfig(), self.clock)
        config = ConsolidationConfig()
        self.consolidator = Consolidator(
            files=self.files, changes=self.changes, redactor=Redactor(KEY), clock=self.clock, key=KEY, config=config,
            adviser=ModelAdviser(model=meter.wrap(self.model, "consolidation"), config=config),
            emitter=Emitter(self.clock, (self.heard,)),
        )  # fmt: skip

    def tell(self, step: str) -> None:
        self.reached(step)

    def heard(self, event: Event) -> None:
        self.tell(f"{event.stage} {event.status}")

    def advice(self, request: RecordedRequest) -> Say:
        self.tell("asked")
        text = request.messages[-1].text
        ids = [found.entry.id for found in parse_entries(text, "") if "Marta" in found.entry.content]
        merged = [{"parents": ids, "content": ONE_LINE}] if len(ids) > 1 else []
        return Say(json.dumps({"merged": merged, "superseded": [], "retired": [], "topics": []}))

    async def documents(self) -> dict[str, str]:
        """Return curated memory and the ledgers as they are."""
        paths = [info.path for info in await self.files.list(LEDGERS)]
        found = {path: (await self.files.read(path)).data for path in paths if path.endswith(".md")}
        if await self.files.info(MEMORY_PATH):
            found[MEMORY_PATH] = (await self.files.read(MEMORY_PATH)).data
        return {path: data.decode() for path, data in sorted(found.items())}


async def prepare(root: Path) -> None:
    first = Process(root, 0)
    await noted(first, CURATED)
    await first.consolidator.consolidate(force=True, use_model=False)
    await noted(first, FRESH)


async def noted(process: Process, contents: tuple[str, ...]) -> None:
    ids = MonotonicIds(process.clock, lambda bits: 9)
    for content in contents:
        process.clock.turn(1)
        entry = Entry(
            content=content, id=ids.new(), time=process.clock.now(), by="flush", confidence=0.9, kind="decision"
        )
        await append_entries(process.files, DAY, [entry], Redactor(KEY))


async def look(root: Path, before: dict[str, str], emit: Emit) -> None:
    other = Process(root, 10)
    held = await other.files.info(LEASE_PATH) is not None
    await other.changes.recover()
    found = await other.documents()
    done = await other.consolidator.consolidate(deep=True)
    after = await other.documents()
    states = [info.path for info in await other.files.list(LEDGERS) if Path(info.path).name.startswith(".")]
    told: dict[str, object] = {
        "held": held,
        "found": "before" if found == before else "after" if found == after else "neither",
        "skipped": done.skipped,
        "asked": len(other.model.requests),
        "documents": after,
        "cut off": await count_pending(other.files),
        "lease": await other.files.info(LEASE_PATH) is not None,
        "states": {Path(path).name: bool(json.loads((await other.files.read(path)).data)) for path in states},
    }
    items = await list_history(other.files, other.changes)
    runs = [item for item in items if item.action == "consolidate" and not item.is_undone]
    told["runs"] = len(runs)
    other.clock.turn(timedelta(minutes=1).total_seconds())
    await undo_change(other.files, other.changes, runs[0], who="user")
    told["undone"] = await other.documents() == before
    emit(json.dumps(told))


def case(prepared: Path, folder: Path, step: str = "", at: int = -1) -> tuple[list[str], dict[str, object]]:
    """Return the steps up to the kill, and what was found after it."""
    shutil.copytree(prepared, folder)
    root = folder / ".ricordo"

    async def dream(emit: Emit) -> None:
        first = Process(root, 5)
        emit(json.dumps(await first.documents()))
        first.reached = Killing(step, at, emit)
        await first.consolidator.consolidate(deep=True)

    lived, (before, *lines) = in_child(dream)

    async def again(emit: Emit) -> None:
        await look(root, json.loads(before), emit)

    _, told = in_child(again)
    steps = [line[5:] for line in lines if line.startswith("step ")]
    return steps, {"step": step, "killed": not lived, **json.loads(told[0])}


if __name__ == "__main__":
    drive(prepare, case)
