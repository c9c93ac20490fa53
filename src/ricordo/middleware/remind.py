"""Remind: every request says anew where the agent stands, and a reply keeps what its request told of.

The reminder is made for one request, so nothing that shortens or sums up the window can touch it. It depends on the
window, whose plan it need not repeat, and on the prompt, whose memories it need not, so it is made again where one of
them changed on the way.

Invariants: a result counts as told when a whole reply came to the request that told of it, and not before; what can't
be reminded of ends no turn.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeAlias

from ricordo.errors import RicordoError
from ricordo.messages import Message, with_delivered_results
from ricordo.middleware.contract import ModelRequest, ModelResponse, StepHandler

__all__ = ["ComposedReminder", "ReminderMiddleware"]

_LOG = logging.getLogger("ricordo.middleware")

ComposedReminder: TypeAlias = tuple[Message | None, tuple[str, ...]]
"""A reminder, None where there is nothing to say, and the keys of the results and the memories that it tells of."""


class ReminderMiddleware:
    """Step middleware for one session, outside of all that shortens the window; `refresh_reminder` stands inside of that."""

    def __init__(self, compose: Callable[[ModelRequest], Awaitable[ComposedReminder]]) -> None:
        """Let `compose` make the reminder of a request that has none yet. What of ours it raises is logged once."""
        self._compose = compose
        self._is_logged = False
        self._window: tuple[Message, ...] = ()
        self._system = ""
        self._delivered_keys: tuple[str, ...] = ()

    async def __call__(self, request: ModelRequest, step: StepHandler) -> ModelResponse:
        """Go on with a reminder; the reply to it names what it told of."""
        self._window, self._system, self._delivered_keys = request.window, request.system, ()
        found = await self._compose_reminder(request)
        if found is not None:
            reminder, self._delivered_keys = found
            request = replace(request, reminder=reminder)
        response = await step(request)
        reply = response.reply
        said = with_delivered_results(reply.message, self._delivered_keys)
        return response if said is reply.message else replace(response, reply=replace(reply, message=said))

    async def refresh_reminder(self, request: ModelRequest, step: StepHandler) -> ModelResponse:
        """Go on with a reminder for the window and the prompt as they are now; the one that was made stays if this one
        can't be."""
        if request.window != self._window or request.system != self._system:
            self._window, self._system = request.window, request.system
            found = await self._compose_reminder(request)
            if found is not None:
                reminder, self._delivered_keys = found
                request = replace(request, reminder=reminder)
        return await step(request)

    async def add_reminder(self, request: ModelRequest) -> ModelRequest:
        """Return `request` with the reminder that it would have; nothing counts as told."""
        found = await self._compose_reminder(request)
        return replace(request, reminder=found[0]) if found else request

    async def _compose_reminder(self, request: ModelRequest) -> ComposedReminder | None:
        try:
            return await self._compose(replace(request, reminder=None))
        except RicordoError as error:
            if not self._is_logged:
                _LOG.warning("Where the agent stands can't be told to the model: %s.", type(error).__name__)
            self._is_logged = True
            return None
