"""Profile: what is known of the user, in a message of its own after the user's, where it is not in the system prompt.

Nobody said it: it bears the mark of memory, and it is never recorded. It stays where it is until the prompt is written
anew; then it is made anew as well.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from ricordo.messages import Message, Text, count_fingerprints, with_mark, with_ids
from ricordo.middleware.contract import ModelRequest, ModelResponse, StepHandler
from ricordo.middleware.update import ShownMemory

__all__ = ["ProfileMiddleware"]

_PROFILE_KEY = "ricordo.profile"


class ProfileMiddleware:
    """Step middleware for one session, inside of all that shortens the window or writes the prompt anew."""

    def __init__(self, shown: ShownMemory, block: Callable[[ModelRequest], Awaitable[str]]) -> None:
        """Add what `block` returns, once for each time that `shown` was written; nothing where it is empty."""
        self._shown = shown
        self._block = block
        self._id = ""
        self._write_count = 0

    async def __call__(self, request: ModelRequest, step: StepHandler) -> ModelResponse:
        """Go on with the message."""
        if self._shown.write_count != self._write_count:
            self._write_count, self._id = self._shown.write_count, ""
        window = tuple(each for each in request.window if _PROFILE_KEY not in each.metadata or each.id == self._id)
        if not any(each.id == self._id for each in window):
            text = await self._block(request)
            if text:
                message = self._build_message(text, window, request.turn.session)
                window, self._id = (*window, message), message.id
        return await step(replace(request, window=window))

    def _build_message(self, text: str, window: tuple[Message, ...], session: str) -> Message:
        bare = with_mark(Message(role="user", parts=(Text(text=text),)), "memory")
        message = replace(bare, metadata={**bare.metadata, _PROFILE_KEY: True})
        return with_ids([message], session=session, known=count_fingerprints(window))[0]
