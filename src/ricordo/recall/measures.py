"""What each passage is measured by, and the passages in the order of their scores. Pure.

Each signal is in 0..1; times its weight it is a share of the score, and the shares add up to it. Most signals are
numbers that came with the match or cost next to nothing; reading an entry and looking into the text cost more. So each
passage is first given the most that it can reach, and is measured only when nothing measured is above that.

Invariant: the order is that of measuring them all.
"""

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, lru_cache

from ricordo.index.contract import TELLING, Chunk
from ricordo.language import content_words
from ricordo.recall.asked import Asked, company_of, nearness, place_of, reply_to
from ricordo.recall.config import RecallConfig
from ricordo.recall.dates import closeness
from ricordo.recall.hits import Passage
from ricordo.recall.question import holds_expected
from ricordo.workspace.entry import Author, Entry, Source
from ricordo.workspace.entry_codec import parse_entries

__all__ = ["NEVER", "Scored", "best_first", "is_reply", "measured", "most_of", "order"]

NEVER = datetime.min.replace(tzinfo=UTC)
"""The time of what has none."""

_ROUNDING = 1e-9
_STATE = "[state:: "
_ENTRIES_KEPT, _TEXTS_KEPT = 4_096, 16_384


@dataclass(frozen=True, kw_only=True)
class Scored:
    """A passage with its score, and why it has it.

    `score` may be above 1 here, so that the best stay apart. `time` is when it was said or became true, else when it
    was saved. `successor` is what took the place of the entry that it
    holds. `lost` is what others of its session cost it. `contradicts` are the ids of memories that can't hold
    beside it.
    """

    passage: Passage
    score: float
    asked: Asked
    time: datetime
    lost: float = 0.0
    outdated: bool = False
    successor: Passage | None = None
    contradicts: tuple[str, ...] = ()

    @cached_property
    def memory(self) -> Entry | None:
        """The entry that it holds, None for any other passage; read of the few that are shown."""
        found = _memory(self.passage.match.chunk)
        return replace(found, state="superseded") if found and self.successor else found

    @cached_property
    def signals(self) -> Mapping[str, float]:
        """What it is measured by, each in 0..1; needed of the few that are shown."""
        return _signals(self.passage, self.memory, self.asked)

    @cached_property
    def shares(self) -> Mapping[str, float]:
        """What each signal adds to the score, where anything was asked."""
        if self.asked.blank:
            return {}
        shares = _shares(self.signals, self.asked)
        return {**shares, "breadth": -self.lost} if self.lost else shares

    @cached_property
    def entry(self) -> Entry:
        """The entry of the passage, made up of it where it holds none."""
        return self.memory or _made_up(self.passage.match.chunk)

    @cached_property
    def words(self) -> frozenset[str]:
        """The content words, needed of the best few only."""
        return frozenset(_words(self.passage.match.content))

    @cached_property
    def asks(self) -> bool:
        """Tell whether it ends as a question."""
        return self.passage.match.content.rstrip().endswith(("?", "？"))

    @property
    def holds(self) -> bool:
        """Tell whether it may be shown: it was not superseded, or by something that is seen."""
        if self.successor is not None or _STATE not in self.passage.match.chunk.markup:
            return True
        return self.memory is None or self.memory.state != "superseded"


def best_first(passages: Iterable[Passage], asked: Asked) -> Iterator[Scored]:
    """Yield the passages in their order, each measured when nothing that was not could come before it."""
    rows = [(_certain(passage, asked), at, passage) for at, passage in enumerate(passages)]
    unread, of_memory = _most_read(asked)
    waiting = sorted(
        (
            (known + (of_memory if passage.match.chunk.markup else unread), known, at, passage)
            for known, at, passage in rows
        ),
        key=lambda row: -row[0],
    )
    ready: list[tuple[tuple[float, float, int, bool, str, int, int], int, Scored]] = []
    for most, known, at, passage in waiting:
        while ready and ready[0][2].score > most:
            yield heapq.heappop(ready)[2]
        row = _scored(passage, known, asked)
        heapq.heappush(ready, (order(row), at, row))
    while ready:
        yield heapq.heappop(ready)[2]


def most_of(near: float, asked: Asked) -> float:
    """Return the most that an entry can score which is so near, what its newness gives counted."""
    config = asked.config
    return near * (config.own + config.context + config.session) + _most_read(asked)[1] - config.recency


