"""The tables of the index: their schema, and every statement that writes or reads documents and chunks.

A document has a row with its fingerprint. Each of its chunks has a row, and its terms have the same number in a
full-text table. Numbers only grow: a chunk with other terms gets a new one. Removals and moves are recorded in the
table `change`, so that other processes notice them. A piece of a long entry has the fields of the bullet that points to
it.

The database is only a cache: `CacheDatabase` opens it when needed, rebuilds it when damaged, and skips it if unusable.
Rows that can't be decoded count as damage, and the operation is repeated once with a new file.

Invariants: a document's row and its chunks describe the same bytes; both change in one transaction. No database error
is raised to the caller of a `CacheDatabase`, who gets None instead.
"""

import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

import anyio

from ricordo.errors import DocumentInvalid, RicordoError, StorageError
from ricordo.search.chunking import ChunkRow, KeptRow, TailContext
from ricordo.search.contract import Chunk, DocumentType, Query
from ricordo.search.documents import Checksum, DocumentFingerprint, chunk_shape, to_milliseconds
from ricordo.storage.sqlite import Commit, Connection, Database, Schema

__all__ = [
    "SCHEMA",
    "CacheDatabase",
    "advance_tail",
    "append_document",
    "load_chunks",
    "load_entry_digests",
    "load_fingerprints",
    "put_document",
    "read_tail",
    "remove_document",
    "replace_surrogates",
    "search_literal",
]


_EARLIER_STEPS = 12
"""An index of an earlier layout is deleted and built again from the files, so its steps need not be known."""
SCHEMA = Schema(
    owner=0x52494349,
    steps=(
        *[()] * _EARLIER_STEPS,
        (
            """CREATE TABLE document (
                id INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT NOT NULL UNIQUE, sort TEXT NOT NULL,
                size INTEGER NOT NULL, modified INTEGER NOT NULL, checked INTEGER NOT NULL, checksum TEXT NOT NULL,
                lines INTEGER NOT NULL, changed INTEGER NOT NULL DEFAULT 0)""",
            """CREATE TABLE chunk (
                id INTEGER PRIMARY KEY AUTOINCREMENT, document INTEGER NOT NULL REFERENCES document (id),
                digest BLOB NOT NULL, line INTEGER NOT NULL, end_line INTEGER NOT NULL, part INTEGER NOT NULL,
                place INTEGER NOT NULL, twin INTEGER NOT NULL, meaning INTEGER NOT NULL, shape INTEGER NOT NULL,
                length INTEGER NOT NULL, kind TEXT NOT NULL, tags TEXT NOT NULL, time INTEGER, session TEXT NOT NULL,
                message TEXT NOT NULL, speaker TEXT NOT NULL, entry TEXT NOT NULL, heading TEXT NOT NULL,
                markup TEXT NOT NULL, content TEXT NOT NULL)""",
            "CREATE INDEX chunk_document ON chunk (document, line)",
            "CREATE INDEX chunk_entry ON chunk (entry) WHERE markup <> ''",
            # the terms of each chunk and those of its neighbours, which segments are built from, are split already: all
            # printable characters are token characters; where in a chunk a term is, the segments know
            """CREATE VIRTUAL TABLE words USING fts5 (
                own, around, detail = none, columnsize = 0,
                tokenize = "ascii tokenchars '!#$%&()*+,-./:;<=>?@[\\]^_`{|}~'")""",
            "CREATE TABLE change (id INTEGER PRIMARY KEY AUTOINCREMENT, chunk INTEGER, document INTEGER)",
            """CREATE TRIGGER chunk_removed AFTER DELETE ON chunk BEGIN
                INSERT INTO change (chunk) VALUES (old.id); END""",
            """CREATE TABLE segment (
                id INTEGER PRIMARY KEY AUTOINCREMENT, first INTEGER NOT NULL, last INTEGER NOT NULL,
                chunks INTEGER NOT NULL, change INTEGER NOT NULL, checksum INTEGER NOT NULL, data BLOB NOT NULL)""",
            """CREATE TABLE outline (
                path TEXT PRIMARY KEY, size INTEGER NOT NULL, modified INTEGER NOT NULL, changed INTEGER NOT NULL,
                checked INTEGER NOT NULL, checksum TEXT NOT NULL, newest INTEGER NOT NULL, saved INTEGER NOT NULL,
                sound INTEGER NOT NULL, bullets TEXT NOT NULL)""",
        ),
    ),
    rebuild_below=_EARLIER_STEPS + 1,
)


