"""OpenAI's client without the walk over every message, which blocks the event loop for 0.1 ms per message.

The walk renames keys and reads files passed by Python programs; pydantic-ai already writes messages in wire format.
`extra_body` is merged into the request unchanged. The package creates its response types at the first reply, which
takes 0.1 s; here a thread creates them earlier.
"""

from functools import cache
from typing import Any

from openai import AsyncOpenAI
from openai.resources.chat import AsyncChat, AsyncCompletions
from openai.resources.responses import AsyncResponses
from openai.types.responses import Response

from ricordo.concurrency import run_in_thread

__all__ = ["make_lean"]


class _LeanCompletions(AsyncCompletions):
    async def create(self, *, messages: Any, extra_body: Any = None, **options: Any) -> Any:
        """Request a completion as the package does."""
        return await super().create(messages=[], extra_body=_beside(extra_body, messages=messages), **options)


class _LeanResponses(AsyncResponses):
    async def create(self, *, input: Any, extra_body: Any = None, **options: Any) -> Any:  # type: ignore[override]  # noqa: A002 - the wire's name
        """Request a response as the package does."""
        await run_in_thread(_make_types)
        return await super().create(input=[], extra_body=_beside(extra_body, input=input), **options)


class _LeanChat(AsyncChat):
    @property
    def completions(self) -> AsyncCompletions:
        return _LeanCompletions(self._client)


class _LeanOpenAI(AsyncOpenAI):
    @property
    def chat(self) -> AsyncChat:
        return _LeanChat(self)

    @property
    def responses(self) -> AsyncResponses:
        return _LeanResponses(self)


def make_lean(client: object) -> None:
    """Make a client of OpenAI's package send messages unchanged; any other client is not modified."""
    if type(client) is AsyncOpenAI:
        client.__class__ = _LeanOpenAI


@cache
def _make_types() -> None:
    """Make the package create its response types by parsing a response."""
    content_part = {"type": "output_text", "text": "", "annotations": []}
    Response.construct(
        output=[{"type": "message", "content": [content_part]}], tools=[{"type": "function", "name": "look"}]
    )


def _beside(extra_body: Any, **fields: Any) -> dict[str, Any]:
    return {**(extra_body or {}), **fields}
