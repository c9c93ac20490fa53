"""Segments: the columns and postings of a range of chunks, stored in the index database to be loaded at once.

Compaction builds a segment of the chunks that are in none, and merges it with smaller ones before it. Only its last
step, one transaction, holds the write lock. The candidates of a query are the best rows by words and vectors together:
a row without a word of the query is scored by its vector, one without a vector by its words, on the same scale. Pruning
leaves out entries that occur once and can't be among the best.

Invariants: the first half of the results by words alone is always included, and no pruned row is nearer than reported.
A segment is a cache of the rows. If one is damaged or missing, the rows are read instead, and one that
another process wrote in the meantime is never overwritten.
"""

import json
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio.to_thread
import numpy as np

from ricordo.lazy import dataclass
from ricordo.messages.json_text import decode_json
from ricordo.search.bm25 import SCORE_STEPS, unranked_matches
from ricordo.search.chunking import embedding_text, embedding_text_id, hash64
from ricordo.search.contract import RANKING_FIELD_MARKERS, SUPERSEDES_MARKER, Chunk, CuratedMatches, PruningRule
from ricordo.search.corpus import (
    COLUMNS,
    HAS_RANKING_FIELDS,
    IS_ENTRY,
    IS_MESSAGE,
    NO_TIME,
    Array,
    Corpus,
    IndexedRow,
    Postings,
    Segment,
    SegmentBuilder,
)
from ricordo.search.documents import PreparedQuery, to_milliseconds
from ricordo.search.lexical import (
    LexicalScores,
    PostingsCache,
    RankedRow,
    RankedRows,
    best_rows,
    cap_repeats,
    filter_mask,
    measure_rows,
    newest_numbers,
    score_rows,
)
from ricordo.search.lexical import search as lexical_search
from ricordo.search.tables import load_chunks
from ricordo.storage.sqlite import Connection, Database

if TYPE_CHECKING:
    from ricordo.search.vector_search import MissingVectors, SemanticQuery, Similarities

__all__ = ["SEMANTIC_WEIGHT", "CorpusSearcher", "decode_segment", "encode_segment", "prune_candidates"]


SEMANTIC_WEIGHT = 0.75
"""The weight of meaning in the score of a row; words have the weight 1."""
_MIN_LIST = 64


