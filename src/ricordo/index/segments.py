"""Segments: what the chunks of a range of numbers are found by, stored in the index's own file to be loaded at once.

Folding makes a segment of the chunks that are in none yet, and merges it with those before it that are not four times
as large, so there are few of them and each chunk is written few times. Reading, building and writing are three steps:
only the last one holds the write lock, and it is one transaction.

Invariant: a segment is a cache of the rows. One that is damaged or missing is made up for by reading the rows, and one
that was replaced while another was built in its place is never overwritten.
"""

import json
import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio.to_thread
import numpy as np

from ricordo.database.sqlite import Connection, Database
from ricordo.index.contract import SUPERSEDES, TELLING, Chunk, Curated, Cut
from ricordo.index.corpus import ENTRY, MESSAGE, TELLS, Corpus
from ricordo.index.cutting import worth_reading
from ricordo.index.dense import Lacking, Sense
from ricordo.index.hybrid import search as hybrid_search
from ricordo.index.lexical import Found, Ranked, latest, search
from ricordo.index.meaning import embedded_text, hashed, meaning_of
from ricordo.index.occurrences import Occurrences
from ricordo.index.plan import Asked
from ricordo.index.postings import COLUMNS, NO_TIME, Array, Block, Builder, IndexedRow, Postings
from ricordo.index.queries import chunks
from ricordo.index.scoring import as_they_come
from ricordo.messages.jsontext import decoded

__all__ = ["Segments", "from_bytes", "to_bytes"]

_LEAST_FOLDED = 1_000
_TIMES_AS_LARGE = 4
_AT_ONCE, _FEW = 2_000, 250
_CHUNKS_KEPT = 4_096
_POSTINGS: dict[str, str] = {"ends": "<u4", "starts": "<u4", "rows": "<u4", "counts": "|u1"}
_TELLS = " OR ".join(f"instr(markup, '{mark}') > 0" for mark in TELLING)
_ROWS = f"""SELECT chunk.id, document, line, part, place, twin, time, entry, message <> '', markup <> '', {_TELLS},
    kind, tags, session, own, around, meaning FROM chunk JOIN words ON words.rowid = chunk.id
    WHERE chunk.id >= ? AND chunk.id <= ? ORDER BY chunk.id LIMIT ?"""


@dataclass(frozen=True, kw_only=True)
class _Fold:
    """What is to become one segment: chunks from `first` to `last`, in place of the segments `replaced`."""

    first: int
    last: int
    change: int
    replaced: tuple[int, ...]


