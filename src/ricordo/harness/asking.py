"""Asking the model: one request, whole or as a stream, and what was heard of a reply that did not come to its end."""

from collections.abc import AsyncGenerator, AsyncIterator

import anyio

from ricordo.errors import ReplyInvalid
from ricordo.messages import Message, Text, with_mark
from ricordo.middleware import ModelRequest, TurnListener
from ricordo.models import ChatModel, ReplyFinished, Reply, ReplyEvent, TextDelta

__all__ = ["PartialReply", "ask_model", "build_messages"]

_STREAM_CLOSE_SECONDS = 5.0


class PartialReply:
    """The text of a reply, as far as it has come."""

    def __init__(self) -> None:
        """Begin with silence."""
        self._pieces: list[str] = []

    def reset(self) -> None:
        """Forget the last reply: another request begins."""
        self._pieces.clear()

    def append(self, text: str) -> None:
        """Take in more of it."""
        self._pieces.append(text)

    def to_message(self) -> Message | None:
        """Return what was said as a message that is marked as cut off; None when nothing was."""
        text = "".join(self._pieces)
        said = Message(role="assistant", parts=(Text(text=text),))
        return with_mark(said, "cut") if text.strip() else None


async def ask_model(model: ChatModel, request: ModelRequest, heard: PartialReply) -> Reply:
    """Return the model's reply to `request`; to a turn that is listened to, its pieces are told as they come.

    The reminder, where there is one, is the last message that is sent. Where the turn is to be answered with a type, a
    reply in another form is returned with nothing parsed.

    Raises: ModelError as `ChatModel` does; ReplyInvalid for a stream that ends without a whole reply.
    """
    heard.reset()
    try:
        return await _send_request(model, request, heard)
    except ReplyInvalid as error:
        if request.turn.output is None or not error.said:
            raise
        if isinstance(error.reply, Reply):
            return error.reply
        said = Message(role="assistant", parts=(Text(text=error.said),))
        return Reply(message=said, stop="length" if error.cut_off else "end", model=model.name)


async def _send_request(model: ChatModel, request: ModelRequest, heard: PartialReply) -> Reply:
    messages, listener, output = build_messages(request), request.turn.listener, request.turn.output
    schema = output.schema if output else None
    if listener is None:
        return await model.complete(messages, tools=request.tools, schema=schema)
    events = model.stream(messages, tools=request.tools, schema=schema)
    return await _consume_stream(events, listener, heard)


def build_messages(request: ModelRequest) -> tuple[Message, ...]:
    """Return what a request says: the system prompt, the window, and the reminder, where there is one."""
    system = [Message(role="system", parts=(Text(text=request.system),))] if request.system else []
    reminder = [] if request.reminder is None else [request.reminder]
    return (*system, *request.window, *reminder)


async def _consume_stream(events: AsyncIterator[ReplyEvent], listener: TurnListener, heard: PartialReply) -> Reply:
    reply: Reply | None = None
    try:
        async for event in events:
            if isinstance(event, ReplyFinished):
                reply = event.reply
                continue
            if isinstance(event, TextDelta):
                heard.append(event.text)
            await listener(event)
    finally:
        await _close_stream(events)
    if reply is None:
        raise ReplyInvalid("The stream of the reply ended before the reply was whole.")
    return reply


async def _close_stream(events: AsyncIterator[ReplyEvent]) -> None:
    """Let a stream that was left before its end give back its connection now, not when it is collected."""
    if isinstance(events, AsyncGenerator):
        with anyio.move_on_after(_STREAM_CLOSE_SECONDS, shield=True):
            await events.aclose()
