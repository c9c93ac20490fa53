"""How the tables are searched: full-text candidates under filters, the newest, and text that holds the query literally.

A piece of a long entry has the fields of the bullet that points to it, so filters treat both alike.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TypeAlias, cast

from ricordo.database.sqlite import Connection
from ricordo.index.contract import Chunk, Query, Sort
from ricordo.index.scoring import Candidate, Statistics, stem
from ricordo.index.terms import Words

__all__ = ["full_text", "literal", "newest", "statistics"]

_Values: TypeAlias = "list[str | int]"
_AROUND_WEIGHT = 0.4
_FIRST = 4
_MOST_COUNTED = 4_000
_MOST_OF_HEAP, _MOST_TWINS = 20, 3
_HEAP = """chunk.document || CASE WHEN chunk.message <> '' OR chunk.markup <> '' THEN '/' || chunk.line ELSE '' END"""
_FIELDS = """SELECT chunk.id, path, chunk.line, chunk.end_line, chunk.part, sort, coalesce(bullet.kind, chunk.kind),
    coalesce(bullet.tags, chunk.tags), coalesce(bullet.time, chunk.time), coalesce(bullet.session, chunk.session),
    chunk.message, chunk.speaker, chunk.entry, chunk.heading, coalesce(bullet.markup, chunk.markup), chunk.content,
    own, around"""
_JOINS = """JOIN document ON document.id = chunk.document
    LEFT JOIN chunk AS bullet ON sort = 'long' AND bullet.entry = chunk.entry AND bullet.markup <> ''"""


def full_text(connection: Connection, query: Query, words: Words, limit: int) -> list[Candidate]:
    """Return at most `limit` chunks that hold a word of the query or stand beside one, the likeliest first.

    Of one message, or of a document that is neither a transcript nor entries, at most 20 are taken, of equal texts 3,
    so that no pile of the same hides the rest.
    """
    conditions, values = _filters(query)
    terms = " OR ".join(f'"{term}"' for term in words.terms)
    expression = f"{{own around}} : ({terms})" if query.neighbours else f"own : ({terms})"
    score = f"bm25(words, 1.0, {_AROUND_WEIGHT})"
    likeliest = f"SELECT rowid FROM words WHERE words MATCH ? ORDER BY {score}, rowid DESC LIMIT ?"
    first = _FIRST * limit
    numbers = [row[0] for row in connection.execute(likeliest, (expression, first))]
    allowed = connection.execute(
        f"SELECT chunk.id, {_HEAP}, chunk.content FROM chunk {_JOINS} "
        f"WHERE chunk.id IN ({_numbered(numbers)}) {conditions}",
        values,
    )
    chosen = _spread(numbers, {row[0]: (row[1], row[2]) for row in allowed})
    if len(chosen) < limit and len(numbers) == first:
        # filters that let little through, and piles, are joined, which costs every match a look-up
        found = connection.execute(
            f"""WITH found AS MATERIALIZED (SELECT rowid AS id, {score} AS score FROM words WHERE words MATCH ?)
            SELECT id FROM (SELECT found.id AS id, score,
                row_number() OVER (PARTITION BY {_HEAP} ORDER BY score, found.id DESC) AS nth,
                row_number() OVER (PARTITION BY chunk.content ORDER BY score, found.id DESC) AS twin
                FROM found JOIN chunk ON chunk.id = found.id {_JOINS} WHERE TRUE {conditions})
            WHERE nth <= {_MOST_OF_HEAP} AND twin <= {_MOST_TWINS} ORDER BY score, id DESC LIMIT ?""",
            (expression, *values, limit),
        )
        chosen = [row[0] for row in found]
    return _candidates(connection, chosen[:limit])


def _spread(numbers: Iterable[int], allowed: Mapping[int, tuple[str, str]]) -> list[int]:
    """Return those that are allowed, in their order, without what is too much of one heap or one text."""
    taken: Counter[str] = Counter()
    chosen = []
    for number in numbers:
        if number not in allowed:
            continue
        heap, content = allowed[number]
        if taken[heap] < _MOST_OF_HEAP and taken[f"= {content}"] < _MOST_TWINS:
            taken.update((heap, f"= {content}"))
            chosen.append(number)
    return chosen


def newest(connection: Connection, query: Query, limit: int) -> list[Candidate]:
    """Return the newest chunks that pass the filters, the newest first; those without a time last.

    Of two with one time in one document the later one is the newer one.
    """
    conditions, values = _filters(query)
    found = connection.execute(
        f"""SELECT chunk.id FROM chunk {_JOINS} WHERE TRUE {conditions}
        ORDER BY coalesce(bullet.time, chunk.time) DESC, path,
            CASE WHEN coalesce(bullet.time, chunk.time) IS NULL THEN chunk.line ELSE -chunk.line END, chunk.part
        LIMIT ?""",
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
    """Return in how many places each term of the query stands, and which unknown terms have a relative."""
    frequencies = {term: _places(connection, term) for term in words.terms}
    related = {term for term, count in frequencies.items() if not count and _has_relative(connection, stem(term))}
    return Statistics(frequencies=frequencies, related=frozenset(related))


def _places(connection: Connection, term: str) -> int:
    """Return in how many places a term stands, see `scoring.place_of`; of many chunks the first 4,000 are looked at."""
    count: int = connection.execute(
        """SELECT count(*) FROM (SELECT DISTINCT
            CASE WHEN message <> '' OR markup <> '' THEN substr(content, 1, 200) ELSE document END
            FROM (SELECT min(content) AS content, message, markup, document FROM chunk
                WHERE id IN (SELECT rowid FROM words WHERE words MATCH ? LIMIT ?)
                GROUP BY document, line))""",
        (f'own : "{term}"', _MOST_COUNTED),
    ).fetchone()[0]
    return count


def _has_relative(connection: Connection, start: str) -> bool:
    if not start:
        return False
    bounds = (start, f"{start}\U0010ffff")
    found = connection.execute("SELECT 1 FROM vocabulary WHERE term >= ? AND term < ? AND col = 'own' LIMIT 1", bounds)
    return found.fetchone() is not None


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
