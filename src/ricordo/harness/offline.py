"""The model of an agent that has none: it says what memory holds, word for word with its source, or that it holds
nothing. Nothing is made up, and nothing leaves the machine.

What is asked is answered by the given function; a request to remember calls the tool `remember`, as a model would; of a
statement that memory says nothing to, it says that it was noted, because that is all that was done with it. Where
nothing is kept it says that instead.
"""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence

from ricordo.harness.wording import is_question, extract_remember_request
from ricordo.messages import JsonValue, Message, Text, ToolCall, ToolSpec, get_mark, with_mark
from ricordo.models import Reply
from ricordo.models.streaming import WholeReplies

__all__ = ["NOTED_REPLY", "OFFLINE", "UNKEPT_REPLY", "UNKNOWN_REPLY", "OfflineModel"]

OFFLINE = "offline"
NOTED_REPLY = "Noted."
UNKNOWN_REPLY = "Not in memory."
UNKEPT_REPLY = "Nothing of this is kept."


class OfflineModel(WholeReplies):
    """A chat model without a model."""

    def __init__(self, answer: Callable[[str], Awaitable[str]], *, keeps: bool = True) -> None:
        """Answer with what `answer` returns for a text, which is empty when memory holds nothing about it.

        `is_recorded` tells whether what is said is kept.
        """
        self.is_recorded = keeps
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
        spoken = [each for each in messages if each.role != "user" or get_mark(each) is None]
        last = spoken[-1] if spoken else Message(role="user")
        if last.role == "tool":
            return _quote_memory("\n".join(result.text for result in last.tool_results))
        text = next((each.text for each in reversed(spoken) if each.role == "user"), "")
        wanted = extract_remember_request(text)
        if wanted is not None and any(tool.name == "remember" for tool in tools):
            call = ToolCall(id=f"offline-{len(messages)}", name="remember", arguments=json.dumps({"content": wanted}))
            return Reply(message=Message(role="assistant", parts=(call,)), stop="tools", model=OFFLINE)
        return _quote_memory(await self._answer_text(text))

    async def _answer_text(self, text: str) -> str:
        found = await self._answer(text)
        if is_question(text):
            return found or UNKNOWN_REPLY
        return found or NOTED_REPLY if self.is_recorded else "\n".join(filter(None, (UNKEPT_REPLY, found)))


def _quote_memory(text: str) -> Reply:
    # a quotation of memory, which must not be remembered as if it had been said anew
    return Reply(message=with_mark(Message(role="assistant", parts=(Text(text=text),)), "memory"), model=OFFLINE)
