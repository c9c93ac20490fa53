"""Shortening text that holds escapes and marks, without leaving half of one."""

import re

from ricordo.guard.rules import MARK

__all__ = ["cut"]

_REFERENCE = re.compile(r"&(?:amp;)*(?:[a-z]{2,5}|#[0-9]{1,7}|#x[0-9A-Fa-f]{1,6});")


def cut(text: str, limit: int) -> str:
    """The longest beginning of `text` of at most `limit` characters that splits no character reference and no mark of
    a secret; `text` itself when it is short enough. Raises: ValueError for a negative limit."""
    if limit < 0:
        raise ValueError(f"a text cannot be cut to {limit} characters")
    if len(text) <= limit:
        return text
    for opening, whole in (("&", _REFERENCE), ("[", MARK)):
        start = text.rfind(opening, 0, limit)
        match = whole.match(text, start) if start >= 0 else None
        if match is not None and match.end() > limit:
            return text[:start]
    return text[:limit]
