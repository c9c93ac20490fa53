"""Indexes that tests open are closed at their end."""

from collections.abc import Iterator
from typing import Any

import anyio
import pytest

from ricordo.search.index import WorkspaceIndex


@pytest.fixture(autouse=True)
def closed_indexes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close what a test opened: an index that nobody closes is warned of from Python 3.13 on."""
    opened: list[WorkspaceIndex] = []
    open_index = WorkspaceIndex.open

    async def noted(*given: Any, **named: Any) -> WorkspaceIndex:
        index = await open_index(*given, **named)
        opened.append(index)
        return index

    monkeypatch.setattr(WorkspaceIndex, "open", noted)
    yield
    for index in opened:
        anyio.run(index.close)
