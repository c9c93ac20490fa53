"""What a rule for a provider's key is: a literal beginning, then a shape.

Invariant: every match of a rule starts with one of its prefixes, letter for letter, and holds at least
`MIN_RUN` characters of `RUN_CHARACTERS` in a row. The first makes a literal search a sound filter, the second lets
text without long runs skip all rules at once.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["RUN_CHARACTERS", "MIN_RUN", "KeyRule", "SecretSpan", "key_rules", "is_word_start"]

MIN_RUN = 16
RUN_CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.+/=~:$"

# What may stand before a key although it ends in a letter or digit: a JSON escape, a percent escape, a colour code.
_ESCAPE_BEFORE = re.compile(r"(?:\\[nrtbf]|\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2}|%[0-9A-Fa-f]{2}|\[[0-9;]{0,12}m)\Z")
_WORD_CHARACTER = re.compile(r"[A-Za-z0-9]")


@dataclass(frozen=True, kw_only=True)
class SecretSpan:
    """Where a secret stands: `start` and `end` are positions in the text that was searched; `rank` is how specific
    the rule is, higher is more."""

    start: int
    end: int
    type: str
    rank: int = 2


@dataclass(frozen=True, kw_only=True)
class KeyRule:
    """One key shape: `type` is the word in the mark, `prefix` the literal beginning, `prefix_bytes` the same as
    bytes, `pattern` the whole shape.

    `at_word_start` rules have a beginning that also occurs inside words; they match only where a word starts.
    """

    type: str
    prefix: str
    prefix_bytes: bytes
    pattern: re.Pattern[str]
    at_word_start: bool

    def find(self, text: str) -> Iterator[re.Match[str]]:
        """All matches in `text`, left to right, where a bounded rule may start."""
        for match in self.pattern.finditer(text):
            if not self.at_word_start or is_word_start(text, match.start()):
                yield match


def is_word_start(text: str, position: int) -> bool:
    """Whether no ASCII letter or digit stands before `position`, not counting one that belongs to an escape."""
    if position == 0 or not _WORD_CHARACTER.match(text, position - 1):
        return True
    return _ESCAPE_BEFORE.search(text[max(0, position - 16) : position]) is not None


def key_rules(type_: str, prefixes: str, body: str, *, bounded: bool = False) -> tuple[KeyRule, ...]:
    """One rule for each of the space-separated `prefixes`, all followed by the regular expression `body`."""
    return tuple(
        KeyRule(
            type=type_,
            prefix=prefix,
            prefix_bytes=prefix.encode(),
            pattern=re.compile(re.escape(prefix) + body),
            at_word_start=bounded,
        )
        for prefix in prefixes.split()
    )
