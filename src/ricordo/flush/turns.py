"""A conversation as extraction reads it: messages with their statements, and the question each one follows.

Two kinds of conversation are told apart by the names in them: among people (two or more named speakers) everybody is
read alike; else it is a chat between a user and an agent, read as `ricordo.flush.chat` says.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ricordo.flush.chat import select_chat_statements
from ricordo.flush.config import RuleExtractionConfig
from ricordo.flush.credentials import contains_credential
from ricordo.flush.statements import Statement, find_last_question, read_statements, select_statements
from ricordo.flush.types import Utterance

__all__ = ["YES_NO_QUESTION", "ConversationTurn", "answers_question", "preceding_question", "build_turns"]

YES_NO_QUESTION = re.compile(
    r"^(?:(?:so|and|ok|okay|then)[, ]+)?(?:do|does|did|is|are|was|were|should|can|will|have|has|must|may)\b",
    re.IGNORECASE,
)
"""How a question opens that yes or no answers."""
_NEXT_STEP_QUESTION = re.compile(
    r"\b(?:i|me|we (?:start|proceed|continue|try)|go ahead|which (?:file|one|line|of)|next|"
    r"error|message|mean|output|log|help|can you|could you|"
    r"ich|mir|je|puis-je|posso)\b|我|ましょう",
    re.IGNORECASE,
)

_CHOICE_QUESTION = re.compile(
    r"\w,? (?:or|oder|ou|o) \w|还是|それとも|"
    r"^(?:and |so )?(?:where|which|what) .{0,40}\bshould (?:i|we) (?:put|use|call|name|store|keep|pick|target|write)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ConversationTurn:
    """One message read: what it says, what it states, and the question it follows."""

    utterance: Utterance
    sentences: tuple[Statement, ...]
    statements: tuple[Statement, ...]
    among_people: bool
    listener: str | None
    opening: bool
    question_utterance: Utterance | None = None
    question: Statement | None = None


def build_turns(utterances: Sequence[Utterance], config: RuleExtractionConfig) -> Iterator[ConversationTurn]:
    """Yield the user's and the assistant's messages in order; others and blank ones are left out."""
    spoken = [
        utterance for utterance in utterances if utterance.role in {"user", "assistant"} and utterance.text.strip()
    ]
    names = {utterance.speaker for utterance in spoken if utterance.speaker}
    among_people = len(names) > 1
    before: ConversationTurn | None = None
    for at, utterance in enumerate(spoken):
        sentences = read_statements(utterance, config, among_people=among_people)
        follows = before if before and _speaker(before.utterance) != _speaker(utterance) else None
        question = find_last_question(follows.sentences) if follows else None
        told = (
            select_statements(sentences, among_people=True)
            if among_people
            else select_chat_statements(utterance, sentences)
        )
        before = ConversationTurn(
            utterance=utterance,
            sentences=sentences,
            statements=tuple(statement for statement in told if not contains_credential(statement.text)),
            among_people=among_people,
            listener=min(names - {utterance.speaker}) if len(names) == 2 and utterance.speaker else None,
            opening=among_people and at < 2,
            question_utterance=follows.utterance if follows and question else None,
            question=question,
        )
        yield before


def answers_question(turn: ConversationTurn) -> bool:
    """Say whether the message follows a question about how things are, not about what to do next."""
    if turn.question is None:
        return False
    return _CHOICE_QUESTION.search(turn.question.text) is not None or not _NEXT_STEP_QUESTION.search(turn.question.text)


def preceding_question(turn: ConversationTurn) -> tuple[Statement, ...]:
    """Return the question that the message follows; empty when it follows none."""
    return (turn.question,) if turn.question else ()


def _speaker(utterance: Utterance) -> tuple[str, str | None]:
    return utterance.role, utterance.speaker
