"""The system prompt of a session, and when it is written anew: with the summary that opens a new prefix anyway."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from ricordo.errors import RicordoError
from ricordo.harness.human import agents_file, rules
from ricordo.harness.prompt import memory_guidance, system_prompt
from ricordo.messages import Message, mark_of
from ricordo.middleware import Request, Response, Step
from ricordo.middleware.inject import Inject
from ricordo.runtime.assembly import Workspace
from ricordo.tokens import Tokens

__all__ = ["Prompt", "Renewal"]

_LOG = logging.getLogger("ricordo.agent")
_UNREADABLE = "What is remembered can't be read at the moment."


class Prompt:
    """Writes the system prompt of a session: what people wrote, then what memory holds."""

    def __init__(self, folder: Path, workspace: Workspace | None, budget: Tokens | None) -> None:
        """Read AGENTS.md in `folder` and the rules of `workspace`; without a `budget` no memory is shown."""
        self._folder = folder
        self._workspace = workspace
        self._budget = budget
        self.preamble = ""

    async def __call__(self, request: Request) -> str:
        """Return the prompt for a session's first request; `preamble` is the part of it that is memory."""
        agents = await agents_file(self._folder)
        written = await rules(self._workspace.place.files) if self._workspace else ()
        self.preamble = await self._remembered()
        return system_prompt(
            base=request.system,
            human=[*([agents] if agents else []), *written],
            guidance=memory_guidance([tool.name for tool in request.tools]),
            preamble=self.preamble,
        )

    async def _remembered(self) -> str:
        """Return the preamble; memory that can't be read ends no turn, and is not shown as an empty one."""
        if self._workspace is None or self._budget is None:
            return ""
        try:
            return await self._workspace.store.preamble(self._budget)
        except RicordoError as error:
            _LOG.warning("Memory can't be read for the prompt: %s", error)
            return _UNREADABLE


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
