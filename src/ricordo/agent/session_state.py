"""The state of a session: its window and what is kept beside it, saved so that another process can resume it.

The transcript holds what was said; the window is what the next request begins with. A resumed window is repaired:
processes can be killed anywhere, and providers refuse calls without results.

Invariants: one turn at a time. Nothing enters the window that was not recorded. The owner of a session, and that it is
not learned from, are durable before its first message. No turn fails because the window could not be saved.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import anyio
from anyio.to_thread import run_sync

from ricordo.agent.contract import (
    ModelRequest,
    ModelResponse,
    Recorder,
    StepHandler,
    Turn,
    TurnHandler,
    TurnListener,
    TurnResult,
)
from ricordo.agent.tools.schema import OutputType
from ricordo.concurrency import run_even_if_cancelled
from ricordo.errors import StorageError
from ricordo.guard import Redactor
from ricordo.guard.scanner import SECRET_MARK
from ricordo.messages import (
    Message,
    Pairing,
    Part,
    PartPosition,
    Thinking,
    ToolResult,
    count_fingerprints,
    delivered_results,
    get_mark,
    pair_calls,
    with_ids,
)
from ricordo.scope import Scope
from ricordo.storage import ABSENT
from ricordo.workspace.agent_state import AgentState, StateStore, WorkState
from ricordo.workspace.agent_state_saving import StateSaver, merge_states
from ricordo.workspace.redaction import redact_message

__all__ = ["SessionState", "TurnRunner", "mark_delivered", "messages_from_state", "repair_window", "resume_window"]


def messages_from_state(state: AgentState) -> tuple[Message, ...]:
    """Return what a state's window holds of what was said, in its order, for a transcript that is gone; empty for none.

    Summaries, recalled memory and notices are nothing that was said. Messages keep their ids, and a parent only if it
    is among them, so that the next append chains them anew.
    """
    said = [message for message in state.window if get_mark(message) in {None, "cut"}]
    ids = {message.id for message in said}
    return tuple(message if message.parent in ids else replace(message, parent=None) for message in said)


def resume_window(window: Sequence[Message], last: str, logged: Sequence[Message]) -> tuple[Message, ...]:
    """Return the window with what the log holds after the message `last`, all of the log when that is not in it.

    What only the log holds was said in a turn that a process did not live to end. A thought in which a secret was
    replaced has no seal: it would not fit, and providers refuse such a one.
    """
    known = {message.id for message in window}
    places = [number for number, message in enumerate(logged) if message.id == last]
    rest = logged[places[-1] + 1 :] if places else logged
    found = (*window, *(message for message in rest if message.id not in known))
    return repair_window(tuple(map(_drop_broken_seals, found)))


def mark_delivered(standing: WorkState, logged: Sequence[Message]) -> WorkState:
    """Return what stands with the results that these messages show to have been told, in the order of the telling.

    A reply is recorded before the state is saved, so a process that was killed between the two told more than its
    state says.
    """
    told = dict.fromkeys(each for message in logged for each in delivered_results(message))
    new = tuple(each for each in told if each not in standing.delivered)
    return replace(standing, delivered=(*standing.delivered, *new)) if new else standing


def repair_window(window: Sequence[Message]) -> tuple[Message, ...]:
    """Return `window` as providers take it, which is as it is when nothing went wrong."""
    found = tuple(window)
    # a result that moves to its call may leave another call behind
    while (arranged := _repair_pairs(found)) != found:
        found = arranged
    return found


def _drop_broken_seals(message: Message) -> Message:
    parts = tuple(map(_drop_broken_seal, message.parts))
    return message if parts == message.parts else replace(message, parts=parts)


def _drop_broken_seal(part: Part) -> Part:
    return replace(part, signature=None) if isinstance(part, Thinking) and SECRET_MARK.search(part.text) else part


def _repair_pairs(window: Sequence[Message]) -> tuple[Message, ...]:
    pairing = pair_calls(window)
    answered: dict[PartPosition, PartPosition] = {}
    for call, result in pairing.answered:
        answered.setdefault(call, result)
    gone = _unusable_places(pairing, answered.values())
    askers = {result.message: call.message for call, result in sorted(answered.items())}
    kept: list[tuple[int, int, Message]] = []
    for at, message in enumerate(window):
        left = _remove_parts(message, at, gone)
        if left is not None:
            kept.append((askers.get(at, at) if _has_only_results(left) else at, at, left))
    return tuple(message for _, _, message in sorted(kept, key=lambda row: row[:2]))


def _unusable_places(pairing: Pairing, results: Collection[PartPosition]) -> set[PartPosition]:
    again = {result for _, result in pairing.answered}.difference(results)
    return {*pairing.orphans, *pairing.abandoned, *again}


def _remove_parts(message: Message, at: int, gone: Collection[PartPosition]) -> Message | None:
    """Return the message without these calls and results; None when nothing is left that can be sent."""
    parts = tuple(
        part for number, part in enumerate(message.parts) if PartPosition(message=at, part=number) not in gone
    )
    if len(parts) == len(message.parts):
        return message
    return None if all(isinstance(part, Thinking) for part in parts) else replace(message, parts=parts)


def _has_only_results(message: Message) -> bool:
    return bool(message.parts) and all(isinstance(part, ToolResult) for part in message.parts)


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
