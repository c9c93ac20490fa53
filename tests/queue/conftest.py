"""An inbox in a fresh folder, and a clock that is turned by hand."""

from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from ricordo.clock import MonotonicIds
from ricordo.queue.inbox import Inbox


class HandClock:
    """A clock that stands still until it is turned."""

    def __init__(self) -> None:
        self.time = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time

    def today(self) -> date:
        return self.time.date()

    def turn(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
async def inbox(tmp_path: Path, clock: HandClock) -> AsyncIterator[Inbox]:
    made = Inbox(tmp_path / "queue.db", clock=clock, ids=MonotonicIds(clock))
    yield made
    await made.close()
