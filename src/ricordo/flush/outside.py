"""What an assistant said and a tool had printed before: learned, but as what came from outside. Pure."""

from collections.abc import Sequence

from ricordo.flush.types import Finding
from ricordo.language import repeats_sentence
from ricordo.messages import Message

__all__ = ["repeats_tool_output"]


def repeats_tool_output(finding: Finding, messages: Sequence[Message]) -> bool:
    """Tell whether an assistant states the finding, after a tool printed it, and no user said it before.

    `messages` are those that it was found in, in their order, with some before them.
    """
    stated = next((at for at, message in enumerate(messages) if message.id == finding.message_ids[0]), None)
    if stated is None or messages[stated].role != "assistant":
        return False
    before = messages[:stated]
    if not any(message.tool_results for message in before):
        return False
    if any(repeats_sentence(finding.quote, message.text) for message in before if message.role == "user"):
        return False
    return any(repeats_sentence(finding.quote, result.text) for message in before for result in message.tool_results)
