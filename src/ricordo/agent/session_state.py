"""The state of a session: its window and work state, saved so that another process can resume it.

The transcript holds all messages; the window holds those that the next request starts with. A resumed window is
repaired, because processes can be killed anywhere and providers refuse calls without results.

Invariants: one turn runs at a time. Nothing enters the window that was not recorded. The owner of a session, and
whether facts are extracted from it, are durable before its first message. No turn fails because the window could not be
saved.
"""

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

import anyio
from anyio.to_thread import run_sync

from ricordo.agent.agent_store import AgentResources
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
from ricordo.agent.turn_middleware import TranscriptRecorder
from ricordo.concurrency import run_even_if_cancelled
from ricordo.context.tool_results import set_read_tool
from ricordo.errors import ScopeMismatch, StorageError
from ricordo.guard import Redactor
from ricordo.guard.scanner import SECRET_MARK
from ricordo.lazy import dataclass
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
from ricordo.messages.types import append_new
from ricordo.scope import Scope
from ricordo.search.memory_root import MemoryRoot
from ricordo.storage import ABSENT
from ricordo.workspace.agent_state import AgentState, StateStore, StoredState, WorkState
from ricordo.workspace.agent_state_store import StateSaver, merge_states
from ricordo.workspace.layout import transcript_path
from ricordo.workspace.redaction import redact_message
from ricordo.workspace.sessions import read_owner
from ricordo.workspace.transcript import Transcript

__all__ = [
    "SessionState",
    "TurnRunner",
    "load_session_state",
    "mark_delivered",
    "messages_from_state",
    "repair_window",
    "resume_window",
]


_LOG = logging.getLogger("ricordo.agent")


def messages_from_state(state: AgentState) -> tuple[Message, ...]:
    """Return the original messages in a state's window, in order, to replace a lost transcript; empty if there are
    none.

    Summaries, recalled memories and notices are left out. Messages keep their ids, and a parent only if it is among
    them, so that the next append chains them again.
    """
    messages = [message for message in state.window if get_mark(message) in {None, "cut"}]
    ids = {message.id for message in messages}
    return tuple(message if message.parent in ids else replace(message, parent=None) for message in messages)


def resume_window(window: Sequence[Message], last: str, logged: Sequence[Message]) -> tuple[Message, ...]:
    """Return the window and the messages after `last` in the log, or the whole log if `last` is not in it.

    Messages that only the log holds come from a turn that was killed. Thoughts with a redacted secret lose their seal,
    because it would no longer match and providers refuse that.
    """
    places = [number for number, message in enumerate(logged) if message.id == last]
    rest = logged[places[-1] + 1 :] if places else logged
    return repair_window(tuple(map(_drop_broken_seals, append_new(window, rest))))


def mark_delivered(work_state: WorkState, logged: Sequence[Message]) -> WorkState:
    """Return the work state with the results that these messages delivered, in order of delivery.

    A reply is recorded before the state is saved, so a process that was killed in between has delivered more than its
    state says.
    """
    delivered_keys = dict.fromkeys(each for message in logged for each in delivered_results(message))
    new = tuple(each for each in delivered_keys if each not in work_state.delivered_results)
    return replace(work_state, delivered_results=(*work_state.delivered_results, *new)) if new else work_state


def repair_window(window: Sequence[Message]) -> tuple[Message, ...]:
    """Return `window` in a form that providers accept; a valid window is returned unchanged."""
    repaired = tuple(window)
    # A result that moves to its call may leave another call without one.
    while (arranged := _repair_pairs(repaired)) != repaired:
        repaired = arranged
    return repaired


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
    unusable = _unusable_places(pairing, answered.values())
    askers = {result.message: call.message for call, result in sorted(answered.items())}
    rows: list[tuple[int, int, Message]] = []
    for index, message in enumerate(window):
        remaining = _remove_parts(message, index, unusable)
        if remaining is not None:
            rows.append((askers.get(index, index) if _has_only_results(remaining) else index, index, remaining))
    return tuple(message for _, _, message in sorted(rows, key=lambda row: row[:2]))


def _unusable_places(pairing: Pairing, results: Collection[PartPosition]) -> set[PartPosition]:
    duplicates = {result for _, result in pairing.answered}.difference(results)
    return {*pairing.orphans, *pairing.abandoned, *duplicates}


def _remove_parts(message: Message, index: int, removed: Collection[PartPosition]) -> Message | None:
    """Return the message without these calls and results; None if nothing is left to send."""
    parts = tuple(
        part for number, part in enumerate(message.parts) if PartPosition(message=index, part=number) not in removed
    )
    if len(parts) == len(message.parts):
        return message
    return None if all(isinstance(part, Thinking) for part in parts) else replace(message, parts=parts)


def _has_only_results(message: Message) -> bool:
    return bool(message.parts) and all(isinstance(part, ToolResult) for part in message.parts)


