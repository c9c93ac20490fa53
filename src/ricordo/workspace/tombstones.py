"""Tombstones: records of what was forgotten, without its content.

A tombstone has the id of the entry, the message that stated it, a keyed digest of its words, and when and by whom it
was forgotten, as far as that is known. With the digest extraction recognises the same statement and skips it; without
the key of the root nobody can test a guess. Statements are the same if their words are, whatever their case, white
space and punctuation: but C++ is not C#, and -5 is not 5.
"""

import json
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import lru_cache
from hashlib import blake2b

from ricordo.clock import format_rfc3339
from ricordo.errors import FileMissing
from ricordo.files import ABSENT, FileStore
from ricordo.messages.jsontext import decode_json
from ricordo.workspace.entry import Entry
from ricordo.workspace.layout import TOMBSTONES

__all__ = [
    "Tombstone", "Tombstones", "content_digest", "parse_tombstones", "read_tombstones", "create_tombstone", "find_tombstone",
]  # fmt: skip

_WORD_BREAK = re.compile(r"[\s\u2014]+")
_SENTENCE_MARKS = re.compile("[.,;:!?\u2026\u3001\u3002\uff0c\uff0e\uff1a\uff1b\uff01\uff1f\u00a1\u00bf]+")
_OPENING_MARKS = "\"'`([{\u00a1\u00bf\u00ab\u00bb\u2018\u201a\u201c\u201e\u300c\u300e\uff08"
_CLOSING_MARKS = (
    ".,;:!?\u2026\u3001\u3002\uff0c\uff0e\uff1a\uff1b\uff01\uff1f)]}\u00ab\u00bb\u201c\u201d\u300d\u300f\uff09`"
)
_CLOSING_QUOTES = "\"'\u2019"


@dataclass(frozen=True, kw_only=True)
class Tombstone:
    """One entry that was forgotten: its id, the digest of its content, and the message that stated it, if any.

    `at` is when it was forgotten, as RFC 3339 in UTC, and `by` who forgot it; both are empty where that is not known.
    """

    id: str
    digest: str
    session: str = ""
    message: str = ""
    at: str = ""
    by: str = ""

    @property
    def origin(self) -> str:
        """When and by whom it was forgotten, in words that begin with a space; empty where that is not known."""
        return f" at {self.at} by {self.by}" if self.at else ""

    def to_line(self) -> bytes:
        """Return it as a line of a file of tombstones."""
        values = {name: value for name, value in asdict(self).items() if value or name in {"id", "digest"}}
        return json.dumps(values).encode() + b"\n"


@dataclass(frozen=True, kw_only=True)
class Tombstones:
    """The tombstones of a workspace as they stand in its file of this version; `messages` are (session, id) pairs."""

    ids: frozenset[str] = frozenset()
    digests: frozenset[str] = frozenset()
    messages: frozenset[tuple[str, str]] = frozenset()
    rows: tuple[Tombstone, ...] = ()
    data: bytes = b""
    version: str = ABSENT

    def render_with(self, stones: Iterable[Tombstone]) -> bytes:
        """Return the file with these tombstones more."""
        start = self.data if not self.data or self.data.endswith(b"\n") else self.data + b"\n"
        return start + b"".join(stone.to_line() for stone in stones)


def content_digest(content: str, key: bytes) -> str:
    """Return 32 hex digits that are equal for texts with the same words, whatever their case and sentence marks.

    What is attached to a word in any other way belongs to it: symbols, signs, and points between digits. A text of
    nothing but sentence marks is taken as it is.
    """
    folded = unicodedata.normalize("NFC", content).casefold()
    words = [word for piece in _WORD_BREAK.split(folded) if (word := _strip_marks(piece))]
    said = " ".join(words) or folded.strip()
    return blake2b(said.encode("utf-8", "surrogatepass"), key=key, digest_size=16).hexdigest()


def _strip_marks(piece: str) -> str:
    """Return a word without the marks of the sentence around it; empty for nothing but such marks."""
    if _SENTENCE_MARKS.fullmatch(piece):
        return ""
    bare = piece.lstrip(_OPENING_MARKS)
    end = len(bare)
    # a quotation mark after a digit is a unit: 5' is not 5"
    while end and (
        bare[end - 1] in _CLOSING_MARKS or (bare[end - 1] in _CLOSING_QUOTES and not bare[end - 2].isdigit())
    ):
        end -= 1
    return bare[:end] or piece


def create_tombstone(entry: Entry, key: bytes, *, at: datetime, by: str) -> Tombstone:
    """Return the tombstone of an entry that is forgotten now."""
    stating = entry.source.messages[0] if entry.source.messages else ""
    return Tombstone(
        id=entry.id,
        digest=content_digest(entry.content, key),
        session=entry.source.session or "",
        message=stating,
        at=format_rfc3339(at),
        by=by,
    )


def find_tombstone(entry: Entry, stones: Tombstones, key: bytes) -> Tombstone | None:
    """Return the tombstone by which an entry is known as forgotten; None for one that is not.

    It has the same id, or the same words and is older than the forgetting. An entry without a time counts as older,
    and so does each where it is not known when its words were forgotten.
    """
    digest = content_digest(entry.content, key) if stones.digests else ""
    if entry.id not in stones.ids and digest not in stones.digests:
        return None
    time = format_rfc3339(entry.time) if entry.time else ""
    for row in stones.rows:
        if row.id == entry.id or (row.digest == digest and (not row.at or time <= row.at)):
            return row
    return None


async def read_tombstones(files: FileStore, path: str = TOMBSTONES) -> Tombstones:
    """Return the tombstones of the workspace, or of the file at `path`; lines that can't be read count for nothing."""
    try:
        stored = await files.read(path)
    except FileMissing:
        return Tombstones()
    return parse_tombstones(stored.data, stored.version)


@lru_cache(maxsize=8)
def parse_tombstones(data: bytes, version: str = ABSENT) -> Tombstones:
    """Return the tombstones in the bytes of their file; lines that can't be read count for nothing."""
    rows = [row for line in data.split(b"\n") if line.strip() and (row := _parse_line(line))]
    return Tombstones(
        ids=frozenset(row.id for row in rows),
        digests=frozenset(row.digest for row in rows if row.digest),
        messages=frozenset((row.session, row.message) for row in rows if row.message),
        rows=tuple(rows),
        data=data,
        version=version,
    )


def _parse_line(line: bytes) -> Tombstone | None:
    try:
        value = decode_json(line)
        said = {name: str(value.get(name, "")) for name in ("session", "message", "at", "by")}
        return Tombstone(id=str(value["id"]), digest=str(value["digest"]), **said)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
