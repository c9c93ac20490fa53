"""What was cleared from the window is still shown to whoever sums it up, also after another process took it up."""

from pathlib import Path

import pytest

from agents_at_work import SCOPE, settings
from ricordo import ClearResultsConfig, CompactionConfig, HarnessAgent, ToolResultEvictionConfig
from ricordo.agent import tool
from ricordo.testing import Call, RecordedRequest, Say, ScriptedModel, ScriptItem
from scripted_summaries import SUMMARY, both

pytestmark = [pytest.mark.anyio, pytest.mark.req("GO-G26-orthogonal", "GO-G24")]


@tool
def look_up(what: str) -> str:
    """Look something up."""
    wide = "x" * 9_000 if what == "3" else ""
    return f"The result of {what} is kiwi-{what}. {'It is long and says little else. ' * 20}{wide}"


def answered(request: RecordedRequest) -> ScriptItem:
    asked = request.messages[-1].text
    if "## SESSION INTENT" in asked:
        return Say(both(SUMMARY) if request.schema is not None else SUMMARY)
    if request.messages[-1].role == "tool":
        return Say("It is done, as you asked.")
    return Call("look_up", {"what": asked.removeprefix("Look up ").rstrip(".")})


def agent(model: ScriptedModel, root: Path) -> HarnessAgent:
    return HarnessAgent(
        model,
        memory=root,
        scope=SCOPE,
        session="s",
        tools=[look_up],
        clear_results=ClearResultsConfig(trigger_tokens=1, keep_results=1, min_tokens=0),
        tool_result_eviction=ToolResultEvictionConfig(max_result_chars=5_000, preview_chars=100),
        compaction=CompactionConfig(trigger_messages=24, keep_messages=4),
        settings=settings(root),
    )


@pytest.mark.req("AS-BUG-11", "CC-CLEAR")
async def test_the_summary_is_made_from_results_that_the_window_had_cleared(tmp_path: Path) -> None:
    model = ScriptedModel(answered)
    async with agent(model, tmp_path / ".ricordo") as one:
        for number in range(3):
            await one.send(f"Look up {number}.")
    async with agent(model, tmp_path / ".ricordo") as one:
        for number in range(3, 7):
            await one.send(f"Look up {number}.")
    before = [request for request in model.requests if "## SESSION INTENT" not in request.messages[-1].text]
    shown = [each.text for message in before[-1].messages for each in message.tool_results]
    assert not any("kiwi-1" in text for text in shown), "the window itself had it cleared"
    (asked,) = [text for r in model.requests if "## SESSION INTENT" in (text := r.messages[-1].text)]
    assert [number for number in range(3) if f"kiwi-{number}." in asked] == [0, 1, 2]
    assert "was cleared" in asked, "a result that was evicted before stays a handle"
    assert "kiwi-3." not in asked
