"""A reply of a script with everything filled in: ids, usage, and why it ended. Each protocol writes it its own way."""

import json
import re
from dataclasses import dataclass

from ricordo.messages import Message, Part, Text, Thinking, ToolCall, Usage
from ricordo.models import StopReason
from ricordo.testing.script import Call, Calls, Empty, RecordedRequest, Say, ReplyItem
from ricordo.tokens import cut_text, estimate_message, estimate_request

__all__ = ["THINKING_SIGNATURE", "ScriptedReply", "build_reply", "split_pieces"]

THINKING_SIGNATURE = "c2NyaXB0ZWQ="
"""The seal of everything that a script thinks."""

_FRAME_TOKENS = 8
"""Tokens of a reply that are not its text."""
_WORD = re.compile(r"\s*\S+\s*|\s+")


@dataclass(frozen=True, kw_only=True)
class ScriptedReply:
    """One reply. `text` is None where nothing is said, which is not the same as the empty string."""

    number: int
    text: str | None
    thinking: str
    calls: tuple[ToolCall, ...]
    stop: StopReason
    usage: Usage

    @property
    def message(self) -> Message:
        """The reply as a message of the assistant."""
        return Message(role="assistant", parts=_message_parts(self.text, self.thinking, self.calls), usage=self.usage)


def build_reply(request: RecordedRequest, item: ReplyItem) -> ScriptedReply:
    """Fill in what `item` leaves open: ids by the number of the request, usage by estimate."""
    text, thinking, calls = _item_content(item)
    stop: StopReason = item.stop if isinstance(item, Say) else "tools" if calls else "end"
    if request.reply_limit is not None and text and not calls and item.usage is None:
        whole, text = text, cut_text(text, max(request.reply_limit - _FRAME_TOKENS, 1))
        stop = stop if text == whole else "length"
    made = tuple(_build_tool_call(call, f"call_{request.number}_{index}") for index, call in enumerate(calls, start=1))
    reply = Message(role="assistant", parts=_message_parts(text, thinking, made))
    usage = item.usage or Usage(
        input=estimate_request(request.messages, tools=request.tools).input, output=estimate_message(reply)
    )
    return ScriptedReply(number=request.number, text=text, thinking=thinking, calls=made, stop=stop, usage=usage)


def split_pieces(text: str) -> list[str]:
    """Cut `text` as a stream would: at words, a single word in two; joined they are the text, and none is empty."""
    words = _WORD.findall(text)
    if len(words) != 1 or len(text) < 2:
        return words
    middle = len(text) // 2
    return [text[:middle], text[middle:]]


def _item_content(item: ReplyItem) -> tuple[str | None, str, tuple[Call, ...]]:
    match item:
        case Say():
            return item.text, item.thinking, ()
        case Call():
            return None, "", (item,)
        case Calls():
            return item.text or None, item.thinking, item.calls
        case Empty():
            return None, "", ()


def _message_parts(text: str | None, thinking: str, calls: tuple[ToolCall, ...]) -> tuple[Part, ...]:
    thought = (Thinking(text=thinking, signature=THINKING_SIGNATURE),) if thinking else ()
    said = () if text is None else (Text(text=text),)
    return (*thought, *said, *calls)


def _build_tool_call(call: Call, default_id: str) -> ToolCall:
    arguments = call.arguments if isinstance(call.arguments, str) else json.dumps(dict(call.arguments))
    return ToolCall(id=call.id or default_id, name=call.name, arguments=arguments)
