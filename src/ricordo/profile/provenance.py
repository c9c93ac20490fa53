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
from ricordo.messages.marks import get_mark
from ricordo.messages.types import JsonValue, Media, Message
from ricordo.profile.gate import parse_confidence
from ricordo.profile.types import NewFact, ProfileUpdate
from ricordo.workspace.profile import FactSource

__all__ = ["select_learnable", "attach_sources", "find_uploads"]

_MAX_QUOTE = 2_000
_MAX_STORED_QUOTE = 300
_MIN_QUOTE_LETTERS = 3
_MIN_SUPPORT = 0.6
_MIN_CONTENT_WORDS = 2
_UNQUOTED_WEIGHT = 0.85
_ASSISTANT_WEIGHT = 0.8
_MIN_NAME = 5
_UPLOAD_KEYS = ("files", "uploads", "attachments")
_NAME_KEYS = ("filename", "name", "path", "file_name", "title")
_GENERIC_WORDS = frozenset(content_words("user users person", "en"))


def select_learnable(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return the messages that a user or an assistant said; not what memory or a host put in, nor calls of tools."""
    return tuple(
        message
        for message in messages
        if message.role in {"user", "assistant"}
        and not message.tool_calls
        and get_mark(message) in {None, "cut"}
        and message.text.strip()
        and not contains_fence(message.text)
    )


def attach_sources(update: ProfileUpdate, messages: Sequence[Message], thread: str) -> ProfileUpdate:
    """Return an update whose new facts name what they rest on in `messages`, which are of `thread`.

    A fact whose quote nobody said, and whose words one message holds, gets the sentence of it that does, and is less
    sure; what only an assistant said is less sure too.
    """
    mergings = tuple(
        replace(each, fact=replace(each.fact, source=FactSource(thread="consolidation"))) for each in update.mergings
    )
    return replace(
        update, facts=tuple(_attach_source(fact, messages, thread) for fact in update.facts), mergings=mergings
    )


def find_uploads(messages: Sequence[Message]) -> frozenset[str]:
    """Return the names of the files that the metadata and the media of messages say were handed over."""
    found: set[str] = set()
    for message in messages:
        inner = message.metadata.get("additional_kwargs")
        for place in (message.metadata, inner if isinstance(inner, dict) else {}):
            for key in _UPLOAD_KEYS:
                found.update(_upload_names(place.get(key)))
        found.update(part.name for part in message.parts if isinstance(part, Media) and part.name)
    bare = {name.replace("\\", "/").rpartition("/")[2] for name in found} | found
    return frozenset(name for name in bare if len(name) >= _MIN_NAME and "." in name.strip("."))


def _upload_names(listed: JsonValue) -> Iterator[str]:
    for each in listed if isinstance(listed, list) else []:
        if isinstance(each, str):
            yield each
        elif isinstance(each, dict):
            yield from (value for key in _NAME_KEYS if isinstance(value := each.get(key), str))


def _attach_source(fact: NewFact, messages: Sequence[Message], thread: str) -> NewFact:
    surety = parse_confidence(fact.confidence)
    if surety is None:
        return fact
    known = {message.id for message in messages}
    # what a person said goes before what an assistant said in the same words
    ordered = sorted(messages, key=lambda message: (message.id not in fact.source.messages, message.role != "user"))
    for message in ordered:
        words = _find_quote(fact.source.quote, message.text)
        if words:
            return _with_source(fact, message, surety, thread, known=known, quote=words)
    supporting = max(ordered, key=lambda message: _support_score(fact.content, message), default=None)
    if supporting is not None and _support_score(fact.content, supporting) >= _MIN_SUPPORT:
        quote = _find_supporting_sentence(fact.content, supporting.text)
        return _with_source(fact, supporting, surety * _UNQUOTED_WEIGHT, thread, known=known, quote=quote)
    return replace(fact, source=FactSource(thread=thread))


def _with_source(
    fact: NewFact, message: Message, surety: float, thread: str, *, known: Collection[str], quote: str = ""
) -> NewFact:
    weight = 1.0 if message.role == "user" else _ASSISTANT_WEIGHT
    further = tuple(each for each in fact.source.messages if each in known and each != message.id)
    source = FactSource(thread=thread, messages=(message.id, *further), quote=quote)
    return replace(fact, confidence=round(surety * weight, 4), source=source)


def _support_score(content: str, message: Message) -> float:
    wanted = [word for word in content_words(content) if word not in _GENERIC_WORDS]
    if len(set(wanted)) < _MIN_CONTENT_WORDS:
        return 0.0
    return containment(wanted, content_words(message.text))


def _find_supporting_sentence(content: str, text: str) -> str:
    """Return the sentence of `text` that holds most of the words of `content`, as it stands there."""
    wanted = content_words(content)
    sentences = [sentence.text for sentence in split_sentences(text)] or [text]
    return max(sentences, key=lambda sentence: containment(wanted, content_words(sentence))).strip()[:_MAX_STORED_QUOTE]


def _find_quote(quote: str, text: str) -> str:
    """Return the words of `quote` as they stand in `text`, whatever the space between them; empty when they don't."""
    words = quote[: _MAX_QUOTE + 1].split()
    if len(quote) > _MAX_QUOTE or sum(mark.isalnum() for mark in quote) < _MIN_QUOTE_LETTERS:
        return ""
    found = re.search(r"\s+".join(map(re.escape, words)), text)
    return found[0][:_MAX_STORED_QUOTE].rstrip() if found else ""
