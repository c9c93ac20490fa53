"""What a model saved itself while it was talked to: it need not be learned once more from the same words. Pure."""

from collections.abc import Iterator, Sequence

from ricordo.errors import InvalidMessage
from ricordo.language import split_words
from ricordo.messages import Message
from ricordo.messages.jsontext import loads

__all__ = ["SAVING_TOOL", "collect_saved_words"]

SAVING_TOOL = "remember"
"""The name of the tool that saves what the model gives it as `content`."""


def collect_saved_words(messages: Sequence[Message]) -> frozenset[tuple[str, ...]]:
    """Return the words of each text that a call of the saving tool in `messages` has saved; failed calls saved none."""
    failed = {result.call_id for message in messages for result in message.tool_results if result.is_error}
    return frozenset(split_words(content) for call, content in _iter_saved_texts(messages) if call not in failed)


def _iter_saved_texts(messages: Sequence[Message]) -> Iterator[tuple[str, str]]:
    for call in (call for message in messages for call in message.tool_calls if call.name == SAVING_TOOL):
        try:
            arguments = loads(call.arguments)
        except InvalidMessage:
            continue
        if isinstance(arguments, dict) and isinstance(content := arguments.get("content"), str):
            yield call.id, content
