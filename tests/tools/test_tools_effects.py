"""What the built-in tools change, by their own word, and writes that a rule lets through."""

from dataclasses import replace

import pytest

from desks import CONTEXT, Desk, Desks, Person
from ricordo.agent import get_effect, memory_tools
from ricordo.agent.tools import ToolEffect, session_tools
from ricordo.agent.tools.expand import ExpandedMessages, expand_tool
from ricordo.errors import CompactionNotFound, ToolFailed
from ricordo.testing import InMemoryFiles

pytestmark = pytest.mark.anyio

EFFECTS: dict[str, ToolEffect] = {
    "read_file": "reads",
    "list_files": "reads",
    "glob_files": "reads",
    "grep_files": "reads",
    "recall": "reads",
    "memory_get": "reads",
    "session_list": "reads",
    "session_history": "reads",
    "session_search": "reads",
    "expand": "reads",
    "remember": "acts",
    "write_file": "acts",
    "edit_file": "acts",
    "shell": "acts",
}


async def let_through(desk: Desk, name: str, **arguments: str) -> str:
    """Call a tool as it is called when a rule lets the call through."""
    [found] = [tool for tool in desk.tools if tool.spec.name == name]
    try:
        return str(await found(dict(arguments), replace(CONTEXT, approved=True)))
    except ToolFailed as error:
        return f"failed: {error}"


@pytest.mark.req("AS-PLAN-01")
async def test_each_tool_says_whether_it_only_reads(desks: Desks) -> None:
    async def expand(handle: str) -> ExpandedMessages:
        raise CompactionNotFound(handle)

    files = InMemoryFiles()
    tools = (
        *desks(shell=True).tools,
        *memory_tools(None, files),
        *session_tools(files, agent="main"),
        expand_tool(expand, files),
    )
    assert {tool.spec.name: get_effect(tool) for tool in tools} == EFFECTS


@pytest.mark.req("GO-G26-diff")
async def test_what_a_rule_lets_through_is_written_and_nobody_is_asked(desks: Desks, no: Person) -> None:
    for desk in (desks(no), desks(None)):
        desks.put("src/a.py", "one\n")
        assert "src/new.py was created" in await let_through(desk, "write_file", path="src/new.py", content="new\n")
        assert "src/a.py was changed" in await let_through(
            desk, "edit_file", path="src/a.py", old_text="o", new_text="0"
        )
        assert desk.tree() == {"src/a.py": b"0ne\n", "src/new.py": b"new\n"}
        (desk.folder / "src/new.py").unlink()
    assert no.asked == []


@pytest.mark.req("GO-G26-diff")
async def test_without_a_rule_a_person_is_asked_as_before(desks: Desks, no: Person) -> None:
    desk = desks(no)
    assert "was not approved" in await desk.use("write_file", path="a.txt", content="a")
    assert [(asked.action, asked.target) for asked in no.asked] == [("create", "a.txt")]
    assert desk.tree() == {}


@pytest.mark.req("GO-G26-diff")
@pytest.mark.parametrize("path", [".git/config", ".ricordo/workspace/MEMORY.md", "../out.txt", "/memory/2026-11-21.md"])
async def test_no_rule_lets_a_tool_write_where_no_tool_writes(desks: Desks, yes: Person, path: str) -> None:
    desk = desks(yes)
    assert (await let_through(desk, "write_file", path=path, content="mine")).startswith("failed: ")
    assert yes.asked == []
    assert desk.tree() == {}


async def test_a_rule_for_a_path_does_not_speak_of_what_a_link_there_leads_to(desks: Desks, no: Person) -> None:
    desk = desks(no)
    desks.put("deploy.sh", "exit 0\n")
    (desk.folder / "src").mkdir()
    (desk.folder / "src/link").symlink_to(desk.folder / "deploy.sh")
    for told in (
        await let_through(desk, "write_file", path="src/link", content="exit 1\n"),
        await let_through(desk, "edit_file", path="src/link", old_text="0", new_text="1"),
    ):
        assert "The change of deploy.sh was not approved" in told
    assert [asked.target for asked in no.asked] == ["deploy.sh"] * 2
    assert (desk.folder / "deploy.sh").read_bytes() == b"exit 0\n"
