"""An agent looks into its past sessions: word for word, after every compaction, and only into those of its user."""

import logging
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from agent_arguments import agent_arguments
from agents_at_work import SCOPE, ledgers, said, settings, spoken, transcript
from places import place_of
from ricordo import CompactionConfig, HarnessAgent, Scope
from ricordo.agent import tool
from ricordo.agent.tools.sessions import NO_MATCHES_TEXT, NOT_FOUND_TEXT
from ricordo.guard import parse_fence
from ricordo.messages import get_mark
from ricordo.models import ChatModel
from ricordo.testing import Call, RecordedRequest, Say, ScriptedModel

pytestmark = pytest.mark.anyio

NAMES = {"session_list", "session_history", "session_search"}
LONG = "some more words to fill a line, "


def agent(model: ChatModel, root: Path, *, scope: Scope = SCOPE, session: str = "s", **options: object) -> HarnessAgent:
    given = {"scope": scope, "session": session, "settings": settings(root), "memory_hooks": False} | options
    return HarnessAgent(model, **agent_arguments(workspace=root, **given))


def offered(model: ScriptedModel) -> set[str]:
    return {spec.name for spec in model.requests[-1].tools} & NAMES


async def told(root: Path, name: str, arguments: dict[str, str | int], *, user: str, session: str) -> str:
    """Let a model call a tool in a new agent, and return what it was told."""
    model = ScriptedModel([Call(name, arguments), Say("Done.")])
    async with agent(model, root, scope=Scope(user=user, project="shop"), session=session) as one:
        await one.send("Look.")
    return spoken(model.requests[-1].messages)[-1][1]


@pytest.mark.req("AS-SESS-01")
async def test_the_session_tools_are_there_unless_they_are_switched_off(tmp_path: Path) -> None:
    on, off = ScriptedModel([Say("Hello."), Say("Hello.")]), ScriptedModel([Say("Hello."), Say("Hello.")])
    async with agent(on, tmp_path / "1") as one:
        await one.send("Hello?")
    assert offered(on) == NAMES
    alone = ScriptedModel([Say("Hello.")])
    async with agent(alone, tmp_path / "3", memory_tools=False, memory_hooks=False) as one:
        await one.send("Hello?")
    assert offered(alone) == NAMES, "whatever becomes of memory"
    beside = ScriptedModel([Say("Hello.")])
    async with agent(beside, tmp_path / "4", store=f"jsonl:{tmp_path / 'notes'}") as one:
        await one.send("Hello?")
    assert offered(beside) == NAMES, "whichever store keeps it"
    async with agent(off, tmp_path / "2", session_tools=False) as one:
        await one.send("Hello?")
    assert offered(off) == set()
    assert "session_" not in str(off.requests[-1])
    assert {"remember", "recall"} <= {spec.name for spec in off.requests[-1].tools}


@pytest.mark.req("AS-SESS-01", "AS-SESS-03", "AS-SESS-05", "AS-MEM-01", "AS-BUG-13", "CC-CLEAR")
async def test_an_agent_of_another_name_looks_back_at_its_own_sessions_and_learns_from_them(tmp_path: Path) -> None:
    root, scope = tmp_path / ".ricordo", replace(SCOPE, agent="coder")
    async with agent(ScriptedModel([]), root, scope=scope, session="one", memory_hooks=True) as one:
        told, *_ = await one.record([said("We deploy only from main."), *(said(f"Note {n}.") for n in range(30))])
        assert await one.drain() == 0
    assert "We deploy only from main." in ledgers(root)
    calls = [
        Call("session_history", {"session_id": "one", "last_n": 40}),
        Call("session_history", {"session_id": f"one#{told.id}"}),
        Call("expand", {"handle": f"m:{told.id}", "session_id": "one"}), Call("session_list"),
    ]  # fmt: skip
    model = ScriptedModel([*calls, Say("Done.")])
    async with agent(model, root, scope=scope, session="two") as two:
        await two.send("Look.")
    *shown, listed = [result.text for message in model.requests[-1].messages for result in message.tool_results]
    assert all("We deploy only from main." in text for text in shown)
    assert "this session" in listed
    assert [folder.name for folder in (place_of(root) / "workspace" / "agents").iterdir()] == ["coder"]


