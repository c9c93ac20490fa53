"""What a person has forgotten is told by nothing that an agent, or who asks memory, gets to see."""

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

from agent_arguments import agent_arguments
from agents_at_work import SCOPE, settings, transcript
from places import place_of
from ricordo import HarnessAgent, Memory
from ricordo.models import ChatModel
from ricordo.stores import Forgets, Lists
from ricordo.testing import Call, Hold, RecordedRequest, Say, ScriptedModel
from ricordo.workspace import Fact, FactSource

if TYPE_CHECKING:
    from ricordo.testing import ScriptItem

pytestmark = [pytest.mark.anyio, pytest.mark.req("HE-O-audit-forget")]

SALARY = "The user earns 5000 EUR a month."
MAIN = "We deploy only from main."


def agent(model: ChatModel, root: Path, session: str = "one", **more: object) -> HarnessAgent:
    return HarnessAgent(
        model, **agent_arguments(workspace=root, scope=SCOPE, session=session, settings=settings(root), file_tools=True,
        closing_summary="sync", **more),
    )  # fmt: skip


def told(request: RecordedRequest) -> str:
    """Return all that a request says to the model."""
    return "\n".join(
        "\n".join([each.text, *(call.arguments for call in each.tool_calls), *(one.text for one in each.tool_results)])
        for each in request.messages
    )


async def remembered(root: Path) -> str:
    """Let an agent remember two things in a session of two turns, and return the id of the one to be forgotten."""
    script: list[ScriptItem] = [
        Call("remember", {"content": SALARY}),
        Call("remember", {"content": MAIN}),
        Say("Noted: you earn 5000 EUR a month, and deploy from main."),
        Call("recall", {"query": "What does the user earn each month?"}),
        Say("You earn 5000 EUR a month."),
        Say("The user told what they earn: 5000 EUR a month. They deploy only from main."),
    ]
    async with agent(ScriptedModel(script), root) as one:
        await one.send("Remember that I earn 5000 EUR a month, and that we deploy only from main.")
        await one.send("What do I earn?")
    async with Memory.open(root, scope=SCOPE, settings=settings(root)) as memory:
        return next(entry.id for entry in await memory.entries() if entry.content == SALARY)


