"""LangGraph's store over Ricordo: its interface, and LangMem's tools on it."""

import time
import warnings
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from framework_conformance import check_example, is_installed, run_page
from ricordo import Memory, Scope
from ricordo.errors import MemoryClosed
from ricordo.testing import Call, LoopbackServer, Say, ScriptItem

if not is_installed("langgraph"):
    pytest.skip("LangGraph is not installed: make test-adapters installs it", allow_module_level=True)

from langchain.agents import create_agent
from langgraph.store.base import GetOp, PutOp
from langgraph.store.memory import InMemoryStore

from langchain_driver import connect, say
from ricordo.adapters import RicordoStore

with warnings.catch_warnings():
    # one of its dependencies takes a name from where LangGraph had it before
    warnings.simplefilter("ignore")
    from langmem import create_manage_memory_tool, create_search_memory_tool

pytestmark = [pytest.mark.adapters, pytest.mark.anyio]
ANN, BOB = Scope(project="shop", user="ann"), Scope(project="shop", user="bob")
VALUES = st.dictionaries(
    st.sampled_from(["content", "kind", "a.b", "ü"]),
    st.recursive(
        st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=9),
        lambda inner: (
            st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["content", "x"]), inner, max_size=2)
        ),
        max_leaves=4,
    ),
    max_size=3,
)
ITEMS: list[tuple[tuple[str, ...], str, dict[str, Any]]] = [
    (("docs",), "a", {"content": "The ferry leaves at nine.", "pages": 3, "tags": ["sea"], "by": {"name": "Ann"}}),
    (("docs", "v1"), "a", {"content": "The kettle is blue.", "pages": 12, "by": {"name": "Bob"}}),
    (("docs", "v2"), "b", {"pages": 7, "text": "Two\nlines."}),
    (("notes", "v1"), "c", {"content": "  "}),
]
FILTERS: list[dict[str, Any]] = [
    {"pages": 3},
    {"pages": {"$gte": 7}},
    {"pages": {"$gt": 3, "$lt": 12}},
    {"pages": {"$ne": 3, "$lte": 12}},
    {"by": {"name": "Bob"}},
    {"tags": ["sea"]},
    {"content": {"$eq": "The kettle is blue."}},
]


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shelf")


def test_it_answers_as_the_store_of_langgraph_does(tmp_path: Path) -> None:
    theirs = InMemoryStore()
    with RicordoStore(scope=ANN, memory=tmp_path) as ours:
        for store in (theirs, ours):
            for namespace, key, value in ITEMS:
                store.put(namespace, key, {"content": "old"})
                store.put(namespace, key, value)
        ours.put(("gone",), "d", {"content": "x"})
        ours.delete(("gone",), "d")
        for namespace, key, value in ITEMS:
            item = ours.get(namespace, key)
            assert item is not None
            assert (item.namespace, item.key, item.value) == (namespace, key, value)
            assert item.created_at <= item.updated_at
        assert ours.get(("gone",), "d") is None
        for wanted in FILTERS:
            assert _found(ours.search(("docs",), filter=wanted)) == _found(theirs.search(("docs",), filter=wanted)), (
                wanted
            )
        assert len(ours.search((), limit=2)) == 2
        assert len(ours.search((), limit=9, offset=3)) == 1
        for options in (
            {},
            {"prefix": ("docs",)},
            {"suffix": ("v1",)},
            {"prefix": ("*", "v1")},
            {"max_depth": 1},
            {"limit": 1},
        ):
            assert ours.list_namespaces(**options) == sorted(theirs.list_namespaces(**options))
        assert (
            ours.batch([GetOp(("docs",), "new"), PutOp(("docs",), "new", {"a": 1}), GetOp(("docs",), "a")])[0] is None
        )


def _found(items: Any) -> list[tuple[Any, str, Any]]:
    return sorted(((item.namespace, item.key, item.value) for item in items), key=str)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=VALUES)
def test_any_value_is_read_as_it_was_put(shelf: Path, value: dict[str, Any]) -> None:
    with RicordoStore(scope=ANN, memory=shelf) as store:
        store.put(("any",), "value", value)
        item = store.get(("any",), "value")
        assert item is not None
        assert item.value == value


