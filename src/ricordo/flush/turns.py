"""A conversation as extraction reads it: messages with their statements, and the question each one follows.

Two kinds of conversation are told apart by the names in them: among people (two or more named speakers) everybody is
read alike; else it is a chat between a user and an agent, read as `ricordo.flush.chat` says.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ricordo.flush.chat import chat_statements
from ricordo.flush.config import ExtractionConfig
from ricordo.flush.credentials import bears_credential
from ricordo.flush.statements import Statement, last_question, read, stated
from ricordo.flush.types import Utterance

__all__ = ["YES_NO", "Turn", "answers", "asked", "turns"]

YES_NO = re.compile(
    r"^(?:(?:so|and|ok|okay|then)[, ]+)?(?:do|does|did|is|are|was|were|should|can|will|have|has|must|may)\b",
    re.IGNORECASE,
)
"""How a question opens that yes or no answers."""
_NEXT_STEP = re.compile(
    r"\b(?:i|me|we (?:start|proceed|continue|try)|go ahead|which (?:file|one|line|of)|next|"
    r"error|message|mean|output|log|help|can you|could you|"
    r"ich|mir|je|puis-je|posso)\b|我|ましょう",
    re.IGNORECASE,
)

_CHOICE = re.compile(
    r"\w,? (?:or|oder|ou|o) \w|还是|それとも|"
    r"^(?:and |so )?(?:where|which|what) .{0,40}\bshould (?:i|we) (?:put|use|call|name|store|keep|pick|target|write)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Turn:
    """One message read: what it says, what it states, and the question it follows."""

    utterance: Utterance
    sentences: tuple[Statement, ...]
    statements: tuple[Statement, ...]
    among_people: bool
    listener: str | None
    opening: bool
    asker: Utterance | None = None
    question: Statement | None = None


def turns(utterances: Sequence[Utterance], config: ExtractionConfig) -> Iterator[Turn]:
    """Yield the user's and the assistant's messages in order; others and blank ones are left out."""
    spoken = [
        utterance for utterance in utterances if utterance.role in {"user", "assistant"} and utterance.text.strip()
    ]
    names = {utterance.speaker for utterance in spoken if utterance.speaker}
    among_people = len(names) > 1
    before: Turn | None = None
    for at, utterance in enumerate(spoken):
        sentences = read(utterance, config, among_people=among_people)
        follows = before if before and _speaker(before.utterance) != _speaker(utterance) else None
        question = last_question(follows.sentences) if follows else None
        told = stated(sentences, among_people=True) if among_people else chat_statements(utterance, sentences)
        before = Turn(
            utterance=utterance,
            sentences=sentences,
            statements=tuple(statement for statement in told if not bears_credential(statement.text)),
            among_people=among_people,
            listener=min(names - {utterance.speaker}) if len(names) == 2 and utterance.speaker else None,
            opening=among_people and at < 2,
            asker=follows.utterance if follows and question else None,
            question=question,
        )
        yield before


def answers(turn: Turn) -> bool:
    """Say whether the message follows a question about how things are, not about what to do next."""
    if turn.question is None:
        return False
    return _CHOICE.search(turn.question.text) is not None or not _NEXT_STEP.search(turn.question.text)


def asked(turn: Turn) -> tuple[Statement, ...]:
    """Return the question that the message follows; empty when it follows none."""
    return (turn.question,) if turn.question else ()


def _speaker(utterance: Utterance) -> tuple[str, str | None]:
    return utterance.role, utterance.speaker
