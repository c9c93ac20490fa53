"""The system prompt of a session, what it shows of memory, and when it is written anew.

A summary opens a new prefix anyway, so the prompt is written with it; else it stays the same bytes.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from anyio.to_thread import run_sync

from ricordo.clock import Clock
from ricordo.errors import EntryNotFound, FileMissing, RicordoError
from ricordo.harness.human import agents_file, rules
from ricordo.harness.prompt import (
    WORKSPACE_BUDGET,
    closing,
    instructions,
    memory_guidance,
    memory_notice,
    room_left,
    system_prompt,
)
from ricordo.messages import Message, mark_of
from ricordo.middleware import Request, Response, Step
from ricordo.middleware.inject import Inject
from ricordo.middleware.update import Line, Remembered, remembered
from ricordo.runtime.assembly import Workspace
from ricordo.stores.capabilities import Layers
from ricordo.stores.place import Place
from ricordo.tokens import Tokens, estimate_text
from ricordo.workspace.entry_codec import prompt_lines
from ricordo.workspace.layout import LEDGERS, MEMORY, TOMBSTONES

__all__ = ["Prompt", "Renewal"]

_LOG = logging.getLogger("ricordo.agent")
_UNREADABLE = "What is remembered can't be read at the moment."

_ALL = Tokens(1_000_000)
"""More than a preamble ever takes: what changed is looked for in all of it, not only in what fits."""


class Prompt:
    """Writes the system prompt of a session: what people wrote, then what memory holds, within one budget."""

    def __init__(
        self,
        folder: Path,
        workspace: Workspace | None,
        budget: Tokens | None,
        *,
        clock: Clock,
        most: Tokens = WORKSPACE_BUDGET,
    ) -> None:
        """Read AGENTS.md in `folder` and the rules of `workspace`; without a `budget` no memory is shown.

        `most` is for all that is put in beside the base prompt; `budget` for memory alone, as far as that leaves room.
        """
        self._folder = folder
        self._workspace = workspace
        self._budget = budget
        self._clock = clock
        self._most = most.count
        self._layers = workspace.store.offers(Layers) if workspace else None
        self._seen: tuple[object, ...] = ()
        self._now = Remembered()
        self.preamble = ""
        self.written = 0
        self.shown = Remembered()

    async def __call__(self, request: Request) -> str:
        """Return the prompt for a session's first request; `preamble` is the part of it that is memory."""
        agents = await agents_file(self._folder)
        project_rules = await rules(self._workspace.place.files) if self._workspace else ()
        tools = [tool.name for tool in request.tools]
        guidance = memory_guidance(tools)
        guidance = guidance if estimate_text(guidance) <= self._most else ""
        notice = memory_notice(tools) if self._workspace and self._budget else ""
        room = room_left(self._most, guidance, notice)
        written = await run_sync(partial(instructions, [*([agents] if agents else []), *project_rules], room))
        self.shown = await self.now()
        self.preamble = await self._remembered(room_left(self._most, guidance, written), notice)
        self.written += 1
        return system_prompt(
            base=request.system,
            written=written,
            guidance=guidance,
            preamble=self.preamble,
            end=closing(request.turn.session, self._clock.today()),
        )

    async def now(self) -> Remembered:
        """Return what memory holds now; what was read last where no file changed, or none can be read."""
        if self._workspace is None or self._budget is None:
            return self._now
        try:
            seen, corrections = await self._versions()
            if seen != self._seen:
                self._now = remembered(await self._workspace.store.preamble(_ALL), corrections)
                self._seen = seen
        except RicordoError as error:
            _LOG.debug("Memory can't be read for an update: %s", error)
        return self._now

    async def is_own(self, line: Line, session: str) -> bool:
        """Tell whether the agent saved this itself in `session`."""
        if not line.id or self._layers is None:
            return False
        try:
            entry = await self._layers.get(line.id)
        except RicordoError:
            return False
        return entry.by == "agent" and entry.source.session == session

    async def holds(self, line: Line) -> bool:
        """Tell whether memory still holds a line that the preamble shows no more; also when that can't be read."""
        try:
            if line.id and self._layers:
                return (await self._layers.get(line.id)).state == "active"
            return any([line.text in await _curated(place) for place in await self._places()])
        except EntryNotFound:
            return False
        except RicordoError:
            return True

    async def _remembered(self, room: int, notice: str) -> str:
        """Return the preamble as far as there is room, else a notice.

        Memory that can't be read ends no turn, and is not shown as an empty one.
        """
        if self._workspace is None or self._budget is None:
            return ""
        store = self._workspace.store
        try:
            text = await store.preamble(self._budget)
            if estimate_text(text) > room:
                text = await store.preamble(Tokens(room)) if room else ""
                text = text if text and estimate_text(text) <= room else notice
        except RicordoError as error:
            _LOG.warning("Memory can't be read for the prompt: %s", error)
            text = _UNREADABLE
        return text if estimate_text(text) <= room else ""

    async def _places(self) -> list[Place]:
        if self._layers:
            return await self._layers.places()
        return [self._workspace.place] if self._workspace else []

    async def _versions(self) -> tuple[tuple[object, ...], str]:
        """Return what tells that memory changed, from names, sizes and times alone, and that of what was forgotten."""
        seen: list[object] = []
        corrections: list[object] = []
        for place in await self._places():
            seen += [await place.files.info(MEMORY), *await place.files.list(LEDGERS)]
            corrections.append(await place.files.info(TOMBSTONES))
        return (*seen, *corrections), repr(corrections)


async def _curated(place: Place) -> list[str]:
    try:
        return prompt_lines((await place.files.read(MEMORY)).data)
    except FileMissing:
        return []


class Renewal:
    """Step middleware, inside of all that shortens the window: a request with a new summary gets a new prompt.

    The messages before the summary are another prefix then, so the prompt may show what was remembered meanwhile.
    """

    def __init__(self, inject: Inject, *, base: str, window: Callable[[], Sequence[Message]]) -> None:
        """Let `inject` write the prompt from `base`; `window` returns what the last request began with."""
        self._inject = inject
        self._base = base
        self._window = window

    async def __call__(self, request: Request, step: Step) -> Response:
        """Go on, with a new prompt when there is a new summary."""
        known = _summaries(self._window())
        if any(summary not in known for summary in _summaries(request.window)):
            self._inject.refresh(request.turn.session)
            request = await self._inject.prepared(replace(request, system=self._base))
        return await step(request)


def _summaries(window: Sequence[Message]) -> list[Message]:
    return [message for message in window if mark_of(message) == "summary"]
