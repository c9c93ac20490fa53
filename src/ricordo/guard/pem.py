"""Private keys of several lines: PEM, OpenSSH, SSH2, PGP and PuTTY, in one line or many, quoted or cut off.

What stands before the first line, such as `key.pem:12:` of a search, a line's number, `> ` or a log's time, may stand
before each of the others, with other numbers. A block goes on as long as its lines are Base64. A block whose beginning
was cut off is found by its END line. Invariant: each part of the text is read for one block only, so the search is
linear; a marker that is merely mentioned, with no key material beside it, is no secret.
"""

import re
from collections.abc import Iterator

from ricordo.guard.rule import SecretSpan

__all__ = ["find_private_keys", "find_putty_keys"]

_PEM_KIND = r"(?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?"
_PEM_BEGIN = re.compile(rf"(?:-----|---- )BEGIN {_PEM_KIND}(?:-----| ----)")
_PEM_END = re.compile(rf"(?:-----|---- )END {_PEM_KIND}(?:-----| ----)?")
_PEM_CLOSING = re.compile(rf"-{{0,8}}?{_PEM_END.pattern}")
_PEM_BREAK = re.compile(r"(?:\\+[nrt]|[\s\"'`,>|#;]|[+-](?=\s)|\\+(?=[\s\"']))+")
_PEM_HEADER = re.compile(
    r"(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset|MessageID|Subject|x-[a-z-]{1,30}):[^\n\\]{0,200}"
)
_KEY_MATERIAL = re.compile(r"[A-Za-z0-9+/=]+")
_PUTTY = re.compile(r"Private-Lines:[ \t]{0,4}\d{1,4}")
_LINE_END = re.compile(r"\r?\n|\\+n")
_TO_NEXT_LINE = re.compile(r"[ \t\r\"'`,;\\+]{0,16}\n")
_AROUND_LINE = " \t\r\"'`,;\\+>|#"
_PREFIX_PART = re.compile(r"\w{0,64}\d\w{0,64}|[ \t]+|[:-]|[^\W\d]+|.")
_WITH_DIGIT = re.compile(r"\w{0,64}\d\w{0,64}")
_BLANKS = re.compile(r"[ \t]*")
_MIN_PEM_LINE = 16
_MIN_PEM_PART = 32
_MAX_END_DISTANCE = 8_192
_MAX_PREFIX = 200


def find_private_keys(text: str) -> Iterator[SecretSpan]:
    """Every private key block in `text`, from its BEGIN to its END or to where the key material ends; of one without
    a BEGIN, the lines of key material before its END."""
    position = 0
    while match := _PEM_BEGIN.search(text, position):
        yield from _find_truncated_keys(text, position, match.start())
        position = match.end()
        end = _block_end(text, match.end(), _line_prefix(text, match.start()))
        if end is not None:
            yield SecretSpan(start=match.start(), end=end, type="private-key", rank=3)
            position = end
    yield from _find_truncated_keys(text, position, len(text))


def find_putty_keys(text: str) -> Iterator[SecretSpan]:
    """The private lines of each key file of PuTTY in `text`."""
    for match in _PUTTY.finditer(text):
        end = _block_end(text, match.end(), _line_prefix(text, match.start()))
        if end is not None:
            yield SecretSpan(start=match.end(), end=end, type="private-key", rank=3)


def _block_end(text: str, position: int, prefix: list[str]) -> int | None:
    """Where the block ends whose BEGIN ended at `position`; None when no key material follows."""
    at, end = position, None
    while True:
        at = _skip_to_next_line(text, at, prefix)
        header = _PEM_HEADER.match(text, at)
        if header:
            at = header.end()
            continue
        line = _KEY_MATERIAL.match(text, at)
        if line is None:
            break
        long = line.end() - at >= _MIN_PEM_LINE
        if not long and not (end is not None and _is_last_line(text, line.end(), prefix)):
            break
        at = end = line.end()
    return None if end is None else _include_end_line(text, end)


def _is_last_line(text: str, position: int, prefix: list[str]) -> bool:
    """Whether a short line that ends at `position` can be the last of its block."""
    after = _skip_to_next_line(text, position, prefix)
    return after == len(text) or text.startswith(("-----END", "---- END", "="), after) or text[position] in '\n\r"'


def _include_end_line(text: str, end: int) -> int:
    """`end`, or the end of the block's END line when that comes before any other marker."""
    marker = text.find("----", end, end + _MAX_END_DISTANCE)
    closing = _PEM_CLOSING.match(text, marker) if marker >= 0 else None
    return closing.end() if closing else end


def _find_truncated_keys(text: str, start: int, end: int) -> Iterator[SecretSpan]:
    """The key material before each END line in this part of the text, which holds no BEGIN."""
    for marker in _PEM_END.finditer(text, start, end):
        first = _find_first_line(text, start, marker.start())
        start = marker.end()
        if first is not None:
            yield SecretSpan(start=first, end=marker.end(), type="private-key", rank=3)


def _find_first_line(text: str, start: int, end: int) -> int | None:
    """Where the lines of key material begin that stand directly before `end`; None for none."""
    cuts = [start, *(cut.end() for cut in _LINE_END.finditer(text, start, end))]
    ends = [cut.start() for cut in _LINE_END.finditer(text, start, end)]
    prefix = _PREFIX_PART.findall(text[cuts[-1] : end][-_MAX_PREFIX:])
    first, longest = None, 0
    for line_start, line_end in zip(reversed(cuts[:-1]), reversed(ends), strict=True):
        skipped = _skip_prefix(text, line_start, prefix)
        at = line_start if skipped is None or skipped > line_end else skipped
        line = text[at:line_end]
        inner = line.strip(_AROUND_LINE)
        if not _KEY_MATERIAL.fullmatch(inner) or (first is not None and len(inner) < _MIN_PEM_LINE):
            break
        first, longest = at + line.index(inner), max(longest, len(inner))
    return first if longest >= _MIN_PEM_PART else None


def _line_prefix(text: str, position: int) -> list[str]:
    """The parts of what stands before `position` on its line; none for a line that is too long for one."""
    start = text.rfind("\n", max(0, position - _MAX_PREFIX), position) + 1
    if position - start >= _MAX_PREFIX:
        return []
    return _PREFIX_PART.findall(text[start:position])


def _skip_to_next_line(text: str, position: int, prefix: list[str]) -> int:
    """Where the next line says something, after what stands before each line."""
    at = position
    while prefix and (line := _TO_NEXT_LINE.match(text, at)):
        after = _skip_prefix(text, line.end(), prefix)
        if after is None:
            break
        at = after
    gap = _PEM_BREAK.match(text, at)
    return gap.end() if gap else at


def _skip_prefix(text: str, position: int, prefix: list[str]) -> int | None:
    """Where a prefix like this one ends that begins at `position`, with any numbers in it; None for another one."""
    at = position
    for part in prefix:
        if part.isspace():
            at = _BLANKS.match(text, at).end()  # type: ignore[union-attr]
        elif part in {":", "-"}:
            if text[at : at + 1] not in {":", "-"}:
                return None
            at += 1
        elif any(map(str.isdigit, part)):
            number = _WITH_DIGIT.match(text, at)
            if number is None:
                return None
            at = number.end()
        elif text.startswith(part, at):
            at += len(part)
        else:
            return None
    return at
