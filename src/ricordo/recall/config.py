"""How recall weighs what it found. Every number can be changed; the defaults were measured, see the design notes."""

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["HALF_LIVES", "RecallConfig"]

HALF_LIVES: Mapping[str, float] = {
    "preference": 365.0,
    "convention": 365.0,
    "lesson": 180.0,
    "fact": 120.0,
    "decision": 120.0,
    "goal": 45.0,
    "session-summary": 45.0,
}
"""Days after which a memory of this kind counts half in a tie."""


@dataclass(frozen=True, kw_only=True)
class RecallConfig:
    """Weights of the ranking.

    `candidates` is how many matches each source gives at most. `floor` is the score below which `answer` says "not in
    memory". `duplicate` is the similarity in 0..1 from which two hits count as one.
    """

    candidates: int = 100
    floor: float = 0.35
    duplicate: float = 0.9
    half_lives: Mapping[str, float] = field(default_factory=lambda: HALF_LIVES)
    default_half_life: float = 120.0
