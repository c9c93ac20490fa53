"""Reading what a provider's package hands back: the reply as a message, its pieces, and how it ended."""

from decimal import Decimal

from pydantic_ai.messages import (
    ModelMessagesTypeAdapter,
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
)

from ricordo.messages import Message, Text, ToolCall
from ricordo.messages.dialects.pydantic_ai import from_pydantic_ai
from ricordo.models.contract import Delta, StopReason, TextDelta, ThinkingDelta
from ricordo.models.overflow import WINDOW_STOP
from ricordo.models.structured import ANSWER_TOOL

__all__ = ["compute_cost", "read_delta", "has_ended", "read_reply", "read_stop_reason"]

_STOPS: dict[str, StopReason] = {"stop": "end", "tool_call": "tools", "length": "length", "content_filter": "refused"}
_COUNT_FIELDS = frozenset({"input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"})


def read_reply(response: ModelResponse) -> Message:
    """Return the reply as a message, without what no later request needs: the address, and counts of other kinds.

    The call of the answer's tool, which nobody runs, becomes the text that it stands for.
    """
    (dumped,) = ModelMessagesTypeAdapter.dump_python([response], mode="json")
    dumped["usage"] = {name: count for name, count in dumped["usage"].items() if name in _COUNT_FIELDS}
    dumped["provider_url"] = None
    return _with_answer_as_text(from_pydantic_ai([dumped])[0])


def _with_answer_as_text(message: Message) -> Message:
    """Return `message` with the call of the answer's tool, which nobody runs, as the text that it stands for."""
    if not any(call.name == ANSWER_TOOL for call in message.tool_calls):
        return message
    parts = tuple(
        Text(text=part.arguments) if isinstance(part, ToolCall) and part.name == ANSWER_TOOL else part
        for part in message.parts
        if not isinstance(part, Text)
    )
    return Message(role=message.role, parts=parts, time=message.time, usage=message.usage)


def read_delta(event: ModelResponseStreamEvent) -> Delta | None:
    """Return what an event of a stream adds to the text or the thoughts; None for any other one."""
    match event:
        case PartStartEvent(part=TextPart(content=str(text))) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            return TextDelta(text=text) if text else None
        case PartStartEvent(part=ThinkingPart(content=str(text))):
            return ThinkingDelta(text=text) if text else None
        case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=str(text))):
            return ThinkingDelta(text=text) if text else None
        case _:
            return None


def _read_raw_stop(response: ModelResponse) -> str:
    found = (response.provider_details or {}).get("finish_reason")
    return found if isinstance(found, str) else ""


def has_ended(response: ModelResponse) -> bool:
    """Tell whether the provider said that the reply ended; pydantic-ai fills in a `stop` that nobody said."""
    return bool(_read_raw_stop(response)) or response.finish_reason not in (None, "stop")


def read_stop_reason(response: ModelResponse, message: Message) -> StopReason:
    """Return why a reply ended, `message` being what it says."""
    if _read_raw_stop(response) == WINDOW_STOP:
        return "window"
    stop = _STOPS.get(response.finish_reason or "", "end")
    if stop in ("end", "tools"):
        return "tools" if message.tool_calls else "end"
    return stop


def compute_cost(response: ModelResponse) -> Decimal | None:
    """Return the price by the tables inside the package genai-prices, which ask no network."""
    if response.usage.cost is not None:
        return response.usage.cost
    if not response.model_name:
        return None
    try:
        return response.cost().total_price
    except (LookupError, ValueError):
        return None
