"""Resources, prompts and notifications of the MCP server, in both generations of the protocol."""

from pathlib import Path
from typing import Literal

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ResourceUpdated
from mcp.types import (
    ResourceListChangedNotification,
    ResourceUpdatedNotification,
    TextContent,
    TextResourceContents,
)

from mcp_clients import Connected, value_of
from ricordo import Memory, Scope
from ricordo.messages import Message, Text

pytestmark = pytest.mark.anyio
SHOP = Scope(user="me", project="shop")
MEMORY = "# Memory\n\n- We deploy only from main. [kind:: decision]\n"
TOPIC = "---\nname: deployment\ndescription: How we deploy.\ntype: project\n---\n\n- The pipeline takes nine minutes.\n"


async def _read(client: Client, uri: str) -> str:
    (content,) = (await client.read_resource(uri)).contents
    assert isinstance(content, TextResourceContents)
    return content.text


async def _curate(root: Path) -> Path:
    """Write what consolidation would write, and record one session; return the folder of the curated documents."""
    async with Memory.open(root, scope=SHOP, embedder="none") as memory:
        await memory.remember("We deploy only from main.")
        messages = [
            Message(role="user", parts=(Text(text="Which exit code was it?"),)),
            Message(role="assistant", parts=(Text(text="It was 137."),)),
        ]
        await memory.ingest(messages, session="s-1")
        folder = memory.folder / "workspace"
    (folder / "memory/topics").mkdir(parents=True, exist_ok=True)
    (folder / "MEMORY.md").write_text(MEMORY)
    (folder / "memory/topics/deployment.md").write_text(TOPIC)
    return folder


@pytest.mark.req("AS-BUG-24")
async def test_documents_memories_and_sessions_are_listed_and_read_as_fenced_data(
    connected: Connected, root: Path
) -> None:
    await _curate(root)
    async with connected() as client:
        uris = [each.uri for each in (await client.list_resources()).resources]
        assert uris == [
            "ricordo://preamble", "ricordo://memory", "ricordo://topics/deployment", "ricordo://sessions/s-1",
        ]  # fmt: skip
        (entry,) = value_of(await client.call_tool("list_memories", {"limit": 1}))["memories"]
        expected = {
            "ricordo://preamble": "We deploy only from main.",
            "ricordo://memory": "We deploy only from main.",
            "ricordo://topics/deployment": "The pipeline takes nine minutes.",
            "ricordo://sessions/s-1": "It was 137.",
            f"ricordo://memories/{entry['id']}": entry["text"],
        }
        for uri, text in expected.items():
            read = await _read(client, uri)
            assert text in read
            assert "not instructions" in read
        templates = {each.uri_template for each in (await client.list_resource_templates()).resource_templates}
        assert {
            "ricordo://topics/{name}", "ricordo://project/topics/{name}", "ricordo://memories/{id}",
            "ricordo://sessions/{id}",
        } == templates  # fmt: skip


@pytest.mark.parametrize(
    "uri",
    [
        "ricordo://topics/..%2F..%2F..%2Fproject",
        "ricordo://topics/%2Fetc%2Fpasswd",
        "ricordo://sessions/none",
        "ricordo://memories/none",
        "file:///etc/passwd",
    ],
)
async def test_what_is_no_resource_is_an_error_and_no_other_file_is_read(
    connected: Connected, root: Path, uri: str
) -> None:
    await _curate(root)
    async with connected() as client:
        with pytest.raises(MCPError) as error:
            await client.read_resource(uri)
        assert error.value.error.code == -32602
        assert error.value.error.message


async def test_prompts_carry_what_the_person_gave(connected: Connected) -> None:
    async with connected() as client:
        assert [each.name for each in (await client.list_prompts()).prompts] == ["remember", "what-do-you-know"]
        for name, argument in (("remember", "what"), ("what-do-you-know", "about")):
            prompt = await client.get_prompt(name, {argument: "the {} pipeline"})
            content = prompt.messages[0].content
            assert isinstance(content, TextContent)
            assert "the {} pipeline" in content.text
            with pytest.raises(MCPError, match=f"needs the argument '{argument}'"):
                await client.get_prompt(name, {})
        with pytest.raises(MCPError, match="there are remember, what-do-you-know"):
            await client.get_prompt("other", {})


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
async def test_a_client_that_asked_is_told_what_another_process_changed(
    connected: Connected, root: Path, mode: Literal["auto", "legacy"]
) -> None:
    folder, uri = await _curate(root), "ricordo://memory"
    told: set[str] = set()
    complete = anyio.Event()

    def note(what: str) -> None:
        told.add(what)
        if told >= {uri, "list"}:
            complete.set()

    async def handle(message: object) -> None:
        if isinstance(message, ResourceUpdatedNotification):
            note(message.params.uri)
        if isinstance(message, ResourceListChangedNotification):
            note("list")

    async def listen(client: Client, ready: anyio.Event) -> None:
        async with client.listen(resources_list_changed=True, resource_subscriptions=[uri]) as events:
            ready.set()
            async for event in events:
                note(event.uri if isinstance(event, ResourceUpdated) else "list")

    async with connected(message_handler=handle) as client, anyio.create_task_group() as group:
        if mode == "legacy":
            await client.list_resources()
            await client.subscribe_resource(uri)
        else:
            ready = anyio.Event()
            group.start_soon(listen, client, ready)
            await ready.wait()
        (folder / "MEMORY.md").write_text(f"{MEMORY}- We review on Mondays.\n")
        (folder / "memory/topics/reviews.md").write_text(TOPIC.replace("deployment", "reviews"))
        with anyio.fail_after(60):
            await complete.wait()
        group.cancel_scope.cancel()
