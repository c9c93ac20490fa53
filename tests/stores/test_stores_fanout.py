"""Fanout: all are given the same entry, also when one of them is in trouble, and the trouble is told."""

from pathlib import Path

import pytest

from plain_stores import SHOP, Shelves, store_parts
from ricordo.errors import EntryNotFound, InvalidSetting, StorageError, StorageFailed, StorageFull
from ricordo.index.contract import Query
from ricordo.recall.hits import Hit
from ricordo.scopes import Scope
from ricordo.stores import Undoes
from ricordo.stores.capabilities import Closes, Forgets, KeepsSessions, Lists, SessionNotes
from ricordo.stores.contract import Backend, Driver, Store
from ricordo.stores.fanout import FanoutStore
from ricordo.stores.mock import MockStore
from ricordo.stores.nothing import NoMemory
from ricordo.tokens import Tokens
from ricordo.workspace.entry import Entry

pytestmark = pytest.mark.anyio


class Shaky(Backend):
    """Fails while `error` is set; counts what it is asked to do."""

    def __init__(self, error: StorageError | None = None) -> None:
        super().__init__(store_parts())
        self.error = error
        self.done: list[str] = []

    def _driver(self, scope: Scope) -> Driver:
        del scope
        return ShakyDriver(self)


class ShakyDriver:
    def __init__(self, shaky: Shaky) -> None:
        self.shaky = shaky

    async def write(self, entry: Entry) -> Entry:
        self._do(f"write {entry.id}")
        return entry

    async def find(self, query: Query, limit: int) -> list[Hit]:
        del query, limit
        self._do("find")
        return []

    async def preface(self, budget: Tokens | None) -> str:
        del budget
        self._do("preface")
        return "from the shaky one"

    async def close(self) -> None:
        self._do("close")

    async def close_session(self, notes: SessionNotes) -> str:
        self._do(f"close {notes.session}")
        return "sessions/s.md"

    async def pending_sessions(self) -> tuple[str, ...]:
        self._do("pending")
        return ("s",)

    def _do(self, what: str) -> None:
        self.shaky.done.append(what)
        if self.shaky.error is not None:
            raise self.shaky.error


def mock() -> MockStore:
    return MockStore(store_parts(), SHOP)


def fanned(*backends: Backend) -> Store:
    return FanoutStore(store_parts(), [(f"store {at}", one) for at, one in enumerate(backends)]).bind(SHOP)


async def test_all_keep_the_entry_as_the_first_does() -> None:
    first, second = mock(), mock()
    saved = await fanned(first, second).save(Entry(content="One."))
    assert saved.id
    assert first.saved == second.saved == [saved]


@pytest.mark.parametrize("place", [0, 1, 2])
async def test_when_one_fails_the_others_have_the_entry_and_the_error_names_both(place: int) -> None:
    shaky, healthy = Shaky(StorageFull("No room.")), [mock(), mock()]
    backends: list[Backend] = [*healthy]
    backends.insert(place, shaky)
    with pytest.raises(StorageFailed) as raised:
        await fanned(*backends).save(Entry(content="One."))
    names = [f"store {at}" for at in range(3) if at != place]
    assert str(raised.value) == f"Done by {names[0]}, {names[1]}, but not by all. store {place}: No room."
    assert isinstance(raised.value.__cause__, StorageFull)
    assert len(healthy[0].saved) == 1
    assert healthy[0].saved == healthy[1].saved
    assert shaky.done == [f"write {healthy[0].saved[0].id}"]


async def test_when_all_fail_the_first_error_is_raised() -> None:
    with pytest.raises(StorageFull):
        await fanned(Shaky(StorageFull()), Shaky(StorageFailed())).save(Entry(content="One."))
    with pytest.raises(StorageFull):
        await fanned(Shaky(StorageFull()), Shaky(StorageFailed())).recall("x")


async def test_reading_comes_from_the_first_that_answers() -> None:
    first, shaky, last = mock(), Shaky(StorageFailed()), mock()
    saved = await last.bind(SHOP).save(Entry(content="Only in the last."))
    store = fanned(shaky, last, first)
    assert [hit.entry for hit in await store.recall("only")] == [saved]
    assert "Only in the last." in await store.preamble()
    assert await fanned(first, last).recall("only") == []
    shaky.error = None
    assert await store.preamble() == "from the shaky one"


async def test_forgetting_and_closing_reach_all_that_offer_them() -> None:
    first, second, shaky = mock(), mock(), Shaky()
    store = fanned(first, NoMemory(store_parts()), shaky, second)
    saved = await store.save(Entry(content="One."))
    await second.bind(SHOP).save(Entry(content="Two."))
    forgets, closes, keeps = store.offers(Forgets), store.offers(Closes), store.offers(KeepsSessions)
    assert forgets is not None
    assert closes is not None
    assert keeps is not None
    assert await forgets.forget(saved.id[:20], who="me") == saved
    assert (first.saved, [entry.content for entry in second.saved]) == ([], ["Two."])
    assert (await forgets.forget(second.saved[0].id, who="me")).content == "Two."
    with pytest.raises(EntryNotFound):
        await forgets.forget(saved.id, who="me")
    await closes.close()
    assert await keeps.close_session(SessionNotes(session="s")) == "sessions/s.md"
    assert await keeps.pending_sessions() == ("s",)
    assert shaky.done[1:] == ["close", "close s", "pending"]


async def test_only_what_one_of_them_offers_is_offered() -> None:
    store = fanned(NoMemory(store_parts()), Shaky())
    assert (store.offers(Lists), store.offers(Forgets), store.offers(Undoes)) == (None, None, None)
    assert store.offers(Closes) is not None
    assert fanned(mock()).offers(Closes) is None


async def test_an_address_names_the_stores_and_each_is_closed_at_the_end(tmp_path: Path) -> None:
    shelves = Shelves(folder=tmp_path)
    async with shelves.open("fanout:jsonl:a,kv:b") as backend:
        saved = await backend.bind(SHOP).save(Entry(content="One."))
    for address in ("jsonl:a", "kv:b"):
        async with shelves.open(address) as backend:
            assert [hit.entry for hit in await backend.bind(SHOP).recall("")] == [saved]


@pytest.mark.parametrize("address", ["fanout:", "fanout:jsonl:a,,kv:b", "fanout:jsonl:a?copies=2"])
async def test_an_address_without_stores_is_refused(address: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting):
        async with Shelves(folder=tmp_path).open(address):
            pass
