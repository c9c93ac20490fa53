"""An inbox in a fresh folder, and a clock that is turned by hand."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hand_clock import HandClock
from ricordo.clock import MonotonicIds
from ricordo.jobs import Inbox


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
async def inbox(tmp_path: Path, clock: HandClock) -> AsyncIterator[Inbox]:
    made = Inbox(tmp_path / "queue.db", clock=clock, ids=MonotonicIds(clock))
    yield made
    await made.close()
