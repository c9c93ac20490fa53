"""Memories that are opened on a fresh root, and opened again."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from ricordo import Memory, Scope

SHOP = Scope(user="me", project="shop")
Opened = Callable[..., AbstractAsyncContextManager[Memory]]


@pytest.fixture(autouse=True)
def unhurried_closing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let closing learn for as long as it takes: a busy machine needs more than the two seconds that it has."""
    monkeypatch.setenv("RICORDO_FLUSH__CLOSING_SECONDS", "40")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / ".ricordo"


@pytest.fixture
def opened(root: Path) -> Opened:
    """Open the shop's memory in the root of this test; keywords go to `Memory.open`."""

    def open_again(
        scope: Scope = SHOP, folder: Path | None = None, **given: object
    ) -> AbstractAsyncContextManager[Memory]:
        return Memory.open(folder or root, scope=scope, **given)  # type: ignore[arg-type]

    return open_again
