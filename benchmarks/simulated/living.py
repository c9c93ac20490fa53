"""Living: goes through a calendar by the public API, with a clock that is turned by hand and no model of its own.

Each session is opened, had and left as its person would; what was said waits in the inbox for its pause. Every evening
an agent is opened, which maintains the root, and works off what waits.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict
from datetime import date, datetime, timedelta
from pathlib import Path

import anyio

from retrieval_adapter import messages_of
from ricordo import HarnessAgent, Memory, Scope
from ricordo.errors import SpendingLimitReached
from ricordo.events import Event
from ricordo.extraction.config import FlushConfig
from ricordo.models import ChatModel
from ricordo.models.config import OFFLINE, SpendingConfig
from ricordo.runtime import Settings
from simulated.calendar import START, USERS, Calendar, Visit

__all__ = ["Life", "TurnedClock"]

PROJECT = "year"
_PATIENCE = 60.0


class TurnedClock:
    """A clock that stands still until it is set."""

    def __init__(self, time: datetime = START) -> None:
        """Stand at `time`."""
        self.time = time

    def now(self) -> datetime:
        """Return the time that was set."""
        return self.time

    def today(self) -> date:
        """Return its date."""
        return self.time.date()


class Life:
    """Lives through a calendar in the folder `root`; `learner` is asked what sessions teach, by rules without one."""

    def __init__(
        self, calendar: Calendar, folder: Path, *, learner: ChatModel | None = None, daily_tokens: int = 2_000_000
    ) -> None:
        """Touch nothing yet."""
        self.calendar = calendar
        self.root = folder / ".ricordo"
        self.clock = TurnedClock()
        self.heard: dict[tuple[str, str], int] = {}
        self.failed: list[str] = []
        self.refused: dict[date, int] = {}
        self.model = learner or OFFLINE
        self.left = 0
        self.settings = Settings(
            root=None, user=USERS[0], data=folder / "data", cache=folder / "cache",
            flush=FlushConfig(model=self.model), spending=SpendingConfig(daily_tokens=daily_tokens),
        )  # fmt: skip
        self._maintained = anyio.Event()

    async def days(self) -> AsyncIterator[int]:
        """Live through day after day, and give its number when it is over."""
        for day in range(self.calendar.days):
            self.clock.time = START + timedelta(days=day)
            visits = self.calendar.visits.get(day, ())
            for visit in visits:
                await self._lived(visit)
            self.clock.time = START + timedelta(days=day, hours=12)
            await self._evening(day)
            yield day

    @property
    def scope(self) -> Scope:
        """The scope of all of them: what one says, the others are to find."""
        return Scope(project=PROJECT)

    def memory(self) -> AbstractAsyncContextManager[Memory]:
        """Open the memory to ask it, which changes nothing but the index."""
        return Memory.open(self.root, scope=self.scope, settings=self.settings, clock=self.clock)

    def hear(self, event: Event) -> None:
        """Count what happens, keep what fails, and count by day how often the rules learned as a limit was reached."""
        key = event.stage, event.status
        self.heard[key] = self.heard.get(key, 0) + 1
        # a lease that runs out is the clock's doing: it is turned further than any work takes
        if event.status == "failed" and event.reason != "cancelled" and event.error != "LeaseLost":
            self.failed.append(f"{self.clock.today()} {event.stage}: {event.error or event.reason}")
        if event.stage == "extract" and SpendingLimitReached.__name__ in (event.reason or ""):
            self.refused[self.clock.today()] = self.refused.get(self.clock.today(), 0) + 1
        if key == ("maintain", "finished"):
            self._maintained.set()

    async def _lived(self, visit: Visit) -> None:
        messages = messages_of([asdict(item) for item in visit.items])
        if not visit.talked:
            async with Memory.open(
                self.root, scope=self.scope, settings=self.settings, clock=self.clock, on_event=self.hear
            ) as memory:
                self.clock.time = messages[-1].time or self.clock.time
                await memory.ingest(messages, session=visit.session)
            return
        async with self._agent(visit.user, visit.session) as agent:
            for message in messages:
                self.clock.time = message.time or self.clock.time
                if message.role == "user" and message.text:
                    await agent.send(message.text)

    async def _evening(self, day: int) -> None:
        """Let the root be maintained, and work off what waits."""
        self._maintained = anyio.Event()
        async with self._agent(USERS[0], f"evening-{day}") as agent:
            if self.heard.get(("record", "finished")):
                with anyio.fail_after(_PATIENCE):
                    await self._maintained.wait()
            self.left = await agent.drain(seconds=_PATIENCE)

    def _agent(self, user: str, session: str) -> HarnessAgent:
        return HarnessAgent(
            OFFLINE, memory=self.root, scope=self.scope, session=session, settings=self.settings,
            clock=self.clock, on_event=self.hear,
        )  # fmt: skip
