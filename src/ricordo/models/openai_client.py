"""OpenAI's client without what keeps the event loop waiting: a walk over every message, which takes 0.1 ms each.

The walk renames keys and reads files that Python programs hand over; pydantic-ai writes messages as the wire has them.
What is given as `extra_body` is merged into the request as it is. The types of responses, which the package makes when
the first reply comes, take 0.1 s and are made in a thread before.
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
    async def create(self, *, messages: Any, extra_body: Any = None, **given: Any) -> Any:
        """Ask for a completion as the package does."""
        return await super().create(messages=[], extra_body=_beside(extra_body, messages=messages), **given)


class _LeanResponses(AsyncResponses):
    async def create(self, *, input: Any, extra_body: Any = None, **given: Any) -> Any:  # type: ignore[override]  # noqa: A002 - the wire's name
        """Ask for a response as the package does."""
        await run_in_thread(_make_types)
        return await super().create(input=[], extra_body=_beside(extra_body, input=input), **given)


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
    """Let a client of OpenAI's package send messages as they are; any other client stays as it is."""
    if type(client) is AsyncOpenAI:
        client.__class__ = _LeanOpenAI


@cache
def _make_types() -> None:
    """Let the package make the types of replies, by reading one."""
    said = {"type": "output_text", "text": "", "annotations": []}
    Response.construct(output=[{"type": "message", "content": [said]}], tools=[{"type": "function", "name": "look"}])


def _beside(extra_body: Any, **written: Any) -> dict[str, Any]:
    return {**(extra_body or {}), **written}
