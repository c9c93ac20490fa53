"""Fanout: all are given the same entry, also when one of them is in trouble, and the trouble is told."""

import logging
from pathlib import Path

import pytest

from hand_made_roots import begun
from plain_stores import SHOP, Shelves, store_parts
from ricordo import Entry
from ricordo.errors import EntryNotFound, InvalidSetting, StorageError, StorageFailed, StorageFull
from ricordo.messages import Tokens
from ricordo.runtime import open_store
from ricordo.runtime.stores import open_backend
from ricordo.scope import Scope
from ricordo.search import Hit, Query
from ricordo.stores import Backend, Closes, Driver, Forgets, KeepsSessions, Lists, NoMemory, SessionNotes, Store, Undoes
from ricordo.stores.fanout import FanoutMember, FanoutStore
from ricordo.stores.in_memory import MockStore

pytestmark = [pytest.mark.anyio, pytest.mark.req("GO-BK-plug")]


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

    async def preamble(self, budget: Tokens | None) -> str:
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
    return FanoutStore(store_parts(), [part(f"store {at}", one) for at, one in enumerate(backends)]).bind(SHOP)


def part(name: str, backend: Backend) -> FanoutMember:
    """Return a part that is open."""

    async def enter() -> Backend:
        return backend

    made = FanoutMember(name, enter)
    made.backend = backend
    return made


async def test_all_keep_the_entry_as_the_first_does() -> None:
    first, second = mock(), mock()
    saved = await fanned(first, second).save(Entry(content="One."))
    assert saved.id
    assert first.saved_entries == second.saved_entries == [saved]


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
    assert len(healthy[0].saved_entries) == 1
    assert healthy[0].saved_entries == healthy[1].saved_entries
    assert shaky.done == [f"write {healthy[0].saved_entries[0].id}"]


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


@pytest.mark.req("HE-O-audit-forget")
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
    assert (first.saved_entries, [entry.content for entry in second.saved_entries]) == ([], ["Two."])
    assert (await forgets.forget(second.saved_entries[0].id, who="me")).content == "Two."
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


def broken(folder: Path) -> Path:
    """Make a folder of which it can't be read whose it is, and return the file that keeps it closed."""
    begun(folder)
    (folder / "project.json").write_bytes(b"{")
    return folder / "project.json"


@pytest.mark.parametrize("order", ["jsonl:{0}/away,json:{0}/here", "json:{0}/here,jsonl:{0}/away"])
async def test_what_can_not_be_opened_is_told_once_and_gets_what_it_missed_when_it_can_be(
    order: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    marker = broken(tmp_path / "away")
    with caplog.at_level(logging.WARNING, logger="ricordo.stores"):
        async with open_backend(f"fanout:{order.format(tmp_path)}", scope=SHOP) as backend:
            store = backend.bind(SHOP)
            saved = [await store.save(Entry(content=content)) for content in ("One.", "Two.")]
            assert [hit.entry for hit in await store.recall("")] == saved[::-1]
            assert isinstance(backend, FanoutStore)
            assert "project.json" in backend.unavailable[f"jsonl:{tmp_path}/away"]
            marker.unlink()
            saved.append(await store.save(Entry(content="Three.")))
            assert backend.unavailable == {}
            assert [hit.entry for hit in await store.recall("")] == saved[::-1]
    (record,) = caplog.records
    assert f"The store jsonl:{tmp_path}/away can't be opened" in record.getMessage()
    for address in (f"jsonl:{tmp_path}/away", f"json:{tmp_path}/here"):
        async with open_store(address, scope=SHOP) as one:
            assert [hit.entry for hit in await one.recall("")] == saved[::-1]


@pytest.mark.req("HE-O-audit-forget")
async def test_what_a_closed_store_may_still_hold_is_not_said_to_be_forgotten(tmp_path: Path) -> None:
    address = f"fanout:json:{tmp_path}/here,jsonl:{tmp_path}/away"
    async with open_store(address, scope=SHOP) as store:
        old = await store.save(Entry(content="One."))
    marker = tmp_path / "away" / "project.json"
    content = marker.read_bytes()
    marker.write_bytes(b"{")
    async with open_store(address, scope=SHOP) as store:
        new = await store.save(Entry(content="Two."))
        forgets = store.offers(Forgets)
        assert forgets is not None
        # the closed one never got it
        assert await forgets.forget(new.id, who="me") == new
        with pytest.raises(StorageFailed, match=r"but not by all\. jsonl:.*away: .*project\.json"):
            await forgets.forget(old.id, who="me")
        marker.write_bytes(content)
        kept = await store.save(Entry(content="Three."))
        assert (await store.recall("two"), [hit.entry for hit in await store.recall("")]) == ([], [kept])
    async with open_store(f"jsonl:{tmp_path}/away", scope=SHOP) as one:
        assert [hit.entry for hit in await one.recall("")] == [kept, old]


async def test_a_fanout_of_which_nothing_can_be_opened_can_not_be_either(tmp_path: Path) -> None:
    broken(tmp_path / "one")
    broken(tmp_path / "two")
    with pytest.raises(StorageError, match=r"project\.json"):
        async with open_store(f"fanout:jsonl:{tmp_path}/one,json:{tmp_path}/two", scope=SHOP):
            pass


async def test_a_part_that_is_a_mistake_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="jsnol"):
        async with open_store(f"fanout:jsonl:{tmp_path}/one,jsnol:{tmp_path}/two", scope=SHOP):
            pass
