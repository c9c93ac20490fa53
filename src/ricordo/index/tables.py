"""The tables of the index, and how documents get into them and out.

One row for each document says what was read; its chunks have a row each, and the terms they are found by stand under
the same number in a full-text table. Numbers only grow and what they stand for never changes: a chunk that is found
by other terms gets a new number. What a reader can't see by a higher number, removals and moves to other lines, is
written down as a change. Segments hold what the chunks of a range of numbers are found by, to be loaded at once.

Invariant: whatever happens, a document's row and its chunks are of the same bytes; both change in one transaction.
"""

from collections.abc import Iterable, Sequence
from typing import cast

from ricordo.database.sqlite import Connection, Schema
from ricordo.index.chunking import ChunkRow, TailContext
from ricordo.index.contract import Chunk, DocumentSort
from ricordo.index.plan import Checksum, DocumentFingerprint

__all__ = [
    "SCHEMA",
    "append_document",
    "load_fingerprints",
    "put_document",
    "remove_document",
    "replace_surrogates",
    "advance_tail",
    "read_tail",
]

_OBSOLETE_TABLES = ("vocabulary", "words", "chunk", "document", "total", "change", "segment")

SCHEMA = Schema(
    owner=0x52494349,
    steps=(
        (),
        (),
        (
            # the tables of earlier steps are not worth bringing over: they are made anew from the files
            *(f"DROP TABLE IF EXISTS {table}" for table in _OBSOLETE_TABLES),
            """CREATE TABLE document (
                id INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT NOT NULL UNIQUE, sort TEXT NOT NULL,
                size INTEGER NOT NULL, modified INTEGER NOT NULL, checked INTEGER NOT NULL, checksum TEXT NOT NULL,
                lines INTEGER NOT NULL)""",
            """CREATE TABLE chunk (
                id INTEGER PRIMARY KEY AUTOINCREMENT, document INTEGER NOT NULL REFERENCES document (id),
                digest BLOB NOT NULL, line INTEGER NOT NULL, end_line INTEGER NOT NULL, part INTEGER NOT NULL,
                place INTEGER NOT NULL, twin INTEGER NOT NULL, meaning INTEGER NOT NULL, kind TEXT NOT NULL, tags
                TEXT NOT NULL, time INTEGER, session TEXT NOT NULL, message TEXT NOT NULL, speaker TEXT NOT NULL,
                entry TEXT NOT NULL,
                heading TEXT NOT NULL, markup TEXT NOT NULL, content TEXT NOT NULL)""",
            "CREATE INDEX chunk_document ON chunk (document, line)",
            "CREATE INDEX chunk_entry ON chunk (entry) WHERE markup <> ''",
            "CREATE INDEX chunk_time ON chunk (time)",
            # terms are cut already: all that is printed counts as a part of one
            """CREATE VIRTUAL TABLE words USING fts5 (
                own, around, tokenize = "ascii tokenchars '!#$%&()*+,-./:;<=>?@[\\]^_`{|}~'")""",
            "CREATE VIRTUAL TABLE vocabulary USING fts5vocab (words, col)",
            "CREATE TABLE change (id INTEGER PRIMARY KEY AUTOINCREMENT, chunk INTEGER, document INTEGER)",
            """CREATE TRIGGER chunk_removed AFTER DELETE ON chunk BEGIN
                INSERT INTO change (chunk) VALUES (old.id); END""",
            """CREATE TABLE segment (
                id INTEGER PRIMARY KEY AUTOINCREMENT, first INTEGER NOT NULL, last INTEGER NOT NULL,
                chunks INTEGER NOT NULL, change INTEGER NOT NULL, checksum INTEGER NOT NULL, data BLOB NOT NULL)""",
        ),
        # what was taken in before is looked at once more
        ("ALTER TABLE document ADD COLUMN changed INTEGER NOT NULL DEFAULT 0",),
        # a row tells by now whether its line says more
        ("DELETE FROM segment",),
        # what is embedded of a chunk is another text
        tuple(f"DELETE FROM {table}" for table in ("words", "chunk", "document", "segment")),
        # a profile is a document, of a sort that is not known before
        (),
        # the time of a memory is when it was said
        tuple(f"DELETE FROM {table}" for table in ("words", "chunk", "document", "segment")),
        # secrets of files do not come into the index any more
        (),
    ),
    rebuild_below=9,
)


