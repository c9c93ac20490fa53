"""A working directory with a root in it, and people who approve or refuse."""

from pathlib import Path

import pytest

from desks import Desks, Person


@pytest.fixture
def desks(tmp_path: Path) -> Desks:
    return Desks(tmp_path)


@pytest.fixture
def yes() -> Person:
    return Person(True)


@pytest.fixture
def no() -> Person:
    return Person(False)


@pytest.fixture(autouse=True)
def trio_may_wrap_a_process(request: pytest.FixtureRequest) -> None:
    """Trio gives the descriptor by which it waits for a process to `open`, on the loop; nothing is opened by that."""
    backend = request.node.callspec.params.get("anyio_backend") if hasattr(request.node, "callspec") else None
    if backend == "trio" and request.module.__name__.endswith(("shell", "find_files", "file_roots", "memory")):
        request.node.add_marker(pytest.mark.may_block("trio wraps the descriptor of a process"))
