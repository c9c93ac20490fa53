"""An entry that was copied to other documents is one memory: forgetting takes all of it, undoing brings all of it."""

from datetime import UTC, date, datetime

import pytest

from ricordo import Entry
from ricordo.clock import MonotonicIds, SystemClock
from ricordo.curation import undo_change
from ricordo.curation.forget import forget
from ricordo.errors import EntryNotFound
from ricordo.guard import Redactor
from ricordo.storage import FileStore
from ricordo.testing import InMemoryFiles
from ricordo.workspace import (
    MEMORY_PATH,
    TOMBSTONES,
    ChangeSets,
    append_entries,
    list_history,
    read_all_entries,
    render_entry,
)
from ricordo.workspace.ledger import find_entry

pytestmark = [pytest.mark.anyio, pytest.mark.req("HE-O-audit-forget")]

KEY = bytes(32)
TOPIC = "workspace/memory/topics/shop.md"
ARCHIVE = "workspace/memory/archive/2026-08-01.md"


def change_sets(files: FileStore) -> ChangeSets:
    clock = SystemClock()
    return ChangeSets(files, clock=clock, ids=MonotonicIds(clock))


async def copied(files: InMemoryFiles, content: str) -> Entry:
    """Save an entry, and copy it to curated memory, a topic and an archive, in the topic with other words."""
    entry = Entry(content=content, id=MonotonicIds(SystemClock()).new(), time=datetime(2026, 11, 21, tzinfo=UTC))
    await append_entries(files, date(2026, 11, 21), [entry, Entry(content="Other.", id="other")], Redactor(KEY))
    bullet = render_entry(entry).encode()
    await files.create(MEMORY_PATH, b"# Memory\n\n" + bullet + b"- Kept.\n" + bullet)
    await files.create(TOPIC, b"# Shop\n\n" + bullet.replace(b"Postgres", b"PostgreSQL"))
    await files.create(ARCHIVE, bullet)
    return entry


async def state(files: FileStore) -> dict[str, bytes]:
    return {info.path: (await files.read(info.path)).data for info in await files.list("workspace")}


@pytest.mark.req("FC-UNDO")
async def test_forgetting_takes_every_copy_in_one_change_set_and_undoing_brings_all_back() -> None:
    files = InMemoryFiles()
    changes = change_sets(files)
    entry = await copied(files, "We use Postgres.")
    before = await state(files)
    gone = await forget(files, changes, entry.id[:-1], key=KEY, who="user")
    assert sorted(found.entry.content for found in await read_all_entries(files)) == ["Kept.", "Other."]
    assert {changed.path for changed in gone.change.files} >= {MEMORY_PATH, TOPIC, ARCHIVE}
    assert b"Postgres" not in b"".join((await state(files)).values())
    stones = (await files.read(TOMBSTONES)).data
    assert stones.count(entry.id.encode()) == 2
    assert len(await changes.list_changes()) == 1
    [item] = [item for item in await list_history(files, changes) if item.action == "forget"]
    await undo_change(files, changes, item, who="user")
    assert await state(files) == before


async def test_an_entry_is_found_by_its_id_or_enough_of_it_also_one_written_by_hand() -> None:
    files = InMemoryFiles()
    entry = await copied(files, "We use Postgres.")
    hand = next(found.entry for found in await read_all_entries(files) if found.entry.content == "Kept.")
    for wanted in (entry, hand):
        assert (await find_entry(files, wanted.id)).entry.content == wanted.content
        assert (await find_entry(files, wanted.id[:-2])).entry.id == wanted.id
        with pytest.raises(EntryNotFound):
            await find_entry(files, wanted.id[:5])
    await files.append(MEMORY_PATH, b"- Near. ^" + entry.id[:-1].encode() + b"0z\n", header=b"")
    with pytest.raises(EntryNotFound, match="2 memories"):
        await find_entry(files, entry.id[:-1])
    with pytest.raises(EntryNotFound):
        await find_entry(files, "")
    with pytest.raises(EntryNotFound, match="has the fact fact_4acc033d: `ricordo profile show`"):
        await find_entry(files, "fact_4acc033d")
