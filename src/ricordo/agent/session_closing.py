"""Closing a session: when the agent is left, its summary is written to the store that keeps sessions.

The model is asked once, within a time limit. If that is interrupted or fails, rules choose a sentence, the summary
stays pending, and the next agent tries again.

Invariant: the summary never makes leaving an agent fail, or take longer than its time limit.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import field, replace
from decimal import Decimal
from typing import Literal, TypeAlias

import anyio
from anyio.to_thread import run_sync

from ricordo.agent.closing_summary import (
    CLOSING_SECONDS,
    ClosingSummary,
    count_user_turns,
    list_read_files,
    summarize_by_model,
    summarize_by_rules,
)
from ricordo.agent.turn_middleware import UsageTotals
from ricordo.concurrency import background_task
from ricordo.errors import RicordoError
from ricordo.events import Emitter
from ricordo.lazy import dataclass
from ricordo.messages import Message, Usage
from ricordo.models import ChatModel
from ricordo.models.config import OFFLINE
from ricordo.scope import Scope
from ricordo.stores.contract import KeepsSessions, SessionNotes
from ricordo.workspace.agent_state import Todo

__all__ = ["ClosingMode", "SessionClosing"]


ClosingMode: TypeAlias = Literal["sync", "background", "off"]
"""When a session is summarized: when its agent is left, by the next agent that is opened, or never."""
_LOG = logging.getLogger("ricordo.agent")
_LEAVE_TIMEOUT_SECONDS = 2.0
_MAX_RETRIED = 3
LoadMessages: TypeAlias = Callable[[str], Awaitable[Sequence[Message]]]
"""Returns all messages of a session of this agent, oldest first; empty if they are not available."""


@dataclass(kw_only=True)
class SessionClosing:
    """Summarizes one session, and those without a summary; `todos` returns the agent's open todos."""

    session: str
    scope: Scope
    model: ChatModel
    session_store: KeepsSessions
    mode: ClosingMode
    load_messages: LoadMessages
    totals: UsageTotals
    todos: Callable[[], Sequence[Todo]]
    emitter: Emitter
    seconds: float = CLOSING_SECONDS
    _closed_turns: int = field(default=0, init=False)
    _recorded_usage: tuple[Usage, Decimal | None] = field(default=(Usage(), Decimal(0)), init=False)

    @property
    def is_due(self) -> bool:
        """Whether there are new turns since the session was last summarized."""
        return self.mode != "off" and self.totals.turns > self._closed_turns

    @asynccontextmanager
    async def close_on_exit(self) -> AsyncIterator[None]:
        """Summarize after the block, unless it raises or is cancelled; retry pending summaries while it runs."""
        try:
            async with background_task(self.retry_pending):
                yield
        except BaseException:
            await self.close_without_model()
            raise
        await self.close()

    async def close(self) -> None:
        """Summarize the session according to the mode. A cancellation skips the summary and is raised after saving
        that.
        """
        if not self.is_due:
            return
        if self.mode == "background":
            await self.close_without_model()
            return
        try:
            await self._summarize_session(self.session)
        except anyio.get_cancelled_exc_class():
            await self.close_without_model()
            raise
        self._closed_turns = self.totals.turns

    async def close_without_model(self) -> None:
        """Save the session without calling a model, as pending; a cancellation waits for it up to 2 seconds."""
        if not self.is_due:
            return
        with anyio.move_on_after(_LEAVE_TIMEOUT_SECONDS, shield=True), suppress(RicordoError):
            messages = await self.load_messages(self.session)
            await self._save_notes(self.session, messages, await run_sync(summarize_by_rules, messages), pending=True)
            self._closed_turns = self.totals.turns

    async def retry_pending(self) -> None:
        """Summarize sessions with a pending summary, newest first; failed ones stay pending."""
        if self.mode == "off" or self.model.name == OFFLINE:
            return
        with suppress(RicordoError):
            waiting = [name for name in await self.session_store.pending_sessions() if name != self.session]
            for name in waiting[::-1][:_MAX_RETRIED]:
                await self._summarize_session(name)

    async def _summarize_session(self, session: str) -> None:
        with self.emitter.stage("summarize", self.scope) as progress:
            try:
                messages = await self.load_messages(session)
                if not count_user_turns(messages):
                    progress.skipped = "nothing was said"
                    return
                progress.counts["messages"] = len(messages)
                summary, reason = await self._build_summary(messages)
                await self._save_notes(session, messages, summary, pending=bool(reason))
            except RicordoError as error:
                reason = f"{type(error).__name__}: {error}"
            if reason:
                progress.failed = reason.partition(":")[0]
                _LOG.warning("Session %s has no summary yet, the next agent tries again: %s", session, reason)

    async def _build_summary(self, messages: Sequence[Message]) -> tuple[ClosingSummary, str]:
        """Return the summary, and the reason if it is only one by rules; otherwise an empty reason."""
        if self.model.name == OFFLINE:
            return await run_sync(summarize_by_rules, messages), ""
        try:
            return await summarize_by_model(self.model, messages, seconds=self.seconds), ""
        except (RicordoError, TimeoutError) as error:
            message = str(error) or "it took too long"
            return await run_sync(summarize_by_rules, messages), f"{type(error).__name__}: {message}"

    async def _save_notes(
        self, session: str, messages: Sequence[Message], closing: ClosingSummary, *, pending: bool
    ) -> None:
        times = [message.time for message in messages if message.time]
        is_own = session == self.session
        open_todos = [todo.content for todo in self.todos() if todo.status != "completed"] if is_own else []
        notes = SessionNotes(
            session=session,
            started=min(times, default=None),
            ended=max(times, default=None),
            turns=count_user_turns(messages),
            summary=closing.summary,
            tags=closing.tags,
            pending=pending,
            open_threads=tuple(dict.fromkeys([*closing.open_threads, *open_todos])),
            files_read=list_read_files(messages),
            closing_usage=closing.usage,
            closing_cost=closing.cost,
        )
        total = self.totals.usage, self.totals.cost
        if is_own:
            usage, cost = self._recorded_usage
            added = None if cost is None or total[1] is None else total[1] - cost
            notes = replace(notes, usage=total[0] - usage, cost=added)
        await self.session_store.close_session(notes)
        if is_own:
            self._recorded_usage = total
