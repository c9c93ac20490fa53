"""Extraction without a model: messages in, findings out.

The step between stored messages and the pure plan: it takes the text that people and assistants said and leaves the
rest. Tool calls, tool results and thoughts are no statements of anybody; an assistant message that calls tools only
announces work; a message that is marked as nobody's, or carries a block of recalled memory, was written by the memory
itself and is never learned again."""

from collections.abc import Iterator, Sequence

from ricordo.flush.config import RuleExtractionConfig
from ricordo.flush.plan import extract_from_utterances
from ricordo.flush.types import Finding, Utterance
from ricordo.guard.fence import contains_fence
from ricordo.messages.marks import get_mark
from ricordo.messages.types import Media, Message

__all__ = ["extract"]

_DEFAULT_CONFIG = RuleExtractionConfig()


def extract(messages: Sequence[Message], config: RuleExtractionConfig = _DEFAULT_CONFIG) -> tuple[Finding, ...]:
    """Return what the messages hold that is worth remembering, in message order; empty when nothing is.

    A message's `name` is its speaker; two or more names make a conversation among people.
    """
    return extract_from_utterances(tuple(_iter_utterances(messages)), config)


def _iter_utterances(messages: Sequence[Message]) -> Iterator[Utterance]:
    for message in messages:
        if message.role not in {"user", "assistant"} or message.tool_calls:
            continue
        text = message.text
        said = get_mark(message) in {None, "cut"}
        if said and text.strip() and not contains_fence(text):
            yield Utterance(
                message_id=message.id,
                role=message.role,
                text=text,
                speaker=message.name,
                time=message.time,
                media=tuple(part.description for part in message.parts if isinstance(part, Media) and part.description),
            )
