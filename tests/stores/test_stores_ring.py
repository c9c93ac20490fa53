"""Ring: the newest entries of each owner, and no more."""

from pathlib import Path

import pytest

from plain_stores import SHOP, Shelves
from ricordo import Entry
from ricordo.errors import EntryNotFound, InvalidSetting
from ricordo.guard import parse_fence
from ricordo.scope import Scope
from ricordo.stores import Forgets, Lists

pytestmark = pytest.mark.anyio


async def test_the_oldest_gives_way_to_the_next_of_the_same_owner(tmp_path: Path) -> None:
    async with Shelves(folder=tmp_path).open("ring:?capacity=3") as backend:
        store, other = backend.bind(SHOP), backend.bind(Scope(user="me", project="other"))
        await other.save(Entry(content="Another's."))
        saved = [await store.save(Entry(content=f"{number}")) for number in range(5)]
        assert [hit.entry for hit in await store.recall("", limit=9)] == saved[:1:-1]
        assert parse_fence(await store.preamble()) == ("4", "3", "2")
        lists, forgets = store.offers(Lists), store.offers(Forgets)
        assert lists is not None
        assert forgets is not None
        with pytest.raises(EntryNotFound):
            await lists.get(saved[0].id)
        await forgets.forget(saved[3].id, who="me")
        await store.save(Entry(content="5"))
        assert [entry.content for entry in await lists.entries()] == ["5", "4", "2"]
        assert len(await other.recall("")) == 1


async def test_a_ring_keeps_five_hundred_entries_unless_told_otherwise(tmp_path: Path) -> None:
    async with Shelves(folder=tmp_path).open("ring:") as backend:
        store = backend.bind(SHOP)
        for number in range(501):
            await store.save(Entry(content=f"{number}"))
        hits = await store.recall("", limit=1_000)
        assert (len(hits), hits[-1].entry.content) == (500, "1")


@pytest.mark.parametrize("capacity", ["0", "-1", "many", "1.5", "", "²"])
async def test_a_capacity_below_one_is_refused(capacity: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="from 1 up"):
        async with Shelves(folder=tmp_path).open(f"ring:?capacity={capacity}"):
            pass


async def test_nothing_outlives_the_backend(tmp_path: Path) -> None:
    shelves = Shelves(folder=tmp_path)
    async with shelves.open("ring:") as backend:
        await backend.bind(SHOP).save(Entry(content="One."))
        assert len(await backend.bind(SHOP).recall("")) == 1
    async with shelves.open("ring:") as backend:
        assert await backend.bind(SHOP).recall("") == []