def _most_read(asked: Asked) -> tuple[float, float]:
    """Return the most that reading a passage can add to its score, and reading an entry."""
    config = asked.config
    unread = config.recency + config.expected * bool(asked.question.expected) + _ROUNDING
    return unread, unread + config.memory + config.speaker * bool(asked.named) + config.dates * bool(asked.spans)


def measured(passage: Passage, asked: Asked) -> Scored:
    """Return a passage with its score, which is 0 where nothing is asked."""
    return _scored(passage, None if asked.blank else _certain(passage, asked), asked)


def _scored(passage: Passage, known: float | None, asked: Asked) -> Scored:
    """Return a passage with its score, of which `known` is a part; with None it is 0."""
    memory = _telling(passage.match.chunk, asked)
    score = 0.0 if known is None else known + _read(passage, memory, asked)
    time = _time(memory, passage.match.chunk) or NEVER
    return Scored(passage=passage, score=score, asked=asked, time=time)


def is_reply(passage: Passage, asked: Asked) -> bool:
    """Tell whether a passage follows a question of somebody else that holds words of what is asked."""
    return reply_to(passage, asked) > 0


def order(row: Scored) -> tuple[float, float, int, bool, str, int, int]:
    """Return what a passage is sorted by; smaller comes first."""
    chunk = row.passage.match.chunk
    timed = row.time != NEVER
    newest_first = -row.time.timestamp() if timed else 0.0
    # of two memories of one time in one file the later one was saved later
    line = -chunk.line_number if timed and chunk.markup else chunk.line_number
    return (-row.score, newest_first, row.passage.nearness, chunk.sort == "long", chunk.path, line, chunk.part)


def _signals(passage: Passage, memory: Entry | None, asked: Asked) -> dict[str, float]:
    match = passage.match
    chunk, given = match.chunk, match.signals
    return {
        "bm25": given.get("bm25", match.score),
        "context": given.get("context", match.score),
        **{name: given[name] for name in ("dense", "dense_context") if name in given},
        "session": _session(passage, asked),
        "company": 0.0 if chunk.markup else asked.company[company_of(passage)],
        "speaker": float(bool(asked.named) and _is_about(chunk, asked.named)),
        "reply": reply_to(passage, asked),
        "dates": _closeness(_time(memory, chunk), asked),
        "expected": float(holds_expected(match.content, asked.question.expected)),
        "memory": float(bool(chunk.markup)),
        "recency": _freshness(memory, chunk, asked),
        "rerank": asked.reranked.get(place_of(passage), 0.0),
        "coverage": given.get("coverage", match.score),
        "reach": given.get("reach", match.score),
        "absent": given.get("absent", 0.0) * len(asked.absent) / max(len(match.absent), 1),
        "stranger": float(bool(asked.named) and _is_by_another(chunk, asked.named)),
        "curated": float(chunk.sort == "curated"),
        "confidence": memory.confidence if memory else 1.0,
    }


def _shares(signals: Mapping[str, float], asked: Asked) -> dict[str, float]:
    """Return what each signal adds to the score; those that add nothing are left out."""
    config = asked.config
    scale = _lexical_scale(signals, config)
    added = {
        "bm25": config.own * scale * signals["bm25"],
        "context": config.context * scale * signals["context"],
        "dense": config.dense * scale * signals.get("dense", 0.0),
        "dense_context": config.dense_context * scale * signals.get("dense_context", 0.0),
        "session": config.session * (1 - asked.breadth * (1 - signals["memory"])) * signals["session"],
        "company": config.company * signals["company"],
        "speaker": config.speaker * signals["speaker"],
        "reply": config.reply * signals["reply"],
        "dates": config.dates * signals["dates"],
        "expected": config.expected * signals["expected"],
        "memory": config.memory * signals["memory"] * signals["confidence"],
        "recency": config.recency * signals["recency"],
        "rerank": config.rerank * signals["rerank"],
    }
    return {name: share for name, share in added.items() if share}


def _lexical_scale(signals: Mapping[str, float], config: RecallConfig) -> float:
    """Return what brings nearness by words and by meaning to the scale of words alone."""
    words = config.own + config.context
    meaning = (config.dense if "dense" in signals else 0.0) + (
        config.dense_context if "dense_context" in signals else 0.0
    )
    return words / (words + meaning) if meaning else 1.0


