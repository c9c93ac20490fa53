"""The signals that passages are scored by, and the passages in the order of their scores. Pure.

Each signal is in 0..1; multiplied by its weight it is a share of the score. A passage first gets its maximum score, and
its text is read only when no scored passage is above that.

Invariant: the order is the same as if all passages were scored.
"""

import heapq
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import cached_property, lru_cache

from ricordo.language import content_words
from ricordo.lazy import dataclass, lazy_compile
from ricordo.search.config import RecallConfig
from ricordo.search.contract import RANKING_FIELD_MARKERS, Chunk, Passage
from ricordo.search.query_context import (
    QueryContext,
    date_closeness,
    holds_expected,
    passage_location,
    passage_similarity,
    reply_score,
    session_key,
)
from ricordo.workspace.entry import EXTERNAL_TRUST_FIELD, Author, Entry, Source
from ricordo.workspace.entry_codec import parse_entries

__all__ = [
    "NO_DATE",
    "ScoredPassage",
    "held_on",
    "is_reply",
    "is_tool_call",
    "iter_best_first",
    "max_entry_score",
    "score_passage",
    "sort_key",
]


NO_DATE = datetime.min.replace(tzinfo=UTC)
"""The time of a passage without a time."""
_ROUNDING = 1e-9
_STATE_MARKER = "[state:: "
_EXTERNAL_MARKERS = "[{}:: {}]".format(*EXTERNAL_TRUST_FIELD), "[by:: import]"
_TOOL_CALL = lazy_compile(r'^[\w.:-]+ \{"', re.MULTILINE)
_WORD_CHARS, _LONG = 6, 5.0
_QUESTION_LOSS, _CALL_LOSS = 0.3, 0.5
_HELD_SCORE, _LATER_SHARE = 0.5, 0.5
_USUAL_FORM = 0.5
_SIMILARITY_SHARES = ("bm25", "context", "dense", "dense_context")
_ENTRY_CACHE_SIZE, _WORD_CACHE_SIZE = 4_096, 16_384


@dataclass(frozen=True, kw_only=True)
class ScoredPassage:
    """A passage with its score and the reasons for it.

    `score` may be above 1 here, so that the best passages stay distinct. `time` is when it was said or became true,
    else when it was saved. `successor` is the passage that superseded its entry. `diversity_penalty` is the penalty for
    other passages of its session. `contradicts` are the ids of memories that conflict with it.
    """

    passage: Passage
    score: float
    context: QueryContext
    time: datetime
    diversity_penalty: float = 0.0
    outdated: bool = False
    successor: Passage | None = None
    contradicts: tuple[str, ...] = ()

    @cached_property
    def memory(self) -> Entry | None:
        """The entry in the passage, None for other passages; parsed on demand."""
        found = _stored_entry(self.passage.match.chunk)
        return replace(found, state="superseded") if found and self.successor else found

    @cached_property
    def signals(self) -> Mapping[str, float]:
        """The signals of the passage, each in 0..1; computed on demand."""
        return _compute_signals(self.passage, self.memory, self.context)

    @cached_property
    def shares(self) -> Mapping[str, float]:
        """The share of each signal in the score; empty for a blank query."""
        if self.context.is_blank:
            return {}
        shares = _score_shares(self.signals, self.context)
        return {**shares, "breadth": -self.diversity_penalty} if self.diversity_penalty else shares

    @cached_property
    def entry(self) -> Entry:
        """The entry of the passage; if it has none, an entry built from its text."""
        return self.memory or _entry_from_chunk(self.passage.match.chunk)

    @cached_property
    def words(self) -> frozenset[str]:
        """The distinct content words; computed on demand."""
        return frozenset(_distinct_words(self.passage.match.content))

    @cached_property
    def is_question(self) -> bool:
        """Whether the text ends with a question mark."""
        return self.passage.match.content.rstrip().endswith(("?", "？"))

    @cached_property
    def is_from_outside(self) -> bool:
        """Whether it is an entry whose text comes from a tool or another external source."""
        markup = self.passage.match.chunk.markup
        return any(marker in markup for marker in _EXTERNAL_MARKERS) and self.entry.is_external

    @property
    def is_current(self) -> bool:
        """Whether it may be shown: it is not superseded, or its successor is visible."""
        if self.successor is not None or _STATE_MARKER not in self.passage.match.chunk.markup:
            return True
        return self.memory is None or self.memory.state != "superseded"


def iter_best_first(passages: Iterable[Passage], context: QueryContext) -> Iterator[ScoredPassage]:
    """Yield the passages in order; each is scored only when no unscored one could precede it."""
    rows = [(_base_score(passage, context), at, passage) for at, passage in enumerate(passages)]
    unread, of_memory = _max_text_scores(context)
    waiting = sorted(
        (
            (known + (of_memory if passage.match.chunk.markup else unread), known, at, passage)
            for known, at, passage in rows
        ),
        key=lambda row: -row[0],
    )
    ready: list[tuple[tuple[float, float, int, bool, str, int, int], int, ScoredPassage]] = []
    for most, known, at, passage in waiting:
        while ready and ready[0][2].score > most:
            yield heapq.heappop(ready)[2]
        row = _complete_score(passage, known, context)
        heapq.heappush(ready, (sort_key(row), at, row))
    while ready:
        yield heapq.heappop(ready)[2]


