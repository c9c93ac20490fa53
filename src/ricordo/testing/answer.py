"""A reply of a script with everything filled in: ids, usage, and why it ended. Each protocol writes it its own way."""

import json
import re
from dataclasses import dataclass

from ricordo.messages import Message, Part, Text, Thinking, ToolCall, Usage
from ricordo.models import Stop
from ricordo.testing.script import Call, Calls, Empty, RecordedRequest, Say, Spoken
from ricordo.tokens import cut_text, estimate_message, estimate_request

__all__ = ["SIGNATURE", "Answer", "answer_to", "pieces"]

SIGNATURE = "c2NyaXB0ZWQ="
"""The seal of everything that a script thinks."""

_FRAME = 8
"""Tokens of a reply that are not its text."""
_WORD = re.compile(r"\s*\S+\s*|\s+")


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One reply. `text` is None where nothing is said, which is not the same as the empty string."""

    number: int
    text: str | None
    thinking: str
    calls: tuple[ToolCall, ...]
    stop: Stop
    usage: Usage

    @property
    def message(self) -> Message:
        """The reply as a message of the assistant."""
        return Message(role="assistant", parts=_parts(self.text, self.thinking, self.calls), usage=self.usage)


def answer_to(request: RecordedRequest, item: Spoken) -> Answer:
    """Fill in what `item` leaves open: ids by the number of the request, usage by estimate."""
    text, thinking, calls = _said(item)
    stop: Stop = item.stop if isinstance(item, Say) else "tools" if calls else "end"
    if request.reply_limit is not None and text and not calls and item.usage is None:
        whole, text = text, cut_text(text, max(request.reply_limit - _FRAME, 1))
        stop = stop if text == whole else "length"
    made = tuple(_tool_call(call, f"call_{request.number}_{index}") for index, call in enumerate(calls, start=1))
    reply = Message(role="assistant", parts=_parts(text, thinking, made))
    usage = item.usage or Usage(
        input=estimate_request(request.messages, tools=request.tools).input, output=estimate_message(reply)
    )
    return Answer(number=request.number, text=text, thinking=thinking, calls=made, stop=stop, usage=usage)


def pieces(text: str) -> list[str]:
    """Cut `text` as a stream would: at words, a single word in two; joined they are the text, and none is empty."""
    words = _WORD.findall(text)
    if len(words) != 1 or len(text) < 2:
        return words
    middle = len(text) // 2
    return [text[:middle], text[middle:]]


def _said(item: Spoken) -> tuple[str | None, str, tuple[Call, ...]]:
    match item:
        case Say():
            return item.text, item.thinking, ()
        case Call():
            return None, "", (item,)
        case Calls():
            return item.text or None, item.thinking, item.calls
        case Empty():
            return None, "", ()


def _parts(text: str | None, thinking: str, calls: tuple[ToolCall, ...]) -> tuple[Part, ...]:
    thought = (Thinking(text=thinking, signature=SIGNATURE),) if thinking else ()
    said = () if text is None else (Text(text=text),)
    return (*thought, *said, *calls)


def _tool_call(call: Call, default_id: str) -> ToolCall:
    arguments = call.arguments if isinstance(call.arguments, str) else json.dumps(dict(call.arguments))
    return ToolCall(id=call.id or default_id, name=call.name, arguments=arguments)
