"""How the tables are searched where postings can't be: full-text candidates under filters, the newest; and literally.

A piece of a long entry has the fields of the bullet that points to it, so filters treat both alike.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias

from ricordo.database.sqlite import Connection
from ricordo.index.contract import Chunk, Query
from ricordo.index.plan import stamp
from ricordo.index.scoring import MOST_OF_HEAP, MOST_TWINS, Candidate, Statistics, stem
from ricordo.index.tables import storable
from ricordo.index.terms import Words

__all__ = ["chunks", "full_text", "literal", "newest", "statistics"]

_Values: TypeAlias = "list[str | int]"
_AROUND_WEIGHT = 0.4
_FIRST = 4
_MOST_COUNTED = 4_000
_AT_ONCE = 500
_HEAP = """chunk.document || CASE WHEN chunk.message <> '' OR chunk.markup <> '' THEN '/' || chunk.line ELSE '' END"""
_HIDDEN = "SELECT id FROM document WHERE sort = 'profile' AND path <> ?"
_FIELDS = """SELECT chunk.id, path, chunk.line, chunk.end_line, chunk.part, sort, coalesce(bullet.kind, chunk.kind),
    coalesce(bullet.tags, chunk.tags), coalesce(bullet.time, chunk.time), coalesce(bullet.session, chunk.session),
    chunk.message, chunk.speaker, chunk.entry, chunk.heading, coalesce(bullet.markup, chunk.markup), chunk.content"""
_JOINS = """JOIN document ON document.id = chunk.document
    LEFT JOIN chunk AS bullet ON sort = 'long' AND bullet.id = (
        SELECT max(pointing.id) FROM chunk AS pointing WHERE pointing.entry = chunk.entry AND pointing.markup <> '')"""


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
        f"SELECT chunk.id, {_HEAP}, chunk.twin FROM chunk {_JOINS} "
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
                row_number() OVER (PARTITION BY chunk.twin ORDER BY score, found.id DESC) AS twin
                FROM found JOIN chunk ON chunk.id = found.id {_JOINS} WHERE TRUE {conditions})
            WHERE nth <= {MOST_OF_HEAP} AND twin <= {MOST_TWINS} ORDER BY score, id DESC LIMIT ?""",
            (expression, *values, limit),
        )
        chosen = [row[0] for row in found]
    return _candidates(connection, chosen[:limit])


def _spread(numbers: Iterable[int], allowed: Mapping[int, tuple[str, int]]) -> list[int]:
    """Return those that are allowed, in their order, without what is too much of one heap or one text."""
    taken: Counter[str] = Counter()
    chosen = []
    for number in numbers:
        if number not in allowed:
            continue
        heap, twin = allowed[number]
        if taken[heap] < MOST_OF_HEAP and taken[f"= {twin}"] < MOST_TWINS:
            taken.update((heap, f"= {twin}"))
            chosen.append(number)
    return chosen


def newest(connection: Connection, query: Query, limit: int) -> list[Chunk]:
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
    return [*chunks(connection, [row[0] for row in found]).values()]


def literal(connection: Connection, query: Query, limit: int) -> list[Chunk]:
    """Return chunks whose text holds the query as it was typed, upper and lower case of ASCII being the same."""
    conditions, values = _filters(query)
    found = connection.execute(
        f"""SELECT chunk.id FROM chunk {_JOINS} WHERE instr(lower(chunk.content), lower(?)) > 0 {conditions}
        ORDER BY path, chunk.line, chunk.part LIMIT ?""",
        (storable(query.text.strip()).replace("\0", ""), *values, limit),
    )
    return [*chunks(connection, [row[0] for row in found]).values()]


def statistics(connection: Connection, words: Words, profile: str = "") -> Statistics:
    """Return in how many places each term of the query stands, and which unknown terms have a relative.

    Of profiles only the one at the path `profile` counts.
    """
    frequencies = {term: _places(connection, term, profile) for term in words.terms}
    related = {
        term for term, count in frequencies.items() if not count and _has_relative(connection, stem(term), profile)
    }
    return Statistics(frequencies=frequencies, related=frozenset(related))


