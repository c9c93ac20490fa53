"""Ranking, decided from values alone: passages in, hits out.

A passage scores by how much of the question it covers, alone and with its neighbours, by the company it keeps (its
session), by whom it is about, and by a little for what it is. Each signal is in 0..1 and so is the score; sources are
compared by it, though each counts its own words. Order is total: of equal scores the newer comes first, then the
narrower source, then the place in the files.

Invariant: ranking never makes a hit of a passage that no source gave, and never drops one but as the duplicate of
another, as superseded, or for the limit.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property

from ricordo.index.contract import Chunk
from ricordo.language import content_words, jaccard, overlap
from ricordo.recall.config import RecallConfig
from ricordo.recall.hits import Hit, Passage
from ricordo.recall.question import Question, holds_expected
from ricordo.workspace.entry import Author, Entry, Source
from ricordo.workspace.entry_codec import parse_entries

__all__ = ["rank"]

_NEVER = datetime.min.replace(tzinfo=UTC)
_BEST_OF_SESSION = 3
_SAME_SUBJECT = 0.5


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """What every passage is measured against; `named` is the one speaker the question is about, or empty."""

    question: Question
    named: str
    sessions: Mapping[tuple[str, str], float]
    now: datetime
    config: RecallConfig


@dataclass(frozen=True, kw_only=True)
class _Scored:
    """A passage with its entry, its score and the signals that made it."""

    passage: Passage
    entry: Entry
    score: float
    signals: Mapping[str, float]

    @cached_property
    def words(self) -> frozenset[str]:
        """The content words, needed of the best few only."""
        return frozenset(content_words(self.passage.match.content))

    @property
    def time(self) -> datetime:
        return self.entry.since or self.entry.time or _NEVER


def rank(
    passages: Sequence[Passage], question: Question, *, limit: int, now: datetime, config: RecallConfig
) -> list[Hit]:
    """Return at most `limit` hits, best first; empty when there are no passages."""
    asked = _Asked(
        question=question,
        named=_named(question, passages),
        sessions=_session_scores(passages, config),
        now=now,
        config=config,
    )
    scored = [_scored(passage, asked) for passage in passages]
    scored = [row for row in scored if row.entry.state != "superseded"]
    scored.sort(key=_order)
    return [_hit(row, now) for row in _newer_first(_folded(scored, config, limit), config)][:limit]


def _order(row: _Scored) -> tuple[float, float, int, str, int, int]:
    chunk = row.passage.match.chunk
    newest_first = -row.time.timestamp() if row.time != _NEVER else 0.0
    return (-row.score, newest_first, row.passage.nearness, chunk.path, chunk.line_number, chunk.part)


def _scored(passage: Passage, asked: _Asked) -> _Scored:
    config = asked.config
    match = passage.match
    entry = _entry(match.chunk)
    signals = {
        "bm25": match.signals.get("bm25", match.score),
        "context": match.signals.get("context", match.score),
        "coverage": match.signals.get("coverage", match.score),
        "session": _company_score(passage, asked.sessions, config),
        "speaker": float(bool(asked.named) and _is_about(match.chunk, asked.named)),
        "expected": float(holds_expected(match.content, asked.question.expected)),
        "memory": float(bool(match.chunk.markup)),
        "recency": _freshness(entry, asked.now, config),
    }
    score = (
        config.own * signals["bm25"]
        + config.context * signals["context"]
        + config.session * signals["session"]
        + config.speaker * signals["speaker"]
        + config.expected * signals["expected"]
        + config.memory * signals["memory"] * entry.confidence
        + config.recency * signals["recency"]
    )
    return _Scored(passage=passage, entry=entry, score=min(score, 1.0), signals=signals)


def _entry(chunk: Chunk) -> Entry:
    """Return the entry of a chunk, made up of its passage where it is none."""
    if chunk.markup:
        located = parse_entries(chunk.markup, chunk.path)
        if located:
            entry = replace(located[0].entry, id=chunk.entry_id)
            # a piece of a long entry shows itself, not the line that points to the whole
            return replace(entry, content=chunk.content) if chunk.sort == "long" else entry
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


def _named(question: Question, passages: Sequence[Passage]) -> str:
    """Return the one speaker whom the question is about; empty when it names none or several."""
    speakers = {passage.match.chunk.speaker.casefold() for passage in passages} - {""}
    found = [name for name in sorted(speakers) if re.search(rf"\b{re.escape(name)}\b", question.text)]
    if len(found) == 1:
        return found[0]
    return "user" if not found and question.about_me else ""


def _is_about(chunk: Chunk, named: str) -> bool:
    if chunk.speaker:
        return chunk.speaker.casefold() == named
    # a memory says whom it is about, or it is about the user
    return named == "user" or named in chunk.content.casefold()


def _company(passage: Passage) -> tuple[str, str]:
    chunk = passage.match.chunk
    return passage.label, chunk.session or chunk.path


def _company_score(passage: Passage, sessions: Mapping[tuple[str, str], float], config: RecallConfig) -> float:
    """Return how near the session is; an entry stands for itself, whatever else its file holds."""
    return _nearness(passage, config) if passage.match.chunk.markup else sessions[_company(passage)]


def _nearness(passage: Passage, config: RecallConfig) -> float:
    signals = passage.match.signals
    near = config.own * signals.get("bm25", 0.0) + config.context * signals.get("context", 0.0)
    return near / (config.own + config.context)


def _session_scores(passages: Sequence[Passage], config: RecallConfig) -> dict[tuple[str, str], float]:
    """Return for each session how near its best passages are to the question, in 0..1."""
    found: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for passage in passages:
        found[_company(passage)].append(_nearness(passage, config))
    return {key: sum(sorted(near)[-_BEST_OF_SESSION:]) / _BEST_OF_SESSION for key, near in found.items()}


def _freshness(entry: Entry, now: datetime, config: RecallConfig) -> float:
    """Return 1 for a memory of today and a pinned one, 0.5 after its kind's half-life, 0 for one without a date."""
    if entry.pinned:
        return 1.0
    time = entry.since or entry.time
    if time is None:
        return 0.0
    days = max((now - time).total_seconds(), 0.0) / 86_400
    return float(0.5 ** (days / config.half_lives.get(entry.kind, config.default_half_life)))


