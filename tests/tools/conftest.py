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
