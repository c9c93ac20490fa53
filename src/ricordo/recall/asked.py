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
from ricordo.recall.dates import Span, asked_spans
from ricordo.recall.hits import Passage
from ricordo.recall.question import Question

__all__ = ["Asked", "Place", "company_of", "nearness", "place_of", "read_asked", "reply_to"]

Place: TypeAlias = tuple[str, str, int, int]
"""Label of the source, path, line and part: where a passage stands."""

_BEST_OF_SESSION = 3
_PARTS = frozenset({"user", "assistant", "tool"})
_ASKING_END = 200
_QUESTION_MARK = re.compile("[？؟]")
_TOGETHER = re.compile(r"\s*(?:,|&|/|and|or|und|oder|et|ou|y|o|e|и|или|और|या|和|与|與|と)\s*")
"""What stands between two who are asked about as one."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What every passage is measured against.

    `named` is the one speaker the question is about, or empty; `absent` are its words that no source holds; `spans` the
    times it names; `breadth` how likely its answer is spread over sessions. `sessions` and `company` say how near each
    session is and how much of the question it holds, `asking` how near the lines are that end in a question, with
    their speaker; `reranked` is what a reranker says of a passage.
    """

    question: Question
    now: datetime
    config: RecallConfig
    named: str = ""
    absent: frozenset[str] = frozenset()
    spans: tuple[Span, ...] = ()
    breadth: float = 0.0
    sessions: Mapping[tuple[str, str], float] = field(default_factory=dict)
    company: Mapping[tuple[str, str], float] = field(default_factory=dict)
    asking: Mapping[tuple[str, str, int], tuple[float, str]] = field(default_factory=dict)
    reranked: Mapping[Place, float] = field(default_factory=dict)

    @property
    def blank(self) -> bool:
        """Tell whether nothing is asked but what is newest."""
        return not self.question.text.strip()


def read_asked(
    question: Question,
    passages: Sequence[Passage],
    *,
    now: datetime,
    config: RecallConfig,
    reranked: Mapping[Place, float] | None = None,
) -> Asked:
    """Return what the passages are measured against, as far as the question and all of them tell it."""
    people = {speaker.casefold() for speaker in {passage.match.chunk.speaker for passage in passages}} - {""}
    spans = asked_spans(question.said, now.date()) if config.dates and question.said else ()
    # an entry stands for itself, so where there are none but entries nobody asks for their company
    alone = all(passage.match.chunk.markup for passage in passages)
    sessions, company = ({}, {}) if alone else _companies(passages, question, config)
    return Asked(
        question=question,
        now=now,
        config=config,
        named=_named(question, people),
        absent=_absent(passages),
        spans=spans,
        breadth=0.0 if spans or not config.breadth else question.breadth(people),
        sessions=sessions,
        company=company,
        asking=_asking(passages) if config.reply else {},
        reranked=reranked or {},
    )


def place_of(passage: Passage) -> Place:
    """Return where a passage stands."""
    chunk = passage.match.chunk
    return passage.label, chunk.path, chunk.line_number, chunk.part


def _absent(passages: Iterable[Passage]) -> frozenset[str]:
    """Return the words of the question that no source holds."""
    by_source = {passage.label: passage.match.absent for passage in passages}
    return frozenset.intersection(*map(frozenset, by_source.values())) if by_source else frozenset()


def _named(question: Question, people: Collection[str]) -> str:
    """Return the one speaker whom the question is about; empty when it names none, or begins with several as one.

    Of several it is about the first: "What did Ann say to Bo about it?" asks for words of Ann. A name goes before
    the word for a part in a conversation, as in "Which tool did Ann take?".
    """
    places = sorted(
        (match.start(), match.end(), name)
        for name in people
        if (match := re.search(rf"\b{re.escape(name)}\b", question.text))
    )
    found = [place for place in places if place[2] not in _PARTS] or places
    if not found:
        return "user" if question.about_me else ""
    if len(found) > 1 and _TOGETHER.fullmatch(question.text[found[0][1] : found[1][0]]):
        return ""
    return found[0][2]


def nearness(passage: Passage, config: RecallConfig) -> float:
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


def company_of(passage: Passage) -> tuple[str, str]:
    """Return what a passage has in common with those it stands among: its source, and its session or else its file."""
    chunk = passage.match.chunk
    return passage.label, chunk.session or chunk.path


def _companies(
    passages: Iterable[Passage], question: Question, config: RecallConfig
) -> tuple[dict[tuple[str, str], float], dict[tuple[str, str], float]]:
    """Return for each session how near its best passages are, and which share of the words they hold together."""
    near: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    held: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for passage in passages:
        key = company_of(passage)
        near[key].append(nearness(passage, config))
        held[key].update(passage.match.words)
    asked = max(len(question.words), 1)
    return (
        {key: sum(sorted(each)[-_BEST_OF_SESSION:]) / _BEST_OF_SESSION for key, each in near.items()},
        {key: min(len(words) / asked, 1.0) for key, words in held.items()},
    )


def _asking(passages: Iterable[Passage]) -> dict[tuple[str, str, int], tuple[float, str]]:
    """Return how near each line of a transcript is that ends in a question, and who asks; by source, path and line."""
    found: dict[tuple[str, str, int], tuple[float, str]] = {}
    for passage in passages:
        match = passage.match
        if match.chunk.message and _asks(match.content):
            near = match.signals.get("bm25", match.score), match.chunk.speaker
            at = (passage.label, match.chunk.path, match.chunk.line_number)
            found[at] = max(near, found.get(at, near))
    return found


def _asks(content: str) -> bool:
    """Tell whether a text asks something at its end."""
    end = content[-_ASKING_END:]
    return "?" in end or (not end.isascii() and _QUESTION_MARK.search(end) is not None)


def reply_to(passage: Passage, asked: Asked) -> float:
    """Return how near the question is that the line above asks, 0 where nobody else asks there."""
    chunk = passage.match.chunk
    if not chunk.message:
        return 0.0
    near, speaker = asked.asking.get((passage.label, chunk.path, chunk.line_number - 1), (0.0, ""))
    return near if speaker != chunk.speaker else 0.0
