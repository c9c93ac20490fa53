"""Clients of a memory that is served, in both generations of the protocol."""

from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest
from mcp import Client

from mcp_clients import Connected, is_there
from ricordo import Memory, Scope
from ricordo.errors import RootNotFound
from ricordo.guard import Redactor
from ricordo.mcp.contract import ServedMemory
from ricordo.mcp.root import ServedRoot
from ricordo.mcp.server import MemoryServer
from ricordo.runtime.workspace import root_files
from ricordo.storage import Disk
from ricordo.workspace.session_search import PastSessions

SHOP = Scope(user="me", project="shop")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / ".ricordo"


@pytest.fixture(params=["auto", "legacy"], ids=["2026-07-28", "2025-11-25"])
def mode(request: pytest.FixtureRequest) -> Literal["auto", "legacy"]:
    value: Literal["auto", "legacy"] = request.param
    return value


@pytest.fixture
def connected(root: Path, mode: Literal["auto", "legacy"]) -> Connected:
    """Serve the shop's memory in process, and connect a client of each generation."""

    @asynccontextmanager
    async def connect(*, budget: int = 2_000, disk: Disk | None = None, **given: Any) -> Any:
        async def open_memory(*, create: bool) -> ServedMemory:
            if not (create or is_there(root)):
                raise RootNotFound
            memory = await Memory.open(root, scope=SHOP, embedder="none", disk=disk)
            files = root_files(memory.folder)
            sessions = PastSessions(files, user="me")
            redactor = Redactor(bytes(32))
            return ServedMemory(
                memory=memory, files=files, shared=root_files(root), redactor=redactor, sessions=sessions, budget=budget
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

    return connect
