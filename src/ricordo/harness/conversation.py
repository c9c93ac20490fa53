"""Conversation: one session of an agent as it goes on, turn after turn, and over the end of a process.

The transcript is what was said; the window is what the next request begins with. The window is kept in the agent's
state whenever it got shorter, and at the end of each turn, a failed or cancelled one too. What stands in the transcript
and not in the state, because a process was killed between the two, is taken up again when the session is opened.

Invariants: one turn at a time; nothing enters the window that was not recorded before.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import anyio

from ricordo.clock import Clock
from ricordo.errors import StorageError, VersionConflict
from ricordo.messages import Message
from ricordo.middleware import Record, Request, Response, Step, Turn, TurnHandler, TurnListener, TurnResult
from ricordo.scopes import Scope
from ricordo.state import AgentState, StateStore
from ricordo.uncut import uncut

__all__ = ["Conversation", "Keeper", "taken_up"]


class Keeper:
    """Keeps the window of one session: in mind as it grows, and in the store of states."""

    def __init__(
        self, state: AgentState, *, states: StateStore | None, version: str, record: Record, clock: Clock
    ) -> None:
        """Go on from `state`, which has this `version` in the store; without a store nothing outlives the process."""
        self._state = state
        self._kept = state.window
        self._states = states
        self._version = version
        self._record = record
        self._clock = clock

    @property
    def state(self) -> AgentState:
        """Where the agent stands."""
        return self._state

    async def record(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Make `messages` durable, with the time at which they came, and take them into the window."""
        now = self._clock.now()
        stored = await self._record([message if message.time else replace(message, time=now) for message in messages])
        known = {message.id for message in self._state.window}
        self._move([*self._state.window, *(message for message in stored if message.id not in known)])
        if stored:
            self._state = replace(self._state, last=stored[-1].id)
        return stored

    async def watch(self, request: Request, step: Step) -> Response:
        """Take in the window as it is about to be sent; as step middleware, this stands inside all that shortens it."""
        if request.window != self._state.window:
            self._move(request.window)
            await self.save()
        return await step(request)

    async def replace(self, window: Sequence[Message]) -> None:
        """Go on from `window`, durably."""
        self._move(window)
        await self.save()

    def end_turn(self, window: Sequence[Message]) -> None:
        """Go on from what a turn came to."""
        self._state = replace(self._state, window=tuple(window), turns=self._state.turns + 1)

    async def save(self) -> None:
        """Keep the state durably; a cancellation waits for it."""
        if self._states is not None and self._state != replace(self._state, window=self._kept):
            await uncut(self._save)

    async def _save(self) -> None:
        assert self._states is not None
        try:
            self._version = await self._states.save(self._state, expected=self._version)
        except VersionConflict:
            # two processes in one session: each goes on with its own window, the transcript has what both said
            stated = await self._states.load(self._state.agent, self._state.session)
            self._version = await self._states.save(self._state, expected=stated.version)
        self._kept = self._state.window

    def _move(self, window: Sequence[Message]) -> None:
        self._state = replace(self._state, window=tuple(window))


@dataclass(frozen=True, kw_only=True)
class Conversation:
    """The turns of one session: `run` carries a turn out, `keeper` remembers where it stands."""

    scope: Scope
    run: TurnHandler
    keeper: Keeper
    _turn: anyio.Lock = field(default_factory=anyio.Lock)

    async def send(self, messages: Sequence[Message], listener: TurnListener | None = None) -> TurnResult:
        """Answer `messages`; another turn that is still running is waited for.

        Raises: ModelError; what was said is kept, and the next turn goes on from it.
        """
        async with self._turn:
            state = self.keeper.state
            turn = Turn(
                scope=self.scope,
                agent=state.agent,
                session=state.session,
                messages=tuple(messages),
                window=state.window,
                listener=listener,
            )
            try:
                result = await self.run(turn)
                self.keeper.end_turn(result.window)
                return result
            finally:
                with suppress(StorageError):
                    await self.keeper.save()

    async def record(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Take in what was said without asking the model."""
        async with self._turn:
            stored = await self.keeper.record(messages)
            await self.keeper.save()
            return stored

    async def replace(self, window: Sequence[Message]) -> None:
        """Go on from another window; the transcript keeps what it has."""
        async with self._turn:
            await self.keeper.replace(window)


def taken_up(window: Sequence[Message], last: str, logged: Sequence[Message]) -> tuple[Message, ...]:
    """Return the window with what the log holds after the message `last`, all of the log when that is not in it. Pure.

    What only the log holds was said in a turn that a process did not live to end.
    """
    known = {message.id for message in window}
    places = [number for number, message in enumerate(logged) if message.id == last]
    rest = logged[places[-1] + 1 :] if places else logged
    return (*window, *(message for message in rest if message.id not in known))
