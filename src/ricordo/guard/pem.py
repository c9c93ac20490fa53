"""Private key blocks: whole, with escaped line ends, in one line, quoted or cut off before their end.

A block goes on as long as its lines are Base64. Invariant: each part of the text is read for one block only, so the
search is linear; a marker that is merely mentioned, with no key material after it, is no secret.
"""

import re
from collections.abc import Iterator

from ricordo.guard.rule import Span

__all__ = ["find_private_keys"]

_BEGIN = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_END = re.compile(r"-----END (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?(?:-----)?")
_BREAK = re.compile(r"(?:\\+[nrt]|[\s\"'`,>|#;]|\+(?=\s)|\\+(?=[\s\"']))+")
_HEADER = re.compile(r"(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset|MessageID):[^\n\\]{0,200}")
_MATERIAL = re.compile(r"[A-Za-z0-9+/=]+")
_SHORTEST_LINE = 16
_FARTHEST_END = 8_192


def find_private_keys(text: str) -> Iterator[Span]:
    """Every private key block in `text`, from its BEGIN to its END or to where the key material ends."""
    position = 0
    while match := _BEGIN.search(text, position):
        position = match.end()
        end = _block_end(text, match.end())
        if end is not None:
            yield Span(start=match.start(), end=end, type="private-key", rank=3)
            position = end


def _block_end(text: str, position: int) -> int | None:
    """Where the block ends whose BEGIN ended at `position`; None when no key material follows."""
    at, end = position, None
    while True:
        gap = _BREAK.match(text, at)
        at = gap.end() if gap else at
        header = _HEADER.match(text, at)
        if header:
            at = header.end()
            continue
        line = _MATERIAL.match(text, at)
        if line is None:
            break
        long = line.end() - at >= _SHORTEST_LINE
        if not long and not (end is not None and _is_last(text, line.end())):
            break
        at = end = line.end()
    return None if end is None else _closed(text, end)


def _is_last(text: str, position: int) -> bool:
    """Whether a short line that ends at `position` can be the last of its block."""
    gap = _BREAK.match(text, position)
    after = gap.end() if gap else position
    return after == len(text) or text.startswith(("-----END", "="), after) or text[position] in '\n\r"'


def _closed(text: str, end: int) -> int:
    """`end`, or the end of the block's END line when that comes before any other marker."""
    marker = text.find("-----", end, end + _FARTHEST_END)
    closing = _END.match(text, marker) if marker >= 0 else None
    return closing.end() if closing else end
