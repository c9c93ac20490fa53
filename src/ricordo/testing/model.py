"""A chat model that plays a script in process, the fastest way to test an agent.

Invariant: each request is recorded before it is answered, and conversations that providers refuse are refused.
"""

import copy
from collections.abc import AsyncIterator, Mapping, Sequence

import anyio

from ricordo.errors import (
    ModelError,
    ModelNotFound,
    ModelOverflow,
    ModelRateLimited,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
    ReplyInvalid,
)
from ricordo.messages import JsonValue, Message, ToolSpec
from ricordo.models import Reply, ReplyEvent, ReplyFinished, TextDelta, ThinkingDelta
from ricordo.models.structured import with_parsed
from ricordo.testing.refusals import pairing_refusal
from ricordo.testing.script import (
    Fail,
    Garbage,
    HalfStream,
    Hang,
    Hold,
    Playback,
    PlayedItem,
    RecordedRequest,
    ReplyItem,
    ScriptedReply,
    ScriptLike,
    build_reply,
    split_pieces,
)

__all__ = ["ScriptedModel"]


_ERRORS_BY_STATUS: dict[int, type[ModelError]] = {
    404: ModelNotFound,
    408: ModelTimeout,
    409: ModelUnavailable,
    425: ModelUnavailable,
}
_CUT_OFF_MESSAGE = "The reply was cut off."


class ScriptedModel:
    """A `ChatModel` that plays `script`, one item for each request.

    `Fail` raises the `ModelError` subclass for its status; `Empty`, `Garbage` and `HalfStream` raise `ReplyInvalid`;
    `Hang` raises `ModelTimeout` when it is released. A request after the end of the script raises `ScriptUsedUp`, which
    is not a `ModelError`: it is an error of the test and should not be caught.
    """

    def __init__(self, script: ScriptLike, *, name: str = "scripted", window: int | None = None) -> None:
        """Play `script`; `window`, in tokens, is only reported by the model, and no request is checked against it."""
        self._playback = Playback(script)
        self._name = name
        self._window = window
        self._reply_limit: int | None = None
        self._requests: list[RecordedRequest] = []
        self._held: list[anyio.Event] = []
        self._watchers: list[anyio.Event] = []

    @property
    def name(self) -> str:
        """The name passed to the constructor."""
        return self._name

    @property
    def window(self) -> int | None:
        """The window passed to the constructor, in tokens."""
        return self._window

    def with_reply_limit(self, tokens: int) -> "ScriptedModel":
        """Return this model, with the same script and requests, with replies cut off after `tokens` tokens.

        A reply with its own `usage` is not cut off, like that of a provider that ignores the limit.
        """
        limited = copy.copy(self)
        limited._reply_limit = tokens
        return limited

    @property
    def requests(self) -> tuple[RecordedRequest, ...]:
        """All requests so far, in order."""
        return tuple(self._requests)

    @property
    def held_count(self) -> int:
        """The number of replies that are held back or hang now."""
        return len(self._held)

    def release(self) -> None:
        """Release every reply that is held back or hangs now; call it on the event loop of the model."""
        for event in self._held:
            event.set()

    async def wait_for_held(self, count: int = 1) -> None:
        """Return when `count` replies are held back or hang."""
        while len(self._held) < count:
            arrived = anyio.Event()
            self._watchers.append(arrived)
            await arrived.wait()

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> Reply:
        """Return the reply of the next item."""
        request = self._record_request(messages, tools, schema, streamed=False)
        item = self._next_item(request)
        if isinstance(item, Hold | Hang):
            await self._wait_for_release()
        return self._build_reply(_final_reply(item), request)

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> AsyncIterator[ReplyEvent]:
        """Yield the reply of the next item word by word; tool calls arrive with the complete reply."""
        request = self._record_request(messages, tools, schema, streamed=True)
        item = self._next_item(request)
        if isinstance(item, Hang):
            await self._wait_for_release()
        reply_item = item.reply if isinstance(item, HalfStream) else _final_reply(item)
        deltas = _reply_deltas(build_reply(request, reply_item))
        first = deltas[: item.after] if isinstance(item, HalfStream) else deltas[:1]
        for delta in first:
            yield delta
        if isinstance(item, HalfStream):
            raise ReplyInvalid(_CUT_OFF_MESSAGE)
        if isinstance(item, Hold):
            await self._wait_for_release()
        for delta in deltas[1:]:
            yield delta
        yield ReplyFinished(reply=self._build_reply(reply_item, request))

    def _record_request(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        schema: Mapping[str, JsonValue] | None,
        *,
        streamed: bool,
    ) -> RecordedRequest:
        request = RecordedRequest(
            number=len(self._requests) + 1,
            messages=tuple(messages),
            tools=tuple(tools),
            schema=schema,
            streamed=streamed,
            reply_limit=self._reply_limit,
        )
        self._requests.append(request)
        return request

    def _next_item(self, request: RecordedRequest) -> PlayedItem:
        if objection := pairing_refusal(request.messages):
            raise ModelRefused(objection)
        return self._playback.next_item(request)

    async def _wait_for_release(self) -> None:
        event = anyio.Event()
        self._held.append(event)
        while self._watchers:
            self._watchers.pop().set()
        try:
            await event.wait()
        finally:
            self._held.remove(event)

    def _build_reply(self, reply_item: ReplyItem, request: RecordedRequest) -> Reply:
        answer = build_reply(request, reply_item)
        if answer.stop == "refused":
            raise ModelRefused("The model refused to answer.")
        if not ((answer.text or "").strip() or answer.calls):
            raise (
                ModelOverflow("The window is full.") if answer.stop == "window" else ReplyInvalid("The reply is empty.")
            )
        reply = Reply(message=answer.message, usage=answer.usage, model=self._name, stop=answer.stop)
        return reply if request.schema is None or answer.calls else with_parsed(reply, request.schema)


def _final_reply(item: PlayedItem) -> ReplyItem:
    """Return the final reply of `item`, or raise its error."""
    match item:
        case Fail():
            raise _model_error(item)
        case Garbage():
            raise ReplyInvalid("The reply is not understood.")
        case Hang():
            raise ModelTimeout
        case HalfStream():
            raise ReplyInvalid(_CUT_OFF_MESSAGE)
        case Hold():
            return item.reply
        case _:
            return item


def _model_error(fail: Fail) -> ModelError:
    if fail.overflow:
        return ModelOverflow(fail.message, window=fail.window, size=fail.size)
    if fail.status == 429:
        retry_after = fail.headers.get("retry-after")
        return ModelRateLimited(fail.message, retry_after=None if retry_after is None else float(retry_after))
    return _ERRORS_BY_STATUS.get(fail.status, ModelUnavailable if fail.status >= 500 else ModelRefused)(fail.message)


def _reply_deltas(answer: ScriptedReply) -> list[TextDelta | ThinkingDelta]:
    thoughts = [ThinkingDelta(text=piece) for piece in split_pieces(answer.thinking)]
    return [*thoughts, *(TextDelta(text=piece) for piece in split_pieces(answer.text or ""))]