def hybrid_search(
    corpus: Corpus, prepared: PreparedQuery, sense: "SemanticQuery", occurrences: PostingsCache
) -> RankedRows:
    """Return the rows that contain a word of the query or are near in meaning, best first."""
    lexical = score_rows(corpus, prepared, occurrences)
    similarities = sense.similarities(corpus, dict(zip(prepared.words.words, lexical.weights, strict=True)))
    if similarities is None:
        return lexical_search(corpus, prepared, occurrences)
    list_size = max(_MIN_LIST, prepared.limit)
    by_words, by_meaning = (
        best_rows(corpus, lexical, list_size),
        _nearest_rows(corpus, prepared, similarities, list_size),
    )
    union = np.unique(np.array([*by_words, *by_meaning], dtype=np.int64))
    scores = _combined_scores(union, lexical, similarities)
    ordered = cap_repeats(corpus, union, np.rint(scores * SCORE_STEPS).astype(np.int64), len(union))
    rows = _keep_required(
        ordered, {*by_words[: prepared.limit // 2], *by_meaning[: prepared.limit // 4]}, prepared.limit
    )
    return _add_semantic_signals(measure_rows(corpus, np.array(rows, dtype=np.int64), lexical), lexical, similarities)


def _nearest_rows(corpus: Corpus, prepared: PreparedQuery, similarities: "Similarities", limit: int) -> list[int]:
    """Return the rows that are nearest in meaning, nearest first."""
    max_rows = 4 * limit
    while True:
        rows, more = similarities.nearest(max_rows)
        rows = rows[filter_mask(corpus, rows, prepared)]
        best = cap_repeats(corpus, rows, np.rint(similarities.similarity(rows) * SCORE_STEPS).astype(np.int64), limit)
        if len(best) == limit or not more:
            return best
        max_rows *= 8


def _combined_scores(rows: Array, lexical: LexicalScores, similarities: "Similarities") -> Array:
    """Return the scores of rows by words and meaning."""
    words = lexical.scores[rows] / lexical.max_score
    together: Array = np.where(
        similarities.has_vectors(rows),
        (words + SEMANTIC_WEIGHT * similarities.similarity(rows)) / (1 + SEMANTIC_WEIGHT),
        words,
    )
    return together


def _keep_required(ordered: Sequence[int], needed: set[int], limit: int) -> list[int]:
    """Return the first `limit` rows in order, including all that are `needed`."""
    if len(ordered) <= limit:
        return [*ordered]
    spare = limit - len(needed.intersection(ordered))
    result = []
    for row in ordered:
        if row in needed or spare > 0:
            spare -= row not in needed
            result.append(row)
    return result


def _add_semantic_signals(ranked: RankedRows, lexical: LexicalScores, similarities: "Similarities") -> RankedRows:
    """Return the rows with their semantic signals added."""
    own, context = similarities.own_and_context(ranked.rows)
    return replace(
        ranked, scores=_combined_scores(ranked.rows, lexical, similarities),
        has_vector=similarities.has_vectors(ranked.rows),
        semantic_signals={"dense": own, "dense_context": context},
    )  # fmt: skip


_DAY_MILLISECONDS = 86_400_000
_ROUNDING = 1e-7


def prune_candidates(
    corpus: Corpus, found: RankedRows, cut: PruningRule, successors: Collection[int]
) -> tuple[list[RankedRow], float | None]:
    """Return the rows to read, and the nearness of the nearest pruned row, None if there is none.

    `successors` are the numbers of entries that supersede others.
    """
    if len(found) <= cut.min_count:
        return found.to_list(), None
    similarity, rows = _similarity(found, cut.weights), found.rows
    if cut.recency and cut.now is not None:
        similarity += cut.recency * _recency(corpus, rows, cut, cut.now)
    least = (
        np.partition(similarity, len(similarity) - cut.min_count)[len(similarity) - cut.min_count]
        - cut.margin
        - _ROUNDING
    )
    entry = (corpus["shape"][rows] & IS_ENTRY) > 0
    keep = ~entry | (similarity >= least)
    if not np.all(entry):
        company = _session_keys(corpus, rows)
        keep |= np.isin(company, company[~entry])
    keep |= _is_repeated(corpus["entry"][rows])
    if successors:
        keep |= np.isin(found.numbers, [*successors])
    unseen = similarity[~keep]
    return found.to_list(np.flatnonzero(keep)), float(np.max(unseen)) if len(unseen) else None


def _is_repeated(ids: Array) -> Array:
    """Return a mask of the ids that occur more than once; a missing id (0) counts as repeated."""
    order = np.argsort(ids, kind="stable")
    same = np.diff(ids[order]) == 0
    again: Array = ids == 0
    again[order[1:][same]] = again[order[:-1][same]] = True
    return again


def _session_keys(corpus: Corpus, rows: Array) -> Array:
    """Return a number for the group of each row: its session, or else its document."""
    sessions, none = corpus["session"][rows], corpus.names["session"].get("", -1)
    companies: Array = np.where(sessions == none, -1 - corpus["document"][rows], sessions)
    return companies


def _recency(corpus: Corpus, rows: Array, cut: PruningRule, now: datetime) -> Array:
    """Return 1 for new rows, 0.5 after the half-life of their kind, 0 without a time, 1 with ranking fields."""
    kinds = corpus.names["kind"]
    half_lives = np.full(max(len(kinds), 1), cut.default_half_life)
    for kind, days in cut.half_lives.items():
        if kind in kinds:
            half_lives[kinds[kind]] = days
    times = corpus["time"][rows]
    days = np.maximum(to_milliseconds(now) - times, 0) / _DAY_MILLISECONDS
    newness = np.where(times == NO_TIME, 0.0, 0.5 ** (days / half_lives[corpus["kind"][rows]]))
    return np.where(corpus["shape"][rows] & HAS_RANKING_FIELDS > 0, 1.0, newness)


def _similarity(found: RankedRows, weights: Mapping[str, float]) -> Array:
    """Return the nearness of each row: the weighted mean of the signals that it has."""
    similarity, total = np.zeros(len(found)), np.zeros(len(found))
    for name, weight in weights.items():
        if name in found.signals:
            similarity += weight * found.signals[name]
            total += weight
        elif name in found.semantic_signals and found.has_vector is not None:
            similarity += np.where(found.has_vector, weight * found.semantic_signals[name].astype(np.float64), 0.0)
            total += np.where(found.has_vector, weight, 0.0)
    return np.divide(similarity, total, out=np.zeros(len(found)), where=total > 0)


_MIN_SEGMENT_ROWS = 1_000
_MERGE_FACTOR = 4
_READ_BATCH, _FEW = 2_000, 250
_CHUNK_CACHE_SIZE = 4_096
_POSTINGS_TYPES: dict[str, str] = {"ends": "<u4", "starts": "<u4", "rows": "<u4", "counts": "|u1"}
_HAS_RANKING_FIELDS_SQL = " OR ".join(f"instr(markup, '{mark}') > 0" for mark in RANKING_FIELD_MARKERS)
_ROWS_SQL = f"""SELECT chunk.id, document, line, part, place, twin, time, entry, message <> '', markup <> '',
    {_HAS_RANKING_FIELDS_SQL}, kind, tags, session, own, around, meaning FROM chunk JOIN words ON words.rowid = chunk.id
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
        return replace(self, last=number - 1), replace(self, first=number, replaced=())


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
        self._successors: set[int] = set()
        self._successors_up_to = 0
        self._postings_cache = PostingsCache()
        self._chunk_cache: dict[int, Chunk] = {}
        self._chunks_at = -1

    def search(
        self, connection: Connection, prepared: PreparedQuery, sense: "SemanticQuery | None" = None
    ) -> tuple[list[tuple[RankedRow, Chunk]], tuple[str, ...]]:
        """Return the rows with a word of the query and their chunks, best first, and the words that no row contains.

        With `sense`, rows that are near in meaning are included.
        """
        corpus = self._current_corpus(connection)
        ranked = self._rank(corpus, prepared, sense)
        chunks = load_chunks(connection, ranked.numbers.tolist())
        return [(one, chunks[one.number]) for one in ranked.to_list() if one.number in chunks], ranked.absent_words

    def newest(self, connection: Connection, prepared: PreparedQuery) -> list[Chunk]:
        """Return the newest chunks that match the filters, newest first; chunks without a time come last."""
        return [*load_chunks(connection, newest_numbers(self._current_corpus(connection), prepared)).values()]

    def missing_vectors(self, connection: Connection, sense: "SemanticQuery", limit: int) -> "MissingVectors":
        """Return the texts without a vector, newest first, and the vectors that are no longer used."""
        from ricordo.search.vector_search import MissingVectors

        corpus = self._current_corpus(connection)
        numbers, count = sense.missing_numbers(corpus, limit)
        texts = {embedding_text_id(chunk): embedding_text(chunk) for chunk in load_chunks(connection, numbers).values()}
        return MissingVectors(texts=texts, count=count, unused=sense.unused_rows(corpus))

    def find_candidates(
        self, connection: Connection, prepared: PreparedQuery, sense: "SemanticQuery | None", cut: PruningRule | None
    ) -> tuple[list[tuple[RankedRow, Chunk]], tuple[str, ...], float | None]:
        """Return the result of `search` without the rows that `cut` excludes, and the nearness of the nearest one."""
        corpus = self._current_corpus(connection)
        ranked = self._rank(corpus, prepared, sense)
        unseen = None
        if cut is None:
            found = ranked.to_list()
        else:
            found, unseen = prune_candidates(corpus, ranked, cut, self._find_successors(connection, corpus))
        chunks = self._load_chunks(connection, [one.number for one in found])
        return [(one, chunks[one.number]) for one in found if one.number in chunks], ranked.absent_words, unseen

    def _load_chunks(self, connection: Connection, numbers: Sequence[int]) -> dict[int, Chunk]:
        """Return the result of `load_chunks`, with a cache of recently read chunks, which never change by number.

        A move to another line is a change that clears the cache. Pieces of long entries are not cached, as they have
        fields of another row.
        """
        if self._chunks_at != self._last_change:
            self._chunk_cache.clear()
            self._chunks_at = self._last_change
        cached = {number: self._chunk_cache[number] for number in numbers if number in self._chunk_cache}
        read = load_chunks(connection, [number for number in numbers if number not in cached])
        if len(self._chunk_cache) > _CHUNK_CACHE_SIZE:
            self._chunk_cache.clear()
        self._chunk_cache.update((number, chunk) for number, chunk in read.items() if chunk.document_type != "long")
        return cached | read

    def _rank(self, corpus: Corpus, prepared: PreparedQuery, sense: "SemanticQuery | None") -> RankedRows:
        if sense is None:
            return lexical_search(corpus, prepared, self._postings_cache)
        return hybrid_search(corpus, prepared, sense, self._postings_cache)

    def curated_matches(self, connection: Connection, prepared: PreparedQuery) -> CuratedMatches:
        """Return the chunks of `newest` as matches; they are read again only if they may have changed."""
        corpus = self._current_corpus(connection)
        state = corpus.max_number, self._last_change
        if state != self._curated_at:
            numbers = newest_numbers(corpus, prepared)
            if numbers != self._curated_numbers or self._last_change != self._curated_at[1]:
                matches = unranked_matches(load_chunks(connection, numbers).values(), score=0.0)
                self._curated, self._curated_numbers = CuratedMatches(tuple(matches)), numbers
            self._curated_at = state
        return self._curated

    def _find_successors(self, connection: Connection, corpus: Corpus) -> Collection[int]:
        """Return the numbers of entries that supersede others."""
        if corpus.max_number > self._successors_up_to:
            cache_key = (self._successors_up_to, SUPERSEDES_MARKER)
            rows = connection.execute("SELECT id FROM chunk WHERE id > ? AND instr(markup, ?) > 0", cache_key)
            self._successors.update(row[0] for row in rows)
            self._successors_up_to = corpus.max_number
        return self._successors

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
    names = {
        "kinds": block.kinds,
        "tags": block.tags,
        "sessions": block.sessions,
        "vocabulary": len(postings.vocabulary),
    }
    head = json.dumps({**names, "lengths": [len(one) for one in arrays]}).encode()
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
    kinds, tags, sessions = (tuple(head[name]) for name in ("kinds", "tags", "sessions"))
    return Segment(
        columns={name: arrays[name] for name in COLUMNS}, kinds=kinds, tags=tags, sessions=sessions, postings=postings
    )


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
    (
        number, document, line, part, place, twin, time, entry, message, markup, tells, kind, tags, session, own,
        around, meaning,
    ) = row  # fmt: skip
    return IndexedRow(
        number,
        document,
        line,
        part,
        place,
        twin,
        NO_TIME if time is None else time,
        hash64(entry) if entry else 0,
        IS_MESSAGE * bool(message) | IS_ENTRY * bool(markup) | HAS_RANKING_FIELDS * bool(tells),
        kind,
        tags,
        session,
        own,
        around,
        meaning,
    )


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
