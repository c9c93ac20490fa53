"""What every provider refuses: conversations in which tool calls and their results do not belong together."""

from collections.abc import Sequence

from ricordo.messages import Message, PartPosition, ToolCall, ToolResult, pair_calls

__all__ = ["pairing_refusal"]


def pairing_refusal(messages: Sequence[Message]) -> str:
    """Say why a provider would refuse `messages`; an empty text when it would take them."""
    pairing = pair_calls(messages)
    orphans = [_call_id_at(messages, place) for place in pairing.orphans]
    if orphans:
        return f"Tool results without their calls: {', '.join(orphans)}."
    unanswered = [_call_id_at(messages, place) for place in (*pairing.abandoned, *pairing.pending)]
    return f"Tool calls without their results: {', '.join(unanswered)}." if unanswered else ""


def _call_id_at(messages: Sequence[Message], place: PartPosition) -> str:
    match messages[place.message].parts[place.part]:
        case ToolCall(id=id):
            return id
        case ToolResult(call_id=call_id):
            return call_id
        case _:
            return "?"
