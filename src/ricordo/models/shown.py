"""A request as it would be written, without sending it: what a person sees who asks what the model is told."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ricordo.messages import JsonValue, Message, ToolSpec
from ricordo.models.contract import ChatModel

__all__ = ["RequestBody", "ShowsRequests", "capture_requests", "captured_requests", "request_body"]

_CAPTURED: ContextVar["list[RequestBody] | None"] = ContextVar("ricordo.held_requests", default=None)


@dataclass(frozen=True, kw_only=True)
class RequestBody:
    """The JSON of one request, and the address that it goes to, without its query."""

    url: str
    body: Mapping[str, JsonValue]


@runtime_checkable
class ShowsRequests(Protocol):
    """A `ChatModel` that can show a request without sending it."""

    async def request_body(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> RequestBody | None:
        """Return the request for the reply to `messages` as it would be written; None where that can't be shown.

        Raises: InvalidMessage, ModelOverflow for what would not be sent.
        """
        ...


async def request_body(
    model: ChatModel,
    messages: Sequence[Message],
    *,
    tools: Sequence[ToolSpec] = (),
    schema: Mapping[str, JsonValue] | None = None,
) -> RequestBody | None:
    """Return the request that `model` would write; None for one that can't show it. Raises as `ShowsRequests` does."""
    if not isinstance(model, ShowsRequests):
        return None
    return await model.request_body(messages, tools=tools, schema=schema)


@contextmanager
def capture_requests() -> Iterator[list[RequestBody]]:
    """Hold back the requests that are written inside of this block, in this task; they are in the list."""
    found: list[RequestBody] = []
    token = _CAPTURED.set(found)
    try:
        yield found
    finally:
        _CAPTURED.reset(token)


def captured_requests() -> list[RequestBody] | None:
    """Return where a request that is about to be sent is to be put instead; None where it is to be sent."""
    return _CAPTURED.get()
