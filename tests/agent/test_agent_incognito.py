"""An incognito session: memory is in none of its requests, and nothing of it is in any file."""

from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from agent_arguments import agent_arguments
from agents_at_work import SCOPE, settings, system
from hand_clock import HandClock
from hand_made_roots import begun
from places import place_of
from ricordo import CompactionConfig, HarnessAgent, Memory, MemoryConfig, Scope, SubAgent
from ricordo.agent import Approval
from ricordo.events import Event
from ricordo.messages import Message
from ricordo.runtime import open_store
from ricordo.testing import Call, RecordedRequest, Say, ScriptedModel, ScriptItem

pytestmark = [pytest.mark.anyio, pytest.mark.req("CC-IGNORE")]

KNOWN = "We deploy only from the heron branch."
SECRETLY = "My cat Zanzibar is ill, and we always paint the fence yellow."
HABIT = "Never push with force, Quentin lost work."
MEMORY_TOOLS = {"remember", "recall", "forget", "memory", "session_list", "session_search", "session_history"}


def files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def sent(requests: tuple[RecordedRequest, ...]) -> str:
    """Return all text of all requests, with the names and the descriptions of their tools."""
    return "\n".join(
        [*(text for each in requests for message in each.messages for text in _texts(message))]
        + [f"{tool.name} {tool.description}" for each in requests for tool in each.tools]
    )


def _texts(message: Message) -> Iterator[str]:
    yield message.text
    yield from (result.text for result in message.tool_results)
    yield from (str(call.arguments) for call in message.tool_calls)


def shy(model: ScriptedModel, root: Path, **options: object) -> HarnessAgent:
    given = {"settings": settings(root), "scope": SCOPE, "workspace": root} | options
    return HarnessAgent.with_recommended_settings(model, **agent_arguments(incognito=True, **given))


@pytest.fixture(scope="module")
def once() -> dict[str, bytes]:
    """Return where a grown memory is kept for the tests that follow."""
    return {}


@pytest.fixture
async def root(tmp_path: Path, once: dict[str, bytes]) -> Path:
    """Return a root with everything that a session shows: curated, saved, learned, and a profile."""
    root = tmp_path / ".ricordo"
    if not once:
        await grown(root)
        once |= files(root)
    for name, data in once.items():
        path = anyio.Path(root / name)
        await path.parent.mkdir(parents=True, exist_ok=True)
        await path.write_bytes(data)
    return begun(root, tmp_path / "data")


async def grown(root: Path) -> None:
    async with Memory.open(root, scope=SCOPE, settings=settings(root), clock=HandClock()) as memory:
        await memory.remember(KNOWN, kind="decision")
        await memory.remember(HABIT, rule="deny shell(git push --force*)")
        await memory.profile().add_fact("Prefers Rust over Zig.")
    model = ScriptedModel([Say("Noted.")])
    async with HarnessAgent(model, memory=root, scope=SCOPE, session="old", settings=settings(root)) as agent:
        await agent.send("I live in Ljubljana. We deploy only from the heron branch.")
        await agent.flush()
        await agent.consolidate()


@pytest.mark.req("CC-IGNORE")
async def test_no_request_of_an_incognito_session_holds_memory_and_no_file_holds_the_session(
    root: Path, tmp_path: Path
) -> None:
    before, heard = files(root), list[Event]()
    script: list[ScriptItem] = [
        Call("todo_write", {"todos": [{"content": "Feed Zanzibar", "status": "pending"}]}),
        Call("spawn", {"agent": "digger", "prompt": "What is with Zanzibar, and from which branch do we deploy?"}),
        Say("I know nothing of it."),
        Say("Still nothing."),
    ]
    model, helper = ScriptedModel(script), ScriptedModel([Say("It is ill, and I know of no branch.")])
    agent = shy(
        model, root, session="shy", planning=True, opt_in_tools=("forget", "memory"), file_tools=True,
        sub_agents=[SubAgent(name="digger", description="Digs.", memory_tools=True, model=helper)],
        on_event=heard.append, compaction=CompactionConfig(model="offline", keep_messages=2),
    )  # fmt: skip
    async with agent:
        await agent.send(f"{SECRETLY} From which branch do we deploy?")
        await agent.send("Where do I live, and what do I prefer?")
        await agent.tasks.wait()
        assert [task.state for task in await agent.tasks.all()] == ["completed"]
        await agent.compact()
        assert await agent.flush()
        assert not await agent.summarize()
        assert not agent.is_recorded
        assert agent.memory is None
        assert await agent.store.recall("heron branch") == []
    told = sent((*model.requests, *helper.requests))
    assert SECRETLY in told, "the session itself is all there"
    for known in ("heron", "Rust", "Ljubljana", "Quentin", "MEMORY.md"):
        assert known not in told.replace("From which branch do we deploy?", "")
    assert not MEMORY_TOOLS.intersection(tool.name for each in model.requests for tool in each.tools)
    assert files(root) == before, "no transcript, no state, no task, no note of use, no line of a ledger"
    everywhere = b"".join(data for name, data in files(tmp_path).items())
    assert b"Zanzibar" not in everywhere
    assert b"yellow" not in everywhere
    assert not {event.stage for event in heard} & {"save", "extract", "scan", "select", "inject", "preamble"}