def max_entry_score(text_score: float, context: QueryContext) -> float:
    """Return the maximum score of an entry with the nearness `text_score`, which includes its recency bonus."""
    config = context.config
    return (
        text_score * (config.passage + config.context + config.session) + _max_text_scores(context)[1] - config.recency
    )


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
    memory = _entry_for_scoring(passage.match.chunk, context)
    score = 0.0 if text_score is None else text_score + _text_score(passage, memory, context)
    time = _memory_time(memory, passage.match.chunk) or NO_DATE
    return ScoredPassage(passage=passage, score=score, context=context, time=time)


def is_reply(passage: Passage, context: QueryContext) -> bool:
    """Return whether a passage follows a question of another speaker that matches the query."""
    return reply_score(passage, context) > 0


def is_tool_call(speaker: str, content: str) -> bool:
    """Return whether a message of an assistant contains the call of a tool."""
    return speaker == "assistant" and '{"' in content and _TOOL_CALL.search(content) is not None


def sort_key(row: ScoredPassage) -> tuple[float, float, int, bool, str, int, int]:
    """Return the sort key of a passage; smaller comes first."""
    chunk = row.passage.match.chunk
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
    match = passage.match
    chunk, match_signals = match.chunk, match.signals
    return {
        "bm25": match_signals.get("bm25", match.score),
        "context": match_signals.get("context", match.score),
        **{name: match_signals[name] for name in ("dense", "dense_context") if name in match_signals},
        "session": _session_score(passage, context),
        "session_coverage": 0.0 if chunk.markup else context.session_coverage[session_key(passage)],
        "speaker": float(bool(context.speaker) and _is_about(chunk, context.speaker)),
        "reply": reply_score(passage, context),
        "dates": _memory_date_score(memory, chunk, context),
        "answer_type": float(holds_expected(match.content, context.question.expected)),
        "form": _form_score(passage),
        "memory": float(bool(chunk.markup)),
        "recency": _recency_score(memory, chunk, context),
        "rerank": context.rerank_scores.get(passage_location(passage), 0.0),
        "coverage": match_signals.get("coverage", match.score),
        "reach": match_signals.get("reach", match.score),
        "missing_words": match_signals.get("missing_words", 0.0)
        * len(context.absent_words)
        / max(len(match.missing_words), 1),
        "other_speaker": float(bool(context.speaker) and _is_by_another(chunk, context.speaker)),
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
    added["form"] = _form_share(signals["form"], sum(added[name] for name in _SIMILARITY_SHARES), config)
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
    company = session_key(passage)
    base += _form_share(_form_score(passage), similarity * (config.passage + config.context), config)
    base += (
        config.session * (1 - context.breadth) * context.session_similarity[company]
        + config.session_coverage * context.session_coverage[company]
    )
    if context.questions:
        base += config.reply * reply_score(passage, context)
    if context.speaker and _is_about(chunk, context.speaker):
        base += config.speaker
    return base + config.dates * _date_score(chunk.time, context) if context.date_ranges else base


def _form_score(passage: Passage) -> float:
    """Return how much a message says by its form, in 0..1: the longer the more, less if it only asks or calls a tool.

    An entry has the usual value of 0.5, whatever its form.
    """
    chunk, content = passage.match.chunk, passage.match.content
    if chunk.markup:
        return _USUAL_FORM
    length = min(math.log1p(len(content) / _WORD_CHARS) / _LONG, 1.0)
    loss = _CALL_LOSS * is_tool_call(chunk.speaker, content) + _QUESTION_LOSS * _only_asks(content)
    return max(length - loss, 0.0)


def _form_share(form: float, similarity: float, config: RecallConfig) -> float:
    """Return the share of the form; a loss takes at most half of the share that nearness has."""
    return max(config.form * (form - _USUAL_FORM), -similarity / 2)


def _only_asks(content: str) -> bool:
    """Return whether a text is one question without a sentence before it."""
    return content.endswith(("?", "？")) and not any(end in content for end in (". ", "! ", "。", "！"))


def _text_score(passage: Passage, memory: Entry | None, context: QueryContext) -> float:
    """Return the part of a passage's score that depends on its text and its entry."""
    config, chunk = context.config, passage.match.chunk
    more = config.recency * _recency_score(memory, chunk, context)
    if holds_expected(passage.match.content, context.question.expected):
        more += config.answer_type
    if not chunk.markup:
        return more
    if context.speaker and _is_about(chunk, context.speaker):
        more += config.speaker
    confidence = memory.confidence if memory else 1.0
    return more + config.memory * confidence + config.dates * _memory_date_score(memory, chunk, context)


@lru_cache(maxsize=_WORD_CACHE_SIZE)
def _distinct_words(content: str) -> tuple[str, ...]:
    """Return the distinct content words; a tuple takes a quarter of the memory of a set."""
    return tuple({*content_words(content)})


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
    more = chunk.markup and (context.date_ranges or any(map(chunk.markup.__contains__, RANKING_FIELD_MARKERS)))
    return _stored_entry(chunk) if more else None


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


def _session_score(passage: Passage, context: QueryContext) -> float:
    """Return the nearness of the session; for an entry its own nearness, whatever else is in its file."""
    return (
        passage_similarity(passage, context.config)
        if passage.match.chunk.markup
        else context.session_similarity[session_key(passage)]
    )


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