_COPIED_COLUMNS = """document, line, end_line, part, place, twin, meaning, shape, length, kind, tags, time, session,
    message, speaker, entry, heading, markup, content"""


def load_fingerprints(connection: Connection) -> dict[str, DocumentFingerprint]:
    """Return the fingerprint of each document, by path."""
    rows = connection.execute("SELECT path, sort, size, modified, checked, checksum, lines, changed FROM document")
    return {row[0]: _fingerprint_from_row(row) for row in rows}


def put_document(
    connection: Connection,
    before: DocumentFingerprint | None,
    fingerprint: DocumentFingerprint,
    rows: Sequence[ChunkRow],
    kept: Sequence[KeptRow] = (),
) -> bool:
    """Replace the rows of a document by `rows`; rows that exist already, and `kept`, are moved to their new lines.

    Returns False without a change if the stored document is no longer `before`: another process may have read more.
    """
    if not _is_stored(connection, fingerprint.path, before):
        return False
    number = _upsert_document(connection, fingerprint)
    stored: dict[bytes, list[tuple[int, int, int, int]]] = {}
    select = "SELECT digest, id, line, end_line, part FROM chunk WHERE document = ? ORDER BY line DESC, part DESC"
    for digest, *place in connection.execute(select, (number,)):
        stored.setdefault(digest, []).append((place[0], place[1], place[2], place[3]))
    added: list[ChunkRow] = []
    moves: list[tuple[int, int, int]] = []

    def keep(digest: bytes, line: int, end_line: int) -> None:
        identity, *lines, _ = stored[digest].pop()
        if lines != [line, end_line]:
            moves.append((line, end_line, identity))

    for each in kept:
        keep(each.digest, each.line, each.end_line)
    for row in rows:
        if stored.get(row.digest):
            keep(row.digest, row.chunk.line_number, row.chunk.end_line)
        else:
            added.append(row)
    connection.executemany("UPDATE chunk SET line = ?, end_line = ? WHERE id = ?", moves)
    if moves:
        connection.execute("INSERT INTO change (document) VALUES (?)", (number,))
    _delete_chunks(connection, [place[0] for places in stored.values() for place in places])
    _insert_rows(connection, number, added)
    return True


def load_entry_digests(connection: Connection, path: str) -> dict[tuple[str, str], bytes]:
    """Return the digests of the rows of the entries of a document, by heading and markup."""
    rows = connection.execute(
        """SELECT heading, markup, digest FROM chunk JOIN document ON document.id = chunk.document
        WHERE path = ? AND markup <> ''""",
        (path,),
    )
    return {(heading, markup): digest for heading, markup, digest in rows}


def append_document(
    connection: Connection,
    base: DocumentFingerprint,
    fingerprint: DocumentFingerprint,
    rows: Sequence[ChunkRow],
    following: str,
) -> bool:
    """Add the rows of a document's tail; return False without a change if the stored document is no longer `base`.

    `following` are terms that the message before the tail gets from its new neighbour.
    """
    number = _update_document(connection, base, fingerprint)
    if number is None:
        return False
    if following:
        _extend_last_message(connection, number, following)
    _insert_rows(connection, number, rows)
    return True


def read_tail(connection: Connection, fingerprint: DocumentFingerprint) -> TailContext:
    """Return the context of a tail appended to the document."""
    row = connection.execute(
        """SELECT heading, speaker || ': ' || content FROM chunk JOIN document ON document.id = chunk.document
        WHERE path = ? ORDER BY line DESC, part DESC LIMIT 1""",
        (fingerprint.path,),
    ).fetchone()
    return TailContext(lines=fingerprint.lines, heading=row[0] if row else "", before=row[1] if row else "")


def advance_tail(rows: Sequence[ChunkRow], tail: TailContext, fingerprint: DocumentFingerprint) -> TailContext:
    """Return the result of `read_tail` after these last rows were added behind `tail`; `fingerprint` is the
    fingerprint.
    """
    if not rows:
        return TailContext(lines=fingerprint.lines, heading=tail.heading, before=tail.before)
    last = rows[-1].chunk
    return TailContext(
        lines=fingerprint.lines,
        heading=replace_surrogates(last.heading),
        before=replace_surrogates(f"{last.speaker}: {last.content}"),
    )


