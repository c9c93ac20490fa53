"""The page on privacy: what it says of where data goes is what every request of a session shows."""

import json
import socket
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from agents_at_work import SCOPE, said, settings
from command_line import loopback_model, ricordo
from hand_made_roots import begun
from places import place_of
from ricordo import CompactionConfig, FlushConfig, HarnessAgent, Memory, MemoryConfig
from ricordo.agent import tool
from ricordo.curation import ConsolidationConfig
from ricordo.messages import Message, Text, ToolCall, ToolResult
from ricordo.testing import Call, Calls, LoopbackServer, RecordedRequest, Say, ScriptedModel

pytestmark = pytest.mark.anyio

SAID = "Where do we deploy the orchid service from?"
REMEMBERED = "We deploy only from main."
BY_HAND = "The lighthouse is painted red."
PRINTED = "the barometer shows 1013 hectopascal"


@tool(effect="reads")
def barometer() -> str:
    """Read the barometer."""
    return PRINTED


def asked(request: RecordedRequest) -> str:
    """Return all that a request holds."""
    parts = [(each.text, *(result.text for result in each.tool_results)) for each in request.messages]
    return "\n".join(text for texts in parts for text in texts)


def answering(name: str) -> ScriptedModel:
    def answer(request: RecordedRequest) -> Say | Calls:
        if name == "agent" and request.messages[-1].text.startswith("What does the barometer"):
            return Calls(Call("barometer", {}))
        return Say("Understood.")

    return ScriptedModel(answer, name=f"own:{name}")


def prepared(root: Path) -> None:
    """Let a root hold a line that a person wrote, a rule, and an AGENTS.md beside it."""
    (place_of(begun(root, root.parent / "data")) / "workspace" / "rules").mkdir(parents=True)
    (place_of(root) / "workspace" / "MEMORY.md").write_text(f"# Memory\n\n- {BY_HAND}\n", encoding="utf-8")
    (place_of(root) / "workspace" / "rules" / "tea.md").write_text("Never offer coffee.\n", encoding="utf-8")
    (root.parent / "AGENTS.md").write_text("Answer in haiku.\n", encoding="utf-8")


async def at_work(agent: HarnessAgent) -> None:
    """Let an agent do all that may ask a model."""
    await agent.send(SAID)
    await agent.send("What does the barometer show?")
    await agent.flush(seconds=10)
    await agent.consolidate(deep=True)
    await agent.record(
        [said(f"Service {number} is deployed on a Monday, as it always was. " * 9) for number in range(40)]
    )
    await agent.compact()


async def test_each_purpose_is_sent_what_the_page_says_and_finding_asks_nobody(tmp_path: Path) -> None:
    root = tmp_path / "shop" / ".ricordo"
    prepared(root)
    models = {name: answering(name) for name in ("agent", "flush", "compaction", "consolidation")}
    described = HarnessAgent(
        models["agent"],
        memory=MemoryConfig(root=root, flush=FlushConfig(model=models["flush"])),
        scope=SCOPE,
        tools=[barometer],
        compaction=CompactionConfig(model=models["compaction"], keep_messages=1),
        settings=replace(settings(root), consolidation=ConsolidationConfig(model=models["consolidation"])),
    )
    async with Memory.open(root, scope=SCOPE, settings=settings(root)) as memory:
        await memory.remember(REMEMBERED, kind="decision")
        await memory.profile().add_fact("Prefers tea.", category="preference")
    async with described as agent:
        await at_work(agent)
        requests = {name: "\n".join(map(asked, model.requests)) for name, model in models.items()}
        counts = {name: len(model.requests) for name, model in models.items()}
        async with Memory.open(root, scope=SCOPE, settings=settings(root)) as memory:
            assert await memory.recall("deploy main")
            assert await memory.search("orchid service")
            assert (await memory.answer("Where do we deploy from?")).found
            assert await memory.preamble()
        assert {name: len(model.requests) for name, model in models.items()} == counts
    assert min(counts.values()) > 0
    for text in (SAID, REMEMBERED, BY_HAND, PRINTED, "Prefers tea", "Never offer coffee", "Answer in haiku"):
        assert text in requests["agent"]
    for text in (SAID, BY_HAND, REMEMBERED):
        assert text in requests["flush"]
    assert PRINTED not in requests["flush"]
    assert SAID in requests["compaction"]
    for text in (BY_HAND, REMEMBERED):
        assert text in requests["consolidation"]
    assert PRINTED not in requests["consolidation"]


