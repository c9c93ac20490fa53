"""Agents at servers that refuse whatever a provider would: nothing that was said makes a session unusable."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from agent_arguments import agent_arguments
from agents_at_work import SCOPE, said, settings
from reached_models import KEY, load_packages, reach
from ricordo import CompactionConfig, HarnessAgent, ToolResultEvictionConfig
from ricordo.agent import tool
from ricordo.context import (
    Act,
    ClearResultsConfig,
    NoCompaction,
    Reduction,
    SlidingWindow,
    TruncateArgsConfig,
    Window,
    changed_reduction,
)
from ricordo.errors import InvalidMessage, ModelOverflow
from ricordo.messages import JsonValue, Message, Text, Thinking, Usage
from ricordo.models import ChatModel, load_model
from ricordo.testing import (
    Call,
    Calls,
    LoopbackServer,
    RecordedRequest,
    Say,
    ScriptedModel,
    ScriptItem,
    ScriptLike,
    overflow,
)

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore:Async generator '(openai|anthropic|http):ResourceWarning"),
]

CHAT, CLAUDE = "openai-chat:gpt-4o", "anthropic:claude-sonnet-5"
LONG = "some more words to fill a line, " * 60


@pytest.fixture(autouse=True, scope="module")
def packages() -> None:
    """Load the packages of the providers outside of the event loop, as a program does."""
    load_packages()


@contextmanager
def strict(script: ScriptLike, *, window: int | None = None) -> Iterator[LoopbackServer]:
    with LoopbackServer(script, strict=True, window=window) as server:
        yield server
    assert server.problems == ()


@tool
def look(what: str = "") -> str:
    """Look."""
    return "  "


@tool
def wide(number: int = 0) -> str:
    """Return much."""
    return f"result {number}\n" + "a line of what was found\n" * 60


def agent(model: ChatModel, root: Path, **options: object) -> HarnessAgent:
    given = {"session": "s", "settings": settings(root), "tools": [look, wide], "memory_tools": False} | options
    return HarnessAgent(model, **agent_arguments(workspace=root, scope=SCOPE, **given))


@pytest.mark.parametrize("name", [CHAT, CLAUDE])
async def test_a_session_goes_on_after_a_reply_that_no_provider_would_take_back(tmp_path: Path, name: str) -> None:
    script: list[ScriptItem] = [
        Calls(
            Call("look<|channel|>json", {}, id="functions.look:0"), Call("look", {}, id="functions.look:0"), text=" \n"
        ),
        Say("So."),
        Call("look", {}, id="functions.look:0"),
        Say("Done \ud83d."),
        Say("Yes."),
    ]
    with strict(script) as server:
        async with agent(reach(server, name), tmp_path) as one:
            assert str(await one.send("Look twice.")) == "So."
            await one.send("And again, \udc00.")
            assert str(await one.send("Are you there?")) == "Yes."
            recorded = one.window
        assert server.refusals == ()
    names = [call.name for message in recorded for call in message.tool_calls]
    assert names[0] == "look<|channel|>json", "what was said stays as it was"


async def test_a_session_that_changes_its_provider_is_taken_by_the_next_one(tmp_path: Path) -> None:
    script: list[ScriptItem] = [Calls(Call("look", {}), thinking="Hm."), Say("One.", thinking="Hm.")]
    for name in (CLAUDE, CHAT, "openai:gpt-4o", CLAUDE):
        with strict(script) as server:
            async with agent(reach(server, name), tmp_path) as one:
                assert str(await one.send("Look.")) == "One."
            assert server.refusals == ()


async def test_a_blank_message_is_refused_before_it_is_recorded(tmp_path: Path) -> None:
    with strict([]) as server:
        async with agent(reach(server, CLAUDE), tmp_path) as one:
            for blank in (" ", said("\n"), Message(role="user"), [said(" "), said("")]):
                with pytest.raises(InvalidMessage, match="blank"):
                    await one.send(blank)
            assert one.window == ()


@pytest.mark.req("DF-B19")
@pytest.mark.parametrize("refuses", [False, True], ids=["before the limit", "by the refusal"])
async def test_more_messages_than_the_provider_takes_are_made_fewer(tmp_path: Path, refuses: bool) -> None:
    said_before = [
        Message(role=role, parts=(Text(text=f"{role} {number}"),))
        for number in range(1_100)
        for role in ("user", "assistant")
    ]
    with strict(lambda _: Say("Yes.")) as server:
        model = reach(server, CHAT) if not refuses else _Untold(reach(server, CHAT))
        config = CompactionConfig(trigger_messages=0, trigger_tokens=None, keep_tokens=None, model="offline")
        async with agent(model, tmp_path, compaction=config) as one:
            await one.record(said_before)
            for number in range(3):
                assert str(await one.send(f"Number {number}?")) == "Yes."
            assert len(one.window) < 1_900
            assert one.window[-1].text == "Yes."
    assert len(server.refusals) == 0


class _Untold:
    """A model that does not tell how many messages it takes."""

    def __init__(self, inside: ChatModel) -> None:
        self._inside = inside
        self.name, self.window = inside.name, inside.window
        self.complete, self.stream = inside.complete, inside.stream


@pytest.mark.req("DF-B19")
async def test_more_messages_than_fit_are_refused_with_a_sentence_where_nothing_may_shrink_them(tmp_path: Path) -> None:
    with strict(lambda _: Say("Yes.")) as server:
        async with agent(reach(server, CHAT), tmp_path) as one:
            await one.record([said(f"user {number}") for number in range(2_100)])
            with pytest.raises(ModelOverflow, match="compact the session"):
                await one.send("And?")
            assert server.requests == ()
            await one.compact()
            assert str(await one.send("And now?")) == "Yes."


@pytest.mark.req("CC-PIN")
async def test_a_sliding_window_with_a_pinned_reply_begins_with_the_user(tmp_path: Path) -> None:
    with strict(lambda _: Say("Yes.")) as server:
        async with agent(reach(server, CLAUDE), tmp_path, strategies=[SlidingWindow(keep_messages=4)]) as one:
            reply = (await one.send("Say something.")).message
            await one.compactions.pin(reply.id)
            for number in range(6):
                await one.send(f"Number {number}.")
            assert any(message.id == reply.id for message in one.window)
            assert one.window[0].role == "user"
            assert one.window[0].text == "Say something."
        assert server.refusals == ()


@pytest.mark.req("AS-BUG-08", "GO-DEDUPE")
@pytest.mark.parametrize("strategy", [NoCompaction(), SlidingWindow(keep_messages=40)], ids=["nothing", "sliding"])
async def test_a_refused_request_of_hand_written_strategies_is_made_again_smaller(
    tmp_path: Path, strategy: NoCompaction | SlidingWindow
) -> None:
    refused = overflow("openai-chat", window=8_192, size=9_500)
    script: list[ScriptItem] = [*[Say("Yes.")] * 8, refused, Say("Made it.")]
    with strict(script) as server:
        async with agent(reach(server, "openai-chat:local"), tmp_path, strategies=[strategy]) as one:
            for number in range(8):
                await one.send(f"Number {number}. {LONG * 2}")
            assert str(await one.send("One more.")) == "Made it."
            shorter = one.window
            if len(shorter) < 17:
                await one.compactions.undo()
                assert len(one.window) > len(shorter)


@pytest.mark.req("GO-DEDUPE", "CC-UNDO")
async def test_a_strategy_of_one_s_own_can_be_undone(tmp_path: Path) -> None:
    class Newest:
        action: Act = "slide"

        async def reduce(self, window: Window) -> Reduction:
            return changed_reduction(
                self.action, window, window.messages[-3:], "the newest stay", dropped=window.messages[:-3]
            )

    with strict([Say("Yes."), Call("wide", {}), Say("Found."), Say("Yes.")]) as server:
        async with agent(reach(server, CLAUDE), tmp_path, strategies=[Newest()]) as one:
            for number in range(3):
                await one.send(f"Number {number}.")
            before = one.window
            assert len(before) == 4
            await one.compactions.undo()
            assert len(one.window) > len(before)
        assert server.refusals == ()


@pytest.mark.req("AS-BUG-21")
async def test_a_wrong_correction_of_the_estimate_refuses_no_request(tmp_path: Path) -> None:
    usage = Usage(input=30_000, output=5)
    with strict(lambda _: Say("Yes.", usage=usage)) as server:
        model = load_model("openai-chat:local", base_url=f"{server.url}/v1", api_key=KEY, window=8_192)
        async with agent(model, tmp_path, instructions="Keep to this. " * 600) as one:
            for number in range(4):
                assert str(await one.send(f"Number {number}.")) == "Yes."


@pytest.mark.req("AS-OVER-01", "AS-BUG-02")
async def test_a_window_that_a_refusal_told_is_kept_to_in_this_session_and_forgotten_in_the_next(
    tmp_path: Path,
) -> None:
    config = replace(CompactionConfig.dynamic(), reserved=3_000)

    def answered(request: RecordedRequest) -> ScriptItem:
        return Say("Yes.")

    with strict(answered, window=12_000) as server:
        model = reach(server, "openai-chat:local")
        async with agent(model, tmp_path, compaction=config) as one:
            for number in range(30):
                await one.send(f"Number {number}. {LONG * 2}")
            assert len(server.refusals) <= 1
            assert (await one.get_context_usage()).limit == 12_000
        async with agent(model, tmp_path, compaction=config, session="t") as one:
            assert (await one.get_context_usage()).limit is None


@pytest.mark.req("AS-BUG-22")
async def test_what_people_wrote_takes_no_more_than_a_quarter_of_a_small_window(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Use tabs here.\n" + "Another rule of this project.\n" * 3_000)
    with strict(lambda _: Say("Yes."), window=8_192) as server:
        async with agent(reach(server, "openai-chat:local"), tmp_path / ".ricordo") as one:
            with pytest.raises(ModelOverflow):
                await one.send("Hello?")
    with strict(lambda _: Say("Yes."), window=8_192) as server:
        model = load_model("openai-chat:local", base_url=f"{server.url}/v1", api_key=KEY, window=8_192)
        async with agent(model, tmp_path / ".ricordo") as one:
            assert str(await one.send("Hello?")) == "Yes."
            prompt = await one.system_prompt()
        assert server.refusals == ()
    assert "Use tabs here." in prompt
    assert "the rest stands in AGENTS.md" in prompt


@pytest.mark.req("AS-BUG-04")
@pytest.mark.parametrize("by", ["instructions", "a pin"])
async def test_what_is_always_sent_and_never_fits_is_refused_with_a_sentence_at_once(tmp_path: Path, by: str) -> None:
    long = "Keep to this, whatever happens to the rest of it. " * 900
    model = ScriptedModel(lambda _: Say("Yes."), window=8_192)
    async with agent(model, tmp_path, instructions=long if by == "instructions" else None) as one:
        (stored,) = await one.record([said(long)])
        if by == "a pin":
            await one.compactions.pin(stored.id)
        with pytest.raises(ModelOverflow, match=r"8,192: shorten AGENTS\.md"):
            await one.send("Hello?")
        assert model.requests == ()
        if by == "a pin":
            await one.compactions.unpin(stored.id)
            await one.compact()
            await one.send("Hello?")


@pytest.mark.req("AS-BUG-06", "AS-MEM-02", "AS-BUG-04")
async def test_forty_results_at_once_fit_into_a_small_window(tmp_path: Path) -> None:
    strings: list[JsonValue] = [f"item {number}" for number in range(200)]

    @tool
    def lookup(items: list[str]) -> str:
        """Look up."""
        return "a line of what was found\n" * 60

    script: list[ScriptItem] = [
        Calls(*[Call("lookup", {"items": strings}) for _ in range(40)]),
        Say("Found."),
    ]
    with strict(script, window=8_192) as server:
        model = load_model("openai-chat:local", base_url=f"{server.url}/v1", api_key=KEY, window=8_192)
        config = CompactionConfig(
            trigger_messages=0, trigger_tokens=None, keep_tokens=None, reserved=2_000, model="offline"
        )
        async with agent(model, tmp_path, tools=[lookup], compaction=config, clear_results=ClearResultsConfig()) as one:
            assert str(await one.send("Look everything up.")) == "Found."
        assert len(server.refusals) <= 1


@pytest.mark.req("FC-SECRET")
async def test_a_thought_that_held_a_secret_is_left_out_and_the_session_goes_on(tmp_path: Path) -> None:
    secret = "AKIAQ7ZP4MX2WT6RB3KD"
    with strict([Calls(Call("look", {}), thinking=f"The key is {secret}."), Say("Done."), Say("Yes.")]) as server:
        async with agent(reach(server, CLAUDE), tmp_path) as one:
            await one.send("Look.")
            thoughts = [part for message in one.window for part in message.parts if isinstance(part, Thinking)]
            await one.send("And?")
        assert server.refusals == ()
        assert secret not in str([request.body for request in server.requests[1:]])
    assert [part.signature for part in thoughts] == [None]


async def test_a_sealed_thought_of_an_older_transcript_that_held_a_secret_is_left_out(tmp_path: Path) -> None:
    with strict([Calls(Call("look", {}), thinking="The key is hidden."), Say("Done."), Say("Yes.")]) as server:
        async with agent(reach(server, CLAUDE), tmp_path) as one:
            await one.send("Look.")
        mark = "[secret:aws-key-id:0123abcd]"
        for path in (tmp_path / "users" / "me").rglob("s.*json*"):
            path.write_text(path.read_text().replace("The key is hidden.", f"The key is {mark}."))
        async with agent(reach(server, CLAUDE), tmp_path) as one:
            await one.send("And?")
        assert mark not in str(server.requests[-1].body)


@pytest.mark.req("CC-CLEAR")
@pytest.mark.parametrize("name", ["anthropic:claude-haiku-4-5", "openai:gpt-5"])
async def test_thoughts_of_earlier_turns_are_cleared_and_those_of_the_tools_at_work_stay(
    tmp_path: Path, name: str
) -> None:
    def answered(request: RecordedRequest) -> ScriptItem:
        if request.messages[-1].tool_results:
            return Say("Done.", thinking="So it is.")
        return Calls(Call("look", {}), thinking=f"Thought of request {request.number}. " * 60)

    clear = ClearResultsConfig(trigger_tokens=1, min_tokens=1)
    with strict(answered) as server:
        url = server.url if name.startswith("anthropic:") else f"{server.url}/v1"
        model = load_model(name, base_url=url, api_key=KEY, thinking="low")
        async with agent(model, tmp_path, clear_results=clear) as one:
            for number in range(3):
                assert str(await one.send(f"Look {number}.")) == "Done."
        assert server.refusals == ()
        last = str(server.requests[-1].body)
    assert "Thought of request 5." in last
    assert "Thought of request 1." not in last
    assert "Thought of request 3." not in last


@pytest.mark.req("AS-BUG-11", "CC-CLEAR")
async def test_what_was_cleared_can_be_opened_without_the_session_tools(tmp_path: Path) -> None:
    def answered(request: RecordedRequest) -> ScriptItem:
        found = [result.text for message in request.messages for result in message.tool_results]
        if len(found) < 8:
            return Call("wide", {"number": len(found)})
        if len(found) == 8:
            handle = found[0].partition("`expand` with `")[2].partition("`")[0]
            return Call("expand", {"handle": handle})
        return Say("Done.")

    model = ScriptedModel(answered)
    clear = ClearResultsConfig(trigger_tokens=2_000, keep_results=2, min_tokens=100)
    async with agent(model, tmp_path, session_tools=False, clear_results=clear) as one:
        await one.send("Look.")
    offered = {spec.name for spec in model.requests[0].tools}
    assert "expand" in offered
    assert "session_search" not in offered
    last = [result.text for message in model.requests[-1].messages for result in message.tool_results][-1]
    assert "result 0" in last


@pytest.mark.req("AS-EVICT-06", "AS-BUG-11", "AS-EVICT-02")
async def test_an_evicted_result_can_be_read_beside_a_program_s_own_read_file(tmp_path: Path) -> None:
    @tool
    def read_file(path: str) -> str:
        """Read something of mine."""
        return "mine"

    def answered(request: RecordedRequest) -> ScriptItem:
        found = [result.text for message in request.messages for result in message.tool_results]
        if not found:
            return Call("wide", {"number": 7})
        if len(found) == 1:
            reader = found[0].partition("Read it in pages: `")[2].partition("`")[0]
            path = found[0].partition("All of it is in ")[2].partition(". Read")[0]
            return Call(reader, {"path": path})
        return Say("Done.")

    model = ScriptedModel(answered)
    evict = ToolResultEvictionConfig(max_result_chars=500, preview_chars=50)
    async with agent(model, tmp_path, tools=[wide, read_file], tool_result_eviction=evict) as one:
        await one.send("Look.")
    last = [result.text for message in model.requests[-1].messages for result in message.tool_results][-1]
    assert "result 7" in last


@pytest.mark.req("AS-BUG-04", "AS-BUG-11", "HE-C1-transcript")
async def test_a_shortened_message_names_what_opens_it(tmp_path: Path) -> None:
    giant = "".join(f"paragraph {number} of the long text. " for number in range(3_000))

    def answered(request: RecordedRequest) -> ScriptItem:
        results = [result.text for message in request.messages for result in message.tool_results]
        if results:
            return Say("Done.")
        handle = request.messages[-1].text.partition("`expand` with `")[2].partition("`")[0]
        return Call("expand", {"handle": handle})

    model = ScriptedModel(answered, window=12_000)
    config = CompactionConfig(model="offline")
    async with agent(model, tmp_path, compaction=config, truncate_args=TruncateArgsConfig()) as one:
        await one.send(giant)
    last = [result.text for message in model.requests[-1].messages for result in message.tool_results][-1]
    assert "paragraph 0 of" in last
