"""The reductions of an agent together: what triggers each, what each does alone, and a window that never overflows."""

import json
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_arguments import agent_arguments
from agents_at_work import SCOPE, is_valid, said, settings, transcript
from ricordo import CompactionConfig, HarnessAgent, ToolResultEvictionConfig, TruncateArgsConfig
from ricordo.agent import tool
from ricordo.context import ClearResultsConfig
from ricordo.messages import JsonValue, Message, Text, ToolCall, ToolResult, Usage, estimate_request, get_mark
from ricordo.testing import Call, Fail, RecordedRequest, Say, ScriptedModel, ScriptItem

if TYPE_CHECKING:
    from ricordo.events import Event

pytestmark = pytest.mark.anyio

WORDS = "some more words to fill a line, "
SUMMARY = "## SESSION INTENT\n- Talk.\n## SUMMARY\n- Talked.\n## ARTIFACTS\nNone\n## NEXT STEPS\nNone"
USAGE = Usage()
CLIPPED = TruncateArgsConfig().truncation_text


@tool
def look_up(size: int) -> str:
    """Look something up."""
    return (WORDS * (size // len(WORDS) + 1))[:size]


@tool
def write(text: str) -> str:
    """Write a text."""
    return f"wrote {len(text)}"


def agent(model: ScriptedModel, root: Path, **options: object) -> HarnessAgent:
    given = {"session": "s", "settings": settings(root), "tools": [look_up, write]} | options
    return HarnessAgent(model, **agent_arguments(workspace=root, scope=SCOPE, **given))


def told(request: RecordedRequest, text: str) -> ScriptItem:
    """Answer as a summariser when no tools are offered, else with `text`."""
    if request.tools:
        return Say(text, usage=USAGE)
    return Say(json.dumps({"summary": SUMMARY, "lessons": []}) if request.schema else SUMMARY, usage=USAGE)


def finished(events: Sequence["Event"], *stages: str) -> list["Event"]:
    return [event for event in events if event.stage in stages and event.status == "finished"]


@pytest.mark.timeout(600)
@pytest.mark.req("AS-MEM-02", "AS-BUG-04")
@pytest.mark.parametrize(("alone", "turns"), [(False, 1_000), (True, 120)], ids=["recommended", "compaction alone"])
async def test_a_thousand_turns_with_tools_never_send_more_than_the_window_holds(
    tmp_path: Path, alone: bool, turns: int
) -> None:
    (tmp_path / "root").write_text("a file where the root should be, so that nothing waits for a disk")
    window = 28_000
    sizes: list[int] = []

    def answered(request: RecordedRequest) -> ScriptItem:
        sizes.append(estimate_request(request.messages, tools=request.tools).input)
        last = request.messages[-1]
        if not request.tools or last.role != "user":
            return told(request, f"Done. {WORDS * 20}")
        number = int(last.text.split()[1].rstrip("."))
        if number % 97 == 0:
            return Call("look_up", {"size": number // 97 * 60_000})
        if number % 7 == 0:
            return Call("write", {"text": WORDS * 200})
        return Call("look_up", {"size": 20_000 if number % 11 == 0 else 400})

    model = ScriptedModel(answered, window=window)
    make = partial(HarnessAgent, compaction=CompactionConfig()) if alone else HarnessAgent.with_recommended_settings
    async with make(
        model,
        memory=tmp_path / "root",
        scope=SCOPE,
        tools=[look_up, write],
        settings=settings(tmp_path / "root"),
    ) as one:
        for number in range(1, turns + 1):
            await one.send(f"Number {number} of what is asked. {WORDS * (200 if number % 13 == 0 else 3)}")
        assert is_valid(one.window)
    assert len(sizes) > 2 * turns
    assert max(sizes) <= window
    assert any(get_mark(message) == "summary" for message in model.requests[-1].messages)


@pytest.mark.req("AS-MEM-02")
async def test_what_is_sent_beside_the_window_has_room_in_it_too(tmp_path: Path) -> None:
    window, sizes = 8_000, list[int]()
    todos: list[JsonValue] = [
        {"content": f"{number}. {WORDS * 9}".strip(), "status": "pending"} for number in range(40)
    ]

    def answered(request: RecordedRequest) -> ScriptItem:
        sizes.append(estimate_request(request.messages, tools=request.tools).input)
        if len(sizes) == 1:
            return Call("todo_write", {"todos": todos})
        return told(request, f"Done. {WORDS * 20}")

    model = ScriptedModel(answered, window=window)
    async with agent(model, tmp_path / "root", compaction=CompactionConfig(), planning=True) as one:
        for number in range(40):
            await one.send(f"Number {number} of what is asked. {WORDS * 20}")
    reminders = [each for each in model.requests[-1].messages if get_mark(each) == "reminder"]
    assert estimate_request(reminders).input > window // 4
    assert window // 2 < max(sizes) <= window


@pytest.mark.req("CC-PROGRESS", "CC-UNDO")
async def test_a_summary_that_frees_less_than_a_fifth_is_followed_by_dropping(tmp_path: Path) -> None:
    events: list[Event] = []
    config = CompactionConfig(trigger_messages=12, trigger_tokens=0, keep_messages=8, carry_tokens=0, combined=False)
    model = ScriptedModel(lambda request: told(request, "Done." if len(request.messages) < 5 else WORDS * 90))
    async with agent(model, tmp_path / "root", compaction=config, on_event=events.append) as one:
        number = 0
        while not finished(events, "compact"):
            number += 1
            # what is summed up is short, and what is kept is long
            await one.send(f"Number {number}. {WORDS * (2 if number < 3 else 90)}")
        (summed,), (dropped,) = finished(events, "compact"), finished(events, "drop")
        assert is_valid(one.window)
        assert get_mark(one.window[0]) == "summary"
        assert [each.action for each in await one.compactions.all()] == ["drop", "compact"]
        for each in await one.compactions.all():
            assert (await one.compactions.expand(each.handle)).messages
            await one.compactions.undo()
        said_before = [message.id for message in await transcript(tmp_path / "root")]
        assert [message.id for message in one.window] == said_before
    before = summed.counts["tokens_before"]
    assert summed.counts["tokens_after"] > 0.8 * before
    assert dropped.counts["tokens_after"] <= 0.8 * before


@pytest.mark.req("CC-PROGRESS", "AS-BUG-01", "AS-BUG-32")
async def test_after_three_failed_summaries_in_a_row_no_further_one_is_asked_for_and_the_reason_is_told(
    tmp_path: Path,
) -> None:
    events: list[Event] = []
    model = ScriptedModel(lambda request: told(request, WORDS) if request.tools else Fail(500))
    config = CompactionConfig(trigger_messages=6, trigger_tokens=0, keep_messages=2, combined=False)
    async with agent(model, tmp_path / "root", compaction=config, on_event=events.append) as one:
        while len(finished(events, "compact")) < 5:
            await one.send("Go on.")
    assert sum(not request.tools for request in model.requests) == 3
    reasons = [event.reason or "" for event in finished(events, "compact")]
    paused = ["3 failures in a row" in reason for reason in reasons]
    assert paused == sorted(paused), "once requests are paused, they stay so"
    assert paused[-1]
    assert not paused[0]


@pytest.mark.req("CC-MANUAL")
async def test_a_person_who_names_a_focus_is_served_also_while_summaries_are_paused(tmp_path: Path) -> None:
    asked: list[str] = []

    def answered(request: RecordedRequest) -> ScriptItem:
        if request.tools:
            return told(request, WORDS)
        asked.append("\n".join(message.text for message in request.messages))
        return Fail(500)

    config = CompactionConfig(trigger_messages=6, trigger_tokens=0, keep_messages=2, combined=False)
    async with agent(ScriptedModel(answered), tmp_path / "root", compaction=config) as one:
        while len(asked) < 3:
            await one.send("Go on.")
        for _ in range(4):
            await one.send("Go on.")
        assert len(asked) == 3, "requests are paused"
        await one.compact(focus="the port of the gateway")
    assert len(asked) > 3
    assert all("the port of the gateway" in text for text in asked[3:])


@pytest.mark.req("AS-TRIG-01", "GO-G28", "GO-D15", "AS-COMPACT-01", "AS-COMPACT-02")
async def test_thresholds_are_checked_before_every_request_and_met_ones_alone_compact(tmp_path: Path) -> None:
    events: list[Event] = []
    steps = 9

    def answered(request: RecordedRequest) -> ScriptItem:
        asked = sum(event.stage == "model" and event.status == "started" for event in events)
        more = request.tools and request.messages[-1].text != "Bye." and asked < steps
        return Call("look_up", {"size": 600}, f"c{asked}") if more else told(request, WORDS * 9)

    model = ScriptedModel(answered)
    config = CompactionConfig(trigger_messages=10, trigger_tokens=0, keep_messages=4)
    async with agent(model, tmp_path / "root", compaction=config, on_event=events.append) as one:
        await one.send(f"One long turn. {WORDS * 9}")
        await one.send("Bye.")
    asking = [event.stage for event in events if event.stage in {"compact", "model"} and event.status == "started"]
    assert asking == ["compact", "model"] * (steps + 1), "one check before each request, and no request without"
    ended = [event for event in events if event.stage == "compact" and event.status != "started"]
    met = [event.counts["messages_before"] >= 10 for event in ended]
    assert met == [event.status == "finished" for event in ended]
    assert sum(met) == sum(not request.tools for request in model.requests) > 1
    assert met.index(True) < steps - 1, "the first summary was made between two tool calls of one turn"
    sizes = [sum(each.role != "system" for each in request.messages) for request in model.requests if request.tools]
    assert max(sizes) < 10


@pytest.mark.req("AS-TRIG-01", "AS-COMPACT-02", "GO-G28")
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_a_threshold_of_tokens_is_checked_between_two_tool_calls_of_one_turn(
    tmp_path: Path, streamed: bool
) -> None:
    def answered(request: RecordedRequest) -> ScriptItem:
        asked = len([each for each in model.requests if each.tools])
        return Call("look_up", {"size": 4_000}, f"c{asked}") if request.tools and asked < 9 else told(request, "Done.")

    model = ScriptedModel(answered)
    config = CompactionConfig(trigger_messages=0, trigger_tokens=6_000, keep_messages=4)
    async with agent(model, tmp_path / "root", compaction=config) as one:
        if streamed:
            async with one.stream("One long turn.") as heard:
                assert [event async for event in heard]
        else:
            await one.send("One long turn.")
    assert any(not request.tools for request in model.requests), "a summary was made within the turn"


async def writes(root: Path, truncate: TruncateArgsConfig | None, *, turns: int) -> tuple[int, ScriptedModel]:
    """Let an agent write a long text in each turn; return in which turn the first summary is made, 0 for in none."""
    events: list[Event] = []

    def answered(request: RecordedRequest) -> ScriptItem:
        if request.tools and request.messages[-1].role == "user":
            return Call("write", {"text": f"{request.number} {WORDS * 120}"}, f"w{request.number}")
        return told(request, "Written.")

    model = ScriptedModel(answered)
    config = CompactionConfig(trigger_messages=0, trigger_tokens=5_000, keep_messages=4)
    async with agent(model, root, compaction=config, truncate_args=truncate, on_event=events.append) as one:
        for turn in range(1, turns + 1):
            if turn % 2:
                await one.send(f"Number {turn}.")
            else:
                async with one.stream(f"Number {turn}.") as heard:
                    assert [event async for event in heard]
            if finished(events, "compact"):
                return turn, model
    return 0, model


@pytest.mark.req("AS-TRUNC-04", "AS-BUG-prepass-discarded", "AS-TRUNC-01")
async def test_clipped_arguments_are_what_is_sent_and_counted_so_a_summary_comes_later(tmp_path: Path) -> None:
    whole, plain = await writes(tmp_path / "whole", None, turns=20)
    config = TruncateArgsConfig(trigger_messages=6, keep_messages=4)
    clipped, model = await writes(tmp_path / "clipped", config, turns=2 * whole)
    assert whole > 2
    assert clipped == 0, "no summary is made in twice as many turns"
    assert len(model.requests) == 2 * 2 * whole
    assert not any(CLIPPED in str(request.messages) for request in plain.requests)
    for request in model.requests[8:]:
        window = [message for message in request.messages if message.role != "system"]
        older = [call.arguments for message in window[:-4] for call in message.tool_calls]
        assert older
        assert all(CLIPPED in arguments and len(arguments) < 500 for arguments in older)
        assert not any(CLIPPED in call.arguments for message in window[-4:] for call in message.tool_calls)


@pytest.mark.req("AS-TRUNC-04", "AS-BUG-prepass-discarded")
@pytest.mark.parametrize("clipping", [True, False])
async def test_what_is_clipped_before_a_request_counts_for_it_already(tmp_path: Path, clipping: bool) -> None:
    events: list[Event] = []
    calls = [
        ToolCall(id=f"c{number}", name="write", arguments=json.dumps({"text": WORDS * 400})) for number in range(4)
    ]
    results = [ToolResult(call_id=each.id, name="write", parts=(Text(text="ok"),)) for each in calls]
    config = CompactionConfig(trigger_messages=0, trigger_tokens=8_000, keep_messages=2, model="offline")
    truncate = TruncateArgsConfig(trigger_messages=2, keep_messages=2) if clipping else None
    model = ScriptedModel([Say("Done.")])
    async with agent(
        model, tmp_path, compaction=config, truncate_args=truncate, memory_tools=False, on_event=events.append
    ) as one:
        await one.record([said("Write."), Message(role="assistant", parts=tuple(calls))])
        await one.record([Message(role="tool", parts=tuple(results)), said("Good."), said("And then?")])
        await one.send("And?")
    assert bool(finished(events, "compact")) is not clipping
    assert WORDS * 400 not in str(model.requests[0].messages)


@pytest.mark.req("AS-TRUNC-05", "AS-BUG-11")
async def test_a_clipped_message_keeps_all_else_and_the_transcript_the_whole_of_it(tmp_path: Path) -> None:
    long = json.dumps({"text": WORDS * 120})
    asked = Message(
        role="assistant",
        parts=(Text(text="I write."), ToolCall(id="c1", name="write", arguments=long)),
        time=datetime(2026, 11, 2, 9, 30, tzinfo=UTC),
        usage=Usage(input=120, output=30),
        metadata={"own": ["a", 1]},
    )
    root = tmp_path / "root"
    model = ScriptedModel([Say("Done.")])
    config = TruncateArgsConfig(trigger_messages=2, keep_messages=1)
    async with agent(model, root, truncate_args=config) as one:
        recorded = await one.record([said("Write."), asked])
        await one.send("And?")
        kept = one.window
    sent = [message for message in model.requests[0].messages if message.role != "system"]
    for window in (sent, kept):
        now, then = window[1], recorded[1]
        assert CLIPPED in now.tool_calls[0].arguments
        assert replace(now, parts=()) == replace(then, parts=())
        assert (now.time, now.usage, now.metadata) == (asked.time, asked.usage, asked.metadata)
        assert now.id
        assert now.text == "I write."
        assert replace(now.tool_calls[0], arguments="") == replace(then.tool_calls[0], arguments="")
    assert (await transcript(root))[1].tool_calls[0].arguments == long


@dataclass(frozen=True, kw_only=True)
class Effects:
    """What was seen of each reduction in one scripted session."""

    compact: bool
    evict: bool
    truncate: bool


async def seen(root: Path, **options: object) -> tuple[Effects, AbstractSet[str]]:
    """Live through one session; return what its requests show, and the stages that changed the window."""
    events: list[Event] = []
    calls = {1: Call("look_up", {"size": 9_000}), 2: Call("write", {"text": WORDS * 120}, "c2")}

    def answered(request: RecordedRequest) -> ScriptItem:
        last = request.messages[-1]
        asked = request.tools and last.role == "user" and int(last.text.split()[1].rstrip("."))
        return calls.get(int(asked or 0)) or told(request, f"Reply. {WORDS * 9}")

    model = ScriptedModel(answered)
    async with agent(model, root, on_event=events.append, **options) as one:
        # as many as a compaction with its defaults would start at, so that one that is off is seen to be
        await one.record(
            [said(f"Before, number {number}. {WORDS}") for number in range(CompactionConfig.trigger_messages)]
        )
        for number in range(1, 8):
            await one.send(f"Number {number}. {WORDS}")
            assert is_valid(one.window)
    sent = [request for request in model.requests if request.tools]
    summing = any(get_mark(message) == "summary" for request in sent for message in request.messages)
    assert summing == any(not request.tools for request in model.requests)
    results = {each.text for request in sent for message in request.messages for each in message.tool_results}
    changed = {event.stage for event in finished(events, "compact", "evict", "truncate", "clear", "dedupe", "drop")}
    evicted = any("is too long" in text for text in results)
    assert evicted != any(len(text) == 9_000 for text in results)
    clipped = any(CLIPPED in str(request.messages) for request in sent)
    return Effects(compact=summing, evict=evicted, truncate=clipped), changed


@pytest.mark.req("AS-COMPACT-15", "AS-EVICT-07", "AS-TRUNC-01", "AS-COMPACT-14", "HE-C3-kinds", "CC-CLEAR")
@pytest.mark.parametrize("truncate", [False, True], ids=["whole", "truncating"])
@pytest.mark.parametrize("evict", [False, True], ids=["wide", "evicting"])
@pytest.mark.parametrize("compact", [False, True], ids=["long", "compacting"])
async def test_each_combination_of_reductions_shows_exactly_the_effects_of_those_that_are_on(
    tmp_path: Path, compact: bool, evict: bool, truncate: bool
) -> None:
    clipping = TruncateArgsConfig(trigger_messages=8, keep_messages=2) if truncate else None
    within = clipping if compact and evict else None
    compaction = CompactionConfig(trigger_messages=14, trigger_tokens=0, keep_messages=4, truncate_args=within)
    eviction = ToolResultEvictionConfig(max_result_chars=4_000, preview_chars=500)
    effects, changed = await seen(
        tmp_path / "root",
        compaction=compaction if compact else None,
        tool_result_eviction=eviction if evict else None,
        truncate_args=clipping if within is None else None,
    )
    assert effects == Effects(compact=compact, evict=evict, truncate=truncate)
    assert changed == {name for name, on in (("compact", compact), ("evict", evict), ("truncate", truncate)) if on}


KINDS: dict[str, dict[str, object]] = {
    "truncate": {"truncate_args": TruncateArgsConfig(trigger_messages=4, keep_messages=2)},
    "clear": {"clear_results": ClearResultsConfig(trigger_tokens=1_000, keep_results=0, min_tokens=0)},
    "evict": {"tool_result_eviction": ToolResultEvictionConfig(max_result_chars=4_000, preview_chars=500)},
    "compact": {"compaction": CompactionConfig(trigger_messages=10, trigger_tokens=0, keep_messages=4)},
    "overflow": {"compaction": CompactionConfig(trigger_messages=0, trigger_tokens=0, keep_messages=4)},
}


@pytest.mark.req("HE-C3-kinds", "AS-BUG-32", "AS-COMPACT-15")
async def test_there_are_five_kinds_of_reduction_each_named_in_its_events_and_each_alone(tmp_path: Path) -> None:
    for kind, options in KINDS.items():
        events: list[Event] = []
        begun = ScriptedModel(Answering(overflowing=kind == "overflow"))
        async with agent(begun, tmp_path / kind, on_event=events.append, **options) as one:
            for number in range(1, 7):
                await one.send(f"Number {number}. {WORDS}")
            held = f"{[get_mark(message) for message in one.window]} {one.window}"
        stages = {event.stage for event in finished(events, *KINDS, "dedupe", "drop", "slide", "none")}
        # a forced compaction is carried out by the summary, and named by what forced it
        assert stages == ({"overflow", "compact"} if kind == "overflow" else {kind})
        traces = {"truncate": CLIPPED, "clear": "was cleared", "evict": "is too long", "compact": "'summary'"}
        found = {name for name, trace in traces.items() if trace in held}
        assert found == {"compact" if kind == "overflow" else kind}
        for event in finished(events, kind):
            assert event.counts["tokens_after"] < event.counts["tokens_before"]
            assert event.reason
        if kind == "overflow":
            assert all("overflow" in (event.reason or "") for event in finished(events, "compact"))


@dataclass
class Answering:
    """Calls a tool in the first two turns; a request of the last one is refused for its size, if that is wanted."""

    overflowing: bool

    def __call__(self, request: RecordedRequest) -> ScriptItem:
        last = request.messages[-1]
        if not request.tools or last.role != "user":
            return told(request, f"Reply. {WORDS * 9}")
        number = int(last.text.split()[1].rstrip("."))
        if number == 6 and self.overflowing:
            self.overflowing = False
            return Fail(400, overflow=True)
        calls = {1: Call("look_up", {"size": 9_000}), 2: Call("write", {"text": WORDS * 120}, "c2")}
        return calls.get(number) or told(request, f"Reply. {WORDS * 9}")