async def test_items_are_memories_and_memories_are_searched(tmp_path: Path) -> None:
    async with Memory.open(tmp_path, scope=ANN) as memory, RicordoStore(scope=ANN, memory=memory) as store:
        for namespace, key, value in ITEMS:
            await store.aput(namespace, key, value)
        await store.aput(("docs",), "hidden", {"content": "The ferry is white."}, index=False)
        (found,) = await store.asearch(("docs",), query="When does the ferry leave?")
        assert found.key == "a"
        assert found.score is not None
        assert await store.asearch(("notes",), query="When does the ferry leave?") == []
        (hit, *_) = await memory.recall("When does the ferry leave?")
        assert hit.entry.content == "The ferry leaves at nine."
        await memory.forget(hit.entry.id)
        assert await store.aget(("docs",), "a") is None
        assert await anyio.to_thread.run_sync(lambda: store.get(("docs", "v1"), "a")) is not None
        with pytest.raises(MemoryClosed, match="thread"):
            store.batch([GetOp(("docs",), "a")])
    async with RicordoStore(scope=BOB, memory=tmp_path) as other:
        assert await other.asearch(()) == []
        assert await other.alist_namespaces() == []
    with pytest.raises(MemoryClosed):
        await store.aget(("docs",), "a")


def test_an_item_is_gone_after_its_lifetime_unless_it_is_read(tmp_path: Path) -> None:
    with RicordoStore(scope=ANN, memory=tmp_path, ttl={"default_ttl": 60}) as store:
        store.put(("t",), "long", {"content": "long"})
        store.put(("t",), "short", {"content": "short"}, ttl=0.0001)
        time.sleep(0.05)
        assert store.get(("t",), "short") is None
        assert store.get(("t",), "long") is not None
        assert [item.key for item in store.search(("t",))] == ["long"]
        expires = store.run_blocking(store.memory.entries)[0].metadata["langgraph-expires"]
        store.get(("t",), "long", refresh_ttl=False)
        assert store.run_blocking(store.memory.entries)[0].metadata["langgraph-expires"] == expires
        store.get(("t",), "long")
        assert store.run_blocking(store.memory.entries)[0].metadata["langgraph-expires"] > expires


@pytest.mark.parametrize("blocks", [True, False])
async def test_the_tools_of_langmem_keep_and_find_memories(tmp_path: Path, blocks: bool) -> None:
    tools = [create_manage_memory_tool(("langmem",)), create_search_memory_tool(("langmem",))]
    script: list[ScriptItem] = [
        Call("manage_memory", {"content": "Ann drinks her tea with milk.", "action": "create"}),
        Say("Noted."),
        Call("search_memory", {"query": "tea"}),
        Say("With milk."),
    ]
    with LoopbackServer(script) as server:
        if blocks:
            with RicordoStore(scope=ANN, memory=tmp_path) as store:
                agent: Any = create_agent(connect(server.url), tools, store=store)
                for text in ("I drink tea with milk.", "How do I drink tea?"):
                    await anyio.to_thread.run_sync(agent.invoke, say(text))
        else:
            async with RicordoStore(scope=ANN, memory=tmp_path) as store:
                agent = create_agent(connect(server.url), tools, store=store)
                for text in ("I drink tea with milk.", "How do I drink tea?"):
                    await agent.ainvoke(say(text))
        assert server.problems == ()
    assert "tea with milk" in server.requests[-1].messages[-1].tool_results[0].text


def test_the_page_shows_what_happens(tmp_path: Path) -> None:
    with LoopbackServer([]) as server:
        assert "drink {'content': 'Ann drinks her tea with milk.'}" in run_page("langgraph", server.url, tmp_path)


def test_the_example_finds_what_it_kept_in_the_run_before(tmp_path: Path) -> None:
    kept = Call("manage_memory", {"content": "The user never eats nuts.", "action": "create"})
    check_example("langgraph_store", tmp_path, kept, Call("search_memory", {"query": "nuts"}))
