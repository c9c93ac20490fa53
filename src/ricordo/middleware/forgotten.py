"""Forgotten: what a person had forgotten leaves the window of a running conversation, and of one that is taken up.

Invariant: where nothing was forgotten since the last request, no message is another than it was in that request.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from anyio.to_thread import run_sync

from ricordo.compaction.stays import find_newest_request
from ricordo.messages import Message
from ricordo.middleware.contract import ModelRequest, ModelResponse, StepHandler
from ricordo.workspace.forgotten import ForgottenStatements

__all__ = ["ForgottenMiddleware"]


class ForgottenMiddleware:
    """Step middleware, outside of all that reads the window or shortens it."""

    def __init__(self, forgotten: Callable[[], Awaitable[Sequence[ForgottenStatements]]]) -> None:
        """Hide what `forgotten` recognises; it is asked before each request, and cheap where nothing changed."""
        self._forgotten = forgotten
        self._known: Sequence[ForgottenStatements] = ()
        self._hidden_messages: dict[str, Message] = {}

    async def __call__(self, request: ModelRequest, step: StepHandler) -> ModelResponse:
        """Go on with a window that says nothing of it but for the newest request of the user."""
        known = await self._forgotten()
        if known != self._known:
            self._known = known
            self._hidden_messages = {}
        # what the user asks now is no copy, even in the same words
        asked = find_newest_request(request.window)
        new = [
            message
            for at, message in enumerate(request.window)
            if at != asked and self._hidden_messages.get(message.id) != message
        ]
        if new and any(known):
            without = await run_sync(self._hide_forgotten, new, request.turn.session)
            self._hidden_messages |= {message.id: message for message in without.values()}
            request = replace(request, window=tuple(without.get(id(each), each) for each in request.window))
        return await step(request)

    def _hide_forgotten(self, messages: Sequence[Message], session: str) -> dict[int, Message]:
        found = {}
        for message in messages:
            rest = message
            for each in self._known:
                rest = each.mask_message(rest, session)
            found[id(message)] = rest
        return found
