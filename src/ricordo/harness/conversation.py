"""Conversation: one session of an agent as it goes on, turn after turn, and over the end of a process.

The transcript is what was said; the window is what the next request begins with. The window is kept in the agent's
state whenever it got shorter, and at the end of each turn, a failed or cancelled one too. What stands in the transcript
and not in the state, because a process was killed between the two, is taken up again when the session is opened. What
stands beside the window is kept in the state at once: it can be made again from nothing.

Invariants: one turn at a time; nothing enters the window that was not recorded before; whose session it is, and that it
is not learned from, is durable before its first words; no turn fails because the window could not be kept, since it
can be made again from the transcript; and what happens to the window changes nothing of what stands beside it.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import anyio
from anyio.to_thread import run_sync

from ricordo.errors import StorageError
from ricordo.files import ABSENT
from ricordo.guard import Redactor
from ricordo.harness.taking_up import mark_delivered, repair_window
from ricordo.messages import Message, count_fingerprints, with_ids
from ricordo.middleware import (
    Recorder,
    ModelRequest,
    ModelResponse,
    StepHandler,
    Turn,
    TurnHandler,
    TurnListener,
    TurnResult,
)
from ricordo.scopes import Scope
from ricordo.state import AgentState, WorkState, StateStore
from ricordo.state.merge import merge_states
from ricordo.state.saved import StateSaver
from ricordo.tools.output import OutputType
from ricordo.uncut import run_even_if_cancelled
from ricordo.workspace.redaction import redact_message

__all__ = ["TurnRunner", "SessionState"]


class SessionState:
    """Keeps one session: its window in mind as it grows, what stands beside that, and both in the store of states."""

    def __init__(
        self,
        state: AgentState,
        redactor: Redactor | None = None,
        *,
        record: Recorder | None = None,
        states: StateStore | None = None,
        version: str = ABSENT,
        logged: Sequence[Message] = (),
    ) -> None:
        """Go on from `state`, which has this `version` in the store; without a store nothing outlives the process.

        `logged` is what the transcript holds, as far as it was read. `redactor` takes secrets out of the results of
        tools where nothing is recorded; what is recorded has none.
        """
        self._redactor = redactor
        self.turn_lock = anyio.Lock()
        self._state = state
        self._saved = StateSaver(states, state, version) if states is not None else None
        self._save_lock = anyio.Lock()
        self._is_new = version == ABSENT
        self._record = record
        self._ratio: Callable[[], float] = lambda: state.ratio
        self._known_fingerprints = Counter(count_fingerprints(state.window))
        self._recorded_messages = (
            _select_in_window(state.window, logged) if record else {each.id: each for each in logged}
        )

    @property
    def state(self) -> AgentState:
        """Where the agent stands."""
        return self._state

    @property
    def work_state(self) -> WorkState:
        """What stands beside the window."""
        return self._state.work_state

    @property
    def recorded_messages(self) -> Mapping[str, Message]:
        """The messages of the window as they were recorded, by id; without a transcript all of this process."""
        return self._recorded_messages

    def is_recorded(self, message: Message) -> bool:
        """Tell whether the transcript is known to hold `message` just so, but for its parent; a False proves
        nothing."""
        known = self._recorded_messages.get(message.id)
        return known is not None and replace(known, parent=None) == replace(message, parent=None)

    def find_recorded(self, message_id: str) -> Message | None:
        """Return a message of the window as the transcript holds it; None when that is not known."""
        return self._recorded_messages.get(message_id)

    def set_ratio_source(self, ratio: Callable[[], float]) -> None:
        """Keep what `ratio` returns as that of the token estimate."""
        self._ratio = ratio

    async def record(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Make `messages` durable and take them into the window; return them as they are stored."""
        await self._claim_session()
        window = self._state.window
        if self._record is None:
            clean = await run_sync(_redact_results, messages, self._redactor)
            stored = tuple(with_ids(clean, session=self._state.session, known=self._known_fingerprints))
            self._known_fingerprints.update(count_fingerprints(messages))
        else:
            stored = await self._record(messages)
        self._recorded_messages.update({message.id: message for message in stored})
        known = {message.id for message in window}
        self._state = replace(
            self._state,
            window=(*window, *(message for message in stored if message.id not in known)),
            last=stored[-1].id if stored else self._state.last,
            work_state=mark_delivered(self._state.work_state, stored),
        )
        return stored

    async def observe_request(self, request: ModelRequest, step: StepHandler) -> ModelResponse:
        """Take in the window as it is about to be sent; as step middleware, this stands inside all that shortens it."""
        if request.window != self._state.window:
            self.replace_window(request.window)
            with suppress(StorageError):
                await self.save()
        return await step(request)

    def replace_window(
        self,
        window: Sequence[Message],
        *,
        turns: int = 0,
        undone: int | None = None,
        recorded: Iterable[Message] = (),
    ) -> None:
        """Go on from `window`, after so many more `turns`; `undone` is as in `AgentState`, None leaves it.

        `find_recorded` is what the transcript is known to hold besides what the keeper knows of it.
        """
        left = self._state.undone if undone is None else undone
        self._state = replace(self._state, window=tuple(window), turns=self._state.turns + turns, undone=left)
        if self._record is not None:
            self._recorded_messages = _select_in_window(window, (*self._recorded_messages.values(), *recorded))

    async def update_work_state(self, change: Callable[[WorkState], WorkState]) -> WorkState:
        """Go on with what `change` makes of what stands, durably, and return it; a cancellation waits for it.

        It may be called at any time, within a turn and beside others; one change comes after the other. Where another
        process changed what stands meanwhile, both count, and where others come first each time it is tried again for
        some 5 seconds. Raises: StorageError, VersionConflict among them, and then nothing has changed here; what
        `change` raises.
        """
        await run_even_if_cancelled(partial(self._update_durably, change))
        return self.work_state

    async def save(self) -> None:
        """Keep the state durably; a cancellation waits for it. Raises `StorageError`."""
        await run_even_if_cancelled(partial(self._update_durably, _identity))

    async def _claim_session(self) -> None:
        """Save a new session, and so whose it is and whether it is learned from, before its first words.

        A cancellation waits for it.
        """
        if not self._is_new:
            return
        try:
            await self.save()
        except StorageError:
            if self._state.user or not self._state.learns:
                raise
        self._is_new = False

    async def _update_durably(self, change: Callable[[WorkState], WorkState]) -> None:
        async with self._save_lock:
            before = self._state = replace(self._state, ratio=self._ratio())
            wanted = replace(before, work_state=change(before.work_state))
            if self._saved and not self._saved.is_up_to_date(wanted):
                wanted = await self._save_or_restore(self._saved, before, wanted)
            # the turn may have gone on while it was saved
            self._state = merge_states(before, self._state, wanted)

    async def _save_or_restore(self, saved: StateSaver, before: AgentState, wanted: AgentState) -> AgentState:
        try:
            return await saved.save(wanted)
        except StorageError:
            # a disk may fail after it has written, and who comes next would find what was refused here
            if wanted != before:
                with suppress(StorageError):
                    left = await saved.save(before)
                    # what others saved meanwhile came with it, and would be taken for removed here
                    self._state = merge_states(before, self._state, left)
            raise


