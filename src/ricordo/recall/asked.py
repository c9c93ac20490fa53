"""What the passages of a search are measured against: the question, and what all of them together tell of it. Pure.

Sessions are near when their best passages are, a line of a transcript may be the reply to the question above it, and
the question may name the one who speaks.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from ricordo.recall.config import RecallConfig
from ricordo.recall.dates import DateRange, find_date_ranges
from ricordo.recall.hits import Passage
from ricordo.recall.question import Question

__all__ = [
    "QueryContext",
    "PassageLocation",
    "session_key",
    "passage_similarity",
    "passage_location",
    "build_query_context",
    "reply_score",
]

PassageLocation: TypeAlias = tuple[str, str, int, int]
"""Label of the source, path, line and part: where a passage stands."""

_SESSION_PASSAGES = 3
_ROLES = frozenset({"user", "assistant", "tool"})
_QUESTION_END_CHARS = 200
_QUESTION_MARK = re.compile("[？؟]")
_CONJUNCTION = re.compile(r"\s*(?:,|&|/|and|or|und|oder|et|ou|y|o|e|и|или|और|या|和|与|與|と)\s*")
"""What stands between two who are asked about as one."""


@dataclass(frozen=True, kw_only=True)
class QueryContext:
    """What every passage is measured against.

    `speaker` is the one speaker the question is about, or empty; `absent_words` are its words that no source holds; `date_ranges` the
    times it names; `breadth` how likely its answer is spread over sessions. `session_similarity` and `session_coverage` say how near each
    session is and how much of the question it holds, `questions` how near the lines are that end in a question, with
    their speaker; `rerank_scores` is what a reranker says of a passage.
    """

    question: Question
    now: datetime
    config: RecallConfig
    speaker: str = ""
    absent_words: frozenset[str] = frozenset()
    date_ranges: tuple[DateRange, ...] = ()
    breadth: float = 0.0
    session_similarity: Mapping[tuple[str, str], float] = field(default_factory=dict)
    session_coverage: Mapping[tuple[str, str], float] = field(default_factory=dict)
    questions: Mapping[tuple[str, str, int], tuple[float, str]] = field(default_factory=dict)
    rerank_scores: Mapping[PassageLocation, float] = field(default_factory=dict)

    @property
    def is_blank(self) -> bool:
        """Tell whether nothing is asked but what is newest."""
        return not self.question.text.strip()


def build_query_context(
    question: Question,
    passages: Sequence[Passage],
    *,
    now: datetime,
    config: RecallConfig,
    reranked: Mapping[PassageLocation, float] | None = None,
) -> QueryContext:
    """Return what the passages are measured against, as far as the question and all of them tell it."""
    people = {speaker.casefold() for speaker in {passage.match.chunk.speaker for passage in passages}} - {""}
    spans = find_date_ranges(question.original_text, now.date()) if config.dates and question.original_text else ()
    # an entry stands for itself, so where there are none but entries nobody asks for their company
    alone = all(passage.match.chunk.markup for passage in passages)
    sessions, company = ({}, {}) if alone else _measure_sessions(passages, question, config)
    return QueryContext(
        question=question,
        now=now,
        config=config,
        speaker=_find_speaker(question, people),
        absent_words=_find_absent_words(passages),
        date_ranges=spans,
        breadth=0.0 if spans or not config.breadth else question.breadth(people),
        session_similarity=sessions,
        session_coverage=company,
        questions=_find_questions(passages) if config.reply else {},
        rerank_scores=reranked or {},
    )


def passage_location(passage: Passage) -> PassageLocation:
    """Return where a passage stands."""
    chunk = passage.match.chunk
    return passage.label, chunk.path, chunk.line_number, chunk.part


def _find_absent_words(passages: Iterable[Passage]) -> frozenset[str]:
    """Return the words of the question that no source holds."""
    by_source = {passage.label: passage.match.absent for passage in passages}
    return frozenset.intersection(*map(frozenset, by_source.values())) if by_source else frozenset()


def _find_speaker(question: Question, people: Collection[str]) -> str:
    """Return the one speaker whom the question is about; empty when it names none, or begins with several as one.

    Of several it is about the first: "What did Ann say to Bo about it?" asks for words of Ann. A name goes before
    the word for a part in a conversation, as in "Which tool did Ann take?".
    """
    places = sorted(
        (match.start(), match.end(), name)
        for name in people
        if (match := re.search(rf"\b{re.escape(name)}\b", question.text))
    )
    found = [place for place in places if place[2] not in _ROLES] or places
    if not found:
        return "user" if question.is_first_person else ""
    if len(found) > 1 and _CONJUNCTION.fullmatch(question.text[found[0][1] : found[1][0]]):
        return ""
    return found[0][2]


def passage_similarity(passage: Passage, config: RecallConfig) -> float:
    """Return how near a passage is by its words and its meaning, in 0..1."""
    match = passage.match
    signals = match.signals
    near = config.own * signals.get("bm25", match.score) + config.context * signals.get("context", match.score)
    weight = config.own + config.context
    if "dense" in signals:
        near += config.dense * signals["dense"]
        weight += config.dense
    if "dense_context" in signals:
        near += config.dense_context * signals["dense_context"]
        weight += config.dense_context
    return near / weight if weight else 0.0


def session_key(passage: Passage) -> tuple[str, str]:
    """Return what a passage has in common with those it stands among: its source, and its session or else its file."""
    chunk = passage.match.chunk
    return passage.label, chunk.session or chunk.path


def _measure_sessions(
    passages: Iterable[Passage], question: Question, config: RecallConfig
) -> tuple[dict[tuple[str, str], float], dict[tuple[str, str], float]]:
    """Return for each session how near its best passages are, and which share of the words they hold together."""
    near: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    held: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for passage in passages:
        key = session_key(passage)
        near[key].append(passage_similarity(passage, config))
        held[key].update(passage.match.words)
    asked = max(len(question.words), 1)
    return (
        {key: sum(sorted(each)[-_SESSION_PASSAGES:]) / _SESSION_PASSAGES for key, each in near.items()},
        {key: min(len(words) / asked, 1.0) for key, words in held.items()},
    )


def _find_questions(passages: Iterable[Passage]) -> dict[tuple[str, str, int], tuple[float, str]]:
    """Return how near each line of a transcript is that ends in a question, and who asks; by source, path and line."""
    found: dict[tuple[str, str, int], tuple[float, str]] = {}
    for passage in passages:
        match = passage.match
        if match.chunk.message and _ends_with_question(match.content):
            near = match.signals.get("bm25", match.score), match.chunk.speaker
            at = (passage.label, match.chunk.path, match.chunk.line_number)
            found[at] = max(near, found.get(at, near))
    return found


def _ends_with_question(content: str) -> bool:
    """Tell whether a text asks something at its end."""
    end = content[-_QUESTION_END_CHARS:]
    return "?" in end or (not end.isascii() and _QUESTION_MARK.search(end) is not None)


def reply_score(passage: Passage, asked: QueryContext) -> float:
    """Return how near the question is that the line above asks, 0 where nobody else asks there."""
    chunk = passage.match.chunk
    if not chunk.message:
        return 0.0
    near, speaker = asked.questions.get((passage.label, chunk.path, chunk.line_number - 1), (0.0, ""))
    return near if speaker != chunk.speaker else 0.0
