"""The model of an agent that has none: it says what memory holds, word for word with its source, or that it holds
nothing. Nothing is made up, and nothing leaves the machine.

What is asked is answered by the given function; a request to remember calls the tool `remember`, as a model would; of a
statement that memory holds nothing about, it says that it was noted, because that is all that was done with it.
"""

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

from ricordo.messages import JsonValue, Message, Text, ToolCall, ToolSpec, mark_of, marked
from ricordo.models import Finished, Reply, ReplyEvent, TextDelta

__all__ = ["NOTED", "OFFLINE", "UNKNOWN", "OfflineModel"]

OFFLINE = "offline"
NOTED = "Noted. Nothing in memory is about this."
UNKNOWN = "Not in memory."
_REMEMBER = re.compile(
    r"\s*(?:please\s+)?(?:remember|don't forget|note|merke? dir|ricorda(?:ti)?|recuerda|souviens-toi|lembra(?:-te)?"
    r"|覚えて|记住)"
    r"(?:\s+(?:that|this|bitte|che|que|de|dass))?[\s:,]+(?P<content>\S.*)",
    re.IGNORECASE | re.DOTALL,
)
_ASKS = re.compile(
    r"[?？؟]|\A\s*(?:who|what|which|when|where|why|how|do|does|did|is|are|was|were|wer|wo|wann|wie|warum|welche[rs]?|qué|quién"
    r"|cuál|chi|dove|quando|quel(?:le)?|où|comment|pourquoi)\b",
    re.IGNORECASE,
)


class OfflineModel:
    """A chat model without a model."""

    def __init__(self, answer: Callable[[str], Awaitable[str]]) -> None:
        """Answer with what `answer` returns for a text, which is empty when memory holds nothing about it."""
        self._answer = answer
        self.name = OFFLINE
        self.window: int | None = None

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> Reply:
        """Return what memory has to say to the last thing that was said."""
        del schema
        last = messages[-1] if messages else Message(role="user")
        if last.role == "tool":
            return _said("\n".join(result.text for result in last.tool_results))
        text = next((each.text for each in reversed(messages) if each.role == "user" and mark_of(each) is None), "")
        asked = _REMEMBER.fullmatch(text)
        if asked and any(tool.name == "remember" for tool in tools):
            call = ToolCall(
                id=f"offline-{len(messages)}",
                name="remember",
                arguments=json.dumps({"content": asked["content"].strip()}),
            )
            return Reply(message=Message(role="assistant", parts=(call,)), stop="tools", model=OFFLINE)
        return _said(await self._answer(text) or (UNKNOWN if _ASKS.search(text) else NOTED))

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> AsyncIterator[ReplyEvent]:
        """Give the same reply, its text as one piece."""
        reply = await self.complete(messages, tools=tools, schema=schema)
        if reply.message.text:
            yield TextDelta(text=reply.message.text)
        yield Finished(reply=reply)


def _said(text: str) -> Reply:
    # a quotation of memory, which must not be remembered as if it had been said anew
    return Reply(message=marked(Message(role="assistant", parts=(Text(text=text),)), "memory"), model=OFFLINE)
