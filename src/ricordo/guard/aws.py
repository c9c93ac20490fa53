"""AWS secret keys: forty characters without a prefix, known by the key id or the word "secret" near them.

Invariant: the shape alone is never enough, since a hash or a path may have it; a decision looks at most at a fixed
number of characters around the value, so that a search is linear in the text.
"""

import re
from collections.abc import Iterator

from ricordo.guard.rule import Span
from ricordo.guard.values import is_placeholder

__all__ = ["find_aws_secrets"]

_SHAPE = re.compile(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=])")
_KEY_ID = re.compile(r"(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])")
_SECRET = re.compile(r"(?<![A-Za-z])secret(?![a-z])[^\n]*\Z", re.IGNORECASE)
_AROUND_ID = 160
_AFTER_WORD = 48
_FEWEST_DIFFERENT = 18


def find_aws_secrets(text: str) -> Iterator[Span]:
    """Values of the shape near a key id, on either side, or shortly after the word "secret" on their line."""
    for match in _SHAPE.finditer(text):
        if _is_random(match.group()) and _is_announced(text, match.start(), match.end()):
            yield Span(start=match.start(), end=match.end(), type="aws-secret-key")


def _is_random(value: str) -> bool:
    """Whether digits and letters of both cases are mixed as chance does, and no manual's sample stands there."""
    counts = (sum(kind(mark) for mark in value) for kind in (str.isdigit, str.isupper, str.islower))
    digits, upper, lower = counts
    return (
        digits >= 2 and upper >= 5 and lower >= 5 and len(set(value)) >= _FEWEST_DIFFERENT and not is_placeholder(value)
    )


def _is_announced(text: str, start: int, end: int) -> bool:
    around = text[max(0, start - _AROUND_ID) : start], text[end : end + _AROUND_ID]
    return any(map(_KEY_ID.search, around)) or _SECRET.search(text[max(0, start - _AFTER_WORD) : start]) is not None
