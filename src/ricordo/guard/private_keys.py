"""Find key material without a prefix: private keys, even cut or quoted, their lines alone, seed phrases, AWS secrets.

Private keys are PEM, OpenSSH, SSH2, PGP and PuTTY; the prefix of a search or a log before each line is skipped. Seed
phrases (BIP-39) and AWS secret keys count only near a name or a key id.

Invariants: linear in the text. A marker that is only mentioned, without key material, is not a secret.
"""

import re
from collections.abc import Iterator, Sequence

from ricordo.guard.heuristics import is_placeholder
from ricordo.guard.key_rules import SecretSpan
from ricordo.language.packs import pack_phrases, pack_words
from ricordo.lazy import dataclass, lazy_compile

__all__ = [
    "KEY_LINE_HINT",
    "SEED_HINTS",
    "find_aws_secrets",
    "find_key_lines",
    "find_private_keys",
    "find_putty_keys",
    "find_seed_phrases",
]


_PEM_KIND = r"(?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?"
_PEM_BEGIN = lazy_compile(rf"(?:-----|---- )BEGIN {_PEM_KIND}(?:-----| ----)")
_PEM_END = lazy_compile(rf"(?:-----|---- )END {_PEM_KIND}(?:-----| ----)?")
_PEM_CLOSING = lazy_compile(rf"-{{0,8}}?{_PEM_END.pattern}")
_PEM_BREAK = lazy_compile(r"(?:\\+[nrt]|[\s\"'`,>|#;]|[+-](?=\s)|\\+(?=[\s\"']))+")
_PEM_HEADER = lazy_compile(
    r"(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset|MessageID|Subject|x-[a-z-]{1,30}):[^\n\\]{0,200}"
)
_KEY_MATERIAL = lazy_compile(r"[A-Za-z0-9+/=]+")
_PUTTY = lazy_compile(r"Private-Lines:[ \t]{0,4}\d{1,4}")
_LINE_END = lazy_compile(r"\r?\n|\\+n")
_TO_NEXT_LINE = lazy_compile(r"[ \t\r\"'`,;\\+]{0,16}\n")
_AROUND_LINE = " \t\r\"'`,;\\+>|#"
_PREFIX_PART = lazy_compile(r"\w{0,64}\d\w{0,64}|[ \t]+|[:-]|[^\W\d]+|.")
_WITH_DIGIT = lazy_compile(r"\w{0,64}\d\w{0,64}")
_BLANKS = lazy_compile(r"[ \t]*")
_MIN_PEM_LINE = 16
_MIN_PEM_PART = 32
_MAX_END_DISTANCE = 8_192
_MAX_PREFIX = 200


def find_private_keys(text: str) -> Iterator[SecretSpan]:
    """Yield every private key block in `text`, from its BEGIN to its END or to the end of the key material.

    For a block without a BEGIN, yield the lines of key material before its END.
    """
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
    """Yield the private lines of each PuTTY key file in `text`."""
    for match in _PUTTY.finditer(text):
        end = _block_end(text, match.end(), _line_prefix(text, match.start()))
        if end is not None:
            yield SecretSpan(start=match.end(), end=end, type="private-key", rank=3)


def _block_end(text: str, position: int, prefix: list[str]) -> int | None:
    """Return the end of the block whose BEGIN ended at `position`; None when no key material follows."""
    cursor, end = position, None
    while True:
        cursor = _skip_to_next_line(text, cursor, prefix)
        header = _PEM_HEADER.match(text, cursor)
        if header:
            cursor = header.end()
            continue
        line = _KEY_MATERIAL.match(text, cursor)
        if line is None:
            break
        long = line.end() - cursor >= _MIN_PEM_LINE
        if not long and not (end is not None and _is_last_line(text, line.end(), prefix)):
            break
        cursor = end = line.end()
    return None if end is None else _include_end_line(text, end)


def _is_last_line(text: str, position: int, prefix: list[str]) -> bool:
    """Return whether a short line that ends at `position` can be the last of its block."""
    after = _skip_to_next_line(text, position, prefix)
    return after == len(text) or text.startswith(("-----END", "---- END", "="), after) or text[position] in '\n\r"'


def _include_end_line(text: str, end: int) -> int:
    """Return `end`, or the end of the block's END line when it comes before any other marker."""
    marker = text.find("----", end, end + _MAX_END_DISTANCE)
    closing = _PEM_CLOSING.match(text, marker) if marker >= 0 else None
    return closing.end() if closing else end


def _find_truncated_keys(text: str, start: int, end: int) -> Iterator[SecretSpan]:
    """Yield the key material before each END line in this part of the text, which contains no BEGIN."""
    for marker in _PEM_END.finditer(text, start, end):
        first = _find_first_line(text, start, marker.start())
        start = marker.end()
        if first is not None:
            yield SecretSpan(start=first, end=marker.end(), type="private-key", rank=3)