async def test_recall_search_and_answers_find_no_copy_of_what_was_forgotten_and_all_else(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    gone = await remembered(root)
    async with Memory.open(root, scope=SCOPE, settings=settings(root)) as memory:
        assert "5000 EUR" in (await memory.answer("What does the user earn a month?")).text
        before = {entry.id: entry for entry in await memory.entries()}
        await memory.forget(gone)
        answer = await memory.answer("What does the user earn a month?")
        assert "5000 EUR" not in answer.text
        assert not [hit for hit in answer.others if "5000 EUR" in hit.entry.content]
        for query in ("5000 EUR", "what does the user earn a month", "remember"):
            found = await memory.search(query, limit=50, around=True)
            assert not [hit for hit in found if "5000 EUR" in repr(hit)], query
            assert not [hit for hit in await memory.recall(query, limit=50) if "5000 EUR" in repr(hit)]
        assert "5000 EUR" not in await memory.preamble()
        assert (await memory.answer("What do we deploy from?")).found
        assert {entry.id: entry for entry in await memory.entries()} == {
            name: entry for name, entry in before.items() if "5000 EUR" not in entry.content
        }
        # the transcript is a record, and stays one until it is erased
        assert "5000 EUR" in repr((await memory.session("one")).messages)
    for path in [
        *(place_of(root) / "workspace" / "sessions").glob("*.md"),
        place_of(root) / "workspace" / "index.json",
    ]:
        assert "5000 EUR" not in path.read_text(), path
        assert "main" in path.read_text() or path.name == "index.json"


async def test_a_model_is_told_nothing_of_it_by_any_tool_in_any_session(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    gone = await remembered(root)
    log = "/agents/main/sessions/one.log.jsonl"
    async with Memory.open(root, scope=SCOPE, settings=settings(root)) as memory:
        await memory.forget(gone)
    looking: list[ScriptItem] = [
        Call("session_search", {"query": "EUR"}),
        Call("session_search", {"query": "deploy"}),
        Call("session_history", {"session_id": "one", "last_n": 50}),
        Call("session_list"),
        Call("expand", {"handle": f"m:{(await transcript(root, 'one'))[0].id}", "session_id": "one"}),
        Call("read_file", {"path": log}),
        Call("read_file", {"path": "/agents/main/state/one.json"}),
        Call("grep_files", {"pattern": "EUR", "path": "/agents"}),
        Call("recall", {"query": "earn"}),
        Call("memory_search", {"query": "earn"}),
        Say("Nothing."),
    ]
    model = ScriptedModel([*looking, Say("A look around.")])
    async with agent(model, root, "two") as two:
        await two.send("What do you know?")
    said = "\n".join(told(request) for request in model.requests)
    assert "5000 EUR" not in said
    assert "(forgotten)" in said
    assert said.count("deploy") > 5
    for request in model.requests[1:11]:
        assert not any(result.is_error for each in request.messages for result in each.tool_results), told(request)


@pytest.mark.req("DF-C69")
@pytest.mark.parametrize("by", ["the same process", "another process"])
async def test_the_next_request_of_a_running_conversation_says_nothing_of_it(tmp_path: Path, by: str) -> None:
    root = tmp_path / ".ricordo"
    gone = await remembered(root)
    model = ScriptedModel([Say("Hello again."), Say("What is it?"), Say("Fine."), Say("A talk.")])
    async with agent(model, root) as one:
        await one.send("Hello again, I am back.")
        assert "5000 EUR" in told(model.requests[0])
        if by == "the same process":
            assert one.memory is not None
            await one.memory.forget(gone)
        else:
            async with Memory.open(root, scope=SCOPE, settings=settings(root)) as memory:
                await memory.forget(gone)
        await one.send("Something else.")
        await one.send("And on.")
    for request in model.requests[1:]:
        assert "5000 EUR" not in told(request)
        assert "main" in told(request)
    window = [message for message in model.requests[1].messages if message.role != "system"]
    later = [message for message in model.requests[2].messages if message.role != "system"]
    assert later[: len(window)] == window


@pytest.mark.req("DF-C69")
@pytest.mark.parametrize("act", ["forget", "erase"])
async def test_a_session_that_runs_meanwhile_does_not_write_it_into_its_state_again(tmp_path: Path, act: str) -> None:
    root = tmp_path / ".ricordo"
    gone = await remembered(root)
    model = ScriptedModel([Hold(Say("Hello again.")), Say("A talk.")])
    async with agent(model, root) as one, anyio.create_task_group() as group:
        group.start_soon(one.send, "Hello again, I am back.")
        await model.wait_for_held()
        assert "5000 EUR" in told(model.requests[0])
        async with Memory.open(root, scope=SCOPE, settings=settings(root)) as memory:
            await (memory.forget(gone) if act == "forget" else memory.erase(gone))
        model.release()
    state = place_of(root) / "workspace/agents/main/state/one.json"
    assert "Hello again, I am back." in state.read_text()
    assert "(forgotten)" in state.read_text()
    assert "5000 EUR" not in state.read_text()
    if act == "erase":
        left = [path for path in root.rglob("*") if path.is_file() and b"5000 EUR" in path.read_bytes()]
        assert left == []


@pytest.mark.parametrize("scheme", ["jsonl", "sessions"])
async def test_what_is_forgotten_in_a_store_beside_the_root_is_told_by_no_record_of_the_root(
    tmp_path: Path, scheme: str
) -> None:
    root, store = tmp_path / ".ricordo", f"{scheme}:{tmp_path / 'kept'}"
    model = ScriptedModel([
        Call("remember", {"content": SALARY}),
        Say("Noted: you earn 5000 EUR a month."),
        Say("Hello again."),
        Call("session_history", {"session_id": "one", "last_n": 50}),
        Say("Nothing else."),
        Say(f"{SALARY} They said hello."),
    ])  # fmt: skip
    async with agent(model, root, store=store) as one:
        await one.send("Remember that I earn 5000 EUR a month.")
        await one.send("Hello again.")
        assert "5000 EUR" in told(model.requests[2])
        lists, forgets = one.store.offers(Lists), one.store.offers(Forgets)
        assert lists is not None
        assert forgets is not None
        [kept] = await lists.entries()
        await forgets.forget(kept.id, who="user")
        await one.send("What else was said?")
    for request in model.requests[3:]:
        assert "5000 EUR" not in told(request)
        assert "Hello again." in told(request)
    assert len(model.requests) == (6 if scheme == "sessions" else 5)
    for path in (tmp_path / "kept").rglob("*"):
        assert not path.is_file() or b"5000 EUR" not in path.read_bytes(), path
    if scheme == "sessions":
        [file] = (tmp_path / "kept" / "sessions").glob("*.md")
        assert "They said hello." in file.read_text()


async def test_a_profile_says_it_in_no_other_words_and_all_else_as_before(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    gone = await remembered(root)
    first = (await transcript(root, "one"))[0].id
    async with Memory.open(root, scope=SCOPE, settings=settings(root)) as memory:
        profile = memory.profile()
        base = await profile.show()
        learned = FactSource(thread="one", messages=(first,), quote="I earn 5000 EUR a month")
        facts = [
            Fact(id="fact_1", content="Has an income of 5000 EUR each month.", source=learned),
            Fact(id="fact_2", content="Deploys from the main branch.", source=learned),
        ]
        await profile.replace_all(replace(base, facts=tuple(facts)), base=base)
        await profile.set_summary("workContext", "Earns 5000 EUR a month. Works on the shop.")
        await memory.forget(gone)
        left = await profile.show()
        assert [fact.content for fact in left.facts] == ["Deploys from the main branch."]
        assert left.summaries["workContext"].summary == "Works on the shop."
        await memory.undo()
        assert "5000 EUR" in json.dumps([fact.content for fact in (await profile.show()).facts])
