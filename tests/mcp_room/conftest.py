"""Clients of a memory that is served, in both generations of the protocol."""

from functools import partial
from pathlib import Path
from typing import Literal

import pytest

from mcp_clients import Connected, connect_in_process
from ricordo import Scope

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

    return partial(connect_in_process, root, SHOP, mode)
