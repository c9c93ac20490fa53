"""Where a new fact comes from: the message and the words that it rests on, and which files were handed over. Pure.

Invariant: a fact that names a message has a quote, and that stands in the text of the first message it names. A fact
that nothing supports names no message, and the gate turns it down.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from ricordo.guard.fence import contains_fence
from ricordo.language.sentences import split_sentences
from ricordo.language.similarity import containment
from ricordo.language.words import content_words
from ricordo.messages.marks import mark_of
from ricordo.messages.types import JsonValue, Media, Message
from ricordo.profile.gate import sure
from ricordo.profile.types import NewFact, ProfileUpdate
from ricordo.workspace.profile import FactSource

__all__ = ["learnable", "rested", "uploaded"]

_LONGEST_QUOTE = 2_000
_SHORT_QUOTE = 300
_FEWEST_MARKS = 3
_SUPPORTED = 0.6
_FEWEST_WORDS = 2
_UNQUOTED = 0.85
_BY_ASSISTANT = 0.8
_SHORTEST_NAME = 5
_LISTS = ("files", "uploads", "attachments")
_NAMES = ("filename", "name", "path", "file_name", "title")
_LIGHT = frozenset(content_words("user users person", "en"))


def learnable(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return the messages that a user or an assistant said; not what memory or a host put in, nor calls of tools."""
    return tuple(
        message
        for message in messages
        if message.role in {"user", "assistant"}
        and not message.tool_calls
        and mark_of(message) in {None, "cut"}
        and message.text.strip()
        and not contains_fence(message.text)
    )


def rested(update: ProfileUpdate, messages: Sequence[Message], thread: str) -> ProfileUpdate:
    """Return an update whose new facts name what they rest on in `messages`, which are of `thread`.

    A fact whose quote nobody said, and whose words one message holds, gets the sentence of it that does, and is less
    sure; what only an assistant said is less sure too.
    """
    mergings = tuple(
        replace(each, fact=replace(each.fact, source=FactSource(thread="consolidation"))) for each in update.mergings
    )
    return replace(update, facts=tuple(_rested(fact, messages, thread) for fact in update.facts), mergings=mergings)


def uploaded(messages: Sequence[Message]) -> frozenset[str]:
    """Return the names of the files that the metadata and the media of messages say were handed over."""
    found: set[str] = set()
    for message in messages:
        inner = message.metadata.get("additional_kwargs")
        for place in (message.metadata, inner if isinstance(inner, dict) else {}):
            for key in _LISTS:
                found.update(_names(place.get(key)))
        found.update(part.name for part in message.parts if isinstance(part, Media) and part.name)
    bare = {name.replace("\\", "/").rpartition("/")[2] for name in found} | found
    return frozenset(name for name in bare if len(name) >= _SHORTEST_NAME and "." in name.strip("."))


def _names(listed: JsonValue) -> Iterator[str]:
    for each in listed if isinstance(listed, list) else []:
        if isinstance(each, str):
            yield each
        elif isinstance(each, dict):
            yield from (value for key in _NAMES if isinstance(value := each.get(key), str))


def _rested(fact: NewFact, messages: Sequence[Message], thread: str) -> NewFact:
    surety = sure(fact.confidence)
    if surety is None:
        return fact
    known = {message.id for message in messages}
    # what a person said goes before what an assistant said in the same words
    ordered = sorted(messages, key=lambda message: (message.id not in fact.source.messages, message.role != "user"))
    for message in ordered:
        words = _span(fact.source.quote, message.text)
        if words:
            return _by(fact, message, surety, thread, known=known, quote=words)
    supporting = max(ordered, key=lambda message: _support(fact.content, message), default=None)
    if supporting is not None and _support(fact.content, supporting) >= _SUPPORTED:
        quote = _telling(fact.content, supporting.text)
        return _by(fact, supporting, surety * _UNQUOTED, thread, known=known, quote=quote)
    return replace(fact, source=FactSource(thread=thread))


def _by(
    fact: NewFact, message: Message, surety: float, thread: str, *, known: Collection[str], quote: str = ""
) -> NewFact:
    weight = 1.0 if message.role == "user" else _BY_ASSISTANT
    further = tuple(each for each in fact.source.messages if each in known and each != message.id)
    source = FactSource(thread=thread, messages=(message.id, *further), quote=quote)
    return replace(fact, confidence=round(surety * weight, 4), source=source)


def _support(content: str, message: Message) -> float:
    wanted = [word for word in content_words(content) if word not in _LIGHT]
    if len(set(wanted)) < _FEWEST_WORDS:
        return 0.0
    return containment(wanted, content_words(message.text))


def _telling(content: str, text: str) -> str:
    """Return the sentence of `text` that holds most of the words of `content`, as it stands there."""
    wanted = content_words(content)
    sentences = [sentence.text for sentence in split_sentences(text)] or [text]
    return max(sentences, key=lambda sentence: containment(wanted, content_words(sentence))).strip()[:_SHORT_QUOTE]


def _span(quote: str, text: str) -> str:
    """Return the words of `quote` as they stand in `text`, whatever the space between them; empty when they don't."""
    words = quote[: _LONGEST_QUOTE + 1].split()
    if len(quote) > _LONGEST_QUOTE or sum(mark.isalnum() for mark in quote) < _FEWEST_MARKS:
        return ""
    found = re.search(r"\s+".join(map(re.escape, words)), text)
    return found[0][:_SHORT_QUOTE].rstrip() if found else ""