def _find_first_line(text: str, start: int, end: int) -> int | None:
    """Return the start of the lines of key material directly before `end`; None if there are none."""
    line_starts = [start, *(line_break.end() for line_break in _LINE_END.finditer(text, start, end))]
    line_ends = [line_break.start() for line_break in _LINE_END.finditer(text, start, end)]
    prefix = _PREFIX_PART.findall(text[line_starts[-1] : end][-_MAX_PREFIX:])
    first, longest = None, 0
    for line_start, line_end in zip(reversed(line_starts[:-1]), reversed(line_ends), strict=True):
        skipped = _skip_prefix(text, line_start, prefix)
        line_position = line_start if skipped is None or skipped > line_end else skipped
        line = text[line_position:line_end]
        inner = line.strip(_AROUND_LINE)
        if not _KEY_MATERIAL.fullmatch(inner) or (first is not None and len(inner) < _MIN_PEM_LINE):
            break
        first, longest = line_position + line.index(inner), max(longest, len(inner))
    return first if longest >= _MIN_PEM_PART else None


def _line_prefix(text: str, position: int) -> list[str]:
    """Return the parts of the text before `position` on its line; empty if the line is too long."""
    start = text.rfind("\n", max(0, position - _MAX_PREFIX), position) + 1
    if position - start >= _MAX_PREFIX:
        return []
    return _PREFIX_PART.findall(text[start:position])


def _skip_to_next_line(text: str, position: int, prefix: list[str]) -> int:
    """Return the start of the next non-empty line, after its prefix."""
    cursor = position
    while prefix and (line := _TO_NEXT_LINE.match(text, cursor)):
        after = _skip_prefix(text, line.end(), prefix)
        if after is None:
            break
        cursor = after
    gap = _PEM_BREAK.match(text, cursor)
    return gap.end() if gap else cursor


def _skip_prefix(text: str, position: int, prefix: list[str]) -> int | None:
    """Return the end of a prefix at `position` that equals `prefix` except for numbers; None for a different prefix."""
    cursor = position
    for part in prefix:
        if part.isspace():
            cursor = _BLANKS.match(text, cursor).end()  # type: ignore[union-attr]
        elif part in {":", "-"}:
            if text[cursor : cursor + 1] not in {":", "-"}:
                return None
            cursor += 1
        elif any(map(str.isdigit, part)):
            number = _WITH_DIGIT.match(text, cursor)
            if number is None:
                return None
            cursor = number.end()
        elif text.startswith(part, cursor):
            cursor += len(part)
        else:
            return None
    return cursor


KEY_LINE_HINT = lazy_compile(rb"[A-Za-z0-9+/]{64}")
"""The shortest content of a text that has such lines."""
_LONG_RUN = lazy_compile(KEY_LINE_HINT.pattern.decode())
_LINE_BREAK = lazy_compile(r"[\r\n]+|(?:\\+r)?\\+n")
_BASE64_AT_END = lazy_compile(r"[A-Za-z0-9+/]+={0,2}(?=[^A-Za-z0-9+/=]{0,16}\Z)")
_QUOTED_BASE64 = lazy_compile(r"(?<![A-Za-z0-9+/=])(?:[A-Za-z0-9+/]{64}|[A-Za-z0-9+/]{70})(?=[\"'`<])")
_PUNCTUATION = lazy_compile(r"[\s\"'`,;+|>)]*")
_NUMBER = lazy_compile(r"[ \t]*\d+")
_QUOTES = ('"', "'", "`", ">")
_CHECKSUM = lazy_compile(r"sha\d+-\Z")
_MARKER = lazy_compile(r"(?:-----|---- )(BEGIN|END) ([A-Z0-9 ]{1,40}?)(?:-----| ----)")
_WIDTHS = (64, 70)
_MAX_LINE = 400
_MARKER_DISTANCE = 400
_MIN_LINES = 2
_MIN_DISTINCT_IN_LINE = 20
_MIN_PARTIAL_LINE = 16


@dataclass(frozen=True)
class _KeyLine:
    """A line that ends in Base64, from `start` to `end`; `prefix` is the text before it, without numbers.

    If it is not `is_whole`, its length fits a part of a line.
    """

    start: int
    end: int
    prefix: str
    is_whole: bool


def find_key_lines(text: str) -> Iterator[SecretSpan]:
    """Yield the lines in `text` that look like those of a private key, each block of them as one span."""
    block: list[_KeyLine] = []
    for line in _iter_lines(text) if len(_LONG_RUN.findall(text)) >= _MIN_LINES else ():
        if not (line and block and _continues_block(line, block)):
            yield from _block_span(text, block)
            block = []
        if line:
            block.append(line)
    yield from _block_span(text, block)


def _continues_block(line: _KeyLine, block: Sequence[_KeyLine]) -> bool:
    """Return whether a line continues a block: only its first and its last line may be parts of a line."""
    last = block[-1]
    if not last.is_whole and len(block) > 1:
        return False
    return line.prefix == last.prefix or (len(block) == 1 and not line.prefix and last.prefix.endswith(_QUOTES))


def _iter_lines(text: str) -> Iterator[_KeyLine | None]:
    """Yield the non-empty lines; None for a line that does not belong to a key."""
    start = 0
    for end, after in [*(line_break.span() for line_break in _LINE_BREAK.finditer(text)), (len(text), len(text))]:
        if end - start > _MAX_LINE:
            yield None
        elif not _PUNCTUATION.fullmatch(text, start, end):
            yield _parse_line(text[start:end], start)
        start = after


