"""Turn memories: looks in memory for what has to do with the newest message, and has a request reminded of it.

What is found is chosen once for each turn and looked for anew before each of its requests, so what was forgotten in
the meantime is shown no more. Invariant: a request waits for memory no longer than the configured time, whatever the
store does, and trouble with it ends no turn.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import anyio
from anyio.to_thread import run_sync

from ricordo.beside import background_group
from ricordo.clock import Clock
from ricordo.events import Emitter
from ricordo.harness.reminder import build_reminder_message
from ricordo.harness.turn_recall import RecalledMemory, TurnRecallConfig, select_memories, render_memories
from ricordo.messages import Message, get_mark
from ricordo.middleware import ModelRequest, Turn
from ricordo.middleware.remind import ComposedReminder
from ricordo.recall.hits import Hit
from ricordo.recall.relevance import search_words
from ricordo.runtime.opening_context import OpeningContext, latest_user_text, shorten_memory, select_unseen
from ricordo.state import WorkStateHolder
from ricordo.stores.contract import Store
from ricordo.stores.noting import record_shown
from ricordo.tokens import estimate_text
from ricordo.tools.recall import quote_hit

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

__all__ = ["TurnMemories"]

_LOG = logging.getLogger("ricordo.agent")


@dataclass(kw_only=True)
class _MemorySearch:
    """One look into memory; `hits` is None until it has come to its end, and when it failed."""

    hits: list[Hit] | None = None
    ready: anyio.Event = field(default_factory=anyio.Event)


class TurnMemories:
    """What the requests of one session are reminded of; it looks while the block of `search_in_background` runs, else not."""

    def __init__(
        self,
        store: Store,
        config: TurnRecallConfig,
        keeper: WorkStateHolder,
        *,
        clock: Clock,
        emitter: Emitter | None = None,
    ) -> None:
        """Look into `store`; `keeper` knows what the session was told before, `emitter` hears of each phase."""
        self._emitter = emitter or Emitter(clock)
        self._context = OpeningContext(store=store, max_memories=config.memories, emitter=self._emitter)
        self._config = config
        self._session_state = keeper
        self._clock = clock
        self._group: TaskGroup | None = None
        self._current_search: _MemorySearch | None = None
        self._turn: Turn | None = None
        self._chosen: list[RecalledMemory] | None = None

    @asynccontextmanager
    async def search_in_background(self) -> AsyncIterator[None]:
        """Look while the block runs; a look that does not let itself be cancelled is waited for at its end."""
        async with background_group() as group:
            self._group = group
            try:
                yield
            finally:
                self._group = None

    def wrap_reminder(
        self, remind: Callable[[ModelRequest], Awaitable[ComposedReminder]]
    ) -> Callable[[ModelRequest], Awaitable[ComposedReminder]]:
        """Return `remind` with what is recalled put before what it says."""

        async def compose_with_memories(request: ModelRequest) -> ComposedReminder:
            message, told = await remind(request)
            recalled = await self._recall(request)
            if not recalled:
                return message, told
            text = render_memories(recalled)
            keys = [each.key for each in recalled]
            with self._emitter.stage("inject", request.turn.scope) as progress:
                progress.counts.update(entries=len(recalled), tokens=estimate_text(text))
            return build_reminder_message(f"{text}\n\n{message.text}" if message else text), (*told, *keys)

        return compose_with_memories

    async def _recall(self, request: ModelRequest) -> list[RecalledMemory]:
        """Return what the newest message of the turn is answered with in sight; nothing where it says nothing."""
        text = latest_user_text(request.turn.messages)
        if self._group is None or not search_words(text):
            return []
        if request.turn is not self._turn:
            self._turn, self._chosen = request.turn, None
        hits = await self._await_hits(self._group, text)
        if hits is None:
            return []
        look = partial(self._choose, hits, text, request, self._chosen, self._session_state.work_state.delivered)
        with self._emitter.stage("select", request.turn.scope) as progress:
            shown = await run_sync(look)
            progress.counts["entries"] = len(shown)
        if self._chosen is None:
            names = {each.name for each in shown}
            chosen = [hit for hit in hits if _hit_key(hit) in names]
            record_shown(self._context.store, chosen, how="turn", session=request.turn.session)
            self._chosen = shown
        return shown

    def _choose(
        self,
        hits: list[Hit],
        text: str,
        request: ModelRequest,
        chosen: list[RecalledMemory] | None,
        delivered: Sequence[str],
    ) -> list[RecalledMemory]:
        """Return what is chosen of the hits, or what still holds of what was `chosen` before in this turn."""
        others = [hit for hit in hits if hit.entry.source.session != request.turn.session]
        now = self._clock.now()
        fresh = select_unseen(others, text, _visible_text(request), len(others))
        found = {_hit_key(hit): shorten_memory(quote_hit(hit, now)) for hit in fresh}
        if chosen is not None:
            return [each for each in chosen if each.name in found]
        return select_memories(found.items(), delivered, self._config)

    async def _await_hits(self, group: "TaskGroup", text: str) -> list[Hit] | None:
        """Return what may have to do with `text`; None when that is not known in time."""
        if self._current_search is not None:
            return None
        self._current_search = looking = _MemorySearch()
        group.start_soon(self._run_search, looking, text)
        with anyio.move_on_after(self._config.seconds):
            await looking.ready.wait()
        return looking.hits

    async def _run_search(self, looking: _MemorySearch, text: str) -> None:
        try:
            looking.hits = await self._context.find_candidates(text)
        except Exception as error:  # noqa: BLE001  (a store of somebody else may raise anything, and ends no session)
            _LOG.debug("Memory can't be looked into for a turn: %s", type(error).__name__)
        finally:
            self._current_search = None
            looking.ready.set()


def _hit_key(hit: Hit) -> str:
    return hit.entry.id or f"{hit.path}:{hit.line_number}"


def _visible_text(request: ModelRequest) -> str:
    """Return all in a request that shows memory: its prompt, what was told of memory, and the results of tools."""
    return "\n".join([request.system, *(text for message in request.window for text in _memory_texts(message))])


def _memory_texts(message: Message) -> list[str]:
    told = [message.text] if get_mark(message) == "memory" else []
    return [*told, *(result.text for result in message.tool_results)]