def remove_document(connection: Connection, path: str, before: DocumentFingerprint | None) -> None:
    """Delete a document, unless the stored one is no longer `before`."""
    if _is_stored(connection, path, before):
        select_ids = "SELECT chunk.id FROM chunk JOIN document ON document.id = chunk.document WHERE path = ?"
        _delete_chunks(connection, [row[0] for row in connection.execute(select_ids, (path,))])
        connection.execute("DELETE FROM document WHERE path = ?", (path,))


def _is_stored(connection: Connection, path: str, fingerprint: DocumentFingerprint | None) -> bool:
    stored = _load_fingerprint(connection, path)
    if stored is None or fingerprint is None:
        return stored is fingerprint
    return (stored.size, stored.checksum) == (fingerprint.size, fingerprint.checksum)


def _load_fingerprint(connection: Connection, path: str) -> DocumentFingerprint | None:
    row = connection.execute(
        "SELECT path, sort, size, modified, checked, checksum, lines, changed FROM document WHERE path = ?", (path,)
    ).fetchone()
    return _fingerprint_from_row(row) if row else None


def _fingerprint_from_row(row: tuple[str, str, int, int, int, str, int, int]) -> DocumentFingerprint:
    return DocumentFingerprint(
        path=row[0],
        document_type=cast("DocumentType", row[1]),
        size=row[2],
        modified_ns=row[3],
        checked_ns=row[4],
        checksum=Checksum.parse(row[5]),
        lines=row[6],
        changed_ns=row[7],
    )


def _upsert_document(connection: Connection, fingerprint: DocumentFingerprint) -> int:
    """Write the fingerprint of a document and return the document's number."""
    number: int = connection.execute(
        """INSERT INTO document (path, sort, size, modified, checked, checksum, lines, changed)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (path) DO UPDATE SET size = excluded.size, modified = excluded.modified,
            checked = excluded.checked, checksum = excluded.checksum, lines = excluded.lines,
            changed = excluded.changed
        RETURNING id""",
        (
            fingerprint.path,
            fingerprint.document_type,
            fingerprint.size,
            fingerprint.modified_ns,
            fingerprint.checked_ns,
            str(fingerprint.checksum),
            fingerprint.lines,
            fingerprint.changed_ns,
        ),
    ).fetchall()[0][0]
    return number


def _update_document(connection: Connection, base: DocumentFingerprint, fingerprint: DocumentFingerprint) -> int | None:
    """Update the fingerprint if the stored one is `base`; return the document's number, else None."""
    found = connection.execute(
        """UPDATE document SET size = ?, modified = ?, checked = ?, checksum = ?, lines = ?, changed = ?
        WHERE path = ? AND size = ? AND checksum = ? RETURNING id""",
        (
            fingerprint.size,
            fingerprint.modified_ns,
            fingerprint.checked_ns,
            str(fingerprint.checksum),
            fingerprint.lines,
            fingerprint.changed_ns,
            base.path,
            base.size,
            str(base.checksum),
        ),
    ).fetchall()
    return found[0][0] if found else None


