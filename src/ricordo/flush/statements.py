"""From messages to statements: what in a message is said, rather than asked, greeted, praised, offered or pasted.

Reading is per message. Code, logs, quoted lines and headings are left alone; of a message too long to have been typed
only the first and last paragraph count. A sentence that points back ("That was exciting") stays if the sentence
before it stayed, because it completes it, and goes otherwise.

Invariant: a statement's text stands verbatim in its message.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ricordo.flush.config import RuleExtractionConfig
from ricordo.flush.types import Utterance
from ricordo.language import (
    Act,
    Language,
    Sentence,
    detect_acts,
    content_words,
    detect_language,
    find_introduction,
    split_sentences,
    strip_opener,
)

__all__ = ["LASTING_ACTS", "Statement", "find_last_question", "read_statements", "select_statements"]

LASTING_ACTS: frozenset[Act] = frozenset({"remember", "decision", "convention"})
"""Acts that make a sentence worth keeping whatever else it does."""

_NOISE_ACTS: frozenset[Act] = frozenset(
    {"greeting", "farewell", "thanks", "acknowledgement", "praise", "wish", "offer"}
)
_POLITE_ACTS: frozenset[Act] = frozenset({"greeting", "thanks", "acknowledgement", "offer"})
_MIN_NEWS_WORDS = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Statement:
    """One sentence of a message with its acts and distinct content words; offsets count in the message's text.

    `item` is true for a line of a list.
    """

    text: str
    start: int
    end: int
    acts: frozenset[Act]
    words: frozenset[str]
    language: Language
    item: bool = False


def read_statements(utterance: Utterance, config: RuleExtractionConfig, *, among_people: bool) -> tuple[Statement, ...]:
    """Return every prose sentence of a message, questions and small talk included, in order."""
    text = utterance.text
    language = detect_language(text)
    return tuple(
        _build_statement(sentence, language, among_people=among_people)
        for sentence in _iter_sentences(text, config)
        if sentence.kind in {"prose", "item"} and len(sentence.text) <= config.max_sentence_chars
    )


def _build_statement(sentence: Sentence, language: Language, *, among_people: bool) -> Statement:
    """A user's own name is a fact, however short or polite the sentence is that gives it."""
    introduction = None if among_people else find_introduction(sentence.text)
    language = introduction.language if introduction else language
    found = detect_acts(sentence.text, language) if among_people else _detect_chat_acts(sentence.text, language)
    return Statement(
        text=sentence.text,
        start=sentence.start,
        end=sentence.end,
        acts=(found - _NOISE_ACTS - {"reaction", "moment", "request"}) | {"fact", "self"} if introduction else found,
        words=frozenset(content_words(sentence.text, language)),
        language=language,
        item=sentence.kind == "item",
    )


def _detect_chat_acts(text: str, language: Language) -> frozenset[Act]:
    """What follows an opener counts too: "Before you start: use uv, not pip"."""
    rest = strip_opener(text)
    return detect_acts(text, language) | (detect_acts(rest, language) if rest != text else frozenset())


def select_statements(sentences: tuple[Statement, ...], *, among_people: bool) -> tuple[Statement, ...]:
    """Return the sentences that state something, in order; empty for small talk, questions and tasks."""
    kept: list[Statement] = []
    for at, sentence in enumerate(sentences):
        follows = bool(kept) and sentences[at - 1] is kept[-1]
        if _is_statement(sentence, follows=follows, among_people=among_people):
            kept.append(sentence)
    return tuple(kept)


def find_last_question(sentences: tuple[Statement, ...]) -> Statement | None:
    """Return the last question of a message that has content; None when it asks nothing."""
    asked = [sentence for sentence in sentences if "question" in sentence.acts and sentence.words]
    return asked[-1] if asked else None


def _iter_sentences(text: str, config: RuleExtractionConfig) -> Iterator[Sentence]:
    if len(text) <= config.max_message_chars:
        yield from split_sentences(text)
        return
    for start, end in _outer_paragraphs(text, config.max_sentence_chars):
        for sentence in split_sentences(text[start:end]):
            yield Sentence(
                text=sentence.text, start=start + sentence.start, end=start + sentence.end, kind=sentence.kind
            )


def _outer_paragraphs(text: str, longest: int) -> list[tuple[int, int]]:
    """The first and last paragraph of a paste, each only if it is short enough to have been typed."""
    head, tail = text.find("\n\n"), text.rfind("\n\n")
    spans = [(0, head), (tail + 2, len(text))] if 0 <= head < tail else []
    return [(start, end) for start, end in spans if end - start <= longest]


def _is_statement(sentence: Statement, *, follows: bool, among_people: bool) -> bool:
    found = sentence.acts
    about_listener = among_people and "listener" in found and "self" not in found
    if "question" in found or about_listener or not sentence.words:
        return False
    if found & LASTING_ACTS and not ("praise" in found or among_people):
        return True
    if found & _NOISE_ACTS and not _has_news(sentence):
        return False
    if "reaction" in found:
        return follows
    return "request" not in found or ("self" in found if among_people else "preference" in found)


def _has_news(sentence: Statement) -> bool:
    """A polite opening may lead into news about the speaker: "Thanks, I got the job at the museum"."""
    return (
        not sentence.acts & (_NOISE_ACTS - _POLITE_ACTS)
        and "self" in sentence.acts
        and len(sentence.words) >= _MIN_NEWS_WORDS
    )