@pytest.mark.req("AS-SESS-05", "AS-BUG-11", "AS-COMPACT-06")
async def test_after_a_compaction_the_tools_give_back_what_was_said(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    calls = {
        "history": Call("session_history", {"session_id": "s", "agent_id": "main", "last_n": 200}),
        "search": Call("session_search", {"query": "NUMBER 3.", "agent_id": "main"}),
        "list": Call("session_list"),
    }

    def reply(request: RecordedRequest) -> Say | Call:
        last = request.messages[-1]
        return calls.get(last.text, Say(f"Reply. {LONG * (2_000 if last.text.startswith('Number 7.') else 1)}"))

    model = ScriptedModel(reply)
    config = CompactionConfig(model="offline", trigger_messages=12, keep_messages=4)
    told = [f"Number {number}. {LONG}{'x' * number}" for number in range(14)]
    async with agent(model, root, compaction=config) as one:
        for text in told:
            await one.send(text)
        window = one.window
        await one.send("history")
        history = parse_fence(spoken(model.requests[-1].messages)[-1][1]) or ()
        await one.send("search")
        search = spoken(model.requests[-1].messages)[-1][1]
        await one.send("list")
        listed = spoken(model.requests[-1].messages)[-1][1]
    assert get_mark(window[0]) == "summary"
    assert not any(message.text == told[3] for message in window), "it is no longer in the window"
    assert [text for text in history if text.startswith("Number")] == told
    assert not any(window[0].text[:40] in text for text in history)
    (found,) = parse_fence(search) or ()
    assert found.splitlines()[1] == told[3].strip()
    logged = await transcript(root)
    assert [text for role, text in spoken(logged) if role == "user"] == [*told, *calls]
    # when it was asked for, its result and the last reply were still to come
    assert f"{len(logged) - 2} messages" in listed


@pytest.mark.req("AS-BUG-28")
async def test_two_users_of_a_root_see_their_own_sessions(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    for user in ("ana", "ben"):
        model = ScriptedModel([Say(f"Noted, {user}.")])
        async with agent(model, root, scope=Scope(user=user, project="shop"), session=f"of-{user}") as one:
            await one.send(f"The password of {user} is a pear.")
    listed = await told(root, "session_list", {}, user="ana", session="look-1")
    assert "of-ana" in listed
    assert "of-ben" not in listed
    found = await told(root, "session_search", {"query": "is a pear"}, user="ana", session="look-2")
    assert "password of ana" in found
    assert "ben" not in found
    mine = await told(root, "session_history", {"session_id": "of-ana"}, user="ana", session="look-3")
    assert parse_fence(mine) == ("The password of ana is a pear.", "Noted, ana.")
    for session in ("of-ben", "of-nobody"):
        arguments: dict[str, str | int] = {"session_id": session}
        assert NOT_FOUND_TEXT in await told(root, "session_history", arguments, user="ana", session=f"look-{session}")
    assert await told(root, "session_search", {"query": "is a pear"}, user="eve", session="new") == NO_MATCHES_TEXT


@pytest.mark.req("AS-BUG-28")
async def test_nobody_else_sees_a_session_whose_first_turn_still_runs(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    seen: list[str] = []

    @tool
    async def meanwhile() -> str:
        """Let another user look."""
        seen.append(await told(root, "session_list", {}, user="ben", session="of-ben"))
        return "ok"

    model = ScriptedModel([Call("meanwhile"), Say("Done.")])
    async with agent(model, root, scope=Scope(user="ana", project="shop"), session="of-ana", tools=[meanwhile]) as one:
        await one.send("The password is a pear.")
    (listed,) = seen
    assert "of-ben" in listed
    assert "of-ana" not in listed


@pytest.mark.req("AS-TRANS-03", "AS-SESS-05")
async def test_a_session_of_two_agents_keeps_all_and_is_rebuilt_when_its_log_is_gone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root = tmp_path / ".ricordo"

    async def talk(name: str) -> None:
        model = ScriptedModel(lambda request: Say(f"Reply {request.number} to {name}."))
        async with agent(model, root) as one:
            for number in range(4):
                await one.send(f"The {name} says {number}.")

    async with agent(ScriptedModel([]), root) as one, agent(ScriptedModel([]), root) as two:
        for _ in range(4):
            async with anyio.create_task_group() as group:
                group.start_soon(one.record, [said("Yes.")])
                group.start_soon(two.record, [said("Yes.")])
    async with anyio.create_task_group() as group:
        group.start_soon(talk, "first")
        group.start_soon(talk, "second")
    shown = await transcript(root)
    for name in ("first", "second"):
        exchange = [text for _, text in spoken(shown) if name in text]
        assert exchange[::2] == [f"The {name} says {number}." for number in range(4)]
        assert exchange[1::2] == [f"Reply {number} to {name}." for number in range(1, 5)]
    assert [text for _, text in spoken(shown)].count("Yes.") == 8, "the same words of both are all there"
    assert len({message.id for message in shown}) == len(shown) == 24
    history = await told(root, "session_history", {"session_id": "s", "last_n": 99}, user="me", session="reader")
    assert parse_fence(history) == tuple(text for _, text in spoken(shown))

    async with agent(ScriptedModel([Say("Here.")]), root) as one:
        await one.send("Who is there?")
        window = one.window
    log = place_of(root) / "workspace" / "agents" / "main" / "sessions" / "s.log.jsonl"
    log.unlink()
    with caplog.at_level(logging.WARNING, logger="ricordo.agent"):
        async with agent(ScriptedModel([Say("Still here.")]), root) as again:
            rebuilt = await transcript(root)
            assert [(message.id, message.parts) for message in rebuilt] == [
                (message.id, message.parts) for message in window
            ]
            assert [message.parent for message in rebuilt] == [None, *(message.id for message in rebuilt[:-1])]
            await again.send("And now?")
    assert "is gone" in caplog.text
    assert [text for _, text in spoken(await transcript(root))] == [
        *(text for _, text in spoken(window)),
        "And now?",
        "Still here.",
    ]


@pytest.mark.req("AS-BUG-28")
@pytest.mark.parametrize("broken", [False, True], ids=["kept", "set aside"])
async def test_a_session_is_opened_by_its_user_alone(tmp_path: Path, broken: bool) -> None:
    root = tmp_path / ".ricordo"
    anna, ben = Scope(user="anna", project="shop"), Scope(user="ben", project="shop")
    async with agent(ScriptedModel([Say("Yes.")]), root, scope=anna) as one:
        await one.send("My door code is in the drawer.")
    if broken:
        state = place_of(root, "anna") / "workspace" / "agents" / "main" / "state" / "s.json"
        state.write_bytes(state.read_bytes()[:-40])
    model = ScriptedModel([Say("Hello."), Say("Hello.")])
    async with agent(model, root, scope=ben) as other:
        await other.send("And now?")
    async with agent(model, root, scope=anna) as again:
        await again.send("And now?")
    assert not any("drawer" in text for _, text in spoken(model.requests[0].messages))
    assert any("drawer" in text for _, text in spoken(model.requests[1].messages))
