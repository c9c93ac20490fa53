"""How the tables are searched: full-text candidates under filters, the newest, and text that holds the query literally.

A piece of a long entry has the fields of the bullet that points to it, so filters treat both alike.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TypeAlias, cast

from ricordo.database.sqlite import Connection
from ricordo.index.contract import Chunk, Query, Sort
from ricordo.index.scoring import Candidate, Statistics
from ricordo.index.terms import Words

__all__ = ["full_text", "literal", "newest", "statistics"]

_Values: TypeAlias = "list[str | int]"
_AROUND_WEIGHT = 0.4
_FIRST = 4
_FIELDS = """SELECT chunk.id, path, chunk.line, chunk.end_line, chunk.part, sort, coalesce(bullet.kind, chunk.kind),
    coalesce(bullet.tags, chunk.tags), coalesce(bullet.time, chunk.time), coalesce(bullet.session, chunk.session),
    chunk.message, chunk.speaker, chunk.entry, chunk.heading, coalesce(bullet.markup, chunk.markup), chunk.content,
    own, around"""
_JOINS = """JOIN document ON document.id = chunk.document
    LEFT JOIN chunk AS bullet ON sort = 'long' AND bullet.entry = chunk.entry AND bullet.markup <> ''"""


def full_text(connection: Connection, query: Query, words: Words, limit: int) -> list[Candidate]:
    """Return at most `limit` chunks that hold a word of the query or stand beside one, the likeliest first."""
    conditions, values = _filters(query)
    terms = " OR ".join(f'"{term}"' for term in words.terms)
    expression = f"{{own around}} : ({terms})" if query.neighbours else f"own : ({terms})"
    order = f"ORDER BY bm25(words, 1.0, {_AROUND_WEIGHT}), words.rowid DESC LIMIT ?"
    first = connection.execute(f"SELECT rowid FROM words WHERE words MATCH ? {order}", (expression, _FIRST * limit))
    numbers = [row[0] for row in first]
    allowed = connection.execute(
        f"SELECT chunk.id FROM chunk {_JOINS} WHERE chunk.id IN ({_numbered(numbers)}) {conditions}", values
    )
    passing = {row[0] for row in allowed}
    if len(passing) < limit and len(numbers) == _FIRST * limit:
        # filters that let little through are joined, which costs every match a look-up
        joined = f"SELECT words.rowid FROM words JOIN chunk ON chunk.id = words.rowid {_JOINS}"
        found = connection.execute(f"{joined} WHERE words MATCH ? {conditions} {order}", (expression, *values, limit))
        return _candidates(connection, [row[0] for row in found])
    return _candidates(connection, [number for number in numbers if number in passing][:limit])


def newest(connection: Connection, query: Query, limit: int) -> list[Candidate]:
    """Return the newest chunks that pass the filters, the newest first; those without a time last."""
    conditions, values = _filters(query)
    found = connection.execute(
        f"""SELECT chunk.id FROM chunk {_JOINS} WHERE TRUE {conditions}
        ORDER BY coalesce(bullet.time, chunk.time) DESC, path, chunk.line, chunk.part LIMIT ?""",
        (*values, limit),
    )
    return _candidates(connection, [row[0] for row in found])


def literal(connection: Connection, query: Query, limit: int) -> list[Candidate]:
    """Return chunks whose text holds the query as it was typed, upper and lower case of ASCII being the same."""
    conditions, values = _filters(query)
    found = connection.execute(
        f"""SELECT chunk.id FROM chunk {_JOINS} WHERE instr(lower(chunk.content), lower(?)) > 0 {conditions}
        ORDER BY path, chunk.line, chunk.part LIMIT ?""",
        (query.text.strip().encode("utf-8", "replace").decode().replace("\0", ""), *values, limit),
    )
    return _candidates(connection, [row[0] for row in found])


def statistics(connection: Connection, words: Words) -> Statistics:
    """Return how many chunks there are, their average length, and how many hold each term of the query."""
    chunks, terms = connection.execute("SELECT chunks, terms FROM total").fetchone()
    frequencies = {
        term: connection.execute(
            "SELECT coalesce(sum(doc), 0) FROM vocabulary WHERE term = ? AND col = 'own'", (term,)
        ).fetchone()[0]
        for term in words.terms
    }
    return Statistics(chunks=chunks, average=terms / max(chunks, 1), frequencies=frequencies)


def _filters(query: Query) -> tuple[str, _Values]:
    conditions: list[str] = []
    values: _Values = []

    def need(condition: str, *given: str | int) -> None:
        conditions.append(f"AND {condition}")
        values.extend(given)

    need(f"sort IN ({_marks(query.sorts)})", *query.sorts)
    if query.kinds:
        need(f"coalesce(bullet.kind, chunk.kind) IN ({_marks(query.kinds)})", *query.kinds)
    if query.tags:
        held = " OR ".join("instr(coalesce(bullet.tags, chunk.tags), ?) > 0" for _ in query.tags)
        need(f"({held})", *(f"\n{tag}\n" for tag in query.tags))
    if query.session:
        need("coalesce(bullet.session, chunk.session) = ?", query.session)
    if query.path:
        need("substr(path, 1, ?) = ?", len(query.path), query.path)
    if query.since:
        need("coalesce(bullet.time, chunk.time) >= ?", _stamp(query.since))
    if query.until:
        need("coalesce(bullet.time, chunk.time) < ?", _stamp(query.until))
    return " ".join(conditions), values


def _marks(values: Iterable[str]) -> str:
    return ", ".join("?" for _ in values)


def _stamp(time: datetime) -> int:
    return round(time.timestamp() * 1000)


def _candidates(connection: Connection, numbers: list[int]) -> list[Candidate]:
    """Return the chunks with these numbers, in this order."""
    rows = connection.execute(
        f"{_FIELDS} FROM chunk JOIN words ON words.rowid = chunk.id {_JOINS} WHERE chunk.id IN ({_numbered(numbers)})"
    )
    found = {row[0]: _candidate(row) for row in rows}
    return [found[number] for number in dict.fromkeys(numbers) if number in found]


def _numbered(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))


def _candidate(row: tuple[str | int | None, ...]) -> Candidate:
    line, end_line, part, time = (cast("int", row[at]) for at in (2, 3, 4, 8))
    path, sort, kind, tags, session, message, speaker, entry, heading, markup, content, own, around = (
        cast("str", row[at]) for at in (1, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16, 17)
    )
    chunk = Chunk(
        path=path,
        line_number=line,
        end_line=end_line,
        part=part,
        sort=cast("Sort", sort),
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
    return Candidate(chunk=chunk, own=own, around=around)
