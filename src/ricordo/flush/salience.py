"""How much a message's statements are worth remembering.

A sum of signals that a person can follow, each with a reason: content (more words say more), the speaker (people are
remembered by what they say of themselves), a date (events have one), an answer (somebody wanted to know), the opening
of a conversation (people start with their news), specifics (names, numbers, identifiers). Every sentence costs a
little, so that talk spread thin does not pass for substance. The weights are rounded from a logistic fit on half of a
set of annotated conversations and confirmed on the other half; see docs/design/extraction.md.

Invariant: the score depends on the statements and their surroundings only, never on the rest of the memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ricordo.flush.statements import Statement

__all__ = ["SalienceFeatures", "score_salience"]

_WORD_WEIGHT = 0.12
_MAX_WORDS = 30
_SELF_WEIGHT = 0.55
_MAX_SELF = 4
_SENTENCE_WEIGHT = -0.3
_DATE_WEIGHT = 0.8
_ANSWER_WEIGHT = 0.5
_OPENING_WEIGHT = 0.8
_SPECIFIC_WEIGHT = 0.15
_MAX_SPECIFIC = 2
_UNSURE_WEIGHT = -0.6


@dataclass(frozen=True, kw_only=True, slots=True)
class SalienceFeatures:
    """Where the statements stand: after a question, at the opening, and what they mention."""

    is_answer: bool = False
    is_opening: bool = False
    dates: int = 0
    specifics: int = 0


def score_salience(statements: Sequence[Statement], around: SalienceFeatures) -> float:
    """Return the score of one message's statements: about 0 for small talk, 1 and more for news; 0 for none."""
    if not statements:
        return 0.0
    words = len(frozenset[str]().union(*(statement.words for statement in statements)))
    about_self = sum("self" in statement.acts for statement in statements)
    unsure = any("hypothetical" in statement.acts for statement in statements)
    return (
        _WORD_WEIGHT * min(words, _MAX_WORDS)
        + _SELF_WEIGHT * min(about_self, _MAX_SELF)
        + _SENTENCE_WEIGHT * len(statements)
        + _DATE_WEIGHT * bool(around.dates)
        + _ANSWER_WEIGHT * around.is_answer
        + _OPENING_WEIGHT * around.is_opening
        + _SPECIFIC_WEIGHT * min(around.specifics, _MAX_SPECIFIC)
        + _UNSURE_WEIGHT * unsure
    )
