"""What memory itself put into a conversation, and who only says it again.

Recalled text is known by its mark, or by its fence where a host strips metadata; whatever the name of the fence, only
memory makes one. An assistant that repeats recalled text teaches nothing, in the same words or in nearly the same.
"""

import re
from collections.abc import Iterator, Sequence

from ricordo.flush.gaps import join_with_gaps
from ricordo.guard.fence import parse_fence
from ricordo.language import content_words, split_sentences, strip_accents
from ricordo.messages import Message, get_mark

__all__ = ["comparison_keys", "find_recalled_texts", "is_restatement", "strip_echoes", "strip_fences"]

_FENCE_OPENING = re.compile(
    r"<(?P<name>[a-z][a-z0-9_-]{0,40})(?: note=\"[^\"\n]*\")?>\n<(?P=name)-item source=\"[^\"\n]*\" trust=\"[a-z]+\""
)
_MIN_KEYS = 2
_KEY_LETTERS = 6
_MIN_SHARED = 0.75
_MAX_KEYED_CHARS = 2_000


def strip_fences(text: str) -> tuple[str, tuple[str, ...]]:
    """Return `text` without the blocks that memory put there, and those blocks; a block that was cut off goes whole."""
    left: list[str] = []
    blocks: list[str] = []
    at = 0
    while (opening := _FENCE_OPENING.search(text, at)) is not None:
        closing = f"\n</{opening['name']}>"
        end = text.find(closing, opening.end())
        stop = len(text) if end < 0 else end + len(closing)
        left.append(text[at : opening.start()])
        blocks.append(text[opening.start() : stop])
        at = stop
    if not blocks:
        return text, ()
    return join_with_gaps((*left, text[at:])), tuple(blocks)


def find_recalled_texts(messages: Sequence[Message]) -> tuple[str, ...]:
    """Return each text that memory recalled into `messages`, in order, repeats left out."""
    return tuple(dict.fromkeys(text for message in messages for text in _iter_recalled_texts(message)))


def is_restatement(statement: str, recalled: Sequence[frozenset[str]]) -> bool:
    """Say whether a statement says no more than one of the recalled texts (see `comparison_keys`)."""
    own = comparison_keys(statement)
    if len(own) < _MIN_KEYS:
        return False
    return any(_has_same_content(own, other) for other in recalled)


def comparison_keys(text: str) -> frozenset[str]:
    """Return what a text is compared by: its content words without accents, cut to six letters; y counts as i."""
    return frozenset(
        strip_accents(word)[:_KEY_LETTERS].replace("y", "i") for word in content_words(text[:_MAX_KEYED_CHARS])
    )


def strip_echoes(text: str, recalled: Sequence[frozenset[str]]) -> str:
    """Return `text` without the sentences that only restate what was recalled, each run of them a gap; "" when
    nothing else is in it."""
    if not recalled:
        return text
    left: list[str] = []
    rest = at = 0
    for sentence in split_sentences(text):
        if sentence.kind in {"prose", "item"} and is_restatement(sentence.text, recalled):
            left.append(text[at : sentence.start])
            at = sentence.end
        else:
            rest += 1
    if not at:
        return text
    return join_with_gaps(part.strip(" \t\n-*•") for part in (*left, text[at:])) if rest else ""


def _has_same_content(own: frozenset[str], other: frozenset[str]) -> bool:
    """The statement says nearly nothing else, or nearly all of the other and not much beside it."""
    shared = len(own & other)
    if shared < min(_MIN_KEYS, len(other)) or not other:
        return False
    return shared >= _MIN_SHARED * len(own) or (shared >= _MIN_SHARED * len(other) and len(own) <= 2 * len(other) + 1)


def _iter_recalled_texts(message: Message) -> Iterator[str]:
    texts = [message.text, *(result.text for result in message.tool_results)]
    for block in (block for text in texts for block in strip_fences(text)[1]):
        yield from parse_fence(block) or (block,)
    if get_mark(message) == "memory" and not strip_fences(message.text)[1] and message.text.strip():
        yield message.text
