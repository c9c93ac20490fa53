"""What a person did to curated memory by hand stays done, also when the cursor is lost or all is read again."""

from collections.abc import Awaitable, Callable
from datetime import UTC, date, datetime, timedelta

import pytest

from ricordo import Entry
from ricordo.clock import MonotonicIds
from ricordo.curation import CURSOR_PATH, NOTHING_NEW, ConsolidationResult, Consolidator, undo_change
from ricordo.curation.forget import forget
from ricordo.guard import Redactor
from ricordo.testing import InMemoryFiles
from ricordo.workspace import MEMORY_PATH, ChangeSets, append_entries, list_history

pytestmark = pytest.mark.anyio

KEY = b"k" * 32
REDACTOR = Redactor(KEY)
DAY = date(2026, 11, 21)
LEDGER = "workspace/memory/2026-11-21.md"
LIMIT, RULE, WISH = "The limit is 10 items.", "We deploy only from main.", "I prefer tea."


class Ticking:
    """A clock that moves on by itself."""

    time = datetime(2026, 11, 21, 8, tzinfo=UTC)

    def now(self) -> datetime:
        self.time += timedelta(seconds=1)
        return self.time

    def today(self) -> date:
        return DAY


class Root:
    """The files of a root, a person's hand on them, and consolidation."""

    def __init__(self) -> None:
        self.files = InMemoryFiles()
        self.clock = Ticking()
        self.ids = MonotonicIds(self.clock, lambda bits: 7)
        self.changes = ChangeSets(self.files, clock=self.clock, ids=self.ids)
        self.consolidator = Consolidator(
            files=self.files, changes=self.changes, redactor=REDACTOR, clock=self.clock, key=KEY
        )

    async def save(self, content: str, kind: str = "fact") -> Entry:
        made = Entry(content=content, kind=kind, id=self.ids.new(), time=self.clock.now())
        await append_entries(self.files, DAY, [made], REDACTOR)
        return made

    async def run(self) -> ConsolidationResult:
        return await self.consolidator.consolidate(force=True)

    async def text(self, path: str = MEMORY_PATH) -> str:
        return (await self.files.read(path)).data.decode()

    async def edit(self, old: str, new: str, path: str = MEMORY_PATH) -> None:
        stored = await self.files.read(path)
        assert old.encode() in stored.data
        await self.files.replace(path, stored.data.replace(old.encode(), new.encode()), expected=stored.version)

    async def delete_bullet(self, content: str) -> None:
        line = next(line for line in (await self.text()).splitlines(keepends=True) if content in line)
        await self.edit(line, "")


async def without_cursor(root: Root) -> None:
    await root.files.delete(CURSOR_PATH)
    await root.run()


async def with_a_damaged_cursor(root: Root) -> None:
    stored = await root.files.read(CURSOR_PATH)
    await root.files.replace(CURSOR_PATH, b"{", expected=stored.version)
    await root.run()


async def all_again(root: Root) -> None:
    await root.consolidator.consolidate(again=True)


READING_ANEW = pytest.mark.parametrize("anew", [without_cursor, with_a_damaged_cursor, all_again])
Anew = Callable[[Root], Awaitable[None]]


@pytest.mark.req("AS-BUG-19")
@READING_ANEW
async def test_an_edit_in_memory_outlives_a_reading_of_all_ledgers(anew: Anew) -> None:
    root = Root()
    await root.save(LIMIT)
    await root.run()
    await root.edit("10 items", "14 items")
    before = await root.text()
    await anew(root)
    assert await root.text() == before
    assert (await root.run()).skipped == NOTHING_NEW


@pytest.mark.req("AS-CONS-01")
@READING_ANEW
async def test_an_edit_in_the_ledger_is_taken_over_after_a_reading_of_all_ledgers(anew: Anew) -> None:
    root = Root()
    await root.save(LIMIT)
    await root.run()
    await anew(root)
    await root.edit("10 items", "12 items", LEDGER)
    await root.run()
    assert "12 items" in await root.text()


@pytest.mark.req("AS-CONS-01")
async def test_what_changed_in_the_ledger_is_taken_over_when_all_is_read_again() -> None:
    root = Root()
    await root.save(LIMIT)
    await root.run()
    await root.edit("10 items", "12 items", LEDGER)
    await all_again(root)
    assert "12 items" in await root.text()


@pytest.mark.req("AS-CONS-05")
@READING_ANEW
async def test_a_deleted_bullet_stays_deleted_when_all_ledgers_are_read_anew(anew: Anew) -> None:
    root = Root()
    await root.save(RULE)
    await root.save("we deploy only from `main`!")
    await root.save(LIMIT)
    await root.run()
    await root.delete_bullet("deploy only")
    await anew(root)
    assert "deploy" not in await root.text()
    await root.save(WISH)
    await root.run()
    await anew(root)
    assert "deploy" not in await root.text()
    assert LIMIT in await root.text()


async def test_what_a_person_put_back_by_undo_is_not_taken_for_deleted() -> None:
    root = Root()
    await root.save(LIMIT)
    gone = await root.save(RULE)
    await root.run()
    change = await forget(root.files, root.changes, gone.id, key=KEY, who="user")
    item = next(item for item in await list_history(root.files, root.changes) if item.id == change.change.id)
    await undo_change(root.files, root.changes, item, who="user")
    await without_cursor(root)
    assert RULE in await root.text()


@pytest.mark.req("AS-CONS-05", "AS-CONS-04")
async def test_an_undone_run_is_not_done_again_because_the_cursor_is_lost() -> None:
    root = Root()
    await root.save(LIMIT)
    await root.run()
    await root.save(RULE)
    done = await root.run()
    item = next(item for item in await list_history(root.files, root.changes) if item.id == done.change_id)
    await undo_change(root.files, root.changes, item, who="user")
    await without_cursor(root)
    assert RULE not in await root.text()
    await all_again(root)
    assert RULE in await root.text()


async def test_a_section_that_a_run_empties_goes_and_a_persons_own_stays() -> None:
    root = Root()
    await root.files.create(MEMORY_PATH, b"# Memory\n\n## Mine\n\n## Notes\n")
    await root.save("We use MySQL for the orders.", "decision")
    await root.run()
    assert "## Decisions" in await root.text()
    await root.save("We switched the orders from MySQL to PostgreSQL.", "fact")
    assert (await root.run()).superseded == 1
    text = await root.text()
    assert "## Decisions" not in text
    assert "## Mine\n" in text
    assert "## Notes\n" in text


async def test_a_section_emptied_by_forgetting_goes_at_once_and_stays_away() -> None:
    root = Root()
    gone = await root.save(WISH, "preference")
    await root.save(LIMIT)
    await root.run()
    assert "## Preferences" in await root.text()
    await forget(root.files, root.changes, gone.id, key=KEY, who="user")
    assert "## Preferences" not in await root.text()
    await root.save(RULE)
    await root.run()
    assert "## Preferences" not in await root.text()
