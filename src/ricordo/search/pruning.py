"""Which candidates of a search are worth reading, decided from arrays before any text is read. Pure.

Each candidate gets the least and the most that its score can be: its words and meaning, its session, form and reply are
known, while the fields of an entry, names in a text and what a question asks for depend on the text.

Invariants: the score of a candidate that is left out is at most `Selection.unseen`. A score that needs no text is the
same to the last bit as that of `signals.score_passage`: the terms are added in its order, and powers and logarithms are
those of Python, which those of numpy may differ from.
"""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from math import log1p

import numpy as np

from ricordo.lazy import dataclass
from ricordo.search.config import RecallConfig
from ricordo.search.contract import NO_TIME, Array, CandidateColumns, Selection, SourceContext
from ricordo.search.documents import (
    ENDS_WITH_QUESTION,
    HAS_RANKING_FIELDS,
    IS_CALL,
    IS_ENTRY,
    IS_MESSAGE,
    IS_QUESTION,
    SUPERSEDES,
)
from ricordo.search.query_context import (
    FOLLOW_UP_DAYS,
    SESSION_PASSAGES,
    DateRange,
    Question,
    build_query_context,
)
from ricordo.search.signals import CALL_LOSS, LONG_FORM, QUESTION_LOSS, USUAL_FORM, WORD_CHARS

__all__ = ["CandidateSelector"]


_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_SECONDS, _DAY_MILLISECONDS = 86_400, 86_400_000
_EPOCH = date(1970, 1, 1).toordinal()
_ROUNDING = 1e-7
_ASKING = IS_MESSAGE | ENDS_WITH_QUESTION
_NONE = 0.0


@dataclass(frozen=True, kw_only=True)
class CandidateSelector:
    """Chooses the candidates of one source that may be among the `min_count` best for a question.

    If it is not `alone`, candidates of other sources may tell whom the question is about.
    """

    question: Question
    now: datetime
    config: RecallConfig
    min_count: int
    alone: bool

    def __call__(self, found: CandidateColumns) -> Selection:
        """Return the places of the candidates to read, in order, and the context of all."""
        scores = _CandidateScores(found, self.question, self.now, self.config)
        least, unknown, near = scores.least(), scores.unknown(alone=self.alone), scores.is_near()
        most = least + unknown
        keep = found.is_fixed | (found.shape & SUPERSEDES > 0) | _is_repeated(found.entry, scores.is_entry)
        if self.min_count < len(found):
            sure = np.where(near, least, -1.0)
            sure.partition(-self.min_count)
            keep |= near & (most >= sure[-self.min_count] - _ROUNDING)
        else:
            keep |= near
        others = most[near & ~keep]
        unseen = float(others.max()) + _ROUNDING if len(others) else None
        (places,) = keep.nonzero()
        exact = np.where((unknown == 0) & ~found.is_fixed, least, np.nan)[places]
        return Selection(
            places=places, scores=exact, context=scores.source, best=float(most.max(initial=0.0)) + _ROUNDING,
            unseen=unseen,
        )  # fmt: skip


