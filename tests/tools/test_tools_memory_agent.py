"""The memory tools in an agent: there while memory is on, callable at any step, over whatever store it has."""

import re
from pathlib import Path

import pytest

from agents_at_work import SCOPE, settings
from hand_made_roots import begun
from memory_shelf import shelf
from places import place_of
from ricordo import BuiltinTools, Entry, HarnessAgent, Memory, MemoryConfig, Scope
from ricordo.agent import Approval, loop
from ricordo.agent.tools import ApprovalHandler
from ricordo.errors import StorageFull
from ricordo.guard import parse_fence
from ricordo.messages import Text, ToolResult
from ricordo.stores import Store
from ricordo.testing import Call, Calls, RecordedRequest, Respond, Say, ScriptedModel

pytestmark = pytest.mark.anyio

MEMORY = {"remember", "recall", "memory_search", "memory_get"}


def _agent(
    model: ScriptedModel,
    root: Path,
    *,
    store: str | Store | None = None,
    tools: bool = True,
    approve: ApprovalHandler | None = None,
) -> HarnessAgent:
    return HarnessAgent(
        model,
        memory=MemoryConfig(root=root, store=store),
        scope=SCOPE,
        session="s",
        builtin_tools=BuiltinTools(memory=tools),
        settings=settings(root),
        approve=approve,
    )


def _results(model: ScriptedModel) -> list[str]:
    """Return what the tools told, in order."""
    parts = [part for message in model.requests[-1].messages for part in message.parts]
    results = [part for part in parts if isinstance(part, ToolResult)]
    assert not any(result.is_error for result in results), results
    return ["".join(part.text for part in result.parts if isinstance(part, Text)) for result in results]


@pytest.mark.req("AS-INDEX-05", "AS-SESS-01", "GO-G21", "GO-G23")
async def test_memory_is_searched_and_read_at_any_step_while_it_is_on(tmp_path: Path) -> None:
    root = begun(tmp_path / ".ricordo", tmp_path / "data")
    (place_of(root) / "workspace/memory/topics").mkdir(parents=True)
    (place_of(root) / "workspace/MEMORY.md").write_text("# Memory\n\n- The pears ship on Friday.\n- Apples wait.\n")
    (place_of(root) / "workspace/memory/topics/fruit.md").write_text("# Fruit\n\nApples.\n\nPears come from Lucca.\n")
    (place_of(root) / "workspace/memory/2026-01-02.md").write_text(
        "# Day\n" + "\n".join(f"- Figs {at}." for at in range(9))
    )
    search = Call("memory_search", {"query": "pears"})
    get = Call("memory_get", {"path": "MEMORY.md", "start_line": 3, "end_line": 3})
    model = ScriptedModel([search, Calls(get, search), get, search, Say("On Friday.")])
    async with _agent(model, root) as agent:
        await agent.send("I said pears, and the pears are what I mean.")
    assert all({each.name for each in request.tools} >= MEMORY for request in model.requests)
    told = _results(model)
    found, read = [told[0], told[2], told[4]], [told[1], told[3]]
    for each in found:
        assert set(parse_fence(each) or ()) == {"The pears ship on Friday.", "Pears come from Lucca."}
        assert 'source="project MEMORY.md:3"' in each
        assert 'source="project memory/topics/fruit.md:5"' in each
    assert [parse_fence(each) for each in read] == [("- The pears ship on Friday.",)] * 2
    every = ScriptedModel(
        [Call("memory_search", {"query": "figs"}), Call("memory_get", {"path": "MEMORY.md"}), Say("Nine.")]
    )
    async with _agent(every, root) as agent:
        await agent.send("How many figs?")
    figs, whole = _results(every)[-2:]
    assert sorted(parse_fence(figs) or ()) == [f"Figs {at}." for at in range(9)]
    assert all(f'memory/2026-01-02.md:{line}"' in figs for line in range(2, 11))
    assert parse_fence(whole) == ("# Memory\n\n- The pears ship on Friday.\n- Apples wait.",)
    for switches in ({"tools": False}, {"store": "none"}):
        off = ScriptedModel([Say("Fine.")])
        async with _agent(off, root, **switches) as agent:
            await agent.send("Hello.")
        assert not {each.name for each in off.requests[0].tools} & MEMORY


