"""What is forgotten while something else writes stays forgotten, in whatever order the two come to the files."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, date, datetime
from pathlib import Path
from threading import Barrier, Thread

import anyio
import pytest

from interleaving import SharedFiles, at_every_step
from places import place_of
from ricordo import Entry
from ricordo.clock import MonotonicIds, SystemClock
from ricordo.curation import Consolidator, FileProfileStore, NewFact, ProfileUpdater, undo_change
from ricordo.curation.forget import forget
from ricordo.curation.marks import mark_entry
from ricordo.errors import EntryNotFound
from ricordo.extraction import Flusher
from ricordo.guard import Redactor
from ricordo.messages import Message, Text
from ricordo.storage import FileStore
from ricordo.storage.local import LocalFiles
from ricordo.workspace import (
    MEMORY_PATH,
    ChangeSets,
    Edit,
    FactSource,
    Transcript,
    append_entries,
    cursor_path,
    list_history,
    profile_path,
    read_all_entries,
    transcript_path,
)
from ricordo.workspace.layout import is_memory
from watched_files import WatchedFiles

pytestmark = [pytest.mark.anyio, pytest.mark.req("HE-O-audit-forget")]

KEY = bytes(32)
REDACTOR = Redactor(KEY)
CLOCK = SystemClock()
IDS = MonotonicIds(CLOCK)
SAID = "We decided to keep the staging database on port 5433."
OTHER = "We decided to deploy only from main."


def change_sets(files: FileStore) -> ChangeSets:
    return ChangeSets(files, clock=CLOCK, ids=IDS)


def consolidator(files: FileStore) -> Consolidator:
    return Consolidator(files=files, changes=change_sets(files), redactor=REDACTOR, clock=CLOCK, key=KEY)


def flusher(files: FileStore) -> Flusher:
    return Flusher(files=files, redactor=REDACTOR, key=KEY, clock=CLOCK, ids=IDS)


class Root:
    """The files of a root with two memories, one of which is forgotten; `session` is what says it once more."""

    def __init__(self, *, session: bool = False, curated: bool = False) -> None:
        self._session, self._curated = session, curated
        self.files = SharedFiles()

    async def prepare(self) -> SharedFiles:
        self.files = SharedFiles()
        entries = [Entry(content=each, kind="decision", id=IDS.new(), time=CLOCK.now()) for each in (SAID, OTHER)]
        self.gone = entries[0].id
        await append_entries(self.files, date(2026, 11, 20), entries, REDACTOR)
        if self._session:
            transcript = Transcript(self.files, transcript_path("main", "s"), session="s", redactor=REDACTOR)
            await transcript.append([said(SAID)])
        if self._curated:
            await consolidator(self.files).consolidate(force=True)
            await append_entries(
                self.files,
                date(2026, 11, 21),
                [Entry(content="We decided to write all tests in Python.", id=IDS.new(), time=CLOCK.now())],
                REDACTOR,
            )
        return self.files

    async def forget(self, files: FileStore) -> None:
        await forget(files, change_sets(files), self.gone, key=KEY, who="user")

    async def say_what_is_left(self) -> set[str]:
        """Return the documents of memory, and the profiles, that say what was forgotten."""
        found = set()
        for info in await self.files.list("workspace"):
            if is_memory(info.path) or info.path.endswith("profile.json"):
                data = (await self.files.read(info.path)).data
                found |= {info.path} if b"5433" in data else set()
        return found


def said(text: str) -> Message:
    return Message(role="user", parts=(Text(text=text),), time=datetime(2026, 11, 21, 9, tzinfo=UTC))


async def consolidate(files: FileStore) -> None:
    await consolidator(files).consolidate(force=True)


async def flush(files: FileStore) -> None:
    await flusher(files).flush("main", "s")


async def learn(files: FileStore) -> None:
    store = FileProfileStore(files, change_sets(files), path=profile_path(), redactor=REDACTOR, key=KEY, clock=CLOCK)
    fact = NewFact(content=SAID, confidence=0.9, source=FactSource(quote=SAID))
    await ProfileUpdater(store, clock=CLOCK).update_offline([said(SAID)], [fact], thread="s")


async def pin(files: FileStore) -> None:
    memory = [one for one in await read_all_entries(files) if one.entry.content == SAID]
    with suppress(EntryNotFound):
        for one in memory:
            await mark_entry(files, change_sets(files), one.entry.id, "pin", now=CLOCK.now(), who="user")


ACTS: dict[str, tuple[Root, Callable[[FileStore], Awaitable[object]]]] = {
    "a consolidation": (Root(), consolidate),
    "a consolidation of what is curated": (Root(curated=True), consolidate),
    "a pin": (Root(curated=True), pin),
    "an extraction": (Root(session=True), flush),
    "an update of the profile": (Root(session=True), learn),
}


@pytest.mark.req("HE-O-audit-forget", "GO-I10")
@pytest.mark.parametrize("name", ACTS)
async def test_what_is_forgotten_before_any_step_of_another_act_is_not_brought_back_by_it(name: str) -> None:
    root, act = ACTS[name]
    steps = 0
    back: dict[str, set[str]] = {}
    async for step in at_every_step(root.prepare, act, root.forget):
        steps += 1
        back |= {step: left} if (left := await root.say_what_is_left()) else {}
        await consolidate(root.files)
        back |= {f"{step}, and then": left} if (left := await root.say_what_is_left()) else {}
    assert steps > 5
    assert back == {}


@pytest.mark.req("HE-O-audit-forget", "GO-I10")
@pytest.mark.parametrize("name", ACTS)
async def test_what_another_act_writes_before_any_step_of_a_forget_is_forgotten_too(name: str) -> None:
    root, act = ACTS[name]
    steps = 0
    back: dict[str, set[str]] = {}
    async for step in at_every_step(root.prepare, root.forget, act):
        steps += 1
        back |= {step: left} if (left := await root.say_what_is_left()) else {}
        await consolidate(root.files)
        back |= {f"{step}, and then": left} if (left := await root.say_what_is_left()) else {}
    assert steps > 5
    assert back == {}


def test_a_memory_that_is_forgotten_while_it_is_consolidated_is_never_curated(tmp_path: Path) -> None:
    for number in range(12):
        folder, saved = tmp_path / str(number), Entry(content=SAID, kind="decision", id=IDS.new(), time=CLOCK.now())
        anyio.run(append_entries, LocalFiles(place_of(folder)), date(2026, 11, 20), [saved], REDACTOR)
        both = Barrier(2)

        async def forgotten(files: FileStore, entry_id: str = saved.id, start: Barrier = both) -> None:
            start.wait()
            await forget(files, change_sets(files), entry_id, key=KEY, who="user")

        async def consolidated(files: FileStore, start: Barrier = both) -> None:
            start.wait()
            await consolidate(files)

        threads = [
            Thread(target=anyio.run, args=(act, LocalFiles(place_of(folder)))) for act in (forgotten, consolidated)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        left = [path.name for path in (place_of(folder) / "workspace").rglob("*.md") if "5433" in path.read_text()]
        assert left == []


async def test_an_extraction_that_was_cut_off_brings_nothing_back_that_was_forgotten_since() -> None:
    class Cut(BaseException):
        """The process ends here."""

    async def cut(verb: str, path: str) -> None:
        if verb == "append" and is_memory(path):
            raise Cut

    root = Root(session=True)
    files = await root.prepare()
    with pytest.raises(Cut):
        await flush(WatchedFiles(files, cut))
    assert b"5433" in (await files.read(cursor_path("main", "s"))).data
    await root.forget(files)
    await flush(files)
    assert await root.say_what_is_left() == set()


async def test_undoing_an_earlier_change_brings_nothing_back_that_was_forgotten_since() -> None:
    root = Root(curated=True)
    files = await root.prepare()
    changes, memory = change_sets(files), await files.read(MEMORY_PATH)
    left = b"".join(line for line in memory.data.splitlines(keepends=True) if b"5433" not in line)
    await changes.apply([Edit(path=MEMORY_PATH, expected_hash=memory.version, data=left)], act="edit", who="user")
    await root.forget(files)
    edited = next(item for item in await list_history(files, changes) if item.action == "edit")
    await undo_change(files, changes, edited, who="user")
    assert await root.say_what_is_left() == set()
    gone = next(item for item in await list_history(files, changes) if item.action == "forget")
    await undo_change(files, changes, gone, who="user")
    assert "workspace/memory/2026-11-20.md" in await root.say_what_is_left()
