"""The documented numbers of the reductions hold in an agent, from the message that it is given to what is sent."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from agent_arguments import agent_arguments
from agents_at_work import SCOPE, said, settings, transcript
from places import place_of
from ricordo import CompactionConfig, HarnessAgent, ToolResultEvictionConfig, TruncateArgsConfig
from ricordo.agent import tool
from ricordo.messages import Message, Text, ToolCall, ToolResult, estimate_request, estimate_text, get_mark
from ricordo.testing import Call, Calls, RecordedRequest, Say, ScriptedModel

pytestmark = pytest.mark.anyio

LONG = "some more words to fill a line, " * 4
SUMMARY = "## SESSION INTENT\nTalk.\n## SUMMARY\nTalked.\n## ARTIFACTS\nNone\n## NEXT STEPS\nNone"


def agent(model: ScriptedModel, root: Path, **options: object) -> HarnessAgent:
    given = {"session": "s", "settings": settings(root), "memory_tools": False} | options
    return HarnessAgent(model, **agent_arguments(workspace=root, scope=SCOPE, **given))


def answering() -> ScriptedModel:
    return ScriptedModel(lambda request: Say("Yes." if request.tools else SUMMARY))


def replies(model: ScriptedModel) -> list[tuple[Message, ...]]:
    """Return what each request of the agent itself sent, without the system prompt."""
    return [
        tuple(each for each in request.messages if each.role != "system")
        for request in model.requests
        if "SESSION INTENT" not in request.messages[-1].text
    ]


def talk(count: int, words: str = LONG) -> list[Message]:
    """Return `count` messages, by turns of the user and of the assistant."""
    return [
        Message(
            role="assistant" if number % 2 else "user",
            parts=(Text(text=f"Number {number}. {words}"),),
            metadata={"number": number},
        )
        for number in range(count)
    ]


@pytest.mark.req("AS-COMPACT-01", "AS-COMPACT-03", "AS-TRIG-01", "AS-COMPACT-10", "AS-COMPACT-11")
async def test_fifty_messages_compact_and_the_last_twenty_stay_as_they_were(tmp_path: Path) -> None:
    model = answering()
    async with agent(model, tmp_path / "root", compaction=CompactionConfig(combined=False)) as one:
        await one.record(talk(48))
        await one.send("And now?")
        assert not any(map(get_mark, one.window))
        await one.clear()
        recorded = await one.record(talk(49))
        await one.send("And now?")
        window = one.window
    below, at = replies(model)
    assert (len(below), len(at)) == (49, 21)
    assert get_mark(at[0]) == "summary"
    assert at[1:20] == window[1:20] == tuple(recorded)[-19:]
    assert [each.metadata for each in at[1:20]] == [{"number": number} for number in range(30, 49)]


@pytest.mark.req("AS-COMPACT-01", "AS-COMPACT-02", "AS-TRIG-01")
@pytest.mark.parametrize(
    ("config", "compacts"),
    [
        (CompactionConfig(trigger_messages=0, combined=False), True),
        (CompactionConfig(trigger_tokens=0, combined=False), True),
        (CompactionConfig(trigger_messages=0, trigger_tokens=0, combined=False), False),
    ],
    ids=["tokens alone", "messages alone", "neither"],
)
async def test_either_threshold_starts_a_compaction_and_none_where_both_are_off(
    tmp_path: Path, config: CompactionConfig, compacts: bool
) -> None:
    model = answering()
    async with agent(model, tmp_path / "root", compaction=config) as one:
        few = 60 if config.trigger_messages else 40
        await one.record(talk(few, "wide " * (10 if config.trigger_messages else 2_200)))
        if not config.trigger_messages:
            assert sum(estimate_text(message.text) for message in one.window) >= 80_000
        await one.send("And now?")
        assert any(get_mark(message) == "summary" for message in one.window) == compacts


@pytest.mark.req("AS-COMPACT-04")
async def test_a_budget_of_tokens_overrides_the_number_of_messages_that_stay(tmp_path: Path) -> None:
    model = answering()
    size = estimate_text(talk(50)[-1].text)
    config = CompactionConfig(keep_messages=30, keep_tokens=5 * size, combined=False)
    async with agent(model, tmp_path / "root", compaction=config) as one:
        recorded = await one.record(talk(55))
        await one.send("And now?")
    (sent,) = replies(model)
    assert 3 <= len(sent) <= 6
    assert sent[1:-1] == tuple(recorded)[-(len(sent) - 2) :]


@pytest.mark.req("AS-COMPACT-17", "AS-BUG-02", "AS-BUG-05", "AS-COMPACT-12")
@pytest.mark.parametrize("other", [4_000, 1_000_000])
async def test_the_dynamic_preset_follows_the_window_of_the_model_that_answers(tmp_path: Path, other: int) -> None:
    model = ScriptedModel(lambda request: Say("Yes."), window=60_000)
    summaries = ScriptedModel(lambda request: Say(SUMMARY), window=other)
    config = replace(CompactionConfig.dynamic(), model=summaries, combined=False)
    async with agent(model, tmp_path / "root", compaction=config) as one:
        await one.record(talk(36, "wide " * 1_000))
        usage = await one.get_context_usage()
        room = 40_000 - usage.tokens
        assert room > 2_000
        await one.send("wide " * (room - 1_500))
        assert not any(map(get_mark, one.window))
        await one.send("wide " * 1_600)
        assert get_mark(one.window[0]) == "summary"
        tail = replies(model)[-1][1:]
    assert 6_500 < sum(estimate_text(message.text) for message in tail) <= 8_000
    parts = [estimate_request(request.messages).input for request in summaries.requests]
    assert (len(parts) > 1) == (other == 4_000)
    assert max(parts) <= other


@pytest.mark.req("AS-BUG-03")
async def test_small_messages_at_the_trigger_cost_a_summary_only_every_few_messages(tmp_path: Path) -> None:
    model = answering()
    config = CompactionConfig(trigger_messages=21, keep_messages=20, combined=False)
    async with agent(model, tmp_path / "root", compaction=config) as one:
        for number in range(30):
            await one.send(f"{number}")
    asked = [at for at, request in enumerate(model.requests) if "SESSION INTENT" in request.messages[-1].text]
    sent = sorted({at - number for number, at in enumerate(asked)})
    assert len(sent) > 2
    assert all(2 * (later - earlier) >= 5 for earlier, later in pairwise(sent))


@pytest.mark.req("AS-COMPACT-07", "AS-COMPACT-13", "HE-C3-kinds")
@pytest.mark.parametrize("own", [None, "Sum this up.\n{messages}\nThat was all."])
async def test_one_request_asks_for_the_summary_by_the_prompt_that_was_given(tmp_path: Path, own: str | None) -> None:
    model = ScriptedModel(lambda request: Say("Yes." if "And now?" in request.messages[-1].text else SUMMARY))
    config = CompactionConfig(summary_prompt=own, combined=False)
    async with agent(model, tmp_path / "root", compaction=config) as one:
        await one.record(talk(52))
        await one.send("And now?")
        assert "Talked." in one.window[0].text
    asked, answered = model.requests
    prompt = asked.messages[-1].text
    assert all(f"Number {number}." in prompt for number in range(33))
    assert "Number 33." not in prompt
    headings = [line for line in prompt.splitlines() if line.startswith("## ")]
    if own:
        assert prompt.startswith("Sum this up.\n<conversation")
        assert prompt.endswith("</conversation>\nThat was all.")
    else:
        assert headings == ["## SESSION INTENT", "## SUMMARY", "## ARTIFACTS", "## NEXT STEPS"]
    assert answered.messages[-1].text == "And now?"


def write(number: int, body: str) -> list[Message]:
    """Return a call that writes a file, and its result."""
    call = ToolCall(id=f"w{number}", name="write_file", arguments=json.dumps({"path": "a.py", "content": body}))
    return [
        Message(role="assistant", parts=(call,)),
        Message(role="tool", parts=(ToolResult(call_id=call.id, name="write_file", parts=(Text(text="ok"),)),)),
    ]


def contents(messages: tuple[Message, ...]) -> list[str]:
    return [json.loads(call.arguments)["content"] for message in messages for call in message.tool_calls]


@pytest.mark.req("AS-TRUNC-01", "AS-TRUNC-02", "AS-TRUNC-03", "HE-C3-kinds")
async def test_long_arguments_of_older_messages_are_clipped_without_a_request(tmp_path: Path) -> None:
    root, model = tmp_path / "root", answering()
    long, edge = 'é"\\\n0' * 600, "y" * 2_000
    async with agent(
        model,
        root,
        compaction=CompactionConfig(trigger_messages=80),
        truncate_args=TruncateArgsConfig(truncation_text="... [truncated] ..."),
    ) as one:
        await one.record([*talk(5), *write(1, long), *write(2, edge), *write(3, long), *talk(11), said("Look.")])
        await one.send("Twenty-four.")
        await one.record([*talk(3), *write(4, long)])
        await one.send("Thirty-one.")
    below, above = replies(model)
    assert (len(below), len(above)) == (24, 31)
    assert contents(below) == [long, edge, long]
    clipped, whole, other, newest = contents(above)
    assert clipped == other != long
    assert long.startswith(clipped.removesuffix("... [truncated] ..."))
    assert clipped.endswith("... [truncated] ...")
    assert (whole, newest) == (edge, long)
    assert len(model.requests) == 2
    assert contents(await transcript(root)) == [long, edge, long, long]


@pytest.mark.req("AS-TRUNC-01")
@pytest.mark.parametrize(
    ("config", "clips"), [(TruncateArgsConfig(), True), (TruncateArgsConfig(trigger_tokens=0), False)]
)
async def test_forty_thousand_tokens_clip_too_unless_that_is_off(
    tmp_path: Path, config: TruncateArgsConfig, clips: bool
) -> None:
    model = answering()
    async with agent(model, tmp_path / "root", truncate_args=config) as one:
        await one.record([*write(1, "z" * 2_001), *talk(21, "wide " * 2_200)])
        await one.send("And now?")
    (sent,) = replies(model)
    assert len(sent) == 24
    assert (contents(sent) != ["z" * 2_001]) == clips


@pytest.mark.req("AS-TRUNC-01", "AS-TRUNC-02")
@pytest.mark.parametrize("within", [False, True], ids=["alone", "within a compaction"])
async def test_what_a_configuration_of_clipping_says_holds_for_the_agent(tmp_path: Path, within: bool) -> None:
    model = answering()
    config = TruncateArgsConfig(
        trigger_messages=9, keep_messages=3, max_arg_length=300, kept_chars=50, truncation_text="[cut]"
    )
    given: dict[str, object] = {"compaction": CompactionConfig(truncate_args=config)}
    async with agent(model, tmp_path / "root", **(given if within else {"truncate_args": config})) as one:
        await one.record([*write(1, "z" * 301), *write(2, "y" * 300), *talk(3)])
        await one.send("Eight.")
        await one.send("Ten.")
    below, above = map(contents, replies(model))
    assert below == ["z" * 301, "y" * 300]
    assert above == ["z" * 50 + "[cut]", "y" * 300]


@pytest.mark.req("AS-EVICT-04")
async def test_an_agent_leaves_those_results_alone_whose_tools_are_named_instead(tmp_path: Path) -> None:
    def named(name: str) -> object:
        @tool(name=name)
        def telling() -> str:
            """Tell a lot."""
            return "x" * 1_400

        return telling

    model = ScriptedModel([Calls(Call("shell"), Call("memory_of_mine", {}, "c2")), Say("Done.")])
    config = ToolResultEvictionConfig(max_result_chars=500, preview_chars=100, excluded_tool_names=frozenset({"shell"}))
    tools = [named(name) for name in ("shell", "memory_of_mine")]
    async with agent(model, tmp_path / "root", tools=tools, tool_result_eviction=config) as one:
        await one.send("Look.")
    stays, goes = [each.text for message in model.requests[-1].messages for each in message.tool_results]
    assert stays == "x" * 1_400
    assert len(goes) < 1_000


@pytest.mark.req(
    "AS-EVICT-01",
    "AS-EVICT-02",
    "AS-EVICT-03",
    "AS-EVICT-04",
    "AS-EVICT-05",
    "AS-EVICT-07",
    "AS-EVICT-08",
    "HE-C3-kinds",
)
async def test_wide_results_go_to_files_but_for_those_of_tools_that_bound_them(tmp_path: Path) -> None:
    wide = "".join(f"{number:06}é\n" for number in range(15_000))
    excluded = ["read_file", "write_file", "edit_file", "grep_files", "glob_files", "list_files", "session_search"]
    excluded += ["memory_search", "memory_get", "memory_of_mine"]

    def named(name: str) -> object:
        @tool(name=name)
        def telling(size: int) -> str:
            """Tell a lot."""
            return wide[:size]

        return telling

    def script(request: RecordedRequest) -> Say | Calls:
        if any(message.tool_results for message in request.messages):
            return Say("Done.")
        sizes = [("shell", 80_000), ("shell", 80_001), ("shell", 100_002), *((name, 80_001) for name in excluded)]
        return Calls(*(Call(name, {"size": size}, f"c{at}") for at, (name, size) in enumerate(sizes)))

    root, model = tmp_path / "root", ScriptedModel(script)
    config = ToolResultEvictionConfig(eviction_path="/kept/wide")
    tools = [named(name) for name in ("shell", *excluded)]
    async with agent(model, root, tools=tools, session_tools=False, tool_result_eviction=config) as one:
        await one.send("Look.")
    results = [each.text for message in model.requests[-1].messages for each in message.tool_results]
    stays, *evicted = results[:3]
    assert stays == wide[:80_000]
    files = place_of(root) / "workspace/kept/wide/s"
    assert sorted(len(path.read_text()) for path in files.iterdir()) == [80_001, 100_002]
    for text, size in zip(evicted, (80_001, 100_002), strict=True):
        (path,) = [path for path in files.iterdir() if len(path.read_text()) == size]
        whole = wide[:size]
        assert f"/{path.relative_to(place_of(root) / 'workspace')}" in text
        assert whole[:2_000] in text
        assert whole[-2_000:] in text
        assert whole[:2_001] not in text
        assert whole[-2_001:] not in text
        assert "read_result" in text, "the program has a `read_file` of its own"
    assert results[3:] == [wide[:80_001]] * len(excluded)
