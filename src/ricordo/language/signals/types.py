"""What a signal is: a sign in what a person says that somebody should learn from it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

__all__ = ["SIGNALS", "Signal", "SignalPack"]

Signal = Literal["correction", "reinforcement", "preference", "identity", "goal", "decision"]
"""A correction sets the assistant right, reinforcement says that something was right, a preference is a taste or
wish that lasts, identity says who the speaker is, a goal what is aimed at, a decision what is settled."""

SIGNALS: tuple[Signal, ...] = get_args(Signal)
"""All signals."""


@dataclass(frozen=True, kw_only=True)
class SignalPack:
    """The phrases of one language: for each signal regular expressions, one a line.

    A line that begins with a space continues the one before, without that space; a leading ^ ties a pattern to the
    start of the sentence. Repetition is bounded, and nothing regards case. `denied` and `mentioned` are looked for
    before a match: the one within its clause turns it around ("I don't think that's wrong"), the other, anywhere
    before it in its sentence, makes it something talked about ("if I prefer", "it prints: try again"). `asked` are
    endings that make a question without a question mark. `edges` says whether the script has spaces between words.
    """

    signals: Mapping[Signal, str]
    denied: str = ""
    mentioned: str = ""
    asked: str = ""
    edges: bool = True
    scripts: frozenset[str] = field(default_factory=lambda: frozenset({"latin"}))
