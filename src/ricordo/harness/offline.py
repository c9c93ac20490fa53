"""The model of an agent that has none: it says what memory holds, word for word with its source, or that it holds
nothing. Nothing is made up, and nothing leaves the machine.

What is asked is answered by the given function; a request to remember calls the tool `remember`, as a model would; of a
statement that memory says nothing to, it says that it was noted, because that is all that was done with it. Where
nothing is kept it says that instead.
"""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence

from ricordo.harness.wording import asks, to_remember
from ricordo.messages import JsonValue, Message, Text, ToolCall, ToolSpec, mark_of, marked
from ricordo.models import Reply
from ricordo.models.streaming import WholeReplies

__all__ = ["NOTED", "OFFLINE", "UNKEPT", "UNKNOWN", "OfflineModel"]

OFFLINE = "offline"
NOTED = "Noted."
UNKNOWN = "Not in memory."
UNKEPT = "Nothing of this is kept."


class OfflineModel(WholeReplies):
    """A chat model without a model."""

    def __init__(self, answer: Callable[[str], Awaitable[str]], *, keeps: bool = True) -> None:
        """Answer with what `answer` returns for a text, which is empty when memory holds nothing about it.

        `keeps` tells whether what is said is kept.
        """
        self.keeps = keeps
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
        # what nobody said, such as a reminder, is answered by nothing
        spoken = [each for each in messages if each.role != "user" or mark_of(each) is None]
        last = spoken[-1] if spoken else Message(role="user")
        if last.role == "tool":
            return _said("\n".join(result.text for result in last.tool_results))
        text = next((each.text for each in reversed(spoken) if each.role == "user"), "")
        wanted = to_remember(text)
        if wanted is not None and any(tool.name == "remember" for tool in tools):
            call = ToolCall(id=f"offline-{len(messages)}", name="remember", arguments=json.dumps({"content": wanted}))
            return Reply(message=Message(role="assistant", parts=(call,)), stop="tools", model=OFFLINE)
        return _said(await self._answered(text))

    async def _answered(self, text: str) -> str:
        found = await self._answer(text)
        if asks(text):
            return found or UNKNOWN
        return found or NOTED if self.keeps else "\n".join(filter(None, (UNKEPT, found)))


def _said(text: str) -> Reply:
    # a quotation of memory, which must not be remembered as if it had been said anew
    return Reply(message=marked(Message(role="assistant", parts=(Text(text=text),)), "memory"), model=OFFLINE)