def _certain(passage: Passage, asked: Asked) -> float:
    """Return what a passage scores by what costs next to nothing to know: of an entry, all that is not in its text."""
    config, chunk = asked.config, passage.match.chunk
    near = nearness(passage, config)
    known = near * (config.own + config.context)
    if asked.reranked:
        known += config.rerank * asked.reranked.get(place_of(passage), 0.0)
    if chunk.markup:
        return known + config.session * near
    company = company_of(passage)
    known += config.session * (1 - asked.breadth) * asked.sessions[company] + config.company * asked.company[company]
    if asked.asking:
        known += config.reply * reply_to(passage, asked)
    if asked.named and _is_about(chunk, asked.named):
        known += config.speaker
    return known + config.dates * _closeness(chunk.time, asked) if asked.spans else known


def _read(passage: Passage, memory: Entry | None, asked: Asked) -> float:
    """Return what a passage scores besides, by what is read in its text and its entry."""
    config, chunk = asked.config, passage.match.chunk
    more = config.recency * _freshness(memory, chunk, asked)
    if holds_expected(passage.match.content, asked.question.expected):
        more += config.expected
    if not chunk.markup:
        return more
    if asked.named and _is_about(chunk, asked.named):
        more += config.speaker
    confidence = memory.confidence if memory else 1.0
    return more + config.memory * confidence + config.dates * _closeness(_time(memory, chunk), asked)


@lru_cache(maxsize=_TEXTS_KEPT)
def _words(content: str) -> tuple[str, ...]:
    """Return the different content words; a tuple takes a quarter of what a set does."""
    return tuple({*content_words(content)})


@lru_cache(maxsize=_ENTRIES_KEPT)
def _parsed(markup: str, path: str) -> Entry | None:
    located = parse_entries(markup, path)
    return located[0].entry if located else None


def _memory(chunk: Chunk) -> Entry | None:
    """Return the entry that a chunk holds, None where it holds none."""
    found = _parsed(chunk.markup, chunk.path) if chunk.markup else None
    if found is None:
        return None
    # a piece of a long entry shows itself, not the line that points to the whole
    content = chunk.content if chunk.sort == "long" else found.content
    if (found.id, found.content) == (chunk.entry_id, content):
        return found
    return replace(found, id=chunk.entry_id, content=content)


def _telling(chunk: Chunk, asked: Asked) -> Entry | None:
    """Return the entry that a chunk holds if its line tells more that counts than the chunk itself."""
    more = chunk.markup and (asked.spans or any(map(chunk.markup.__contains__, TELLING)))
    return _memory(chunk) if more else None


def _made_up(chunk: Chunk) -> Entry:
    """Return a passage that is no entry as one."""
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


def _time(memory: Entry | None, chunk: Chunk) -> datetime | None:
    return (memory.since or memory.time) if memory else chunk.time


def _is_about(chunk: Chunk, named: str) -> bool:
    if chunk.speaker:
        return chunk.speaker.casefold() == named
    # a memory says whom it is about, or it is about the user
    return named == "user" or named in chunk.content.casefold()


def _is_by_another(chunk: Chunk, named: str) -> bool:
    """Tell whether another person says it and does not name the one asked about."""
    speaker = chunk.speaker.casefold()
    return speaker not in {"", "assistant", "tool", "user", named} and named not in chunk.content.casefold()


def _session(passage: Passage, asked: Asked) -> float:
    """Return how near the session is; an entry stands for itself, whatever else its file holds."""
    return nearness(passage, asked.config) if passage.match.chunk.markup else asked.sessions[company_of(passage)]


def _closeness(time: datetime | None, asked: Asked) -> float:
    return closeness(time.date(), asked.spans) if asked.spans and time else 0.0


def _freshness(memory: Entry | None, chunk: Chunk, asked: Asked) -> float:
    """Return 1 for a memory of today and a pinned one, 0.5 after its kind's half-life, 0 for one without a date.

    Age counts from the last confirmation, where there is one.
    """
    if memory is not None and memory.pinned:
        return 1.0
    if chunk.sort == "profile":
        # when a fact was written down or looked at again tells little of when it was said: the ledger has that
        return 0.0
    time, confirmed = _time(memory, chunk), memory.confirmed if memory else None
    latest = max(time, confirmed) if time and confirmed else time or confirmed
    if latest is None:
        return 0.0
    config = asked.config
    days = max((asked.now - latest).total_seconds(), 0.0) / 86_400
    kind = memory.kind if memory else chunk.kind
    return float(0.5 ** (days / config.half_lives.get(kind, config.default_half_life)))
