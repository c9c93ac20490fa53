"""Compactions of a session: list, expand and undo them, and edit, remove or pin messages of the window.

Messages that a compaction removes stay in the transcript; the journal stores the previous window.

Invariants: a compaction that can't be recorded does not happen. The window is durable before its compaction counts as
undone, and undoing again after a kill gives the same window. Messages added after a compaction stay when it is undone.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import cast

from anyio.to_thread import run_sync

from ricordo.agent.compaction_journal import (
    Compaction,
    CompactionRecord,
    Journal,
    JournalMessage,
    MessageReference,
    parse_journal,
    render_record,
    render_undo,
)
from ricordo.agent.session_state import SessionState
from ricordo.agent.tools.expand import ExpandedMessages, strip_handle
from ricordo.agent.window_edits import RestoredWindow, edit_message, is_restored, remove_message, restore_window
from ricordo.clock import Clock, SystemClock
from ricordo.context import Reduction, Window
from ricordo.context.summary_message import find_instructions, release_pins
from ricordo.errors import (
    CompactionNotFound,
    FileMissing,
    InvalidMessage,
    MessageNotFound,
    StorageError,
    StorageReadOnly,
    UndoRefused,
)
from ricordo.events import Emitter, Stage
from ricordo.guard import Redactor
from ricordo.messages import Message, Text, with_pin
from ricordo.scope import Scope
from ricordo.storage import FileStore
from ricordo.workspace.layout import compactions_path, transcript_path
from ricordo.workspace.redaction import redact_message
from ricordo.workspace.transcript import read_transcript

__all__ = ["Compactions"]


_LOG = logging.getLogger("ricordo.agent")
_MESSAGE_PREFIX = "m:"


class Compactions:
    """The compactions of the session in `keeper`; see the module."""

    def __init__(
        self,
        session_state: SessionState,
        *,
        files: FileStore | None = None,
        writable: bool = True,
        redactor: Redactor | None = None,
        clock: Clock | None = None,
        emitter: Emitter | None = None,
        scope: Scope | None = None,
    ) -> None:
        """Store the journal in `files`, or in this process's memory if `files` is None or not `writable`.

        `redactor` removes secrets before storing.
        """
        self._session_state = session_state
        self._files = files
        self._writable = writable
        self._redactor = redactor
        self._clock = clock or SystemClock()
        self._emitter = emitter or Emitter(self._clock)
        self._scope = scope
        self._lines: list[bytes] = []
        self._reported_broken_lines = 0

    async def record(self, window: Window, reduction: Reduction) -> None:
        """Durably record how to restore `window` after `reduction`. Raises `StorageError`, and then records nothing."""
        await self._append(await run_sync(self._render_record, window, reduction))
        self._session_state.replace_window(self._session_state.state.window, undone=0)

    async def all(self) -> tuple[Compaction, ...]:
        """Return every compaction of this session, newest first; empty if there are none or the journal is lost."""
        return tuple(each.compaction for each in reversed((await self._read_journal()).records))

    async def expand(self, handle: str) -> ExpandedMessages:
        """Return the original messages that a compaction removed, in order; `m:` and an id returns one message.

        A removed summary is returned as the summary. Messages that no longer exist, because a person erased them, are
        left out and counted. Raises: CompactionNotFound; MessageNotFound.
        """
        with self._emitter.stage("expand", self._scope) as progress:
            expanded = await self._open_handle(strip_handle(handle))
            progress.counts["messages"] = len(expanded)
            return expanded

    async def undo(self, handle: str | None = None) -> Compaction:
        """Restore the messages that a compaction removed (None: the newest compaction); later messages stay.

        Waits for a running turn. The window is saved before this returns, and is not compacted again at once. Messages
        that no longer exist are counted as `missing`. Raises: CompactionNotFound; UndoRefused if the compaction is
        already undone, a later one builds on it, its place is no longer in the window, or none of its messages exist;
        StorageError, and then the window is unchanged.
        """
        if self._files is not None and not self._writable:
            raise StorageReadOnly("The root can't be written to, so nothing is undone: `expand` opens what went.")
        async with self._session_state.turn_lock:
            journal = await self._read_journal()
            record = _find_newest(journal) if handle is None else _find_by_handle(strip_handle(handle), journal)
            before, originals = self._session_state.state, await self._load_originals()
            restored = _undo_in_window(record, journal, originals, before.window, has_handle=handle is not None)
            self._session_state.replace_window(
                restored.window, undone=len(restored.window), recorded=originals.values()
            )
            try:
                await self._session_state.save()
            except StorageError:
                self._session_state.replace_window(before.window, undone=before.messages_at_undo)
                raise
            await self._append(render_undo(record.compaction.handle, self._clock.now()))
            return replace(record.compaction, is_undone=True, missing=restored.missing)

    async def remove(self, message_id: str) -> Compaction:
        """Remove a message from the window; `undo` with the handle restores it. The transcript keeps it.

        Calls are removed together with their results, and results with their call. Waits for a running turn. Raises:
        MessageNotFound; StorageError, and then the window is unchanged.
        """
        return await self._edit_window(lambda window: remove_message(window, message_id))

    async def edit(self, message_id: str, text: str) -> Compaction:
        """Replace a message of the window with a new message of `text`; `undo` with the handle reverts that.

        The transcript keeps the original. Waits for a running turn. Raises: InvalidMessage for a blank text;
        MessageNotFound; StorageError, and then the window is unchanged.
        """
        if not text.strip():
            raise InvalidMessage("A message can't be made blank: `remove` takes it out.")
        return await self._edit_window(lambda window: edit_message(window, message_id, text))

    async def _edit_window(self, change: Callable[[Window], Reduction]) -> Compaction:
        if self._files is not None and not self._writable:
            raise StorageReadOnly("The root can't be written to, so the window stays as it is.")
        async with self._session_state.turn_lock:
            before = self._session_state.state
            window = Window(messages=before.window, agent=before.agent, session=before.session)
            reduction = change(window)
            with self._emitter.stage(cast("Stage", reduction.report.action), self._scope) as progress:
                progress.counts["messages"] = len(reduction.dropped)
                await self.record(window, reduction)
                self._session_state.replace_window(reduction.messages, undone=0)
                try:
                    await self._session_state.save()
                except StorageError:
                    self._session_state.replace_window(before.window, undone=before.messages_at_undo)
                    raise
            return _find_by_handle(reduction.report.handle, await self._read_journal()).compaction

    async def pin(self, message_id: str) -> Message:
        """Keep a message of the window unchanged through every compaction; return it.

        Waits for a running turn. Raises: MessageNotFound; StorageError.
        """
        return await self._set_pin(message_id, on=True)

    async def unpin(self, message_id: str) -> Message:
        """Unpin a message and return it.

        If a compaction already removed the message, its summary stops carrying it. Waits for a running turn. Raises:
        MessageNotFound; StorageError.
        """
        return await self._set_pin(message_id, on=False)

    async def _set_pin(self, message_id: str, *, on: bool) -> Message:
        if not message_id:
            raise MessageNotFound("The id of a message is missing.")
        async with self._session_state.turn_lock:
            window = self._session_state.state.window
            found = next((message for message in window if message.id == message_id), None)
            if found is None and not on:
                return await self._release_pin(message_id, window)
            if found is None:
                raise MessageNotFound(f"No message of the window has the id {message_id}.")
            marked = with_pin(found, on=on)
            self._session_state.replace_window([marked if message is found else message for message in window])
            await self._session_state.save()
            return marked

    async def _release_pin(self, message_id: str, window: Sequence[Message]) -> Message:
        """Remove a pinned message from the summaries that carry it; return the original message."""
        instructions = [each for each in find_instructions(window) if each.kind == "pinned" and each.id == message_id]
        if not instructions:
            raise MessageNotFound(f"No message of the window has the id {message_id}, and no summary carries it.")
        fallback = Message(role="user", parts=(Text(text=instructions[0].text),), id=message_id)
        original = (await self._load_originals()).get(message_id, fallback)
        self._session_state.replace_window([release_pins(message, {message_id}) for message in window])
        await self._session_state.save()
        return with_pin(original, on=False)

    async def _open_handle(self, handle: str) -> ExpandedMessages:
        if handle.startswith(_MESSAGE_PREFIX):
            return ExpandedMessages(messages=(await self._find_message(handle.removeprefix(_MESSAGE_PREFIX)),))
        record = _find_by_handle(handle, await self._read_journal())
        originals = await self._load_originals()
        removed = [_find_original(record.before[place], originals) for place in record.removed_places]
        messages = tuple(message for message in removed if message is not None)
        return ExpandedMessages(messages=messages, missing=len(removed) - len(messages))

    def _render_record(self, window: Window, reduction: Reduction) -> bytes:
        report, dropped = reduction.report, reduction.dropped
        known_ids = {message.id for message in window.messages}
        dropped_ids = {id(message) for message in dropped}
        compaction = Compaction(
            handle=report.handle,
            action=report.action,
            at=self._clock.now(),
            reason=report.reason,
            first_id=dropped[0].id if dropped else "",
            last=dropped[-1].id if dropped else "",
            messages=len(dropped),
            tokens_before=report.tokens_before,
            tokens_after=report.tokens_after,
        )
        return render_record(
            CompactionRecord(
                compaction=compaction,
                before=tuple(map(self._to_journal_message, window.messages)),
                removed_places=tuple(
                    place for place, message in enumerate(window.messages) if id(message) in dropped_ids
                ),
                inserted_ids=tuple(message.id for message in reduction.messages if message.id not in known_ids),
            )
        )

    def _to_journal_message(self, message: Message) -> JournalMessage:
        if self._is_durable and self._session_state.is_recorded(message):
            return MessageReference(id=message.id, parent=message.parent)
        return message if self._redactor is None else redact_message(message, self._redactor)

    async def _find_message(self, message_id: str) -> Message:
        """Return the original of a message; if the transcript lacks it, the copy in the window or the journal."""
        if not message_id:
            raise MessageNotFound("The id of a message is missing: it stands after `m:`.")
        originals = await self._load_originals()
        if message_id in originals:
            return originals[message_id]
        journaled = [
            each
            for record in (await self._read_journal()).records
            for each in record.before
            if isinstance(each, Message)
        ]
        for message in (*self._session_state.state.window, *journaled):
            if message.id == message_id:
                return message
        raise MessageNotFound(f"No message of this session has the id {message_id}.")

    async def _load_originals(self) -> Mapping[str, Message]:
        """Return the original messages by id."""
        if self._files is None:
            return self._session_state.recorded_messages
        state = self._session_state.state
        transcript = await read_transcript(self._files, transcript_path(state.agent, state.session))
        originals = {message.id: message for message in transcript.messages}
        return originals if self._writable else {**self._session_state.recorded_messages, **originals}

    async def _read_journal(self) -> Journal:
        data = b"\n".join((await self._read_data(), *self._lines))
        journal = await run_sync(parse_journal, data)
        if len(journal.broken_lines) > self._reported_broken_lines:
            self._reported_broken_lines = len(journal.broken_lines)
            lines = "1 line" if self._reported_broken_lines == 1 else f"{self._reported_broken_lines} lines"
            _LOG.warning("%s of %s can't be read: what they tell of can't be undone.", lines, self._path)
        return journal

    async def _append(self, data: bytes) -> None:
        if self._files is not None and self._writable:
            await self._files.append(self._path, data)
        else:
            self._lines.append(data)

    async def _read_data(self) -> bytes:
        if self._files is None:
            return b""
        try:
            return (await self._files.read(self._path)).data
        except FileMissing:
            return b""

    @property
    def _is_durable(self) -> bool:
        return self._files is not None and self._writable

    @property
    def _path(self) -> str:
        return compactions_path(self._session_state.state.agent, self._session_state.state.session)


def _find_newest(journal: Journal) -> CompactionRecord:
    for record in reversed(journal.records):
        if not record.compaction.is_undone:
            return record
    if journal.records:
        raise CompactionNotFound("Nothing can be undone: no compaction is left, all on record are undone already.")
    raise CompactionNotFound("Nothing can be undone: no compaction of this session is on record.")


def _find_by_handle(handle: str, journal: Journal) -> CompactionRecord:
    if not handle:
        raise CompactionNotFound("The handle of a compaction is missing: `ricordo compact --list` shows them.")
    for record in journal.records:
        if record.compaction.handle == handle:
            return record
    raise CompactionNotFound(f"No compaction on record has the handle {handle}: `ricordo compact --list` shows them.")


def _undo_in_window(
    record: CompactionRecord,
    journal: Journal,
    originals: Mapping[str, Message],
    window: Sequence[Message],
    *,
    has_handle: bool,
) -> RestoredWindow:
    """Return the window without a compaction, unchanged if it is already restored. Raises `UndoRefused`."""
    if not record.compaction.is_undone and is_restored(record, originals, window):
        return RestoredWindow(window=tuple(window))
    if journal.is_torn and not has_handle:
        raise UndoRefused(
            f"What was noted last can't be read, so the newest compaction may be another one than "
            f"{record.compaction.handle}: name the one to undo."
        )
    return restore_window(record, journal, originals, window)


def _find_original(journal_message: JournalMessage, originals: Mapping[str, Message]) -> Message | None:
    return originals.get(journal_message.id) or (journal_message if isinstance(journal_message, Message) else None)
