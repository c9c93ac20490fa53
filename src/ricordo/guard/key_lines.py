"""Lines of a private key alone, without its BEGIN and END: what a page, a search or `sed -n` shows of one.

They are two or more lines one after the other that end in Base64 of the length that keys have on a line, with the same
before it but for numbers. What stands between the markers of something else, such as a certificate, is no secret; of
its middle alone nobody can tell. Invariant: each line is looked at once, so the search is linear.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ricordo.guard.rule import Span

__all__ = ["KEY_LINE", "find_key_lines"]

KEY_LINE = re.compile(rb"[A-Za-z0-9+/]{64}")
"""What a text holds at least where it has such lines."""

_LONG = re.compile(KEY_LINE.pattern.decode())
_BREAK = re.compile(r"[\r\n]+|(?:\\+r)?\\+n")
_ENDED = re.compile(r"[A-Za-z0-9+/]+={0,2}(?=[^A-Za-z0-9+/=]{0,16}\Z)")
_QUOTED = re.compile(r"(?<![A-Za-z0-9+/=])(?:[A-Za-z0-9+/]{64}|[A-Za-z0-9+/]{70})(?=[\"'`<])")
_AROUND = re.compile(r"[\s\"'`,;+|>)]*")
_NUMBER = re.compile(r"[ \t]*\d+")
_QUOTES = ('"', "'", "`", ">")
_SUM = re.compile(r"sha\d+-\Z")
_MARKER = re.compile(r"(?:-----|---- )(BEGIN|END) ([A-Z0-9 ]{1,40}?)(?:-----| ----)")
_WIDTHS = (64, 70)
_LONGEST_LINE = 400
_NEAR = 400
_FEWEST_LINES = 2
_FEWEST_DIFFERENT = 20
_SHORTEST_PART = 16


@dataclass(frozen=True, slots=True)
class _Line:
    """A line that ends in Base64, from `start` to `end`; `prefix` is what stands before it, without numbers.

    Where it is not `is_whole` it is as long as a part of one.
    """

    start: int
    end: int
    prefix: str
    is_whole: bool


def find_key_lines(text: str) -> Iterator[Span]:
    """The lines in `text` that look like those of a private key, each block of them as one span."""
    block: list[_Line] = []
    for line in _lines(text) if len(_LONG.findall(text)) >= _FEWEST_LINES else ():
        if not (line and block and _follows(line, block)):
            yield from _found(text, block)
            block = []
        if line:
            block.append(line)
    yield from _found(text, block)


def _follows(line: _Line, block: Sequence[_Line]) -> bool:
    """Tell whether a line goes on with a block: only its first and its last may be parts of a line."""
    last = block[-1]
    if not last.is_whole and len(block) > 1:
        return False
    return line.prefix == last.prefix or (len(block) == 1 and not line.prefix and last.prefix.endswith(_QUOTES))


def _lines(text: str) -> Iterator[_Line | None]:
    """Yield the lines that say something; None for one that is none of a key."""
    start = 0
    for end, after in [*(found.span() for found in _BREAK.finditer(text)), (len(text), len(text))]:
        if end - start > _LONGEST_LINE:
            yield None
        elif not _AROUND.fullmatch(text, start, end):
            yield _read(text[start:end], start)
        start = after


def _read(line: str, at: int) -> _Line | None:
    found = _QUOTED.search(line) or _ENDED.search(line)
    if found is None:
        return None
    first, last = found.span()
    # a plus sign before a line says in a diff that it was added
    first += first == 0 and line[0] == "+" and last - first not in _WIDTHS
    token, prefix = line[first:last], _NUMBER.sub("0", line[:first])
    is_mixed = any(map(str.isupper, token)) and any(map(str.islower, token)) and any(map(str.isdigit, token))
    is_whole = (
        len(token) in _WIDTHS and is_mixed and len(set(token)) >= _FEWEST_DIFFERENT and not _SUM.search(line[:first])
    )
    is_part = len(token) < max(_WIDTHS) and (token.endswith("=") or (is_mixed and len(token) >= _SHORTEST_PART))
    return _Line(at + first, at + last, prefix, is_whole) if is_whole or is_part else None


def _found(text: str, block: Sequence[_Line]) -> Iterator[Span]:
    """Yield the span of a block: lines of one length, with a part of a line before and after them."""
    widths = {line.end - line.start for line in block if line.is_whole}
    if sum(line.is_whole for line in block) < _FEWEST_LINES or len(widths) > 1:
        return
    if not _is_of_something_else(text, block[0].start, block[-1].end):
        yield Span(start=block[0].start, end=block[-1].end, type="private-key", rank=3)


def _is_of_something_else(text: str, start: int, end: int) -> bool:
    """Tell whether the markers around lines say that they are no private key."""
    before = [*_MARKER.finditer(text, max(0, start - _NEAR), start)]
    if before and before[-1][1] == "BEGIN":
        return "PRIVATE" not in before[-1][2]
    after = _MARKER.search(text, end, end + _NEAR)
    return after is not None and after[1] == "END" and "PRIVATE" not in after[2]
