"""The window of an agent: small where that was asked for, whole where not, and always made from what was said."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_arguments import agent_arguments
from agents_at_work import SCOPE, is_valid, ledgers, said, settings, spoken, transcript
from hand_made_roots import begun
from places import place_of
from ricordo import (
    ClearResultsConfig,
    CompactionConfig,
    HarnessAgent,
    ToolResultEvictionConfig,
    TruncateArgsConfig,
    TurnLimits,
)
from ricordo.agent import tool
from ricordo.agent.tools.expand import render_record
from ricordo.context import SlidingWindow
from ricordo.errors import InvalidScope, InvalidSetting, ModelOverflow, ScopeRequired
from ricordo.messages import Media, Message, Text, Thinking, ToolResult, Unknown, get_mark
from ricordo.models import ChatModel
from ricordo.runtime import Settings
from ricordo.testing import Call, Fail, RecordedRequest, Say, ScriptedModel, ScriptItem

if TYPE_CHECKING:
    from ricordo.events import Event

pytestmark = pytest.mark.anyio

LONG = "some more words to fill a line, "
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 2_000


@tool
def wide(size: int) -> str:
    """Return one long line."""
    return "x" * (size - 5) + " end."


@tool
def picture() -> bytes:
    """Return a picture."""
    return PNG


@tool
def write(text: str) -> str:
    """Write a text."""
    return f"wrote {len(text)}"


@tool
def broken() -> str:
    """Fail."""
    raise RuntimeError("the disk of the tool is gone")


def agent(model: ChatModel, root: Path, **options: object) -> HarnessAgent:
    given = {"session": "s", "settings": settings(root), "tools": [wide, picture, write, broken]} | options
    return HarnessAgent(model, **agent_arguments(workspace=root, scope=SCOPE, **given))


def talking(window: int | None = None) -> ScriptedModel:
    return ScriptedModel(lambda request: Say(f"Reply {request.number}. {LONG * 5}"), window=window)


def counts(model: ScriptedModel) -> list[int]:
    """Return how many messages each request of the agent had, without the system prompt."""
    return [sum(each.role != "system" for each in request.messages) for request in model.requests if request.tools]


@pytest.mark.req("AS-COMPACT-14", "AS-EVICT-08", "AS-OVER-02", "AS-COMPACT-15", "HE-C3-kinds")
async def test_every_reduction_is_off_until_its_configuration_is_passed(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    begun(root, tmp_path / "data")
    (root / "config.toml").write_text("compaction = true\ntool_result_eviction = true\ntruncate_args = true\n")
    long = "y" * 5_000
    script: list[ScriptItem] = [Call("wide", {"size": 100_000}), Call("write", {"text": long})]
    script += [Say("Done."), *[Say(f"Reply {number}.") for number in range(26)], Fail(400, overflow=True)]
    events: list[Event] = []
    model = ScriptedModel(script, window=2_000)
    async with agent(model, root, on_event=events.append, settings=None) as one:
        await one.send("Look.")
        for number in range(26):
            await one.send(f"Number {number}. {LONG}")
        with pytest.raises(ModelOverflow):
            await one.send("One more.")
        window = one.window
    assert [each.id for each in window] == [each.id for each in await transcript(root)]
    reductions = {"evict", "clear", "dedupe", "truncate", "compact", "drop", "slide", "none", "overflow"}
    assert not reductions & {event.stage for event in events}
    last = model.requests[-1].messages[1:]
    assert len(last) == 6 + 52 + 1
    assert long in str(last)
    assert any(len(text) > 90_000 for _, text in spoken(last))
    assert len(model.requests) == 3 + 26 + 1, "a request that overflows is not made again"

    replies: list[ScriptItem] = [Call("write", {"text": long}), *[Say(f"Reply. {LONG * 5}")] * 40]
    shrinking = ScriptedModel(lambda request: replies[request.number - 1])
    async with agent(shrinking, tmp_path / "2", compaction=CompactionConfig(model="offline")) as one:
        for number in range(26):
            await one.send(f"Number {number}. {LONG * 5}")
    assert max(counts(shrinking)) == 49
    assert long in str(max(shrinking.requests, key=lambda request: len(request.messages)).messages)

    truncating = ScriptedModel([Call("write", {"text": long}), Call("wide", {"size": 100_000}), *[Say("Done.")] * 14])
    async with agent(truncating, tmp_path / "3", truncate_args=TruncateArgsConfig()) as one:
        for number in range(14):
            await one.send(f"Number {number}.")
    assert long in str(truncating.requests[1].messages)
    assert long not in str(truncating.requests[-1].messages)
    assert any(len(text) > 90_000 for _, text in spoken(truncating.requests[-1].messages))

    recovering = ScriptedModel([*[Say(LONG * 9)] * 12, Fail(400, overflow=True), Say("Fits.")])
    async with agent(recovering, tmp_path / "4", compaction=CompactionConfig(model="offline")) as one:
        for number in range(12):
            await one.send(f"Number {number}. {LONG}")
        assert str(await one.send("One more.")) == "Fits."
    assert counts(recovering)[-1] < counts(recovering)[-2]


@pytest.mark.req("AS-EVICT-08", "AS-EVICT-01", "AS-EVICT-02", "AS-EVICT-03", "AS-COMPACT-14", "HE-C3-kinds")
async def test_eviction_is_switched_on_by_its_defaults_alone(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    script = [Call("wide", {"size": 80_000}), Call("wide", {"size": 80_001}), Call("wide", {"size": 300_000})]
    long = "y" * 5_000
    model = ScriptedModel([*script, Call("write", {"text": long}), *[Say("Done.")] * 14])
    async with agent(model, root, tool_result_eviction=ToolResultEvictionConfig.defaults()) as one:
        for number in range(14):
            await one.send(f"Number {number}.")
    assert long in str(model.requests[-1].messages), "arguments stay whole"
    sizes = [len(text) for role, text in spoken(model.requests[-1].messages) if role == "tool"][:3]
    assert sizes[0] == 80_000, "a result of the documented size stays"
    assert all(4_000 <= size < 5_000 for size in sizes[1:]), "2,000 characters stay at each end"
    files = sorted(
        (place_of(root) / "workspace" / "large_tool_results" / "s").iterdir(), key=lambda path: path.stat().st_size
    )
    assert [len(path.read_text()) for path in files] == [80_001, 300_000]


@pytest.mark.req("AS-COMPACT-11", "AS-COMPACT-01", "AS-COMPACT-03")
async def test_compaction_keeps_the_numbers_it_was_given_whatever_the_window(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    config = CompactionConfig(trigger_messages=30, keep_messages=10)
    assert config.flush_before_compact
    assert config.offload_before_compact
    summary = "## SESSION INTENT\nTalk.\n## SUMMARY\nTalked.\n## ARTIFACTS\nNone\n## NEXT STEPS\nNone"
    events: list[Event] = []
    model = ScriptedModel(
        lambda request: Say(f"Reply {request.number}. {LONG * 5}" if request.tools else summary), window=1_000_000
    )
    async with agent(model, root, compaction=config, on_event=events.append) as one:
        await one.record([said(f"Number {number}. {LONG * 5}") for number in range(28)])
        await one.send(f"The twenty-ninth. {LONG}")
        before = one.window
        assert counts(model) == [29]
        await one.clear()
        await one.record([said(f"Again {number}. {LONG * 5}") for number in range(29)])
        tail = one.window[-9:]
        await one.send(f"The thirtieth. {LONG}")
        sent = one.window
        assert one.memory is not None
        assert await one.drain() == 0
    assert not any(get_mark(each) for each in before)
    assert get_mark(sent[0]) == "summary"
    assert sent[1:10] == tail
    assert counts(model) == [29, 11]
    done = [event for event in events if event.stage == "compact" and event.status == "finished"]
    assert [(event.counts["messages_before"], event.counts["messages_after"]) for event in done] == [(30, 11)]
    assert spoken(await transcript(root))[30 + 0][1].startswith("Again 0.")


@pytest.mark.req("AS-BUG-32", "AS-COMPACT-10", "HE-C3-kinds", "CC-PROGRESS", "CC-UNDO")
async def test_every_compaction_is_told_with_its_numbers(tmp_path: Path) -> None:
    events: list[Event] = []
    model = ScriptedModel([*[Say(LONG * 9)] * 12, Fail(400, overflow=True), Say("Fits.")])
    config = CompactionConfig(trigger_messages=20, keep_messages=6, model="offline")
    async with agent(model, tmp_path / "root", compaction=config, on_event=events.append) as one:
        for number in range(12):
            await one.send(f"Number {number}. {LONG}")
        await one.send("One more.")
        await one.compact()
        (place_of(tmp_path / "root") / "workspace" / "agents").rename(tmp_path / "gone")
        await one.compact()
    told = [event for event in events if event.stage == "compact"]
    began = [event for event in told if event.status == "started"]
    ended = [event for event in told if event.status != "started"]
    assert len(began) == len(ended) == 15 + 2 - 1
    assert {event.status for event in ended} == {"finished", "skipped"}
    for event in ended:
        assert event.reason
        assert set(event.counts) >= {"messages_before", "messages_after", "tokens_before", "tokens_after"}
    finished = [event for event in ended if event.status == "finished"]
    assert any("overflow" in (event.reason or "") for event in finished)
    assert any("asked" in (event.reason or "") for event in ended)
    assert all(event.counts["tokens_after"] < event.counts["tokens_before"] for event in finished)


@pytest.mark.req("AS-COMPACT-16", "AS-INDEX-05", "AS-SESS-01", "GO-G3")
@pytest.mark.parametrize("memory_off", [{"memory_tools": False, "memory_hooks": False}, {"store": "none"}])
async def test_compaction_and_memory_have_switches_of_their_own(memory_off: dict[str, Any], tmp_path: Path) -> None:
    config = CompactionConfig(trigger_messages=8, keep_messages=2)
    summary = "## SESSION INTENT\nTalk.\n## SUMMARY\nTalked.\n## ARTIFACTS\nNone\n## NEXT STEPS\nNone"
    events: list[Event] = []

    def answered(request: RecordedRequest) -> ScriptItem:
        summing = "SESSION INTENT" in request.messages[-1].text
        return Say(summary if summing else f"Reply {request.number}. {LONG * 9}")

    model = ScriptedModel(answered)
    async with agent(model, tmp_path / "off", compaction=config, on_event=events.append, **memory_off) as one:
        for number in range(6):
            await one.send(f"We decided to use PostgreSQL {number}. {LONG * 9}")
        assert any(get_mark(each) == "summary" for each in one.window)
        assert await one.drain() == 0
    summing = [request for request in model.requests if "SESSION INTENT" in request.messages[-1].text]
    assert 0 < len(summing) == len(model.requests) - 6, "nothing but replies and summaries was asked for"
    assert ledgers(tmp_path / "off") == ""
    assert "extract" not in {event.stage for event in events}

    events.clear()
    async with agent(talking(), tmp_path / "on", on_event=events.append) as one:
        await one.send("We deploy only from main.")
        assert await one.drain() == 0
    assert "We deploy only from main." in ledgers(tmp_path / "on")
    assert "compact" not in {event.stage for event in events}


@pytest.mark.req("AS-BUG-11", "AS-SESS-05", "AS-TRUNC-05")
async def test_the_transcript_holds_all_that_every_reduction_takes_out(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    long = "".join(f"argument {number} " for number in range(2_000))
    model = ScriptedModel(
        [
            Call("write", {"text": long}),
            Call("wide", {"size": 300_000}),
            Call("picture"),
            Call("broken"),
            *[Say(f"Reply. {LONG * 9}")] * 40,
        ]
    )
    told = Message(
        role="user",
        parts=(
            Text(text="Look at these."),
            Media(media_type="image/png", uri="https://a.example/b.png", name="b.png", description="a heron"),
            Unknown(kind="hologram", raw='{"kind":"hologram","at":[1,2]}'),
        ),
        name="Ana",
        metadata={"channel": "desk"},
    )
    thought = Message(
        role="assistant", parts=(Thinking(text=f"Well. {LONG * 99}", signature="seal"), Text(text="Yes."))
    )
    async with agent(
        model,
        root,
        compaction=CompactionConfig(trigger_messages=12, keep_messages=4, model="offline"),
        tool_result_eviction=ToolResultEvictionConfig(max_result_chars=2_000, preview_chars=100),
        truncate_args=TruncateArgsConfig(trigger_messages=6, keep_messages=2),
    ) as one:
        await one.record([told, thought])
        for number in range(20):
            await one.send(f"Number {number}. {LONG}")
        await one.compact()
        assert is_valid(one.window)
        assert len(str(one.window)) < 20_000
    logged = await transcript(root)
    for then, now in zip((told, thought), logged, strict=False):
        assert (now.role, now.parts, now.name, now.metadata) == (then.role, then.parts, then.name, then.metadata)
    (call, *_) = [each for message in logged for each in message.tool_calls]
    assert json.loads(call.arguments) == {"text": long}
    results = [each for message in logged for each in message.tool_results]
    assert results[1].text == "x" * 299_995 + " end."
    assert _picture(results[2]).media_type == "image/png"
    assert len(_picture(results[2]).uri) > len(PNG)
    assert "the disk of the tool is gone" in results[3].text
    assert [each.is_error for each in results] == [False, False, False, True]
    assert len(logged) == 2 + 20 * 2 + 4 * 2


@pytest.mark.req("AS-BUG-11", "CC-CLEAR")
async def test_a_thought_that_was_cleared_from_the_window_is_opened_again_word_for_word(tmp_path: Path) -> None:
    ponder = f"I weigh the harbour against the station. {LONG * 99}"
    model = ScriptedModel([Say("The harbour.", thinking=ponder), Say("Yes.")])
    async with agent(model, tmp_path / ".ricordo", clear_results=ClearResultsConfig(min_tokens=0)) as one:
        await one.send("Which way?")
        thought = one.window[-1]
        await one.send("Are you sure?")
        await one.compact()
        assert ponder not in repr(one.window)
        opened = await one.compactions.expand(f"m:{thought.id}")
        assert next(part for part in opened[0].parts if isinstance(part, Thinking)).text == ponder
        assert f"[thought] {ponder.strip()}" in render_record(opened)


def _picture(result: ToolResult) -> Media:
    return next(part for part in result.parts if isinstance(part, Media))


@pytest.mark.req("AS-BUG-10")
async def test_results_of_tools_that_fail_or_return_too_much_do_not_stay_in_the_window(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    calls = [Call("broken"), Call("wide", {"size": 5_000_000}), Call("picture"), Call("picture")]
    model = ScriptedModel([*calls, Say("Done."), Say("Yes.")])
    async with agent(model, root, tool_result_eviction=ToolResultEvictionConfig.defaults()) as one:
        result = await one.send("Do it.")
        assert str(result) == "Done."
        await one.send("And?")
        assert len(str(one.window)) < 30_000
        assert is_valid(one.window)
    sizes = sorted(
        path.stat().st_size for path in (place_of(root) / "workspace" / "large_tool_results" / "s").iterdir()
    )
    assert sizes == [len(PNG), 5_000_000]


@pytest.mark.req("CC-MANUAL")
async def test_a_window_is_made_smaller_on_demand_where_compaction_is_off(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    async with agent(ScriptedModel([*[Say(LONG * 9)] * 20, *[Say("no summary")] * 2]), root) as one:
        for number in range(20):
            await one.send(f"Number {number}. {LONG}")
        before = await one.get_context_usage()
        reports = await one.compact()
        after = await one.get_context_usage()
        assert [(report.action, report.status) for report in reports] == [("compact", "done"), ("drop", "skipped")]
        assert after.messages < before.messages == 40
        assert after.tokens < before.tokens
        kept = one.window
    async with agent(talking(), root) as one:
        assert one.window == kept, "the smaller window is what the session goes on with"
        await one.clear()
        assert len(one.window) == 0
    async with agent(talking(), root) as again:
        assert len(again.window) == 0
        result = await again.send("Hello again.")
        assert spoken(result.window)[0] == ("user", "Hello again.")
        assert len(result.window) == 2
    assert len(await transcript(root)) == 42


@pytest.mark.req("AS-STATE-01", "AS-COMPACT-10")
async def test_a_session_goes_on_where_it_was(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    async with agent(talking(), root, session=None) as one:
        await one.send("Hello.")
        name, window = one.session, one.window
    async with agent(talking(), root, session=None) as other:
        assert other.session != name
        assert other.window == ()
    async with agent(talking(), root, session=name) as again:
        assert again.window == window
        assert (await again.send("Hello.")).messages[0].id not in {message.id for message in window}


@pytest.mark.req("AS-BUG-32")
async def test_a_listener_hears_every_stage(tmp_path: Path) -> None:
    events: list[Event] = []
    root = tmp_path / ".ricordo"
    model = ScriptedModel([Call("wide", {"size": 9_000}), *[Say(LONG * 9)] * 9])
    async with agent(
        model,
        root,
        on_event=events.append,
        settings=settings(root, consolidates=True),
        compaction=CompactionConfig(trigger_messages=6, keep_messages=2, model="offline"),
        tool_result_eviction=ToolResultEvictionConfig(max_result_chars=2_000, preview_chars=100),
    ) as one:
        for _ in range(4):
            await one.send(f"We deploy only from main. {LONG}")
        await one.drain()
        await one.consolidate()
    finished = {event.stage for event in events if event.status == "finished"}
    assert finished >= {"turn", "record", "model", "tool", "evict", "compact", "extract", "consolidate", "drain"}
    assert all(event.scope is None or event.scope.project == "shop" for event in events)


@pytest.mark.req("AS-COMPACT-14")
@pytest.mark.parametrize(
    ("config", "limit", "fired"),
    [("", None, 50), ("[compaction]\ntrigger_messages = 8\nkeep_messages = 2\n", None, 8), ("", 24_000, 0)],
)
async def test_a_recommended_agent_has_every_reduction_on(
    tmp_path: Path, config: str, limit: int | None, fired: int
) -> None:
    root = tmp_path / ".ricordo"
    begun(root, tmp_path / "data")
    (root / "config.toml").write_text(f"max_iters = 3\n{config}")
    events: list[Event] = []
    calls: list[ScriptItem] = [
        Call("wide", {"size": 100_000}),
        Call("write", {"text": "y" * 9_000}),
        Call("wide", {"size": 100}),
    ]
    words = f"Reply. {LONG * (5 if fired else 160)}"
    model = ScriptedModel(
        lambda request: calls[request.number - 1] if request.number <= len(calls) else Say(words), window=limit
    )
    async with HarnessAgent.with_recommended_settings(
        model, memory=root, scope=SCOPE, session="s", tools=[wide, write], on_event=events.append
    ) as one:
        assert (await one.send("Look.")).ending == "max_iters", "the limit is that of config.toml"
        for number in range(26):
            await one.send(f"Number {number}. {LONG}")
    ended = [event for event in events if event.status == "finished"]
    assert {"evict", "compact"} <= {event.stage for event in ended}
    assert "truncate" in {event.stage for event in events}
    first = next(event for event in ended if event.stage == "compact")
    if fired:
        assert first.counts["messages_before"] in {fired, fired + 1}
    else:
        assert 9_000 < first.counts["tokens_before"] < 18_000, "it follows the window of 24,000 tokens less a quarter"


@pytest.mark.req("AS-COMPACT-14", "AS-COMPACT-15")
async def test_a_recommended_agent_leaves_off_what_the_settings_switch_off(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    begun(root, tmp_path / "data")
    (root / "config.toml").write_text("compaction = false\n")
    events: list[Event] = []
    async with HarnessAgent.with_recommended_settings(
        talking(), memory=root, scope=SCOPE, on_event=events.append, truncate_args=TruncateArgsConfig()
    ) as one:
        for number in range(30):
            await one.send(f"Number {number}. {LONG}")
    assert {"evict", "truncate"} <= {event.stage for event in events}
    assert "compact" not in {event.stage for event in events}


@pytest.mark.req("AS-CFG-01")
async def test_an_agent_refuses_what_it_can_not_be_made_of(tmp_path: Path) -> None:
    with pytest.raises(ScopeRequired):
        HarnessAgent("offline", scope=None)
    with pytest.raises(InvalidSetting):
        HarnessAgent("offline", scope=SCOPE, limits=TurnLimits(max_iters=0))
    for strategies in (SlidingWindow(keep_messages=3), "slide", [SlidingWindow(keep_messages=3), "slide"]):
        with pytest.raises(InvalidSetting):
            HarnessAgent("offline", scope=SCOPE, strategies=strategies)  # type: ignore[arg-type]
    with pytest.raises(InvalidScope):
        HarnessAgent("offline", scope=SCOPE, session="sk-ant-api03-" + "q" * 90)


@pytest.mark.req("AS-COMPACT-14")
async def test_arguments_win_over_the_settings(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    given = Settings.load(None, {}, {"max_iters": 2, "data": tmp_path / "data", "cache": tmp_path / "cache"})
    asked: Sequence[tuple[int | None, int]] = ((None, 2), (1, 1))
    for limit, steps in asked:
        model = ScriptedModel(lambda request: Call("write", {"text": "more"}))
        async with agent(model, root, session=None, settings=given, max_iters=limit) as one:
            assert (await one.send("Go.")).steps == steps


async def test_a_message_that_says_the_same_again_stays_in_the_window_without_a_root(tmp_path: Path) -> None:
    (tmp_path / ".ricordo").write_text("a file where the root should be")
    config = CompactionConfig(trigger_messages=6, keep_messages=2, model="offline")
    async with agent(talking(), tmp_path / ".ricordo", compaction=config) as one:
        assert one.memory is None
        for _ in range(8):
            await one.send("yes")
            assert _last_of_user(one.window) == "yes"


def _last_of_user(window: Sequence[Message]) -> str:
    assert [message.role for message in window[-2:]] == ["user", "assistant"]
    return window[-2].text
