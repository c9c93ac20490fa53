"""Segments: the columns and postings of a range of chunks, stored in the index database to be loaded at once.

Compaction builds a segment of the chunks that are in none, and merges it with smaller ones before it. Only its last
step, one transaction, holds the write lock. The candidates of a query are the best rows by words and vectors together:
a row without a word of the query is scored by its vector, one without a vector by its words, on the same scale. Only
the texts of those that the ranking selects are read.

Invariants: the first half of the results by words alone is always included. A segment is a cache of the rows. If one is
damaged or missing, the rows are read instead, and one that another process wrote in the meantime is never overwritten.
"""

import json
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio.to_thread
import numpy as np

from ricordo.lazy import copy_with, dataclass
from ricordo.messages.json_text import decode_json
from ricordo.search.bm25 import LITERAL_SCORE, unranked_matches
from ricordo.search.chunking import embedding_text, embedding_text_id, hash64
from ricordo.search.contract import (
    ALL_DOCUMENT_TYPES,
    NO_TIME,
    CandidateColumns,
    Candidates,
    Chunk,
    CuratedMatches,
    Match,
    Selection,
)
from ricordo.search.corpus import Array, Corpus
from ricordo.search.documents import (
    CURATED_QUERY,
    MAX_CURATED,
    MAX_LITERAL_CHARS,
    PreparedQuery,
    QueryWords,
    contains_text,
)
from ricordo.search.lexical import (
    LexicalScores,
    PostingsCache,
    RankedRows,
    best_rows,
    cap_repeats,
    filter_mask,
    measure_rows,
    newest_numbers,
    rank_rows,
    score_rows,
)
from ricordo.search.postings import COLUMNS, NAME_COLUMNS, IndexedRow, Postings, Segment, SegmentBuilder
from ricordo.search.tables import load_chunks, search_literal
from ricordo.storage.sqlite import Connection, Database

if TYPE_CHECKING:
    from ricordo.search.vector_search import MissingVectors, SemanticQuery, Similarities

__all__ = ["SEMANTIC_WEIGHT", "CorpusSearcher", "decode_segment", "encode_segment"]


Select: TypeAlias = Callable[[CandidateColumns], Selection] | None
SEMANTIC_WEIGHT = 0.75
"""The weight of meaning in the score of a row; words have the weight 1."""
_MIN_LIST, _SPARE_ROWS = 64, 64


