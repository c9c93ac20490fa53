"""What a cue pack is: for one language, the phrases that give a speech act away."""

from collections.abc import Mapping
from typing import Literal

__all__ = ["Act", "CuePack"]

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
