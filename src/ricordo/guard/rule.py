"""What a rule for a provider's key is: a literal beginning, then a shape.

Invariant: every match of a rule starts with one of its prefixes, letter for letter, and holds at least
`SHORTEST` characters of `RUN_CHARACTERS` in a row. The first makes a literal search a sound filter, the second lets
text without long runs skip all rules at once.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["RUN_CHARACTERS", "SHORTEST", "Rule", "Span", "keys", "starts_a_word"]

SHORTEST = 16
RUN_CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.+/=~:$"

# What may stand before a key although it ends in a letter or digit: a JSON escape, a percent escape, a colour code.
_ESCAPE_BEFORE = re.compile(r"(?:\\[nrtbf]|\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2}|%[0-9A-Fa-f]{2}|\[[0-9;]{0,12}m)\Z")
_WORD = re.compile(r"[A-Za-z0-9]")


@dataclass(frozen=True, kw_only=True)
class Span:
    """Where a secret stands: `start` and `end` are positions in the text that was searched; `rank` is how specific
    the rule is, higher is more."""

    start: int
    end: int
    type: str
    rank: int = 2


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One key shape: `type` is the word in the mark, `prefix` the literal beginning, `start` the same as
    bytes, `pattern` the whole shape.

    `bounded` rules have a beginning that also occurs inside words; they match only where a word starts.
    """

    type: str
    prefix: str
    start: bytes
    pattern: re.Pattern[str]
    bounded: bool

    def find(self, text: str) -> Iterator[re.Match[str]]:
        """All matches in `text`, left to right, where a bounded rule may start."""
        for match in self.pattern.finditer(text):
            if not self.bounded or starts_a_word(text, match.start()):
                yield match


def starts_a_word(text: str, position: int) -> bool:
    """Whether no ASCII letter or digit stands before `position`, not counting one that belongs to an escape."""
    if position == 0 or not _WORD.match(text, position - 1):
        return True
    return _ESCAPE_BEFORE.search(text[max(0, position - 16) : position]) is not None


def keys(type_: str, prefixes: str, body: str, *, bounded: bool = False) -> tuple[Rule, ...]:
    """One rule for each of the space-separated `prefixes`, all followed by the regular expression `body`."""
    return tuple(
        Rule(
            type=type_,
            prefix=prefix,
            start=prefix.encode(),
            pattern=re.compile(re.escape(prefix) + body),
            bounded=bounded,
        )
        for prefix in prefixes.split()
    )