def rank_hybrid(
    corpus: Corpus, lexical: LexicalScores, similarities: "Similarities", prepared: PreparedQuery
) -> RankedRows:
    """Return the rows that contain a word of the query or are near in meaning, best first."""
    limit = prepared.limit
    list_size = max(_MIN_LIST, limit)
    by_words = best_rows(corpus, lexical, prepared, list_size)
    by_meaning = _nearest_rows(corpus, similarities, prepared, list_size)
    is_found, is_needed = np.zeros((2, corpus.count), dtype=np.bool_)
    is_found[by_words] = is_found[by_meaning] = True
    is_needed[by_words[: limit // 2]] = is_needed[by_meaning[: limit // 4]] = True
    (found,) = is_found.nonzero()
    rows = cap_repeats(corpus, found, _combined_scores(found, lexical, similarities))
    if len(rows) > limit:
        needed = is_needed[rows]
        rows = rows[needed | ((~needed).cumsum() <= limit - needed.sum())]
    own, context = (signal.astype(np.float64) for signal in similarities.own_and_context(rows))
    has_vector = similarities.has_vectors(rows)
    return copy_with(
        measure_rows(rows, lexical), scores=_combine(lexical.scores[rows], (own + context) / 2, has_vector),
        has_vector=has_vector, semantic_signals={"dense": own, "dense_context": context},
    )  # fmt: skip


def _nearest_rows(corpus: Corpus, similarities: "Similarities", prepared: PreparedQuery, limit: int) -> Array:
    """Return the rows that are nearest in meaning, nearest first."""
    passing = filter_mask(corpus, prepared)
    max_rows = limit + _SPARE_ROWS if passing is None else 4 * limit
    while True:
        rows, more = similarities.nearest(max_rows)
        rows = rows if passing is None else rows[passing[rows]]
        best = cap_repeats(corpus, rows, similarities.similarity(rows))[:limit]
        if len(best) == limit or not more:
            return best
        max_rows *= 8


def _combined_scores(rows: Array, lexical: LexicalScores, similarities: "Similarities") -> Array:
    """Return the scores of rows by words and meaning."""
    return _combine(lexical.scores[rows], similarities.similarity(rows), similarities.has_vectors(rows))


def _combine(words: Array, meaning: Array, has_vector: Array) -> Array:
    together: Array = np.where(has_vector, (words + SEMANTIC_WEIGHT * meaning) / (1 + SEMANTIC_WEIGHT), words)
    return together


def _candidate_columns(corpus: Corpus, ranked: RankedRows) -> CandidateColumns:
    rows = ranked.rows
    columns = {
        name: corpus[name][rows]
        for name in ("shape", "length", "document", "line", "time", "entry", "kind", "session", "speaker")
    }
    types = corpus.sorts[columns["document"]]
    # the times of a profile fact say little about when it was said: the ledger has that
    columns["time"] = np.where(types == _PROFILE, NO_TIME, columns["time"])
    return CandidateColumns(
        signals={**ranked.signals, **ranked.semantic_signals}, has_vector=ranked.has_vector, **columns,
        is_curated=types == _CURATED, is_fixed=types == _LONG,
        name=corpus.name, code=corpus.code, find_words=lambda: ranked.lexical.find_words(rows)[0],
    )  # fmt: skip


_CURATED, _LONG, _PROFILE = (ALL_DOCUMENT_TYPES.index(name) for name in ("curated", "long", "profile"))
_MIN_SEGMENT_ROWS = 1_000
_MERGE_FACTOR = 4
_READ_BATCH, _FEW = 2_000, 250
_CHUNK_CACHE_SIZE = 4_096
_POSTINGS_TYPES: dict[str, str] = {"ends": "<u4", "starts": "<u4", "rows": "<u4", "counts": "|u1"}
_ROWS_SQL = """SELECT chunk.id, document, line, part, place, twin, time, entry, shape, kind, tags, session, own, around,
    meaning, speaker, length FROM chunk JOIN words ON words.rowid = chunk.id
    WHERE chunk.id >= ? AND chunk.id <= ? ORDER BY chunk.id LIMIT ?"""


@dataclass(frozen=True, kw_only=True)
class _CompactionPlan:
    """The plan of one segment: the chunks from `first` to `last`, in place of the segments `replaced`."""

    first: int
    last: int
    change: int
    replaced: tuple[int, ...]

    def split(self, number: int) -> "tuple[_CompactionPlan, _CompactionPlan]":
        """Return the plans of the segments before and from the chunk `number` on; the first one replaces all."""
        return copy_with(self, last=number - 1), copy_with(self, first=number, replaced=())


_MIN_LITERAL = 200


class CorpusSearcher:
    """The rows of one database as a corpus in memory, kept up to date with the writes of all processes.

    It is used only within the database's calls, which run one at a time.
    """

    def __init__(self) -> None:
        """Start empty; the first search loads the corpus."""
        self._corpus: Corpus | None = None
        self._last_change = 0
        self._last_document = 0
        self._curated, self._curated_numbers, self._curated_at = CuratedMatches(), list[int](), (-1, -1)
        self._postings_cache = PostingsCache()
        self._chunk_cache: dict[int, Chunk] = {}
        self._chunks_at = -1

    def search(
        self, connection: Connection, prepared: PreparedQuery, sense: "SemanticQuery | None" = None
    ) -> list[Match]:
        """Return the matches of a query, best first; with `sense`, rows that are near in meaning are among them.

        If no word of it is indexed, its text is searched as typed. A query without text returns the newest chunks.
        """
        corpus = self._current_corpus(connection)
        scored = self._score(corpus, prepared, sense)
        return [*self._find(connection, corpus, (prepared, None), *scored).matches]

    def find_candidates(
        self, connection: Connection, requests: Sequence[tuple[PreparedQuery, Select]], sense: "SemanticQuery | None"
    ) -> list[Candidates]:
        """Return the result of `search` for each request, or what it selects of it, with what is needed to rank them.

        The requests have the same words and the same profile.
        """
        corpus = self._current_corpus(connection)
        scored = self._score(corpus, requests[0][0], sense)
        found = [self._find(connection, corpus, request, *scored) for request in requests]
        for at, each in enumerate(found):
            if any(match.chunk.entry_id for match in each.matches):
                found[at] = copy_with(each, curated=self._curated_matches(connection, corpus))
        return found

    def _score(
        self, corpus: Corpus, prepared: PreparedQuery, sense: "SemanticQuery | None"
    ) -> "tuple[LexicalScores | None, Similarities | None]":
        """Return the scores of all rows by words and by meaning, for a query that has words."""
        if not prepared.words.groups:
            return None, None
        lexical = score_rows(corpus, prepared, self._postings_cache)
        weights = dict(zip(prepared.words.words, lexical.weights.tolist(), strict=True))
        return lexical, None if sense is None else sense.similarities(corpus, weights)

    def _find(
        self,
        connection: Connection,
        corpus: Corpus,
        request: tuple[PreparedQuery, Select],
        lexical: LexicalScores | None,
        similarities: "Similarities | None",
    ) -> Candidates:
        prepared, select = request
        types = prepared.query.document_types
        found = Candidates(matches=())
        if not corpus.has_types(types):
            return found
        if lexical is not None and similarities is not None:
            found = self._read(connection, corpus, rank_hybrid(corpus, lexical, similarities, prepared), select)
        elif lexical is not None:
            found = self._read(connection, corpus, rank_rows(corpus, lexical, prepared), select)
        if not found.matches:
            found = Candidates(matches=self._search_without_terms(connection, corpus, prepared))
        return copy_with(found, tool_sessions=corpus.tool_sessions) if "transcript" in types else found

    def _read(self, connection: Connection, corpus: Corpus, ranked: RankedRows, select: Select) -> Candidates:
        """Return the matches of ranked rows, or of those that are selected."""
        numbers = corpus["number"][ranked.rows]
        if select is None or not len(ranked):
            return Candidates(matches=ranked.to_matches(numbers, self._load_chunks(connection, numbers.tolist())))
        chosen = select(_candidate_columns(corpus, ranked))
        chunks = self._load_chunks(connection, numbers[chosen.places].tolist())
        return Candidates(
            matches=ranked.to_matches(numbers, chunks, chosen.places),
            scores=[None if score != score else score for score in chosen.scores.tolist()],  # noqa: PLR0124 - NaN
            context=chosen.context, best=chosen.best, unseen=chosen.unseen,
        )  # fmt: skip

    def _search_without_terms(self, connection: Connection, corpus: Corpus, prepared: PreparedQuery) -> list[Match]:
        """Return the matches without term search: the newest for an empty text, else literal matches."""
        query, limit = prepared.query, prepared.limit
        if not query.text.strip():
            # chunks without a time come last
            newest = load_chunks(connection, newest_numbers(corpus, prepared))
            return unranked_matches(newest.values(), score=0.0)
        if len(query.text.strip()) > MAX_LITERAL_CHARS:
            return []
        typed = [
            chunk
            for chunk in search_literal(connection, query, max(limit, _MIN_LITERAL))
            if chunk.path not in prepared.skipped_paths and contains_text(chunk.content, query.text)
        ]
        return unranked_matches(typed[:limit], score=LITERAL_SCORE, typed=query.text.strip())

    def missing_vectors(self, connection: Connection, sense: "SemanticQuery", limit: int) -> "MissingVectors":
        """Return the texts without a vector, newest first, and the vectors that are no longer used."""
        from ricordo.search.vector_search import MissingVectors

        corpus = self._current_corpus(connection)
        numbers, count = sense.missing_numbers(corpus, limit)
        texts = {embedding_text_id(chunk): embedding_text(chunk) for chunk in load_chunks(connection, numbers).values()}
        return MissingVectors(texts=texts, count=count, unused=sense.unused_rows(corpus))

    def _load_chunks(self, connection: Connection, numbers: Sequence[int]) -> dict[int, Chunk]:
        """Return the result of `load_chunks`, with a cache of recently read chunks, which never change by number.

        A move to another line is a change that clears the cache. Pieces of long entries are not cached, as they have
        fields of another row.
        """
        if self._chunks_at != self._last_change:
            self._chunk_cache.clear()
            self._chunks_at = self._last_change
        cached = {number: self._chunk_cache[number] for number in numbers if number in self._chunk_cache}
        if len(cached) == len(numbers):
            return cached
        read = load_chunks(connection, [number for number in numbers if number not in cached])
        if len(self._chunk_cache) > _CHUNK_CACHE_SIZE:
            self._chunk_cache.clear()
        self._chunk_cache.update((number, chunk) for number, chunk in read.items() if chunk.document_type != "long")
        return cached | read

    def _curated_matches(self, connection: Connection, corpus: Corpus) -> CuratedMatches:
        """Return all of curated memory, newest first; it is read again only if it may have changed."""
        state = corpus.max_number, self._last_change
        if state != self._curated_at:
            prepared = PreparedQuery(query=CURATED_QUERY, words=QueryWords(), limit=MAX_CURATED)
            numbers = newest_numbers(corpus, prepared)
            if numbers != self._curated_numbers or self._last_change != self._curated_at[1]:
                matches = unranked_matches(load_chunks(connection, numbers).values(), score=0.0)
                self._curated, self._curated_numbers = CuratedMatches(tuple(matches)), numbers
            self._curated_at = state
        return self._curated

    async def compact(self, database: Database) -> None:
        """Build a segment of the chunks that are in none, if there are enough."""
        fold = await database.read(_plan_compaction)
        if fold is None:
            return
        is_stored = False
        while fold is not None:
            builder, first = SegmentBuilder(), fold.first
            while rows := await database.read(partial(_read_rows, first=first, last=fold.last, limit=_READ_BATCH)):
                await anyio.to_thread.run_sync(builder.add, rows)
                first = rows[-1].number + 1
                if builder.is_full:
                    break
            data, length = await anyio.to_thread.run_sync(_build_segment, builder)
            part, fold = fold.split(first) if rows else (fold, None)
            if not await database.write(partial(_store_segment, fold=part, data=data, length=length)):
                break
            is_stored = True
        if is_stored:
            await database.read(self._reload_if_fragmented)

    def _reload_if_fragmented(self, connection: Connection) -> None:
        """Load the corpus again if it has many parts or removed rows."""
        if self._corpus is not None and self._corpus.is_fragmented:
            self._corpus = None
            self._current_corpus(connection)

    def _current_corpus(self, connection: Connection) -> Corpus:
        """Return the corpus in the state that the connection sees."""
        corpus, self._corpus = self._corpus, None
        if corpus is None or not self._apply_changes(connection, corpus):
            corpus = Corpus()
            self._chunk_cache.clear()
            self._last_change, self._last_document = _last_pruned_change(connection), 0
            self._add_documents(connection, corpus)
            _load_segments(connection, corpus)
            self._apply_changes(connection, corpus)
        self._corpus = corpus
        return corpus

    def _apply_changes(self, connection: Connection, corpus: Corpus) -> bool:
        """Apply the writes since the last call; return False if their records are incomplete."""
        highest, change = connection.execute(
            """SELECT (SELECT coalesce(max(id), 0) FROM chunk),
                (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'change')"""
        ).fetchone()
        if highest > corpus.max_number:
            self._add_documents(connection, corpus)
            _load_rows(connection, corpus, corpus.max_number + 1, highest)
        if change == self._last_change:
            return True
        changes = connection.execute(
            "SELECT id, chunk, document FROM change WHERE id > ? ORDER BY id", (self._last_change,)
        )
        since = changes.fetchall()
        if not since or since[0][0] != self._last_change + 1:
            return False
        corpus.remove([number for _, number, _ in since if number is not None])
        for document in {document for _, _, document in since if document is not None}:
            corpus.move(connection.execute("SELECT id, line FROM chunk WHERE document = ?", (document,)))
        self._last_change = change
        return True

    def _add_documents(self, connection: Connection, corpus: Corpus) -> None:
        new = connection.execute("SELECT id, path, sort FROM document WHERE id > ?", (self._last_document,)).fetchall()
        corpus.add_documents(new)
        self._last_document = max((number for number, _, _ in new), default=self._last_document)


def encode_segment(block: Segment) -> bytes:
    """Encode a segment: a line of JSON with names and lengths, then the arrays, compressed."""
    postings = block.postings
    arrays = [*(block.columns[name] for name in COLUMNS), *(getattr(postings, name) for name in _POSTINGS_TYPES)]
    sizes = {"vocabulary": len(postings.vocabulary), "lengths": [len(one) for one in arrays]}
    head = json.dumps({"names": block.names, **sizes}).encode()
    return zlib.compress(b"".join((head, b"\n", postings.vocabulary, *(one.tobytes() for one in arrays))), 1)


def decode_segment(data: bytes) -> Segment:
    """Decode the result of `encode_segment`. Raises: ValueError, KeyError, zlib.error for other data."""
    raw = zlib.decompress(data)
    start = raw.index(b"\n") + 1
    head = decode_json(raw[: start - 1])
    at = start + head["vocabulary"]
    arrays: dict[str, Array] = {}
    for (name, kind), length in zip({**COLUMNS, **_POSTINGS_TYPES}.items(), head["lengths"], strict=True):
        arrays[name] = np.frombuffer(raw, dtype=kind, count=length, offset=at)
        at += arrays[name].nbytes
    postings = Postings.create(
        vocabulary=raw[start : start + head["vocabulary"]], **{name: arrays[name].copy() for name in _POSTINGS_TYPES}
    )
    names = {name: tuple(head["names"][name]) for name in NAME_COLUMNS}
    return Segment(columns={name: arrays[name] for name in COLUMNS}, names=names, postings=postings)


def _load_segments(connection: Connection, corpus: Corpus) -> None:
    """Load the segments; if one can't be read, its chunks are read from their rows."""
    stored = connection.execute("SELECT first, last, checksum, data FROM segment ORDER BY first").fetchall()
    for first, last, checksum, data in stored:
        if zlib.crc32(data) == checksum and first > corpus.max_number:
            corpus.add_segment(decode_segment(data))
        else:
            _load_rows(connection, corpus, max(first, corpus.max_number + 1), last)


def _load_rows(connection: Connection, corpus: Corpus, first: int, last: int) -> None:
    """Load chunks from their rows: a few one by one, many as a segment."""
    rows = _read_rows(connection, first, last, _FEW)
    if len(rows) < _FEW:
        corpus.add(rows)
        return
    builder = SegmentBuilder()
    while rows:
        builder.add(rows)
        rows = _read_rows(connection, rows[-1].number + 1, last, _READ_BATCH)
        if builder.is_full or not rows:
            corpus.add_segment(builder.build())
            builder = SegmentBuilder()


def _last_pruned_change(connection: Connection) -> int:
    """Return the number of the last change that was deleted, which every segment includes."""
    least, last = connection.execute(
        """SELECT (SELECT min(id) - 1 FROM change),
            (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'change')"""
    ).fetchone()
    return int(last if least is None else least)


def _read_rows(connection: Connection, first: int, last: int, limit: int) -> list[IndexedRow]:
    """Return the first rows of a range of numbers, in order."""
    return [_build_row(row) for row in connection.execute(_ROWS_SQL, (first, last, limit))]


def _build_row(row: tuple[Any, ...]) -> IndexedRow:
    number, document, line, part, place, twin, time, entry, *rest = row
    moment, digest = NO_TIME if time is None else time, hash64(entry) if entry else 0
    return IndexedRow(number, document, line, part, place, twin, moment, digest, *rest)


def _plan_compaction(connection: Connection) -> _CompactionPlan | None:
    """Return the plan of the next segment; None if compaction is not worthwhile."""
    stored = connection.execute("SELECT id, first, last, chunks, change FROM segment ORDER BY first").fetchall()
    covered = stored[-1][2] if stored else 0
    last, fresh = connection.execute(
        "SELECT coalesce(max(id), 0), count(*) FROM chunk WHERE id > ?", (covered,)
    ).fetchone()
    change = connection.execute("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'change'").fetchone()[0]
    change_count = connection.execute("SELECT count(*) FROM change").fetchone()[0]
    size, replaced = fresh, []
    # after many removals and moves, write everything again
    everything = (
        change_count > _MIN_SEGMENT_ROWS and _MERGE_FACTOR * change_count > sum(row[3] for row in stored) + fresh
    )
    for number, _, _, held, _ in reversed(stored):
        if not everything and (fresh < _MIN_SEGMENT_ROWS or held >= _MERGE_FACTOR * size):
            break
        size += held
        replaced.append(number)
    if not size or (fresh < _MIN_SEGMENT_ROWS and not everything):
        return None
    first = min((row[1] for row in stored if row[0] in replaced), default=covered + 1)
    return _CompactionPlan(first=first, last=max(last, covered), change=change, replaced=tuple(replaced))


def _build_segment(builder: SegmentBuilder) -> tuple[bytes, int]:
    block = builder.build()
    return encode_segment(block), len(block)


def _store_segment(connection: Connection, fold: _CompactionPlan, data: bytes, length: int) -> bool:
    """Store a segment; return False without a change if another process already did."""
    marks = ", ".join(map(str, fold.replaced))
    stored_ids = connection.execute("SELECT id FROM segment WHERE last >= ?", (fold.first,)).fetchall()
    if {row[0] for row in stored_ids} != set(fold.replaced):
        return False
    connection.execute(f"DELETE FROM segment WHERE id IN ({marks})")
    connection.execute(
        "INSERT INTO segment (first, last, chunks, change, checksum, data) VALUES (?, ?, ?, ?, ?, ?)",
        (fold.first, fold.last, length, fold.change, zlib.crc32(data), data),
    )
    # a change is needed only by segments that were built before it
    connection.execute("DELETE FROM change WHERE id <= (SELECT min(change) FROM segment)")
    return True
