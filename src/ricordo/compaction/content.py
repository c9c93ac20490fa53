"""What kind of content a text is, as far as a reader of its preview wants to know. Pure.

A guess that is never wrong in a way that matters: JSON is what parses as JSON, and what is nothing else is text.
"""

import csv
import re
from itertools import islice

from ricordo.errors import InvalidMessage
from ricordo.messages.jsontext import loads

__all__ = ["content_kind"]

_SAMPLE_CHARS = 8_192
_MIN_TABLE_LINES = 3
_MIN_TABLE_COLUMNS = 3
_CONTROL_CHARS = re.compile(r"[\0-\x08\x0e-\x1a\x1c-\x1f\ufffd]")
_MAX_CONTROL_SHARE = 0.1
_MARKUP_PATTERNS = ((re.compile(r"<!doctype html|<html[\s>]", re.IGNORECASE), "HTML"), (re.compile(r"<\?xml\b"), "XML"))


def content_kind(text: str) -> str:
    """Return `JSON`, `JSON lines`, `HTML`, `XML`, `CSV`, `binary data` or `text`."""
    head = text[:_SAMPLE_CHARS].lstrip("\ufeff \t\r\n")
    if len(_CONTROL_CHARS.findall(head)) > _MAX_CONTROL_SHARE * len(head):
        return "binary data"
    if head[:1] in {"{", "["}:
        return _json_kind(text, head)
    for pattern, kind in _MARKUP_PATTERNS:
        if pattern.match(head):
            return kind
    return "CSV" if _is_table(head) else "text"


def _json_kind(text: str, head: str) -> str:
    if _is_json(text):
        return "JSON"
    lines = _whole_lines(head)
    return "JSON lines" if len(lines) > 1 and all(map(_is_json, lines)) else "text"


def _is_json(text: str) -> bool:
    try:
        loads(text.strip("\ufeff \t\r\n"))
    except InvalidMessage:
        return False
    return True


def _is_table(head: str) -> bool:
    """Tell whether the first lines have as many columns each; commas of a sentence make no table."""
    try:
        rows = list(islice(csv.reader(_whole_lines(head), strict=True), 20))
    except csv.Error:
        return False
    columns = {len(row) for row in rows}
    return len(rows) >= _MIN_TABLE_LINES and len(columns) == 1 and columns.pop() >= _MIN_TABLE_COLUMNS


def _whole_lines(head: str) -> list[str]:
    """Return the lines that end within `head` and are not blank."""
    return [line for line in head.split("\n")[:-1] if line.strip()]
