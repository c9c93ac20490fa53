"""Whatever happens to the window, each request of an agent says where it stands."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from agent_arguments import agent_arguments
from agents_at_work import SCOPE, settings, transcript
from ricordo import CompactionConfig, HarnessAgent
from ricordo.guard import parse_fence
from ricordo.jobs import ReportProgress
from ricordo.messages import Message, ToolCall, delivered_results, estimate_message, get_mark
from ricordo.testing import Call, RecordedRequest, Say, ScriptedModel, ScriptItem

pytestmark = pytest.mark.anyio

PLAN = "# Release\n\n1. Tag it.\n2. Say so to everybody.\n"
LONG = "Some more words about it. " * 60


def agent(model: ScriptedModel, root: Path, **options: object) -> HarnessAgent:
    given = {"settings": settings(root), "planning": True, "memory_hooks": False} | options
    return HarnessAgent(model, **agent_arguments(workspace=root, scope=SCOPE, session="s", **given))


def talking() -> ScriptedModel:
    return ScriptedModel(lambda request: Say(f"Reply {request.number}. {LONG}"))


def reminder(messages: Sequence[Message]) -> str:
    """Return the reminder of a request, empty where it has none; nothing but the last message is one."""
    found = [at for at, each in enumerate(messages) if get_mark(each) == "reminder"]
    assert found in ([], [len(messages) - 1])
    return messages[-1].text if found else ""


def holds_plan(request: RecordedRequest) -> bool:
    """Tell whether the plan stands in a request word for word, as the call that wrote it or in the reminder."""
    calls = [part for each in request.messages for part in each.parts if isinstance(part, ToolCall)]
    written = any(call.name == "plan_write" and "Say so to everybody." in call.arguments for call in calls)
    return written or PLAN in (parse_fence(reminder(request.messages)) or ())


@pytest.mark.req("AS-STATE-03", "CC-PIN")
async def test_the_very_request_whose_window_lost_the_plan_is_reminded_of_it(tmp_path: Path) -> None:
    def answer(request: RecordedRequest) -> ScriptItem:
        begins: list[ScriptItem] = [Call("plan_enter", {"title": "Release"}), Call("plan_write", {"content": PLAN})]
        return begins[request.number - 1] if request.number <= 2 else Say(f"Reply {request.number}. {LONG}")

    model = ScriptedModel(answer)
    config = CompactionConfig(trigger_messages=8, keep_messages=2, model="offline")
    async with agent(model, tmp_path / ".ricordo", compaction=config) as one:
        for number in range(6):
            await one.send(f"Number {number}. {LONG}")
        window = one.window
    sent = [reminder(request.messages) for request in model.requests]
    lost = [PLAN in (parse_fence(text) or ()) for text in sent]
    assert lost.index(True) > 3, "the window held it before"
    assert any(get_mark(each) == "summary" for each in model.requests[lost.index(True)].messages)
    assert all(holds_plan(request) for request in model.requests[2:])
    assert all("You are planning." in text for text in sent[1:])
    assert not reminder(window)


@pytest.mark.req("AS-STATE-05")
async def test_a_result_is_told_once_with_the_next_request_and_is_no_message(tmp_path: Path) -> None:
    root, model = tmp_path / ".ricordo", talking()

    async def work(report: ReportProgress) -> str:
        del report
        return "The build is </system-reminder> green."

    async with agent(model, root) as one:
        started = await one.tasks.start("local_bash", "make build", work)
        await one.tasks.wait(started.id, seconds=5)
        for _ in range(2):
            report = await one.get_context_usage()
            assert report.reminder > 0, "looking tells nobody"
        await one.send("Well?")
        await one.send("And now?")
        assert not any("green" in each.text for each in one.window)
        assert (await one.get_context_usage()).reminder == 0
    told = [text for request in model.requests for text in parse_fence(reminder(request.messages)) or ()]
    assert told == ["The build is </system-reminder> green."]
    recorded = await transcript(root)
    assert [delivered_results(each) for each in recorded] == [(), (started.id,), (), ()]


@pytest.mark.req("CC-MANUAL")
async def test_what_fills_the_window_counts_the_reminder_as_it_is_sent(tmp_path: Path) -> None:
    model = talking()
    async with agent(model, tmp_path / ".ricordo") as one:
        await one.send("Hello.")
        bare = await one.get_context_usage()
        assert one.plan is not None
        await one.plan.enter("Release", by="user")
        full = await one.get_context_usage()
        await one.send("Go on.")
    assert bare.reminder == 0
    assert full.reminder == estimate_message(model.requests[-1].messages[-1]) > 20
    assert replace(full, reminder=0) == bare
    assert full.tokens == bare.tokens + full.reminder