@pytest.mark.req("AS-INDEX-05", "AS-FLUSH-04")
async def test_what_the_project_shares_is_found_with_the_path_that_memory_get_takes(tmp_path: Path) -> None:
    root = begun(tmp_path / ".ricordo", tmp_path / "data")
    async with Memory.open(root, scope=SCOPE, settings=settings(root)) as memory:
        await memory.remember("The pears ship on Friday.", scope=Scope(project=SCOPE.project))

    def reading(request: RecordedRequest) -> Call:
        found = request.messages[-1].tool_results[-1].text
        path, line = re.findall(r' (\S+\.md):(\d+)"', found)[0]
        return Call("memory_get", {"path": path, "start_line": int(line), "end_line": int(line)})

    model = ScriptedModel([Call("memory_search", {"query": "pears"}), Respond(reading), Say("On Friday.")])
    async with _agent(model, root) as agent:
        await agent.send("When?")
    assert "The pears ship on Friday." in _results(model)[-1]


@pytest.mark.req("GO-G21", "GO-G5", "GO-G20")
@pytest.mark.parametrize("address", ["", "jsonl"])
async def test_recall_goes_through_the_store_the_agent_is_given_in_its_order(tmp_path: Path, address: str) -> None:
    store: str | Store = f"{address}:{tmp_path / 'notes'}" if address else shelf(SCOPE)
    model = ScriptedModel(
        [
            Call("recall", {"query": "pear"}),
            *[Call("remember", {"content": f"Pear {number}.", "tags": ["fruit"]}) for number in range(7)],
            Say("Saved."),
            Call("recall", {"query": "PEAR"}),
            Call("recall", {"query": "pear", "limit": 2}),
            Call("recall", {"query": "", "limit": 1}),
            Call("recall", {"query": "xylophone"}),
            Say("Done."),
        ]
    )
    async with _agent(model, tmp_path / ".ricordo", store=store) as agent:
        await agent.send("Save.")
        await agent.send("Look.")
    told = _results(model)
    assert told[0] == "no matches."
    assert all(each.startswith("remembered.") for each in told[1:8])
    newest = [f"Pear {number}." for number in range(6, -1, -1)]
    assert [list(parse_fence(each) or ()) for each in told[8:11]] == [newest[:5], newest[:2], newest[:1]]
    assert told[11] == "no matches."
    if isinstance(store, Store):
        assert [hit.entry.content for hit in await store.recall("pear", 9)] == newest
        assert [hit.entry.tags for hit in await store.recall("pear", 1)] == [("fruit",)]
    else:
        assert any(b"Pear 6." in path.read_bytes() for path in (tmp_path / "notes").rglob("*") if path.is_file())


@pytest.mark.req("GO-G20")
async def test_what_a_store_can_not_save_is_a_failed_result_and_the_turn_goes_on(tmp_path: Path) -> None:
    store = shelf(SCOPE)

    async def refused(entry: Entry) -> Entry:
        raise StorageFull(f"There is no room for {entry.kind}.")

    model = ScriptedModel([Call("remember", {"content": "Pears ship on Friday."}), Say("It was not kept.")])
    async with _agent(model, tmp_path / ".ricordo", store=store) as agent:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(store, "save", refused)
            assert str(await agent.send("Remember it.")) == "It was not kept."
    (result,) = model.requests[-1].messages[-1].tool_results
    assert result.is_error
    assert "no room" in result.text


@pytest.mark.req("GO-G21", "GO-G5", "GO-G2")
def test_the_loop_knows_no_tool_of_memory_by_its_name() -> None:
    source = Path(loop.__file__).read_text(encoding="utf-8")
    assert not any(name in source for name in MEMORY)


@pytest.mark.req("GO-SWAP")
async def test_a_store_of_its_own_is_searched_by_its_recall(tmp_path: Path) -> None:
    store = shelf(SCOPE)
    await store.save(Entry(content="Pears ship on Friday."))
    model = ScriptedModel([Call("memory_search", {"query": "pears"}), Say("Done.")])
    async with _agent(model, tmp_path / ".ricordo", store=store) as agent:
        await agent.send("Go.")
    assert parse_fence(_results(model)[0]) == ("Pears ship on Friday.",)


@pytest.mark.req("GO-G26-diff")
async def test_nobody_is_asked_before_something_is_remembered(tmp_path: Path) -> None:
    questions: list[Approval] = []

    async def refused(asked: Approval) -> bool:
        questions.append(asked)
        return False

    root = tmp_path / ".ricordo"
    model = ScriptedModel([Call("remember", {"content": "Pears ship on Friday."}), Say("Kept."), Say("Bye.")])
    async with _agent(model, root, approve=refused) as agent:
        assert str(await agent.send("Remember it.")) == "Kept."
        assert [hit.entry.content for hit in await agent.store.recall("pears")] == ["Pears ship on Friday."]
    assert questions == []
    assert _results(model)[0].startswith("remembered.")
