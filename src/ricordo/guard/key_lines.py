"""Lines of a private key alone, without its BEGIN and END: what a page, a search or `sed -n` shows of one.

They are two or more lines one after the other that end in Base64 of the length that keys have on a line, with the same
before it but for numbers. What stands between the markers of something else, such as a certificate, is no secret; of
its middle alone nobody can tell. Invariant: each line is looked at once, so the search is linear.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ricordo.guard.rule import SecretSpan

__all__ = ["KEY_LINE_HINT", "find_key_lines"]

KEY_LINE_HINT = re.compile(rb"[A-Za-z0-9+/]{64}")
"""What a text holds at least where it has such lines."""

_LONG_RUN = re.compile(KEY_LINE_HINT.pattern.decode())
_LINE_BREAK = re.compile(r"[\r\n]+|(?:\\+r)?\\+n")
_BASE64_AT_END = re.compile(r"[A-Za-z0-9+/]+={0,2}(?=[^A-Za-z0-9+/=]{0,16}\Z)")
_QUOTED_BASE64 = re.compile(r"(?<![A-Za-z0-9+/=])(?:[A-Za-z0-9+/]{64}|[A-Za-z0-9+/]{70})(?=[\"'`<])")
_PUNCTUATION = re.compile(r"[\s\"'`,;+|>)]*")
_NUMBER = re.compile(r"[ \t]*\d+")
_QUOTES = ('"', "'", "`", ">")
_CHECKSUM = re.compile(r"sha\d+-\Z")
_MARKER = re.compile(r"(?:-----|---- )(BEGIN|END) ([A-Z0-9 ]{1,40}?)(?:-----| ----)")
_WIDTHS = (64, 70)
_MAX_LINE = 400
_MARKER_DISTANCE = 400
_MIN_LINES = 2
_MIN_DISTINCT_IN_LINE = 20
_MIN_PARTIAL_LINE = 16


@dataclass(frozen=True, slots=True)
class _KeyLine:
    """A line that ends in Base64, from `start` to `end`; `prefix` is what stands before it, without numbers.

    Where it is not `is_whole` it is as long as a part of one.
    """

    start: int
    end: int
    prefix: str
    is_whole: bool


def find_key_lines(text: str) -> Iterator[SecretSpan]:
    """The lines in `text` that look like those of a private key, each block of them as one span."""
    block: list[_KeyLine] = []
    for line in _iter_lines(text) if len(_LONG_RUN.findall(text)) >= _MIN_LINES else ():
        if not (line and block and _continues_block(line, block)):
            yield from _block_span(text, block)
            block = []
        if line:
            block.append(line)
    yield from _block_span(text, block)


def _continues_block(line: _KeyLine, block: Sequence[_KeyLine]) -> bool:
    """Tell whether a line goes on with a block: only its first and its last may be parts of a line."""
    last = block[-1]
    if not last.is_whole and len(block) > 1:
        return False
    return line.prefix == last.prefix or (len(block) == 1 and not line.prefix and last.prefix.endswith(_QUOTES))


def _iter_lines(text: str) -> Iterator[_KeyLine | None]:
    """Yield the lines that say something; None for one that is none of a key."""
    start = 0
    for end, after in [*(found.span() for found in _LINE_BREAK.finditer(text)), (len(text), len(text))]:
        if end - start > _MAX_LINE:
            yield None
        elif not _PUNCTUATION.fullmatch(text, start, end):
            yield _parse_line(text[start:end], start)
        start = after


def _parse_line(line: str, at: int) -> _KeyLine | None:
    found = _QUOTED_BASE64.search(line) or _BASE64_AT_END.search(line)
    if found is None:
        return None
    first, last = found.span()
    # a plus sign before a line says in a diff that it was added
    first += first == 0 and line[0] == "+" and last - first not in _WIDTHS
    token, prefix = line[first:last], _NUMBER.sub("0", line[:first])
    is_mixed = any(map(str.isupper, token)) and any(map(str.islower, token)) and any(map(str.isdigit, token))
    is_whole = (
        len(token) in _WIDTHS
        and is_mixed
        and len(set(token)) >= _MIN_DISTINCT_IN_LINE
        and not _CHECKSUM.search(line[:first])
    )
    is_part = len(token) < max(_WIDTHS) and (token.endswith("=") or (is_mixed and len(token) >= _MIN_PARTIAL_LINE))
    return _KeyLine(at + first, at + last, prefix, is_whole) if is_whole or is_part else None


def _block_span(text: str, block: Sequence[_KeyLine]) -> Iterator[SecretSpan]:
    """Yield the span of a block: lines of one length, with a part of a line before and after them."""
    widths = {line.end - line.start for line in block if line.is_whole}
    if sum(line.is_whole for line in block) < _MIN_LINES or len(widths) > 1:
        return
    if not _is_other_material(text, block[0].start, block[-1].end):
        yield SecretSpan(start=block[0].start, end=block[-1].end, type="private-key", rank=3)


def _is_other_material(text: str, start: int, end: int) -> bool:
    """Tell whether the markers around lines say that they are no private key."""
    before = [*_MARKER.finditer(text, max(0, start - _MARKER_DISTANCE), start)]
    if before and before[-1][1] == "BEGIN":
        return "PRIVATE" not in before[-1][2]
    after = _MARKER.search(text, end, end + _MARKER_DISTANCE)
    return after is not None and after[1] == "END" and "PRIVATE" not in after[2]
