"""How many tokens a text, a message, a request will take, without a tokenizer.

Idea: a weighted sum of what `ricordo.tokens.scripts` counts. The weights are hundredths of a token, fitted by
non-negative least squares of the relative error against the `o200k_base` vocabulary over public texts of 40 languages,
code, JSON, logs and numbers, and raised by 3 %: a window that is believed fuller than it is costs less than one that
overflows. `docs/design/tokens.md` has the method and the measured errors.

Invariant: the estimate of a text that is not empty is at least 1, and all counts are tokens. What a provider reports
corrects it, see `ricordo.tokens.calibration`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ricordo.messages import JsonValue, Media, Message, Part, Text, Thinking, ToolCall, ToolResult, ToolSpec, Unknown
from ricordo.messages.jsontext import dumps
from ricordo.tokens.known import CountCache
from ricordo.tokens.scripts import count_blocks, count_latin

__all__ = [
    "Estimator",
    "RequestEstimate",
    "TokenCounter",
    "estimate_message",
    "estimate_request",
    "estimate_text",
]

_WEIGHTS = {
    "words": 38,
    "letters": 15,
    "humps": 100,
    "capitals": 12,
    "numbers": 148,
    "digits": 34,
    "mark_runs": 36,
    "marks": 18,
    "line_runs": 105,
    "blank_runs": 122,
    "accented": 97,
    "foreign_runs": 49,
    "nuls": 50,
    "latin_extended": 85,
    "latin_additional": 25,
    "greek": 33,
    "cyrillic": 25,
    "hebrew": 46,
    "arabic": 41,
    "indic": 41,
    "thai": 41,
    "punctuation": 61,
    "kana": 66,
    "han": 81,
    "hangul": 58,
    "surrogates": 76,
    "fullwidth": 82,
    "other": 100,
}

_MESSAGE_FRAME = 4
"""Tokens around each message: its delimiters and role, as chat templates commonly write them."""

_CALL_FRAME = 8
"""Tokens around a tool call or a tool result: its kind, id and keys."""

_MEDIA_TOKENS = 1_200
"""Tokens of a picture or file, whose size is not known here: near the most that providers charge for one picture."""


class TokenCounter(Protocol):
    """Whatever counts tokens."""

    def count(self, text: str) -> int:
        """Return the number of tokens of `text`, 0 for an empty one."""
        ...


@dataclass(frozen=True, kw_only=True)
class Estimator:
    """The built-in counter: script-aware, without a vocabulary."""

    def count(self, text: str) -> int:
        """Return the estimate for `text`, 0 for an empty one."""
        return estimate_text(text)


@dataclass(frozen=True, kw_only=True)
class RequestEstimate:
    """What one request to a model is expected to take, in tokens, part by part."""

    system: int = 0
    memory: int = 0
    tools: int = 0
    messages: int = 0
    reminder: int = 0
    reserved: int = 0

    @property
    def input(self) -> int:
        """What is sent: compare this with the input that the provider reports."""
        return self.system + self.memory + self.tools + self.messages + self.reminder

    @property
    def total(self) -> int:
        """What has to fit into the window: the input, and the room that is kept for the reply."""
        return self.input + self.reserved


_ESTIMATOR = Estimator()


def estimate_text(text: str) -> int:
    """Estimate the tokens of `text`, rounded up; 0 only for an empty text. The time is linear in its length."""
    if not text:
        return 0
    latin, foreign = count_latin(text)
    counts = latin | count_blocks(foreign)
    hundredths = sum(_WEIGHTS[name] * count for name, count in counts.items())
    return max(1, -(-hundredths // 100))


def estimate_message(message: Message, *, counter: TokenCounter = _ESTIMATOR) -> int:
    """Estimate the tokens of `message` with its frame; never 0. The built-in counter counts a message once."""
    return _message_counts(message) if counter is _ESTIMATOR else _count_message(message, counter)


def estimate_request(
    messages: Iterable[Message],
    *,
    system: str = "",
    memory: str = "",
    tools: Sequence[ToolSpec] = (),
    reminder: Message | None = None,
    reserved_output: int = 0,
    counter: TokenCounter = _ESTIMATOR,
) -> RequestEstimate:
    """Estimate a whole request: nothing that is sent is left out.

    `memory` is what is injected beside the system prompt and the messages, `reminder` the message that is sent after
    them with this request alone; `reserved_output` are the tokens that are kept free for the reply.
    """
    return RequestEstimate(
        system=_count_with_frame(system, counter),
        memory=_count_with_frame(memory, counter),
        tools=sum(_tool_counts(tool) if counter is _ESTIMATOR else _count_tool(tool, counter) for tool in tools),
        messages=sum(estimate_message(message, counter=counter) for message in messages),
        reminder=estimate_message(reminder, counter=counter) if reminder else 0,
        reserved=reserved_output,
    )


def _count_message(message: Message, counter: TokenCounter = _ESTIMATOR) -> int:
    return (
        _MESSAGE_FRAME + counter.count(message.name or "") + sum(_count_part(part, counter) for part in message.parts)
    )


def _count_part(part: Part, counter: TokenCounter) -> int:
    match part:
        case Text() | Thinking():
            return counter.count(part.text)
        case Media():
            return _MEDIA_TOKENS + counter.count(part.name or "") + counter.count(part.description or "")
        case ToolCall():
            return _CALL_FRAME + counter.count(part.name) + counter.count(part.arguments)
        case ToolResult():
            return _CALL_FRAME + counter.count(part.name or "") + sum(_count_part(item, counter) for item in part.parts)
        case Unknown():
            return counter.count(part.raw)


def _count_with_frame(text: str, counter: TokenCounter) -> int:
    return _MESSAGE_FRAME + counter.count(text) if text else 0


def _count_tool(tool: ToolSpec, counter: TokenCounter = _ESTIMATOR) -> int:
    written: JsonValue = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return _CALL_FRAME + counter.count(dumps(written))


_message_counts = CountCache(_count_message)
_tool_counts = CountCache(_count_tool)