class Segments:
    """The rows of one database as a corpus that follows what is written, by other processes too.

    It is used only where the database's calls run, which is in turn.
    """

    def __init__(self) -> None:
        """Begin with nothing in memory; the first search loads it."""
        self._corpus: Corpus | None = None
        self._change = 0
        self._document = 0
        self._curated, self._curated_numbers, self._curated_at = Curated(), list[int](), (-1, -1)
        self._successors: set[int] = set()
        self._marked = 0
        self._occurrences = Occurrences()
        self._held: dict[int, Chunk] = {}
        self._chunks_at = -1

    def search(
        self, connection: Connection, asked: Asked, sense: Sense | None = None
    ) -> tuple[list[tuple[Found, Chunk]], tuple[str, ...]]:
        """Return the rows that hold a word of the query with their chunks, best first, and its words that none holds.

        With `sense` they are joined by the rows that are near in meaning.
        """
        corpus = self._followed(connection)
        ranked = self._ranked(corpus, asked, sense)
        there = chunks(connection, ranked.numbers.tolist())
        return [(one, there[one.number]) for one in ranked.each() if one.number in there], ranked.absent

    def newest(self, connection: Connection, asked: Asked) -> list[Chunk]:
        """Return the newest chunks that pass the filters, the newest first; those without a time last."""
        return [*chunks(connection, latest(self._followed(connection), asked)).values()]

    def not_embedded(self, connection: Connection, sense: Sense, limit: int) -> Lacking:
        """Return what has no vector yet, the newest first, and which vectors nothing has any more."""
        corpus = self._followed(connection)
        numbers, count = sense.lacking(corpus, limit)
        texts = {meaning_of(chunk): embedded_text(chunk) for chunk in chunks(connection, numbers).values()}
        return Lacking(texts=texts, count=count, unused=sense.unused(corpus))

    def candidates(
        self, connection: Connection, asked: Asked, sense: Sense | None, cut: Cut | None
    ) -> tuple[list[tuple[Found, Chunk]], tuple[str, ...], float | None]:
        """Return what `search` does, without what `cut` leaves out, and how near the nearest of that is."""
        corpus = self._followed(connection)
        ranked = self._ranked(corpus, asked, sense)
        unseen = None
        if cut is None:
            found = ranked.each()
        else:
            found, unseen = worth_reading(corpus, ranked, cut, self._succeeding(connection, corpus))
        there = self._chunks(connection, [one.number for one in found])
        return [(one, there[one.number]) for one in found if one.number in there], ranked.absent, unseen

    def _chunks(self, connection: Connection, numbers: Sequence[int]) -> dict[int, Chunk]:
        """Return what `chunks` does; what was read lately is at hand, as what a number stands for never changes.

        A move to another line is a change that was followed; a piece of a long entry has fields of another row.
        """
        if self._chunks_at != self._change:
            self._held.clear()
            self._chunks_at = self._change
        held = {number: self._held[number] for number in numbers if number in self._held}
        read = chunks(connection, [number for number in numbers if number not in held])
        if len(self._held) > _CHUNKS_KEPT:
            self._held.clear()
        self._held.update((number, chunk) for number, chunk in read.items() if chunk.sort != "long")
        return held | read

    def _ranked(self, corpus: Corpus, asked: Asked, sense: Sense | None) -> Ranked:
        if sense is None:
            return search(corpus, asked, self._occurrences)
        return hybrid_search(corpus, asked, sense, self._occurrences)

    def curated(self, connection: Connection, asked: Asked) -> Curated:
        """Return the chunks that `newest` would; they are only read again when they may have changed."""
        corpus = self._followed(connection)
        state = corpus.highest, self._change
        if state != self._curated_at:
            numbers = latest(corpus, asked)
            if numbers != self._curated_numbers or self._change != self._curated_at[1]:
                matches = as_they_come(chunks(connection, numbers).values(), score=0.0)
                self._curated, self._curated_numbers = Curated(tuple(matches)), numbers
            self._curated_at = state
        return self._curated

    def _succeeding(self, connection: Connection, corpus: Corpus) -> Collection[int]:
        """Return the numbers of entries that took the place of others."""
        if corpus.highest > self._marked:
            wanted = (self._marked, SUPERSEDES)
            rows = connection.execute("SELECT id FROM chunk WHERE id > ? AND instr(markup, ?) > 0", wanted)
            self._successors.update(row[0] for row in rows)
            self._marked = corpus.highest
        return self._successors

    async def fold(self, database: Database) -> None:
        """Make a segment of what is in none, if that is worth it."""
        fold = await database.read(_fold)
        if fold is None:
            return
        builder, first = Builder(), fold.first
        while rows := await database.read(partial(_rows, first=first, last=fold.last, limit=_AT_ONCE)):
            await anyio.to_thread.run_sync(builder.add, rows)
            first = rows[-1].number + 1
        data, length = await anyio.to_thread.run_sync(_written, builder)
        if await database.write(lambda connection: _put(connection, fold, data, length)):
            await database.read(self._tidy)

    def _tidy(self, connection: Connection) -> None:
        """Load the corpus anew where it is in many pieces or holds much that was removed."""
        if self._corpus is not None and self._corpus.is_ragged:
            self._corpus = None
            self._followed(connection)

    def _followed(self, connection: Connection) -> Corpus:
        """Return the corpus as the connection sees the rows."""
        corpus, self._corpus = self._corpus, None
        if corpus is None or not self._follow(connection, corpus):
            corpus = Corpus()
            self._held.clear()
            self._change, self._document = _missing_changes(connection), 0
            self._know(connection, corpus)
            _load(connection, corpus)
            self._follow(connection, corpus)
        self._corpus = corpus
        return corpus

    def _follow(self, connection: Connection, corpus: Corpus) -> bool:
        """Take in what was written since; False when that can't be told any more."""
        highest, change = connection.execute(
            """SELECT (SELECT coalesce(max(id), 0) FROM chunk),
                (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'change')"""
        ).fetchone()
        if highest > corpus.highest:
            self._know(connection, corpus)
            _take(connection, corpus, corpus.highest + 1, highest)
        if change == self._change:
            return True
        changes = connection.execute("SELECT id, chunk, document FROM change WHERE id > ? ORDER BY id", (self._change,))
        since = changes.fetchall()
        if not since or since[0][0] != self._change + 1:
            return False
        corpus.remove([number for _, number, _ in since if number is not None])
        for document in {document for _, _, document in since if document is not None}:
            corpus.move(connection.execute("SELECT id, line FROM chunk WHERE document = ?", (document,)))
        self._change = change
        return True

    def _know(self, connection: Connection, corpus: Corpus) -> None:
        new = connection.execute("SELECT id, path, sort FROM document WHERE id > ?", (self._document,)).fetchall()
        corpus.know(new)
        self._document = max((number for number, _, _ in new), default=self._document)


def to_bytes(block: Block) -> bytes:
    """Write a block: a line of JSON with the names and lengths, then the arrays."""
    postings = block.postings
    arrays = [*(block.columns[name] for name in COLUMNS), *(getattr(postings, name) for name in _POSTINGS)]
    names = {
        "kinds": block.kinds,
        "tags": block.tags,
        "sessions": block.sessions,
        "vocabulary": len(postings.vocabulary),
    }
    head = json.dumps({**names, "lengths": [len(one) for one in arrays]}).encode()
    return zlib.compress(b"".join((head, b"\n", postings.vocabulary, *(one.tobytes() for one in arrays))), 1)