class SessionState:
    """Holds the window and work state of one session and saves both in the state store."""

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
        """Continue from `state`, which has this `version` in the store; without a store nothing is saved.

        `logged` is the part of the transcript that was read. `redactor` removes secrets from tool results if nothing is
        recorded; recorded messages have none.
        """
        self._redactor = redactor
        self.turn_lock = anyio.Lock()
        self._state = state
        self._saved = StateSaver(states, state, version) if states is not None else None
        self._save_lock = anyio.Lock()
        self._is_new = version == ABSENT
        self._lacks_messages = False
        self._record = record
        self._ratio: Callable[[], float] = lambda: state.ratio
        self._known_fingerprints = Counter({} if record else count_fingerprints(state.window))
        self._recorded_messages = (
            _select_in_window(state.window, logged) if record else {each.id: each for each in logged}
        )

    @property
    def state(self) -> AgentState:
        """The current state of the agent."""
        return self._state

    @property
    def work_state(self) -> WorkState:
        """The plan, todos, permissions and deliveries of the session."""
        return self._state.work_state

    @property
    def recorded_messages(self) -> Mapping[str, Message]:
        """The recorded form of the window's messages, by id; without a transcript all messages of this process."""
        return self._recorded_messages

    def is_recorded(self, message: Message) -> bool:
        """Return whether the transcript is known to hold `message` (with any parent); False proves nothing."""
        recorded = self._recorded_messages.get(message.id)
        if recorded is None or recorded is message:
            return recorded is not None
        return replace(recorded, parent=None) == replace(message, parent=None)

    def find_recorded(self, message_id: str) -> Message | None:
        """Return the recorded form of a message of the window; None if unknown."""
        return self._recorded_messages.get(message_id)

    def set_ratio_source(self, ratio: Callable[[], float]) -> None:
        """Save the value of `ratio` as the ratio of the token estimate."""
        self._ratio = ratio

    async def record(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Make `messages` durable and add them to the window; return them as stored."""
        await self._claim_session()
        window = self._state.window
        if self._record is None:
            clean = await run_sync(_redact_results, messages, self._redactor)
            stored = tuple(with_ids(clean, session=self._state.session, counts=self._known_fingerprints))
            self._known_fingerprints.update(count_fingerprints(messages))
        else:
            stored = await self._record(messages)
        self._recorded_messages.update({message.id: message for message in stored})
        self._state = replace(
            self._state,
            window=append_new(window, stored),
            last=stored[-1].id if stored else self._state.last,
            work_state=mark_delivered(self._state.work_state, stored),
        )
        return stored

    async def observe_request(self, request: ModelRequest, step: StepHandler) -> ModelResponse:
        """Store the window of the request; step middleware, inside all middleware that shortens the window."""
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
        """Continue from `window` and add `turns` to the count; `undone` is as in `AgentState`, None leaves it
        unchanged.

        `recorded` are messages that the transcript holds, in addition to those already known.
        """
        new_undone = self._state.messages_at_undo if undone is None else undone
        self._state = replace(
            self._state, window=tuple(window), turns=self._state.turns + turns, messages_at_undo=new_undone
        )
        if self._record is not None:
            self._recorded_messages = _select_in_window(window, (*self._recorded_messages.values(), *recorded))

    async def update_work_state(self, change: Callable[[WorkState], WorkState]) -> WorkState:
        """Apply `change` to the work state, save it durably and return it; a cancellation waits for that.

        It may be called at any time, also in a turn and concurrently; changes are applied one after the other. Changes
        by another process are merged; on a conflict the save is retried for about 5 seconds. Raises: StorageError,
        including VersionConflict, and then nothing has changed here; the errors of `change`.
        """
        await run_even_if_cancelled(partial(self._update_durably, change))
        return self.work_state

    async def save(self) -> None:
        """Save the state durably; a cancellation waits for it. Raises `StorageError`."""
        await run_even_if_cancelled(partial(self._update_durably, _identity))

    async def save_unless_resumable(self) -> None:
        """Save the state, unless the transcript has everything that the saved state lacks.

        A process that resumes the session adds these messages to the window, so writing the whole window for each of
        them gains nothing. `save` or the end of the session saves them. Raises `StorageError`.
        """
        new_messages = self._saved.find_new_messages(self._state) if self._saved and self._record else None
        self._lacks_messages = new_messages is not None and all(map(self.is_recorded, new_messages))
        if not self._lacks_messages:
            await self.save()

    async def close(self) -> None:
        """Save what `save_unless_resumable` left to the transcript; errors are ignored."""
        if self._lacks_messages:
            with suppress(StorageError):
                await self.save()

    async def _claim_session(self) -> None:
        """Save a new session with its owner and extraction setting before its first message.

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
            updated = replace(before, work_state=change(before.work_state))
            if self._saved and not self._saved.is_up_to_date(updated):
                updated = await self._save_or_restore(self._saved, before, updated)
            # The turn may have continued during the save.
            self._state = merge_states(before, self._state, updated)

    async def _save_or_restore(self, saved: StateSaver, before: AgentState, updated: AgentState) -> AgentState:
        try:
            return await saved.save(updated)
        except StorageError:
            # A disk may fail after writing, and the next process would then find the refused change.
            if updated != before:
                with suppress(StorageError):
                    restored = await saved.save(before)
                    # Changes that others saved meanwhile came with it; without this they would look removed.
                    self._state = merge_states(before, self._state, restored)
            raise


async def load_session_state(resources: AgentResources, name: str, *, reader_tool: str) -> SessionState:
    """Return the state of the session `name`, resumed from the saved state and the transcript.

    `reader_tool` is the tool that reads the evicted results in its window. Raises: ScopeMismatch if it belongs to
    another user; StorageError.
    """
    options, place, learns = resources.options, resources.place, resources.is_learning
    if resources.workspace is None or place is None:
        state = AgentState(agent=options.agent, session=name, user=options.user, learns=learns)
        return SessionState(state, resources.redactor)
    states = options.memory.states or resources.workspace.state_store
    stored = await states.load(options.agent, name)
    if stored.set_aside:
        _LOG.warning("The state of session %s can't be read and was set aside as %s.", name, stored.set_aside)
    owner = stored.state.user or await _read_lost_owner(stored, place, default=options.user)
    if owner not in {"", options.user}:
        raise ScopeMismatch(f"The session {name} is another user's: open a session of your own.")
    path = transcript_path(options.agent, name)
    transcript = Transcript(place.files, path, session=name, redactor=place.redactor)
    logged = (await transcript.read()).messages
    restored = () if logged or not resources.is_writable else messages_from_state(stored.state)
    if restored:
        _LOG.warning("The transcript of session %s is gone: what its state still holds is written again.", name)
        logged = (await transcript.append(restored)).messages
    window = resume_window(stored.state.window, stored.state.last, logged)
    state = replace(
        stored.state,
        window=tuple(set_read_tool(message, reader_tool) for message in window),
        last=logged[-1].id if logged else "",
        # A session that was started without a user stays open to everybody.
        user=owner or ("" if logged or stored.state.window else options.user),
        # Messages that wait for extraction from an earlier time are still extracted.
        learns=learns or (bool(logged) and not stored.set_aside and stored.state.learns),
        work_state=mark_delivered(stored.state.work_state, logged),
    )
    if not resources.is_writable:
        return SessionState(state, resources.redactor)
    parts = resources.parts
    record = TranscriptRecorder(transcript, scope=options.scope, clock=parts.clock, emitter=parts.emitter)
    return SessionState(state, states=states, version=stored.version, record=record, logged=logged)


async def _read_lost_owner(stored: StoredState, place: MemoryRoot, *, default: str) -> str:
    """Return the owner of a session whose state was set aside; `default` if that is unknown too."""
    info = await place.files.info(stored.set_aside) if stored.set_aside else None
    if info is None:
        return ""
    owner = await read_owner(place.files, info)
    return default if owner is None else owner


@dataclass(frozen=True, kw_only=True)
class TurnRunner:
    """The turns of one session: `run` runs a turn, `session_state` holds the result."""

    scope: Scope
    run: TurnHandler
    session_state: SessionState

    async def send(
        self, messages: Sequence[Message], listener: TurnListener | None = None, output: OutputType | None = None
    ) -> TurnResult:
        """Answer `messages`, with an `output` type if given; waits for a running turn.

        Raises: ModelError; recorded messages stay, and the next turn continues from them.
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
        """Record messages without calling the model."""
        async with self.session_state.turn_lock:
            stored = await self.session_state.record(messages)
            with suppress(StorageError):
                await self.session_state.save_unless_resumable()
            return stored

    async def rewrite_window(self, act: Callable[[tuple[Message, ...]], Awaitable[Sequence[Message]]]) -> None:
        """Replace the window with the result of `act`; the transcript does not change. Raises `StorageError`.

        An undone compaction no longer delays the next one.
        """
        async with self.session_state.turn_lock:
            self.session_state.replace_window(await act(repair_window(self.session_state.state.window)), undone=0)
            await self.session_state.save()


def _redact_results(messages: Sequence[Message], redactor: Redactor | None) -> Sequence[Message]:
    """Return the messages with secrets in tool results redacted."""
    if redactor is None or not any(message.tool_results for message in messages):
        return messages
    return [redact_message(message, redactor) if message.tool_results else message for message in messages]


def _identity(work_state: WorkState) -> WorkState:
    return work_state


def _select_in_window(window: Sequence[Message], messages: Iterable[Message]) -> dict[str, Message]:
    ids = {message.id for message in window}
    return {message.id: message for message in messages if message.id in ids}
