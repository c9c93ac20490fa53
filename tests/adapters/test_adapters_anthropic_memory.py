"""Our memory tool behind the abstract classes of Anthropic's SDK, driven by its own runner over the wire."""

from pathlib import Path

import anyio.to_thread
import pytest
from anyio.from_thread import start_blocking_portal

from ricordo.agent import Tool, ToolContext
from ricordo.agent.tools import memory_files_tool
from ricordo.clock import MonotonicIds, SystemClock
from ricordo.errors import MemoryClosed
from ricordo.guard import Redactor
from ricordo.messages import JsonValue, Text, ToolResult
from ricordo.scope import Scope
from ricordo.storage.local import LocalFiles
from ricordo.testing import Call, Calls, LoopbackServer, Say
from ricordo.workspace import ChangeSets

pytestmark = pytest.mark.req("CC-MEMTOOL")

anthropic = pytest.importorskip("anthropic", reason="the extra `models` is not installed")
adapter = pytest.importorskip("ricordo.adapters.anthropic_memory")

CONTEXT = ToolContext(call_id="sdk", scope=Scope(project="shop"), agent="main", session="s1")
GO = [{"role": "user", "content": "Go."}]
NOTES = "/memories/notes.md"
ASKED: list[tuple[dict[str, JsonValue], str]] = [
    ({"command": "view", "path": "/memories"}, "Here're the files and directories"),
    ({"command": "create", "path": NOTES, "file_text": "one\ntwo\n"}, "File created successfully"),
    ({"command": "str_replace", "path": NOTES, "old_str": "two"}, "The memory file has been edited."),
    ({"command": "insert", "path": NOTES, "insert_line": 1, "insert_text": "second"}, "has been edited."),
    ({"command": "view", "path": NOTES, "view_range": [1, -1]}, "     2\tsecond"),
    ({"command": "rename", "old_path": NOTES, "new_path": "/memories/a/b.md"}, "Successfully renamed"),
    ({"command": "delete", "path": "/memories/a"}, "Successfully deleted"),
    ({"command": "create", "path": "/memories/kept.md", "file_text": "kept\n"}, "File created successfully"),
]
REFUSED: list[tuple[dict[str, JsonValue], str]] = [
    ({"command": "delete", "path": "/memories/"}, "can't be deleted"),
    ({"command": "view", "path": "/memories/../guard.key"}, "leaves the workspace"),
    ({"command": "create", "path": NOTES}, "needs `file_text`"),
    ({"command": "view", "path": 7}, "path"),
]


def _memory(root: Path) -> Tool:
    files, clock = LocalFiles(root), SystemClock()
    changes = ChangeSets(files, clock=clock, ids=MonotonicIds(clock))
    return memory_files_tool(files, changes, redactor=Redactor(bytes(32)), root=root)


def _script() -> list[Calls | Say]:
    every = [arguments for arguments, _ in [*ASKED, *REFUSED]]
    return [*[Calls(Call("memory", arguments)) for arguments in every], Say("Done.")]


def _check(server: LoopbackServer, root: Path) -> None:
    """Check what the SDK sent back: the results of all commands, in their order."""
    assert server.problems == ()
    first, *_, last = server.requests
    assert first.body["tools"] == [{"type": "memory_20250818", "name": "memory"}]
    results = [part for message in last.messages for part in message.parts if isinstance(part, ToolResult)]
    told = ["".join(part.text for part in result.parts if isinstance(part, Text)) for result in results]
    for text, (arguments, wanted) in zip(told, [*ASKED, *REFUSED], strict=True):
        assert wanted in text, arguments
    assert [result.is_error for result in results] == [False] * len(ASKED) + [True] * len(REFUSED)
    kept = {path.name: path.read_text() for path in (root / "workspace/memories").rglob("*") if path.is_file()}
    assert kept == {"kept.md": "kept\n"}


@pytest.mark.anyio
async def test_the_awaiting_client_works_with_our_files_over_the_wire(tmp_path: Path) -> None:
    root = tmp_path / "root"
    tool = adapter.AnthropicMemoryTool(_memory(root), CONTEXT)
    with LoopbackServer(_script()) as server:
        async with anthropic.AsyncAnthropic(base_url=server.url, api_key="none", max_retries=0) as client:
            runner = client.beta.messages.tool_runner(
                model="claude-sonnet-5", max_tokens=100, tools=[tool], messages=GO, thread=False
            )
            final = await runner.until_done()
        assert final.content[0].text == "Done."
        await anyio.to_thread.run_sync(_check, server, root)


def test_the_blocking_client_works_with_our_files_over_the_wire(tmp_path: Path) -> None:
    root = tmp_path / "root"
    with LoopbackServer(_script()) as server, start_blocking_portal() as portal:
        tool = adapter.BlockingAnthropicMemoryTool(_memory(root), CONTEXT, portal)
        with anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0) as client:
            runner = client.beta.messages.tool_runner(
                model="claude-sonnet-5", max_tokens=100, tools=[tool], messages=GO, thread=False
            )
            assert runner.until_done().content[0].text == "Done."
        _check(server, root)


def _results(server: LoopbackServer) -> list[str]:
    return [result.text for message in server.requests[-1].messages for result in message.tool_results]


VIEW, CREATE = [
    Call("memory", {"command": "view", "path": "/memories"}),
    Call("memory", {"command": "create", "path": NOTES, "file_text": "We deploy from main.\n"}),
]


@pytest.mark.anyio
async def test_the_notes_of_a_scope_last_and_no_other_user_sees_them(tmp_path: Path) -> None:
    async def ask(user: str, *calls: Call) -> list[str]:
        scope = Scope(project="shop", user=user)
        with LoopbackServer([*calls, Say("Done.")]) as server:
            async with (
                adapter.AnthropicMemory(scope=scope, memory=tmp_path) as memory,
                anthropic.AsyncAnthropic(base_url=server.url, api_key="none", max_retries=0) as client,
            ):
                runner = client.beta.messages.tool_runner(
                    model="claude-sonnet-5", max_tokens=100, tools=[memory.tool], messages=GO, stream=True, thread=False
                )
                async for stream in runner:
                    await stream.get_final_message()
            return _results(server)

    await ask("ann", CREATE)
    (listed,) = await ask("ann", VIEW)
    assert "notes.md" in listed
    (other,) = await ask("bob", VIEW)
    assert "notes.md" not in other


def test_the_notes_of_a_scope_are_there_for_a_client_that_blocks(tmp_path: Path) -> None:
    with LoopbackServer([CREATE, VIEW, Say("Done.")]) as server:
        with (
            adapter.AnthropicMemory(scope=Scope(project="shop", user="ann"), memory=tmp_path) as memory,
            anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0) as client,
        ):
            runner = client.beta.messages.tool_runner(
                model="claude-sonnet-5", max_tokens=100, tools=[memory.blocking_tool], messages=GO, thread=False
            )
            assert runner.until_done().content[0].text == "Done."
        created, listed = _results(server)
        assert "created" in created
        assert "notes.md" in listed
    with pytest.raises(MemoryClosed):
        _ = memory.tool