async def test_the_next_session_knows_what_was_known_and_nothing_of_the_incognito_one(root: Path) -> None:
    async with shy(ScriptedModel([Say("Oh.")]), root, session="same") as agent:
        await agent.send(SECRETLY)
    model = ScriptedModel([Say("Hello.")])
    async with HarnessAgent(model, memory=root, scope=SCOPE, session="same", settings=settings(root)) as later:
        assert not later.window
        await later.send("Hello. From which branch do we deploy?")
        assert await later.memory.search("Zanzibar") == [] if later.memory else False
    assert "heron" in system(model.requests[0])
    assert "Zanzibar" not in sent(model.requests)


async def test_where_there_is_no_root_none_is_made(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    async with shy(ScriptedModel([Say("Oh.")]), root, require_memory=True) as agent:
        await agent.send(SECRETLY)
    assert files(tmp_path) == {}
    assert not await anyio.Path(root).exists()


async def test_a_store_that_is_given_or_named_is_neither_asked_nor_written(tmp_path: Path) -> None:
    root, notes = tmp_path / ".ricordo", tmp_path / "notes"
    async with HarnessAgent(
        ScriptedModel([Call("remember", {"content": KNOWN}), Say("Kept.")]),
        memory=MemoryConfig(root=root, store=f"jsonl:{notes}"),
        scope=SCOPE,
        settings=settings(root),
    ) as agent:
        await agent.send("Keep that.")
    before, model = files(tmp_path), ScriptedModel([Say("Oh.")])
    async with shy(model, root, store=f"jsonl:{notes}", closing_summary="sync", require_memory=True) as agent:
        await agent.send(SECRETLY)
    assert "heron" not in sent(model.requests)
    assert files(tmp_path) == before
    async with open_store(f"jsonl:{notes}", scope=SCOPE, settings=settings(root)) as store:
        model = ScriptedModel([Say("Oh.")])
        async with shy(model, root, store=store, closing_summary="sync") as agent:
            assert await agent.store.recall("heron branch") == []
            await agent.send(f"{SECRETLY} From which branch do we deploy?")
    assert "heron" not in sent(model.requests)
    assert files(tmp_path) == before


@pytest.mark.req("CC-IGNORE")
async def test_what_people_ordered_holds_all_the_same_and_the_memory_behind_it_is_not_told(root: Path) -> None:
    (place_of(root) / "workspace" / "rules").mkdir()
    (place_of(root) / "workspace" / "rules" / "tone.md").write_text("Answer in one sentence.\n", encoding="utf-8")
    asked: list[Approval] = []

    async def approve(approval: Approval) -> bool:
        asked.append(approval)
        return True

    async with Memory.open(root, scope=SCOPE, settings=settings(root)) as memory:
        await memory.remember(
            "Ida said never tag.",
            rule="deny shell(git tag*)",
            scope=Scope(user=SCOPE.user),
            reason="it holds everywhere",
        )
    model = ScriptedModel(
        [
            Call("shell", {"command": "git push --force origin"}), Say("It was refused."),
            Call("shell", {"command": "git tag v2"}), Say("That too."),
        ]
    )  # fmt: skip
    async with shy(model, root, shell=True, approve=approve) as agent:
        await agent.send("Push.")
        await agent.send("Tag it.")
    assert "Answer in one sentence." in system(model.requests[0])
    (_, tagged) = [result for message in model.requests[-1].messages for result in message.tool_results]
    assert "deny shell(git tag*)" in tagged.text, "what the user's own root forbids in all projects"
    assert "Ida" not in sent(model.requests)
    (refused,) = [result for message in model.requests[1].messages for result in message.tool_results]
    assert "deny shell(git push --force*)" in refused.text
    assert "Quentin" not in sent(model.requests)
    assert not asked


@pytest.mark.req("CC-IGNORE")
async def test_file_tools_work_in_the_folder_and_see_nothing_of_the_root(root: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("One line.\n", encoding="utf-8")
    before = files(root)

    async def approve(approval: Approval) -> bool:
        return True

    model = ScriptedModel(
        [
            Call("read_file", {"path": "notes.txt"}),
            Call("read_file", {"path": "/MEMORY.md"}),
            Call("read_file", {"path": ".ricordo/workspace/MEMORY.md"}),
            Call("write_file", {"path": "new.txt", "content": "Two.\n"}),
            Say("Done."),
        ]
    )
    async with shy(model, root, file_tools=True, approve=approve) as agent:
        await agent.send("Look around.")
    shown = [result.text for message in model.requests[-1].messages for result in message.tool_results]
    assert "One line." in shown[0]
    assert "no file /MEMORY.md" in shown[1]
    assert "closed" in shown[2]
    assert (tmp_path / "new.txt").read_text(encoding="utf-8") == "Two.\n"
    assert "heron" not in sent(model.requests)
    assert files(root) == before
