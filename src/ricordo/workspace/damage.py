"""Damage: what in a Markdown document of memory is no text, or no longer what was written. Pure.

Any text is somebody's, so little is damage for sure: bytes that are no text, a field that nobody closed or that can't
be read, and an end in the middle of a sentence. What is found is told and nothing more: every byte stays.
"""

import re
from collections.abc import Sequence

from ricordo.workspace.entry_codec import LocatedEntry

__all__ = ["find_damage"]

_UNCLOSED_FIELD = re.compile(rb"\[[A-Za-z][\w-]*::(?: [^\]]*)?\Z")
_DERIVED_PREFIX = "h"
_STRICT_FIELDS = frozenset({"at", "since", "confidence"})
"""Fields whose values follow a rule; what else can't be read may be a field of another tool."""

_SENTENCE_ENDS = (b".", b"!", b"?", b":", b")", b"]", b"`", b'"', b"*", b"_", b"\xe2\x80\xa6", b"\xe3\x80\x82")


def find_damage(data: bytes, located: Sequence[LocatedEntry]) -> tuple[str, ...]:
    """Return what is damaged in a document, a few words with the line for each; `located` are its entries."""
    found = [*_find_binary(data)]
    for one in located:
        block = data[one.offset : one.offset + one.length].rstrip()
        if one.entry.id.startswith(_DERIVED_PREFIX) and _UNCLOSED_FIELD.match(block, block.rfind(b"[")):
            found.append(f"line {one.end_line}: a field is cut off")
        found += [
            f"line {one.end_line}: the field {key} can't be read" for key, _ in one.entry.extra if key in _STRICT_FIELDS
        ]
    return (*found, *_find_truncation(data, located))


def _find_binary(data: bytes) -> list[str]:
    try:
        data.decode("utf-8")
        at = data.find(b"\0")
    except UnicodeDecodeError as error:
        at = error.start
    line = data.count(b"\n", 0, max(at, 0)) + 1
    return [f"line {line}: bytes that are no text"] if at >= 0 else []


def _find_truncation(data: bytes, located: Sequence[LocatedEntry]) -> list[str]:
    """Return a last bullet that ends in the middle of a sentence, or of an id, where those before it carry ids."""
    last = located[-1] if located else None
    ids = [len(one.entry.id) for one in located[:-1] if not one.entry.id.startswith(_DERIVED_PREFIX)]
    if last is None or not ids or data.endswith(b"\n") or last.offset + last.length < len(data):
        return []
    if last.entry.id.startswith(_DERIVED_PREFIX):
        cut_field = _UNCLOSED_FIELD.match(data, data.rfind(b"[")) is not None
        whole = cut_field or (data.endswith(_SENTENCE_ENDS) and last.entry.time is None)
    else:
        whole = len(last.entry.id) >= min(ids)
    return [] if whole else [f"line {last.end_line}: it ends in the middle of a line"]
