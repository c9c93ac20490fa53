"""Inject: the system prompt of a session, made once, so that the beginning of every request stays the same bytes."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeAlias

import anyio

from ricordo.middleware.contract import ModelRequest, ModelResponse, StepHandler
from ricordo.scopes import Scope

__all__ = ["SystemPromptMiddleware"]

_SessionKey: TypeAlias = tuple[Scope, str, str]


class SystemPromptMiddleware:
    """Step middleware that sets `Request.system`; each session of each agent and scope has its own."""

    def __init__(self, make: Callable[[ModelRequest], Awaitable[str]]) -> None:
        """Let `make` write the prompt from the session's first request, which has the base prompt and the tools."""
        self._make = make
        self._prompts: dict[_SessionKey, str] = {}
        self._lock = anyio.Lock()

    async def __call__(self, request: ModelRequest, step: StepHandler) -> ModelResponse:
        """Go on with the session's prompt. Raises as `add_prompt` does."""
        return await step(await self.add_prompt(request))

    async def add_prompt(self, request: ModelRequest) -> ModelRequest:
        """Return `request` with the session's prompt. Raises what making it raised; the next one then tries again."""
        turn = request.turn
        key = (turn.scope, turn.agent, turn.session)
        async with self._lock:
            if key not in self._prompts:
                self._prompts[key] = await self._make(request)
        return replace(request, system=self._prompts[key])

    def invalidate(self, session: str | None = None) -> None:
        """Let the next request make the prompt anew: of `session`, of all when None.

        Every call opens a new prefix, so it belongs after a compaction or after a person's correction.
        """
        self._prompts = {key: made for key, made in self._prompts.items() if session is not None and key[2] != session}
