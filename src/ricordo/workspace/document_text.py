"""The text of a document as any editor may have written it: its byte order mark, its encoding, its ends of lines. Pure.

Documents are UTF-8. A mark at the beginning belongs to no line, a carriage return ends a line like a newline does, and
UTF-16 is read where its mark says so. Our own writing is UTF-8 with newlines, also behind what is not.
"""

import codecs
import re

__all__ = ["BYTE_ORDER_MARK", "to_utf8", "count_line_ends", "is_utf16", "split_lines", "decode_lines"]

BYTE_ORDER_MARK = codecs.BOM_UTF8

_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_APPENDED_BULLET = re.compile(rb"\n(?=- [ -~])")
_LINE = re.compile(rb"[^\n]*\n|[^\n]+\Z")
_LINE_WITH_RETURNS = re.compile(rb"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+\Z")
_LINE_END = re.compile(r"\r\n|\n|\r")
_LONE_RETURN = re.compile(rb"\r(?!\n)")


def is_utf16(document: bytes) -> bool:
    """Tell whether the document is in UTF-16: it begins with the mark, and its spaces and newlines have zeros."""
    return document.startswith(_UTF16_MARKS) and b"\0" in document


def to_utf8(document: bytes) -> bytes:
    """Return the document in UTF-8; it is the same bytes unless it is UTF-16.

    Entries that were appended to UTF-16 are UTF-8 already. What is neither becomes replacement characters.
    """
    if not is_utf16(document):
        return document
    appended = _APPENDED_BULLET.search(document)
    end = appended.start() if appended else len(document)
    # half of a character is a newline that stands before what was appended
    end += end % 2 if appended else 0
    return document[:end].decode("utf-16", "replace").encode("utf-8", "surrogatepass") + document[end:]


def split_lines(document: bytes) -> list[bytes]:
    """Return the lines of a document with their ends; joined they are the document."""
    return (_LINE_WITH_RETURNS if b"\r" in document else _LINE).findall(document)


def decode_lines(document: bytes) -> list[str]:
    """Return the lines of a document without their ends; the last one is empty where the document ends with one.

    Bytes that are no UTF-8 become replacement characters.
    """
    text = to_utf8(document).removeprefix(BYTE_ORDER_MARK).decode("utf-8", "replace")
    return _LINE_END.split(text) if "\r" in text else text.split("\n")


def count_line_ends(document: bytes) -> int:
    """Return how many ends of lines are in these bytes."""
    return document.count(b"\n") + (len(_LONE_RETURN.findall(document)) if b"\r" in document else 0)
