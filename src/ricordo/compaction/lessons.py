"""Lessons: what a model noted while it summed up, as findings that rest on what somebody said.

Pure. Invariant: every finding quotes, word for word, a message that was to be learned from; a note that quotes nothing
that was said there is left out, whatever it claims.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from ricordo.flush.credentials import bears_credential
from ricordo.flush.types import Finding
from ricordo.messages import JsonValue, Message, mark_of

__all__ = ["KINDS", "LESSONS_FORM", "MOST_LESSONS", "learnable", "lessons_in"]

KINDS = ("fact", "decision", "preference", "lesson", "convention", "goal")
"""What a lesson may be; anything else is a fact."""

MOST_LESSONS = 12
"""How many lessons one answer may give."""

LESSONS_FORM: Mapping[str, JsonValue] = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "content": {"type": "string", "description": "one thing to remember, understandable by itself"},
            "kind": {"type": "string", "enum": list(KINDS)},
            "quote": {"type": "string", "description": "the words that it rests on, copied exactly"},
            "message": {"type": "string", "description": "the id of the message that holds these words"},
        },
        "required": ["content", "kind", "quote", "message"],
        "additionalProperties": False,
    },
}
"""The JSON schema of the lessons."""

_LONGEST = 700
_LONGEST_QUOTE = 2_000
_FEWEST_MARKS = 3
_SAID_BY: Mapping[str, float] = {"user": 0.7, "assistant": 0.5}


def learnable(message: Message) -> bool:
    """Tell whether lessons may rest on a message: a person or the assistant said it, and no tool."""
    said = message.role in _SAID_BY and not message.tool_results and mark_of(message) in {None, "cut"}
    return said and bool(message.id) and bool(message.text.strip())


def lessons_in(value: JsonValue, messages: Sequence[Message]) -> tuple[Finding, ...] | None:
    """Return the lessons of an answer, in its order, each once; `messages` are those that they may rest on.

    None when the answer can't be used: it is no list, or not one of its notes rests on what was said. Empty when there
    was nothing to learn.
    """
    if not isinstance(value, list):
        return None
    found: dict[str, Finding] = {}
    for each in value[:MOST_LESSONS]:
        finding = _finding(each, messages) if isinstance(each, dict) else None
        if finding is not None:
            found.setdefault(finding.content.casefold(), finding)
    return tuple(found.values()) if found or not value else None


def _finding(note: Mapping[str, JsonValue], messages: Sequence[Message]) -> Finding | None:
    content, kind, quote = (_text(note, name) for name in ("content", "kind", "quote"))
    content = " ".join(content.split())
    if not content or len(content) > _LONGEST or bears_credential(content):
        return None
    for message in _likely(messages, _text(note, "message").strip(" []")):
        words = _span(quote, message.text)
        if words and not bears_credential(words):
            return Finding(
                content=content,
                kind=kind.casefold() if kind.casefold() in KINDS else "fact",
                confidence=_SAID_BY[message.role],
                message_ids=(message.id,),
                quote=words,
                since=message.time,
            )
    return None


def _likely(messages: Sequence[Message], cited: str) -> Iterator[Message]:
    """Yield the message that is cited, then what people said, then the rest; the quote decides among them."""

    def rank(message: Message) -> int:
        named = bool(cited) and (message.id.startswith(cited) or message.id.endswith(cited))
        return 0 if named else 1 if message.role == "user" else 2

    yield from sorted(messages, key=rank)


def _span(quote: str, text: str) -> str:
    """Return the words of `quote` as they stand in `text`, whatever the space between them; empty when they don't."""
    words = quote[: _LONGEST_QUOTE + 1].split()
    if len(quote) > _LONGEST_QUOTE or sum(mark.isalnum() for mark in quote) < _FEWEST_MARKS:
        return ""
    found = re.search(r"\s+".join(map(re.escape, words)), text)
    return found[0] if found else ""


def _text(note: Mapping[str, JsonValue], name: str) -> str:
    found = note.get(name)
    return found.strip() if isinstance(found, str) else ""
