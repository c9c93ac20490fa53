"""Tombstones: what was forgotten, without saying what it was.

A tombstone keeps the id of the entry and a keyed digest of its content in plain words, so that extraction can
recognise the same statement and leave it out, and nobody without the root's key can guess it.
"""

import json
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b

from ricordo.errors import FileMissing
from ricordo.files import ABSENT, FileStore
from ricordo.workspace.layout import TOMBSTONES

__all__ = ["Tombstones", "content_digest", "read_tombstones"]


@dataclass(frozen=True, kw_only=True)
class Tombstones:
    """The tombstones of a workspace as they stand in its file of this version."""

    ids: frozenset[str] = frozenset()
    digests: frozenset[str] = frozenset()
    data: bytes = b""
    version: str = ABSENT

    def with_entries(self, entries: Iterable[tuple[str, str]]) -> bytes:
        """Return the file with a tombstone more for each (id, digest)."""
        start = self.data if not self.data or self.data.endswith(b"\n") else self.data + b"\n"
        return start + b"".join(
            json.dumps({"id": entry_id, "digest": digest}).encode() + b"\n" for entry_id, digest in entries
        )


def content_digest(content: str, key: bytes) -> str:
    """Return 32 hex digits that are equal for texts with the same words, whatever their case and punctuation."""
    folded = unicodedata.normalize("NFKC", content).casefold()
    words = "".join(character if character.isalnum() else " " for character in folded).split()
    return blake2b(" ".join(words).encode("utf-8", "replace"), key=key, digest_size=16).hexdigest()


async def read_tombstones(files: FileStore) -> Tombstones:
    """Return the tombstones of the workspace; lines that can't be read count for nothing."""
    try:
        stored = await files.read(TOMBSTONES)
    except FileMissing:
        return Tombstones()
    rows = [row for line in stored.data.split(b"\n") if line.strip() and (row := _row(line))]
    return Tombstones(
        ids=frozenset(row[0] for row in rows),
        digests=frozenset(row[1] for row in rows),
        data=stored.data,
        version=stored.version,
    )


def _row(line: bytes) -> tuple[str, str] | None:
    try:
        value = json.loads(line)
        return str(value["id"]), str(value["digest"])
    except (ValueError, TypeError, KeyError):
        return None