def _folded(scored: Sequence[_Scored], config: RecallConfig, limit: int) -> list[_Scored]:
    """Return the rows without those that repeat a better one, some more than `limit` of them."""
    kept: list[_Scored] = []
    places: set[tuple[str, str, int | str]] = set()
    for row in scored:
        chunk = row.passage.match.chunk
        # the pieces of one message or entry are one hit
        place = (row.passage.label, chunk.entry_id or chunk.path, "" if chunk.entry_id else chunk.line_number)
        if place in places:
            continue
        places.add(place)
        if not any(_same(row, other, config.duplicate) for other in kept):
            kept.append(row)
        if len(kept) >= 2 * limit:
            break
    return kept


def _same(left: _Scored, right: _Scored, duplicate: float) -> bool:
    return bool(left.words) and jaccard(left.words, right.words) >= duplicate


def _newer_first(rows: list[_Scored], config: RecallConfig) -> list[_Scored]:
    """Let the newer of two memories on one subject go first where their scores are near: a changed decision wins."""
    placed: list[_Scored] = []
    for row in rows:
        at = len(placed)
        if row.signals["memory"]:
            for index, other in enumerate(placed):
                near = other.score - row.score <= config.near
                if near and other.signals["memory"] and row.time > other.time and _one_subject(row, other):
                    at = index
                    break
        placed.insert(at, replace(row, score=placed[at].score) if at < len(placed) else row)
    return placed


def _one_subject(left: _Scored, right: _Scored) -> bool:
    return left.entry.kind == right.entry.kind and overlap(left.words, right.words) >= _SAME_SUBJECT


def _hit(row: _Scored, now: datetime) -> Hit:
    match = row.passage.match
    return Hit(
        entry=row.entry,
        score=row.score,
        why=_why(row, now),
        path=match.path,
        line_number=match.line_number,
        end_line=match.end_line,
        source=row.passage.label,
        speaker=match.chunk.speaker,
        words=match.words,
        signals=row.signals,
    )


def _why(row: _Scored, now: datetime) -> str:
    """Return the reasons of a hit in words, the strongest first."""
    words = row.passage.match.words
    reasons = [f"has {', '.join(words)}" if words else "stands beside what was asked for"]
    if row.signals["speaker"]:
        speaker = row.passage.match.chunk.speaker
        reasons.append(f"by {speaker}" if speaker else "about the one asked for")
    if row.signals["memory"]:
        reasons.append(row.entry.kind)
    if row.time != _NEVER:
        days = (now - row.time).days
        reasons.append("today" if days < 1 else f"{days} days ago" if days > 1 else "yesterday")
    return "; ".join(reasons)
