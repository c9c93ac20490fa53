"""How the tables are searched where postings can't be: full-text candidates under filters, the newest; and literally.

A piece of a long entry has the fields of the bullet that points to it, so filters treat both alike.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias

from ricordo.database.sqlite import Connection
from ricordo.index.contract import Chunk, Query
from ricordo.index.plan import to_milliseconds
from ricordo.index.scoring import MAX_PER_GROUP, MAX_IDENTICAL, Candidate, TermStatistics, stem_prefix
from ricordo.index.tables import replace_surrogates
from ricordo.index.terms import QueryWords

__all__ = ["load_chunks", "search_full_text", "search_literal", "newest_chunks", "load_term_statistics"]

_SqlValues: TypeAlias = "list[str | int]"
_AROUND_WEIGHT = 0.4
_OVERFETCH = 4
_MAX_COUNTED = 4_000
_LOAD_BATCH = 500
_GROUP_SQL = (
    """chunk.document || CASE WHEN chunk.message <> '' OR chunk.markup <> '' THEN '/' || chunk.line ELSE '' END"""
)
_OTHER_PROFILES_SQL = "SELECT id FROM document WHERE sort = 'profile' AND path <> ?"
_FIELDS_SQL = """SELECT chunk.id, path, chunk.line, chunk.end_line, chunk.part, sort, coalesce(bullet.kind, chunk.kind),
    coalesce(bullet.tags, chunk.tags), coalesce(bullet.time, chunk.time), coalesce(bullet.session, chunk.session),
    chunk.message, chunk.speaker, chunk.entry, chunk.heading, coalesce(bullet.markup, chunk.markup), chunk.content"""
_JOINS_SQL = """JOIN document ON document.id = chunk.document
    LEFT JOIN chunk AS bullet ON sort = 'long' AND bullet.id = (
        SELECT max(pointing.id) FROM chunk AS pointing WHERE pointing.entry = chunk.entry AND pointing.markup <> '')"""


def search_full_text(connection: Connection, query: Query, words: QueryWords, limit: int) -> list[Candidate]:
    """Return at most `limit` chunks that hold a word of the query or stand beside one, the likeliest first.

    Of one message, or of a document that is neither a transcript nor entries, at most 20 are taken, of equal texts 3,
    so that no pile of the same hides the rest.
    """
    conditions, values = _filter_sql(query)
    terms = " OR ".join(f'"{term}"' for term in words.terms)
    expression = f"{{own around}} : ({terms})" if query.neighbours else f"own : ({terms})"
    score = f"bm25(words, 1.0, {_AROUND_WEIGHT})"
    likeliest = f"SELECT rowid FROM words WHERE words MATCH ? ORDER BY {score}, rowid DESC LIMIT ?"
    first = _OVERFETCH * limit
    numbers = [row[0] for row in connection.execute(likeliest, (expression, first))]
    allowed = connection.execute(
        f"SELECT chunk.id, {_GROUP_SQL}, chunk.twin FROM chunk {_JOINS_SQL} "
        f"WHERE chunk.id IN ({_id_list(numbers)}) {conditions}",
        values,
    )
    chosen = _cap_repeats(numbers, {row[0]: (row[1], row[2]) for row in allowed})
    if len(chosen) < limit and len(numbers) == first:
        # filters that let little through, and piles, are joined, which costs every match a look-up
        found = connection.execute(
            f"""WITH found AS MATERIALIZED (SELECT rowid AS id, {score} AS score FROM words WHERE words MATCH ?)
            SELECT id FROM (SELECT found.id AS id, score,
                row_number() OVER (PARTITION BY {_GROUP_SQL} ORDER BY score, found.id DESC) AS nth,
                row_number() OVER (PARTITION BY chunk.twin ORDER BY score, found.id DESC) AS twin
                FROM found JOIN chunk ON chunk.id = found.id {_JOINS_SQL} WHERE TRUE {conditions})
            WHERE nth <= {MAX_PER_GROUP} AND twin <= {MAX_IDENTICAL} ORDER BY score, id DESC LIMIT ?""",
            (expression, *values, limit),
        )
        chosen = [row[0] for row in found]
    return _load_candidates(connection, chosen[:limit])


def _cap_repeats(numbers: Iterable[int], allowed: Mapping[int, tuple[str, int]]) -> list[int]:
    """Return those that are allowed, in their order, without what is too much of one heap or one text."""
    taken: Counter[str] = Counter()
    chosen = []
    for number in numbers:
        if number not in allowed:
            continue
        heap, twin = allowed[number]
        if taken[heap] < MAX_PER_GROUP and taken[f"= {twin}"] < MAX_IDENTICAL:
            taken.update((heap, f"= {twin}"))
            chosen.append(number)
    return chosen


def newest_chunks(connection: Connection, query: Query, limit: int) -> list[Chunk]:
    """Return the newest chunks that pass the filters, the newest first; those without a time last.

    Of two with one time in one document the later one is the newer one.
    """
    conditions, values = _filter_sql(query)
    found = connection.execute(
        f"""SELECT chunk.id FROM chunk {_JOINS_SQL} WHERE TRUE {conditions}
        ORDER BY coalesce(bullet.time, chunk.time) DESC, path,
            CASE WHEN coalesce(bullet.time, chunk.time) IS NULL THEN chunk.line ELSE -chunk.line END, chunk.part
        LIMIT ?""",
        (*values, limit),
    )
    return [*load_chunks(connection, [row[0] for row in found]).values()]


def search_literal(connection: Connection, query: Query, limit: int) -> list[Chunk]:
    """Return chunks whose text holds the query as it was typed, upper and lower case of ASCII being the same."""
    conditions, values = _filter_sql(query)
    found = connection.execute(
        f"""SELECT chunk.id FROM chunk {_JOINS_SQL} WHERE instr(lower(chunk.content), lower(?)) > 0 {conditions}
        ORDER BY path, chunk.line, chunk.part LIMIT ?""",
        (replace_surrogates(query.text.strip()).replace("\0", ""), *values, limit),
    )
    return [*load_chunks(connection, [row[0] for row in found]).values()]


def load_term_statistics(connection: Connection, words: QueryWords, profile: str = "") -> TermStatistics:
    """Return in how many places each term of the query stands, and which unknown terms have a relative.

    Of profiles only the one at the path `profile` counts.
    """
    frequencies = {term: _count_places(connection, term, profile) for term in words.terms}
    related = {
        term
        for term, count in frequencies.items()
        if not count and _has_relative(connection, stem_prefix(term), profile)
    }
    return TermStatistics(frequencies=frequencies, related_terms=frozenset(related))


def _count_places(connection: Connection, term: str, profile: str) -> int:
    """Return in how many places a term stands, see `scoring.place_of`; of many chunks the first 4,000 are looked at."""
    count: int = connection.execute(
        f"""SELECT count(DISTINCT place) FROM chunk
        WHERE id IN (SELECT rowid FROM words WHERE words MATCH ? LIMIT ?) AND document NOT IN ({_OTHER_PROFILES_SQL})""",
        (f'own : "{term}"', _MAX_COUNTED, profile),
    ).fetchone()[0]
    return count


def _has_relative(connection: Connection, start: str, profile: str) -> bool:
    if not start:
        return False
    found = connection.execute(
        f"""SELECT 1 FROM words JOIN chunk ON chunk.id = words.rowid
        WHERE words MATCH ? AND document NOT IN ({_OTHER_PROFILES_SQL}) LIMIT 1""",
        (f'own : "{start}"*', profile),
    )
    return found.fetchone() is not None


def _filter_sql(query: Query) -> tuple[str, _SqlValues]:
    conditions: list[str] = []
    values: _SqlValues = []

    def need(condition: str, *given: str | int) -> None:
        conditions.append(f"AND {condition}")
        values.extend(given)

    need(f"sort IN ({_placeholders(query.sorts)})", *query.sorts)
    need("(sort <> 'profile' OR path = ?)", query.profile)
    if query.kinds:
        need(
            f"coalesce(bullet.kind, chunk.kind) IN ({_placeholders(query.kinds)})",
            *map(replace_surrogates, query.kinds),
        )
    if query.tags:
        held = " OR ".join("instr(coalesce(bullet.tags, chunk.tags), ?) > 0" for _ in query.tags)
        need(f"({held})", *(f"\n{replace_surrogates(tag)}\n" for tag in query.tags))
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
    """Return the chunks with these numbers in this order, by number; those that are not there are left out."""
    found: dict[int, Chunk] = {}
    for first in range(0, len(numbers), _LOAD_BATCH):
        some = numbers[first : first + _LOAD_BATCH]
        # as many marks as were asked for last time make a statement that need not be prepared again
        rows = connection.execute(
            f"{_FIELDS_SQL} FROM chunk {_JOINS_SQL} WHERE chunk.id IN ({_placeholders(some)})", some
        )
        found.update((row[0], _chunk_from_row(row)) for row in rows)
    return {number: found[number] for number in numbers if number in found}


def _load_candidates(connection: Connection, numbers: Sequence[int]) -> list[Candidate]:
    found = connection.execute(f"SELECT rowid, own, around FROM words WHERE rowid IN ({_id_list(numbers)})")
    terms = {row[0]: row[1:] for row in found}
    return [
        Candidate(chunk=chunk, own=terms[number][0], around=terms[number][1])
        for number, chunk in load_chunks(connection, numbers).items()
        if number in terms
    ]


def _id_list(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))


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