class _CandidateScores:
    """What is known of the scores of candidates without their texts."""

    def __init__(self, found: CandidateColumns, question: Question, now: datetime, config: RecallConfig) -> None:
        self.found, self._now, self._config = found, now, config
        self.is_entry = found.shape & IS_ENTRY > 0
        self._is_all_entries = bool(self.is_entry.all())
        self._similarity = _similarity(found, config)
        self._sessions = None if self._is_all_entries else _Sessions(found, self._similarity, self.is_entry)
        self.source = SourceContext() if self._sessions is None else self._sessions.context(question)
        self.context = build_query_context(question, (), now=now, config=config, sources={"": self.source})
        self._reply = _reply_scores(found, self.source) if config.reply and self.source.questions else _NONE
        self._has_fields = found.shape & HAS_RANKING_FIELDS > 0

    def is_near(self) -> Array:
        """Return a mask of the candidates that share words or meaning with the question, or reply to one that does."""
        signals = self.found.signals
        near: Array = (signals["bm25"] > 0) | (self._reply > 0)
        for name in ("dense", "dense_context"):
            near = near | (signals[name] > 0) if name in signals else near
        return near

    def least(self) -> Array:
        """Return the least that each score can be."""
        config, similarity = self._config, self._similarity
        base = similarity * (config.passage + config.context)
        recency = config.recency * self._newness() * ~self._has_fields
        about_user = config.speaker * (self.context.speaker == "user")
        of_entry: Array = (base + config.session * similarity) + (
            recency + about_user + config.memory * ~self._has_fields
        )
        if self._sessions is None:
            return of_entry
        return np.where(self.is_entry, of_entry, self._message_scores(base, self._sessions) + recency)

    def unknown(self, *, alone: bool) -> Array:
        """Return how much more each score can be."""
        config, context = self._config, self.context
        more: Array = (config.recency + config.memory * self.is_entry) * self._has_fields
        more += config.answer_type * bool(context.question.expected)
        if context.date_ranges:
            more += config.dates * self.is_entry
        if not alone:
            more += config.speaker
        elif context.speaker not in {"", "user"}:
            more += config.speaker * (self.found.speaker == self.found.code("speaker", ""))
        return more

    def _message_scores(self, base: Array, sessions: "_Sessions") -> Array:
        """Return the scores of what is no entry, without its recency."""
        found, config, context = self.found, self._config, self.context
        form = np.minimum(_map(log1p, found.length / WORD_CHARS) / LONG_FORM, 1.0)
        form -= CALL_LOSS * (found.shape & IS_CALL > 0) + QUESTION_LOSS * (found.shape & IS_QUESTION > 0)
        scores: Array = base + np.maximum(config.form * (np.maximum(form, 0.0) - USUAL_FORM), -base / 2)
        coverage = config.session_coverage * sessions.coverage(context.question)
        scores += config.session * (1 - context.breadth) * sessions.similarity + coverage
        scores += config.reply * self._reply
        if context.speaker:
            named = [code for code in set(found.speaker.tolist()) if self._is_named(code)]
            scores += config.speaker * np.isin(found.speaker, named)
        if context.date_ranges:
            scores += config.dates * _date_closeness(found.time, context.date_ranges)
        return scores

    def _is_named(self, code: int) -> bool:
        """Return whether the question is about this speaker; what nobody said is about the user."""
        return (self.found.name("speaker", code).casefold() or "user") == self.context.speaker

    def _newness(self) -> Array:
        """Return 1 for new candidates, 0.5 after the half-life of their kind, 0 without a time."""
        found, decay = self.found, self._config.decay
        names = (found.name("kind", code) for code in range(int(found.kind.max(initial=-1)) + 1))
        half_lives = np.array([decay.half_lives.get(name, decay.other) for name in names])
        known = found.time != NO_TIME
        now = (self._now - _BEGINNING) // timedelta(microseconds=1)
        days = np.maximum(now - np.where(known, found.time, 0) * 1_000, 0) / 1_000_000 / _DAY_SECONDS
        newness: Array = np.where(known, _map(_halved, days / half_lives[found.kind]), 0.0)
        return newness


