"""Pages of a text: as many whole lines as fit, and long lines in pieces. Pure.

Invariant: the joined pages are the whole text, character by character.
"""

from ricordo.lazy import dataclass
from ricordo.messages.tokens import safe_boundary

__all__ = ["Page", "cut_page", "decode_text", "describe_page"]


_SNIFFED_BYTES = 8_192
_UNREADABLE_SHARE = 0.1


@dataclass(frozen=True, kw_only=True)
class Page:
    """A part of a text, with its original line ends.

    It starts at `character` (from 0) of line `start` (from 1) and ends in line `end`, of `total`. `next_line` and
    `next_character` are the start of the next page, None at the end of the text. `length` is the number of characters
    of the first line.
    """

    text: str
    start: int
    character: int
    end: int
    total: int
    length: int
    next_line: int | None = None
    next_character: int = 0


def decode_text(data: bytes) -> str | None:
    """Return the text, with a replacement for each undecodable byte; None for binary data.

    A tool may print a zero byte or two; binary data has more of them, or zero bytes and invalid UTF-8.
    """
    head = data[:_SNIFFED_BYTES]
    zeros = head.count(b"\0")
    if zeros > _UNREADABLE_SHARE * len(head):
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        if zeros:
            return None
        undecodable = head.decode("utf-8", "replace").count("\ufffd")
        return None if undecodable > max(1, _UNREADABLE_SHARE * len(head)) else data.decode("utf-8", "replace")


def cut_page(
    text: str, *, line: int = 1, character: int = 0, lines: int | None = None, max_chars: int = 20_000
) -> Page | None:
    """Return the page of at most `max_chars` characters that starts at `character` of `line`; None past the end.

    It has at most `lines` lines. It ends at a line end if a whole line fits, else within its first line.
    """
    starts = _line_starts(text)
    total = len(starts) - 1
    if line > max(total, 1):
        return None
    begin = starts[line - 1] + character
    first_end = starts[line] if total else 0
    if begin >= first_end and (character or total == 0):
        return None if character else Page(text="", start=1, character=0, end=0, total=0, length=0)
    last = min(line - 1 + lines, total) if lines is not None else total
    last_line = line
    while last_line < last and starts[last_line + 1] - begin <= max_chars:
        last_line += 1
    stop = starts[last_line]
    if stop - begin > max_chars:
        stop = _safe_end(text, begin, begin + max_chars)
    return Page(
        text=text[begin:stop],
        start=line,
        character=character,
        end=last_line,
        total=total,
        length=first_end - starts[line - 1],
        next_line=None if stop == len(text) else last_line + (stop == starts[last_line]),
        next_character=0 if stop == starts[last_line] else stop - starts[line - 1],
    )


def describe_page(page: Page) -> str:
    """Return in words which part of a file a page is, and with which arguments to read on."""
    if page.total == 0:
        return "the file is empty"
    if page.start == page.end:
        part = f"line {page.start} of {page.total}"
    else:
        part = f"lines {page.start} to {page.end} of {page.total}"
    if page.character or page.next_character:
        last = page.next_character or page.length
        range_text = f"characters {page.character} to {last} of {page.length}"
        part = f"{part}, {range_text}" if page.start == page.end else f"{part}, from character {page.character} on"
    if page.next_line is None:
        return f"{part}, to the end of the file"
    more = f", character={page.next_character}" if page.next_character else ""
    return f"{part}. Read on with offset={page.next_line}{more}"


def _safe_end(text: str, begin: int, limit: int) -> int:
    """Return a safe end, after `begin`, of the piece that starts at `begin`."""
    window = text[begin : limit + 1]
    boundary = safe_boundary(window, limit - begin)
    return begin + boundary if boundary > 0 else limit


def _line_starts(text: str) -> list[int]:
    """Return the start of each line, and the end of the text."""
    starts = [0]
    position = text.find("\n") + 1
    while position:
        starts.append(position)
        position = text.find("\n", position) + 1
    return starts if starts[-1] == len(text) else [*starts, len(text)]
