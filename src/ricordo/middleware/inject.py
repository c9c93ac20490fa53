"""Inject: the system prompt of a session, made once, so that the beginning of every request stays the same bytes."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeAlias

import anyio

from ricordo.middleware.contract import Request, Response, Step
from ricordo.scopes import Scope

__all__ = ["Inject"]

_Session: TypeAlias = tuple[Scope, str, str]


class Inject:
    """Step middleware that sets `Request.system`; each session of each agent and scope has its own."""

    def __init__(self, make: Callable[[Request], Awaitable[str]]) -> None:
        """Let `make` write the prompt from the session's first request, which has the base prompt and the tools."""
        self._make = make
        self._made: dict[_Session, str] = {}
        self._making = anyio.Lock()

    async def __call__(self, request: Request, step: Step) -> Response:
        """Go on with the session's prompt. Raises as `prepared` does."""
        return await step(await self.prepared(request))

    async def prepared(self, request: Request) -> Request:
        """Return `request` with the session's prompt. Raises what making it raised; the next one then tries again."""
        turn = request.turn
        key = (turn.scope, turn.agent, turn.session)
        async with self._making:
            if key not in self._made:
                self._made[key] = await self._make(request)
        return replace(request, system=self._made[key])

    def refresh(self, session: str | None = None) -> None:
        """Let the next request make the prompt anew: of `session`, of all when None.

        Every call opens a new prefix, so it belongs after a compaction or after a person's correction.
        """
        self._made = {key: made for key, made in self._made.items() if session is not None and key[2] != session}