async def test_the_agents_model_is_asked_for_all_of_it_and_what_is_offline_sends_nothing(tmp_path: Path) -> None:
    purposes = {}
    for name, own in (("asked", None), ("offline", "offline")):
        root = tmp_path / name / ".ricordo"
        prepared(root)
        given = replace(settings(root), flush=FlushConfig(model=own), consolidation=ConsolidationConfig(model=own))
        summary = CompactionConfig(model=own, keep_messages=1)
        model = answering("agent")
        async with HarnessAgent(
            model, memory=root, scope=SCOPE, tools=[barometer], settings=given, compaction=summary
        ) as agent:
            await at_work(agent)
        lines = [
            line for path in (place_of(root) / "spending").glob("*.jsonl") for line in path.read_text().splitlines()
        ]
        purposes[name] = {json.loads(line).get("purpose") for line in lines} - {None}
        turns = 3  # two of them, and one more request for the tool
        assert (len(model.requests) == turns) is (own is not None)
    assert purposes == {"asked": {"flush", "summary", "consolidation"}, "offline": set()}


@pytest.mark.req("FC-NOKEY")
async def test_without_a_model_nothing_is_sent_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reached: list[object] = []
    monkeypatch.setattr(socket.socket, "connect", lambda _, address: reached.append(address))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *names, **_: reached.append(names))
    root = tmp_path / ".ricordo"
    given = replace(settings(root), embedder="hashing", consolidation=ConsolidationConfig(), flush=FlushConfig())
    async with Memory.open(root, scope=SCOPE, settings=given) as memory:
        await memory.remember(REMEMBERED)
        await memory.ingest([said("Remember that Nadia owns the staging database.")], session="s")
        await memory.embed()
        assert await memory.recall("deploy")
        assert (await memory.answer("Who owns the staging database?")).found
    async with HarnessAgent.with_recommended_settings("offline", memory=root, scope=SCOPE, settings=given) as agent:
        await at_work(agent)
    assert reached == []


def sent_to(server: LoopbackServer) -> str:
    return "\n".join(json.dumps(request.body["input"]) for request in server.requests)


async def test_an_embedder_of_a_provider_is_sent_what_can_be_found_and_each_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-a-test")
    root = tmp_path / ".ricordo"
    call = ToolCall(id="call_1", name="barometer", arguments="{}")
    messages = [
        said("Nadia owns the staging database."),
        Message(role="assistant", parts=(call,)),
        Message(role="tool", parts=(ToolResult(call_id="call_1", name="barometer", parts=(Text(text=PRINTED),)),)),
    ]
    wanted = (REMEMBERED, "Prefers tea", "Nadia owns the staging database.", PRINTED, "which branch is released")
    with LoopbackServer(dimension=8) as server:
        given = replace(settings(root), embedder="openai:small", embedder_base_url=server.url + "/v1")
        async with Memory.open(root, scope=SCOPE, settings=given) as memory:
            await memory.remember(REMEMBERED)
            await memory.profile().add_fact("Prefers tea.", category="preference")
            await memory.ingest(messages, session="s")
            with anyio.fail_after(30):
                while not all(text in sent_to(server) for text in wanted):
                    await memory.search("which branch is released")
                    await memory.embed()
        assert {request.path.removeprefix("/v1") for request in server.requests} == {"/embeddings"}


@pytest.mark.may_block("the command line is run inside of the test")
def test_of_the_commands_only_those_that_the_page_names_ask_the_agents_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RICORDO_FLUSH__MODEL")
    with loopback_model(lambda _: Say("Understood."), monkeypatch) as server:
        assert ricordo("remember", REMEMBERED, "--kind", "decision").code == 0
        for command in (("recall", "deploy"), ("ask", "Where do we deploy from?"), ("maintain",), ("doctor",)):
            assert ricordo(*command).code == 0
        assert server.requests == ()
        asked_by = {}
        for command in (("consolidate", "--deep"), ("chat", "Hello, where do we deploy from? " * 300), ("compact",)):
            before = len(server.requests)
            ricordo(*command)
            asked_by[command[0]] = len(server.requests) > before
    assert asked_by == {"consolidate": True, "chat": True, "compact": True}
