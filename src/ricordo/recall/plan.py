"""Ranking, decided from values alone: passages in, hits out.

A passage scores by how much of the question it covers, alone and with its neighbours, by the company it keeps (its
session), by whom it is about, and by a little for what it is. Each signal is in 0..1 and so is the score; sources are
compared by it, though each counts its own words. Order is total: of equal scores the newer comes first, then the
narrower source, then the place in the files, where the line of a long memory comes before the whole of it.

Invariant: ranking never makes a hit of a passage that no source gave, and never drops one but as the duplicate of
another, as superseded by nothing that is seen, for the limit, or because it holds no word of the question; but what
holds now in the place of a superseded memory is a hit above it. A question without text asks for nothing but the
newest.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property

from ricordo.index.contract import Chunk, Query
from ricordo.index.plan import passes
from ricordo.language import content_words, jaccard, overlap
from ricordo.recall.config import RecallConfig
from ricordo.recall.hits import Hit, Passage
from ricordo.recall.question import Question, holds_expected
from ricordo.recall.standing import Successions, curated_place, successions
from ricordo.workspace.entry import Author, Entry, Source
from ricordo.workspace.entry_codec import parse_entries

__all__ = ["rank"]

_NEVER = datetime.min.replace(tzinfo=UTC)
_BEST_OF_SESSION = 3
_SAME_SUBJECT = 0.5
_SHARED = 3
_CORRECTION = "correction"


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """What every passage is measured against.

    `named` is the one speaker the question is about, or empty; `absent` are its words that no source holds.
    """

    question: Question
    named: str
    absent: frozenset[str]
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
    outdated: bool = False
    successor: Passage | None = None

    @cached_property
    def words(self) -> frozenset[str]:
        """The content words, needed of the best few only."""
        return frozenset(content_words(self.passage.match.content))

    @property
    def asks(self) -> bool:
        """Tell whether it ends as a question."""
        return self.passage.match.content.rstrip().endswith(("?", "？"))

    @property
    def time(self) -> datetime:
        return self.entry.since or self.entry.time or _NEVER


def rank(
    passages: Sequence[Passage],
    question: Question,
    *,
    limit: int,
    now: datetime,
    config: RecallConfig,
    curated: Sequence[Passage] = (),
    query: Query | None = None,
) -> list[Hit]:
    """Return at most `limit` hits, best first; empty when there are no passages.

    `curated` is all of curated memory, found or not: where an entry stands and what took its place is told by it. What
    the filters of `query` keep out is not shown for that.
    """
    shown = [passage for passage in curated if query is None or passes(passage.match.chunk, query)]
    passages = curated_place(passages, shown)
    chain = successions((*curated, *passages))
    asked = _Asked(
        question=question,
        named=_named(question, passages),
        absent=_absent(passages),
        sessions=_session_scores(passages, config),
        now=now,
        config=config,
    )
    blank = not question.text.strip()
    scored = [_scored(passage, asked) for passage in passages if blank or passage.match.words]
    scored = [_standing(replace(row, score=0.0) if blank else row, chain) for row in scored]
    scored = [row for row in scored if row.successor or row.entry.state != "superseded"]
    scored.sort(key=_order)
    rows = _folded(scored, config, limit)
    unfound = [_scored(_unfound(each), asked) for each in shown if each.match.chunk.entry_id in chain.entries]
    offered = {
        row.entry.id: row for row in (*unfound, *scored[::-1]) if row.successor or row.entry.state != "superseded"
    }
    rows = _successors_first(rows if blank else _newer_first(rows, config), offered, chain)
    return [_hit(row, now) for row in rows][:limit]


def _standing(row: _Scored, chain: Successions) -> _Scored:
    """Return the row with the state and the successor that other entries give it."""
    successor = chain.entries.get(chain.successor.get(row.entry.id, ""))
    return row if successor is None else replace(row, successor=successor, entry=replace(row.entry, state="superseded"))


def _successors_first(rows: Sequence[_Scored], offered: Mapping[str, _Scored], chain: Successions) -> list[_Scored]:
    """Put what took the place of a memory above it: what holds now, and what held between where it is a hit too."""
    placed = list(rows)
    for row in rows:
        at = next(at for at, other in enumerate(placed) if other.entry == row.entry and other.passage == row.passage)
        for newer_id in chain.after(row.entry.id):
            stands = next((at for at, other in enumerate(placed) if other.entry.id == newer_id), None)
            if stands is not None and stands < at:
                at = stands
                continue
            newer = placed.pop(stands) if stands is not None else offered.get(newer_id)
            if newer is not None and (stands is not None or newer_id == chain.after(row.entry.id)[-1]):
                placed.insert(at, replace(newer, score=max(newer.score, row.score)))
    return placed


def _unfound(passage: Passage) -> Passage:
    """Return the passage as one that holds nothing of the question."""
    return replace(passage, match=replace(passage.match, score=0.0, words=(), absent=(), signals={}))


def _absent(passages: Iterable[Passage]) -> frozenset[str]:
    """Return the words of the question that no source holds."""
    by_source = {passage.label: frozenset(passage.match.absent) for passage in passages}
    return frozenset.intersection(*by_source.values()) if by_source else frozenset()


def _order(row: _Scored) -> tuple[float, float, int, bool, str, int, int]:
    chunk = row.passage.match.chunk
    timed = row.time != _NEVER
    newest_first = -row.time.timestamp() if timed else 0.0
    # of two memories of one time in one file the later one was saved later
    line = -chunk.line_number if timed and chunk.markup else chunk.line_number
    return (-row.score, newest_first, row.passage.nearness, chunk.sort == "long", chunk.path, line, chunk.part)


def _scored(passage: Passage, asked: _Asked) -> _Scored:
    config = asked.config
    match = passage.match
    entry = _entry(match.chunk)
    signals = {
        "bm25": match.signals.get("bm25", match.score),
        "context": match.signals.get("context", match.score),
        "coverage": match.signals.get("coverage", match.score),
        "reach": match.signals.get("reach", match.score),
        "absent": match.signals.get("absent", 0.0) * len(asked.absent) / max(len(match.absent), 1),
        "session": _company_score(passage, asked.sessions, config),
        "speaker": float(bool(asked.named) and _is_about(match.chunk, asked.named)),
        "stranger": float(bool(asked.named) and _is_by_another(match.chunk, asked.named)),
        "expected": float(holds_expected(match.content, asked.question.expected)),
        "memory": float(bool(match.chunk.markup)),
        "curated": float(match.chunk.sort == "curated"),
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


def _is_by_another(chunk: Chunk, named: str) -> bool:
    """Tell whether another person says it and does not name the one asked about."""
    speaker = chunk.speaker.casefold()
    return speaker not in {"", "assistant", "tool", "user", named} and named not in chunk.content.casefold()


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
    """Return 1 for a memory of today and a pinned one, 0.5 after its kind's half-life, 0 for one without a date.

    Age counts from the last confirmation, where there is one.
    """
    if entry.pinned:
        return 1.0
    times = [time for time in (entry.since or entry.time, entry.confirmed) if time is not None]
    if not times:
        return 0.0
    time = max(times)
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
        twin = next((at for at, other in enumerate(kept) if _same(row, other, config.duplicate)), None)
        if twin is None:
            kept.append(row)
        elif _stands_for(row, kept[twin], config):
            kept[twin] = replace(row, score=kept[twin].score)
        if len(kept) >= 2 * limit:
            break
    return kept


def _same(left: _Scored, right: _Scored, duplicate: float) -> bool:
    # a number apart may be all that a change is, and a question of the same words is no twin of its answer
    apart = (left.successor is None) != (right.successor is None) or left.asks != right.asks
    return not apart and bool(left.words) and jaccard(left.words, right.words) >= duplicate


def _stands_for(row: _Scored, other: _Scored, config: RecallConfig) -> bool:
    """Tell whether `row`, which says the same as `other`, is curated memory, `other` is not, and they come near."""
    return row.signals["curated"] > other.signals["curated"] and other.score - row.score <= config.near


def _newer_first(rows: list[_Scored], config: RecallConfig) -> list[_Scored]:
    """Let the newer of two memories on one subject go first: a changed decision wins.

    A correction wins wherever it stands, another memory where their scores are near.
    """
    placed: list[_Scored] = []
    for row in rows:
        at = next((at for at, other in enumerate(placed) if _replaces(row, other, config)), len(placed))
        if at == len(placed):
            placed.append(row)
            continue
        older = placed[at]
        placed.insert(at, replace(row, score=older.score))
        placed[at + 1 :] = [
            replace(other, score=min(other.score, row.score), outdated=True) if _corrects(row, other) else other
            for other in placed[at + 1 :]
        ]
        placed[at + 1 :] = sorted(placed[at + 1 :], key=_score_order)
    return [replace(row, outdated=row.outdated or any(_corrects(other, row) for other in placed)) for row in placed]


def _score_order(row: _Scored) -> float:
    return -row.score


def _replaces(row: _Scored, other: _Scored, config: RecallConfig) -> bool:
    """Tell whether `row`, which ranks below `other`, is the memory that holds now."""
    if not _is_later_memory(row, other):
        return False
    near = other.score - row.score <= config.near and row.entry.kind == other.entry.kind
    return _corrects(row, other) or (near and overlap(row.words, other.words) >= _SAME_SUBJECT)


def _corrects(row: _Scored, other: _Scored) -> bool:
    """Tell whether `row` is tagged as a correction and is later and on the subject of `other`."""
    shared = len(row.words & other.words)
    return (
        _CORRECTION in row.entry.tags
        and _is_later_memory(row, other)
        and (overlap(row.words, other.words) >= _SAME_SUBJECT or shared >= _SHARED)
        and set(row.passage.match.words) >= set(other.passage.match.words)
    )


def _is_later_memory(row: _Scored, other: _Scored) -> bool:
    return bool(row.signals["memory"] and other.signals["memory"]) and row.time > other.time


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
        superseded_by=row.successor.match.chunk.entry_id if row.successor else "",
        signals=row.signals,
    )


def _why(row: _Scored, now: datetime) -> str:
    """Return the reasons of a hit in words, the strongest first."""
    words = row.passage.match.words
    reasons = [f"has {', '.join(words)}"] if words else []
    if row.signals["speaker"]:
        speaker = row.passage.match.chunk.speaker
        reasons.append(f"by {speaker}" if speaker else "about the one asked for")
    if row.signals["memory"]:
        reasons.append(row.entry.kind)
    if row.time != _NEVER:
        days = (now - row.time).days
        reasons.append("today" if days < 1 else f"{days} days ago" if days > 1 else "yesterday")
    if row.successor:
        reasons.append(f"superseded by {row.successor.match.path}:{row.successor.match.line_number}")
    elif row.outdated:
        reasons.append("a later statement exists")
    return "; ".join(reasons)
