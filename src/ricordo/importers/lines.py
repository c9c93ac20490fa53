"""Lines of a file that anybody may have written: bounded, numbered, never decoded.

Invariant: whatever the bytes, at most `LINE_LIMIT` of one line are in memory, and every line that is not blank is
either given or reported. A byte-order mark at the start and the carriage return of CRLF belong to no line.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ricordo.errors import FileMissing, HistoryUnreadable, StorageFailed

__all__ = ["LINE_LIMIT", "Line", "opened", "read_lines", "size_of"]

LINE_LIMIT = 32 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line that is not blank: its number from 1, its bytes (empty when `too_long`), and the offset after it."""

    number: int
    content: bytes
    end: int
    too_long: bool = False


def opened(path: Path) -> BinaryIO:
    """Open `path` for reading bytes.

    Raises:
        FileMissing: there is no such file.
        HistoryUnreadable: it is a folder.
        StorageFailed: the system refuses to open it.
    """
    try:
        return path.open("rb")
    except FileNotFoundError as error:
        raise FileMissing(f"There is no file {path}.") from error
    except IsADirectoryError as error:
        raise HistoryUnreadable(f"{path} is a folder; name the file that holds the conversation.") from error
    except (OSError, ValueError) as error:
        raise StorageFailed(f"{path} can't be opened: {type(error).__name__}.") from error


def size_of(path: Path) -> int:
    """Return the size of `path` in bytes; raises what `opened` raises."""
    with opened(path) as file:
        return file.seek(0, 2)


def read_lines(path: Path, on_end: Callable[[int], None] | None = None) -> Iterator[Line]:
    """Give the lines of `path` that are not blank, in order; `on_end` gets the offset after each line, blank ones too.

    Raises: what `opened` raises.
    """
    with opened(path) as file:
        number = 0
        while raw := file.readline(LINE_LIMIT + 1):
            number += 1
            too_long = len(raw) > LINE_LIMIT
            if too_long:
                _skip_rest(file, raw)
            content = b"" if too_long else _bare(raw, first=number == 1)
            end = file.tell()
            if on_end is not None:
                on_end(end)
            if content or too_long:
                yield Line(number=number, content=content, end=end, too_long=too_long)


def _bare(raw: bytes, *, first: bool) -> bytes:
    return (raw.removeprefix(_BOM) if first else raw).strip(b" \t\r\n")


def _skip_rest(file: BinaryIO, raw: bytes) -> None:
    while raw and not raw.endswith(b"\n"):
        raw = file.readline(LINE_LIMIT)
