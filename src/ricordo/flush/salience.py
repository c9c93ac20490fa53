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

__all__ = ["Surroundings", "salience"]

_PER_WORD = 0.12
_MOST_WORDS = 30
_SELF = 0.55
_MOST_SELF = 4
_SENTENCE = -0.3
_DATED = 0.8
_ANSWER = 0.5
_OPENING = 0.8
_SPECIFIC = 0.15
_MOST_SPECIFIC = 2
_UNSURE = -0.6


@dataclass(frozen=True, kw_only=True, slots=True)
class Surroundings:
    """Where the statements stand: after a question, at the opening, and what they mention."""

    answers: bool = False
    opening: bool = False
    dates: int = 0
    specifics: int = 0


def salience(statements: Sequence[Statement], around: Surroundings) -> float:
    """Return the score of one message's statements: about 0 for small talk, 1 and more for news; 0 for none."""
    if not statements:
        return 0.0
    words = len(frozenset[str]().union(*(statement.words for statement in statements)))
    about_self = sum("self" in statement.acts for statement in statements)
    unsure = any("hypothetical" in statement.acts for statement in statements)
    return (
        _PER_WORD * min(words, _MOST_WORDS)
        + _SELF * min(about_self, _MOST_SELF)
        + _SENTENCE * len(statements)
        + _DATED * bool(around.dates)
        + _ANSWER * around.answers
        + _OPENING * around.opening
        + _SPECIFIC * min(around.specifics, _MOST_SPECIFIC)
        + _UNSURE * unsure
    )
