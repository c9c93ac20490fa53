"""What every provider refuses: conversations in which tool calls and their results do not belong together."""

from collections.abc import Sequence

from ricordo.messages import Message, Place, ToolCall, ToolResult, pair

__all__ = ["refusal"]


def refusal(messages: Sequence[Message]) -> str:
    """Say why a provider would refuse `messages`; an empty text when it would take them."""
    pairing = pair(messages)
    orphans = [_id_at(messages, place) for place in pairing.orphans]
    if orphans:
        return f"Tool results without their calls: {', '.join(orphans)}."
    unanswered = [_id_at(messages, place) for place in (*pairing.abandoned, *pairing.pending)]
    return f"Tool calls without their results: {', '.join(unanswered)}." if unanswered else ""


def _id_at(messages: Sequence[Message], place: Place) -> str:
    match messages[place.message].parts[place.part]:
        case ToolCall(id=id):
            return id
        case ToolResult(call_id=call_id):
            return call_id
        case _:
            return "?"
