"""What the tests with the real hosts share: a host of each kind, connected by the one command."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from real_hosts import ClaudeCode, Codex, GeminiCli, OpenCode, RealHost, start_host


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


@pytest.fixture
def gemini(tmp_path: Path) -> Iterator[GeminiCli]:
    """Return Gemini CLI, connected, in a project that the person trusts."""
    with start_host(GeminiCli, tmp_path) as host:
        host.install()
        yield host


@pytest.fixture
def opencode(tmp_path: Path) -> Iterator[OpenCode]:
    """Return opencode, connected."""
    with start_host(OpenCode, tmp_path) as host:
        host.install()
        yield host


@pytest.fixture(params=[ClaudeCode, Codex], ids=lambda kind: kind.name)
def typed_host(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RealHost]:
    """Return each host, connected, whose model is sent the typed results of tools."""
    with start_host(request.param, tmp_path) as host:
        host.install()
        yield host


_LONG = pytest.mark.soak


@pytest.fixture(
    params=[ClaudeCode, Codex, pytest.param(GeminiCli, marks=_LONG), pytest.param(OpenCode, marks=_LONG)],
    ids=lambda kind: kind.name,
)
def host(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RealHost]:
    """Return each host, connected; a short test is there for those that are left out of a short run."""
    with start_host(request.param, tmp_path) as host:
        host.install()
        yield host
