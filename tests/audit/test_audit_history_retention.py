"""History is kept for a while, and what stands in the files never depends on it."""

from datetime import UTC, datetime, timedelta

import pytest

from hand_clock import HandClock
from ricordo.clock import MonotonicIds
from ricordo.errors import ChangeNotFound
from ricordo.storage import ABSENT, compute_version
from ricordo.testing import InMemoryFiles
from ricordo.workspace import ChangeSets, Edit
from ricordo.workspace.history.change_sets import Change, FileChange
from ricordo.workspace.history.retention import HistoryConfig, select_expired, trim_history

pytestmark = [pytest.mark.anyio, pytest.mark.req("FC-UNDO")]

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
PATH = "workspace/MEMORY.md"


class Shelf:
    """A root with one file, which is written to day by day."""

    def __init__(self) -> None:
        self.files = InMemoryFiles()
        self.clock = HandClock(NOW)
        self.changes = ChangeSets(self.files, clock=self.clock, ids=MonotonicIds(self.clock))
        self.version = ABSENT

    async def write(self, text: str, *, days_ago: int) -> Change:
        self.clock.time = NOW - timedelta(days=days_ago)
        edit = Edit(path=PATH, expected_hash=self.version, data=text.encode())
        change = await self.changes.apply([edit], act="edit", who="user")
        self.version = compute_version(text.encode())
        self.clock.time = NOW
        return change

    async def kept(self) -> list[str]:
        return [change.id for change in await self.changes.list_changes()]

    async def contents(self) -> int:
        return len(await self.files.list("history/objects"))


async def test_what_is_older_than_ninety_days_goes_and_a_content_that_a_newer_change_names_stays() -> None:
    shelf = Shelf()
    old = await shelf.write("one", days_ago=120)
    edge = await shelf.write("two", days_ago=89)
    new = await shelf.write("three", days_ago=1)
    trimmed = await trim_history(shelf.files, shelf.changes, now=NOW)
    assert trimmed.counts == {"changes": 1, "history_bytes": 0}
    assert await shelf.kept() == [new.id, edge.id]
    assert await shelf.changes.read_content(edge.files[0].before) == b"one", "its undo still works"
    with pytest.raises(ChangeNotFound):
        await shelf.changes.get_change(old.id)
    assert (await shelf.files.read(PATH)).data == b"three"
    again = await trim_history(shelf.files, shelf.changes, now=NOW)
    assert again.changes == again.bytes == 0


async def test_contents_that_nothing_names_any_more_go_with_the_last_change_that_did() -> None:
    shelf = Shelf()
    for number in range(4):
        await shelf.write(f"text {number}", days_ago=200 - number)
    trimmed = await trim_history(shelf.files, shelf.changes, now=NOW)
    assert trimmed.changes == 4
    assert trimmed.bytes > 0
    assert await shelf.kept() == []
    assert await shelf.contents() == 0
    assert (await shelf.files.read(PATH)).data == b"text 3"


def change(number: int, days: int, *, size_of: str = "") -> Change:
    file = FileChange(path=PATH, before=ABSENT, after=size_of or f"v{number}")
    return Change(id=f"{number:02}", at=NOW - timedelta(days=days), actor="u", reason="", action="edit", files=(file,))


def test_what_takes_too_much_room_goes_oldest_first_but_never_within_thirty_days() -> None:
    records = [change(number, days) for number, days in enumerate((80, 60, 40, 20, 10))]
    sizes = {f"v{number}": 100 for number in range(5)}
    config = HistoryConfig(max_bytes=350)
    assert select_expired(records, sizes, now=NOW, config=config) == ["00", "01"]
    assert select_expired(records, sizes, now=NOW, config=HistoryConfig(max_bytes=1)) == ["00", "01", "02"]
    assert select_expired(records, sizes, now=NOW, config=HistoryConfig(max_bytes=500)) == []
    shared = [change(number, days, size_of="same") for number, days in enumerate((80, 60, 40))]
    assert select_expired(shared, {"same": 100}, now=NOW, config=HistoryConfig(max_bytes=100)) == [], "counted once"
    assert select_expired([], {}, now=NOW, config=config) == []


@pytest.mark.parametrize("broken", ["history/changes/torn.json", "history/pending/going.json"])
async def test_nothing_is_given_up_while_a_change_is_cut_off_or_can_not_be_read(broken: str) -> None:
    shelf = Shelf()
    await shelf.write("one", days_ago=200)
    await shelf.files.create(broken, b"{")
    assert (await trim_history(shelf.files, shelf.changes, now=NOW)).changes == 0
    assert await shelf.contents() == 1
