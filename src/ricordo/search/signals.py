"""The signals that passages are scored by, and the passages in the order of their scores. Pure.

Each signal is in 0..1; multiplied by its weight it is a share of the score. A passage first gets its maximum score, and
its text is read only when no scored passage is above that.

Invariant: the order is the same as if all passages were scored.
"""

import heapq
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import lru_cache
from operator import itemgetter
from typing import NamedTuple

from ricordo.language import content_words
from ricordo.lazy import lazy_property
from ricordo.search.config import RecallConfig
from ricordo.search.contract import RANKING_FIELD_MARKERS, Chunk, Passage
from ricordo.search.documents import is_tool_call, only_asks
from ricordo.search.query_context import (
    QueryContext,
    date_closeness,
    holds_expected,
    passage_location,
    passage_similarity,
    reply_score,
    session_key,
)
from ricordo.workspace.entry import EXTERNAL_TRUST_FIELD, STARTS_FIELD, Author, Entry, Source
from ricordo.workspace.entry_codec import parse_entries

__all__ = [
    "CALL_LOSS",
    "LONG_FORM",
    "NO_DATE",
    "QUESTION_LOSS",
    "USUAL_FORM",
    "WORD_CHARS",
    "ScoredPassage",
    "WordBits",
    "held_on",
    "is_reply",
    "iter_best_first",
    "score_passage",
    "sort_key",
]


NO_DATE = datetime.min.replace(tzinfo=UTC)
"""The time of a passage without a time."""
_ROUNDING = 1e-9
_STATE_MARKER = "[state:: "
_STARTS_MARKER = f"[{STARTS_FIELD}:: "
_EXTERNAL_MARKER, _IMPORT_MARKER = "[{}:: {}]".format(*EXTERNAL_TRUST_FIELD), "[by:: import]"
WORD_CHARS, LONG_FORM = 6, 5.0
QUESTION_LOSS, CALL_LOSS = 0.3, 0.5
"""A message says as much as its form can from e^5 words on, less if it only asks or calls a tool."""
_HELD_SCORE, _LATER_SHARE = 0.5, 0.5
USUAL_FORM = 0.5
"""The form of an entry, and that of a message from which on it gains."""
_ENTRY_CACHE_SIZE, _WORD_CACHE_SIZE = 4_096, 16_384


_BITS = 256


class WordBits(NamedTuple):
    """Distinct words, a bit set of their hashes, and how many of them share a bit with another one.

    The words are a tuple, which takes a quarter of the memory of a set.
    """

    words: tuple[str, ...]
    bits: int
    sharing: int

    @classmethod
    def of(cls, words: Collection[str]) -> "WordBits":
        """Return the bit set of distinct words."""
        bits = 0
        for word in words:
            bits |= 1 << hash(word) % _BITS
        return cls(tuple(words), bits, len(words) - bits.bit_count())

    def max_shared(self, other: "WordBits") -> int:
        """Return how many words they share at most."""
        return (self.bits & other.bits).bit_count() + self.sharing


