"""Mock and none: a list that tests can look into, and a store that keeps nothing."""

from pathlib import Path

import pytest

from plain_stores import SHOP, Shelves
from ricordo import Entry
from ricordo.errors import InvalidSetting
from ricordo.guard import parse_fence
from ricordo.messages import Tokens
from ricordo.scope import Scope
from ricordo.stores import Forgets, Lists
from ricordo.stores.in_memory import MockStore
from ricordo.testing import BUILT_IN_STORES, STORE_CHECKS

pytestmark = [pytest.mark.anyio, pytest.mark.req("GO-BK-mock")]


@pytest.mark.req("GO-BK-mock", "HE-O-audit-forget")
async def test_saved_holds_what_everybody_saved_in_its_order(tmp_path: Path) -> None:
    async with Shelves(folder=tmp_path).open("mock:") as backend:
        assert isinstance(backend, MockStore)
        store, other = backend.bind(SHOP), backend.bind(Scope(user="you"))
        one = await store.save(Entry(content="One.", kind="decision"))
        two = await other.save(Entry(content="Two."))
        wide = await store.save(Entry(content="Wide.", scope=Scope(user="me"), reason="all my projects"))
        assert backend.saved_entries == [one, two, wide]
        assert [hit.entry for hit in await store.recall("")] == [wide, one]
        assert [hit.entry for hit in await store.recall("ONE")] == [one]
        assert parse_fence(await store.preamble()) == ("Wide.", "One.")
        forgets = store.offers(Forgets)
        assert forgets is not None
        await forgets.forget(one.id, who="me")
        assert backend.saved_entries == [two, wide]


@pytest.mark.req("GO-BK-mock")
async def test_a_list_passes_the_suite_of_every_store(tmp_path: Path) -> None:
    subject = BUILT_IN_STORES["mock"]()
    applying = [check for check in STORE_CHECKS if not subject.skip_reason(check.needs)]
    assert {check.invariant for check in applying} >= {"G1", "I1", "I2", "I3", "I4", "I5", "I10", "I11", "I12"}
    for check in applying:
        (tmp_path / check.name).mkdir()
        await check(subject, tmp_path / check.name)


@pytest.mark.req("GO-BK-mock")
async def test_a_preamble_is_all_of_the_list(tmp_path: Path) -> None:
    async with Shelves(folder=tmp_path).open("mock:") as backend:
        store = backend.bind(SHOP)
        for number in range(140):
            await store.save(Entry(content=f"Pear {number}.", kind=("fact", "note", "preamble")[number % 3]))
        whole = await store.preamble(Tokens(20_000))
        assert parse_fence(whole) == tuple(f"Pear {number}." for number in range(139, -1, -1))
        assert [hit.entry.content for hit in await store.recall("PEAR 139", 20)] == ["Pear 139."]
        assert len(await store.recall("pear", 199)) == 140


@pytest.mark.req("GO-G3")
async def test_where_nothing_is_kept_nothing_is_found(tmp_path: Path) -> None:
    shelves = Shelves(folder=tmp_path)
    async with shelves.open("none:") as backend:
        store = backend.bind(SHOP)
        saved = await store.save(Entry(content="One."))
        assert saved.id
        assert (await store.recall(""), await store.preamble()) == ([], "")
        assert (await store.recall("One", 1), await store.preamble(Tokens(1_000))) == ([], "")
        assert (store.offers(Lists), store.offers(Forgets)) == (None, None)
    with pytest.raises(InvalidSetting, match="it has none"):
        async with shelves.open("none:?keep=all"):
            pass
