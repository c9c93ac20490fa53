"""What memory itself put into a conversation, and who only says it again.

Recalled text is known by its mark, or by its fence where a host strips metadata; whatever the name of the fence, only
memory makes one. An assistant that repeats recalled text teaches nothing, in the same words or in nearly the same.
"""

import re
from collections.abc import Iterator, Sequence

from ricordo.flush.gaps import joined
from ricordo.guard.fence import unfence
from ricordo.language import content_words, split_sentences, strip_accents
from ricordo.messages import Message, mark_of

__all__ = ["keys_of", "recalled_in", "restates", "without_echoes", "without_fences"]

_FENCE = re.compile(
    r"<(?P<name>[a-z][a-z0-9_-]{0,40})(?: note=\"[^\"\n]*\")?>\n<(?P=name)-item source=\"[^\"\n]*\" trust=\"[a-z]+\""
)
_FEWEST = 2
_STEM = 6
_HELD = 0.75
_LONGEST = 2_000


def without_fences(text: str) -> tuple[str, tuple[str, ...]]:
    """Return `text` without the blocks that memory put there, and those blocks; a block that was cut off goes whole."""
    left: list[str] = []
    blocks: list[str] = []
    at = 0
    while (opening := _FENCE.search(text, at)) is not None:
        closing = f"\n</{opening['name']}>"
        end = text.find(closing, opening.end())
        stop = len(text) if end < 0 else end + len(closing)
        left.append(text[at : opening.start()])
        blocks.append(text[opening.start() : stop])
        at = stop
    if not blocks:
        return text, ()
    return joined((*left, text[at:])), tuple(blocks)


def recalled_in(messages: Sequence[Message]) -> tuple[str, ...]:
    """Return each text that memory recalled into `messages`, in order, repeats left out."""
    return tuple(dict.fromkeys(text for message in messages for text in _recalled(message)))


def restates(statement: str, recalled: Sequence[frozenset[str]]) -> bool:
    """Say whether a statement says no more than one of the recalled texts (see `keys_of`)."""
    own = keys_of(statement)
    if len(own) < _FEWEST:
        return False
    return any(_same(own, other) for other in recalled)


def keys_of(text: str) -> frozenset[str]:
    """Return what a text is compared by: its content words without accents, cut to six letters; y counts as i."""
    return frozenset(strip_accents(word)[:_STEM].replace("y", "i") for word in content_words(text[:_LONGEST]))


def without_echoes(text: str, recalled: Sequence[frozenset[str]]) -> str:
    """Return `text` without the sentences that only restate what was recalled, each run of them a gap; "" when
    nothing else is in it."""
    if not recalled:
        return text
    left: list[str] = []
    rest = at = 0
    for sentence in split_sentences(text):
        if sentence.kind in {"prose", "item"} and restates(sentence.text, recalled):
            left.append(text[at : sentence.start])
            at = sentence.end
        else:
            rest += 1
    if not at:
        return text
    return joined(part.strip(" \t\n-*•") for part in (*left, text[at:])) if rest else ""


def _same(own: frozenset[str], other: frozenset[str]) -> bool:
    """The statement says nearly nothing else, or nearly all of the other and not much beside it."""
    shared = len(own & other)
    if shared < min(_FEWEST, len(other)) or not other:
        return False
    return shared >= _HELD * len(own) or (shared >= _HELD * len(other) and len(own) <= 2 * len(other) + 1)


def _recalled(message: Message) -> Iterator[str]:
    texts = [message.text, *(result.text for result in message.tool_results)]
    for block in (block for text in texts for block in without_fences(text)[1]):
        yield from unfence(block) or (block,)
    if mark_of(message) == "memory" and not without_fences(message.text)[1] and message.text.strip():
        yield message.text