class ScoredPassage:
    """A passage with its score and the reasons for it; it never changes.

    `score` may be above 1 here, so that the best passages stay distinct. `time` is when it was said or became true,
    else when it was saved. `successor` is the passage that superseded its entry. `diversity_penalty` is the penalty for
    other passages of its session. `contradicts` are the ids of memories that conflict with it.
    """

    def __init__(
        self,
        passage: Passage,
        score: float,
        context: QueryContext,
        time: datetime,
        *,
        diversity_penalty: float = 0.0, outdated: bool = False, successor: Passage | None = None,
        contradicts: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        """Create a scored passage; use `score_passage`."""
        self.passage = passage
        self.chunk = passage.match.chunk
        self.score = score
        self.context = context
        self.time = time
        self.diversity_penalty = diversity_penalty
        self.outdated = outdated
        self.successor = successor
        self.contradicts = contradicts

    def changed(
        self, *, score: float | None = None, diversity_penalty: float | None = None, outdated: bool | None = None,
        successor: Passage | None = None, contradicts: tuple[str, ...] | None = None,
    ) -> "ScoredPassage":  # fmt: skip
        """Return the passage with these values."""
        return ScoredPassage(
            self.passage, self.score if score is None else score, self.context, self.time,
            diversity_penalty=self.diversity_penalty if diversity_penalty is None else diversity_penalty,
            outdated=self.outdated if outdated is None else outdated,
            successor=self.successor if successor is None else successor,
            contradicts=self.contradicts if contradicts is None else contradicts,
        )  # fmt: skip

    @lazy_property
    def memory(self) -> Entry | None:
        """The entry in the passage, None for other passages; parsed on demand."""
        found = _stored_entry(self.chunk)
        return replace(found, state="superseded") if found and self.successor else found

    @lazy_property
    def signals(self) -> Mapping[str, float]:
        """The signals of the passage, each in 0..1; computed on demand."""
        return _compute_signals(self.passage, self.memory, self.context)

    @lazy_property
    def shares(self) -> Mapping[str, float]:
        """The share of each signal in the score; empty for a blank query."""
        if self.context.is_blank:
            return {}
        shares = _score_shares(self.signals, self.context)
        return {**shares, "breadth": -self.diversity_penalty} if self.diversity_penalty else shares

    @lazy_property
    def entry(self) -> Entry:
        """The entry of the passage; if it has none, an entry built from its text."""
        return self.memory or _entry_from_chunk(self.chunk)

    @lazy_property
    def words(self) -> frozenset[str]:
        """The distinct content words; computed on demand."""
        return frozenset(_distinct_words(self.chunk.content).words)

    @lazy_property
    def word_bits(self) -> WordBits:
        """The distinct content words as a bit set."""
        return _distinct_words(self.chunk.content)

    @lazy_property
    def is_question(self) -> bool:
        """Whether the text ends with a question mark."""
        return self.chunk.content.rstrip().endswith(("?", "？"))

    @lazy_property
    def is_from_outside(self) -> bool:
        """Whether it is an entry whose text comes from a tool or another external source."""
        markup = self.chunk.markup
        return (_EXTERNAL_MARKER in markup or _IMPORT_MARKER in markup) and self.entry.is_external

    @property
    def is_current(self) -> bool:
        """Whether it may be shown: it is not superseded, or its successor is visible."""
        if self.successor is not None or _STATE_MARKER not in self.chunk.markup:
            return True
        return self.memory is None or self.memory.state != "superseded"

    def had_begun(self, day: date) -> bool:
        """Return whether it held by that day; what is no memory holds from when it was said."""
        names_day = _STARTS_MARKER in self.chunk.markup and self.memory is not None and self.memory.valid_from
        return (names_day or (self.chunk.time or self.time).date()) <= day


def iter_best_first(
    passages: Iterable[Passage], context: QueryContext, least: float = -math.inf
) -> Iterator[ScoredPassage]:
    """Yield the passages with a score above `least` in order; each is scored only when none could precede it."""
    unread, of_memory = _max_text_scores(context)
    waiting: list[tuple[float, int, float | None, Passage]] = []
    for at, passage in enumerate(passages):
        if passage.score is not None and not context.rerank_scores:
            waiting.append((passage.score, at, None, passage))
            continue
        base = _base_score(passage, context)
        waiting.append((base + (of_memory if passage.match.chunk.markup else unread), at, base, passage))
    waiting.sort(key=itemgetter(0), reverse=True)
    ready: list[tuple[float, int, ScoredPassage]] = []
    for most, at, unfinished, passage in waiting:
        while ready and -ready[0][0] > most:
            yield from _pop_best(ready)
        if most <= least:
            break
        if unfinished is None:
            row = ScoredPassage(passage, most, context, passage.match.chunk.time or NO_DATE)
        else:
            row = _complete_score(passage, unfinished, context)
        if row.score > least:
            heapq.heappush(ready, (-row.score, at, row))
    while ready:
        yield from _pop_best(ready)


def _pop_best(ready: list[tuple[float, int, ScoredPassage]]) -> list[ScoredPassage]:
    """Remove and return the row with the highest score, and those with the same score in their order."""
    least, _, row = heapq.heappop(ready)
    if not (ready and ready[0][0] == least):
        return [row]
    rows = [row]
    while ready and ready[0][0] == least:
        rows.append(heapq.heappop(ready)[2])
    return sorted(rows, key=sort_key)


def _max_text_scores(context: QueryContext) -> tuple[float, float]:
    """Return the maximum that the text of a passage can add to its score, and the same for an entry."""
    config = context.config
    unread = config.recency + config.answer_type * bool(context.question.expected) + _ROUNDING
    return unread, unread + config.memory + config.speaker * bool(context.speaker) + config.dates * bool(
        context.date_ranges
    )


def score_passage(passage: Passage, context: QueryContext) -> ScoredPassage:
    """Return a passage with its score, which is 0 for a blank query."""
    return _complete_score(passage, None if context.is_blank else _base_score(passage, context), context)


def _complete_score(passage: Passage, text_score: float | None, context: QueryContext) -> ScoredPassage:
    """Return a passage with its full score; `text_score` is its base score, None for a score of 0."""
    chunk = passage.match.chunk
    memory = _entry_for_scoring(chunk, context)
    score = 0.0 if text_score is None else text_score + _text_score(passage, memory, context)
    return ScoredPassage(passage, score, context, _memory_time(memory, chunk) or NO_DATE)


def is_reply(passage: Passage, context: QueryContext) -> bool:
    """Return whether a passage follows a question of another speaker that matches the query."""
    return reply_score(passage, context) > 0


def sort_key(row: ScoredPassage) -> tuple[float, float, int, bool, str, int, int]:
    """Return the sort key of a passage; smaller comes first."""
    chunk = row.chunk
    timed = row.time != NO_DATE
    newest_first = -row.time.timestamp() if timed else 0.0
    # of two memories with the same time in one file, the one on the later line was saved later
    line = -chunk.line_number if timed and chunk.markup else chunk.line_number
    return (
        -row.score,
        newest_first,
        row.passage.source_rank,
        chunk.document_type == "long",
        chunk.path,
        line,
        chunk.part,
    )


def _compute_signals(passage: Passage, memory: Entry | None, context: QueryContext) -> dict[str, float]:
    match, question = passage.match, context.question
    chunk, found, score = match.chunk, match.signals, match.score
    is_entry, absent, speaker = bool(chunk.markup), context.absent_words, context.speaker
    is_fielded = is_entry and _has_ranking_fields(chunk.markup)
    near, coverage = (passage_similarity(passage, context.config), 0.0) if is_entry else _session(passage, context)
    signals = {"bm25": found.get("bm25", score), "context": found.get("context", score)}
    signals |= {name: found[name] for name in ("dense", "dense_context") if name in found}
    return signals | {
        "session": near,
        "session_coverage": coverage,
        "speaker": float(bool(speaker) and _is_about(chunk, speaker)),
        "reply": reply_score(passage, context) if chunk.message else 0.0,
        "dates": 0.0
        if not context.date_ranges or _shares_only_time(passage, context)
        else _memory_date_score(memory, chunk, context),
        "answer_type": float(bool(question.expected) and holds_expected(match.content, question.expected)),
        "form": USUAL_FORM if is_entry else _form_score(passage),
        "memory": float(is_entry),
        "recency": _recency_score(memory if is_fielded else None, chunk, context),
        "rerank": context.rerank_scores.get(passage_location(passage), 0.0) if context.rerank_scores else 0.0,
        "coverage": found.get("coverage", score),
        "reach": found.get("reach", score),
        "missing_words": found.get("missing_words", 0.0) * len(absent) / max(len(match.missing_words), 1),
        "other_speaker": float(bool(speaker) and _is_by_another(chunk, speaker)),
        "curated": float(chunk.document_type == "curated"),
        "confidence": memory.confidence if memory else 1.0,
    }


def _score_shares(signals: Mapping[str, float], context: QueryContext) -> dict[str, float]:
    """Return the share of each signal in the score, without those that are 0."""
    config = context.config
    scale = _lexical_scale(signals, config)
    added = {
        "bm25": config.passage * scale * signals["bm25"],
        "context": config.context * scale * signals["context"],
        "dense": config.dense * scale * signals.get("dense", 0.0),
        "dense_context": config.dense_context * scale * signals.get("dense_context", 0.0),
        "session": config.session * (1 - context.breadth * (1 - signals["memory"])) * signals["session"],
        "session_coverage": config.session_coverage * signals["session_coverage"],
        "speaker": config.speaker * signals["speaker"],
        "reply": config.reply * signals["reply"],
        "dates": config.dates * signals["dates"],
        "answer_type": config.answer_type * signals["answer_type"],
        "memory": config.memory * signals["memory"] * signals["confidence"],
        "recency": config.recency * signals["recency"],
        "rerank": config.rerank * signals["rerank"],
    }
    similarity = added["bm25"] + added["context"] + added["dense"] + added["dense_context"]
    added["form"] = _form_share(signals["form"], similarity, config)
    return {name: share for name, share in added.items() if share}


def _lexical_scale(signals: Mapping[str, float], config: RecallConfig) -> float:
    """Return the factor that scales nearness by words and meaning to that of words alone."""
    words = config.passage + config.context
    meaning = (config.dense if "dense" in signals else 0.0) + (
        config.dense_context if "dense_context" in signals else 0.0
    )
    return words / (words + meaning) if meaning else 1.0


def _base_score(passage: Passage, context: QueryContext) -> float:
    """Return the part of a passage's score that needs no text; for an entry, everything outside its text."""
    config, chunk = context.config, passage.match.chunk
    similarity = passage_similarity(passage, config)
    base = similarity * (config.passage + config.context)
    if context.rerank_scores:
        base += config.rerank * context.rerank_scores.get(passage_location(passage), 0.0)
    if chunk.markup:
        return base + config.session * similarity
    base += _form_share(_form_score(passage), similarity * (config.passage + config.context), config)
    near, coverage = _session(passage, context)
    base += config.session * (1 - context.breadth) * near + config.session_coverage * coverage
    base += config.reply * reply_score(passage, context)
    if context.speaker and _is_about(chunk, context.speaker):
        base += config.speaker
    if not context.date_ranges or _shares_only_time(passage, context):
        return base
    return base + config.dates * _date_score(chunk.time, context)


def _shares_only_time(passage: Passage, context: QueryContext) -> bool:
    """Return whether a passage shares nothing with the question but when it was said."""
    if not context.date_words or not context.date_words.issuperset(passage.match.matched_words):
        return False
    content = passage.match.content.casefold()
    return not all(word in content for word in context.date_words)


def _form_score(passage: Passage) -> float:
    """Return how much a message says by its form, in 0..1: the longer the more, less if it only asks or calls a tool.

    An entry has the usual value of 0.5, whatever its form.
    """
    chunk, content = passage.match.chunk, passage.match.content
    if chunk.markup:
        return USUAL_FORM
    length = min(math.log1p(len(content) / WORD_CHARS) / LONG_FORM, 1.0)
    loss = CALL_LOSS * is_tool_call(chunk.speaker, content) + QUESTION_LOSS * only_asks(content)
    return max(length - loss, 0.0)


def _form_share(form: float, similarity: float, config: RecallConfig) -> float:
    """Return the share of the form; a loss takes at most half of the share that nearness has."""
    return max(config.form * (form - USUAL_FORM), -similarity / 2)


def _text_score(passage: Passage, memory: Entry | None, context: QueryContext) -> float:
    """Return the part of a passage's score that depends on its text and its entry."""
    config, chunk = context.config, passage.match.chunk
    more = config.recency * _recency_score(memory, chunk, context)
    if context.question.expected and holds_expected(chunk.content, context.question.expected):
        more += config.answer_type
    if not chunk.markup:
        return more
    if context.speaker and _is_about(chunk, context.speaker):
        more += config.speaker
    if context.date_ranges and not _shares_only_time(passage, context):
        more += config.dates * _memory_date_score(memory, chunk, context)
    return more + config.memory * (memory.confidence if memory else 1.0)


@lru_cache(maxsize=_WORD_CACHE_SIZE)
def _distinct_words(content: str) -> WordBits:
    return WordBits.of({*content_words(content)})


@lru_cache(maxsize=_ENTRY_CACHE_SIZE)
def _parse_entry(markup: str, path: str) -> Entry | None:
    located = parse_entries(markup, path)
    return located[0].entry if located else None


def _stored_entry(chunk: Chunk) -> Entry | None:
    """Return the entry in a chunk, None if it has none."""
    found = _parse_entry(chunk.markup, chunk.path) if chunk.markup else None
    if found is None:
        return None
    # a piece of a long entry has its own content, not that of the bullet that points to it
    content = chunk.content if chunk.document_type == "long" else found.content
    if (found.id, found.content) == (chunk.entry_id, content):
        return found
    return replace(found, id=chunk.entry_id, content=content)


def _entry_for_scoring(chunk: Chunk, context: QueryContext) -> Entry | None:
    """Return the entry in a chunk if its markup affects the score more than the chunk's own fields."""
    if not chunk.markup:
        return None
    more = context.date_ranges or _has_ranking_fields(chunk.markup)
    return _stored_entry(chunk) if more else None


@lru_cache(maxsize=_ENTRY_CACHE_SIZE)
def _has_ranking_fields(markup: str) -> bool:
    return any(map(markup.__contains__, RANKING_FIELD_MARKERS))


def _entry_from_chunk(chunk: Chunk) -> Entry:
    """Return an entry built from a passage that has none."""
    by: Author = "agent" if chunk.speaker in {"assistant", "tool"} else "user"
    return Entry(
        content=chunk.content,
        kind=chunk.kind or "passage",
        tags=chunk.tags,
        id=chunk.entry_id,
        time=chunk.time,
        by=by if chunk.message else "hand",
        source=Source(session=chunk.session or None, messages=(chunk.message,) if chunk.message else ()),
    )


def _memory_time(memory: Entry | None, chunk: Chunk) -> datetime | None:
    return (memory.since or memory.time) if memory else chunk.time


def _is_about(chunk: Chunk, name: str) -> bool:
    if chunk.speaker:
        return chunk.speaker.casefold() == name
    # a memory names its subject, or it is about the user
    return name == "user" or name in chunk.content.casefold()


def _is_by_another(chunk: Chunk, name: str) -> bool:
    """Return whether another person is the speaker and does not mention the named one."""
    speaker = chunk.speaker.casefold()
    return speaker not in {"", "assistant", "tool", "user", name} and name not in chunk.content.casefold()


def _session(passage: Passage, context: QueryContext) -> tuple[float, float]:
    """Return how near the session of a passage is, and the share of the question's words in it."""
    label, key = session_key(passage)
    return context.sources[label].sessions[key]


def _date_score(time: datetime | None, context: QueryContext) -> float:
    return date_closeness(time.date(), context.date_ranges) if context.date_ranges and time else 0.0


def _memory_date_score(memory: Entry | None, chunk: Chunk, context: QueryContext) -> float:
    """Return how near a passage is in time: 1 if it was said then, nearly as much for a memory that held then."""
    said = _date_score(_memory_time(memory, chunk), context)
    if memory is None or context.as_of is None:
        return said
    return max(said, _HELD_SCORE) if held_on(memory, context.as_of) else said * _LATER_SHARE


def held_on(memory: Entry, day: date) -> bool:
    """Return whether a memory was known and held on a day; False if its time is unknown."""
    begun, ended = memory.valid_from, memory.valid_until
    return begun is not None and begun <= day and (ended is None or ended > day)


def _recency_score(memory: Entry | None, chunk: Chunk, context: QueryContext) -> float:
    """Return 1 for a memory of today or a pinned one, 0.5 after its kind's half-life, 0 without a date.

    The age is measured from the last confirmation, if there is one; each confirmation lets it age slower.
    """
    if memory is not None and memory.pinned:
        return 1.0
    if chunk.document_type == "profile":
        # the times of a profile fact say little about when it was said: the ledger has that
        return 0.0
    time, confirmed = _memory_time(memory, chunk), memory.confirmed if memory else None
    latest = max(time, confirmed) if time and confirmed else time or confirmed
    if latest is None:
        return 0.0
    config = context.config
    days = max((context.now - latest).total_seconds(), 0.0) / 86_400
    kind, confirmations = (memory.kind, memory.confirmations) if memory else (chunk.kind, 0)
    decay = config.decay
    half_life = decay.half_lives.get(kind, decay.other) * (1 + min(confirmations, decay.confirmations))
    return float(0.5 ** (days / half_life))