def _parse_line(line: str, offset: int) -> _KeyLine | None:
    match = _QUOTED_BASE64.search(line) or _BASE64_AT_END.search(line)
    if match is None:
        return None
    first, last = match.span()
    # in a diff, a plus sign before a line means that the line was added
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
    return _KeyLine(offset + first, offset + last, prefix, is_whole) if is_whole or is_part else None


def _block_span(text: str, block: Sequence[_KeyLine]) -> Iterator[SecretSpan]:
    """Yield the span of a block: lines of one length, with a part of a line before and after them."""
    widths = {line.end - line.start for line in block if line.is_whole}
    if sum(line.is_whole for line in block) < _MIN_LINES or len(widths) > 1:
        return
    if not _is_other_material(text, block[0].start, block[-1].end):
        yield SecretSpan(start=block[0].start, end=block[-1].end, type="private-key", rank=3)


def _is_other_material(text: str, start: int, end: int) -> bool:
    """Return whether the markers around the lines show that they are not a private key."""
    before = [*_MARKER.finditer(text, max(0, start - _MARKER_DISTANCE), start)]
    if before and before[-1][1] == "BEGIN":
        return "PRIVATE" not in before[-1][2]
    after = _MARKER.search(text, end, end + _MARKER_DISTANCE)
    return after is not None and after[1] == "END" and "PRIVATE" not in after[2]


SEED_HINTS = (b"phrase", b"mnemonic", b"frase ", b"seed words")
"""Every text in which `find_seed_phrases` finds something contains one of these."""
# Each begins with a letter that is rare enough for a quick search.
_LAST_WORD = lazy_compile(
    lambda: rf"(?:{pack_phrases('seed_phrase_end')})(?: (?:{pack_phrases('seed_phrase_more')}))?(?![a-zA-Z])"
)
_SEED_NAME = lazy_compile(lambda: rf"(?:{pack_phrases('seed_phrase_name')})\Z", re.IGNORECASE)
_MAX_SEED_NAME = 32
_SEED_SIGN = lazy_compile(
    lambda: (
        r"[^\S\n]?(?:\(\d\d words\))?[\"'*_` \t]{0,4}"
        rf"(?:(?:{pack_phrases('seed_phrase_is')})[ \t]?[:=]?|:=|[:=：]|{pack_phrases('seed_phrase_is_joined')})"
        r"[\s\"'`*>\[(-]{0,40}"
    )
)
_SEED_WORD = lazy_compile(r"(?:\d{1,2}[.):]?[ \t]*)?[\"']?([a-z]{3,8})[\"']?(?![\w'’-])")
_SEED_GAP = lazy_compile(r"[\s,>|*-]{1,24}")
_SEED_LENGTHS = (24, 21, 18, 15, 12)


def find_seed_phrases(text: str) -> Iterator[SecretSpan]:
    """Yield every seed phrase in `text`, its words only."""
    position = 0
    while last := _LAST_WORD.search(text, position):
        position = last.end()
        if not _SEED_NAME.search(text[max(0, position - _MAX_SEED_NAME) : position]):
            continue
        sign = _SEED_SIGN.match(text, position)
        span = _find_words(text, sign.end()) if sign else None
        if span is not None:
            yield span
            position = span.end


def _find_words(text: str, start_position: int) -> SecretSpan | None:
    word_ends: list[int] = []
    start = position = start_position
    while len(word_ends) < _SEED_LENGTHS[0]:
        word = _SEED_WORD.match(text, position)
        if word is None or word[1] in pack_words("not_seed"):
            break
        word_ends.append(word.end())
        gap = _SEED_GAP.match(text, word.end())
        if gap is None:
            break
        position = gap.end()
    word_count = next((word_count for word_count in _SEED_LENGTHS if word_count <= len(word_ends)), None)
    return (
        None
        if word_count is None
        else SecretSpan(start=start, end=word_ends[word_count - 1], type="seed-phrase", rank=3)
    )


_AWS_SECRET = lazy_compile(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=])")
_AWS_KEY_ID = lazy_compile(r"(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])")
_SECRET_WORD = lazy_compile(r"(?<![A-Za-z])secret(?![a-z])[^\n]*\Z", re.IGNORECASE)
_KEY_ID_DISTANCE = 160
_SECRET_WORD_DISTANCE = 48
_MIN_DISTINCT_IN_SECRET = 18


def find_aws_secrets(text: str) -> Iterator[SecretSpan]:
    """Yield values of the shape near a key id, on either side, or shortly after the word "secret" on their line."""
    for match in _AWS_SECRET.finditer(text):
        if _is_random(match.group()) and _is_announced(text, match.start(), match.end()):
            yield SecretSpan(start=match.start(), end=match.end(), type="aws-secret-key")


def _is_random(value: str) -> bool:
    """Return whether digits and letters of both cases are mixed as in random text, not as in a sample of a manual."""
    counts = (sum(kind(char) for char in value) for kind in (str.isdigit, str.isupper, str.islower))
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