def from_bytes(data: bytes) -> Block:
    """Read what `to_bytes` wrote. Raises: ValueError, KeyError, zlib.error when it is something else."""
    raw = zlib.decompress(data)
    start = raw.index(b"\n") + 1
    head = decoded(raw[: start - 1])
    at = start + head["vocabulary"]
    arrays: dict[str, Array] = {}
    for (name, kind), length in zip({**COLUMNS, **_POSTINGS}.items(), head["lengths"], strict=True):
        arrays[name] = np.frombuffer(raw, dtype=kind, count=length, offset=at)
        at += arrays[name].nbytes
    postings = Postings.of(
        vocabulary=raw[start : start + head["vocabulary"]], **{name: arrays[name].copy() for name in _POSTINGS}
    )
    kinds, tags, sessions = (tuple(head[name]) for name in ("kinds", "tags", "sessions"))
    return Block(
        columns={name: arrays[name] for name in COLUMNS}, kinds=kinds, tags=tags, sessions=sessions, postings=postings
    )


def _load(connection: Connection, corpus: Corpus) -> None:
    """Take in the segments; the chunks of one that can't be read are read themselves."""
    stored = connection.execute("SELECT first, last, checksum, data FROM segment ORDER BY first").fetchall()
    for first, last, checksum, data in stored:
        if zlib.crc32(data) == checksum and first > corpus.highest:
            corpus.take(from_bytes(data))
        else:
            _take(connection, corpus, max(first, corpus.highest + 1), last)


def _take(connection: Connection, corpus: Corpus, first: int, last: int) -> None:
    """Take in chunks from their rows: a few one by one, many as a block."""
    rows = _rows(connection, first, last, _FEW)
    if len(rows) < _FEW:
        corpus.add(rows)
        return
    builder = Builder()
    while rows:
        builder.add(rows)
        rows = _rows(connection, rows[-1].number + 1, last, _AT_ONCE)
    corpus.take(builder.block())


def _missing_changes(connection: Connection) -> int:
    """Return the number of the last change that is not written down any more, as every segment knows it."""
    least, last = connection.execute(
        """SELECT (SELECT min(id) - 1 FROM change),
            (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'change')"""
    ).fetchone()
    return int(last if least is None else least)


def _rows(connection: Connection, first: int, last: int, limit: int) -> list[IndexedRow]:
    """Return the first rows of a range of numbers, in their order."""
    return [_row(row) for row in connection.execute(_ROWS, (first, last, limit))]


def _row(row: tuple[Any, ...]) -> IndexedRow:
    (
        number, document, line, part, place, twin, time, entry, message, markup, tells, kind, tags, session, own,
        around, meaning,
    ) = row  # fmt: skip
    return IndexedRow(
        number, document, line, part, place, twin, NO_TIME if time is None else time, hashed(entry) if entry else 0,
        MESSAGE * bool(message) | ENTRY * bool(markup) | TELLS * bool(tells), kind, tags, session, own, around, meaning,
    )  # fmt: skip


def _fold(connection: Connection) -> _Fold | None:
    """Decide what is made one segment; None when nothing is worth it."""
    stored = connection.execute("SELECT id, first, last, chunks, change FROM segment ORDER BY first").fetchall()
    covered = stored[-1][2] if stored else 0
    last, fresh = connection.execute(
        "SELECT coalesce(max(id), 0), count(*) FROM chunk WHERE id > ?", (covered,)
    ).fetchone()
    change = connection.execute("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'change'").fetchone()[0]
    kept = connection.execute("SELECT count(*) FROM change").fetchone()[0]
    size, replaced = fresh, []
    # much that was removed or moved is worth writing everything anew
    everything = kept > _LEAST_FOLDED and _TIMES_AS_LARGE * kept > sum(row[3] for row in stored) + fresh
    for number, _, _, held, _ in reversed(stored):
        if not everything and (fresh < _LEAST_FOLDED or held >= _TIMES_AS_LARGE * size):
            break
        size += held
        replaced.append(number)
    if not size or (fresh < _LEAST_FOLDED and not everything):
        return None
    first = min((row[1] for row in stored if row[0] in replaced), default=covered + 1)
    return _Fold(first=first, last=max(last, covered), change=change, replaced=tuple(replaced))


def _written(builder: Builder) -> tuple[bytes, int]:
    block = builder.block()
    return to_bytes(block), len(block)


def _put(connection: Connection, fold: _Fold, data: bytes, length: int) -> bool:
    """Store a segment; False, and nothing done, when another process did so first."""
    marks = ", ".join(map(str, fold.replaced))
    held = connection.execute("SELECT id FROM segment WHERE last >= ?", (fold.first,)).fetchall()
    if {row[0] for row in held} != set(fold.replaced):
        return False
    connection.execute(f"DELETE FROM segment WHERE id IN ({marks})")
    connection.execute(
        "INSERT INTO segment (first, last, chunks, change, checksum, data) VALUES (?, ?, ?, ?, ?, ?)",
        (fold.first, fold.last, length, fold.change, zlib.crc32(data), data),
    )
    # a change is needed by segments that were made before it, and by nobody else who starts to read
    connection.execute("DELETE FROM change WHERE id <= (SELECT min(change) FROM segment)")
    return True
