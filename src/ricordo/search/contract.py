"""Queries, chunks, matches, and the protocols of a search index.

A document is a file of the workspace; it is cut into chunks, each of which knows its lines. The files are the truth: a
search first takes in what changed in them, and reads from the files what it could not take in.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from ricordo.errors import InvalidQuery
from ricordo.storage.contract import AppendedRange

__all__ = [
    "ALL_SORTS",
    "MEMORY_SORTS",
    "RANKING_FIELD_MARKERS",
    "SUPERSEDES_MARKER",
    "CandidateIndex",
    "Candidates",
    "Chunk",
    "CuratedMatches",
    "DocumentSort",
    "Freshness",
    "Match",
    "Moment",
    "PruningRule",
    "Query",
    "SearchIndex",
    "SyncReport",
    "parse_moment",
    "parse_names",
]


Moment: TypeAlias = datetime | date | str
"""A time with its offset, a day, or either as a text in ISO 8601; a day and a text without offset are in local time."""


def parse_names(name: str, given: object) -> tuple[str, ...]:
    """Return several texts as they are and one text as the only one. Raises: InvalidQuery for anything else."""
    several = [given] if isinstance(given, str) else given
    if isinstance(several, Iterable):
        found = tuple(several)
        if all(isinstance(each, str) and each.strip() for each in found):
            return found
    raise InvalidQuery(
        f"{name} is a text, or several in a list, such as {_EXAMPLES.get(name, ['a'])!r}, not {given!r}."
    )


def parse_moment(name: str, given: object) -> datetime | None:
    """Return the moment that is meant, None for none. Raises: InvalidQuery for what is none, and lacks an offset."""
    if given is None:
        return None
    if isinstance(given, datetime):
        if given.tzinfo is None:
            raise InvalidQuery(f"{name} is a moment with an offset, such as {given.isoformat()}+00:00.")
        return given
    try:
        if isinstance(given, date):
            return datetime.combine(given, time.min).astimezone()
        if isinstance(given, str):
            found = datetime.fromisoformat(given.strip())
            return found if found.tzinfo else found.astimezone()
    except (ValueError, OverflowError, OSError):
        pass
    raise InvalidQuery(f"{name} is a moment, such as 2026-11-22 or 2026-11-22T08:00:00+00:00, not {given!r}.")


_EXAMPLES: dict[str, Sequence[str]] = {"kinds": ["decision"], "tags": ["tooling"], "sorts": ["curated", "ledger"]}


DocumentSort: TypeAlias = Literal["curated", "ledger", "long", "session", "transcript", "result", "note", "profile"]
"""What sort of document: curated memory and topics, daily logs (archived ones too), entries in a file of their own,
session files, transcripts, evicted tool results, any other Markdown file, and profiles."""
ALL_SORTS: tuple[DocumentSort, ...] = (
    "curated",
    "ledger",
    "long",
    "session",
    "transcript",
    "result",
    "note",
    "profile",
)
"""All sorts of documents."""
MEMORY_SORTS: tuple[DocumentSort, ...] = ("curated", "ledger", "long", "session", "note", "profile")
"""The sorts that hold memories: all but the raw transcripts and evicted results."""
SUPERSEDES_MARKER = "[supersedes:: "
"""What the markup of an entry holds that took the place of another."""
RANKING_FIELD_MARKERS = ("[confidence:: ", "[confirmed:: ", "[pinned:: ", "[since:: ")
"""What the markup of an entry holds whose fields alone do not tell how much it counts."""


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """A part of a document that is found as one: an entry, a paragraph, a message, a piece of a long text.

    Lines count from 1, `end_line` included. `content` is what a person reads. `markup` is the bullet of an entry as it
    stands in its file, of a fact the bullet that it would be, empty for other chunks. `before` and `after` are
    neighbouring text that helps to find the chunk and is not kept. `part` counts the pieces of one long text from
    0.
    """

    path: str
    line_number: int
    end_line: int
    content: str
    sort: DocumentSort
    part: int = 0
    markup: str = ""
    heading: str = ""
    entry_id: str = ""
    kind: str = ""
    tags: tuple[str, ...] = ()
    time: datetime | None = None
    session: str = ""
    message: str = ""
    speaker: str = ""
    before: str = ""
    after: str = ""


@dataclass(frozen=True, kw_only=True)
class Query:
    """What is looked for. Empty filters let everything through; `text` is plain words, never a query language.

    `since` is included, `until` is not; a chunk without a time passes neither. `path` is the beginning of a path. An
    empty text finds the newest chunks that pass the filters. With `neighbours`, a chunk is also found by the words of
    the messages or paragraphs beside it, behind those that hold them.

    `profile` is the path of the one profile whose facts are looked through: without it none is, whatever the sorts.
    What any other profile holds is not found, and counts in nothing.
    """

    text: str
    kinds: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    session: str = ""
    path: str = ""
    sorts: tuple[DocumentSort, ...] = ALL_SORTS
    neighbours: bool = False
    profile: str = ""

    def __post_init__(self) -> None:
        """Take one name for the only one, a moment in any of its forms, and refuse the rest. Raises: InvalidQuery."""
        for name in ("text", "session", "path", "profile"):
            if not isinstance(getattr(self, name), str):
                raise InvalidQuery(f"{name} of a query is a text, not {getattr(self, name)!r}.")
        for name in ("kinds", "tags", "sorts"):
            if type(getattr(self, name)) is not tuple or "" in getattr(self, name):
                object.__setattr__(self, name, parse_names(name, getattr(self, name)))
        if unknown := {*self.sorts}.difference(ALL_SORTS):
            raise InvalidQuery(f"sorts are of {', '.join(ALL_SORTS)}, not {', '.join(sorted(map(repr, unknown)))}.")
        for name in ("since", "until"):
            object.__setattr__(self, name, parse_moment(name, getattr(self, name)))


@dataclass(frozen=True, kw_only=True)
class Match:
    """One chunk that was found.

    `rank` counts from 1, the best. `score` is its BM25 in 0..1 of the most that this query can reach, higher is
    nearer. `words` are the words of the query that the chunk holds, `absent` those that no document of the index holds
    in any form, generic ones left out. `signals` holds what the score was made of and what recall ranks by, each in
    0..1: `bm25` (the chunk alone), `context` (with its neighbours), `coverage` (the share of the query's words in the
    chunk, by weight), `reach` (the same with its neighbours), `absent` (the share that the absent words have), and with
    an embedder, of a chunk that has a vector, `dense` and `dense_context` (how near it is in meaning, alone and
    with its neighbours), which then count in `score`; `words` may then be none.
    """

    path: str
    line_number: int
    end_line: int
    content: str
    rank: int
    score: float
    chunk: Chunk
    words: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    signals: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class PruningRule:
    """Which candidates of a search are worth reading: those that may be among the `min_count` best.

    A candidate is near by the mean of its signals, with `weights`; what its text tells besides moves it by at most
    `margin` of nearness. One of now is nearer by `recency`, of which half is left when it is as old as its kind's half
    life, in days; an entry whose line tells more of it may be as near as one of now.
    """

    weights: Mapping[str, float]
    margin: float
    min_count: int
    recency: float = 0.0
    now: datetime | None = None
    half_lives: Mapping[str, float] = field(default_factory=dict)
    default_half_life: float = 1.0


@dataclass(frozen=True, eq=False)
class CuratedMatches:
    """All of curated memory, the newest first. The same value stands for the same memory."""

    matches: tuple[Match, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Candidates:
    """What a search found and what is needed to rank it.

    `unseen` is how near the nearest candidate is that was found and left out, with what newness gives it, None when
    nothing was. `curated` is all
    of curated memory where an entry was found.
    """

    matches: Sequence[Match]
    unseen: float | None = None
    curated: CuratedMatches = field(default_factory=CuratedMatches)


@dataclass(frozen=True, kw_only=True)
class Freshness:
    """How far the index follows the files; whatever the state, a search answers, from the files where it must.

    `not_embedded` chunks have no vector yet, and are found by their words; `embedding_error` says what trouble there is
    with embedding, empty when there is none.
    """

    state: Literal["fresh", "stale", "building", "broken"]
    stale_files: int = 0
    reason: str = ""
    not_embedded: int = 0
    embedding_error: str = ""

    def __str__(self) -> str:
        """Say it in words, and how searches are answered meanwhile."""
        files = f"{self.stale_files:,} {'file is' if self.stale_files == 1 else 'files are'}"
        read = f"{files} not taken in yet; searches read the files meanwhile" if self.stale_files else ""
        if self.state == "broken":
            read = f"{self.reason}; searches read the files"
        return f"{self.state}: {read}" if read else self.state


@dataclass(frozen=True, kw_only=True)
class SyncReport:
    """What a refresh did, in documents; `failed` keep the rows they had. `quarantined` is the broken file put aside."""

    indexed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)
    unchanged: int = 0
    quarantined: str = ""


class SearchIndex(Protocol):
    """Search over one workspace."""

    async def search(self, query: Query | str, limit: int = 10) -> list[Match]:
        """Return at most `limit` matches, best first; empty only when no document holds a word of the query.

        What changed in the files since the last call is found, also when the index can't be used.
        """
        ...

    async def refresh(self) -> SyncReport:
        """Take in everything that changed in the workspace, and forget what is gone."""
        ...

    async def append(self, path: str, data: bytes, *, header: bytes = b"") -> AppendedRange:
        """Append to a file as `FileStore.append` does, durably, and so that the next search finds it."""
        ...

    async def index_appended(self, path: str, offset: int, data: bytes) -> None:
        """Take in the block `data` that was just appended to `path` at `offset`, so that the next search finds it."""
        ...

    def freshness(self) -> Freshness:
        """Tell how far the index follows the files, as of the last search, refresh or append."""
        ...

    async def close(self) -> None:
        """Let the index go; what is not taken in yet is taken in by the next one to open it."""
        ...


@runtime_checkable
class CandidateIndex(Protocol):
    """What an index may offer besides: candidates for ranking in one step, those that can't win left out."""

    async def find_candidates(
        self, query: Query, limit: int, cut: PruningRule | None = None, *, beside: Callable[[], object] | None = None
    ) -> Candidates:
        """Return the matches of `search`, without entries that are not worth reading by `cut`.

        `beside` is done in the thread in which the index is read, where it is read at once, maybe more than once.
        """
        ...