_COPIED_COLUMNS = """document, line, end_line, part, place, twin, meaning, kind, tags, time, session, message, speaker, entry,
    heading, markup, content"""


def load_fingerprints(connection: Connection) -> dict[str, DocumentFingerprint]:
    """Return what is known of each document, by path."""
    rows = connection.execute("SELECT path, sort, size, modified, checked, checksum, lines, changed FROM document")
    return {row[0]: _fingerprint_from_row(row) for row in rows}


def put_document(
    connection: Connection, before: DocumentFingerprint | None, known: DocumentFingerprint, rows: Sequence[ChunkRow]
) -> bool:
    """Make the rows of a document these: rows that are there already stay, and move to their new lines.

    False, and nothing done, when what is stored is not `before` any more: another process may have read more.
    """
    if not _is_stored(connection, known.path, before):
        return False
    number = _upsert_document(connection, known)
    held: dict[bytes, list[tuple[int, int, int, int]]] = {}
    select = "SELECT digest, id, line, end_line, part FROM chunk WHERE document = ? ORDER BY line DESC, part DESC"
    for digest, *place in connection.execute(select, (number,)):
        held.setdefault(digest, []).append((place[0], place[1], place[2], place[3]))
    added = []
    moves = 0
    for row in rows:
        same = held.get(row.digest)
        if not same:
            added.append(row)
            continue
        chunk, (identity, line, end_line, _) = row.chunk, same.pop()
        if (line, end_line) != (chunk.line_number, chunk.end_line):
            moved = (chunk.line_number, chunk.end_line, identity)
            moves += connection.execute("UPDATE chunk SET line = ?, end_line = ? WHERE id = ?", moved).rowcount
    if moves:
        connection.execute("INSERT INTO change (document) VALUES (?)", (number,))
    _delete_chunks(connection, [place[0] for places in held.values() for place in places])
    _insert_rows(connection, number, added)
    return True


def append_document(
    connection: Connection,
    base: DocumentFingerprint,
    known: DocumentFingerprint,
    rows: Sequence[ChunkRow],
    following: str,
) -> bool:
    """Add the rows of a document's tail; False, and nothing done, when what is stored is not `base` any more.

    `following` are terms that the message before the tail gains as a neighbour.
    """
    number = _update_document(connection, base, known)
    if number is None:
        return False
    if following:
        _extend_last_message(connection, number, following)
    _insert_rows(connection, number, rows)
    return True


def read_tail(connection: Connection, known: DocumentFingerprint) -> TailContext:
    """Return what a tail of the document would follow."""
    row = connection.execute(
        """SELECT heading, speaker || ': ' || content FROM chunk JOIN document ON document.id = chunk.document
        WHERE path = ? ORDER BY line DESC, part DESC LIMIT 1""",
        (known.path,),
    ).fetchone()
    return TailContext(lines=known.lines, heading=row[0] if row else "", before=row[1] if row else "")


def advance_tail(rows: Sequence[ChunkRow], tail: TailContext, known: DocumentFingerprint) -> TailContext:
    """Return what `read_tail` gives for a document that is `known` by now, whose last rows these are, after `tail`."""
    if not rows:
        return TailContext(lines=known.lines, heading=tail.heading, before=tail.before)
    last = rows[-1].chunk
    return TailContext(
        lines=known.lines,
        heading=replace_surrogates(last.heading),
        before=replace_surrogates(f"{last.speaker}: {last.content}"),
    )


def remove_document(connection: Connection, path: str, before: DocumentFingerprint | None) -> None:
    """Forget a document, unless what is stored of it is not `before` any more."""
    if _is_stored(connection, path, before):
        held = "SELECT chunk.id FROM chunk JOIN document ON document.id = chunk.document WHERE path = ?"
        _delete_chunks(connection, [row[0] for row in connection.execute(held, (path,))])
        connection.execute("DELETE FROM document WHERE path = ?", (path,))


def _is_stored(connection: Connection, path: str, known: DocumentFingerprint | None) -> bool:
    stored = _load_fingerprint(connection, path)
    if stored is None or known is None:
        return stored is known
    return (stored.size, stored.checksum) == (known.size, known.checksum)


def _load_fingerprint(connection: Connection, path: str) -> DocumentFingerprint | None:
    row = connection.execute(
        "SELECT path, sort, size, modified, checked, checksum, lines, changed FROM document WHERE path = ?", (path,)
    ).fetchone()
    return _fingerprint_from_row(row) if row else None


