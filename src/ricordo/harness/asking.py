"""Asking the model: one request, whole or as a stream, and what was heard of a reply that did not come to its end."""

from collections.abc import AsyncGenerator, AsyncIterator

import anyio

from ricordo.errors import ReplyInvalid
from ricordo.messages import Message, Text, marked
from ricordo.middleware import Request, TurnListener
from ricordo.models import ChatModel, Finished, Reply, ReplyEvent, TextDelta

__all__ = ["Heard", "ask", "messages_of"]

_CLOSING_SECONDS = 5.0


class Heard:
    """The text of a reply, as far as it has come."""

    def __init__(self) -> None:
        """Begin with silence."""
        self._pieces: list[str] = []

    def begin(self) -> None:
        """Forget the last reply: another request begins."""
        self._pieces.clear()

    def add(self, text: str) -> None:
        """Take in more of it."""
        self._pieces.append(text)

    def cut(self) -> Message | None:
        """Return what was said as a message that is marked as cut off; None when nothing was."""
        text = "".join(self._pieces)
        said = Message(role="assistant", parts=(Text(text=text),))
        return marked(said, "cut") if text.strip() else None


async def ask(model: ChatModel, request: Request, heard: Heard) -> Reply:
    """Return the model's reply to `request`; to a turn that is listened to, its pieces are told as they come.

    The reminder, where there is one, is the last message that is sent. Where the turn is to be answered with a type, a
    reply in another form is returned with nothing parsed.

    Raises: ModelError as `ChatModel` does; ReplyInvalid for a stream that ends without a whole reply.
    """
    heard.begin()
    try:
        return await _asked(model, request, heard)
    except ReplyInvalid as error:
        if request.turn.output is None or not error.said:
            raise
        if isinstance(error.reply, Reply):
            return error.reply
        said = Message(role="assistant", parts=(Text(text=error.said),))
        return Reply(message=said, stop="length" if error.cut_off else "end", model=model.name)


async def _asked(model: ChatModel, request: Request, heard: Heard) -> Reply:
    messages, listener, output = messages_of(request), request.turn.listener, request.turn.output
    schema = output.schema if output else None
    if listener is None:
        return await model.complete(messages, tools=request.tools, schema=schema)
    events = model.stream(messages, tools=request.tools, schema=schema)
    return await _listened(events, listener, heard)


def messages_of(request: Request) -> tuple[Message, ...]:
    """Return what a request says: the system prompt, the window, and the reminder, where there is one."""
    system = [Message(role="system", parts=(Text(text=request.system),))] if request.system else []
    reminder = [] if request.reminder is None else [request.reminder]
    return (*system, *request.window, *reminder)


async def _listened(events: AsyncIterator[ReplyEvent], listener: TurnListener, heard: Heard) -> Reply:
    reply: Reply | None = None
    try:
        async for event in events:
            if isinstance(event, Finished):
                reply = event.reply
                continue
            if isinstance(event, TextDelta):
                heard.add(event.text)
            await listener(event)
    finally:
        await _closed(events)
    if reply is None:
        raise ReplyInvalid("The stream of the reply ended before the reply was whole.")
    return reply


async def _closed(events: AsyncIterator[ReplyEvent]) -> None:
    """Let a stream that was left before its end give back its connection now, not when it is collected."""
    if isinstance(events, AsyncGenerator):
        with anyio.move_on_after(_CLOSING_SECONDS, shield=True):
            await events.aclose()
