"""The base install alone: no model, no key, no server, no network, and few packages."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from places import place_of
from source_tree import ROOT

pytestmark = pytest.mark.req("GO-G3")

_SCRIPT = """
import asyncio, socket, sys

def refuse(*_arguments, **_more):
    raise RuntimeError("the network was used")

socket.getaddrinfo = refuse
socket.socket.connect = socket.socket.connect_ex = socket.socket.bind = refuse
# a module that is None can't be imported, as if it were not installed
for name in ("pydantic_ai", "openai", "anthropic", "httpx2", "opentelemetry", "quicktok"):
    sys.modules[name] = None

from ricordo import HarnessAgent, Memory, Scope, ToolResultEvictionConfig
from ricordo.messages import Message, Text, ToolCall, ToolResult

def said(role, *parts):
    return Message(role=role, parts=parts)

async def main(root):
    scope = Scope(user="me", project="shop")
    async with Memory.open(root, scope=scope) as memory:
        saved = await memory.remember("We deploy only from main.", kind="decision")
        assert [hit.entry.id for hit in await memory.recall("deployment branch")] == [saved.id]
        assert [hit.entry.id for hit in await memory.search("deploy")] == [saved.id]
        assert "We deploy only from main." in await memory.preamble()
        assert (await memory.answer("Where do we deploy from?")).found
        await memory.forget(saved.id)
        assert await memory.recall("deployment branch") == []
        assert "deploy" not in await memory.preamble()
    eviction = ToolResultEvictionConfig.defaults()
    given = {"memory": root, "scope": scope, "session": "s", "tool_result_eviction": eviction}
    async with HarnessAgent("offline", **given) as agent:
        call = ToolCall(id="1", name="look", arguments="{}")
        result = ToolResult(call_id="1", name="look", parts=(Text(text="wide " * 40_000),))
        await agent.record([said("user", Text(text="Look.")), said("assistant", call), said("tool", result)])
        assert str(await agent.send("What is there?"))
        assert sum(len(str(message.parts)) for message in agent.window) < 20_000

asyncio.run(main(sys.argv[1]))
print("done")
"""


@pytest.mark.req("FC-NOKEY")
def test_everything_works_without_a_model_a_key_a_server_and_a_network(tmp_path: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert len(project["dependencies"]) <= 6
    bare = {"HOME": str(tmp_path), "PATH": os.defpath, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, str(tmp_path / ".ricordo")],
        cwd=tmp_path,
        env=bare,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout.strip(), done.stderr.strip()) == ("done", "")
    [wide] = (place_of(tmp_path / ".ricordo") / "workspace" / "large_tool_results").rglob("*.txt")
    assert wide.stat().st_size == 200_000
