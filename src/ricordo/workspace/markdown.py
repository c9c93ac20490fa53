"""The text of Markdown documents: encodings, line ends, escapes, and generated parts of curated memory. Pure.

Documents are UTF-8 with any line ends; UTF-16 is read if it has a byte order mark. In a bullet only text that could be
parsed as a tag, field, id, heading or fence is escaped, with a backslash. Consolidation generates the front matter of a
topic, and the lines of MEMORY.md that list topics.

Invariant: `unescape(escape_content(text)) == text` for any text.
"""

import codecs
import re
from collections.abc import Callable, Collection
from typing import Final

from ricordo.lazy import lazy_compile
from ricordo.workspace.layout import TOPICS, WORKSPACE

__all__ = [
    "BYTE_ORDER_MARK",
    "POINTER_END",
    "POINTER_START",
    "SPEAKER_LABEL",
    "TOPIC_FRONT_MATTER",
    "TOPIC_LIST_LINE",
    "count_line_ends",
    "decode_lines",
    "escape_content",
    "escape_value",
    "find_frame_lines",
    "find_marked_ids",
    "find_written_id",
    "has_any_id",
    "is_utf8",
    "is_utf16",
    "split_lines",
    "to_utf8",
    "unescape",
]


BYTE_ORDER_MARK = codecs.BOM_UTF8
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_APPENDED_BULLET = lazy_compile(rb"\n(?=- [ -~])")
_LINE = lazy_compile(rb"[^\n]*\n|[^\n]+\Z")
_LINE_WITH_RETURNS = lazy_compile(rb"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+\Z")
_LINE_END = lazy_compile(r"\r\n|\n|\r")
_LONE_RETURN = lazy_compile(rb"\r(?!\n)")


def is_utf16(document: bytes) -> bool:
    """Return whether the document is UTF-16: it begins with the mark, and contains zero bytes."""
    return document.startswith(_UTF16_MARKS) and b"\0" in document


def is_utf8(document: bytes) -> bool:
    """Return whether the document is UTF-8 throughout."""
    try:
        document.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def to_utf8(document: bytes) -> bytes:
    """Return the document in UTF-8, unchanged unless it is UTF-16.

    Entries that were appended to UTF-16 are UTF-8 already. Invalid bytes become replacement characters.
    """
    if not is_utf16(document):
        return document
    appended = _APPENDED_BULLET.search(document)
    end = appended.start() if appended else len(document)
    # half of a character is the newline before the appended entries
    end += end % 2 if appended else 0
    return document[:end].decode("utf-16", "replace").encode("utf-8", "surrogatepass") + document[end:]


def split_lines(document: bytes) -> list[bytes]:
    """Return the lines of a document with their ends; joined, they equal the document."""
    return (_LINE_WITH_RETURNS if b"\r" in document else _LINE).findall(document)


def decode_lines(document: bytes) -> list[str]:
    """Return the lines of a document without their ends; the last one is empty if the document ends with a line end.

    Bytes that are not UTF-8 become replacement characters.
    """
    text = to_utf8(document).removeprefix(BYTE_ORDER_MARK).decode("utf-8", "replace")
    return _LINE_END.split(text) if "\r" in text else text.split("\n")


def count_line_ends(document: bytes) -> int:
    """Return the number of line ends in these bytes."""
    return document.count(b"\n") + (len(_LONE_RETURN.findall(document)) if b"\r" in document else 0)


_ESCAPE_LETTERS = {"s": " ", "t": "\t", "r": "\r", "n": "\n", "e": ""}
_AMBIGUOUS = lazy_compile(r"\\(?=[\\#\[\]^`~strne]|u\{|[\s\x00-\x1f\x7f-\x9f\ud800-\udfff\ufeff]|\Z)")
_LOOKALIKE = lazy_compile(
    r"(?<!\S)(?=#[^\s#]|#{1,6}(?:\s|$)|\[[A-Za-z][\w-]*::|\^[A-Za-z0-9-])|^[^\S\n]*(?=```|~~~)", re.MULTILINE
)
_CONTROL = lazy_compile("[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff]")
_ESCAPE = lazy_compile(r"\\(?:u\{([0-9a-f]{1,6})\}|([strne])|([\\#\[\]^`~]))")
_TRAILING_SPACE = lazy_compile(r"[ \t](?=\n|\Z)")


