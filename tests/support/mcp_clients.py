"""Clients of the MCP server: what they read in a result, and a server that they reach over HTTP."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Literal

import anyio
from mcp import Client
from mcp.types import CallToolResult, TextContent

from ricordo import Memory, Scope
from ricordo.errors import RootNotFound
from ricordo.guard import Redactor
from ricordo.mcp.contract import ServedMemory
from ricordo.mcp.root import ServedRoot
from ricordo.mcp.server import MemoryServer
from ricordo.runtime import Settings
from ricordo.runtime.workspace import root_files
from ricordo.storage import Disk
from ricordo.workspace.session_search import PastSessions

__all__ = [
    "TOKEN",
    "Connected",
    "connect_in_process",
    "find_text",
    "is_there",
    "say_handshake",
    "say_request",
    "serve_over_http",
    "text_of",
    "value_of",
]

TOKEN = "a-token-of-thirty-two-characters"
Connected = Callable[..., AbstractAsyncContextManager[Client]]


def text_of(result: CallToolResult) -> str:
    """Return the one text of a result."""
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


def value_of(result: CallToolResult) -> Any:
    """Return the typed result of a call that did not fail."""
    assert not result.is_error, text_of(result)
    return result.structured_content


def is_there(path: Path) -> bool:
    """Return whether a file or folder exists."""
    return path.exists()


def find_text(folder: Path, text: str) -> list[Path]:
    """Return the files below a folder that hold a text."""
    return [path for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


@asynccontextmanager
async def connect_in_process(
    root: Path,
    scope: Scope,
    mode: Literal["auto", "legacy"] = "auto",
    *,
    budget: int = 2_000,
    disk: Disk | None = None,
    settings: Settings | None = None,
    **given: Any,
) -> Any:
    """Serve the memory of `scope` in process, and yield a client of it; `given` are options of the client."""

    async def open_memory(*, create: bool) -> ServedMemory:
        if not (create or is_there(root)):
            raise RootNotFound
        memory = await Memory.open(root, scope=scope, embedder="none", disk=disk, settings=settings)
        files = root_files(memory.folder)
        sessions = PastSessions(files, user=scope.user)
        shared = root_files(root)
        return ServedMemory(
            memory=memory, files=files, shared=shared, redactor=Redactor(bytes(32)), sessions=sessions, budget=budget
        )

    served = ServedRoot(open_memory)
    try:
        server = MemoryServer(served)
        async with Client(server, mode=mode, **given) as client, anyio.create_task_group() as group:
            group.start_soon(server.watch.run)
            yield client
            group.cancel_scope.cancel()
    finally:
        await served.close()


@contextmanager
def serve_over_http(tmp_path: Path, *options: str) -> Iterator[str]:
    """Start a server on a free port, with a token if there are no `options`, and yield its URL."""
    token = tmp_path / "token"
    token.write_text(f"{TOKEN}\n", encoding="ascii")
    command = [sys.executable, "-m", "ricordo", "mcp", "--root", str(tmp_path / "root"), "--http", "127.0.0.1:0"]
    given = options or ("--token-file", str(token))
    with subprocess.Popen([*command, *given], stderr=subprocess.PIPE, text=True, env=dict(os.environ)) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        try:
            assert "Serving at " in line, line + process.stderr.read()
            yield line.partition("Serving at ")[2].strip()
        finally:
            process.terminate()
            assert process.wait(timeout=60) == 143


def say_request(number: int, method: str, params: dict[str, Any]) -> str:
    """Return the line of a request."""
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n"


def say_handshake() -> str:
    """Return the lines with which a client of 2025-11-25 begins; the answer has the id 0."""
    client = {"name": "test", "version": "1"}
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
    ready = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}) + "\n"
    return say_request(0, "initialize", params) + ready
