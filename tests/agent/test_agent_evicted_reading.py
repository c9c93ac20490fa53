"""An agent that evicts can read what it evicted, also where it has no other file tools, and nothing else."""

import re
from pathlib import Path

import pytest

from agent_arguments import agent_arguments
from agents_at_work import SCOPE, settings
from ricordo import HarnessAgent, ToolResultEvictionConfig
from ricordo.agent import tool
from ricordo.testing import Call, RecordedRequest, Say, ScriptedModel, ScriptItem

pytestmark = pytest.mark.anyio

WIDE = "".join(f"row {number} of the report\n" for number in range(900))
SMALL = ToolResultEvictionConfig(max_result_chars=4_000, preview_chars=300)
_PATH = re.compile(r"All of it is in (/\S+)\. ")


@tool
def report() -> str:
    """Return a long report."""
    return WIDE


def agent(model: ScriptedModel, root: Path, **options: object) -> HarnessAgent:
    given = {"session": "s", "settings": settings(root), "tools": [report], "tool_result_eviction": SMALL} | options
    return HarnessAgent(model, **agent_arguments(workspace=root, scope=SCOPE, **given))


def results(request: RecordedRequest) -> list[str]:
    return [each.text for message in request.messages for each in message.tool_results]


@pytest.mark.req("AS-EVICT-06", "AS-BUG-11", "AS-EVICT-02", "AS-BUG-27")
async def test_the_pointer_of_an_evicted_result_opens_without_file_tools_and_nothing_else_does(tmp_path: Path) -> None:
    asked: list[str] = []

    def answered(request: RecordedRequest) -> ScriptItem:
        found = results(request)
        if not found:
            return Call("report", {})
        if len(found) == 1:
            found_path = _PATH.search(found[0])
            assert found_path is not None
            asked.append(found_path[1])
            return Call("read_file", {"path": found_path[1], "offset": 500, "limit": 2})
        closed = ["/MEMORY.md", "/agents/main/sessions/s.log.jsonl", "/large_tool_results/other/a.txt", "notes.txt"]
        return Call("read_file", {"path": closed[len(found) - 2]}) if len(found) < 6 else Say("Done.")

    model = ScriptedModel(answered)
    async with agent(model, tmp_path / ".ricordo") as one:
        await one.send("What does the report say?")
        found = results(model.requests[-1])
    assert asked[0].startswith("/large_tool_results/s/report-")
    assert "row 499 of the report\nrow 500 of the report" in found[1]
    assert ["row" in text for text in found[2:]] == [False] * 4
    assert all("closed" in text for text in found[2:5])


@pytest.mark.req("AS-EVICT-06", "AS-EVICT-08", "AS-EVICT-02")
@pytest.mark.parametrize(
    ("options", "tools"),
    [
        ({}, {"read_file", "grep_files"}),
        ({"tool_result_eviction": None}, set()),
        ({"file_tools": True}, {"read_file", "grep_files", "write_file", "edit_file", "list_files", "glob_files"}),
    ],
    ids=["eviction", "no eviction", "file tools"],
)
async def test_files_are_read_where_something_may_be_evicted(
    tmp_path: Path, options: dict[str, object], tools: set[str]
) -> None:
    model = ScriptedModel(lambda _: Say("Yes."))
    async with agent(model, tmp_path / ".ricordo", **options) as one:
        await one.send("Hello.")
    assert {spec.name for spec in model.requests[0].tools if spec.name.endswith(("_file", "_files"))} == tools