def _places(connection: Connection, term: str, profile: str) -> int:
    """Return in how many places a term stands, see `scoring.place_of`; of many chunks the first 4,000 are looked at."""
    count: int = connection.execute(
        f"""SELECT count(DISTINCT place) FROM chunk
        WHERE id IN (SELECT rowid FROM words WHERE words MATCH ? LIMIT ?) AND document NOT IN ({_HIDDEN})""",
        (f'own : "{term}"', _MOST_COUNTED, profile),
    ).fetchone()[0]
    return count


def _has_relative(connection: Connection, start: str, profile: str) -> bool:
    if not start:
        return False
    found = connection.execute(
        f"""SELECT 1 FROM words JOIN chunk ON chunk.id = words.rowid
        WHERE words MATCH ? AND document NOT IN ({_HIDDEN}) LIMIT 1""",
        (f'own : "{start}"*', profile),
    )
    return found.fetchone() is not None


def _filters(query: Query) -> tuple[str, _Values]:
    conditions: list[str] = []
    values: _Values = []

    def need(condition: str, *given: str | int) -> None:
        conditions.append(f"AND {condition}")
        values.extend(given)

    need(f"sort IN ({_marks(query.sorts)})", *query.sorts)
    need("(sort <> 'profile' OR path = ?)", query.profile)
    if query.kinds:
        need(f"coalesce(bullet.kind, chunk.kind) IN ({_marks(query.kinds)})", *map(storable, query.kinds))
    if query.tags:
        held = " OR ".join("instr(coalesce(bullet.tags, chunk.tags), ?) > 0" for _ in query.tags)
        need(f"({held})", *(f"\n{storable(tag)}\n" for tag in query.tags))
    if query.session:
        need("coalesce(bullet.session, chunk.session) = ?", storable(query.session))
    if query.path:
        need("substr(path, 1, ?) = ?", len(query.path), storable(query.path))
    if query.since:
        need("coalesce(bullet.time, chunk.time) >= ?", stamp(query.since))
    if query.until:
        need("coalesce(bullet.time, chunk.time) < ?", stamp(query.until))
    return " ".join(conditions), values


def _marks(values: Iterable[str | int]) -> str:
    return ", ".join("?" for _ in values)


def chunks(connection: Connection, numbers: Sequence[int]) -> dict[int, Chunk]:
    """Return the chunks with these numbers in this order, by number; those that are not there are left out."""
    found: dict[int, Chunk] = {}
    for first in range(0, len(numbers), _AT_ONCE):
        some = numbers[first : first + _AT_ONCE]
        # as many marks as were asked for last time make a statement that need not be prepared again
        rows = connection.execute(f"{_FIELDS} FROM chunk {_JOINS} WHERE chunk.id IN ({_marks(some)})", some)
        found.update((row[0], _chunk(row)) for row in rows)
    return {number: found[number] for number in numbers if number in found}


def _candidates(connection: Connection, numbers: Sequence[int]) -> list[Candidate]:
    found = connection.execute(f"SELECT rowid, own, around FROM words WHERE rowid IN ({_numbered(numbers)})")
    terms = {row[0]: row[1:] for row in found}
    return [
        Candidate(chunk=chunk, own=terms[number][0], around=terms[number][1])
        for number, chunk in chunks(connection, numbers).items()
        if number in terms
    ]


def _numbered(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))


def _chunk(row: tuple[Any, ...]) -> Chunk:
    (
        _, path, line, end_line, part, sort, kind, tags, time, session, message, speaker, entry, heading, markup,
        content,
    ) = row  # fmt: skip
    return Chunk(
        path=path,
        line_number=line,
        end_line=end_line,
        part=part,
        sort=sort,
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