def escape_content(text: str) -> str:
    """Return `text` so that no line of it parses as a tag, field, id, heading or fence, without loss."""
    escaped = _AMBIGUOUS.sub(r"\\\\", text)
    escaped = _LOOKALIKE.sub(lambda match: match.group() + "\\", escaped)
    escaped = _CONTROL.sub(_escape_control, escaped.replace("\r", "\\r"))
    escaped = _TRAILING_SPACE.sub(lambda match: "\\s" if match.group() == " " else "\\t", escaped)
    if escaped[:1] in {" ", "\t"}:
        escaped = ("\\s" if escaped[0] == " " else "\\t") + escaped[1:]
    if escaped.startswith("\n") or not escaped:
        escaped = "\\e" + escaped
    return escaped + "\\e" if escaped.endswith("\n") else escaped


def escape_value(text: str) -> str:
    """Return `text` on one line, escaped for the brackets of a field."""
    escaped = re.sub(r"[\\\[\]]", lambda match: "\\" + match.group(), text)
    escaped = _CONTROL.sub(_escape_control, escaped.replace("\r", "\\r").replace("\n", "\\n"))
    escaped = re.sub(r"^[ \t]|[ \t]$", lambda match: "\\s" if match.group() == " " else "\\t", escaped)
    return escaped or "\\e"


def unescape(text: str) -> str:
    """Return the unescaped text; a backslash that starts no escape stays."""
    return _ESCAPE.sub(_unescape_match, text) if "\\" in text else text


def _escape_control(match: re.Match[str]) -> str:
    return f"\\u{{{ord(match.group()):x}}}"


def _unescape_match(match: re.Match[str]) -> str:
    number, letter, mark = match.groups()
    if number is not None:
        code = int(number, 16)
        return chr(code) if code <= 0x10FFFF else match.group()
    return _ESCAPE_LETTERS[letter] if letter is not None else str(mark)


SPEAKER_LABEL: Final = lazy_compile(r"^([^\s:“”\"]{1,30})(?:, [^“”:]{1,20}“[^”]*”)?: ")
"""The speaker before what was learned from talk, in group 1, and the question that it answers."""
POINTER_START: Final = "   - "
POINTER_END: Final = " →"
TOPIC_LIST_LINE: Final = lazy_compile(
    rf"(?:\d+\. \[.*\]\({TOPICS.removeprefix(f'{WORKSPACE}/')}/[^)]*\.md\)|{POINTER_START}.*{POINTER_END}\s*$)".encode()
)
"""A line of MEMORY.md that consolidation wrote to list a topic, or to state a long memory of it in short."""
TOPIC_FRONT_MATTER: Final = lazy_compile(r"name: \".*\"\ndescription: \".*\"\ntype: \"\w+\"\n")
"""The text between the marks of a front matter that consolidation wrote."""
_FRONT_MATTER_BLOCK = lazy_compile(rb"---\n" + TOPIC_FRONT_MATTER.pattern.encode() + rb"---\n")


def find_frame_lines(document: bytes) -> frozenset[int]:
    """Return the numbers, from 1, of the generated lines of a curated document, which only repeat its entries."""
    front = _FRONT_MATTER_BLOCK.match(document)
    heading = range(1, document.count(b"\n", 0, front.end()) + 1) if front else ()
    topic_lines = (number for number, line in enumerate(document.split(b"\n"), start=1) if TOPIC_LIST_LINE.match(line))
    return frozenset((*heading, *topic_lines))


_WRITTEN_ID = lazy_compile(rb"\s\^([A-Za-z0-9-]+)[ \t\r\n]*\Z")
_CARET_MARK = lazy_compile(rb"\^([A-Za-z0-9-]+)")


def find_written_id(bullet: bytes) -> str:
    """Return the id at the end of a bullet; empty for a bullet whose id is derived from its text."""
    caret = bullet.rfind(b"^")
    match = _WRITTEN_ID.match(bullet, caret - 1) if caret > 0 else None
    return match[1].decode("ascii") if match else ""


def find_marked_ids(document: bytes) -> frozenset[str]:
    """Return what follows a caret in a document: the written ids of its entries, and other words."""
    return frozenset(mark.decode("ascii") for mark in _CARET_MARK.findall(document))


def has_any_id(ids: Collection[str]) -> Callable[[bytes], bool]:
    """Return the `only` of `parse_entries` for entries with these full ids.

    Bullets without a written id pass too, as a derived id depends on all of them.
    """

    def passes(bullet: bytes) -> bool:
        written_id = find_written_id(bullet)
        return not written_id or written_id in ids

    return passes