def _fingerprint_from_row(row: tuple[str, str, int, int, int, str, int, int]) -> DocumentFingerprint:
    return DocumentFingerprint(
        path=row[0],
        sort=cast("DocumentSort", row[1]),
        size=row[2],
        modified_ns=row[3],
        checked_ns=row[4],
        checksum=Checksum.parse(row[5]),
        lines=row[6],
        changed_ns=row[7],
    )


def _upsert_document(connection: Connection, known: DocumentFingerprint) -> int:
    """Write what is known of a document and return its number."""
    number: int = connection.execute(
        """INSERT INTO document (path, sort, size, modified, checked, checksum, lines, changed)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (path) DO UPDATE SET size = excluded.size, modified = excluded.modified,
            checked = excluded.checked, checksum = excluded.checksum, lines = excluded.lines,
            changed = excluded.changed
        RETURNING id""",
        (
            known.path,
            known.sort,
            known.size,
            known.modified_ns,
            known.checked_ns,
            str(known.checksum),
            known.lines,
            known.changed_ns,
        ),
    ).fetchall()[0][0]
    return number


def _update_document(connection: Connection, base: DocumentFingerprint, known: DocumentFingerprint) -> int | None:
    """Write what is known of a document if `base` is what is stored of it; return its number, None if it is not."""
    found = connection.execute(
        """UPDATE document SET size = ?, modified = ?, checked = ?, checksum = ?, lines = ?, changed = ?
        WHERE path = ? AND size = ? AND checksum = ? RETURNING id""",
        (
            known.size,
            known.modified_ns,
            known.checked_ns,
            str(known.checksum),
            known.lines,
            known.changed_ns,
            base.path,
            base.size,
            str(base.checksum),
        ),
    ).fetchall()
    return found[0][0] if found else None


def _insert_rows(connection: Connection, document: int, rows: Iterable[ChunkRow]) -> None:
    for row in rows:
        cursor = connection.execute(
            """INSERT INTO chunk (document, digest, place, twin, meaning, line, end_line, part, kind, tags, time,
            session, message, speaker, entry, heading, markup, content)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
            (document, row.digest, row.place, row.twin, row.meaning, *_columns(row.chunk)),
        )
        connection.execute(
            "INSERT INTO words (rowid, own, around) VALUES (?, ?, ?)", (cursor.lastrowid, row.own, row.around)
        )


def _delete_chunks(connection: Connection, numbers: Iterable[int]) -> None:
    each = [(number,) for number in numbers]
    connection.executemany("DELETE FROM words WHERE rowid = ?", each)
    connection.executemany("DELETE FROM chunk WHERE id = ?", each)


def _columns(chunk: Chunk) -> tuple[int | str | None, ...]:
    return (
        chunk.line_number,
        chunk.end_line,
        chunk.part,
        replace_surrogates(chunk.kind),
        replace_surrogates("\n".join(("", *chunk.tags, ""))) if chunk.tags else "",
        None if chunk.time is None else round(chunk.time.timestamp() * 1000),
        replace_surrogates(chunk.session),
        replace_surrogates(chunk.message),
        replace_surrogates(chunk.speaker),
        replace_surrogates(chunk.entry_id),
        replace_surrogates(chunk.heading),
        replace_surrogates(chunk.markup),
        replace_surrogates(chunk.content),
    )


def replace_surrogates(text: str) -> str:
    """Return `text` without lone surrogates, which SQLite's UTF-8 has no place for."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _extend_last_message(connection: Connection, document: int, following: str) -> None:
    """Give the pieces of the last message the terms of the one that now follows it, under new numbers."""
    last = "SELECT id FROM chunk WHERE document = ?1 AND line = (SELECT max(line) FROM chunk WHERE document = ?1)"
    for (number,) in connection.execute(f"{last} ORDER BY id", (document,)).fetchall():
        own, around = connection.execute("SELECT own, around FROM words WHERE rowid = ?", (number,)).fetchone()
        # the digest no longer fits, so a later reading of the whole document writes this row again
        copied = connection.execute(
            f"INSERT INTO chunk (digest, {_COPIED_COLUMNS}) SELECT x'', {_COPIED_COLUMNS} FROM chunk WHERE id = ?",
            (number,),
        )
        terms = (copied.lastrowid, own, f"{around} {following}".strip())
        connection.execute("INSERT INTO words (rowid, own, around) VALUES (?, ?, ?)", terms)
        _delete_chunks(connection, [number])
