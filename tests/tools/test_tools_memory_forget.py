"""forget: exactly the memory that was named, and only when a person approves."""

from pathlib import Path

import pytest

from desks import CONTEXT, Person
from memory_shelf import shelf
from ricordo import Entry
from ricordo.agent import ToolContext, get_effect, memory_tools
from ricordo.agent.tools import forget_tool
from ricordo.clock import MonotonicIds, SystemClock
from ricordo.errors import InvalidSetting, ToolFailed
from ricordo.events import Emitter
from ricordo.guard import Redactor
from ricordo.runtime import Dependencies, open_workspace
from ricordo.scope import Scope
from ricordo.stores import NoMemory, StoreParts

pytestmark = pytest.mark.anyio
SHOP = Scope(user="me", project="shop")


@pytest.mark.req("HE-O-audit-forget")
async def test_what_is_forgotten_is_said_and_gone_and_nothing_else(yes: Person) -> None:
    store = shelf()
    kept = await store.save(Entry(content="Pears ship on Friday."))
    wrong = await store.save(Entry(content="Pears ship\non Monday."))
    forget = forget_tool(store, approve=yes)
    assert get_effect(forget) == "acts"
    told = await forget({"entry_id": wrong.id[-8:], "why": "it was wrong"}, CONTEXT)
    assert told == f"forgotten: the fact …{wrong.id[-8:]}."
    assert [hit.entry.id for hit in await store.recall("pears")] == [kept.id]
    [asked] = yes.asked
    assert (asked.tool, asked.action) == ("forget", "forget")
    assert "Pears ship\non Monday." in asked.change


async def test_without_a_yes_nothing_is_forgotten(no: Person) -> None:
    store = shelf()
    entry = await store.save(Entry(content="Pears ship on Friday."))
    for person in (no, None):
        with pytest.raises(ToolFailed, match="nothing was forgotten"):
            await forget_tool(store, approve=person)({"entry_id": entry.id}, CONTEXT)
    assert len(no.asked) == 1
    assert len(await store.recall("pears")) == 1
    let_through = ToolContext(call_id="c", scope=SHOP, agent="main", session="s", approved=True)
    assert str(await forget_tool(store, approve=no)({"entry_id": entry.id}, let_through)).startswith("forgotten: ")
    assert len(no.asked) == 1
    assert await store.recall("pears") == []


async def test_an_id_that_names_none_or_several_forgets_nothing(yes: Person) -> None:
    store = shelf()
    for start in ("aa", "bb"):
        await store.save(Entry(content=f"Pears {start}.", id=f"{start}1234567890"))
    forget = forget_tool(store, approve=yes)
    for wrong, said in (
        ("34567890", "2 memories have ids"),
        ("none-of-these", "No memory has the id"),
        ("7890", "No memory has the id"),
        ("", "No id was given"),
    ):
        with pytest.raises(ToolFailed, match=f"{said}.*recall"):
            await forget({"entry_id": wrong}, CONTEXT)
    assert yes.asked == []
    assert len(await store.recall("pears")) == 2
    assert await forget({"entry_id": "^bb1234567890"}, CONTEXT) == "forgotten: the fact …34567890."


@pytest.mark.req("HE-O-audit-forget")
async def test_a_root_says_that_it_can_be_brought_back_and_it_can(tmp_path: Path, yes: Person) -> None:
    async with open_workspace(tmp_path / "root", SHOP, Dependencies.create()) as workspace:
        entry = await workspace.store.save(Entry(content="Pears ship on Friday."))
        forget = forget_tool(workspace.store, approve=yes)
        longer = await workspace.store.save(Entry(content="Pears ship on Friday. Apples do on Monday."))
        told = await forget({"entry_id": entry.id[-8:]}, CONTEXT)
        assert told == (
            f"forgotten: the fact …{entry.id[-8:]}. It can be brought back for 30 days. These still say it, or nearly: "
            f"memory …{longer.id[-8:]}. Ask the user whether they go too."
        )
        assert [hit.entry.id for hit in await workspace.store.recall("pears")] == [longer.id]
        assert "forget" not in {tool.spec.name for tool in memory_tools(workspace.store, workspace.memory_root.files)}


def test_a_store_that_can_not_forget_gets_no_such_tool() -> None:
    clock = SystemClock()
    parts = StoreParts(redactor=Redactor(bytes(32)), clock=clock, ids=MonotonicIds(clock), emitter=Emitter(clock, ()))
    with pytest.raises(InvalidSetting, match="can't forget"):
        forget_tool(NoMemory(parts).bind(SHOP))
