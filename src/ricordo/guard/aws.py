"""AWS secret keys: forty characters without a prefix, known by the key id or the word "secret" near them.

Invariant: the shape alone is never enough, since a hash or a path may have it; a decision looks at most at a fixed
number of characters around the value, so that a search is linear in the text.
"""

import re
from collections.abc import Iterator

from ricordo.guard.rule import SecretSpan
from ricordo.guard.values import is_placeholder

__all__ = ["find_aws_secrets"]

_AWS_SECRET = re.compile(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=])")
_AWS_KEY_ID = re.compile(r"(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])")
_SECRET_WORD = re.compile(r"(?<![A-Za-z])secret(?![a-z])[^\n]*\Z", re.IGNORECASE)
_KEY_ID_DISTANCE = 160
_SECRET_WORD_DISTANCE = 48
_MIN_DISTINCT_IN_SECRET = 18


def find_aws_secrets(text: str) -> Iterator[SecretSpan]:
    """Values of the shape near a key id, on either side, or shortly after the word "secret" on their line."""
    for match in _AWS_SECRET.finditer(text):
        if _is_random(match.group()) and _is_announced(text, match.start(), match.end()):
            yield SecretSpan(start=match.start(), end=match.end(), type="aws-secret-key")


def _is_random(value: str) -> bool:
    """Whether digits and letters of both cases are mixed as chance does, and no manual's sample stands there."""
    counts = (sum(kind(mark) for mark in value) for kind in (str.isdigit, str.isupper, str.islower))
    digits, upper, lower = counts
    return (
        digits >= 2
        and upper >= 5
        and lower >= 5
        and len(set(value)) >= _MIN_DISTINCT_IN_SECRET
        and not is_placeholder(value)
    )


def _is_announced(text: str, start: int, end: int) -> bool:
    around = text[max(0, start - _KEY_ID_DISTANCE) : start], text[end : end + _KEY_ID_DISTANCE]
    return (
        any(map(_AWS_KEY_ID.search, around))
        or _SECRET_WORD.search(text[max(0, start - _SECRET_WORD_DISTANCE) : start]) is not None
    )
