"""What whoever updates a memory is told of each signal: one table, so that the wording stands in one place."""

from collections.abc import Collection, Mapping

from ricordo.language.signals.types import SIGNALS, Signal

__all__ = ["HINTS", "hints"]

HINTS: Mapping[Signal, str] = {
    "correction": "The user corrected something. Note what was wrong and what holds instead, with high confidence, "
    "and replace what memory says of it.",
    "reinforcement": "The user said that something was right. Note the way of working that was confirmed as worth "
    "keeping, and confirm what memory already says of it.",
    "preference": "The user stated a preference. Note it as one, in the user's sense, with what it applies to.",
    "identity": "The user said who they are or what they do. Note it as a lasting fact about the user.",
    "goal": "The user stated a goal or plan. Note it with its date where one was given.",
    "decision": "The user settled something. Note what was chosen, and the reason where one was given.",
}
"""One hint a signal; none is given without its signal."""


def hints(signals: Collection[Signal]) -> str:
    """Return the hints for `signals` as one bullet a line, in a fixed order; "" for no signals."""
    return "\n".join(f"- {HINTS[signal]}" for signal in SIGNALS if signal in signals)