@dataclass(frozen=True, kw_only=True)
class TurnRunner:
    """The turns of one session: `run` carries a turn out, `session_state` remembers where it stands."""

    scope: Scope
    run: TurnHandler
    session_state: SessionState

    async def send(
        self, messages: Sequence[Message], listener: TurnListener | None = None, output: OutputType | None = None
    ) -> TurnResult:
        """Answer `messages`, with an `output` where one is asked for; another turn that is still running is waited for.

        Raises: ModelError; what was said is kept, and the next turn goes on from it.
        """
        async with self.session_state.turn_lock:
            state = self.session_state.state
            turn = Turn(
                scope=self.scope,
                agent=state.agent,
                session=state.session,
                messages=tuple(messages),
                window=repair_window(state.window),
                listener=listener,
                output=output,
            )
            try:
                result = await self.run(turn)
                self.session_state.replace_window(result.window, turns=1)
                return result
            finally:
                with suppress(StorageError):
                    await self.session_state.save()

    async def record(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Take in what was said without asking the model."""
        async with self.session_state.turn_lock:
            stored = await self.session_state.record(messages)
            with suppress(StorageError):
                await self.session_state.save()
            return stored

    async def rewrite_window(self, act: Callable[[tuple[Message, ...]], Awaitable[Sequence[Message]]]) -> None:
        """Go on from what `act` makes of the window; the transcript keeps what it has. Raises `StorageError`.

        An undone compaction no longer holds back the next one.
        """
        async with self.session_state.turn_lock:
            self.session_state.replace_window(await act(repair_window(self.session_state.state.window)), undone=0)
            await self.session_state.save()


def _redact_results(messages: Sequence[Message], redactor: Redactor | None) -> Sequence[Message]:
    """Return the messages without the secrets that results of tools hold."""
    if redactor is None or not any(message.tool_results for message in messages):
        return messages
    return [redact_message(message, redactor) if message.tool_results else message for message in messages]


def _identity(standing: WorkState) -> WorkState:
    return standing


def _select_in_window(window: Sequence[Message], messages: Iterable[Message]) -> dict[str, Message]:
    ids = {message.id for message in window}
    return {message.id: message for message in messages if message.id in ids}
