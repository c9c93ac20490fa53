"""Lines of a file that anybody may have written: bounded, numbered, never decoded.

Invariant: whatever the bytes, at most `LINE_LIMIT` of one line are in memory, and every line that is not blank is
either given or reported. A byte-order mark at the start and the carriage return of CRLF belong to no line. A file that
begins with the mark of UTF-16 is read as the UTF-8 that says the same.
"""

import codecs
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO, cast

from ricordo.errors import FileMissing, HistoryUnreadable, StorageFailed

__all__ = ["LINE_LIMIT", "FileLine", "open_utf8", "read_lines", "utf8_size"]

LINE_LIMIT = 32 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_CHUNK = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class FileLine:
    """One line that is not blank: its number from 1, its bytes (empty when `too_long`), and the offset after it."""

    number: int
    content: bytes
    end: int
    too_long: bool = False


def open_utf8(path: Path) -> BinaryIO:
    """Open `path` for reading bytes, which are UTF-8 also where the file has the mark of UTF-16.

    Raises:
        FileMissing: there is no such file.
        HistoryUnreadable: it is a folder.
        StorageFailed: the system refuses to open it.
    """
    try:
        return _as_utf8(path.open("rb"))
    except FileNotFoundError as error:
        raise FileMissing(f"There is no file {path}.") from error
    except IsADirectoryError as error:
        raise HistoryUnreadable(f"{path} is a folder; name the file that holds the conversation.") from error
    except (OSError, ValueError) as error:
        raise StorageFailed(f"{path} can't be opened: {type(error).__name__}.") from error


def _as_utf8(file: BinaryIO) -> BinaryIO:
    if file.read(2) not in _UTF_16:
        file.seek(0)
        return file
    file.seek(0)
    decoder = codecs.getincrementaldecoder("utf-16")("replace")
    copy = cast("BinaryIO", TemporaryFile())  # noqa: SIM115 - the caller closes it
    with file:
        while chunk := file.read(_CHUNK):
            copy.write(decoder.decode(chunk).encode("utf-8"))
        copy.write(decoder.decode(b"", final=True).encode("utf-8"))
    copy.seek(0)
    return copy


def utf8_size(path: Path) -> int:
    """Return the size of `path` in bytes as they are read; raises what `open_utf8` raises."""
    with open_utf8(path) as file:
        return file.seek(0, 2)


def read_lines(path: Path, on_end: Callable[[int], None] | None = None) -> Iterator[FileLine]:
    """Give the lines of `path` that are not blank, in order; `on_end` gets the offset after each line, blank ones too.

    Raises: what `open_utf8` raises.
    """
    with open_utf8(path) as file:
        number = 0
        while raw := file.readline(LINE_LIMIT + 1):
            number += 1
            too_long = len(raw) > LINE_LIMIT
            if too_long:
                _skip_rest(file, raw)
            content = b"" if too_long else _strip_line(raw, first=number == 1)
            end = file.tell()
            if on_end is not None:
                on_end(end)
            if content or too_long:
                yield FileLine(number=number, content=content, end=end, too_long=too_long)


def _strip_line(raw: bytes, *, first: bool) -> bytes:
    return (raw.removeprefix(_BOM) if first else raw).strip(b" \t\r\n")


def _skip_rest(file: BinaryIO, raw: bytes) -> None:
    while raw and not raw.endswith(b"\n"):
        raw = file.readline(LINE_LIMIT)
