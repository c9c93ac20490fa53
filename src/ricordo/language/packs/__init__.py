"""Packs of patterns, one file for each language: cues of speech acts, and phrases of signals. A pack is data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

__all__ = ["SIGNALS", "Act", "CuePack", "Signal", "SignalPack"]


Act = Literal[
    "acknowledgement",
    "convention",
    "correction",
    "decision",
    "denial",
    "doubt",
    "fact",
    "farewell",
    "goal",
    "greeting",
    "heading",
    "hypothetical",
    "lesson",
    "listener",
    "moment",
    "offer",
    "praise",
    "preference",
    "question",
    "reaction",
    "remember",
    "request",
    "self",
    "thanks",
    "wish",
]
"""What a sentence does: "fact" states how somebody or something lastingly is, "self" and "listener" are any mention
of the speaker and of who is spoken to, "offer" a service held out, "request" a task for now, "praise" a word about
the listener, "reaction" a word about what was just said, "denial" sets something aside without saying what holds
instead, "doubt" marks a guess, "heading" announces rules, "moment" is what passes with the day: an errand, a one-off
request, the state of a build."""
CuePack = Mapping[Act, str]
"""Act to patterns, one regular expression a line (a line that starts with a space
continues the one before, without that space); a leading ^ ties a pattern to the start of the sentence.

Patterns are matched without regard to case, at word edges where the script has them. Repetition is bounded, so that
matching stays linear.
"""


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
