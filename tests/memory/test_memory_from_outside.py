"""What came from outside is no answer: what a tool printed, and what an assistant only repeats of it."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from agents_at_work import SCOPE, said
from command_line import ricordo
from ricordo import HarnessAgent, Memory
from ricordo.messages import Message, Text, ToolCall, ToolResult
from ricordo.recall.answer import NOT_IN_MEMORY
from ricordo.testing import Call, Calls, Say, ScriptedModel
from ricordo.tools import tool

pytestmark = pytest.mark.anyio

PLANTED = "Production deployments of the billing service always go out from the branch release-blue."
ASKED = "From which branch do production deployments of the billing service go out?"
DECIDED = "Production deployments of the billing service go out from the branch main only."


def page(text: str = PLANTED, *, name: str | None = None, role: str = "tool") -> list[Message]:
    """Return how a page is read: the call, and what the tool prints."""
    call = ToolCall(id="call_1", name="fetch", arguments='{"url": "https://example.org/wiki"}')
    result = ToolResult(call_id="call_1", name="fetch", parts=(Text(text=f"<h1>Wiki</h1>\n{text}\n<p>End.</p>"),))
    return [
        Message(role="assistant", parts=(call,)),
        Message(role="user" if role == "user" else "tool", name=name, parts=(result,)),
    ]


def replied(text: str) -> Message:
    return Message(role="assistant", parts=(Text(text=text),))


READ = said("Read the wiki, please.")


@pytest.mark.parametrize(
    "messages",
    [
        [READ, *page(), replied("Done.")],
        [READ, *page(name="web"), replied("Done.")],
        [READ, *page(role="user"), replied("Done.")],
        [READ, *page(), replied(f"I have read it. {PLANTED} Shall I go on?")],
        [
            READ,
            *page(),
            replied("The wiki says: production deployments of billing always go from branch release-blue."),
        ],
    ],
    ids=["printed", "printed under a name", "in a message of the user's role", "repeated", "retold"],
)
async def test_what_a_page_says_is_no_answer_whoever_repeats_it(tmp_path: Path, messages: Sequence[Message]) -> None:
    async with Memory.open(tmp_path / ".ricordo", scope=SCOPE) as memory:
        await memory.ingest(messages, session="s")
        found = await memory.answer(ASKED)
        assert (found.found, found.text, found.hit) == (False, NOT_IN_MEMORY, None)
        assert "release-blue" not in found.text + "".join(hit.entry.content for hit in found.others)
        assert [hit.path for hit in found.unconfirmed] != []
        assert "release-blue" in found.unconfirmed[0].entry.content


async def test_what_a_user_decided_is_quoted_and_recalled_above_a_page_that_was_repeated_later(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / ".ricordo", scope=SCOPE) as memory:
        await memory.ingest([said(f"We decided: {DECIDED}"), replied("Noted.")], session="first")
        await memory.ingest(
            [READ, *page(f"We decided: {PLANTED}"), replied(f"We decided: {PLANTED} It is no longer main.")],
            session="second",
        )
        assert {entry.trust.value for entry in await memory.entries()} == {"agent", "external"}
        found = await memory.answer(ASKED)
        assert found.hit is not None
        assert "branch main only" in found.hit.entry.content
        assert "release-blue" not in found.text
        recalled = await memory.recall("production deployments billing branch")
        assert "branch main only" in recalled[0].entry.content
        assert "later statement" not in recalled[0].why


async def test_what_a_user_said_is_an_answer_also_when_a_tool_prints_the_same(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / ".ricordo", scope=SCOPE) as memory:
        await memory.ingest([said(DECIDED), *page(DECIDED), replied(f"As you said: {DECIDED}")], session="s")
        assert (await memory.answer(ASKED)).found


async def test_what_was_learned_from_a_repeated_page_becomes_an_answer_once_it_is_confirmed(
    tmp_path: Path,
) -> None:
    stated = "We decided that the staging database of the billing service listens on port 5433."
    async with Memory.open(tmp_path / ".ricordo", scope=SCOPE) as memory:
        taken = await memory.ingest(
            [said("On which port does the staging database listen?"), *page(stated), replied(stated)], session="s"
        )
        asked = "On which port does the staging database of the billing service listen?"
        assert not (await memory.answer(asked)).found
        assert [entry.trust.value for entry in taken.entries] == ["external"]
        await memory.confirm(taken.entries[0].id)
        assert (await memory.answer(asked)).found


@tool(effect="reads")
def fetch() -> str:
    """Read the wiki."""
    return PLANTED


async def test_what_an_agent_saved_of_a_page_is_no_answer_and_no_reply_of_an_agent_without_a_model(
    tmp_path: Path,
) -> None:
    root = tmp_path / ".ricordo"
    model = ScriptedModel(
        [Calls(Call("fetch", {})), Calls(Call("remember", {"content": PLANTED, "kind": "decision"})), Say("Done.")]
    )
    async with HarnessAgent(model, workspace=root, scope=SCOPE, tools=[fetch], memory_hooks=False) as agent:
        await agent.send("Read the wiki and keep what matters.")
    async with Memory.open(root, scope=SCOPE) as memory:
        assert any(entry.content == PLANTED for entry in await memory.entries())
        assert not (await memory.answer(ASKED)).found
    async with HarnessAgent("offline", workspace=root, scope=SCOPE) as agent:
        assert "release-blue" not in str(await agent.send(ASKED))


async def test_what_an_agent_saved_because_a_user_said_it_is_an_answer(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    model = ScriptedModel([Calls(Call("remember", {"content": DECIDED, "kind": "decision"})), Say("Done.")])
    async with HarnessAgent(model, workspace=root, scope=SCOPE, memory_hooks=False) as agent:
        await agent.send(f"Remember this. {DECIDED}")
    async with Memory.open(root, scope=SCOPE) as memory:
        assert (await memory.answer(ASKED)).found


@pytest.mark.may_block("the command line is run inside of the test")
def test_the_command_says_that_it_is_not_in_memory_and_points_to_the_place_outside() -> None:
    lines: list[dict[str, object]] = [{"role": "user", "content": "Read the wiki."}]
    lines += [{"role": "assistant", "content": "", "tool_calls": [_call()]}]
    lines += [{"role": "tool", "tool_call_id": "call_1", "content": PLANTED}, {"role": "assistant", "content": "Done."}]
    Path("chat.json").write_text(json.dumps(lines), encoding="utf-8")
    assert ricordo("ingest", "chat.json").code == 0
    told = ricordo("ask", "-v", ASKED).out
    assert told.startswith("not in memory\nUnconfirmed, from outside: ")
    assert "release-blue" not in told
    document = ricordo("ask", ASKED, "--json").document
    assert (document["found"], document["hit"]) == (False, None)
    assert [hit["trust"] for hit in document["unconfirmed"]] == ["external"]


def _call() -> dict[str, object]:
    return {"id": "call_1", "type": "function", "function": {"name": "fetch", "arguments": "{}"}}
