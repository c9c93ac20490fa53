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

from ricordo.beside import group_beside
from ricordo.clock import Clock
from ricordo.events import Emitter
from ricordo.harness.reminder import reminder_message
from ricordo.harness.turn_recall import Recalled, TurnRecallConfig, fitting, recalled_block
from ricordo.messages import Message, mark_of
from ricordo.middleware import Request, Turn
from ricordo.middleware.remind import Composed
from ricordo.recall.hits import Hit
from ricordo.recall.relevance import asked_for
from ricordo.runtime.opening_context import OpeningContext, first_words, shortened, unseen
from ricordo.state import KeepsStanding
from ricordo.stores.contract import Store
from ricordo.stores.noting import note_shown
from ricordo.tokens import estimate_text
from ricordo.tools.recall import quoted

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

__all__ = ["TurnMemories"]

_LOG = logging.getLogger("ricordo.agent")


@dataclass(kw_only=True)
class _Looking:
    """One look into memory; `hits` is None until it has come to its end, and when it failed."""

    hits: list[Hit] | None = None
    ready: anyio.Event = field(default_factory=anyio.Event)


class TurnMemories:
    """What the requests of one session are reminded of; it looks while the block of `at_work` runs, else not."""

    def __init__(
        self,
        store: Store,
        config: TurnRecallConfig,
        keeper: KeepsStanding,
        *,
        clock: Clock,
        emitter: Emitter | None = None,
    ) -> None:
        """Look into `store`; `keeper` knows what the session was told before, `emitter` hears of each phase."""
        self._emitter = emitter or Emitter(clock)
        self._context = OpeningContext(store=store, most=config.memories, emitter=self._emitter)
        self._config = config
        self._keeper = keeper
        self._clock = clock
        self._group: TaskGroup | None = None
        self._going: _Looking | None = None
        self._turn: Turn | None = None
        self._chosen: list[Recalled] | None = None

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        """Look while the block runs; a look that does not let itself be cancelled is waited for at its end."""
        async with group_beside() as group:
            self._group = group
            try:
                yield
            finally:
                self._group = None

    def reminding(self, remind: Callable[[Request], Awaitable[Composed]]) -> Callable[[Request], Awaitable[Composed]]:
        """Return `remind` with what is recalled put before what it says."""

        async def both(request: Request) -> Composed:
            message, told = await remind(request)
            recalled = await self._recalled(request)
            if not recalled:
                return message, told
            text = recalled_block(recalled)
            keys = [each.key for each in recalled]
            with self._emitter.stage("inject", request.turn.scope) as progress:
                progress.counts.update(entries=len(recalled), tokens=estimate_text(text))
            return reminder_message(f"{text}\n\n{message.text}" if message else text), (*told, *keys)

        return both

    async def _recalled(self, request: Request) -> list[Recalled]:
        """Return what the newest message of the turn is answered with in sight; nothing where it says nothing."""
        text = first_words(request.turn.messages)
        if self._group is None or not asked_for(text):
            return []
        if request.turn is not self._turn:
            self._turn, self._chosen = request.turn, None
        hits = await self._found(self._group, text)
        if hits is None:
            return []
        look = partial(self._choice, hits, text, request, self._chosen, self._keeper.standing.delivered)
        with self._emitter.stage("select", request.turn.scope) as progress:
            shown = await run_sync(look)
            progress.counts["entries"] = len(shown)
        if self._chosen is None:
            names = {each.name for each in shown}
            chosen = [hit for hit in hits if _name(hit) in names]
            note_shown(self._context.store, chosen, how="turn", session=request.turn.session)
            self._chosen = shown
        return shown

    def _choice(
        self, hits: list[Hit], text: str, request: Request, chosen: list[Recalled] | None, delivered: Sequence[str]
    ) -> list[Recalled]:
        """Return what is chosen of the hits, or what still holds of what was `chosen` before in this turn."""
        others = [hit for hit in hits if hit.entry.source.session != request.turn.session]
        now = self._clock.now()
        fresh = unseen(others, text, _shown_in(request), len(others))
        found = {_name(hit): shortened(quoted(hit, now)) for hit in fresh}
        if chosen is not None:
            return [each for each in chosen if each.name in found]
        return fitting(found.items(), delivered, self._config)

    async def _found(self, group: "TaskGroup", text: str) -> list[Hit] | None:
        """Return what may have to do with `text`; None when that is not known in time."""
        if self._going is not None:
            return None
        self._going = looking = _Looking()
        group.start_soon(self._look, looking, text)
        with anyio.move_on_after(self._config.seconds):
            await looking.ready.wait()
        return looking.hits

    async def _look(self, looking: _Looking, text: str) -> None:
        try:
            looking.hits = await self._context.candidates(text)
        except Exception as error:  # noqa: BLE001  (a store of somebody else may raise anything, and ends no session)
            _LOG.debug("Memory can't be looked into for a turn: %s", type(error).__name__)
        finally:
            self._going = None
            looking.ready.set()


def _name(hit: Hit) -> str:
    return hit.entry.id or f"{hit.path}:{hit.line_number}"


def _shown_in(request: Request) -> str:
    """Return all in a request that shows memory: its prompt, what was told of memory, and the results of tools."""
    return "\n".join([request.system, *(text for message in request.window for text in _showing(message))])


def _showing(message: Message) -> list[str]:
    told = [message.text] if mark_of(message) == "memory" else []
    return [*told, *(result.text for result in message.tool_results)]