def _insert_rows(connection: Connection, document: int, rows: Iterable[ChunkRow]) -> None:
    for row in rows:
        cursor = connection.execute(
            """INSERT INTO chunk (document, digest, place, twin, meaning, shape, length, line, end_line, part, kind,
            tags, time, session, message, speaker, entry, heading, markup, content)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
            (
                document,
                row.digest,
                row.place,
                row.twin,
                row.meaning,
                chunk_shape(row.chunk),
                len(row.chunk.content),
                *_columns(row.chunk),
            ),
        )
        connection.execute(
            "INSERT INTO words (rowid, own, around) VALUES (?, ?, ?)", (cursor.lastrowid, row.text, row.context_text)
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
    """Return `text` without lone surrogates, which can't be stored as UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _extend_last_message(connection: Connection, document: int, following: str) -> None:
    """Add the terms of the new next message to the pieces of the last message, under new numbers."""
    last = "SELECT id FROM chunk WHERE document = ?1 AND line = (SELECT max(line) FROM chunk WHERE document = ?1)"
    for (number,) in connection.execute(f"{last} ORDER BY id", (document,)).fetchall():
        own, around = connection.execute("SELECT own, around FROM words WHERE rowid = ?", (number,)).fetchone()
        # the empty digest makes a later read of the whole document write this row again
        copied = connection.execute(
            f"INSERT INTO chunk (digest, {_COPIED_COLUMNS}) SELECT x'', {_COPIED_COLUMNS} FROM chunk WHERE id = ?",
            (number,),
        )
        terms = (copied.lastrowid, own, f"{around} {following}".strip())
        connection.execute("INSERT INTO words (rowid, own, around) VALUES (?, ?, ?)", terms)
        _delete_chunks(connection, [number])


_SqlValues: TypeAlias = "list[str | int]"
_LOAD_BATCH = 500
_FIELDS_SQL = """SELECT chunk.id, path, chunk.line, chunk.end_line, chunk.part, sort, coalesce(bullet.kind, chunk.kind),
    coalesce(bullet.tags, chunk.tags), coalesce(bullet.time, chunk.time), coalesce(bullet.session, chunk.session),
    chunk.message, chunk.speaker, chunk.entry, chunk.heading, coalesce(bullet.markup, chunk.markup), chunk.content"""
_JOINS_SQL = """JOIN document ON document.id = chunk.document
    LEFT JOIN chunk AS bullet ON sort = 'long' AND bullet.id = (
        SELECT max(pointing.id) FROM chunk AS pointing WHERE pointing.entry = chunk.entry AND pointing.markup <> '')"""


def search_literal(connection: Connection, query: Query, limit: int) -> list[Chunk]:
    """Return chunks whose text contains the query as typed, ignoring the case of ASCII letters."""
    conditions, values = _filter_sql(query)
    found = connection.execute(
        f"""SELECT chunk.id FROM chunk {_JOINS_SQL} WHERE instr(lower(chunk.content), lower(?)) > 0 {conditions}
        ORDER BY path, chunk.line, chunk.part LIMIT ?""",
        (replace_surrogates(query.text.strip()).replace("\0", ""), *values, limit),
    )
    return [*load_chunks(connection, [row[0] for row in found]).values()]


def _filter_sql(query: Query) -> tuple[str, _SqlValues]:
    conditions: list[str] = []
    values: _SqlValues = []

    def need(condition: str, *parameters: str | int) -> None:
        conditions.append(f"AND {condition}")
        values.extend(parameters)

    need(f"sort IN ({_placeholders(query.document_types)})", *query.document_types)
    need("(sort <> 'profile' OR path = ?)", query.profile)
    if query.kinds:
        need(
            f"coalesce(bullet.kind, chunk.kind) IN ({_placeholders(query.kinds)})",
            *map(replace_surrogates, query.kinds),
        )
    if query.tags:
        tag_condition = " OR ".join("instr(coalesce(bullet.tags, chunk.tags), ?) > 0" for _ in query.tags)
        need(f"({tag_condition})", *(f"\n{replace_surrogates(tag)}\n" for tag in query.tags))
    if query.session:
        need("coalesce(bullet.session, chunk.session) = ?", replace_surrogates(query.session))
    if query.path:
        need("substr(path, 1, ?) = ?", len(query.path), replace_surrogates(query.path))
    if query.since:
        need("coalesce(bullet.time, chunk.time) >= ?", to_milliseconds(query.since))
    if query.until:
        need("coalesce(bullet.time, chunk.time) < ?", to_milliseconds(query.until))
    return " ".join(conditions), values


def _placeholders(values: Iterable[str | int]) -> str:
    return ", ".join("?" for _ in values)


def load_chunks(connection: Connection, numbers: Sequence[int]) -> dict[int, Chunk]:
    """Return the chunks with these numbers, in this order; missing ones are left out."""
    found: dict[int, Chunk] = {}
    for first in range(0, len(numbers), _LOAD_BATCH):
        some = numbers[first : first + _LOAD_BATCH]
        # a statement with the same number of placeholders is prepared only once
        rows = connection.execute(
            f"{_FIELDS_SQL} FROM chunk {_JOINS_SQL} WHERE chunk.id IN ({_placeholders(some)})", some
        )
        found.update((row[0], _chunk_from_row(row)) for row in rows)
    return {number: found[number] for number in numbers if number in found}


def _chunk_from_row(row: tuple[Any, ...]) -> Chunk:
    (
        _, path, line, end_line, part, sort, kind, tags, time, session, message, speaker, entry, heading, markup,
        content,
    ) = row  # fmt: skip
    return Chunk(
        path=path,
        line_number=line,
        end_line=end_line,
        part=part,
        document_type=sort,
        kind=kind,
        tags=tuple(tags.strip("\n").split("\n")) if tags else (),
        time=None if time is None else datetime.fromtimestamp(time / 1000, UTC),
        session=session,
        message=message,
        speaker=speaker,
        entry_id=entry,
        heading=heading,
        markup=markup,
        content=content,
    )


_RETRY_SECONDS = 5.0
_CORRUPT_ROW_ERRORS = (ArithmeticError, LookupError, TypeError, ValueError)
_T = TypeVar("_T")


class CacheDatabase:
    """The database at one path. `error` is why the last use failed, empty if it succeeded."""

    def __init__(
        self, path: Path, *, commit: Commit | None = None, busy_seconds: float = 5.0, schema: Schema = SCHEMA,
        check: Callable[[], None] | None = None,
    ) -> None:  # fmt: skip
        """Prepare the database at `path` without opening it; its tables are those of the keyword index by default.

        `check` raises if the folder of the workspace has been replaced by another one.
        """
        self._check = check
        self.error = ""
        self._path = path
        self._commit = commit
        self._schema = schema
        self._busy_seconds = busy_seconds
        self._open_lock = anyio.Lock(fast_acquire=True)
        self._database: Database | None = None
        self._tried_at = -_RETRY_SECONDS
        self._quarantined_names: list[str] = []
        self._closed = False

    async def run(self, act: Callable[[Database], Awaitable[_T]], *, patient: bool = False) -> _T | None:
        """Return the result of `act`, None if the database can't be used now.

        A damaged or deleted database is created again and `act` is repeated once. If opening fails, it is tried again
        after five seconds, or at once if `patient`.
        """
        for is_made_anew in (False, True):
            database = await self._get_database(patient=patient)
            if database is None:
                return None
            try:
                result = await act(database)
            except DocumentInvalid as error:
                self.error = str(error)
                await self._discard(database)
            except StorageError as error:
                self.error = str(error)
                return None
            except _CORRUPT_ROW_ERRORS as error:
                if is_made_anew or isinstance(error, RicordoError):
                    raise
                self.error = f"{self._path} holds what can't be read: {error}."
                await self._discard(database)
            else:
                self.error = ""
                return result
        return None

    def pop_quarantined(self) -> str:
        """Return the new names of the damaged files moved aside since the last call, separated by commas."""
        names, self._quarantined_names = self._quarantined_names, []
        return ", ".join(names)

    async def close(self) -> None:
        """Close the database permanently."""
        self._closed = True
        async with self._open_lock:
            database, self._database = self._database, None
            if database is not None:
                await database.close()

    async def _get_database(self, *, patient: bool) -> Database | None:
        if self._database is not None:
            return self._database
        async with self._open_lock:
            recently = time.monotonic() - self._tried_at < _RETRY_SECONDS
            if self._database is None and not self._closed and (patient or not recently or not self.error):
                self._database = await self._open()
            return self._database

    async def _open(self) -> Database | None:
        self._tried_at = time.monotonic()
        try:
            database = await Database.open(
                self._path, schema=self._schema, busy_seconds=self._busy_seconds, commit=self._commit,
                cache=True, check=self._check,
            )  # fmt: skip
        except StorageError as error:
            self.error = str(error)
            return None
        if database.quarantined:
            self._quarantined_names.append(database.quarantined)
        return database

    async def _discard(self, database: Database) -> None:
        """Move a damaged database aside, unless another task already did."""
        async with self._open_lock:
            if self._database is not database:
                return
            self._database = None
            self._tried_at = -_RETRY_SECONDS
            try:
                name = await database.quarantine()
            except StorageError as error:
                self.error = str(error)
            else:
                self._quarantined_names += [name] if name else []
