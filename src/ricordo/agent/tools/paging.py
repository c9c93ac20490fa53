"""Pages of a text: as many whole lines as fit, and long lines in pieces. Pure.

Invariant: the joined pages are the whole text, character by character.
"""

from dataclasses import dataclass

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
        lost = head.decode("utf-8", "replace").count("\ufffd")
        return None if lost > max(1, _UNREADABLE_SHARE * len(head)) else data.decode("utf-8", "replace")


def cut_page(
    text: str, *, line: int = 1, character: int = 0, lines: int | None = None, most: int = 20_000
) -> Page | None:
    """Return the page of at most `most` characters that starts at `character` of `line`; None past the end.

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
    reached = line
    while reached < last and starts[reached + 1] - begin <= most:
        reached += 1
    stop = starts[reached]
    if stop - begin > most:
        stop = _safe_end(text, begin, begin + most)
    return Page(
        text=text[begin:stop],
        start=line,
        character=character,
        end=reached,
        total=total,
        length=first_end - starts[line - 1],
        next_line=None if stop == len(text) else reached + (stop == starts[reached]),
        next_character=0 if stop == starts[reached] else stop - starts[line - 1],
    )


def describe_page(found: Page) -> str:
    """Return in words which part of a file a page is, and with which arguments to read on."""
    if found.total == 0:
        return "the file is empty"
    if found.start == found.end:
        part = f"line {found.start} of {found.total}"
    else:
        part = f"lines {found.start} to {found.end} of {found.total}"
    if found.character or found.next_character:
        last = found.next_character or found.length
        where = f"characters {found.character} to {last} of {found.length}"
        part = f"{part}, {where}" if found.start == found.end else f"{part}, from character {found.character} on"
    if found.next_line is None:
        return f"{part}, to the end of the file"
    more = f", character={found.next_character}" if found.next_character else ""
    return f"{part}. Read on with offset={found.next_line}{more}"


def _safe_end(text: str, begin: int, at: int) -> int:
    """Return a safe end, after `begin`, of the piece that starts at `begin`."""
    window = text[begin : at + 1]
    found = safe_boundary(window, at - begin)
    return begin + found if found > 0 else at


def _line_starts(text: str) -> list[int]:
    """Return the start of each line, and the end of the text."""
    starts = [0]
    at = text.find("\n") + 1
    while at:
        starts.append(at)
        at = text.find("\n", at) + 1
    return starts if starts[-1] == len(text) else [*starts, len(text)]
