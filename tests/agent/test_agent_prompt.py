"""The prompt of an agent: within its budget, the same bytes for a whole session, and what changes comes after it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import anyio
import pytest
from anyio.to_thread import run_sync
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from agent_arguments import agent_arguments
from agents_at_work import SCOPE, said, settings, spoken, system, transcript
from hand_clock import HandClock
from hand_made_roots import begun
from places import place_of
from reached_models import KEY, serving
from ricordo import CompactionConfig, Entry, HarnessAgent, Memory
from ricordo.agent import ModelRequest, Turn, tool
from ricordo.agent.prompt_builder import ProfileView, PromptBuilder
from ricordo.clock import MonotonicIds
from ricordo.context import Preamble, SavedEntry, compose_preamble
from ricordo.curation import InjectionConfig, InMemoryProfileStore
from ricordo.events import Emitter
from ricordo.guard import Redactor, parse_fence
from ricordo.messages import JsonValue, Message, Text, Tokens, estimate_text, get_mark
from ricordo.models import ChatModel, load_model
from ricordo.search import Hit, Query
from ricordo.stores import Store, StoreParts
from ricordo.testing import Call, Calls, InMemoryFiles, LoopbackServer, RecordedRequest, Say, ScriptedModel, ScriptItem
from ricordo.workspace import Fact

if TYPE_CHECKING:
    from ricordo.runtime import Workspace

pytestmark = [pytest.mark.anyio, pytest.mark.req("GO-G26-cache")]

FACT, LATER = "We deploy only from main.", "Tests run at night."


def talking() -> ScriptedModel:
    return ScriptedModel(lambda request: Say(f"Reply {request.number}."))


def agent(model: ChatModel, root: Path, session: str = "s", **options: object) -> HarnessAgent:
    given = {"settings": settings(root)} | options
    return HarnessAgent(model, **agent_arguments(workspace=root, scope=SCOPE, session=session, **given))


async def curated(root: Path, text: str) -> None:
    """Let a person write MEMORY.md."""
    await run_sync(begun, root, root.parent / "data")
    path = anyio.Path(place_of(root) / "workspace" / "MEMORY.md")
    await path.parent.mkdir(parents=True, exist_ok=True)
    await path.write_text(f"# Memory\n\n{text}")


def updates(messages: Sequence[Message]) -> list[str]:
    return [each.text for each in messages if get_mark(each) == "memory"]


def told(messages: Sequence[Message]) -> list[str]:
    return [line for text in updates(messages) for each in parse_fence(text) or () for line in each.split("\n")]


@pytest.mark.req("AS-CURATED-03", "DF-C69", "DF-INJ")
@pytest.mark.parametrize("opening", ["session", "compaction", "a compaction that is due"])
async def test_what_changes_in_a_session_is_told_after_it_and_is_in_the_prompt_of_the_next(
    tmp_path: Path, opening: str
) -> None:
    root, model = tmp_path / ".ricordo", talking()
    await curated(root, f"- {FACT}\n- Ports are open.\n")
    due = 7 if opening == "a compaction that is due" else 1_000
    config = CompactionConfig(trigger_messages=due, keep_messages=2, model="offline")
    async with agent(model, root, compaction=config) as one:
        await one.send("Hello. " + "Some more words. " * 100)
        await curated(root, f"- {FACT}\n- {LATER}\n")
        await one.send("And now?")
        await one.send("And then? " + "Some more words. " * 100)
        if opening == "compaction":
            await one.compact()
        if opening != "session":
            await one.send("Still there?")
            assert get_mark(one.window[0]) == "summary"
        recorded = await transcript(root)
    before, after, later, *rest = model.requests
    assert FACT in system(before)
    assert "Ports are open." in system(before)
    assert system(before) == system(after) == system(later)
    assert told(before.messages) == []
    assert is_last_an_update(after)
    assert told(after.messages) == [f"- {LATER}", "- Ports are open."]
    assert later.messages[: len(after.messages)] == after.messages
    assert told(later.messages) == told(after.messages)
    assert not updates(recorded), "nobody said it, so no transcript has it"
    if opening == "session":
        model = talking()
        async with agent(model, root, "next") as two:
            await two.send("Hello.")
        rest = list(model.requests)
    (opened,) = rest
    assert LATER in system(opened)
    assert "Ports are open." not in system(opened)
    assert told(opened.messages) == []


def is_last_an_update(request: RecordedRequest) -> bool:
    return get_mark(request.messages[-1]) == "memory" and request.messages[-1].role == "user"


@pytest.mark.req("AS-CURATED-03")
async def test_refreshed_at_each_step_the_prompt_itself_changes_and_nothing_is_told(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"

    @tool
    async def learn() -> str:
        """Let somebody else write to memory."""
        await curated(root, f"- {LATER}\n")
        return "written"

    model = ScriptedModel([Say("Hello."), Call("learn", {}), Say("Seen."), Say("Bye.")])
    async with agent(model, root, refresh="step", tools=[learn]) as one:
        for text in ("Hello.", "Learn.", "Bye."):
            await one.send(text)
    assert [LATER in system(request) for request in model.requests] == [False, False, True, True]
    assert system(model.requests[2]) == system(model.requests[3])
    assert [told(request.messages) for request in model.requests] == [[], [], [], []]


@pytest.mark.req("AS-CURATED-03")
async def test_a_session_that_goes_on_in_a_new_process_has_the_change_in_its_prompt_alone(tmp_path: Path) -> None:
    root, model = tmp_path / ".ricordo", talking()
    async with agent(model, root) as one:
        await one.send("Hello.")
        await curated(root, f"- {LATER}\n")
        await one.send("And now?")
    assert told(model.requests[-1].messages) == [f"- {LATER}"]
    model = talking()
    async with agent(model, root) as one:
        await one.send("Still there?")
    assert LATER in system(model.requests[0])
    assert told(model.requests[0].messages) == []
    assert [role for role, _ in spoken(model.requests[0].messages)] == ["system", *["user", "assistant"] * 2, "user"]


@pytest.mark.req("AS-CURATED-03")
async def test_what_the_agent_remembers_is_not_told_back_to_it_and_what_another_does_is(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    model = ScriptedModel([Call("remember", {"content": FACT}), Say("Kept."), Say("Yes."), Say("Bye.")])
    async with agent(model, root) as one:
        await one.send("Keep it.")
        await one.send("Did you?")
        async with Memory.open(root, scope=SCOPE, settings=settings(root)) as other:
            await other.remember(LATER)
        await one.send("Bye.")
    assert [told(request.messages) for request in model.requests] == [[], [], [], [LATER]]


@pytest.mark.req("AS-CURATED-03", "DF-C69")
async def test_what_another_process_lets_be_forgotten_leaves_the_prompt_and_its_updates(tmp_path: Path) -> None:
    root, model = tmp_path / ".ricordo", talking()
    async with Memory.open(root, scope=SCOPE, settings=settings(root)) as other, agent(model, root) as one:
        await one.send("Hello.")
        kept = await other.remember(FACT)
        await one.send("And now?")
        await other.forget(kept.id)
        await one.send("And then?")
    assert [FACT in str(request.messages) for request in model.requests] == [False, True, False]


class Raw:
    """What went over the wire: for each request the parts of its body, as they were sent."""

    def __init__(self, requests: Sequence[RecordedRequest]) -> None:
        self.bodies = [request.body for request in requests]

    def prefixes(self) -> set[str]:
        """Return the bytes of tools and system prompt, cache marks included: of all requests the same."""
        return {json.dumps([body.get("tools"), body.get("system")]) for body in self.bodies}

    def messages(self, number: int) -> list[str]:
        """Return the messages of one request, each as its bytes, without the mark that moves on with the newest one."""
        sent = self.bodies[number]["messages"]
        assert isinstance(sent, list)
        return [json.dumps(_unmarked(message)) for message in sent]


def _unmarked(value: JsonValue) -> JsonValue:
    if isinstance(value, list):
        return [_unmarked(each) for each in value]
    if isinstance(value, dict):
        return {key: _unmarked(each) for key, each in value.items() if key != "cache_control"}
    return value


@pytest.mark.req("GO-G26-cache", "GO-AT10", "AS-BUG-23", "AS-CURATED-03")
@pytest.mark.filterwarnings("ignore:Async generator '(openai|anthropic):ResourceWarning")
@pytest.mark.parametrize("name", ["openai-chat:gpt-4o", "anthropic:claude-sonnet-5"])
async def test_every_request_on_the_wire_begins_with_the_one_before_it(tmp_path: Path, name: str) -> None:
    root = tmp_path / ".ricordo"

    @tool
    async def learn() -> str:
        """Let somebody else write to memory."""
        await curated(root, f"- {FACT}\n- {LATER}\n")
        return "written"

    script: list[ScriptItem] = [
        Say("Hello."),
        Calls(Call("learn", {}), Call("recall", {"query": "orders"})),
        Say("Learned."),
        Call("recall", {"query": "deploy"}),
        Say("From main."),
        Call("remember", {"content": "Releases are on Fridays."}),
        Say("Kept."),
        Say("Once more."),
        Say("Bye."),
    ]
    await curated(root, f"- {FACT}\n")
    with serving(script) as server:
        async with agent(await _at(server, name), root, tools=[learn]) as one:
            assert one.memory is not None
            for number in range(6):
                await one.send(f"Turn {number}.")
                if number == 3:
                    await one.memory.remember("Orders are in PostgreSQL.")
    raw, count = Raw(server.requests), len(server.requests)
    assert count == len(script)
    assert len(raw.prefixes()) == 1
    for number in range(1, count):
        earlier, later = raw.messages(number - 1), raw.messages(number)
        assert later[: len(earlier)] == earlier
        assert len(later) > len(earlier)
    first = json.dumps(dict(raw.bodies[0]))
    assert FACT in first
    for text, number in ((LATER, 2), ("Orders are in PostgreSQL.", 7)):
        asked = [text in "".join(raw.messages(at)) for at in range(count)]
        assert asked == [False] * number + [True] * (count - number)
        assert text in raw.messages(number)[-1], "it comes after everything that was sent before"
    assert any("Memory changed during this session" in message for message in raw.messages(2))


async def _at(server: LoopbackServer, name: str) -> ChatModel:
    url = server.url if name.startswith("anthropic:") else f"{server.url}/v1"
    return await anyio.to_thread.run_sync(lambda: load_model(name, base_url=url, api_key=KEY))


@pytest.mark.req("AS-BUG-23")
async def test_two_sessions_share_all_of_the_prompt_but_its_last_line(tmp_path: Path) -> None:
    root, clock, prompts = tmp_path / ".ricordo", HandClock(datetime(2026, 11, 22, 23, 30, tzinfo=UTC)), []
    (tmp_path / "AGENTS.md").write_text("Answer in short sentences.\n")
    await curated(root, f"- {FACT}\n")
    for session in ("first", "second"):
        model = talking()
        async with agent(model, root, session, clock=clock) as one:
            await one.send("Hello.")
            clock.turn(3_600)
            await one.send("It is past midnight.")
        before, after = model.requests
        assert system(before) == system(after), "a session keeps its date"
        prompts.append(system(before))
    (first, first_end), (second, second_end) = (prompt.rsplit("\n\n", 1) for prompt in prompts)
    assert first == second
    assert FACT in first
    assert "Answer in short sentences." in first
    assert not any(each in first for each in ("2026-11-22", "2026-11-23", "`first`"))
    assert "2026-11-22" in first_end
    assert "`first`" in first_end
    assert "2026-11-23" in second_end
    assert "`second`" in second_end


@pytest.mark.req("AS-BUG-23")
@pytest.mark.filterwarnings("ignore:Async generator '(openai|anthropic):ResourceWarning")
async def test_the_cache_breakpoint_stands_before_the_line_that_differs_between_sessions(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    await curated(root, f"- {FACT}\n")
    with serving([Say("Hello."), Say("Hello again."), Say("Good.")]) as server:
        model = await _at(server, "anthropic:claude-sonnet-5")
        for session in ("first", "second"):
            async with agent(model, root, session) as one:
                await one.send("Hello.")
                whole = await one.system_prompt()
        await model.complete([Message(role="system", parts=(Text(text="Be brief."),)), said("Hello.")])
    (stable, end), (other_stable, other_end), plain = (_system_blocks(request.body) for request in server.requests)
    assert stable == other_stable
    assert stable["cache_control"]
    assert "cache_control" not in end | other_end
    assert "`first`" in str(end["text"])
    assert f"{other_stable['text']}\n\n{other_end['text']}" == whole
    assert [block["text"] for block in plain] == ["Be brief."]


def _system_blocks(body: Mapping[str, JsonValue]) -> list[dict[str, JsonValue]]:
    blocks = body["system"]
    assert isinstance(blocks, list)
    return [dict(block) for block in blocks if isinstance(block, dict)]


@pytest.mark.req("AS-BUG-23")
async def test_two_sessions_that_remember_with_another_store_share_as_much(tmp_path: Path) -> None:
    model = talking()
    for session in ("first", "second"):
        options = {"store": str(tmp_path / ".harness"), "file_tools": True, "closing_summary": "off"}
        async with agent(model, tmp_path / ".ricordo", session, **options) as one:
            await one.send("Hello.")
    (first, first_end), (second, _) = (system(request).rsplit("\n\n", 1) for request in model.requests)
    assert first == second
    assert "`read_file` opens them" in first
    assert "`first`" in first_end


@pytest.mark.req("AS-BUG-22")
async def test_a_workspace_that_says_a_lot_leaves_memory_a_notice(tmp_path: Path) -> None:
    root, model = tmp_path / ".ricordo", talking()
    lines = [f"Line {number} says something about the project." for number in range(2_000)]
    (tmp_path / "AGENTS.md").write_text("\n".join(lines[:200]) + "\n")
    await curated(root, f"- {FACT}\n" + "".join(f"- Fact {number} about the shop.\n" for number in range(150)))
    rules = anyio.Path(place_of(root) / "workspace" / "rules")
    await rules.mkdir()
    await (rules / "a.md").write_text("\n".join(lines))
    await (rules / "b.md").write_text("Rule B, the last one. " * 100)
    async with agent(model, root, instructions="BASE.") as one:
        await one.send("Hello.")
        await curated(root, f"- {LATER}\n")
        await one.send("And now?")
    prompt = system(model.requests[0])
    injected = prompt.removeprefix("BASE.").rsplit("\n\n", 1)[0]
    assert 7_000 < estimate_text(injected) <= 8_000
    assert lines[199] in prompt
    shown = [line for line in injected.split("\n") if line.startswith("Line ")]
    assert set(shown) <= set(lines), "cuts keep whole lines"
    assert "[Cut here: the rest stands in rules/a.md.]" in prompt
    assert "[Left out, there is no room for them here: rules/b.md." in prompt
    assert "Rule B" not in prompt
    assert FACT not in prompt
    assert "It stands in MEMORY.md" in prompt
    assert "`recall` finds it" in prompt
    assert f"- {LATER}" in told(model.requests[1].messages), "what changes is told all the same"
    model, less = talking(), replace(settings(root), workspace_tokens=1_000)
    async with agent(model, root, "other", instructions="BASE.", settings=less) as one:
        await one.send("Hello.")
    injected = system(model.requests[0]).removeprefix("BASE.").rsplit("\n\n", 1)[0]
    assert 500 < estimate_text(injected) <= 1_000


class Remembering:
    """A driver that holds curated lines and saved entries, and nothing else."""

    def __init__(self, curated: str, saved: Sequence[str]) -> None:
        self._curated = curated.encode()
        entries = [Entry(id=str(at), content=text) for at, text in enumerate(saved)]
        self._saved = [SavedEntry(entry=each, source="memory/a.md") for each in entries]

    async def write(self, entry: Entry) -> Entry:
        return entry

    async def find(self, query: Query, limit: int) -> list[Hit]:
        return []

    async def preamble(self, budget: Tokens | None) -> Preamble:
        return compose_preamble(self._curated, self._saved, budget)


TEXTS = st.builds(
    lambda words, times: (words + "\n") * times, st.text(st.sampled_from("abc 一é.<&"), max_size=40), st.integers(0, 90)
)


@pytest.mark.req("AS-BUG-22")
@given(
    agents=TEXTS, rules=st.lists(TEXTS, max_size=4), curated=TEXTS, saved=st.lists(TEXTS, max_size=3), data=st.data()
)
@examples(max_examples=40, deadline=None)
def test_whatever_their_sizes_all_sections_together_keep_to_the_budget(
    tmp_path_factory: pytest.TempPathFactory,
    agents: str,
    rules: list[str],
    curated: str,
    saved: list[str],
    data: st.DataObject,
) -> None:
    most = data.draw(st.integers(0, 1_500))
    facts = tuple(Fact(id=f"f{at}", content=f"{text} {at}") for at, text in enumerate([*saved, curated]))
    folder = tmp_path_factory.mktemp("folder")
    (folder / "AGENTS.md").write_text(agents, encoding="utf-8")

    async def written() -> str:
        files = InMemoryFiles()
        for number, text in enumerate(rules):
            await files.create(f"workspace/rules/{number}.md", text.encode())
        memory_root = SimpleNamespace(files=files, redactor=Redactor(bytes(32)))
        clock = HandClock()
        parts = StoreParts(redactor=memory_root.redactor, clock=clock, ids=MonotonicIds(clock), emitter=Emitter(clock))
        store = Store(Remembering(curated, saved), SCOPE, parts)
        workspace = SimpleNamespace(memory_root=memory_root, store=store)
        known = InMemoryProfileStore(HandClock())
        await known.save(replace(await known.load(), facts=facts), base=await known.load(), by="test")
        profile = ProfileView(known, InjectionConfig(), memory_root.redactor)
        prompt = PromptBuilder(
            folder,
            cast("Workspace", workspace),
            Tokens(1_000),
            clock=HandClock(),
            max_tokens=Tokens(most),
            profile=profile,
        )
        turn = Turn(scope=SCOPE, agent="main", session="s", messages=())
        specs = (recall.spec,)
        return (await prompt.build(ModelRequest(turn=turn, system="BASE.", window=(said("x"),), tools=specs))).text

    prompt = anyio.run(written)
    injected = prompt.removeprefix("BASE.").rpartition("The date was")[0].strip("\n")
    assert estimate_text(injected) <= most


@tool
def recall(query: str) -> str:
    """Find what is remembered."""
    return query