class _Sessions:
    """The sessions of candidates, or else their files: how near each is, and what it has of the question's words."""

    def __init__(self, found: CandidateColumns, similarity: Array, is_entry: Array) -> None:
        self._found = found
        # an entry that is in curated memory too is there once
        curated = is_entry & found.is_curated
        counted = np.flatnonzero(~(is_entry & ~curated & np.isin(found.entry, found.entry[curated])))
        no_session = found.code("session", "")
        self._keys = np.where(found.session == no_session, -1 - found.document.astype(np.int64), found.session)
        order = counted[np.lexsort((similarity[counted], self._keys[counted]))]
        starts = np.flatnonzero(np.diff(self._keys[order], prepend=self._keys[order[:1]] - 1))
        ends = np.append(starts[1:], len(order))
        near = np.append(similarity[order], 0.0)
        total = np.zeros(len(starts))
        for nth in range(SESSION_PASSAGES, 0, -1):
            total += np.where(ends - nth >= starts, near[ends - nth], 0.0)
        self._order, self._starts, self._near = order, starts, total / SESSION_PASSAGES
        self._codes = self._keys[order[starts]]
        self._group = np.minimum(np.searchsorted(self._codes, self._keys), len(starts) - 1)
        self.similarity: Array = self._near[self._group]

    def coverage(self, question: Question) -> Array:
        """Return the share of the question's words in the session of each candidate."""
        return self._coverage(question)[self._group]

    def _coverage(self, question: Question) -> Array:
        held = np.logical_or.reduceat(self._found.find_words()[:, self._order], self._starts, axis=1)
        covered: Array = np.minimum(held.sum(axis=0) / max(len(question.words), 1), 1.0)
        return covered

    def context(self, question: Question) -> SourceContext:
        """Return the context of the source."""
        found = self._found
        keys = (("session", code) if code >= 0 else ("document", -1 - code) for code in self._codes.tolist())
        names = [found.name(*key) for key in keys]
        near = zip(self._near.tolist(), self._coverage(question).tolist(), strict=True)
        questions: dict[tuple[str, int], tuple[float, str]] = {}
        asking = (found.shape & _ASKING == _ASKING).nonzero()[0]
        columns = (found.document, found.line, found.signals["bm25"], found.speaker)
        for document, line, bm25, speaker in zip(*(column[asking].tolist() for column in columns), strict=True):
            at, asked = (found.name("document", document), line), (bm25, found.name("speaker", speaker))
            questions[at] = max(asked, questions.get(at, asked))
        speakers = frozenset(found.name("speaker", code) for code in set(found.speaker.tolist()))
        return SourceContext(speakers=speakers, sessions=dict(zip(names, near, strict=True)), questions=questions)


def _map(function: Callable[[float], float], values: Array) -> Array:
    """Return the results of a function of Python for each value."""
    return np.array([*map(function, values.tolist())])


def _halved(times: float) -> float:
    return float(0.5**times)


def _similarity(found: CandidateColumns, config: RecallConfig) -> Array:
    """Return how near each candidate is by its words and its meaning, in 0..1."""
    signals = found.signals
    similarity: Array = config.passage * signals["bm25"] + config.context * signals["context"]
    weight = config.passage + config.context
    if found.has_vector is None:
        return similarity / weight if weight else similarity
    weights = np.full(len(found), weight)
    for name, share in (("dense", config.dense), ("dense_context", config.dense_context)):
        similarity += share * signals[name] * found.has_vector
        weights += share * found.has_vector
    divided: Array = np.divide(similarity, weights, out=np.zeros(len(found)), where=weights > 0)
    return divided


def _reply_scores(found: CandidateColumns, source: SourceContext) -> Array:
    """Return the nearness of the question on the line above each message, 0 if there is none of another speaker."""
    reply = np.zeros(len(found))
    for at in np.flatnonzero(found.shape & IS_MESSAGE > 0).tolist():
        line = found.name("document", int(found.document[at])), int(found.line[at]) - 1
        if line in source.questions:
            near, speaker = source.questions[line]
            reply[at] = near if speaker != found.name("speaker", int(found.speaker[at])) else 0.0
    return reply


def _date_closeness(times: Array, ranges: tuple[DateRange, ...]) -> Array:
    """Return the closeness of times to the nearest of these ranges, 0 without a time."""
    days = times // _DAY_MILLISECONDS + _EPOCH
    closeness = np.zeros(len(times))
    for each in ranges:
        first, last = each.first.toordinal(), each.last.toordinal()
        late = (days - last) / FOLLOW_UP_DAYS if each.first != date.min else 1.0
        after = np.maximum(1.0 - late, 0.0)
        closeness = np.maximum(closeness, np.where(days <= last, (days >= first) * 1.0, after))
    return np.where(times == NO_TIME, 0.0, closeness)


def _is_repeated(ids: Array, is_entry: Array) -> Array:
    """Return a mask of the entries whose id occurs more than once, or is missing."""
    order = ids.argsort(kind="stable")
    ordered = ids[order]
    same = ordered[1:] == ordered[:-1]
    again: Array = ids == 0
    again[order[1:][same]] = again[order[:-1][same]] = True
    return again & is_entry
