"""A bound store: what a backend offers is exactly what was asked for, and nothing gets past scope and guard."""

from dataclasses import replace
from typing import Protocol, runtime_checkable

import pytest

from ricordo import Entry
from ricordo.clock import MonotonicIds, SystemClock
from ricordo.curation.marks import MarkAct
from ricordo.errors import ReasonRequired, ScopeMismatch
from ricordo.events import Emitter
from ricordo.guard import Redactor
from ricordo.messages import Tokens
from ricordo.scope import Scope
from ricordo.search import MEMORY_DOCUMENT_TYPES, Hit, Query
from ricordo.stores import Backend, Driver, Forgets, Lists, StoreParts, Undoes
from ricordo.stores.contract import Marks

pytestmark = [pytest.mark.anyio, pytest.mark.req("GO-BK-plug")]

SHOP = Scope(user="me", project="shop")
SECRET = "ghp_" + "1A2b3C4d5E6f7G8h9I0j" * 2


class Shelf(Backend):
    """A backend that somebody else wrote: a list."""

    def __init__(self) -> None:
        clock = SystemClock()
        super().__init__(
            StoreParts(redactor=Redactor(bytes(32)), clock=clock, ids=MonotonicIds(clock), emitter=Emitter(clock, ()))
        )
        self.kept: list[Entry] = []
        self.asked: list[Query] = []

    def _driver(self, scope: Scope) -> Driver:
        del scope
        return ShelfDriver(self)


class ShelfDriver:
    """Writes to the shelf and lists it, but can't forget."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf

    async def write(self, entry: Entry) -> Entry:
        self.shelf.kept.append(entry)
        return entry

    async def find(self, query: Query, limit: int) -> list[Hit]:
        del limit
        self.shelf.asked.append(query)
        return []

    async def preamble(self, budget: Tokens | None) -> str:
        del budget
        return ""

    async def entries(self) -> list[Entry]:
        return list(self.shelf.kept)

    async def get(self, entry_id: str) -> Entry:
        return next(entry for entry in self.shelf.kept if entry.id == entry_id)


@runtime_checkable
class Writes(Protocol):
    """What nobody outside may have."""

    async def write(self, entry: Entry) -> Entry: ...


@runtime_checkable
class WritesAndLists(Lists, Writes, Protocol):
    """The same, behind something harmless."""


async def test_a_capability_has_only_what_its_protocol_names() -> None:
    store = Shelf().bind(SHOP)
    saved = await store.save(Entry(content="One."))
    lists = store.offers(Lists)
    assert isinstance(lists, Lists)
    assert await lists.entries() == [saved]
    assert await lists.get(saved.id) == saved
    assert store.offers(Lists) is lists
    other = Shelf().bind(SHOP).offers(Lists)
    assert other is not None
    assert await other.entries() == []
    assert {name for name in dir(lists) if not name.startswith("__")} == {"entries", "get"}
    for hook in ("write", "find", "preamble", "shelf"):
        assert not hasattr(lists, hook)
    assert store.offers(Forgets) is None
    assert store.offers(Undoes) is None


class MarkingShelf(Shelf):
    """A backend whose memories can be pinned, too."""

    def _driver(self, scope: Scope) -> Driver:
        del scope
        return MarkingDriver(self)


class MarkingDriver(ShelfDriver):
    """Pins without looking."""

    async def mark_entry(self, entry_id: str, act: MarkAct, *, who: str) -> Entry:
        del who
        return replace(await self.get(entry_id), pinned=act == "pin")


async def test_what_a_backend_of_another_returns_never_shows_a_secret_that_was_edited_in() -> None:
    shelf = MarkingShelf()
    store = shelf.bind(SHOP)
    saved = await store.save(Entry(content="The token."))
    shelf.kept[0] = replace(saved, content=f"The token is {SECRET}.")
    marks, lists = store.offers(Marks), store.offers(Lists)
    assert marks is not None
    assert lists is not None
    pinned = await marks.mark_entry(saved.id, "pin", who="me")
    assert pinned.pinned
    for entry in (pinned, await lists.get(saved.id), *(await lists.entries())):
        assert SECRET not in entry.content
        assert "The token is " in entry.content


@pytest.mark.parametrize("asked", [Writes, WritesAndLists, ShelfDriver, object])
def test_what_writes_without_the_guard_is_never_handed_out(asked: type[object]) -> None:
    assert Shelf().bind(SHOP).offers(asked) is None


async def test_a_text_is_looked_for_in_memories_and_a_query_where_it_says() -> None:
    shelf = Shelf()
    store = shelf.bind(SHOP)
    await store.recall("x")
    await store.recall(Query(text="x"))
    assert [query.document_types for query in shelf.asked] == [MEMORY_DOCUMENT_TYPES, Query(text="x").document_types]


@pytest.mark.req("HE-C5-required")
@pytest.mark.parametrize(
    "wider",
    [Scope(user="me"), Scope(team="red"), Scope(tenant="t"), Scope(user="me", team="red"), Scope(agent="coder")],
)
async def test_what_is_wider_than_the_project_needs_a_reason_whoever_it_is_for(wider: Scope) -> None:
    store = Shelf().bind(Scope(tenant="t", user="me", team="red", project="shop", agent="coder"))
    with pytest.raises(ReasonRequired):
        await store.save(Entry(content="For more than us.", scope=wider, reason=" "))
    saved = await store.save(Entry(content="For more than us.", scope=wider, reason="they all build on it"))
    assert (saved.scope, saved.reason) == (wider, "they all build on it")


@pytest.mark.req("HE-C5-required")
async def test_a_session_is_where_an_entry_comes_from_and_a_simple_store_keeps_nothing_for_it_alone() -> None:
    store = Shelf().bind(replace(SHOP, session="s1"))
    entry = await store.save(Entry(content="Now."))
    assert entry.scope == SHOP
    assert entry.source.session == "s1"
    with pytest.raises(ScopeMismatch, match="one session alone"):
        await store.save(Entry(content="For now.", scope=Scope(user="me", session="s1")))
    with pytest.raises(ReasonRequired):
        await store.save(Entry(content="Everywhere.", scope=Scope(user="me")))
