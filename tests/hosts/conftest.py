"""What the tests with the real hosts share: a host of each kind, connected by the one command."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from real_hosts import ClaudeCode, Codex, RealHost, start_host


@pytest.fixture
def claude_code(tmp_path: Path) -> Iterator[ClaudeCode]:
    """Return Claude Code, connected."""
    with start_host(ClaudeCode, tmp_path) as host:
        host.install()
        yield host


@pytest.fixture
def codex(tmp_path: Path) -> Iterator[Codex]:
    """Return Codex, connected, its hooks reviewed."""
    with start_host(Codex, tmp_path) as host:
        host.install()
        yield host


@pytest.fixture(params=[ClaudeCode, Codex], ids=lambda kind: kind.name)
def host(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RealHost]:
    """Return each host, connected."""
    with start_host(request.param, tmp_path) as host:
        host.install()
        yield host
