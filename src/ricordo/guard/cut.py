"""Shortening text that holds escapes, marks and secrets, without leaving half of one.

A part of a secret is not known as one any more, so what is cut before it passes the guard is cut beside its secrets.
"""

import re

from ricordo.guard.rules import SECRET_MARK, find_secrets

__all__ = ["cut", "cut_start"]

_SEARCH_RADIUS = 4_096
_CHARACTER_REFERENCE = re.compile(r"&(?:amp;)*(?:[a-z]{2,5}|#[0-9]{1,7}|#x[0-9A-Fa-f]{1,6});")


def cut(text: str, limit: int) -> str:
    """The longest beginning of `text` of at most `limit` characters that splits no character reference, no secret and
    no mark of one; `text` itself when it is short enough. Raises: ValueError for a negative limit."""
    if limit < 0:
        raise ValueError(f"a text cannot be cut to {limit} characters")
    if len(text) <= limit:
        return text
    for opening, whole in (("&", _CHARACTER_REFERENCE), ("[", SECRET_MARK)):
        start = text.rfind(opening, 0, limit)
        match = whole.match(text, start) if start >= 0 else None
        if match is not None and match.end() > limit:
            return text[:start]
    return text[: _secret_bounds(text, limit)[0]]


def cut_start(text: str, start: int) -> str:
    """The longest end of `text` that begins at `start` or later and does not begin within a secret."""
    return text if start <= 0 else text[_secret_bounds(text, start)[1] :]


def _secret_bounds(text: str, position: int) -> tuple[int, int]:
    """Where the secret begins and ends that `position` lies in; twice `position` for none."""
    first = max(0, position - _SEARCH_RADIUS)
    for span in find_secrets(text[first : position + _SEARCH_RADIUS]):
        if first + span.start < position < first + span.end:
            return first + span.start, first + span.end
    return position, position
